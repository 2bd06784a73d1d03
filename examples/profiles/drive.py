"""Runs one call of a target's naive champion under a profiler: what `record.sh` profiles.

    python examples/profiles/drive.py moe_dispatch_384expert T=64 --with torch --out trace.json

Needs an NVIDIA GPU, torch, triton and this checkout. The call is warmed up first, autotuning included, so that the file
holds exactly one call. `--with ncu` marks the call with cudaProfilerStart and cudaProfilerStop and writes nothing: it
is for `ncu --profile-from-start off`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
WARM_UP_CALLS = 3


def region(target: str, dims: dict[str, int]) -> Callable[[], object]:
    """One call of the champion on fresh plain inputs, without arguments."""
    inputs = importlib.import_module(f"kernelgen.targets.{target}").make_inputs(dims, "plain", 0, "cuda")
    entry = getattr(importlib.import_module(f"kernelgen.targets.champions.{target}"), target)
    return lambda: entry(**inputs)


def under_ncu(call: Callable[[], object], out: str) -> None:
    """Mark the call for ncu, which writes the file itself."""
    import torch

    torch.cuda.profiler.start()
    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def under_torch(call: Callable[[], object], out: str) -> None:
    """Write a Chrome trace."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        call()
        torch.cuda.synchronize()
    prof.export_chrome_trace(out)


def under_proton(call: Callable[[], object], out: str) -> None:
    """Write a hatchet file; Proton adds the ending itself."""
    import torch
    import triton.profiler as proton

    proton.start(out.removesuffix(".hatchet"), backend="cupti")
    call()
    torch.cuda.synchronize()
    proton.finalize()


def main() -> None:
    """Warm up, then run the one call that is recorded."""
    import torch

    recorders = {"ncu": under_ncu, "torch": under_torch, "proton": under_proton}
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("dims", nargs="+", help="NAME=EXTENT of the shape, as in T=64")
    parser.add_argument("--with", dest="recorder", choices=sorted(recorders), required=True)
    parser.add_argument("--out", default="")
    given = parser.parse_args()
    call = region(given.target, {name: int(extent) for name, _, extent in (pair.partition("=") for pair in given.dims)})
    for _ in range(WARM_UP_CALLS):
        call()
    torch.cuda.synchronize()
    recorders[given.recorder](call, given.out)


if __name__ == "__main__":
    main()
