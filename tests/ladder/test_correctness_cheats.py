"""L2 refuses, by the check meant for it, a cheat that wins against a judge of one call; the honest kernel passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rows_candidates import (
    CHEATS,
    DEEPER_TORCH_ROWS,
    HONEST,
    LAUNCH,
    RETURN,
    STORE,
    TOTAL,
    changed,
    judge,
    naive_verdicts,
)

from kernelgen.ladder.correctness import faults
from kernelgen.ladder.server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("interpreter") as running:
        yield running


@pytest.fixture(scope="module")
def naive(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    return naive_verdicts(tmp_path_factory.mktemp("naive"))


def test_an_honest_kernel_passes_as_a_logic_check(server: Server) -> None:
    result = judge(HONEST, server)
    assert (result.outcome, result.faults) == ("passed", ())
    assert "logic check" in result.reason
    assert result.details["errors"]["y"]["norm"] < 1e-6
    assert result.environment["triton"]


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_that_a_naive_judge_accepts_is_refused(name: str, server: Server, naive: dict[str, bool]) -> None:
    assert naive[name], "it does not even win against one comparison"
    result = judge(CHEATS[name], server)
    assert result.outcome == "failed"
    check = name.partition(" ")[0]
    found = {fault.check: fault.reason for fault in result.faults}
    assert check in found, found
    assert result.reason == result.faults[0].reason


HOST_PART = """    def grid(meta):
        from_x = x * w * factor
        y.copy_(from_x)
        total.copy_(from_x.sum(dim=-1))
        return (x.shape[0],)

"""
EMPTY = HONEST.replace(STORE, "").replace(TOTAL, "    tl.store(total_ptr + row, tl.load(total_ptr + row))\n")


def test_what_a_grid_computes_is_no_kernels_work(server: Server) -> None:
    result = judge(changed(LAUNCH, HOST_PART + LAUNCH.replace("(x.shape[0],)]", "grid]"), EMPTY), server)
    assert "correctness.library_work" in [fault.check for fault in result.faults]
    hooked = (
        f"    def hook(*args, **kwargs):\n{DEEPER_TORCH_ROWS}        args[2].copy_(y)\n        args[3].copy_(total)\n\n"
    )
    added = hooked + "    if not rows_kernel.pre_run_hooks:\n        rows_kernel.add_pre_run_hook(hook)\n"
    result = judge(changed(LAUNCH, added + LAUNCH, EMPTY), server)
    assert "correctness.library_work" in [fault.check for fault in result.faults]


@pytest.mark.parametrize(
    "reading",
    ["x.tolist()", "[float(one) for one in x.reshape(-1)]", "x.numpy()", "[one.item() for one in x.view(-1)]"],
)
def test_whole_tensors_read_into_python_are_a_doubt(reading: str, server: Server) -> None:
    result = judge(changed(RETURN, f"    {reading}\n{RETURN}"), server)
    assert (result.outcome, [fault.check for fault in result.faults]) == ("suspect", ["correctness.host_work"])


@pytest.mark.parametrize("mode", [faults.RAISE, faults.SKIP, faults.SPOIL])
def test_a_broken_kernel_has_its_hooks_and_its_grid_run_first(mode: str) -> None:
    done: list[object] = []
    kernel = SimpleNamespace(pre_run_hooks=[lambda *args, **kwargs: done.append(kwargs)], fn=lambda x, BLOCK=8: None)
    launches = faults.Launches()
    launches.mode = mode
    launch = launches._around(lambda *_, **__: done.append("the kernel"))
    with suppress(RuntimeError):
        launch(kernel, 1, grid=lambda meta: done.append(meta), warmup=False, num_warps=4)
    assert done == [{"num_warps": 4}, {"x": 1, "BLOCK": 8}]
    assert launches.count == 1
