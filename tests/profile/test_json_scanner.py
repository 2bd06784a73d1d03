"""The piecewise JSON reader: the same values as json's own, wherever the pieces end, and the line of what is broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgen.errors import ProfileError
from kernelgen.profile import jsonscan
from kernelgen.profile.jsonscan import JsonScanner

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=9,
)


def in_pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def scanned(text: str, size: int) -> dict[str, Any]:
    scanner = JsonScanner(in_pieces(text, size), "p.json")
    return {key: list(scanner.items()) if key == "items" else scanner.value() for key in scanner.members()}


@given(st.lists(JSON, max_size=6), JSON, st.sampled_from([None, 1, 3]), st.integers(1, 90))
def test_every_value_comes_out_as_json_reads_it(items: list[Any], other: Any, indent: int | None, size: int) -> None:
    whole = {"before": other, "items": items, "after": other}
    assert scanned(json.dumps(whole, indent=indent), size) == whole


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"a"', '{"a":', '{"a": 1', '{"a": 1,', '{"a" 1}', '{1: 2}', '{"a": nul}', '{"items": 1}',
     '{"items": [', '{"items": [1', '{"items": [1,', '{"items": [1 2]}', '{"a": "open', '{"a": "\\q"}', '{"a": [}'],
)  # fmt: skip
def test_what_is_cut_or_damaged_is_refused_wherever_the_pieces_end(text: str, size: int) -> None:
    with pytest.raises(ProfileError, match=r"^p\.json:1: is no whole JSON from here on \(.+\); the file was cut"):
        scanned(text, size)


@pytest.mark.parametrize("size", [3, 1000])
def test_the_line_is_told_of_what_is_broken_and_of_what_is_not(size: int) -> None:
    text = '{"a": 1,\n"items": [\n1\n,\n\n2\n]}'
    scanner = JsonScanner(in_pieces(text, size), "p.json")
    seen: list[tuple[int, int]] = []
    for key in scanner.members():
        if key == "items":
            seen += [(item, scanner.line) for item in scanner.items()]
        else:
            assert scanner.value() == 1
    assert [item for item, _ in seen] == [1, 2]
    assert [3 <= seen[0][1] <= 6, seen[1][1]] == [True, 6]
    with pytest.raises(ProfileError, match=r"^p\.json:6: "):
        scanned(text.replace("2", '{"x" 3}'), size)


def test_a_string_without_an_end_is_not_read_to_the_end_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonscan, "LONGEST_VALUE_CHARS", 100)
    read = []

    def endless() -> Iterator[str]:
        yield '{"a": "'
        for number in range(1000):
            read.append(number)
            yield "x" * 50

    with pytest.raises(ProfileError, match="Unterminated string"):
        next(JsonScanner(endless(), "p.json").value() for _ in [0])
    assert len(read) < 10


def test_nesting_and_numbers_beyond_what_python_reads_are_refused() -> None:
    for text in ('{"a": ' + "[" * 200_000, '{"a": ' + "1" * 20_000 + "}"):
        with pytest.raises(ProfileError, match="is no whole JSON"):
            scanned(text, 1 << 20)
