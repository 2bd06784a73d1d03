"""A language model as a generation asks it: the door of an `lm=` choice behind the DSPy program and the prompt's adapter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelgen import lm as doors
from kernelgen.config import LmConfig
from kernelgen.errors import KernelgenError
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ReplyReceived
from kernelgen.generation.logged import Messages
from kernelgen.generation.prepare import Prepared
from kernelgen.records import Answer, Reply

if TYPE_CHECKING:
    import dspy

Tap = Callable[[Messages, Answer], None]


@dataclass(frozen=True)
class Model:
    """One model behind one door."""

    config: LmConfig
    """The choice it was built from."""
    lm: dspy.LM
    """DSPy's handle on it."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The sampling parameters that are sent."""
        return dict(doors.parameters(self.config))

    @property
    def versions(self) -> dict[str, str]:
        """Versions that the answer may depend on."""
        return doors.versions()

    def request_key(self, messages: Messages) -> str:
        """What `lm=recorded` finds the answer by."""
        return doors.request_key(self.config.model, self.parameters, messages)

    def ask(self, prepared: Prepared, *, followups: Messages, tap: Tap) -> Reply:
        """Ask the program's prompt; `tap` gets what was asked and the raw answer before it is parsed.

        Raises ReplyError for an answer that cannot be parsed, ModelError or NoPlay when there is none; what `tap`
        raises passes through.
        """
        from kernelgen.prompt.adapter import KernelAdapter, predict

        started = time.monotonic()

        def answered(asked: Messages, response: Any) -> None:
            tap(asked, doors.to_answer(response, self.config, time.monotonic() - started))

        adapter = KernelAdapter(followups=followups, tap=answered)
        try:
            return predict(prepared.ask, prepared.program, lm=self.lm, adapter=adapter)
        except KernelgenError:
            raise
        except Exception as error:  # noqa: BLE001 (whatever a provider's client raises is translated, never shown raw)
            raise doors.translate(error, self.config) from None


def open_model(config: LmConfig, log: EventLog) -> Model:
    """The model of a choice; the recorded one answers from `log`. Raises BadInput for a config that cannot work."""
    from kernelgen import playbook

    def recorded(key: str) -> Answer | None:
        return recorded_answer(log, key)

    return Model(config, doors.build(config, recorded=recorded, play=playbook.answer))


def recorded_answer(log: EventLog, key: str) -> Answer | None:
    """The last logged answer to the same model, parameters and messages, or None."""
    for row in log.rows(kinds=("reply_received",), newest_first=True):
        event = row.event
        if isinstance(event, ReplyReceived) and event.request_key == key:
            return Answer(
                text=log.text(event.text), model=event.model, finish_reason=event.finish_reason, usage=event.usage
            )
    return None
