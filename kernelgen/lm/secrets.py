"""Keys: where they come from, and how they are kept out of every message.

A key is read from the environment variable the config names, never from the config itself. `redact` is for texts about
to be shown: it hides that key, the value of every environment variable whose name says that it is a secret, the parts
of both that could still be guessed from, and whatever else looks like a credential. `redact_reply` is for what a
model said, which is logged, parsed and written into files: it hides the same values and long parts of them, and nothing
that only looks like a credential, since code may. Neither promises to find an unknown secret that looks like prose.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import quote

from kernelgen.config import LmConfig
from kernelgen.errors import BadInput, ConfigError

HIDDEN: Final = "[redacted]"
PLACEHOLDER_KEY: Final = "none"  # for local servers, which want a header and look at no key
_FRAGMENT = 8  # shortest part of a key that is hidden: what a provider's own masking leaves readable is shorter
_REPLY_FRAGMENT = 16  # in replies, where a part as short as eight may be a name in the code
_SHORTEST_SECRET = 12  # of other variables: a shorter value is a word, and hiding it would spoil texts
_SECRET_VARIABLE = re.compile(r"(?i)(?:^|_)(?:api_?key|key|token|secret|password|passwd|credentials?)(?:$|_)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWABLE_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")  # anything else might be a key put in the wrong place

_CREDENTIALS: Final = (
    re.compile(r"(?i)((?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?)(?:(?:bearer|basic|token)\s+)?[^\s'\",;]+"),
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9+/_.~=-]{8,}"),
    re.compile(r"(?i)((?:x-)?(?:goog-)?\bapi[-_]?key['\"]?\s*[:=]\s*['\"]?)[^\s'\",;&]+"),
    re.compile(r"(?i)([?&;](?:key|token|access_token|auth|sig|signature|secret|password)=)[^\s'\"&;]+"),
    re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/@]+(?=@)"),
    re.compile(r"()\b(?:(?:sk|xai|nvapi|glpat)-|(?:sk|gsk|hf|ghp|gho|github_pat|r8)_|AIza)[A-Za-z0-9_*-]{12,}"),
)


def read_key(config: LmConfig) -> str:
    """The key from the environment, or a placeholder where the config names no variable.

    Raises BadInput when the variable is missing or holds what cannot be a key.
    """
    if config.key_env is None:
        return PLACEHOLDER_KEY
    name = shown_variable(config.key_env)
    key = os.environ.get(config.key_env, "").strip()
    if not key:
        raise BadInput(f"lm={config.name} needs a key: set the environment variable {name}.")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise BadInput(f"The environment variable {name} does not hold a key: it has blanks or characters no key has.")
    return key


def check_no_secret(config: LmConfig) -> None:
    """Refuse a config that holds a credential, without repeating it: configs are logged."""
    if config.key_env is not None and not _VARIABLE.fullmatch(config.key_env):
        raise ConfigError("lm.key_env is not the name of an environment variable: put the key in one, its name here.")
    base = config.api_base or ""
    if any(mark in base for mark in "@?#") or _holds_secret(base, config):
        raise ConfigError(
            "lm.api_base may not hold a user, a query or a key: put the key in an environment variable and name it in "
            "lm.key_env."
        )
    for field in ("name", "model", "price_source"):
        if _holds_secret(getattr(config, field) or "", config):
            raise ConfigError(
                f"lm.{field} holds what looks like a key: put the key in an environment variable and name it in "
                "lm.key_env."
            )


def _holds_secret(text: str, config: LmConfig) -> bool:
    return redact_reply(text, config) != text or any(pattern.search(text) for pattern in _CREDENTIALS)


def redact(text: str, config: LmConfig) -> str:
    """The text with known secrets, their parts, and whatever looks like a credential replaced by `[redacted]`."""
    text = _hide_values(text, config, _FRAGMENT)
    for pattern in _CREDENTIALS:
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text


def redact_reply(text: str, config: LmConfig) -> str:
    """The text with known secrets and long parts of them replaced by `[redacted]`."""
    return _hide_values(text, config, _REPLY_FRAGMENT)


def _hide_values(text: str, config: LmConfig, fragment: int) -> str:
    known = _known(config)
    spellings = {form for secret in known for form in (secret, quote(secret, safe=""), repr(secret)[1:-1])}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, HIDDEN)
    for secret in sorted(known):
        text = _hide_parts(text, secret, fragment)
    return text


def _known(config: LmConfig) -> set[str]:
    """The config's key and the values of the environment that are secrets by their variables' names."""
    others = {value.strip() for name, value in os.environ.items() if _SECRET_VARIABLE.search(name)}
    key = os.environ.get(config.key_env, "").strip() if config.key_env else ""
    return {secret for secret in others if len(secret) >= _SHORTEST_SECRET} | ({key} if key else set())


def _hide_parts(text: str, key: str, fragment: int) -> str:
    """Replace every stretch of the text made of parts of the key: a provider's message may quote half of it."""
    parts = {key[at : at + fragment] for at in range(len(key) - fragment + 1)}
    if not any(part in text for part in parts):
        return text
    hits = [at for at in range(len(text) - fragment + 1) if text[at : at + fragment] in parts]
    shown: list[str] = []
    end = 0  # of what is already hidden or copied
    for at in hits:
        if at > end or not shown:
            shown += [text[end:at], HIDDEN]
        end = at + fragment
    return "".join([*shown, text[end:]])


def shown_variable(name: str) -> str:
    """The variable's name as a message shows it: not at all where it looks like a key pasted in its place."""
    return name if _SHOWABLE_VARIABLE.fullmatch(name) else "that lm.key_env names"
