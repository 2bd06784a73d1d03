"""Reads `NOUN... key=value... --flag`: the grammar of every command but `generate`, whose keys are Hydra's."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelgen.errors import BadInput, nearest

PLACES = {"events": "events.db", "constraints": "constraints.jsonl", "out": "."}
"""Keys every command takes: where the event log, the constraint file and the candidates live."""

_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Grammar:
    """What a command accepts."""

    nouns: Collection[str] = ()
    """First words that choose what to do; empty when the command has none."""
    default_noun: str | None = None
    """What is meant without one."""
    keys: Collection[str] = ()
    """Keys of its own."""
    groups: Collection[str] = ()
    """Config groups it takes a choice of; keys inside them, as in `hardware.name=x`, are Hydra overrides too."""
    flags: Collection[str] = ()
    """Flags without a value, beside `--json`."""
    values: Collection[str] = ()
    """Flags that take the next word as their value."""
    only: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Nouns that take a key, group or flag, where not every noun does."""


@dataclass
class Arguments:
    """A command line, taken apart."""

    command: str
    noun: str | None = None
    words: list[str] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    overrides: list[str] = field(default_factory=list)
    flags: dict[str, str] = field(default_factory=dict)
    config_dirs: list[Path] = field(default_factory=list)

    @property
    def as_json(self) -> bool:
        """Whether one machine-readable record is wanted."""
        return "--json" in self.flags

    def place(self, name: str) -> Path:
        """One of the three places, absolute."""
        return Path(self.keys.get(name, PLACES[name])).absolute()

    def need(self, key: str, example: str) -> str:
        """A key's value. Raises BadInput with an example when it was not given."""
        if key not in self.keys:
            raise BadInput(f"kernelgen {self.command} needs {key}=, as in `{example}`.")
        return self.keys[key]

    def word(self, what: str, example: str) -> str:
        """The one word beside the noun. Raises BadInput with an example when there is none, or another."""
        if len(self.words) != 1:
            problem = f"needs {what}" if not self.words else f"takes one {what}, not {len(self.words)}"
            raise BadInput(f"kernelgen {self.command} {problem}, as in `{example}`.")
        return self.words[0]

    def no_words(self) -> None:
        """Raises BadInput when words are left that mean nothing here."""
        if self.words:
            raise BadInput(f"kernelgen {self.command} does not know what to do with '{self.words[0]}'; see --help.")


def whole_number(text: str) -> int | None:
    """A number as a person writes one; None for other texts, other scripts' digits and numbers no log holds."""
    return int(text) if _NUMBER.fullmatch(text) else None


def parse(argv: Sequence[str], grammar: Grammar) -> Arguments:
    """Take a command line apart. Raises BadInput for a word, key or flag the command does not take."""
    arguments = Arguments(command=argv[0])
    rest = list(argv[1:])
    if grammar.nouns:
        arguments.noun = _noun(rest, grammar, arguments.command)
        arguments.command = f"{arguments.command} {arguments.noun}"
        grammar = _of_noun(grammar, arguments.noun)
    while rest:
        token = rest.pop(0)
        if token.startswith("-"):
            _flag(token, rest, grammar, arguments)
        elif _is_pair(token, grammar):
            _pair(token, grammar, arguments)
        else:
            arguments.words.append(token)
    return arguments


def _noun(rest: list[str], grammar: Grammar, command: str) -> str:
    if rest and rest[0] in grammar.nouns:
        return rest.pop(0)
    if grammar.default_noun is not None and (not rest or "=" in rest[0] or rest[0].startswith("-")):
        return grammar.default_noun
    if not rest:
        raise BadInput(f"kernelgen {command} needs one of: {', '.join(sorted(grammar.nouns))}; see --help.")
    raise BadInput(f"kernelgen {command} has no '{rest[0]}'{nearest(rest[0], grammar.nouns)}")


def _of_noun(grammar: Grammar, noun: str) -> Grammar:
    """The grammar without what this noun does not take."""

    def taken(words: Collection[str]) -> tuple[str, ...]:
        return tuple(word for word in words if noun in grammar.only.get(word, grammar.nouns))

    return replace(
        grammar,
        keys=taken(grammar.keys),
        groups=taken(grammar.groups),
        flags=taken(grammar.flags),
        values=taken(grammar.values),
    )


def _is_pair(token: str, grammar: Grammar) -> bool:
    """Whether a word is `key=value`; a sentence with an equals sign, and a file so named, are not."""
    key, given, value = token.partition("=")
    if not given or _is_file(token) or any(c.isspace() for c in key):
        return False
    is_known = key in grammar.keys or key in PLACES or _group(key) in grammar.groups
    return is_known or not any(c.isspace() for c in value)


def _group(key: str) -> str:
    return key.lstrip("+~").split(".")[0]


def _is_file(token: str) -> bool:
    try:
        return Path(token).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL in it
        return False


def _flag(token: str, rest: list[str], grammar: Grammar, arguments: Arguments) -> None:
    name, given, value = token.partition("=")
    known: Mapping[str, bool] = {
        **dict.fromkeys(["--json", *grammar.flags], False),
        **dict.fromkeys(["--config-dir", *grammar.values], True),
    }
    if name not in known:
        raise BadInput(f"kernelgen {arguments.command} has no flag {name}{nearest(name, known)}")
    if known[name] and not given:
        if not rest:
            raise BadInput(f"{name} needs a value after it.")
        value = rest.pop(0)
    if name == "--config-dir":
        arguments.config_dirs.append(Path(value))
    else:
        arguments.flags[name] = value


def _pair(token: str, grammar: Grammar, arguments: Arguments) -> None:
    key, _, value = token.partition("=")
    if _group(key) in grammar.groups:
        arguments.overrides.append(token)
    elif key in grammar.keys or key in PLACES:
        arguments.keys[key] = value
    else:
        known = [*grammar.keys, *grammar.groups, *PLACES]
        raise BadInput(f"kernelgen {arguments.command} has no key '{key}'{nearest(key, known)}")
