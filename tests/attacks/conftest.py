"""One naive judge, one real ladder and one machine over the network, shared by all attacks of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.ladder_run import Ladder
from tests.attacks.naive_runs import NaiveJudge
from tests.attacks.solver import Solver


@pytest.fixture(scope="session")
def naive_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NaiveJudge]:
    """A judge that believes what it is told."""
    with NaiveJudge(tmp_path_factory.mktemp("naive")) as judge:
        yield judge


@pytest.fixture(scope="session")
def ladder() -> Iterator[Ladder]:
    """The real levels."""
    with Ladder() as levels:
        yield levels


@pytest.fixture(scope="session")
def solver() -> Iterator[Solver]:
    """What a candidate may want to reach."""
    with Solver() as machine:
        yield machine
