"""State 0 on champions of every form, a user's own among them."""

from __future__ import annotations

import ast

import pytest

from kernelgen.errors import NoPlay
from kernelgen.playbook import answer
from kernelgen.playbook.library import plays
from tests.playbook.prompts import TARGETS, autotune_of, block, champion_source, module_of, prompt

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
PLAIN = (
    HEAD
    + """@triton.jit
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


def moe_dispatch_384expert(x):
    y = torch.empty_like(x)
    n = x.numel()
    scale_kernel[(triton.cdiv(n, 1024),)](x, y, n, 2.0, BLOCK=1024, num_warps=8,
                                          num_stages=2)
    return y
"""
)
INLINE = (
    HEAD
    + """@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}, num_warps=4), triton.Config({"BLOCK": 512}, num_warps=8, num_stages=2)],
    key=["n"],
)
@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def moe_dispatch_384expert(x):
    y = torch.empty_like(x)
    scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y
"""
)
ATOMIC = PLAIN.replace("tl.store(y_ptr + i, tl.load", "tl.atomic_add(y_ptr + i, tl.load")
IN_PLACE = PLAIN.replace("tl.store(y_ptr + i", "tl.store(x_ptr + i")


def proposal(source: str, **changes: object) -> tuple[str, dict[str, list[dict[str, object]]]]:
    reply = answer(prompt(0, source=source, **changes))
    compile(module_of(reply), "candidate", "exec")
    return block(reply, "KERNEL", "python"), autotune_of(reply)


def test_a_table_is_taken_out_and_the_algorithm_stays() -> None:
    for target in TARGETS:
        source = champion_source(target)
        reply = answer(prompt(0, target))
        kept = [node for node in ast.parse(source).body if "AUTOTUNE_CONFIGS = " not in ast.unparse(node)]
        assert ast.dump(ast.Module(kept, [])) == ast.dump(
            ast.Module(ast.parse(block(reply, "KERNEL", "python")).body, [])
        )


def test_a_plain_launch_gets_an_autotuner_and_loses_the_options_it_passed() -> None:
    source, table = proposal(PLAIN)
    assert '@triton.autotune(configs=AUTOTUNE_CONFIGS["scale_kernel"], key=["n"])\n@triton.jit' in source
    launch = source.partition("scale_kernel[(")[2]
    assert "num_warps" not in launch
    assert "num_stages" not in launch
    assert "BLOCK=1024" in launch
    assert table["scale_kernel"][0] == {"kwargs": {}, "num_warps": 8, "num_stages": 2}
    assert 8 <= len(table["scale_kernel"]) <= 16


def test_an_inline_list_moves_to_the_table_and_tiles_vary() -> None:
    source, table = proposal(INLINE)
    assert 'configs=AUTOTUNE_CONFIGS["scale_kernel"],' in source
    assert "triton.Config" not in source
    blocks = {row["kwargs"]["BLOCK"] for row in table["scale_kernel"]}  # type: ignore[index]
    assert {256, 512} < blocks
    assert all(size & (size - 1) == 0 for size in blocks)


def test_a_tile_the_grid_does_not_ask_for_keeps_its_value() -> None:
    _, table = proposal(INLINE.replace('meta["BLOCK"]', "256"))
    assert {row["kwargs"]["BLOCK"] for row in table["scale_kernel"]} == {256, 512}  # type: ignore[index]


@pytest.mark.parametrize("source", [ATOMIC, IN_PLACE, PLAIN.replace("(x, y, n", "(x, x.view(-1), n")])
def test_a_kernel_that_may_not_run_twice_is_not_autotuned(source: str) -> None:
    with pytest.raises(NoPlay, match="may not be autotuned"):
        proposal(source)


def test_atomics_with_a_reset_are_autotuned_and_without_keep_their_one_configuration() -> None:
    spread = next(play for play in plays(TARGETS[0]) if play.name == "spread_rows")
    _, table = proposal(spread.source)
    assert len(table["gate_kernel"]) > len(spread.configs["gate_kernel"])
    _, table = proposal(spread.source.replace(', reset_to_zero=["counts_ptr"]', ""))
    assert table["gate_kernel"] == [config.model_dump() for config in spread.configs["gate_kernel"]]


def test_what_was_tried_is_not_proposed_again_until_nothing_is_left() -> None:
    attempts: list[tuple[int, str, object]] = []
    seen: list[object] = []
    while True:
        try:
            _, table = proposal(INLINE, attempts=attempts)
        except NoPlay as refusal:
            assert "was tried" in str(refusal)  # noqa: PT017 - the end of the search is what is tested
            break
        assert not [row for row in table["scale_kernel"] if row in seen]
        seen += table["scale_kernel"]
        attempts.append((0, "slower", table))
    assert len(seen) > 20


def test_a_promoted_candidates_file_is_read_without_what_kernelgen_wrote() -> None:
    from kernelgen import markers

    part, table = proposal(INLINE)
    whole = module_of(answer(prompt(0, source=INLINE))).replace(part, "")
    file = whole + markers.begin("python") + part + markers.end("python") + "def test_correctness(device): ...\n"
    again, further = proposal(file)
    assert again == part
    assert further["scale_kernel"] == table["scale_kernel"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(:\n", "not Python"),
        ("def moe_dispatch_384expert(x): return x\n", "launches no @triton.jit kernel"),
        (INLINE.replace("configs=[", "configs=AUTOTUNE_CONFIGS['s'] or ["), "may not be autotuned"),
    ],
)
def test_a_champion_that_cannot_be_tuned_is_refused_with_the_reason(source: str, said: str) -> None:
    with pytest.raises(NoPlay, match=said):
        proposal(source)


def test_a_cuda_champion_is_refused() -> None:
    with pytest.raises(NoPlay, match="is cuda, not Triton"):
        answer(prompt(0, language="cuda"))


def test_the_real_prompt_is_read_as_the_hand_written_one() -> None:
    from kernelgen.prompt import assemble, reply
    from tests import factories

    for state in (0, 1):
        ask = factories.ask(
            approach=factories.approach(state),
            champion=factories.champion(source=champion_source(TARGETS[0])),
            position=factories.position(state=state, attempts=(), attempts_total=0),
        )
        messages = assemble.messages(ask, factories.program())
        parsed = reply.parse(answer("\n\n".join(message["content"] for message in messages)), ask)
        assert parsed.autotune
        assert parsed.overrides == ()
