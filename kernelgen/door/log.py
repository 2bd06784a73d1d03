"""`kernelgen log`: list, show, export and verify the event log; accept one that was restored by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelgen.door.arguments import Arguments, Grammar, parse, whole_number
from kernelgen.door.console import bad, bold, emit, good, table
from kernelgen.errors import BadInput, nearest
from kernelgen.eventlog.adopt import adopt
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.eventlog.verify import Verification
from kernelgen.events import EVENT_KINDS, VerdictReached, stored_texts

GRAMMAR = Grammar(
    nouns=("list", "show", "export", "verify", "adopt"),
    default_noun="list",
    keys=("kind", "target", "hardware", "state", "limit", "to"),
    flags=("--texts",),
    only={
        **dict.fromkeys(("kind", "target", "hardware", "state"), ("list", "export")),
        "limit": ("list",),
        "to": ("export",),
        "--texts": ("export",),
    },
)
DEFAULT_LIMIT = 20


def run(argv: Sequence[str]) -> int:
    """Run one of the nouns; `verify` ends with 1 when it finds a problem."""
    arguments = parse(argv, GRAMMAR)
    if arguments.noun == "adopt":
        return _adopt(arguments)
    verbs = {"list": _list, "show": _show, "export": _export, "verify": _verify}
    with EventLog.read(arguments.place("events")) as log:
        return verbs[str(arguments.noun)](arguments, log)


def _rows(arguments: Arguments, log: EventLog, *, newest_first: bool, limit: int | None = None) -> Iterator[Row]:
    keys = arguments.keys
    kind = keys.get("kind")
    if kind is not None and kind not in EVENT_KINDS:
        raise BadInput(f"There is no event kind '{kind}'{nearest(kind, EVENT_KINDS)}")
    return log.rows(
        kinds=None if kind is None else (kind,),
        target=keys.get("target"),
        hardware=keys.get("hardware"),
        state=_number(keys, "state"),
        newest_first=newest_first,
        limit=limit,
    )


def _number(keys: Mapping[str, str], key: str) -> int | None:
    value = keys.get(key)
    number = None if value is None else whole_number(value)
    if value is not None and number is None:
        raise BadInput(f"{key}={' '.join(value.split())} is not a number; write {key}=1.")
    return number


def _list(arguments: Arguments, log: EventLog) -> int:
    arguments.no_words()
    limit = _number(arguments.keys, "limit")
    rows = list(_rows(arguments, log, newest_first=True, limit=DEFAULT_LIMIT if limit is None else limit))
    cells = [(str(row.seq), row.time[:19], row.event.kind, _subject(row), _headline(row)) for row in rows]
    text = table(("seq", "time (UTC)", "kind", "about", "what"), cells) if cells else "no events"
    emit({"events": [_record(row) for row in rows]}, text, as_json=arguments.as_json)
    return 0


def _record(row: Row) -> dict[str, Any]:
    return {"seq": row.seq, "id": row.id, "time": row.time, "hash": row.hash, **row.event.model_dump(mode="json")}


def _subject(row: Row) -> str:
    event = row.event
    parts = [getattr(event, name, None) for name in ("target", "hardware")]
    state = getattr(event, "state", None)
    return " ".join([*(str(part) for part in parts if part), *([f"state {state}"] if state is not None else [])])


def _headline(row: Row) -> str:
    event = row.event
    if isinstance(event, VerdictReached):
        return f"{event.iteration_id}: {_verdict(event)}"
    for name in ("reason", "hypothesis", "champion_id", "campaign_id", "why", "finish_reason", "shape", "iteration_id"):
        value = getattr(event, name, None)
        if value:
            known = getattr(event, "iteration_id", None)
            text = str(value).split("\n")[0]
            text = text if len(text) <= 80 else text[:79] + "…"
            return text if known in (None, value) else f"{known}: {text}"
    inner = getattr(event, "constraint", None) or getattr(event, "retraction", None)
    return "" if inner is None else str(inner.id)


def _verdict(event: VerdictReached) -> str:
    """A verdict in a few words."""
    refused = event.verdict.refused()
    if refused is not None:
        return f"{refused.outcome} {refused.level}"
    return f"passed {event.highest}" if event.highest else "inconclusive"


def _show(arguments: Arguments, log: EventLog) -> int:
    identity = log.find(arguments.word("an ID", "kernelgen log show g2026"))
    rows = log.iteration(identity) or [log.row(identity)]
    if arguments.as_json:
        shown = [{**_record(row), "texts": {ref: log.text(ref) for ref in stored_texts(row.event)}} for row in rows]
        print(json.dumps({"events": shown}, ensure_ascii=False))
        return 0
    for row in rows:
        print(bold(f"{row.seq} {row.event.kind} {row.id} {row.time}"))
        for name, value in row.event.model_dump(mode="json").items():
            if name != "kind":
                print(f"  {name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
        for name in row.event.stored:
            _print_texts(name, getattr(row.event, name), log)
    return 0


def _print_texts(name: str, value: str | dict[str, str], log: EventLog) -> None:
    named = {name: value} if isinstance(value, str) else {f"{name} {key}": ref for key, ref in value.items()}
    for title, ref in named.items():
        text = log.text(ref)
        if text.startswith("[{") and title == "messages":
            text = "\n\n".join(f"({m['role']})\n{m['content']}" for m in json.loads(text))
        print(bold(f"  --- {title}"))
        print(text)


def _export(arguments: Arguments, log: EventLog) -> int:
    arguments.no_words()
    lines = log.export(_rows(arguments, log, newest_first=False), texts="--texts" in arguments.flags)
    to = arguments.keys.get("to")
    if to is None:
        for line in lines:
            sys.stdout.write(line + "\n")
        return 0
    path, count = Path(to), 0
    try:
        with path.open("x", encoding="utf-8") as file:
            for line in lines:
                file.write(line + "\n")
                count += 1
    except FileExistsError as error:
        raise BadInput(f"{path} exists already; name another file with to=.") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}; name another file with to=.") from error
    emit(
        {"exported": count, "file": str(path)},
        f"{good('exported')} {count} events to {path}",
        as_json=arguments.as_json,
    )
    return 0


def _adopt(arguments: Arguments) -> int:
    """Take the log as it is now for the whole one: its guards are restored and the head follows its tail."""
    arguments.no_words()
    return _tell(adopt(arguments.place("events")), arguments)


def _verify(arguments: Arguments, log: EventLog) -> int:
    arguments.no_words()
    return _tell(log.verify(), arguments)


def _tell(found: Verification, arguments: Arguments) -> int:
    checked = f"{found.events} events and {found.texts} texts checked"
    lines = [f"{bad('problem')}: {problem}" for problem in found.problems]
    lines.append(f"{checked}: {bad('the log does not verify') if found.problems else good('the log is whole')}")
    record = {"events": found.events, "texts": found.texts, "problems": list(found.problems)}
    emit(record, "\n".join(lines), as_json=arguments.as_json)
    return 1 if found.problems else 0
