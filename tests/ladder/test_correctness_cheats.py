"""L2 refuses, by the check meant for it, a cheat that wins against a judge of one call; the honest kernel passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rows_candidates import CHEATS, HONEST, judge, naive_verdicts

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
