"""Which `lm=` choices can be asked from here: by their key's variable, or by a listener on this machine.

Only loopback addresses are ever connected to; a remote endpoint is not tried, and its address is not shown: a user's
own config may name what is nobody's business.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from kernelgen.catalog import Catalog, plain_yaml
from kernelgen.errors import ConfigError

CONNECT_S = 0.3
LOCALHOST = ("127.0.0.1", "::1")
"""What `localhost` means, without asking a name server."""
PORTS = {"http": 80, "https": 443}
# `kernelgen.lm.secrets` has the same rule, and needs packages that may be missing here
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
EMBEDDED = {"playbook": "always there: embedded, no key, no network", "recorded": "answers from the event log"}

State = Literal["ready", "key set", "key not set", "listens", "nothing listens", "not set up", "not tried"]


@dataclass(frozen=True)
class Model:
    """One choice of `lm=`."""

    choice: str
    """Its name."""
    state: State
    """`ready` needs nothing; `listens` says that something accepts connections there, not what."""
    note: str
    """The variable, the local address, or what to set."""


def models(choices: Catalog) -> tuple[Model, ...]:
    """All choices, the embedded ones first."""
    found = [_model(name, choices) for name in choices.names("lm")]
    return tuple(sorted(found, key=lambda model: (model.state != "ready", model.choice)))


def _model(name: str, choices: Catalog) -> Model:
    try:
        config = plain_yaml(choices.locate("lm", name).path)
    except ConfigError:
        return Model(name, "not set up", "its config cannot be read, or stands in two folders")
    if config.get("door") in EMBEDDED:
        return Model(name, "ready", EMBEDDED[config["door"]])
    if not config.get("api_base"):
        return Model(name, "not set up", "needs lm.api_base=URL")
    return _of_endpoint(name, config)


def _of_endpoint(name: str, config: dict[str, Any]) -> Model:
    variable = config.get("key_env")
    keyed = None if variable is None else bool(os.environ.get(str(variable), "").strip())
    # anything else might be a key put in the wrong place
    told = str(variable) if _VARIABLE.fullmatch(str(variable)) else "the variable that its key_env names"
    addresses, port = loopback(str(config["api_base"]))
    if keyed is False:
        return Model(name, "key not set", told)
    if not addresses:
        return Model(name, "key set", told) if keyed else Model(name, "not tried", "a remote endpoint without a key")
    shown = f"{addresses[0]}:{port}"
    is_heard = any(_listens(address, port) for address in addresses)
    return Model(name, "listens" if is_heard else "nothing listens", shown)


def loopback(url: str) -> tuple[tuple[str, ...], int]:
    """The loopback addresses of a URL and its port; no addresses where it is another machine's, or no URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        return (), 0
    if host == "localhost":
        return LOCALHOST, port
    try:
        return ((host,), port) if ipaddress.ip_address(host).is_loopback else ((), port)
    except ValueError:  # a name, which only a name server knows
        return (), port


def _listens(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=CONNECT_S):
            return True
    except OSError:
        return False
