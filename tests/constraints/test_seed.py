"""Phase 1: architecture facts follow from the hardware's figures."""

from __future__ import annotations

import pytest
from constraint_makers import hardware

from kernelgen.config import ArchitectureFact
from kernelgen.constraints.rules import parse
from kernelgen.constraints.seed import architecture_facts
from kernelgen.constraints.select import select
from kernelgen.constraints.store import ConstraintFile
from kernelgen.errors import ConfigError, ConstraintError
from kernelgen.records import Scope

TIME = "2026-11-30T10:00:00Z"


def by_name(gpu):
    return {fact.id.removeprefix("gpu1_"): fact for fact in architecture_facts(gpu, TIME)}


def test_every_fact_is_a_hard_architecture_constraint_of_that_hardware_with_a_source():
    listed = ArchitectureFact(id="no_fp4", statement="No fp4.", source="PTX ISA", dsl="cuda", rule="dsl == 'cuda'")
    facts = by_name(hardware(facts=(listed,)))
    assert {fact.severity for fact in facts.values()} == {"hard"}
    assert all(fact.architecture and fact.source and fact.time == TIME for fact in facts.values())
    assert facts.pop("no_fp4").scope == Scope(hardware="gpu1", dsl="cuda")
    assert {fact.scope for fact in facts.values()} == {Scope(hardware="gpu1")}


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("shared_bytes_per_block", ["101376 bytes", "99 KiB"]),
        ("threads_per_block", ["1024 threads", "32 warps"]),
        ("registers_per_thread", ["255 registers"]),
        ("registers_per_block", ["at most 65536"]),
        ("full_occupancy", ["64 warps", "32 registers", "64 threads"]),
        ("shared_bytes_residency", ["50176 bytes", "24576"]),
        ("waves", ["100 SMs", "multiple of 100"]),
        ("ridge", ["250 FLOPs a byte in bf16", "500 in fp8", "2.00 TB/s"]),
        ("l2_bytes", ["50 MiB"]),
        ("launch", ["0.5 us"]),
    ],
)
def test_the_statement_has_the_computed_figures(name, figures):
    statement = by_name(hardware())[name].statement
    assert [figure for figure in figures if figure not in statement] == []


def test_hardware_without_fp8_says_nothing_of_it():
    assert "fp8" not in by_name(hardware(fp8_flops_per_s=None, fp8_peak_flops_per_s=None))["ridge"].statement


@pytest.mark.parametrize(
    ("name", "within", "beyond"),
    [
        ("shared_bytes_per_block", {"shared_bytes": 101376}, {"shared_bytes": 101377}),
        ("threads_per_block", {"threads": 1024, "num_warps": 32}, {"num_warps": 64}),
        ("threads_per_block", {"threads": 1024, "num_warps": 32}, {"threads": 1025}),
        ("registers_per_thread", {"registers": 255}, {"registers": 256}),
        ("registers_per_block", {"registers": 128, "threads": 512}, {"registers": 129, "threads": 512}),
    ],
)
def test_the_rule_refuses_what_passes_the_figure(name, within, beyond):
    rule = parse(by_name(hardware())[name].rule)
    assert rule.check(within) is True
    assert rule.check(beyond) is False


def test_seeding_twice_adds_nothing(tmp_path):
    file = ConstraintFile(tmp_path / "constraints.jsonl")
    facts = architecture_facts(hardware(), TIME)
    file.append(facts)
    before = file.path.read_bytes()
    file.append(architecture_facts(hardware(), TIME))
    assert file.path.read_bytes() == before
    assert {c.id for c in architecture_facts(hardware(), "2026-12-01")} == {c.id for c in facts}


def test_all_facts_fit_the_budget_with_room_for_learned_ones():
    selection = select(architecture_facts(hardware(), TIME), Scope(hardware="gpu1"), budget=1200, encoding="o200k_base")
    assert selection.left_out == ()


def test_a_listed_fact_with_a_computed_ones_name_or_a_broken_rule_is_refused():
    taken = ArchitectureFact(id="waves", statement="x", source="y")
    with pytest.raises(ConfigError, match="gpu1: the fact 'waves' is computed"):
        architecture_facts(hardware(facts=(taken,)), TIME)
    broken = ArchitectureFact(id="odd", statement="x", source="y", rule="num_warps <")
    with pytest.raises(ConstraintError, match="hardware gpu1, fact 'odd': The rule"):
        architecture_facts(hardware(facts=(broken,)), TIME)
