"""Numbers of every locale: what tells the decimal mark, and what is no number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgen.errors import ProfileError
from kernelgen.profile.numbers import EITHER, NumberStyle, decimal_mark


@pytest.mark.parametrize(
    ("mantissa", "mark"),
    [("12", None), ("65.77", "."), ("65,77", ","), ("341,204,992", "."), ("27.595.520", ","), ("1,234.5", "."),
     ("1.234,5", ","), ("95,712", EITHER), ("95.712", EITHER), ("0,123", ","), ("1234,567", ","), ("1,23,4", None),
     ("580.159.04", None), ("1,2.3,4", None)],
)  # fmt: skip
def test_a_figure_tells_its_decimal_mark(mantissa: str, mark: str | None) -> None:
    assert decimal_mark(mantissa) == mark


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,234.5", 1234.5), ("-3.5", -3.5), ("1e+09", 1e9), ("27 595 520", 27595520), ("27\u202f595,", None),
     ("1'234.5", 1234.5), ("12 34", None), ("580.159.04", None), ("1,23", None), ("", None), ("1e999", None),
     ("(1, 2, 3)", None), ("No-CC", None), ("٣", None)],
)  # fmt: skip
def test_texts_read_as_numbers_or_as_none(text: str, number: float | None) -> None:
    style = NumberStyle("p.csv")
    style.observe("0.50", 3)
    style.settle()
    assert style.number(text) == number


@given(st.floats(min_value=0, max_value=1e15), st.sampled_from([",.", ".,", " ,", "'."]))
def test_a_number_printed_in_a_locale_is_read_back(value: float, marks: str) -> None:
    printed = f"{value:,.2f}".translate(str.maketrans(",.", marks))
    style = NumberStyle("p.csv")
    style.observe(printed, 3)
    style.settle()
    assert style.number(printed) == float(f"{value:.2f}")


def test_the_refusal_names_both_lines() -> None:
    style = NumberStyle("p.csv")
    style.observe("5.50", 3)
    style.observe("65,77", 9)
    with pytest.raises(ProfileError, match=r"'5\.50' in line 3 and '65,77' in line 9"):
        style.settle()
