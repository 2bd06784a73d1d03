"""The doors for texts: replies, candidate files, overrides of the command line, whole command lines."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kernelgen import cli
from kernelgen.candidates import TargetBinding, build, read_back, read_header
from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.door.compose import compose
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.generation.briefs import binding
from kernelgen.prompt.reply import parse, write
from kernelgen.records import Reply
from tests import factories
from tests.fuzz.fuzz_bytes import mutated_text
from tests.fuzz.fuzz_property import Door

DIGEST = "sha256:" + "0" * 64
LIBRARY = Catalog([shipped_conf()])
BINDING: TargetBinding = binding(LIBRARY.target(factories.TARGET)[0], LIBRARY.hardware("h200"), shipped_conf())
COMMANDS = sorted(set(cli.COMMANDS) - {"generate", "replay"})
"""Without `generate`, whose overrides have a door of their own, and `replay lm=`, which asks a model."""
NOUNS = ("list", "show", "seed", "add", "retract", "select", "import", "kernels", "export", "verify", "adopt", "check")
KEYS = (
    "target",
    "hardware",
    "state",
    "lm",
    "policy",
    "program",
    "shape",
    "n",
    "severity",
    "dsl",
    "rule",
    "source",
    "kind",
    "limit",
    "kernels",
    "subject",
    "constraints",
    "out",
    "lm.temperature",
    "policy.constraint_tokens",
    "target.tolerance.output.rtol",
    "+target.x",
    "++lm.seed",
    "~lm",
    "hydra.run.dir",
    "experiment",
    "pr",
)
VALUES = (
    "mla_decode_fp8",
    "h200",
    "playbook",
    "auto",
    "0",
    "1",
    "²",
    "٣",
    "9" * 30,
    "9" * 5000,
    "-1",
    "1e999",
    "nan",
    "null",
    "",
    "[]",
    "{a: 1}",
    "${oc.env:HOME}",
    "${hydra:x}",
    "???",
    "'",
    '"',
    "\\",
    "a=b",
    "a,b",
    "choice(1,2)",
    "\x00",
    "\udce9",
    "hard",
    "candidate_generated",
    "num_warps <= 8",
    "no such\nfile",
    "x" * 300,
    "--why",
    ".",
    "[" * 500,
)
FLAGS = (
    "--json",
    "--all",
    "--texts",
    "--source",
    "--why",
    "--why=because",
    "--config-dir",
    "--config-dir=.",
    "--x",
    "-",
    "--",
)


def _nothing(_case: Any, _folder: Path) -> None:
    return None


def _log(_case: Any, folder: Path) -> None:
    """The log that a user has; a command that finds none makes one."""
    EventLog.open(folder / "events.db").close()


def _files_of(reply: Reply, state: int) -> list[str]:
    files = build(
        "g20261130t181420123456_0123456789ab",
        factories.ask(state),
        reply,
        prompt_digest=DIGEST,
        reply_digest=DIGEST,
        binding=BINDING,
    )
    return [file.text for file in files]


def _reply(case: tuple[str, int], _folder: Path) -> None:
    """A reply that is taken becomes files, and what the model wrote is read back from them."""
    text, state = case
    reply = parse(text, factories.ask(state))
    back = read_back(_files_of(reply, state)[0])
    assert (back.hypothesis, back.kernel) == (reply.hypothesis, reply.kernel)


def _candidate(text: str, _folder: Path) -> None:
    read_header(text)
    read_back(text)


def _overrides(case: Sequence[str], _folder: Path) -> None:
    compose(case, [])


def _command(case: Sequence[str], folder: Path) -> None:
    """The whole command line in this process; a refusal is what it told."""
    out, told = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        code = cli.main(list(case))
    assert code in (0, 1, 2), f"exit code {code}"
    if code == 2:
        text = json.loads(out.getvalue())["message"] if "--json" in case else told.getvalue().removesuffix("\n")
        raise BadInput(text)


def _free_text() -> SearchStrategy[str]:
    return st.text(max_size=12).filter(lambda text: "/" not in text)


def _pairs() -> SearchStrategy[str]:
    value = st.one_of(
        st.sampled_from(VALUES), st.sampled_from(VALUES), st.text(max_size=12).filter(lambda text: "/" not in text)
    )
    return st.builds("{}={}".format, st.sampled_from(KEYS), value)


def _command_lines() -> SearchStrategy[list[str]]:
    words = st.lists(st.one_of(_pairs(), st.sampled_from(FLAGS), st.sampled_from(VALUES)), max_size=4)
    noun = st.one_of(st.just([]), st.sampled_from(NOUNS).map(lambda name: [name]))
    return st.builds(
        lambda command, noun, words: [command, *noun, *words],
        st.sampled_from(COMMANDS),
        noun,
        words,
    )


REPLIES = st.sampled_from([(write(factories.reply()), 1), (write(factories.cuda_reply()), 3)]).flatmap(
    lambda pair: st.tuples(mutated_text([pair[0]]), st.just(pair[1]))
)
CANDIDATES = [*_files_of(factories.reply(), 1), *_files_of(factories.cuda_reply(), 3)]

TEXT_DOORS = (
    Door("replies", REPLIES, _nothing, _reply),
    Door("candidate files", mutated_text(CANDIDATES), _nothing, _candidate),
    Door("overrides", st.lists(_pairs(), min_size=1, max_size=3), _nothing, _overrides),
    Door("command lines", _command_lines(), _log, _command),
)
