"""A language model as a generation asks it: the door of an `lm=` choice, behind DSPy's program and our adapter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelgen import lm as doors
from kernelgen.config import LmConfig
from kernelgen.errors import ReplyError
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

    def seeded(self, seed: int) -> Model:
        """The same model with another sampling seed."""
        return Model(self.config.model_copy(update={"seed": seed}), self.lm.copy(seed=seed))

    def ask(self, prepared: Prepared, *, followups: Messages, tap: Tap) -> Reply:
        """Ask the program's prompt; `tap` gets what was asked and the raw answer before it is parsed.

        Raises ReplyError for an answer that cannot be parsed, ModelError or NoPlay when there is none; what `tap`
        raises passes through.
        """
        import dspy
        from dspy.utils.exceptions import AdapterParseError

        from kernelgen.prompt.adapter import KernelAdapter
        from kernelgen.prompt.inputs import inputs_of
        from kernelgen.prompt.signature import GenerateKernel

        started = time.monotonic()

        def answered(asked: Messages, response: Any) -> None:
            tap(asked, doors.to_answer(response, self.config, time.monotonic() - started))

        predictor = dspy.Predict(GenerateKernel.with_instructions(prepared.program.instructions))
        predictor.demos = list(prepared.program.demonstrations)
        adapter = KernelAdapter(followups=followups, tap=answered)
        try:
            with dspy.context(lm=self.lm, adapter=adapter, disable_history=True):
                prediction = predictor(**inputs_of(prepared.ask))
        except AdapterParseError as error:
            if isinstance(error.__cause__, ReplyError):
                raise error.__cause__ from None
            raise
        except dspy.LMError as error:
            # the provider's own words may hold a key; the translated sentence does not
            raise doors.translate(error, self.config) from None
        return Reply(**{name: getattr(prediction, name) for name in Reply.model_fields})


def open_model(config: LmConfig, log: EventLog) -> Model:
    """The model of a choice; the recorded one answers from `log`. Raises BadInput for a config that cannot work."""
    from kernelgen import playbook

    return Model(config, doors.build(config, recorded=RecordedAnswers(log).find, play=playbook.answer))


class RecordedAnswers:
    """The logged answers by what was asked; the log is read once, when the first is wanted."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._by_key: dict[str, ReplyReceived] | None = None

    def find(self, key: str) -> Answer | None:
        """The last logged answer to the same model, parameters and messages, or None."""
        if self._by_key is None:
            replies = (row.event for row in self._log.rows(kinds=("reply_received",)))
            self._by_key = {event.request_key: event for event in replies if isinstance(event, ReplyReceived)}
        event = self._by_key.get(key)
        if event is None:
            return None
        text = self._log.text(event.text)
        return Answer(text=text, model=event.model, finish_reason=event.finish_reason, usage=event.usage)
