"""The ladder: what runs candidate code, always in a process of its own.

`selftest` is what a candidate's own `python x.py` calls. It needs Python alone to say what is missing, and torch with
the candidate's DSL to check: never pydantic, hydra or dspy. `offline` compiles Triton kernels for a card that is not
here, `interpreter` runs them on the CPU, `cuda` builds CUDA C++, `child` runs a check where it can be killed.
"""
