"""After a verdict: what is added at once, what waits, what recurs, what is taken back, what the next prompt says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kernelgen import cli
from kernelgen.constraints.facts import facts_before_compiling
from kernelgen.constraints.store import ConstraintBook, ConstraintFile, reconcile
from kernelgen.door import retract as retract_door
from kernelgen.errors import BadInput, ConstraintError
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import GenerationRequested, VerdictReached
from kernelgen.generation import region
from kernelgen.generation.region import ConstraintRows
from kernelgen.ids import digest_text
from kernelgen.judging.learn import Learned, catch_up, learn
from kernelgen.judging.lessons import Regions
from kernelgen.judging.proposals import waiting
from kernelgen.judging.retract import retract
from kernelgen.records import AutotuneConfig, Finding, LevelResult, Verdict
from tests.constraints.faulty_kernels import product
from tests.factories import hardware

ROOT = Path(__file__).resolve().parents[2]
TARGET = "mla_decode_fp8"
REGIONS = Regions(lambda name: None, lambda name: hardware() if name == "h200" else None)
TRITON = {"compiler": "triton", "compiler_version": "3.7.1"}
LIMIT = 232448


def policy(**changes: Any) -> Any:
    from kernelgen.catalog import read_yaml
    from kernelgen.config import Policy

    return Policy.model_validate({**read_yaml(ROOT / "conf" / "policy" / "default.yaml"), **changes})


class Desk:
    """A log and a constraint file in a folder, and what is done with them."""

    def __init__(self, folder: Path, log: EventLog) -> None:
        self.log, self.file = log, folder / "constraints.jsonl"
        self.policy = policy()

    def verdict(self, id: str, *findings: Finding, level: str = "L1", source: str = "x = 1\n", **changes: Any) -> Row:
        """Append a verdict that failed with these findings."""
        result = LevelResult.model_validate(
            {
                "level": level,
                "outcome": changes.pop("outcome", "failed"),
                "reason": findings[0].reason,
                "findings": findings,
                "environment": TRITON,
            }
        )
        event = VerdictReached(
            iteration_id=id,
            target=changes.pop("target", TARGET),
            hardware="h200",
            state=changes.pop("state", 0),
            verdict=Verdict(iteration_id=id, levels=(result,)),
            highest=None,
            source=digest_text(source),
        )
        return self.log.append(event, [source])

    def learn(self, row: Row) -> list[Learned]:
        return learn(row, log=self.log, constraints=self.file, policy=self.policy, regions=REGIONS)

    def catch_up(self) -> list[Learned]:
        return catch_up(self.log, constraints=self.file, policy=self.policy, regions=REGIONS)

    def retract(self, told: str, why: str = "the reference was wrong") -> tuple[str, ...]:
        return retract(told, why, log=self.log, constraints=self.file, policy=self.policy, regions=REGIONS).withdrawn

    def book(self) -> ConstraintBook:
        return reconcile(ConstraintFile(self.file), ConstraintRows(self.log))

    def active(self) -> list[str]:
        return [constraint.id for constraint in self.book().active]

    def by_hand(self, id: str) -> None:
        command = (
            "constraints",
            "retract",
            id,
            "--why",
            "not so",
            f"events={self.log.path}",
            f"constraints={self.file}",
        )
        assert cli.main(command) == 0


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with EventLog.open(tmp_path / "events.db") as log:
        yield Desk(tmp_path, log)


def warps(reason: str = "num_warps=3 cannot run") -> Finding:
    return Finding(
        check="compile.num_warps", reason=reason, detail="num_warps must be a power of 2", facts={"num_warps": 3}
    )


def shared(m: int, stages: int = 3) -> Finding:
    facts = {"shared_bytes": 300_000, "num_warps": 8, "num_stages": stages, "block.M": m, "block.N": 256}
    return Finding(check="compile.shared_memory", reason="too much", detail="out of resource", facts=facts)


def wrong(shape: str = "t17", kind: str = "ragged") -> Finding:
    return Finding(check="correctness.values", reason=f"{shape}: 3 elements", facts={"shape": shape, "kind": kind})


def test_a_failure_is_a_line_of_the_file_and_an_event_at_once_with_its_evidence(desk: Desk) -> None:
    row = desk.verdict("g1", warps())
    (learned,) = desk.learn(row)
    assert not learned.waits
    (held,) = desk.book().active
    assert held == learned.constraint
    assert held.severity == "hard"
    assert held.rule == "is_power_of_two(num_warps)"
    assert held.evidence.events == (row.id,)
    assert held.evidence.lines == ("num_warps=3 cannot run", "num_warps must be a power of 2")
    assert (held.source, held.time) == ("L1, triton 3.7.1", row.time)
    (added,) = desk.log.rows(kinds=("constraint_added",))
    assert added.seq > row.seq
    assert held.id in desk.file.read_text()


def test_the_same_cause_again_and_the_same_verdict_again_add_nothing(desk: Desk) -> None:
    first = desk.verdict("g1", warps())
    desk.learn(first)
    assert desk.learn(first) == []
    assert desk.learn(desk.verdict("g2", warps("another_kernel[num_warps=12] cannot run"))) == []
    assert len(desk.active()) == 1


def test_two_sizes_over_the_shared_memory_limit_are_one_constraint_that_refuses_both(desk: Desk) -> None:
    for id, size in (("g1", 256), ("g2", 512), ("g3", 128)):
        desk.learn(desk.verdict(id, shared(size)))
    (held,) = desk.book().active
    assert held.rule is not None
    from kernelgen.constraints.rules import parse

    told = [parse(held.rule).check({"blocks": {"M": m, "N": 256}, "num_stages": 3}) for m in (512, 256, 128, 64)]
    assert told == [False, False, False, True]
    assert len(held.evidence.events) == 2


def test_suspect_and_inconclusive_teach_nothing(desk: Desk) -> None:
    assert desk.learn(desk.verdict("g1", warps(), outcome="suspect")) == []
    assert desk.active() == []


def test_proposals_wait_for_a_person_when_the_policy_says_so(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.policy = policy(adopt_proposals=False)
    row = desk.verdict("g1", warps())
    (learned,) = desk.learn(row)
    assert learned.waits
    assert desk.learn(row) == desk.learn(desk.verdict("g2", warps())) == []
    assert desk.active() == []
    places = (f"events={desk.log.path}", f"constraints={desk.file}")
    capsys.readouterr()
    assert cli.main(["constraints", "proposals", *places]) == 0
    assert learned.constraint.id in capsys.readouterr().out
    assert cli.main(["constraints", "adopt", "c_unknown", *places]) == 2
    assert learned.constraint.id in capsys.readouterr().err
    assert cli.main(["constraints", "adopt", learned.constraint.id, *places]) == 0
    assert desk.active() == [learned.constraint.id]
    assert waiting(desk.log, desk.book()) == []
    capsys.readouterr()
    assert cli.main(["constraints", "adopt", "--all", "--json", *places]) == 0
    assert json.loads(capsys.readouterr().out) == {"adopted": []}


def test_a_proposal_whose_verdict_is_retracted_waits_no_more(desk: Desk) -> None:
    desk.policy = policy(adopt_proposals=False)
    desk.learn(desk.verdict("g1", warps()))
    desk.retract("g1")
    assert waiting(desk.log, desk.book()) == []


def test_an_l2_failure_is_a_soft_constraint_only_once_it_recurs(desk: Desk) -> None:
    first = desk.verdict("g1", wrong(), level="L2")
    assert desk.learn(first) == []
    assert desk.learn(desk.verdict("g1", wrong(), level="L2")) == [], "the same candidate judged twice"
    assert desk.learn(desk.verdict("g2", wrong(kind="plain"), level="L2")) == [], "another kind of input"
    assert desk.learn(desk.verdict("g3", wrong(), level="L2", target="other")) == [], "another region"
    (learned,) = desk.learn(desk.verdict("g4", wrong("t33"), level="L2"))
    assert learned.constraint.severity == "soft"
    assert "ragged" in learned.constraint.statement
    assert first.id in learned.constraint.evidence.events


def test_l2_failures_are_told_to_the_next_prompt_with_level_and_reason(desk: Desk) -> None:
    from kernelgen.prompt.sections import state_vector
    from tests.factories import approach

    desk.verdict("g1", wrong(), level="L2")
    position = region.position(desk.log, TARGET, "h200", desk.policy, None)
    assert "g1: failed at L2: t17: 3 elements" in state_vector(approach(0), position)


def test_retracting_a_verdict_withdraws_what_rested_on_it_alone(desk: Desk) -> None:
    row = desk.verdict("g1", warps())
    (learned,) = desk.learn(row)
    assert desk.retract(row.id[:24]) == (learned.constraint.id,)
    retraction = desk.book().retraction(learned.constraint.id)
    assert retraction is not None
    assert row.id in retraction.why
    assert "the reference was wrong" in retraction.why
    assert desk.learn(row) == [], "a retracted verdict teaches nothing"
    (again,) = desk.learn(desk.verdict("g2", warps()))
    assert not again.waits, "no person spoke against the constraint"
    assert again.constraint.id != learned.constraint.id


def test_a_constraint_that_another_verdict_shows_too_stays(desk: Desk) -> None:
    (learned,) = desk.learn(desk.verdict("g1", warps()))
    desk.learn(desk.verdict("g2", warps()))
    assert desk.retract("g1") == ()
    assert desk.active() == [learned.constraint.id]
    assert desk.retract("g2") == (learned.constraint.id,)
    assert desk.active() == []


def test_what_a_retracted_verdict_added_to_a_wider_rule_is_withdrawn_with_it(desk: Desk) -> None:
    for id, size in (("g1", 256), ("g2", 128)):
        desk.learn(desk.verdict(id, shared(size)))
    assert len(desk.retract("g2")) == 1
    (held,) = desk.book().active
    assert held.rule == 'not (block("M") >= 256 and block("N") >= 256 and num_stages >= 3)'


def test_a_retracted_verdict_is_known_to_no_state_vector(desk: Desk) -> None:
    def failures() -> dict[str, int]:
        return region.position(desk.log, TARGET, "h200", desk.policy, None).failures

    desk.verdict("g1", warps())
    desk.verdict("g2", warps())
    assert failures() == {"0": 2}
    desk.retract("g1")
    assert failures() == {"0": 1}


def test_what_a_person_withdrew_is_not_learned_of_old_verdicts_and_of_new_ones_only_proposed(desk: Desk) -> None:
    old = [desk.verdict("g1", warps()), desk.verdict("g2", warps())]
    (learned,) = desk.learn(old[0])
    desk.by_hand(learned.constraint.id)
    assert [desk.learn(row) for row in old] == [[], []]
    assert desk.catch_up() == []
    (later,) = desk.learn(desk.verdict("g3", warps()))
    assert later.waits
    assert desk.active() == []


def test_ids_that_mean_no_one_verdict_are_refused_and_nothing_is_logged(desk: Desk) -> None:
    rows = [desk.verdict("g1", warps()), desk.verdict("g1", warps())]
    with pytest.raises(BadInput, match="has 2 verdicts"):
        desk.retract("g1")
    desk.retract(rows[0].id)
    with pytest.raises(BadInput, match="retracted already"):
        desk.retract(rows[0].id)
    desk.learn(rows[1])
    (added,) = desk.log.rows(kinds=("constraint_added",))
    with pytest.raises(BadInput, match="is a constraint added, no verdict"):
        desk.retract(added.id)
    assert len(list(desk.log.rows(kinds=("verdict_retracted",)))) == 1


def test_a_broken_constraint_file_is_told_before_a_retraction_is_logged(desk: Desk) -> None:
    desk.verdict("g1", warps())
    desk.file.write_text("{\n")
    with pytest.raises(ConstraintError):
        desk.retract("g1")
    assert list(desk.log.rows(kinds=("verdict_retracted",))) == []


def test_the_retract_command_says_what_was_withdrawn(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    (learned,) = desk.learn(desk.verdict("g1", warps()))
    places = (f"events={desk.log.path}", f"constraints={desk.file}")
    with pytest.raises(BadInput, match="needs --why"):
        retract_door.run(["retract", "g1", *places])
    capsys.readouterr()
    assert retract_door.run(["retract", "g1", "--why", "wrong", "--json", *places]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["withdrawn"] == [learned.constraint.id]
    assert record["iteration_id"] == "g1"


def test_what_was_not_learned_before_a_kill_is_learned_at_the_next_start_and_only_once(desk: Desk) -> None:
    row = desk.verdict("g1", warps())
    (late,) = desk.catch_up()
    assert late.constraint.evidence.events == (row.id,)
    assert late.constraint.time == row.time
    assert desk.catch_up() == []
    desk.log.path.with_name("events.db.learned").write_text("nonsense")
    assert desk.catch_up() == [], "without the mark all is looked at again, to the same end"
    desk.verdict("g2", shared(256))
    assert len(desk.catch_up()) == 1


KILLED = """
import os, signal, sys
from pathlib import Path
import tests.judging.test_learning as t
from kernelgen.constraints.store import ConstraintFile
from kernelgen.judging import learn, retract

folder, where = Path(sys.argv[1]), sys.argv[2]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
with t.EventLog.open(folder / "events.db") as log:
    desk = t.Desk(folder, log)
    row = desk.verdict("g1", t.warps())
    if where == "after the verdict":
        die()
    append = ConstraintFile.append
    def then_die(*arguments):
        append(*arguments)
        die()
    if where == "after the line":
        ConstraintFile.append = then_die
    desk.learn(row)
    if where == "after the retraction":
        ConstraintFile.append = die
    desk.retract("g1")
"""


@pytest.mark.parametrize(
    ("where", "active"), [("after the verdict", 1), ("after the line", 1), ("after the retraction", 0)]
)
def test_a_kill_at_any_step_loses_nothing_that_the_next_start_does_not_bring_back(
    tmp_path: Path, where: str, active: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), where],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with EventLog.open(tmp_path / "events.db") as log:
        desk = Desk(tmp_path, log)
        desk.catch_up()
        book = desk.book()
        assert len(book.active) == active
        assert len(book.all) == 1
        assert log.verify().problems == ()


@contextmanager
def workspace(folder: Path) -> Iterator[None]:
    """A folder with seeded constraints and a profile, as the working folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        profile = str(ROOT / "examples" / "profiles" / f"{TARGET}.ncu_raw.csv")
        assert cli.main(["constraints", "seed", "hardware=h200"]) == 0
        assert cli.main(["profile", "import", profile, f"target={TARGET}", "shape=b64_s4096_h64"]) == 0
        yield


def near_the_limit() -> str:
    """A champion whose neighbours with larger tiles or more stages need too much shared memory."""
    source = product(tiles=(128, 128, 64), options="num_warps=8, num_stages=4")
    rows = "AUTOTUNE_CONFIGS = {'gemm_kernel': [triton.Config({'BLOCK_M': 128, 'BLOCK_N': 128, 'BLOCK_K': 64}, "
    rows += "num_warps=8, num_stages=4)]}\n\n\n"
    tuner = "@triton.autotune(configs=AUTOTUNE_CONFIGS['gemm_kernel'], key=['size'])\n@triton.jit"
    source = source.replace("@triton.jit", rows + tuner)
    launch = "a, b, out, 4096, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8, num_stages=4"
    source = source.replace(
        "(4096 // 128, 4096 // 128)", "lambda meta: (4096 // meta['BLOCK_M'], 4096 // meta['BLOCK_N'])"
    )
    source = source.replace(launch, "q, q, out, 4096").replace("a.device", "q.device")
    entry = f"def {TARGET}(q, kv_pages, block_table, seqlens, sm_scale):"
    return source.replace("def entry(a, b):", entry)


def proposed(record: dict[str, Any]) -> list[int]:
    """Bytes that each configuration of a candidate stages."""
    from kernelgen.candidates import read_back

    part = read_back(Path(record["files"][0]).read_text())
    rows: dict[str, tuple[AutotuneConfig, ...]] = part.autotune
    facts = facts_before_compiling(
        part.kernel.code,
        rows,
        dtypes={"q": "bfloat16", "kv_pages": "uint8", "block_table": "int32", "seqlens": "int32"},
    )
    return [one.values["staged_bytes"] for one in facts if one.kernel]  # type: ignore[misc]


def test_a_failure_by_shared_memory_reaches_the_next_prompt_and_the_playbooks_configurations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def generated() -> dict[str, Any]:
        capsys.readouterr()
        assert cli.main(["generate", f"target={TARGET}", "state=0", "judge=none", "--json"]) == 0
        record: dict[str, Any] = json.loads(capsys.readouterr().out)
        return record

    with workspace(tmp_path):
        (tmp_path / "mine.py").write_text(near_the_limit())
        assert cli.main(["champion", "import", "mine.py", f"target={TARGET}"]) == 0
        assert max(proposed(generated())) > LIMIT, "without the constraint the playbook goes too far"
        with EventLog.open(tmp_path / "events.db") as log:
            facts = {"shared_bytes": 393216, "num_warps": 8, "num_stages": 4}
            facts |= {"block.BLOCK_M": 128, "block.BLOCK_N": 256, "block.BLOCK_K": 128}
            finding = Finding(check="compile.shared_memory", reason="393216 bytes", facts=facts)
            source = near_the_limit().replace("'BLOCK_N': 128, 'BLOCK_K': 64", "'BLOCK_N': 256, 'BLOCK_K': 128")
            from kernelgen.door.compose import catalog

            row = Desk(tmp_path, log).verdict("f1", finding, source=source, state=None)
            (learned,) = learn(
                row,
                log=log,
                constraints=tmp_path / "constraints.jsonl",
                policy=policy(),
                regions=Regions.of(catalog([])),
            )
        record = generated()
        sizes = proposed(record)
        assert sizes
        assert max(sizes) <= LIMIT
        with EventLog.read(tmp_path / "events.db") as log:
            asked = log.iteration(record["iteration_id"])[0].event
            assert isinstance(asked, GenerationRequested)
            prompt = json.loads(log.text(asked.messages))[-1]["content"]
        assert f"- ({learned.constraint.id}) {learned.constraint.statement} [rule: {learned.constraint.rule}]" in prompt
