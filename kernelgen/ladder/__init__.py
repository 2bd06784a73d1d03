"""The ladder: L0 `policy`, L1 `compile`, L2 `correctness`, L3 and L4 `benchmark` and `decide`; each gives a `Result`.

A level runs in the judge's process. Candidate code runs in contained children of a `server` alone, and nothing it says
is believed. `worker` takes the levels to a machine that has only Python, torch and the DSL: nothing here needs
pydantic, hydra or dspy. Beside the levels stand `offline` (compiles for a card that is not here), `interpreter` (Triton
on a CPU), `cuda` (nvcc), `binary` (reads machine code), and `selftest`, what a candidate's own `python x.py` calls: it
decides no verdict, and its `child` can be killed but is not contained.
"""
