"""One generation: what it writes, what it logs, and that nothing of the specification is missing from either."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelgen.candidates import read_back, read_header
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CandidateGenerated, GenerationFailed, GenerationRequested, ReplyReceived
from tests.generation.conftest import TARGETS, kernelgen, kinds, log
from tests.prompt.spec_check import missing_from_candidate, missing_from_prompt

Generated = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("state", [0, 1])
def test_the_playbook_answers_both_targets_in_states_0_and_1_in_the_specifications_form(
    workspace: Path, generated: Generated, target: str, state: int
) -> None:
    record = generated(f"target={target}", f"state={state}")
    path = Path(record["files"][0])
    relative = path.relative_to(workspace).as_posix()
    assert relative == f"scripts/kernels/{target}/{record['iteration_id']}.py"
    assert missing_from_candidate({relative: path.read_text()}, autotuned=True) == []
    with log(workspace) as found:
        asked = found.iteration(record["iteration_id"])[0].event
        assert isinstance(asked, GenerationRequested)
        assert missing_from_prompt(json.loads(found.text(asked.messages))) == []


def test_a_generation_logs_its_request_its_reply_and_its_candidate_in_this_order(
    workspace: Path, generated: Generated
) -> None:
    record = generated("target=mla_decode_fp8", "state=1")
    assert kinds(workspace) == ["generation_requested", "reply_received", "candidate_generated"]
    with log(workspace) as found:
        asked, received, made = (row.event for row in found.iteration(record["iteration_id"]))
        assert isinstance(asked, GenerationRequested)
        assert isinstance(received, ReplyReceived)
        assert isinstance(made, CandidateGenerated)
        config = json.loads(found.text(asked.config))
        assert (config["target"]["name"], config["state"]["number"]) == ("mla_decode_fp8", 1)
        assert asked.overrides == ("judge=none", "target=mla_decode_fp8", "state=1")
        assert len(json.loads(found.text(asked.constraint_set))) == record["constraints"]
        assert set(asked.ask) >= {"target", "hardware", "approach", "profile", "champion", "position"}
        assert received.messages == asked.messages
        assert found.text(made.files[f"scripts/kernels/mla_decode_fp8/{record['iteration_id']}.py"]) == (
            Path(record["files"][0]).read_text()
        )


def test_the_models_part_can_be_read_back_from_the_file_exactly(workspace: Path, generated: Generated) -> None:
    record = generated("target=moe_dispatch_384expert", "state=1")
    text = Path(record["files"][0]).read_text()
    part = read_back(text)
    with log(workspace) as found:
        made = found.iteration(record["iteration_id"])[-1].event
        assert isinstance(made, CandidateGenerated)
    assert part.hypothesis == made.hypothesis
    assert part.kernel.entry_point == "moe_dispatch_384expert"
    assert part.kernel.code in text
    header = read_header(text)
    assert header["target"] == ("moe_dispatch_384expert",)


def test_auto_takes_the_target_with_most_headroom_and_the_state_of_the_vector(generated: Generated) -> None:
    record = generated()
    assert (record["target"], record["state"]) == ("mla_decode_fp8", 0)


def test_the_next_prompt_tells_what_was_tried_and_the_playbook_proposes_something_else(
    workspace: Path, generated: Generated
) -> None:
    first, second = (generated("target=mla_decode_fp8", "state=1") for _ in range(2))
    assert first["hypothesis"] != second["hypothesis"]
    with log(workspace) as found:
        asked = found.iteration(second["iteration_id"])[0].event
        assert isinstance(asked, GenerationRequested)
        assert first["iteration_id"] in json.loads(found.text(asked.messages))[-1]["content"]


def test_what_was_profiled_is_told_when_it_is_not_the_champion(workspace: Path, generated: Generated) -> None:
    record = generated("target=mla_decode_fp8", "state=1")
    with log(workspace) as found:
        asked = found.iteration(record["iteration_id"])[0].event
        assert isinstance(asked, GenerationRequested)
        prompt = json.loads(found.text(asked.messages))[-1]["content"]
    assert "\nProfiled: not this champion at a timed shape, but eager PyTorch: 7 launches" in prompt
    assert "Performance: TFLOPS not measured, BW not measured, occupancy not measured" in prompt


def test_constraints_over_the_budget_are_left_out_and_named_everywhere(
    workspace: Path, generated: Generated, capsys: pytest.CaptureFixture[str]
) -> None:
    record = generated("target=mla_decode_fp8", "state=1", "policy.constraint_tokens=300")
    assert record["left_out"]
    assert record["constraint_tokens"] <= 300
    with log(workspace) as found:
        asked = found.iteration(record["iteration_id"])[0].event
        assert isinstance(asked, GenerationRequested)
        assert json.loads(found.text(asked.selection))["left_out"] == record["left_out"]
    capsys.readouterr()
    assert kernelgen("generate", "judge=none", "target=mla_decode_fp8", "state=1", "policy.constraint_tokens=300") == 0
    told = capsys.readouterr().out
    assert all(constraint in told for constraint in record["left_out"])
    header = read_header(Path(record["files"][0]).read_text())
    assert set(header["constraints left out"]) == set(record["left_out"])


def test_a_soft_constraint_reaches_the_prompt_with_the_specifications_words(
    workspace: Path, generated: Generated
) -> None:
    add = ("constraints", "add", "More than 16 splits lost to the merge kernel.", "severity=soft")
    assert kernelgen(*add, "target=mla_decode_fp8") == 0
    record = generated("target=mla_decode_fp8", "state=1")
    with log(workspace) as found:
        asked = found.iteration(record["iteration_id"])[0].event
        assert isinstance(asked, GenerationRequested)
        prompt = json.loads(found.text(asked.messages))[-1]["content"]
    soft = prompt.index("SOFT: prefer to avoid unless you have a specific reason")
    assert prompt.index("More than 16 splits lost to the merge kernel.") > soft


def test_where_the_playbook_has_no_play_it_says_so_and_the_failure_is_a_row(
    workspace: Path, generated: Generated
) -> None:
    record = generated("target=mla_decode_fp8", "state=2", code=1)
    assert record["error"] == "NoPlay"
    assert "lm=openai_compatible" in record["message"]
    assert kinds(workspace) == ["generation_requested", "generation_failed"]


def test_an_imported_champion_is_the_one_to_beat(workspace: Path, generated: Generated) -> None:
    source = (
        "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef mine(x, N: tl.constexpr):\n"
        "    tl.store(x + tl.arange(0, N), 0.0)\n\n\ndef mla_decode_fp8(q, kv_pages, block_table, seqlens, sm_scale):\n"
        "    out = torch.empty_like(q[..., :512])\n    mine[(1,)](out, N=16, num_warps=1)\n    return out, out\n"
    )
    (workspace / "mine.py").write_text(source)
    assert kernelgen("champion", "import", "mine.py", "target=mla_decode_fp8") == 0
    record = generated("target=mla_decode_fp8", "state=0")
    text = Path(record["files"][0]).read_text()
    assert "def mine(x, N: tl.constexpr)" in text
    assert read_header(text)["champion"][0].startswith("k")


def test_the_state_vector_is_followed_after_failures(workspace: Path, generated: Generated) -> None:
    one_failure = "policy.failures_before_advancing=1"
    generated("target=mla_decode_fp8", "state=0", "lm=recorded", code=1)  # a model that did not answer
    generated("target=mla_decode_fp8", "state=2", code=1)  # no play there: says nothing about state 0
    assert generated("target=mla_decode_fp8", one_failure)["state"] == 0
    with EventLog.open(workspace / "events.db") as found:
        place = {"target": "mla_decode_fp8", "hardware": "h200", "iteration_id": "g1", "state": 0}
        found.append(GenerationFailed(**place, cause="no_play", reason="nothing left to try"))
    assert generated("target=mla_decode_fp8", one_failure)["state"] == 1
