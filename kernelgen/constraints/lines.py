"""A line of `constraints.jsonl` and the record it holds, either way.

A line is one JSON object: a constraint, or with `retracts` a retraction. A line without an id is named after its
content (`c_` or `r_` and 12 hex digits), so the same content always has the same name. What cannot be read raises
ConstraintError with a sentence that says what is wrong and the mend; the caller adds the place. A written line has the
record's fields in their order, without those at their default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from kernelgen.config import Frozen
from kernelgen.constraints import rules
from kernelgen.errors import ConstraintError, nearest
from kernelgen.ids import digest_text
from kernelgen.records import Constraint, Evidence, Retraction, Scope, to_text

Record = Constraint | Retraction
RETRACTION_KEY = "retracts"
DERIVED_HEX_DIGITS = 12
UNNAMED = "unnamed"
"""Stands for the id while the content is digested."""

LONGEST_SHOWN = 80
"""Characters of a wrong value that a sentence shows."""

_PARTS: Mapping[str, type[Frozen]] = MappingProxyType({"scope": Scope, "evidence": Evidence})


def line_text(record: Record) -> str:
    """The line that holds a record, without a line end."""
    return json.dumps(record.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


def read_line(text: str) -> Record:
    """The record of a line; ConstraintError with what is wrong and the mend."""
    try:
        # the common case, in one pass; what fails is read again to say why
        record: Record = Constraint.model_validate_json(text, strict=True)
    except ValidationError:
        record = _read_carefully(text)
    _check_time(record.time)
    if isinstance(record, Constraint) and record.rule is not None:
        rules.parse(record.rule)
    return record


def _read_carefully(text: str) -> Record:
    try:
        data = from_json(text)
    except ValueError as error:
        raise ConstraintError(f"this is not JSON ({error}); a line is one JSON object in double quotes") from None
    if not isinstance(data, dict):
        raise ConstraintError('a line is one JSON object, as in {"severity": "soft", "statement": "…"}')
    kind = Retraction if RETRACTION_KEY in data else Constraint
    named = data if "id" in data else {"id": UNNAMED, **data}
    try:
        record = kind.model_validate_json(json.dumps(named), strict=True)
    except ValidationError as error:
        # a misspelt name explains the field that is missing, so it is told first
        complaints = sorted(error.errors(), key=lambda complaint: complaint["type"] != "extra_forbidden")
        raise ConstraintError(_sentence(kind, complaints[0])) from None
    return record if "id" in data else _named_after_content(record)


def _named_after_content(record: Record) -> Record:
    prefix = "r" if isinstance(record, Retraction) else "c"
    digest = digest_text(to_text(record)).partition(":")[2]
    return record.model_copy(update={"id": f"{prefix}_{digest[:DERIVED_HEX_DIGITS]}"})


def _check_time(time: str) -> None:
    if not time:
        return
    try:
        datetime.fromisoformat(time)
    except ValueError:
        raise ConstraintError(f"the time '{time}' is not ISO 8601, as in 2026-11-30T18:14:20Z") from None


def _sentence(kind: type[Frozen], error: ErrorDetails) -> str:
    """A complaint of pydantic's as a sentence with the field and the mend."""
    names = tuple(part for part in error["loc"] if isinstance(part, str))
    field, given = ".".join(names), error["input"]
    match error["type"]:
        case "extra_forbidden":
            owner = kind if len(names) == 1 else _PARTS[names[0]]
            return f"there is no field '{field}'{nearest(names[-1], owner.model_fields)}"
        case "missing":
            return f"the field '{field}' is missing"
        case "literal_error":
            return f"'{field}' is {_shown(given)}; it must be {error['ctx']['expected']}"
        case "string_pattern_mismatch":
            return f"'{field}' is {_shown(given)}; an id is letters, digits, '_', '.' and '-', and begins with a letter"
    return f"'{field}' is {_shown(given)}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
