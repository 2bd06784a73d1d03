"""What a bundle's worker is made of: its jobs, their checksums, the levels of one job, and the lines it leaves.

Everything here runs on a machine that has Python, torch and the DSL alone. `kernelgen.ladder.worker` is the program.
"""
