"""What a real compiler's refusal teaches: a rule on the cause, which refuses a fresh candidate before it compiles."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from kernelgen.constraints.distil import Judged, Lesson, lessons, widened
from kernelgen.constraints.facts import facts_before_compiling
from kernelgen.constraints.rules import parse
from kernelgen.judging.rules_check import check_rules, hard_rule_findings
from kernelgen.ladder.compile import words
from kernelgen.records import Constraint, Finding, LevelResult, Scope
from tests.constraints.faulty_kernels import DTYPES, FAULTS, product, tuned
from tests.factories import hardware

pytest.importorskip("triton")
pytest.importorskip("torch")

COMPILE = """
import json, sys
from kernelgen.ladder import offline
log = offline.install(90)
import linecache
import torch
told = {}
for name, source in json.load(sys.stdin).items():
    file = f"{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = {}
    log.failures.clear()
    a = torch.empty(4096, 4096, dtype=torch.bfloat16, device="meta")
    try:
        exec(compile(source, file, "exec"), space)
        space["entry"](a, a)
        told[name] = None
    except Exception as error:
        build = log.failures[0]
        told[name] = {"said": build.error, "kwargs": build.kwargs, "warps": build.num_warps, "stages": build.num_stages}
print(json.dumps(told))
"""
TRITON = {"compiler": "triton", "compiler_version": "3.7.1"}


@pytest.fixture(scope="module")
def refused() -> dict[str, Any]:
    """What the compiler said of every source of `FAULTS`, None where it compiled."""
    sources = {f"{name}_{kind}": getattr(fault, kind) for name, fault in FAULTS.items() for kind in ("first", "fresh")}
    sources |= {f"{name}_honest_{i}": s for name, fault in FAULTS.items() for i, s in enumerate(fault.honest)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def finding(told: dict[str, Any]) -> Finding:
    """As L1 makes it of a compiler's words."""
    check, facts = words.classify(told["said"], told["kwargs"])
    options = {"num_warps": told["warps"], "num_stages": told["stages"]}
    known = {name: value for name, value in options.items() if value is not None}
    return Finding(check=check, reason="it cannot run", detail=told["said"], facts={**known, **facts})


def failed(*findings: Finding, level: str = "L1", **environment: str) -> LevelResult:
    """A level that failed with these findings."""
    return LevelResult.model_validate(
        {
            "level": level,
            "outcome": "failed",
            "reason": findings[0].reason,
            "findings": findings,
            "environment": {**TRITON, **environment} if level == "L1" else environment,
        }
    )


def judged(source: str | None, target: str = "gemm") -> Judged:
    facts = [] if source is None else facts_before_compiling(source, dtypes=DTYPES)
    return Judged(target, hardware(), "triton", facts)


def learned(result: LevelResult, source: str | None = None, target: str = "gemm") -> list[Lesson]:
    return lessons(result, judged(source, target))


def constraint(lesson: Lesson) -> Constraint:
    return lesson.constraint(lesson.name, "2026-11-30T00:00:00Z", ("e1",), lesson.rule)


def breaks(source: str, lesson: Lesson) -> bool:
    """Whether L0 refuses a source for a lesson."""
    return bool(hard_rule_findings(source, {}, "triton", "sm_90a", [constraint(lesson)], dtypes=DTYPES))


def shared_memory(**facts: int) -> Finding:
    given = {"shared_bytes": 294912, "num_warps": 8, "num_stages": 3, **facts}
    return Finding(check="compile.shared_memory", reason="294912 bytes of 232448", facts=given)


@pytest.mark.parametrize("name", FAULTS)
def test_a_refusal_yields_a_rule_that_refuses_a_fresh_candidate_before_it_is_compiled(
    refused: dict[str, Any], name: str
) -> None:
    fault = FAULTS[name]
    assert refused[f"{name}_first"] is not None, "the compiler refuses the first"
    assert refused[f"{name}_fresh"] is not None, "the compiler refuses the fresh one too"
    found = finding(refused[f"{name}_first"])
    assert found.check == f"compile.{name}"
    (lesson,) = learned(failed(found), fault.first)
    assert lesson.severity == "hard"
    assert breaks(fault.first, lesson), lesson.rule
    assert breaks(fault.fresh, lesson), lesson.rule
    for index, honest in enumerate(fault.honest):
        assert refused[f"{name}_honest_{index}"] is None, "the compiler takes the honest one"
        assert not breaks(honest, lesson), lesson.rule


@pytest.mark.parametrize("name", FAULTS)
def test_the_same_cause_in_other_words_is_one_lesson_with_the_decisive_lines(
    refused: dict[str, Any], name: str
) -> None:
    fault, results = FAULTS[name], [failed(finding(refused[f"{name}_{kind}"])) for kind in ("first", "fresh")]
    (first,), (fresh,) = (learned(r, s) for r, s in zip(results, (fault.first, fault.fresh), strict=True))
    assert first.fingerprint == fresh.fingerprint
    assert first.lines[1:] == tuple(line for line in refused[f"{name}_first"]["said"].splitlines() if line.strip())


def test_only_the_architectures_limits_hold_beyond_target_dsl_and_compiler(refused: dict[str, Any]) -> None:
    scopes = {}
    for name, fault in FAULTS.items():
        (lesson,) = learned(failed(finding(refused[f"{name}_first"])), fault.first)
        scopes[name] = lesson.scope
    everywhere = Scope(hardware="h200")
    assert {name for name, scope in scopes.items() if scope == everywhere} == {"shared_memory", "threads"}
    here = Scope(target="gemm", hardware="h200", dsl="triton", compiler="triton", compiler_version="3.7.1")
    assert all(scope in (everywhere, here) for scope in scopes.values())


def test_a_compilers_word_is_another_lesson_for_another_version_or_target() -> None:
    found = Finding(check="compile.num_warps", reason="no power of two", facts={"num_warps": 3})
    (this,) = learned(failed(found))
    (older,) = learned(failed(found, compiler_version="3.6.0"))
    (elsewhere,) = learned(failed(found), target="other")
    assert len({this.fingerprint, older.fingerprint, elsewhere.fingerprint}) == 3
    assert older.scope.compiler_version == "3.6.0"


def test_without_a_source_shared_memory_refuses_the_configuration_and_larger_ones_alone() -> None:
    (lesson,) = learned(failed(shared_memory(**{"block.M": 128, "block.N": 256})))
    assert lesson.rule is not None
    rule = parse(lesson.rule)
    for m, n, stages, holds in ((128, 256, 3, False), (256, 256, 4, False), (64, 256, 3, True), (128, 256, 2, True)):
        assert rule.check({"blocks": {"M": m, "N": n}, "num_stages": stages}) is holds
    assert lesson.scope.target == "gemm"


def test_a_further_failure_widens_a_rule_that_did_not_refuse_it_and_leaves_one_that_did() -> None:
    (first,) = learned(failed(shared_memory(**{"block.M": 128, "block.N": 256})))
    (larger,) = learned(failed(shared_memory(**{"block.M": 256, "block.N": 256})))
    (smaller,) = learned(failed(shared_memory(**{"block.M": 64, "block.N": 256})))
    assert first.fingerprint == larger.fingerprint == smaller.fingerprint
    assert widened(first.rule, larger) is None
    both = widened(first.rule, smaller)
    assert both is not None
    assert parse(both).check({"blocks": {"M": 64, "N": 256}, "num_stages": 3}) is False
    assert parse(both).check({"blocks": {"M": 128, "N": 256}, "num_stages": 3}) is False
    assert parse(both).check({"blocks": {"M": 32, "N": 256}, "num_stages": 3}) is True


def test_text_alone_does_not_make_another_cause() -> None:
    said = [
        "error: cannot place 'alpha_1' (0x7f12) of /tmp/a/k.py, 17 of 4",
        "error: cannot place 'beta' (0x99) of /home/u/b.py, 3 of 12",
        "error: cannot fold 'beta' (0x99) of /home/u/b.py, 3 of 12",
    ]
    prints = [
        learned(failed(Finding(check="compile.other", reason="it cannot run", detail=line)))[0].fingerprint
        for line in said
    ]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize("outcome", ["suspect", "inconclusive", "passed"])
def test_what_is_not_failed_teaches_nothing(outcome: str) -> None:
    findings = (shared_memory(),) if outcome == "suspect" else ()
    result = LevelResult.model_validate({"level": "L1", "outcome": outcome, "reason": "so it is", "findings": findings})
    assert learned(result) == []


def test_rules_that_stand_and_headers_teach_nothing() -> None:
    found = [Finding(check=check, reason="so it is") for check in ("rule.c_1", "header.target", "policy.syntax")]
    assert learned(failed(*found, level="L0")) == []


def test_a_cheat_becomes_words_to_follow_and_a_rule_where_its_writing_tells_it() -> None:
    source = product().replace("def entry(a, b):\n", "def entry(a, b):\n    began = time.perf_counter()\n")
    found = Finding(check="policy.clock", reason="time.perf_counter measures time", line=20)
    (lesson,) = learned(failed(found, level="L0"), source)
    assert lesson.statement.startswith("Read no clock")
    assert lesson.scope == Scope(target="gemm", hardware="h200", dsl="triton")
    assert breaks(source.replace("perf_counter()", "monotonic()"), lesson)
    assert not breaks(product(), lesson)
    assert not breaks(product().replace("def entry", "# perf_counter\ndef entry"), lesson)


def test_an_l2_failure_is_soft_and_told_by_check_and_kind_of_inputs() -> None:
    def found(check: str, kind: str, shape: str = "t17 (T=17)") -> str:
        # as kernelgen.ladder.correctness words the place of a fault
        fault = Finding(check=check, reason=f"shape {shape}, {kind} inputs: 3 of 9 elements are wrong")
        (lesson,) = learned(failed(fault, level="L2"))
        assert lesson.severity == "soft"
        assert lesson.rule is None
        assert f"with {kind} inputs before" in lesson.statement
        return lesson.fingerprint

    ragged = found("correctness.values", "ragged")
    assert ragged == found("correctness.values", "ragged", "t33 (T=33, H=64)")
    assert ragged != found("correctness.values", "plain")
    assert ragged != found("correctness.structure", "ragged")


CONFIG = "triton.Config({{'BLOCK_M': {}, 'BLOCK_N': 256, 'BLOCK_K': {}}}, num_warps=8, num_stages=4)"


def test_one_of_several_configurations_is_pruned_and_only_when_none_is_left_the_candidate_fails() -> None:
    (lesson,) = learned(failed(shared_memory(num_stages=4)), FAULTS["shared_memory"].first)
    small, large, larger = CONFIG.format(128, 64), CONFIG.format(128, 128), CONFIG.format(256, 128)
    some = check_rules(facts_before_compiling(tuned(f"{small}, {large}"), dtypes=DTYPES), [constraint(lesson)])
    assert some.broken == ()
    assert len(some.pruned) == 1
    assert "BLOCK_K=128" in some.pruned[0]
    none = check_rules(facts_before_compiling(tuned(f"{large}, {larger}"), dtypes=DTYPES), [constraint(lesson)])
    assert [fault.check for fault in none.broken] == [f"rule.{lesson.name}"]
    assert "BLOCK_M=128" in none.broken[0].reason


def test_a_name_that_a_module_lacks_is_refused_there_alone() -> None:
    source = "import triton.language as tl\n\ndef k():\n    return tl.math.sum(x)\n"
    found = Finding(
        check="compile.unknown_name", reason="no 'sum'", facts={"name": "sum", "owner": "triton.language.math"}
    )
    (lesson,) = learned(failed(found), source)
    assert lesson.rule is not None
    rule = parse(lesson.rule)
    assert rule.check({"source": source, "dsl": "triton"}) is False
    assert rule.check({"source": source.replace("tl.math.sum", "tl.sum"), "dsl": "triton"}) is True
    (of_a_value,) = learned(failed(Finding(check="compile.unknown_name", reason="no", facts={"name": "sum"})), source)
    assert of_a_value.rule is None


@pytest.mark.parametrize("check", ["compile.timeout", "process.hung", "process.out_of_memory"])
def test_a_limit_of_this_machine_and_policy_teaches_nothing(check: str) -> None:
    assert learned(failed(Finding(check=check, reason="did not compile within 12 s"))) == []


def test_an_assemblers_word_is_its_error_and_no_path_of_this_machine() -> None:
    detail = (
        "ptxas fatal   : Unexpected modifier '.L2::evict_last' in /tmp/q/tmp0z.ptx, line 40\n"
        "Repro command: /opt/x/bin/ptxas -lineinfo /tmp/q/tmp0z.ptx -o /tmp/q/tmp0z.ptx.o\n"
    )
    (lesson,) = learned(failed(Finding(check="compile.other", reason="ptxas refuses it", detail=detail)))
    assert "Unexpected modifier" in lesson.statement
    assert "/tmp" not in lesson.statement
    assert "Repro" not in lesson.statement
