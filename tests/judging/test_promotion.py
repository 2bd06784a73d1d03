"""After L3 and L4: who becomes champion, what is learned of it, what a later measurement or a person takes back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgen import champions, cli
from kernelgen.champions import line
from kernelgen.constraints.gains import first_sentences
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import EVENT, ChampionNamed, ChampionRetracted, GenerationRequested
from kernelgen.generation.region import retracted_verdicts
from kernelgen.judging import promotion
from kernelgen.ladder.results import Fault, Result
from kernelgen.playbook.champion import parse
from kernelgen.prompt.sections import champion as champion_section
from kernelgen.prompt.sections import state_vector
from kernelgen.records import Champion, to_text
from tests.factories import approach
from tests.judging.verdict_makers import HARDWARE, ROOT, TARGET, Bench, kernel, policy

PLACE = {"target": TARGET, "hardware": HARDWARE}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with EventLog.open(tmp_path / "events.db") as log:
        yield Bench(tmp_path, log)


def namings(bench: Bench) -> list[ChampionNamed]:
    return [row.event for row in bench.log.rows(kinds=("champion_named",)) if isinstance(row.event, ChampionNamed)]


def held_out_names(bench: Bench) -> list[str]:
    return list(bench.target.shapes.heldout)


def test_a_verdict_whose_l4_passed_makes_its_candidate_champion_with_figures_that_prompts_may_tell(
    bench: Bench,
) -> None:
    source = kernel("split", tiles=(32, 64))
    bench.generation("g1")
    row = bench.verdict("g1", 1.25, source=source)
    done = bench.promote(row)
    assert done is not None
    assert done.sentence == f"g1 is champion of {TARGET} on {HARDWARE}: it beat naive"
    held = bench.now()
    assert (held.id, held.origin, held.language, held.source) == ("g1", "promoted", "python", source)
    assert [one.shape for one in held.figures] == list(bench.target.shapes.tune), "held-out shapes stay secret"
    first = held.figures[0]
    assert first.time_us == pytest.approx(160.0, rel=0.01)
    assert first.gbytes_per_s == pytest.approx(1e8 / 160.0 / 1e3, rel=0.01)
    assert first.tflops == pytest.approx(1e9 / 160.0 / 1e6, rel=0.01)
    assert first.source == row.id
    shown = champion_section(held)
    assert not any(name in shown for name in held_out_names(bench))
    assert f"time {first.time_us:.4g} us at {first.shape}" in shown
    (tuned,) = parse(held.source).kernels
    assert [config.kwargs for config in tuned.configs or ()] == [{"BLOCK_N": 32}, {"BLOCK_N": 64}], (
        "the playbook reads it"
    )
    (named,) = namings(bench)
    assert (named.parent, named.verdict) == ("naive", row.id)


def test_asked_again_nothing_is_added_and_the_same_is_said(bench: Bench) -> None:
    row = bench.promoted("g1")
    count = bench.log.count()
    again = bench.promote(row)
    assert again is not None
    assert again.naming is not None
    assert bench.learn(row) == bench.catch_up() == []
    bench.log.path.with_name("events.db.learned").unlink()
    assert bench.catch_up() == []
    assert bench.log.count() == count


KILLED = """
import os, signal, sys
from pathlib import Path
from kernelgen.constraints.store import ConstraintFile
from kernelgen.eventlog.store import EventLog
from tests.judging.verdict_makers import Bench

folder, where = Path(sys.argv[1]), sys.argv[2]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
with EventLog.open(folder / "events.db") as log:
    bench = Bench(folder, log)
    bench.generation("g1")
    row = bench.verdict("g1", 1.25)
    if where == "after the verdict":
        die()
    if where == "after the naming":
        ConstraintFile.append = die
    bench.promote(row)
    if where == "after the retraction":
        ConstraintFile.append = die
    bench.retract("g1")
"""


@pytest.mark.parametrize(
    ("where", "holds"), [("after the verdict", "g1"), ("after the naming", "g1"), ("after the retraction", "naive")]
)
def test_a_kill_at_any_step_is_finished_at_the_next_start(tmp_path: Path, where: str, holds: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), where],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with EventLog.open(tmp_path / "events.db") as log:
        bench = Bench(tmp_path, log)
        bench.catch_up()
        assert bench.now().id == holds
        assert len(namings(bench)) == 1
        assert [c.severity for c in bench.book().all] == ["positive"]
        assert len(bench.active()) == (holds == "g1")
        assert log.verify().problems == ()


def test_nothing_is_promoted_over_a_champion_that_was_not_measured_against(bench: Bench) -> None:
    naive = bench.now()
    bench.promoted("g1")
    bench.generation("g2")
    done = bench.promote(bench.verdict("g2", 1.5, rival=naive))
    assert done is not None
    assert done.naming is None
    assert [attempt.outcome for attempt in bench.position().attempts] == ["promoted", "candidate"]
    assert (
        "won against naive, and the champion now is g1; judge it again: `kernelgen judge g2 level=L4`" in done.sentence
    )
    assert bench.now().id == "g1"
    changed = bench.now().model_copy(update={"source": kernel("other")})
    done = bench.promote(bench.verdict("g2", 1.5, rival=changed))
    assert done is not None
    assert done.naming is None, "the same id with another source"


def test_a_promotion_rests_on_l2_too_in_this_verdict_or_an_earlier_one_of_the_same_text(bench: Bench) -> None:
    bench.generation("g1")
    done = bench.promote(bench.verdict("g1", 1.25, l2="inconclusive"))
    assert done is not None
    assert done.naming is None
    assert "L2 did not pass" in done.sentence
    bench.append("g1", [Result("L0", "passed", ""), Result("L2", "passed", "")], kernel("g1"), 1)
    done = bench.promote(bench.verdict("g1", 1.25, l2="inconclusive"))
    assert done is not None
    assert done.naming is not None


def test_figures_of_another_form_promote_nothing_teach_nothing_and_end_no_session(bench: Bench) -> None:
    bench.generation("g1")
    results = [Result(level, "passed", "", details={"shapes": []}) for level in ("L2", "L3", "L4")]
    row = bench.append("g1", results, kernel("g1"), 1)
    done = bench.promote(row)
    assert done is not None
    assert "have another form" in done.sentence
    assert bench.now().id == "naive"
    assert bench.catch_up() == []


def test_below_l4_nothing_is_promoted(bench: Bench) -> None:
    bench.generation("g1")
    assert bench.promote(bench.verdict("g1", 0.9)) is None
    assert bench.promote(bench.verdict("g1", 1.3, held_out=0.99)) is None
    assert bench.promote(bench.verdict("g1", 1.3, suspect="benchmark.impossible")) is None
    assert namings(bench) == []


def test_after_a_promotion_the_state_vector_moves_as_the_policy_says(bench: Bench) -> None:
    for number in range(2):
        bench.verdict(bench.generation(f"f{number}", state=0), 0.8, state=0)
    bench.promoted("g1")
    advancing = {"failures_before_advancing": 2}
    assert bench.position(**advancing).state == 1
    assert bench.position(**advancing, after_promotion="restart").state == 0
    assert [attempt.outcome for attempt in bench.position().attempts] == ["no_gain", "no_gain", "promoted"]
    bench.retract("g1")
    assert bench.position(after_promotion="restart").failures == {"0": 2}, "what came of the promotion is undone"


def test_a_regression_is_a_soft_constraint_with_what_was_tried_on_which_profile_and_how_much_slower(
    bench: Bench,
) -> None:
    bench.generation("g1", state=2, hypothesis="One launch saves time. It rests on that.")
    row = bench.verdict("g1", 0.8, source=kernel("fused", warps=16), state=2)
    (learned,) = bench.learn(row)
    held = learned.constraint
    assert not learned.waits
    assert held.severity == "soft"
    assert (held.scope.target, held.scope.hardware, held.scope.dsl, held.scope.state) == (TARGET, HARDWARE, "triton", 2)
    assert held.evidence.events == (row.id,)
    assert held.statement.startswith(
        "Do not try again without a further reason: One launch saves time. It rests on that. Changed: kernels fused"
    )
    assert re.search(r"It was 25\.0% slower than champion naive \(99% interval 24\.\d% to 25\.\d%\)", held.statement)
    assert "state 2; profile: latency bound by launches at b64_s4096_h64" in held.statement
    assert held.source == "L3, triton 3.6.0, torch 2.11.0"
    assert len(held.evidence.lines) == len(bench.target.shapes.tune)
    assert bench.learn(bench.verdict("g1", 0.82, source=kernel("fused", warps=16), state=2)) == [], "known already"


def test_what_changed_is_told_as_the_configuration_where_kernels_and_launches_stay(bench: Bench) -> None:
    bench.promoted("g1", source=kernel("one", tiles=(64,), warps=4))
    bench.generation("g2", state=0)
    (learned,) = bench.learn(bench.verdict("g2", 0.9, source=kernel("one", tiles=(64,), warps=16), state=0))
    assert (
        "Changed: one_kernel with BLOCK_N=64, num_warps=16, num_stages=3 in place of BLOCK_N=64, num_warps=4, "
        "num_stages=3." in learned.constraint.statement
    )


def test_no_difference_and_suspect_teach_nothing(bench: Bench) -> None:
    bench.generation("g1")
    assert bench.learn(bench.verdict("g1", 1.001)) == []
    assert bench.learn(bench.verdict("g1", 0.7, suspect="benchmark.clocks")) == []
    assert bench.learn(bench.verdict("g1", 3.0, suspect="benchmark.impossible")) == []
    assert bench.active() == []


@pytest.mark.parametrize("ratio", [1.001, 1.2])
def test_the_same_kernel_measured_again_takes_the_regression_back_and_the_line_names_the_event(
    bench: Bench, ratio: float
) -> None:
    bench.generation("g1")
    (learned,) = bench.learn(bench.verdict("g1", 0.8, source=kernel("a")))
    bench.generation("g2")
    layout = kernel("a").replace("import torch\n", "import torch  # the same kernel\n\n\n")
    row = bench.verdict("g2", ratio, source=layout)
    bench.promote(row)
    retraction = bench.book().retraction(learned.constraint.id)
    assert retraction is not None
    assert row.id in retraction.why
    assert learned.constraint.id not in bench.active()
    bench.log.path.with_name("events.db.learned").unlink(missing_ok=True)
    known = bench.book().all
    assert bench.catch_up() == []
    assert bench.book().all == known, "the older verdict does not teach it again"
    bench.retract(row.id)
    assert any(c.severity == "soft" for c in bench.book().active), "what contradicted it fell itself"


def test_another_kernel_that_wins_takes_nothing_back(bench: Bench) -> None:
    bench.generation("g1")
    (learned,) = bench.learn(bench.verdict("g1", 0.8, source=kernel("a", warps=8)))
    bench.generation("g2")
    bench.learn(bench.verdict("g2", 1.2, source=kernel("a", warps=4)))
    assert learned.constraint.id in bench.active()


def test_contrary_evidence_with_another_compiler_narrows_a_regression_to_the_version_that_showed_it(
    bench: Bench,
) -> None:
    bench.generation("g1")
    (learned,) = bench.learn(bench.verdict("g1", 0.8, source=kernel("a")))
    row = bench.verdict("g1", 1.001, source=kernel("a"), environment={"triton": "3.7.1"})
    (narrower,) = bench.learn(row)
    (held,) = bench.book().active
    assert held == narrower.constraint
    assert (held.scope.compiler, held.scope.compiler_version) == ("triton", "3.6.0")
    assert held.statement.endswith(
        "So it was with triton 3.6.0, and not with triton 3.7.1.".replace("triton 3.7", "3.7")
    )
    assert bench.learn(row) == []
    assert bench.active() == [held.id]
    bench.learn(bench.verdict("g1", 1.001, source=kernel("a")))
    assert bench.active() == [], "and with that version too it does not hold"
    assert learned.constraint.id != held.id


def test_a_pass_of_l4_is_a_positive_pattern_with_what_changed_how_much_and_under_what_conditions(bench: Bench) -> None:
    bench.generation("g1", hypothesis="Fewer bytes are read")
    done = bench.promote(bench.verdict("g1", 1.25, source=kernel("split"), held_out=1.1))
    assert done is not None
    held = next(c for c in bench.book().active)
    assert held.severity == "positive"
    assert held.statement.startswith("Fewer bytes are read. Changed: kernels split_kernel in place of ")
    assert "It was 1.25 (99% interval 1.25 to 1.25) times as fast as champion naive (" in held.statement
    for name in bench.target.shapes.tune:
        assert f"{name} 1.25 (1.25 to 1.25)" in held.statement
    assert (
        "and 1.1 (1.1 to 1.1) at shapes it had not seen; on NVIDIA H200 SXM, triton 3.6.0, torch 2.11.0"
        in held.statement
    )
    assert (held.scope.dsl, held.scope.state) == (None, None), "what worked is worth knowing in any approach"
    told = to_text(held)
    assert not any(name in told for name in held_out_names(bench))


def test_a_gain_that_held_out_shapes_do_not_show_is_a_soft_constraint_that_names_none_of_them(bench: Bench) -> None:
    bench.generation("g1")
    names = held_out_names(bench)
    row = bench.verdict("g1", 1.25, held_out={**dict.fromkeys(names, 1.3), names[0]: 0.9}, source=kernel("split"))
    (learned,) = bench.learn(row)
    assert learned.constraint.severity == "soft"
    assert "0.9 at the worst of them" in learned.constraint.statement
    told = to_text(learned.constraint) + state_vector(approach(1), bench.position())
    assert not any(name in told for name in names)
    bench.learn(bench.verdict("g1", 1.25, source=kernel("split")))
    assert learned.constraint.id not in bench.active(), "a later pass takes it back"


def test_a_champion_taken_back_gives_way_to_the_one_before_it_and_its_pattern_goes(bench: Bench) -> None:
    bench.promoted("g1", 1.25)
    row = bench.promoted("g2", 1.1)
    pattern = next(c.id for c in bench.book().active if c.evidence.events == (row.id,))
    done = bench.retract("g2")
    assert (done.champion, done.withdrawn, done.fallen) == ("g1", (pattern,), ())
    assert bench.now().id == "g1"
    assert isinstance(done.row.event, ChampionRetracted)
    assert row.id in retracted_verdicts(bench.log)
    assert [attempt.outcome for attempt in bench.position().attempts] == ["promoted", "candidate"]
    assert bench.promote(row) is None
    assert bench.catch_up() == []
    assert bench.now().id == "g1"
    bench.promote(bench.verdict("g2", 1.1))
    assert bench.now().id == "g2", "judged anew, after it was taken back"


@pytest.mark.parametrize("by", ["champion", "verdict", "naming", "beginning"])
def test_a_champion_is_taken_back_by_its_id_its_verdict_or_its_naming(bench: Bench, by: str) -> None:
    row = bench.promoted("g123")
    (naming,) = bench.log.rows(kinds=("champion_named",))
    bench.retract({"champion": "g123", "verdict": row.id, "naming": naming.id, "beginning": "g12"}[by])
    assert bench.now().id == "naive"
    with pytest.raises(BadInput, match="retracted already"):
        bench.retract("g123")


def test_champions_promoted_over_a_wrong_one_fall_with_it_and_all_that_was_measured_against_them(bench: Bench) -> None:
    bench.promoted("g1", 1.25)
    bench.promoted("g2", 1.1)
    bench.generation("g3")
    (slower,) = bench.learn(bench.verdict("g3", 0.8))
    assert bench.position().failures == {"1": 1}
    done = bench.retract("g1")
    assert done.fallen == ("g2",)
    assert done.champion == bench.now().id == "naive"
    assert slower.constraint.id in done.withdrawn
    assert bench.active() == []
    assert bench.position().failures == {}, "slower than a champion that was none counts for nothing"
    whys = [link.why for link in line(row.event for row in bench.log.rows(kinds=champions.KINDS))]
    assert whys == ["it reads past the end", "it was promoted over g1, which fell: judge it again"]
    bench.promote(bench.verdict("g2", 1.3))
    assert bench.now().id == "g2", "judged again, against the one that holds"


def test_one_that_beat_the_restored_champion_in_another_verdict_takes_its_place_at_once(bench: Bench) -> None:
    naive = bench.now()
    bench.promoted("g1", 1.25)
    bench.promoted("g2", 1.1)
    bench.promote(bench.verdict("g2", 1.375, rival=naive))
    done = bench.retract("g1")
    assert done.champion == bench.now().id == "g2"
    assert namings(bench)[-1].parent == "naive"


def test_an_imported_champion_begins_a_line_of_its_own_and_can_be_taken_back(bench: Bench, tmp_path: Path) -> None:
    bench.promoted("g1", 1.25)
    (tmp_path / "mine.py").write_text(kernel("mine"))
    places = [f"events={bench.log.path}", f"target={TARGET}"]
    assert cli.main(["champion", "import", str(tmp_path / "mine.py"), *places]) == 0
    imported = bench.now().id
    bench.promoted("g2", 1.1)
    assert bench.retract("g1").champion == "g2", "the imported one did not beat the one taken back"
    done = bench.retract(imported[:20])
    assert (done.champion, done.fallen) == ("naive", ("g2",))
    with pytest.raises(BadInput, match="taken back already"):
        bench.retract(imported)
    with pytest.raises(BadInput, match="comes with its target"):
        bench.retract("naive")


def named(id: str, parent: str | None, verdict: str | None = None) -> ChampionNamed:
    origin = "imported" if parent is None else "promoted"
    made = {**PLACE, "champion_id": id, "origin": origin, "parent": parent, "verdict": verdict}
    return ChampionNamed.model_validate({**made, "champion": "sha256:" + "0" * 64})


def test_of_two_named_over_the_same_champion_at_once_only_the_first_is_champion() -> None:
    links = line([named("a", "naive"), named("b", "naive")])
    assert [link.fate for link in links] == ["stands", "overtaken"]
    after = line([named("a", "naive"), named("b", "naive"), ChampionRetracted(**PLACE, champion_id="a", why="wrong")])
    assert champions.current(after) is None


def test_a_naming_of_before_champions_had_parents_is_read_as_one_that_stands() -> None:
    old = {
        **PLACE,
        "kind": "champion_named",
        "champion_id": "k1",
        "origin": "imported",
        "champion": "sha256:" + "0" * 64,
    }
    event = EVENT.validate_python(old)
    assert champions.named([event]) == event


def test_a_champion_goes_when_the_verdict_that_promoted_it_is_retracted_alone(bench: Bench) -> None:
    events = [named("a", "naive", "e1"), named("b", "a", "e2")]
    gone = EVENT.validate_python(
        {**PLACE, "kind": "verdict_retracted", "verdict": "e1", "iteration_id": "a", "why": "another seed"}
    )
    assert [link.fate for link in line([*events, gone])] == ["taken_back", "line_fell"]


def test_the_line_and_the_gain_over_its_first_can_be_read_back(bench: Bench) -> None:
    bench.promoted("g1", 1.25)
    bench.promoted("g2", 1.2)
    told = promotion.lineage(bench.log, TARGET, HARDWARE)
    now = promotion.current(told)
    assert now is not None
    assert now.measured is not None
    assert now.measured.over_all.ratio == pytest.approx(1.2, rel=0.01)
    found = promotion.gain(told, now)
    assert found is not None
    assert (round(found[0], 2), found[1]) == (1.5, "naive")


def test_a_users_own_file_is_promoted_too(bench: Bench) -> None:
    done = bench.promote(bench.verdict("f1", 1.25, source=kernel("mine"), state=None))
    assert done is not None
    assert bench.now().id == "f1"
    (pattern,) = bench.book().active
    assert pattern.statement.startswith("a kernel of the user's own. Changed: kernels mine_kernel")


def test_cuda_source_is_told_apart(bench: Bench) -> None:
    source = '#include <cuda_runtime.h>\n__global__ void go() {}\nextern "C" int f() { go<<<1, 1>>>(); return 0; }\n'
    bench.generation("g1", state=3)
    bench.promote(bench.verdict("g1", 1.25, source=source, state=3))
    assert bench.now().language == "cuda"
    assert "Changed: kernels go in place of" in bench.book().active[0].statement


def test_proposals_wait_for_a_person_and_a_promotion_does_not(bench: Bench) -> None:
    bench.policy = policy(adopt_proposals=False)
    bench.generation("g1")
    done = bench.promote(bench.verdict("g1", 1.25))
    assert done is not None
    assert [learned.waits for learned in done.learned] == [True]
    assert bench.active() == []
    assert bench.now().id == "g1"


@pytest.mark.parametrize(
    ("hypothesis", "told"),
    [
        ("One. Two.", "One. Two."),
        ("no end", "no end."),
        ("First is this. " + "w " * 200, "First is this."),
        ("x" * 100 + " " + "y" * 300, "x" * 100 + "…"),
    ],
)
def test_of_a_hypothesis_whole_sentences_are_told_as_far_as_they_fit(hypothesis: str, told: str) -> None:
    assert first_sentences(hypothesis) == told


def test_what_l3_and_l4_taught_stands_in_the_next_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    profile = str(ROOT / "examples" / "profiles" / f"{TARGET}.ncu_raw.csv")
    assert cli.main(["constraints", "seed", "hardware=h200"]) == 0
    assert cli.main(["profile", "import", profile, f"target={TARGET}", "shape=b64_s4096_h64"]) == 0

    def prompt() -> tuple[str, str]:
        capsys.readouterr()
        assert cli.main(["generate", f"target={TARGET}", "state=1", "judge=none", "--json"]) == 0
        id = json.loads(capsys.readouterr().out)["iteration_id"]
        with EventLog.read(tmp_path / "events.db") as log:
            asked = next(row.event for row in log.iteration(id) if isinstance(row.event, GenerationRequested))
            return id, json.loads(log.text(asked.messages))[-1]["content"]

    first, before = prompt()
    with EventLog.open(tmp_path / "events.db") as log:
        bench = Bench(tmp_path, log)
        (slower,) = bench.learn(bench.verdict(first, 0.8, source=kernel("a")))
        assert slower.constraint.statement not in before
    second, after = prompt()
    assert f"- ({slower.constraint.id}) {slower.constraint.statement}" in after
    assert re.search(rf"- State 1, {first}: no gain: slower: 0\.8\d* x the champion's speed", after)
    with EventLog.open(tmp_path / "events.db") as log:
        bench = Bench(tmp_path, log)
        bench.promote(bench.verdict(second, 1.5, source=kernel("b")))
        (won,) = (c for c in bench.book().active if c.severity == "positive")
        bench.learn(bench.verdict(first, 1.2, source=kernel("a"), rival=Bench(tmp_path, log).now()))
    _, last = prompt()
    assert f"- ({won.id}) {won.statement}" in last
    assert f"Champion: {first} (promoted)" in last
    assert slower.constraint.id not in last, "contradicted"
    with EventLog.read(tmp_path / "events.db") as log:
        shapes = Bench(tmp_path, log).target.shapes
    assert not any(name in last for name in shapes.heldout)


def test_a_fault_that_the_benchmark_found_in_the_answers_is_no_regression(bench: Bench) -> None:
    bench.generation("g1")
    fault = Fault("benchmark.stale", "the answer is an older one")
    results = [Result("L2", "passed", ""), Result("L3", "failed", fault.reason, (fault,), details={"shapes": {}})]
    assert bench.learn(bench.append("g1", results, kernel("g1"), 1)) == []


def test_the_record_of_a_champion_is_what_it_was_before_lines(bench: Bench) -> None:
    """Prompts of before are made again byte for byte from it."""
    assert set(Champion.model_fields) == {
        "id", "target", "hardware", "origin", "language", "entry_point", "source", "figures",
    }  # fmt: skip
