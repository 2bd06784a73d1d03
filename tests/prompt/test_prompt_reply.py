"""What the reply parser promises: strict about what it needs, lenient about form, and ReplyError for all the rest."""

from __future__ import annotations

import contextlib
import json
import keyword

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgen import markers
from kernelgen.errors import ReplyError
from kernelgen.prompt.reply import MAX_BYTES, parse, read, reask, write
from kernelgen.records import AutotuneConfig, KernelSource, Override, Reply
from tests import factories as sample

ASK = sample.ask()
CODE = f"def {sample.TARGET}(hidden, logits, bias):\n    return ()\n"
HARD, SOFT, POSITIVE = "h200_shared_bytes_per_block", "c_num_warps_16", "c_fused_scan"


def text(*, hypothesis: str = "Because.", code: str = CODE, rest: str = "", info: str = "python") -> str:
    return f"[HYPOTHESIS]\n{hypothesis}\n\n[KERNEL]\nEntry point: {sample.TARGET}\n```{info}\n{code}```\n{rest}"


def reason(reply: str, **options: object) -> str:
    with pytest.raises(ReplyError) as caught:
        parse(reply, options.pop("ask", ASK), **options)  # type: ignore[arg-type]
    return caught.value.reason


# ---- what is read


def test_a_reply_in_the_format_is_read_whole() -> None:
    assert parse(write(sample.reply()), ASK) == sample.reply()
    assert parse(write(sample.cuda_reply()), sample.ask(3)) == sample.cuda_reply()


@pytest.mark.parametrize(
    ("hypothesis", "kernel"),
    [
        ("[HYPOTHESIS]", "[KERNEL]"),
        ("## Hypothesis", "## Kernel"),
        ("**HYPOTHESIS**", "**KERNEL**"),
        ("**Hypothesis:**", "**[kernel]**"),
        ("### [HYPOTHESIS]:", "# KERNEL #"),
        ("__Hypothesis__", "  [Kernel]  "),
    ],
)
def test_headings_are_read_in_many_forms(hypothesis: str, kernel: str) -> None:
    reply = f"Sure, here it is.\n\n{hypothesis}\nBecause.\n\n{kernel}\nSome prose.\n```py\n{CODE}```\nDone!"
    assert parse(reply, ASK).hypothesis == "Because."
    assert parse(reply, ASK).kernel.code == CODE


def test_a_section_may_begin_on_the_line_of_its_heading() -> None:
    reply = text(rest=f'[HONOURED] ["{HARD}"]\n').replace("[HYPOTHESIS]\n", "[HYPOTHESIS] ")
    assert parse(reply, ASK).honoured == (HARD,)
    assert parse(reply, ASK).hypothesis == "Because."


def test_sections_come_in_any_order() -> None:
    head, tail = text().split("[KERNEL]")
    assert parse(f"[KERNEL]{tail}\n{head}", ASK) == parse(text(), ASK)


def test_prose_that_names_a_section_is_no_heading() -> None:
    said = "Because.\nKernel\nkernel: fuse.\n[KERNEL] follows below."
    assert parse(text(hypothesis=said), ASK).hypothesis == said


def test_headings_inside_fences_do_not_count() -> None:
    code = f'"""\n[HYPOTHESIS]\n## Kernel\n"""\n{CODE}'
    assert parse(text(code=code), ASK).kernel.code == code


def test_the_last_fenced_block_of_a_section_wins() -> None:
    reply = text().replace("```python", "```python\ndraft\n```\nBetter:\n```python")
    assert parse(reply, ASK).kernel.code == CODE


def test_the_last_of_two_sections_of_a_name_wins() -> None:
    assert parse(text(hypothesis="First.") + text(hypothesis="Second."), ASK).hypothesis == "Second."


@pytest.mark.parametrize("fence", ["````", "~~~", "~~~~~"])
def test_longer_fences_and_tildes_hold_shorter_fences(fence: str) -> None:
    code = f'"""\n```\nx\n```\n"""\n{CODE}'
    reply = f"[HYPOTHESIS]\nx\n[KERNEL]\n{fence}python\n{code}{fence}\n"
    assert parse(reply, ASK).kernel.code == code


def test_an_indented_fence_loses_only_its_own_indent() -> None:
    body = "".join(f"  {line}\n" for line in CODE.splitlines())
    reply = f"[HYPOTHESIS]\nx\n[KERNEL]\n  ```python\n{body}  ```\n"
    assert parse(reply, ASK).kernel.code == CODE


def test_code_is_byte_exact_and_ends_in_one_line_feed() -> None:
    code = "\n\n    # indented\t\x0c\u2028 é\n" + CODE + "x = 1   \n"
    assert parse(text(code=code + "\n\n"), ASK).kernel.code == code


def test_line_ends_of_windows_are_read() -> None:
    assert parse(text().replace("\n", "\r\n"), ASK) == parse(text(), ASK)


def test_a_missing_entry_point_line_means_the_targets() -> None:
    assert parse(text().replace(f"Entry point: {sample.TARGET}\n", ""), ASK).kernel.entry_point == sample.TARGET


@pytest.mark.parametrize(
    "line", ["**Entry point:** `{}`", "- entry point: {}", "Entry_Point: {}.", "Entry point: `{}`"]
)
def test_the_entry_point_line_may_be_decorated(line: str) -> None:
    reply = text().replace(f"Entry point: {sample.TARGET}", line.format(sample.TARGET))
    assert parse(reply, ASK).kernel.entry_point == sample.TARGET
    assert "must be" in reason(reply.replace(sample.TARGET, "other", 1))


def test_a_fence_without_a_language_takes_the_states() -> None:
    assert parse(text(info=""), ASK).kernel.language == "python"


def test_broken_json_is_mended() -> None:
    rest = "[AUTOTUNE]\n```json\n{'k': [{'kwargs': {'B': 64,}, 'num_warps': 8,}],}\n```\n"
    assert parse(text(rest=rest), ASK).autotune == {"k": (AutotuneConfig(kwargs={"B": 64}, num_warps=8),)}


@pytest.mark.parametrize("empty", ["", "None.", "none", "No overrides.", "```json\n```", "[]", "```\n[]\n```"])
def test_an_optional_section_may_say_nothing(empty: str) -> None:
    assert parse(text(rest=f"[OVERRIDES]\n{empty}\n"), ASK).overrides == ()


def test_a_kernel_without_configurations_is_left_out_of_the_table() -> None:
    assert parse(text(rest='[AUTOTUNE]\n{"k": []}\n'), ASK).autotune == {}


def test_an_id_honoured_twice_counts_once() -> None:
    assert parse(text(rest=f"[HONOURED]\n{json.dumps([HARD, HARD])}\n"), ASK).honoured == (HARD,)


def test_every_merged_id_of_an_entry_may_be_named() -> None:
    merged = sample.selected(ids=("c_new", "c_old"), severity="soft")
    ask = sample.ask(selection=sample.selection(chosen=(merged,)))
    reply = text(rest='[OVERRIDES]\n[{"id": "c_old", "reason": "Not here."}]\n')
    assert parse(reply, ask).overrides == (Override(id="c_old", reason="Not here."),)


# ---- what is refused


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("", "no [HYPOTHESIS]"),
        ("I cannot help with that.", "no [HYPOTHESIS]"),
        (text().replace("[KERNEL]", ""), "no [KERNEL]"),
        (text(hypothesis=" \n "), "no [HYPOTHESIS]"),
        ("[HYPOTHESIS]\nx\n[KERNEL]\nsee above\n", "no source"),
        ("[HYPOTHESIS]\nx\n[KERNEL]\n```python\n   \n```\n", "no source"),
        (text().rstrip("`\n"), "truncated"),
        (text() + "```json\n[", "truncated"),
        (text(code=CODE + "x = '\x00'\n"), "NUL"),
        (text(hypothesis="\ud800"), "Unicode"),
        (text(info="cuda"), "asks for triton, the fence says cuda"),
        (
            text().replace(f"point: {sample.TARGET}", "point: other"),
            "must be moe_dispatch_384expert, the reply says other",
        ),
        (text(code="def other():\n    pass\n"), "does not define the entry point"),
        (text(code=f"if True:\n    def {sample.TARGET}(): pass\n"), "at top level"),
        (text(code="from __future__ import annotations\n" + CODE), "from __future__"),
        (text(code=CODE + markers.end("python")), "marker"),
        (text(code='"""' + markers.begin("python") + '"""\n' + CODE), "marker"),
        (text(code='C = AUTOTUNE_CONFIGS["k"]\n' + CODE), "has no configurations of that name"),
        (text(rest='[HONOURED]\n["c_unknown"]\n'), "no injected constraint has the id 'c_unknown'"),
        (text(rest='[HONOURED]\n["c_left_out"]\n'), "no injected constraint has the id 'c_left_out'"),
        (
            text(rest='[OVERRIDES]\n[{"id": "c_unknown", "reason": "x"}]\n'),
            "no injected constraint has the id 'c_unknown'",
        ),
        (text(rest=f'[OVERRIDES]\n[{{"id": "{HARD}", "reason": "x"}}]\n'), "hard constraint; only soft"),
        (text(rest=f'[OVERRIDES]\n[{{"id": "{POSITIVE}", "reason": "x"}}]\n'), "positive constraint; only soft"),
        (text(rest=f'[OVERRIDES]\n[{{"id": "{SOFT}"}}]\n'), "0.reason"),
        (text(rest=f'[OVERRIDES]\n[{{"id": "{SOFT}", "reason": ""}}]\n'), "0.reason"),
        (text(rest='[HONOURED]\n["\\ud800"]\n'), "[HONOURED]"),
        (text(rest="[HONOURED]\nI kept them all.\n"), "[HONOURED]"),
        (text(rest='[HONOURED]\n{"id": 1}\n'), "[HONOURED]"),
        (text(rest='[AUTOTUNE]\n{"k": [{"kwargs": {"B": NaN}}]}\n'), "[AUTOTUNE]"),
        (text(rest='[AUTOTUNE]\n{"k": [{"kwargs": {"B": 1}, "num_warps": 0}]}\n'), "k.0.num_warps"),
        (text(rest='[AUTOTUNE]\n{"k": [{"BLOCK": 1}]}\n'), "k.0.kwargs"),
        (text(rest='[AUTOTUNE]\n{"my kernel": [{"kwargs": {}}]}\n'), "'my kernel' is not a name"),
        (text(rest='[AUTOTUNE]\n{"k": [{"kwargs": {"a-b": 1}}]}\n'), "'a-b' is not a name"),
        (text(rest=f"[AUTOTUNE]\n{'[' * 100_000}\n"), "[AUTOTUNE]"),
        (text(rest=f"[AUTOTUNE]\n{'1' * 10_000}\n"), "[AUTOTUNE]"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(reply: str, said: str) -> None:
    assert said in reason(reply)


def test_a_reply_that_was_cut_off_is_truncated_even_if_it_reads_whole() -> None:
    assert "truncated" in reason(text(), finish_reason="length")


def test_a_reply_beyond_the_limit_is_refused_by_its_size() -> None:
    assert f"at most {MAX_BYTES} are read" in reason(text(hypothesis="é" * (MAX_BYTES // 2)))


@pytest.mark.parametrize("state", [2, 3])
def test_configs_are_for_triton(state: int) -> None:
    reply = sample.reply() if state == 2 else sample.cuda_reply(autotune=sample.reply().autotune)
    assert "[AUTOTUNE] is for Triton" in reason(write(reply), ask=sample.ask(state))


@pytest.mark.parametrize("gone", ['extern "C"', f"int {sample.TARGET}("])
def test_a_cuda_source_needs_its_launcher(gone: str) -> None:
    kernel = KernelSource(language="cuda", code=sample.CUDA_SOURCE.replace(gone, ""), entry_point=sample.TARGET)
    assert "does not define the launcher" in reason(write(sample.cuda_reply(kernel=kernel)), ask=sample.ask(3))


@pytest.mark.parametrize("code", ["def broken(:\n", "(" * 500 + "\n", "-" * 100_000 + "1\n", 'x = "\\d"\n' + CODE])
def test_source_that_python_cannot_read_is_left_to_the_ladder(code: str) -> None:
    assert parse(text(code=code), ASK).kernel.code == code


def test_the_model_is_told_the_reason() -> None:
    assert "Your reply cannot be used: it has no [KERNEL] section." in reask("it has no [KERNEL] section.")


# ---- any reply, any text

names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name))
prose = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1, max_size=200)
tricky = st.lists(
    st.sampled_from(
        ["[KERNEL]", "## Hypothesis", "**AUTOTUNE**", "```", "````py", "~~~", "  ```", "text", "", " x", "[]"]
    ),
    min_size=1,
    max_size=8,
).map("\n".join)
trimmed = st.one_of(prose, tricky).map(str.strip).filter(bool)
configs = st.builds(
    AutotuneConfig,
    kwargs=st.dictionaries(names, st.one_of(st.integers(), st.booleans(), st.text("abc", max_size=5)), max_size=3),
    num_warps=st.integers(1, 64),
    num_stages=st.integers(1, 9),
)
replies = st.builds(
    Reply,
    hypothesis=trimmed,
    kernel=st.builds(
        KernelSource,
        language=st.just("python"),
        code=st.one_of(prose, tricky).map(lambda body: f"{CODE}{body.rstrip(chr(10))}x\n"),
        entry_point=st.just(sample.TARGET),
    ),
    autotune=st.dictionaries(names, st.lists(configs, min_size=1, max_size=3).map(tuple), max_size=3),
    honoured=st.lists(st.sampled_from([HARD, SOFT, POSITIVE]), unique=True).map(tuple),
    overrides=st.lists(st.builds(Override, id=st.just(SOFT), reason=prose), max_size=2).map(tuple),
)


@given(replies)
@settings(max_examples=300)
def test_what_is_written_is_read_back(reply: Reply) -> None:
    assert parse(write(reply), ASK) == reply


pieces = st.sampled_from(
    [*text(rest='[AUTOTUNE]\n```json\n{"k": [{"kwargs": {"B": 1}}]}\n```\n[HONOURED]\n[]\n').splitlines(keepends=True),
     "```", "~~~\n", "[OVERRIDES]\n", '[{"id": "c", "reason": 1}]\n', "\r\n", "\x00", "\ud800", "{", "[" * 50, "\u2028"]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(st.one_of(pieces, st.text(max_size=5)), max_size=30).map("".join)))
@settings(max_examples=500)
def test_any_text_is_a_reply_or_a_reason(reply: str) -> None:
    for state in (1, 3):
        # any other exception fails the test
        with contextlib.suppress(ReplyError):
            assert parse(reply, sample.ask(state)).kernel.code.endswith("\n")


def test_a_reply_can_be_read_without_its_request() -> None:
    parsed = read(text(rest='[HONOURED]\n["c_unknown"]\n'), language="python", entry_point="kernel")
    assert parsed.honoured == ("c_unknown",)
