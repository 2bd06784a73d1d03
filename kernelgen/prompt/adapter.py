"""DSPy's side of the prompt: lays a call of GenerateKernel out as `assemble` does and reads the answer as `reply` does.

Nothing is asked twice: an answer that cannot be used raises AdapterParseError, caused by the ReplyError with the
reason. `tap` gets messages and response before parsing, and what it raises ends the call. Signatures that are not
ours, such as those of optimisers, go to DSPy's ChatAdapter. Calls are synchronous: `acall` is refused for our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dspy
from dspy.lm15 import Request, Response, request_from_openai_chat
from dspy.utils.exceptions import AdapterParseError

from kernelgen.errors import HarnessError, ReplyError
from kernelgen.prompt import assemble, reply
from kernelgen.prompt.assemble import Message
from kernelgen.prompt.inputs import INPUTS, ask_of
from kernelgen.prompt.program import program_of
from kernelgen.prompt.signature import OUTPUTS
from kernelgen.records import Reply

Tap = Callable[[list[Message], Response], None]

EMPTY = "(empty reply)"
"""Stands for a message without text, which chat models do not take."""
CONNECTION = frozenset(
    {"api_key", "api_base", "base_url", "headers", "extra_headers", "timeout", "api_version", "organization", "project"}
)
"""Settings of a dspy.LM that say where and how it is reached; it takes them from itself."""
OF_DSPY = frozenset({"n", "num_generations", "rollout_id", "cache", "prompt_cache"})
"""Settings that are DSPy's own and no part of a request."""
OF_THE_CALL = ("cache", "rollout_id")
"""Those that a call with a Request takes beside it."""


class KernelAdapter(dspy.Adapter):  # type: ignore[misc]  # dspy ships no types
    """The adapter; may be made without arguments, as dspy.Refine makes it.

    Args:
        tap: gets the messages asked and the response, before the response is parsed.
        followups: further messages at the end, of a request that asks again.
    """

    def __init__(self, *, tap: Tap | None = None, followups: Sequence[Message] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.tap = tap
        self.followups = list(followups)

    def __call__(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Ask the model; one dict of output fields for each generation asked for."""
        if not _is_ours(signature):
            theirs: list[dict[str, Any]] = _foreign()(lm, lm_kwargs, signature, demos, inputs)
            return theirs
        messages = [*self.format(signature, demos, inputs), *self.followups]
        request = request_of(lm, lm_kwargs, messages)
        beside = {name: lm_kwargs[name] for name in OF_THE_CALL if name in lm_kwargs}
        ask, answers = ask_of(inputs), []
        for _ in range(lm_kwargs.get("n") or 1):
            response = lm(request, **beside)
            if self.tap is not None:
                self.tap(messages, response)
            text = response.text or ""
            try:
                answers.append(_fields(reply.parse(text, ask, finish_reason=response.finish_reason)))
            except ReplyError as error:
                raise _unusable(signature, text, error) from error
        return answers

    async def acall(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Only for signatures that are not ours."""
        if _is_ours(signature):
            raise HarnessError("GenerateKernel is asked synchronously; call the module, or wrap it with dspy.asyncify.")
        theirs: list[dict[str, Any]] = await _foreign().acall(lm, lm_kwargs, signature, demos, inputs)
        return theirs

    def format(self, signature: Any, demos: list[Any], inputs: dict[str, Any]) -> list[Message]:
        """The messages; inputs that a module added to the signature come last in [TASK]."""
        if not _is_ours(signature):
            theirs: list[Message] = _foreign().format(signature, demos, inputs)
            return theirs
        program = program_of("dspy", signature.instructions, list(demos))
        notes = {
            name.strip("_"): str(inputs[name])
            for name in signature.input_fields
            if name not in INPUTS and inputs.get(name) is not None
        }
        return assemble.messages(ask_of(inputs), program, notes=notes)

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """The output fields of a text, without its request: ids and entry point are compared with nothing."""
        if not _is_ours(signature):
            theirs: dict[str, Any] = _foreign().parse(signature, completion)
            return theirs
        try:
            return _fields(reply.read(completion, language="python", entry_point="kernel"))
        except ReplyError as error:
            raise _unusable(signature, completion, error) from error


def request_of(lm: Any, lm_kwargs: Mapping[str, Any], messages: Sequence[Message]) -> Request:
    """The messages as a request to `lm`, with its sampling settings; those of the call come first."""
    settings = {**lm.kwargs, **lm_kwargs}
    sampling = {
        name: value for name, value in settings.items() if value is not None and name not in CONNECTION | OF_DSPY
    }
    said = [{**message, "content": message["content"] or EMPTY} for message in messages]
    return request_from_openai_chat({"model": lm.model, "messages": said, **sampling})


def _is_ours(signature: Any) -> bool:
    """Whether it is GenerateKernel, or made of it by a module or optimiser."""
    return set(INPUTS) <= set(signature.input_fields) and set(OUTPUTS) <= set(signature.output_fields)


def _fields(parsed: Reply) -> dict[str, Any]:
    return {name: getattr(parsed, name) for name in OUTPUTS}


def _foreign() -> Any:
    # its fallback would ask a second time, in another layout
    return dspy.ChatAdapter(use_json_adapter_fallback=False)


def _unusable(signature: Any, text: str, error: ReplyError) -> AdapterParseError:
    # parsed_result stays None: DSPy's bootstrapping drops an example that has a partial one
    return AdapterParseError("KernelAdapter", signature, text, message=error.reason, parsed_result=None)
