"""`kernelgen constraints`: the database every prompt is told from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from kernelgen.catalog import sentence
from kernelgen.config import Policy
from kernelgen.constraints import rules
from kernelgen.constraints.render import render_body
from kernelgen.constraints.seed import architecture_facts
from kernelgen.constraints.select import select
from kernelgen.constraints.store import ConstraintBook, ConstraintFile, reconcile
from kernelgen.door.arguments import Arguments, Grammar, parse, whole_number
from kernelgen.door.console import bold, emit, good, table, warn
from kernelgen.door.regions import choice, hardware_of, region_of
from kernelgen.errors import BadInput, ConstraintError, nearest
from kernelgen.eventlog.store import EventLog
from kernelgen.generation.region import ConstraintRows
from kernelgen.ids import new_id, timestamp, utc_now
from kernelgen.records import Constraint, Retraction, Scope

GRAMMAR = Grammar(
    nouns=("list", "seed", "show", "add", "retract", "select", "proposals", "adopt"),
    default_noun="list",
    keys=("severity", "dsl", "rule", "source"),
    groups=("target", "hardware", "state", "policy"),
    flags=("--all",),
    values=("--why",),
)
STATEMENT_SHOWN = 100
SEVERITIES = ("hard", "soft", "positive")
WORDLESS = ("list", "seed", "select", "proposals")
"""Nouns that take no word beside them."""


def run(argv: Sequence[str]) -> int:
    """Run one of the nouns on the constraint file and the log."""
    arguments = parse(argv, GRAMMAR)
    verb = {
        "list": _list,
        "seed": _seed,
        "show": _show,
        "add": _add,
        "retract": _retract,
        "select": _select,
        "proposals": _proposals,
        "adopt": _adopt,
    }
    if arguments.noun in WORDLESS:
        arguments.no_words()  # before the log, which opening makes where there is none
    file = ConstraintFile(arguments.place("constraints"))
    with EventLog.open(arguments.place("events")) as log:
        rows = ConstraintRows(log)
        verb[str(arguments.noun)](arguments, file, rows)
    return 0


def _seed(arguments: Arguments, file: ConstraintFile, rows: ConstraintRows) -> None:
    hardware, _ = hardware_of(arguments)
    book = reconcile(file, rows)
    known = {constraint.id for constraint in book.all}
    facts = [c for c in architecture_facts(hardware, timestamp(utc_now())) if c.id not in known]
    file.append(facts)
    reconcile(file, rows)
    already = f" ({len(known)} constraints were there)" if known else ""
    emit(
        {"added": [fact.id for fact in facts], "file": str(file.path)},
        f"{good('seeded')} {len(facts)} architecture facts of {hardware.title} into {file.path}{already}",
        as_json=arguments.as_json,
    )


def _list(arguments: Arguments, file: ConstraintFile, rows: ConstraintRows) -> None:
    book = reconcile(file, rows)
    chosen = list(book.all if "--all" in arguments.flags else book.active)
    severity = arguments.keys.get("severity")
    if severity is not None and severity not in SEVERITIES:
        raise BadInput(f"There is no severity '{severity}'{nearest(severity, SEVERITIES)}")
    chosen = [c for c in chosen if severity in (None, c.severity)]
    cells = [
        (c.id, c.severity + (" (retracted)" if book.retraction(c.id) else ""), _where(c.scope), _cut(c.statement))
        for c in chosen
    ]
    text = table(("id", "severity", "scope", "statement"), cells) if cells else "no such constraints"
    emit({"constraints": [_record(c, book) for c in chosen]}, text, as_json=arguments.as_json)


def _show(arguments: Arguments, file: ConstraintFile, rows: ConstraintRows) -> None:
    book = reconcile(file, rows)
    constraint = book.get(arguments.word("a constraint's ID", "kernelgen constraints show h200_waves"))
    retraction = book.retraction(constraint.id)
    lines = [f"{bold(constraint.id)} ({constraint.severity}): {constraint.statement}"]
    facts = {
        "scope": _where(constraint.scope),
        "rule": constraint.rule,
        "source": constraint.source,
        "time": constraint.time,
        "events": ", ".join(constraint.evidence.events),
    }
    lines += [f"  {name}: {value}" for name, value in facts.items() if value]
    lines += [f"  | {line}" for line in constraint.evidence.lines]
    if retraction:
        lines.append(warn(f"  retracted {retraction.time}: {retraction.why}"))
    emit(_record(constraint, book), "\n".join(lines), as_json=arguments.as_json)


def _add(arguments: Arguments, file: ConstraintFile, rows: ConstraintRows) -> None:
    example = 'kernelgen constraints add severity=soft "Avoid more than 16 splits." target=mla_decode_fp8'
    statement = arguments.word("a statement in quotes", example)
    severity = arguments.need("severity", example)
    data: dict[str, Any] = {
        "id": new_id("c"),
        "severity": severity,
        "statement": statement,
        "scope": _scope(arguments).model_dump(),
        "source": arguments.keys.get("source", "added by hand"),
        "time": timestamp(utc_now()),
        "rule": arguments.keys.get("rule"),
    }
    try:
        constraint = Constraint.model_validate(data)
    except ValidationError as error:
        raise ConstraintError(sentence(Constraint, error, "constraint")) from error
    if constraint.rule:
        rules.parse(constraint.rule)
    reconcile(file, rows)
    file.append([constraint])
    book = reconcile(file, rows)
    emit(_record(constraint, book), f"{good('added')} {constraint.id}: {statement}", as_json=arguments.as_json)


def _retract(arguments: Arguments, file: ConstraintFile, rows: ConstraintRows) -> None:
    example = "kernelgen constraints retract h200_waves --why 'fixed in Triton 3.7'"
    name = arguments.word("a constraint's ID", example)
    why = arguments.flags.get("--why", "").strip()
    if not why:
        raise BadInput(f"kernelgen constraints retract needs --why with the reason, as in `{example}`.")
    book = reconcile(file, rows)
    constraint = book.get(name)
    if book.retraction(constraint.id):
        raise BadInput(f"{constraint.id} is retracted already; nothing was changed.")
    file.append([Retraction(id=new_id("r"), retracts=constraint.id, why=why, time=timestamp(utc_now()))])
    book = reconcile(file, rows)
    emit(_record(constraint, book), f"{good('retracted')} {constraint.id}: {why}", as_json=arguments.as_json)


def _select(arguments: Arguments, file: ConstraintFile, rows: ConstraintRows) -> None:
    region = region_of(arguments, "kernelgen constraints select target=mla_decode_fp8 state=1")
    policy = _policy(arguments)
    number = choice(arguments, "state") or "0"
    numbered = whole_number(number)
    approach = region.catalog.approach(-1 if numbered is None else numbered)
    scope = Scope(target=region.target.name, hardware=region.hardware.name, dsl=approach.dsl, state=approach.number)
    book = reconcile(file, rows)
    selection = select(book.active, scope, budget=policy.constraint_tokens, encoding=policy.encoding)
    left = ", ".join(selection.left_out) or "none"
    text = (
        f"{render_body(selection)}\n\n{selection.tokens} of {selection.budget} tokens ({selection.encoding}); "
        f"{selection.considered} hold here, {len(selection.chosen)} entries; left out: {left}"
    )
    emit(selection.model_dump(mode="json"), text, as_json=arguments.as_json)


def _proposals(arguments: Arguments, file: ConstraintFile, rows: ConstraintRows) -> None:
    from kernelgen.judging.proposals import waiting

    found = [one.constraint for one in waiting(rows.log, reconcile(file, rows))]
    cells = [(c.id, c.severity, _where(c.scope), _cut(c.statement)) for c in found]
    text = table(("id", "severity", "scope", "statement"), cells) if cells else "no proposal waits"
    emit({"proposals": [c.model_dump(mode="json") for c in found]}, text, as_json=arguments.as_json)


def _adopt(arguments: Arguments, file: ConstraintFile, rows: ConstraintRows) -> None:
    from kernelgen.judging.learn import adopt
    from kernelgen.judging.proposals import proposal, waiting

    book = reconcile(file, rows)
    if "--all" in arguments.flags:
        arguments.no_words()
        chosen = [one.constraint for one in waiting(rows.log, book)]
    else:
        name = arguments.word("a proposal's ID, or --all", "kernelgen constraints adopt c_0123456789ab")
        chosen = [proposal(rows.log, book, name).constraint]
    for constraint in chosen:
        adopt(constraint, log=rows.log, constraints=file.path)
    lines = [f"{good('adopted')} {constraint.id}: {constraint.statement}" for constraint in chosen]
    emit({"adopted": [c.id for c in chosen]}, "\n".join(lines) or "no proposal waits", as_json=arguments.as_json)


def _policy(arguments: Arguments) -> Policy:
    from kernelgen.door.compose import compose

    return compose([o for o in arguments.overrides if o.startswith("policy")], arguments.config_dirs).config.policy


def _scope(arguments: Arguments) -> Scope:
    from kernelgen.door.compose import catalog

    choices = catalog(arguments.config_dirs)
    for group in ("target", "hardware"):
        name = choice(arguments, group)
        if name is not None:
            choices.locate(group, name)  # a scope that names nothing would never hold
    state = choice(arguments, "state")
    number = None if state is None else whole_number(state)
    data = {
        "target": choice(arguments, "target"),
        "hardware": choice(arguments, "hardware"),
        "dsl": arguments.keys.get("dsl"),
        "state": state if number is None else number,
    }
    try:
        return Scope.model_validate(data)
    except ValidationError as error:
        raise ConstraintError(sentence(Scope, error, "scope")) from error


def _record(constraint: Constraint, book: ConstraintBook) -> dict[str, Any]:
    retraction = book.retraction(constraint.id)
    status = {"status": "retracted", "why": retraction.why} if retraction else {"status": "active"}
    return {**constraint.model_dump(mode="json"), **status}


def _where(scope: Scope) -> str:
    parts = [f"{name}={value}" for name, value in scope.model_dump().items() if value is not None]
    return " ".join(parts) or "everywhere"


def _cut(text: str) -> str:
    return text if len(text) <= STATEMENT_SHOWN else text[: STATEMENT_SHOWN - 1] + "…"
