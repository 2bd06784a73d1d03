"""The config groups as files: which choices there are, and each as its typed noun.

Folders are searched as Hydra searches them when it composes; a choice that stands in two folders is refused, since one
of them would be ignored in silence. A target may be asked for by an alias. This reads single choices fast and without
Hydra, for lists and for what is only known at run time (`target=auto`, `state=auto`); pydantic only to type one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kernelgen.errors import ConfigError, nearest

if TYPE_CHECKING:
    from pydantic import ValidationError

    from kernelgen.config import Approach, Frozen, Hardware, Target

AUTO = "auto"
Noun = TypeVar("Noun", bound="Frozen")


def shipped_conf() -> Path:
    """The folder of shipped configs: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parent
    given = os.environ.get("KERNELGEN_CONF")
    for folder in (Path(given) if given else package / "conf", package / "conf", package.parent / "conf"):
        if (folder / "config.yaml").is_file():
            return folder
    raise ConfigError(
        "The shipped configs are missing: no conf/config.yaml in or beside the package; install it again."
    )


@dataclass(frozen=True)
class Located:
    """A config file and the folder its relative paths start from."""

    path: Path

    @property
    def folder(self) -> Path:
        """Where `module: file.py` and the like are found."""
        return self.path.parent


class Catalog:
    """All choices of all groups in a list of config folders."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders

    def names(self, group: str) -> list[str]:
        """The choices of a group, `auto` aside, sorted."""
        found = {path.stem for folder in self.folders for path in (folder / group).glob("*.yaml")}
        return sorted(found - {AUTO})

    def locate(self, group: str, name: str) -> Located:
        """The file of one choice; a target has other names too.

        Raises ConfigError with the nearest name, or when two folders have the choice.
        """
        paths = self._paths(group, name)
        if not paths and group == "target":
            paths = self._paths(group, self.target_named(name))
        if not paths:
            raise ConfigError(f"There is no {group} '{name}'{nearest(name, self.names(group))}")
        if len(paths) > 1:
            raise ConfigError(f"{group} '{name}' stands in {paths[0]} and in {paths[1]}; rename yours.")
        return Located(paths[0])

    def target_named(self, name: str) -> str:
        """The target's own name, for a name or an alias of it; an unknown name as it is.

        Raises ConfigError where two targets have the alias.
        """
        if name == AUTO or self._paths("target", name):
            return name
        named = [target for target in self.names("target") if name in self._aliases(target)]
        if len(named) > 1:
            raise ConfigError(f"'{name}' is another name of {named[0]} and of {named[1]}; say which target you mean.")
        return named[0] if named else name

    def _aliases(self, target: str) -> list[str]:
        return [str(alias) for alias in plain_yaml(self.locate("target", target).path).get("aliases") or []]

    def _paths(self, group: str, name: str) -> list[Path]:
        return [path for folder in self.folders if _is_file(path := folder / group / f"{name}.yaml")]

    def target(self, name: str) -> tuple[Target, Located]:
        """A target and where its yaml lies."""
        from kernelgen.config import Target

        located = self.locate("target", name)
        return validated(Target, read_yaml(located.path), str(located.path)), located

    def hardware(self, name: str) -> Hardware:
        """A hardware."""
        from kernelgen.config import Hardware

        located = self.locate("hardware", name)
        return validated(Hardware, read_yaml(located.path), str(located.path))

    def approach(self, number: int) -> Approach:
        """One of the six states."""
        from kernelgen.config import Approach

        located = self.locate("state", str(number))
        return validated(Approach, read_yaml(located.path), str(located.path))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL in it
        return False


def read_yaml(path: Path) -> dict[str, Any]:
    """A yaml file as plain data, interpolations resolved. Raises ConfigError naming the file and the line."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        data = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except (OSError, ValueError, YAMLError, OmegaConfBaseException, RecursionError) as error:
        raise ConfigError(_unreadable(path, error)) from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold keys and values at its top level.")
    return {str(key): value for key, value in data.items()}


def plain_yaml(path: Path) -> dict[str, Any]:
    """A yaml file as plain data, interpolations left as they stand: for lists, which read every choice and type none.

    Raises ConfigError naming the file and the line.
    """
    import yaml

    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise ConfigError(_unreadable(path, error)) from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold keys and values at its top level.")
    return {str(key): value for key, value in data.items()}


def _unreadable(path: Path, error: Exception) -> str:
    why = "it is nested too deep" if isinstance(error, RecursionError) else " ".join(str(error).split())
    return f"{path} cannot be read as yaml: {why}"


def validated(noun: type[Noun], data: Any, place: str) -> Noun:
    """`data` as the noun. Raises ConfigError: the place, what is wrong there, the nearest right name."""
    from pydantic import ValidationError

    try:
        return noun.model_validate(data)
    except ValidationError as error:
        raise ConfigError(sentence(noun, error, place)) from error


def sentence(noun: type[Frozen], error: ValidationError, place: str) -> str:
    """The first problem of a validation error in one sentence."""
    first = error.errors()[0]
    location = [str(part) for part in first["loc"]]
    where = ".".join([place, *location])
    if first["type"] == "extra_forbidden":
        return f"{where} is not a key{nearest(location[-1], known_keys(noun, location[:-1]))}"
    if first["type"] == "missing":
        return f"{where} is missing: add it."
    given = repr(first["input"])
    return f"{where}: {first['msg']}, got {given if len(given) <= 80 else given[:77] + '...'}."


def known_keys(noun: type[Frozen], location: list[str]) -> list[str]:
    """The keys a noun takes at a location inside it; empty where any key goes."""
    current: type[Frozen] | None = noun
    for part in location:
        field = current.model_fields.get(part) if current else None
        current = _noun_in(field.annotation) if field else current
    return list(current.model_fields) if current else []


def _noun_in(annotation: Any) -> type[Frozen] | None:
    from kernelgen.config import Frozen

    if isinstance(annotation, type) and issubclass(annotation, Frozen):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _noun_in(inner)
        if found is not None:
            return found
    return None
