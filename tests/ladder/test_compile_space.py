"""A space of configurations is tried by several children at once; one that ends its child costs itself alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from compile_candidates import DOT, GOAL, PRODUCT, add_source, dot_source, subject_of, tuned_source

from kernelgen.ladder.compile.space import prune
from kernelgen.ladder.compile.tried import Config, Tried, key, tried_from
from kernelgen.ladder.server import Server

SPACE = [
    Config("dot_kernel", {"M": 64, "K": 64}, 4, 3),
    Config("dot_kernel", {"M": 64, "K": 64}, 8, 2),
    Config("dot_kernel", {"M": 64, "K": 8}, 4, 3),
    Config("dot_kernel", {"M": 48, "K": 64}, 4, 3),
    Config("dot_kernel", {"M": 128, "K": 128}, 8, 5),
    Config("dot_kernel", {"M": 64, "K": 64}, 3, 3),
]
WHY = ["", "", "compile.dot_shape", "compile.block_shape", "compile.shared_memory", "compile.num_warps"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("compiler") as started:
        yield started


def tried(server: Server, source: str, configs: list[Config], **further: float) -> dict[str, Tried]:
    """What became of each configuration."""
    found = prune(subject_of(source), configs, server=server, workers=2, **further)
    return {str(one.config): one for one in found}


@pytest.mark.parametrize(
    "source", [tuned_source('{"M": 16, "K": 16}'), dot_source()], ids=["tuned", "launched with them"]
)
def test_each_configuration_runs_or_says_why_not(server: Server, source: str) -> None:
    found = tried(server, source, SPACE)
    assert [found[str(config)].check for config in SPACE] == WHY
    assert [found[str(config)].runs for config in SPACE] == [not check for check in WHY]
    first, second = found[str(SPACE[0])], found[str(SPACE[1])]
    assert first.registers > second.registers > 16
    assert first.shared_bytes > second.shared_bytes > 0
    assert "Hardware limit: 232448" in found[str(SPACE[4])].why
    assert "^" in found[str(SPACE[2])].detail


def test_a_configuration_that_does_not_end_costs_itself_alone(server: Server) -> None:
    line = "for step in tl.static_range(STEPS):\n        at = at + tl.sum(at) * step"
    source = add_source(line, launch=", STEPS=1").replace(
        "BLOCK: tl.constexpr", "BLOCK: tl.constexpr, STEPS: tl.constexpr"
    )
    configs = [Config("add_kernel", {"STEPS": steps}) for steps in (1, 100_000, 2)]
    found = tried(server, source, configs, timeout_s=5.0)
    assert [found[str(config)].check for config in configs] == ["", "compile.timeout", ""]


def test_host_code_that_needs_values_is_called_at_the_smoke_shapes(server: Server) -> None:
    source = add_source(host="assert x[0].item() == x[0].item()")
    (found,) = tried(server, source, [Config("add_kernel", {"BLOCK": 512})]).values()
    assert found.runs, found


def test_a_kernel_that_is_not_launched_is_told(server: Server) -> None:
    (found,) = tried(server, add_source(), [Config("other_kernel", {"BLOCK": 512})]).values()
    assert (found.runs, found.check) == (False, "compile.no_launch")


def test_a_search_given_up_leaves_no_child_behind(server: Server) -> None:
    before = len(os.listdir("/proc/self/fd"))
    search = prune(subject_of(dot_source()), SPACE, server=server, workers=2)
    next(search)
    search.close()
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_a_key_holds_for_source_shapes_configuration_compiler_and_card() -> None:
    subject, versions = subject_of(DOT), {"triton": "3.7.1", "arch": "sm_90a"}
    first = key(subject, SPACE[0], versions)
    assert key(subject_of(DOT), Config("dot_kernel", {"M": 64, "K": 64}), dict(versions)) == first
    others = [
        key(subject_of(DOT + "\n"), SPACE[0], versions),
        key(subject, SPACE[1], versions),
        key(subject, SPACE[0], {**versions, "triton": "3.6.0"}),
        key(subject_of(DOT, goal=replace(GOAL, shared_bytes_per_block=1000)), SPACE[0], versions),
        key(subject_of(DOT, goal=replace(GOAL, tune={"n_2": {"N": 2}})), SPACE[0], versions),
    ]
    assert len({first, *others}) == 6


def test_a_result_comes_back_from_its_record() -> None:
    one = Tried(SPACE[0], runs=False, check="compile.other", why=PRODUCT, registers=40, seconds=0.5)
    assert tried_from(asdict(one)) == one
