"""Jobs for sessions under test: they run in the child."""

from __future__ import annotations

from typing import Any


def echo(channel: Any) -> None:
    """Send every message back, with its descriptors."""
    while True:
        message, descriptors = channel.receive()
        channel.send(message, descriptors)


def run(channel: Any) -> None:
    """Run source where a candidate's would run, and answer with what it leaves in `value`."""
    message, descriptors = channel.receive()
    space = {"channel": channel, "descriptors": descriptors, **message.get("given", {})}
    exec(message["source"], space)
    channel.send({"value": space.get("value")})
