"""The prompt holds every element of the specification, and the check that says so can fail for each."""

from __future__ import annotations

import re

import pytest

from kernelgen.prompt.assemble import messages
from tests import factories as sample
from tests.golden.compare import assert_golden
from tests.prompt import spec_check


@pytest.mark.parametrize("state", range(6))
def test_every_state_has_every_element(state: int) -> None:
    asked = messages(sample.ask(state), sample.program())
    assert spec_check.missing_from_prompt(asked) == []


def test_a_measured_champion_and_an_untried_region_have_every_element() -> None:
    ask = sample.ask(
        champion=sample.champion(figures=(sample.measured(), sample.measured(shape="t4096", occupancy_percent=41.0))),
        position=sample.position(attempts=(), attempts_total=0),
        selection=sample.selection(chosen=(sample.selected(),), left_out=()),
    )
    asked = messages(ask, sample.program())
    assert spec_check.missing_from_prompt(asked) == []
    assert asked[-1]["content"].count("Performance: TFLOPS") == 2


@pytest.mark.parametrize("element", [*spec_check.SYSTEM, *spec_check.USER])
def test_removing_an_element_is_noticed(element: str) -> None:
    asked = messages(sample.ask(), sample.program())
    message, patterns = (asked[0], spec_check.SYSTEM) if element in spec_check.SYSTEM else (asked[-1], spec_check.USER)
    message["content"] = re.sub(patterns[element], "", message["content"], count=1, flags=re.MULTILINE)
    assert element in spec_check.missing_from_prompt(asked)


def test_sections_in_another_order_are_noticed() -> None:
    asked = messages(sample.ask(), sample.program())
    head, task = asked[-1]["content"].split("[TASK]\n")
    asked[-1]["content"] = f"[TASK]\n{task}\n\n{head}"
    assert spec_check.missing_from_prompt(asked) == ["order of the sections"]


@pytest.mark.parametrize("state", [1, 3, 4, 5])
def test_the_prompt_is_the_accepted_one(state: int) -> None:
    program = sample.program(demonstrations=(sample.demonstration(),))
    text = "\n".join(f"=== {m['role']}\n{m['content']}" for m in messages(sample.ask(state), program))
    assert_golden(f"prompt_state_{state}.txt", f"{text}\n")
