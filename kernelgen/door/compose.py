"""Composes configs with Hydra and types them; every refusal is one sentence with the place and the nearest right name.

Hydra 1.3 takes only strings as choices of a group, so `state=0` would be refused; `accept_numbered_choices` teaches it
that a number names a choice too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.plugins.sweeper import Sweeper
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from kernelgen.catalog import AUTO, Catalog, known_keys, shipped_conf, validated
from kernelgen.config import (
    Approach,
    AutoState,
    AutoTarget,
    Frozen,
    GenerateConfig,
    Hardware,
    LmConfig,
    Policy,
    ProgramConfig,
    Target,
)
from kernelgen.errors import BadInput, ConfigError, nearest
from kernelgen.generation.workspace import Resolved

HYDRA_VERSION_BASE = "1.3"
CONFIG_NAME = "config"
GROUPS: dict[str, type[Frozen]] = {
    "target": Target,
    "hardware": Hardware,
    "state": Approach,
    "lm": LmConfig,
    "policy": Policy,
    "program": ProgramConfig,
}


def accept_numbered_choices() -> None:
    """Let `state=0` choose `conf/state/0.yaml`, on the command line, in sweeps and in experiment files."""
    original = Override.value
    if getattr(original, "takes_numbers", False):
        return

    def value(self: Override) -> Any:
        found = original(self)
        return str(found) if self.key_or_group == "state" and isinstance(found, int) else found

    value.takes_numbers = True  # type: ignore[attr-defined]
    Override.value = value


accept_numbered_choices()


def search_path_override(folders: Sequence[Path]) -> list[str]:
    """The Hydra override that adds users' config folders. Raises BadInput for one that is not there."""
    if not folders:
        return []
    return ["hydra.searchpath=[" + ",".join(f"'file://{folder}'" for folder in _there(folders)) + "]"]


def catalog(folders: Sequence[Path]) -> Catalog:
    """All choices: the shipped ones and the users'. Raises BadInput for a folder that is not there."""
    return Catalog([shipped_conf(), *_there(folders)])


def _there(folders: Sequence[Path]) -> list[Path]:
    for folder in folders:
        try:
            found = folder.is_dir()
        except (OSError, ValueError):  # too long for a name, or with a NUL in it
            found = False
        if not found:
            raise BadInput(f"--config-dir {' '.join(str(folder).split())} is not a folder.")
    return [folder.absolute() for folder in folders]


def typed_overrides(overrides: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """The overrides as Hydra takes them: a key that the nouns know may be set also where the choice's yaml omits it,
    and a target may be chosen by an alias.
    """
    choices = catalog(folders)
    return [
        f"++{override}" if _is_known_key(override.partition("=")[0]) else _by_own_name(override, choices)
        for override in overrides
    ]


def _by_own_name(override: str, choices: Catalog) -> str:
    """`target=ALIAS` as `target=NAME`; also in a sweep's list. Anything else as it is."""
    key, given, value = override.partition("=")
    if key.lstrip("+") != "target":
        return override
    own = re.sub(r"[A-Za-z]\w*", lambda word: choices.target_named(word.group()), value)
    return f"{key}{given}{own}"


def _is_known_key(key: str) -> bool:
    *parents, last = key.split(".")
    return parents[:1] != [] and parents[0] in GROUPS and last in known_keys(GenerateConfig, parents)


def compose(overrides: Sequence[str], folders: Sequence[Path]) -> Resolved:
    """Compose and type a generation's configs. Raises ConfigError in one sentence."""
    with one_sentence(), initialize_config_dir(config_dir=str(shipped_conf()), version_base=HYDRA_VERSION_BASE):
        composed = hydra_compose(
            CONFIG_NAME, overrides=[*typed_overrides(overrides, folders), *search_path_override(folders)]
        )
    return resolved(composed, overrides, catalog(folders))


def resolved(composed: DictConfig, overrides: Sequence[str], choices: Catalog) -> Resolved:
    """Type a composed config. Raises ConfigError naming the key and the nearest right one."""
    try:
        data = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise ConfigError(f"The config cannot be resolved: {' '.join(str(error).split())}") from error
    assert isinstance(data, dict)
    values = {str(key): value for key, value in data.items() if key not in ("hydra", "experiment")}
    for group, noun in GROUPS.items():
        if isinstance(values.get(group), dict):
            values[group] = validated(_noun(group, noun, values[group]), values[group], group)
    config = validated(GenerateConfig, values, "config")
    return Resolved(config=config, overrides=tuple(overrides), catalog=choices)


def _noun(group: str, noun: type[Frozen], value: dict[str, Any]) -> type[Frozen]:
    if group == "target" and value.get("name") == AUTO:
        return AutoTarget
    if group == "state" and value.get("number") == AUTO:
        return AutoState
    return noun


@contextmanager
def choices_checked(choices: Catalog) -> Iterator[None]:
    """Within a sweep, check a batch by its choices alone.

    Hydra composes every job to check it and once more to run it, which is most of a job's time; a key that is wrong is
    still refused when the first job is composed, before it does anything.
    """

    def check(self: Sweeper, batch: Sequence[Sequence[str]]) -> None:
        for override in {override for overrides in batch for override in overrides}:
            group, _, name = override.partition("=")
            if group in GROUPS:
                choices.locate(group, name.strip("'\""))

    original = Sweeper.validate_batch_is_legal
    Sweeper.validate_batch_is_legal = check
    try:
        yield
    finally:
        Sweeper.validate_batch_is_legal = original


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn what Hydra and OmegaConf raise about configs into a ConfigError of one sentence."""
    try:
        yield
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(explain(error)) from error
    except RecursionError as error:
        raise ConfigError("A config or an override is nested too deep to be read.") from error


def explain(error: BaseException) -> str:
    """What is wrong, where, and the nearest right name."""
    text = _whole_text(error)
    choice = re.search(r"Could not find '(\w+)/([^']+)'", text) or re.search(
        r"In '.*?': Could not find '(\w+)/([^']+)'", text
    )
    if choice:
        options = re.search(r"Available options in '\w+':((?:\n\s+\S+)+)", text)
        names = options.group(1).split() if options else []
        return f"There is no {choice.group(1)} '{choice.group(2)}'{nearest(choice.group(2), names)}"
    key = re.search(r"Could not override '([^']+)'", text) or re.search(
        r"Could not append to config\. .*?'([^']+)'", text
    )
    if key:
        *parents, last = key.group(1).split(".")
        keys = known_keys(GenerateConfig, parents)
        if last in keys:
            return f"{key.group(1)} is already set; write it without '+'."
        return f"{key.group(1)} is not a key{nearest(last, keys)}"
    return f"The overrides cannot be used: {' '.join(text.split())}"


def _whole_text(error: BaseException) -> str:
    parts = [str(error)]
    while error.__cause__ is not None:
        error = error.__cause__
        parts.append(str(error))
    return "\n".join(parts)
