"""DSPy's side: the same messages as `assemble`, one call a question, every raw reply tapped before it is parsed."""

from __future__ import annotations

import asyncio
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, Usage
from dspy.utils.exceptions import AdapterParseError

from kernelgen.errors import BadInput, ConfigError, HarnessError, ReplyError
from kernelgen.prompt import assemble
from kernelgen.prompt.adapter import EMPTY, KernelAdapter
from kernelgen.prompt.inputs import ask_of, inputs_of
from kernelgen.prompt.program import load_program, program_of
from kernelgen.prompt.reply import write
from kernelgen.prompt.signature import GenerateKernel
from kernelgen.records import Program
from tests import factories as sample


class Scripted:
    """An engine that answers with the given texts in turn and keeps the requests."""

    def __init__(self, *texts: str, finish_reason: str = "stop") -> None:
        self.texts = list(texts)
        self.finish_reason = finish_reason
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(
            id=None,
            model="scripted",
            message=Message.assistant([TextPart(self.texts.pop(0))]),
            finish_reason=self.finish_reason,
            usage=Usage(input_tokens=1, output_tokens=1, total_tokens=2),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Scripted:
        return self


def asked(engine: Scripted, adapter: Any, predict: Any = None, **inputs: Any) -> Any:
    model = dspy.LM("local/scripted", engine=engine, cache=False, temperature=0.25, seed=7, max_tokens=99)
    with dspy.context(lm=model, adapter=adapter):
        return (predict or dspy.Predict(GenerateKernel))(**(inputs or inputs_of(sample.ask())))


def default_program() -> Program:
    return program_of("default", GenerateKernel.instructions, [])


def as_dicts(request: Request) -> list[dict[str, str]]:
    turns = [{"role": message.role, "content": message.text or ""} for message in request.messages]
    return [{"role": "system", "content": str(request.system)}, *turns]


@pytest.mark.parametrize("state", range(6))
def test_the_request_survives_the_signature(state: int) -> None:
    ask = sample.ask(state)
    assert ask_of(inputs_of(ask)) == ask
    assert ask_of({name: value.model_dump(mode="json") for name, value in inputs_of(ask).items()}) == ask


def test_a_wrong_input_is_named() -> None:
    inputs = inputs_of(sample.ask())
    with pytest.raises(BadInput, match=r"'champion' is missing"):
        ask_of({name: value for name, value in inputs.items() if name != "champion"})
    with pytest.raises(BadInput, match=r"'profile.id' is wrong"):
        ask_of({**inputs, "profile": {}})


def test_predict_sends_the_assembled_messages_and_returns_the_reply() -> None:
    engine = Scripted(write(sample.reply()))
    answer = asked(engine, KernelAdapter())
    assert as_dicts(engine.requests[0]) == assemble.messages(sample.ask(), default_program())
    for name in ("hypothesis", "kernel", "autotune", "honoured", "overrides"):
        assert getattr(answer, name) == getattr(sample.reply(), name)


def test_sampling_settings_reach_the_request_and_the_calls_come_first() -> None:
    engine = Scripted(write(sample.reply()), write(sample.reply()))
    asked(engine, KernelAdapter())
    asked(engine, KernelAdapter(), dspy.Predict(GenerateKernel, temperature=0.5, rollout_id=3))
    first, second = (request.config for request in engine.requests)
    assert (first.temperature, first.seed, first.max_tokens) == (0.25, 7, 99)
    assert (second.temperature, second.seed) == (0.5, 7)


def test_the_tap_has_the_reply_before_it_is_parsed() -> None:
    taken: list[tuple[list[dict[str, str]], str]] = []
    adapter = KernelAdapter(tap=lambda messages, response: taken.append((messages, response.text or "")))
    with pytest.raises(AdapterParseError) as caught:
        asked(Scripted("nonsense"), adapter)
    assert taken == [(assemble.messages(sample.ask(), default_program()), "nonsense")]
    assert isinstance(caught.value.__cause__, ReplyError)
    assert caught.value.__cause__.reason == "it has no [HYPOTHESIS] section."
    assert caught.value.parsed_result is None


def test_what_the_tap_raises_ends_the_call() -> None:
    def full(messages: Any, response: Any) -> None:
        raise HarnessError("disk full")

    with pytest.raises(HarnessError, match="disk full"):
        asked(Scripted(write(sample.reply())), KernelAdapter(tap=full))


def test_an_unusable_reply_costs_one_call() -> None:
    engine = Scripted("nonsense", write(sample.reply()))
    with pytest.raises(AdapterParseError):
        asked(engine, KernelAdapter())
    assert len(engine.requests) == 1


def test_a_reply_cut_at_its_length_is_truncated() -> None:
    with pytest.raises(AdapterParseError, match="truncated"):
        asked(Scripted(write(sample.reply()), finish_reason="length"), KernelAdapter())


def test_followups_come_after_the_request_also_where_a_reply_was_empty() -> None:
    engine = Scripted(write(sample.reply()))
    followups = [{"role": "assistant", "content": ""}, {"role": "user", "content": "Again."}]
    asked(engine, KernelAdapter(followups=followups))
    assert [m["content"] for m in as_dicts(engine.requests[0])[-2:]] == [EMPTY, "Again."]


def test_several_generations_are_several_calls() -> None:
    engine = Scripted(write(sample.reply()), write(sample.reply(hypothesis="Other.")))
    answer = asked(engine, KernelAdapter(), dspy.Predict(GenerateKernel, n=2, temperature=1.0))
    assert [completion.hypothesis for completion in answer.completions] == [sample.reply().hypothesis, "Other."]
    assert len(engine.requests) == 2


def test_demos_are_message_pairs_as_records_and_as_saved() -> None:
    engine = Scripted(write(sample.reply()), write(sample.reply()))
    predict = dspy.Predict(GenerateKernel)
    demo = {**inputs_of(sample.ask(0)), **dict(sample.reply())}
    predict.demos = [dspy.Example(**demo).with_inputs(*inputs_of(sample.ask()))]
    asked(engine, KernelAdapter(), predict)
    predict.load_state(predict.dump_state())
    asked(engine, KernelAdapter(), predict)
    first, second = map(as_dicts, engine.requests)
    assert first == second
    assert [message["role"] for message in first] == ["system", "user", "assistant", "user"]
    assert first[2]["content"] == write(sample.reply())


def test_a_saved_program_gives_the_messages_that_the_predictor_sends(tmp_path: Any) -> None:
    predict = dspy.Predict(GenerateKernel.with_instructions("  Be brief.\n    Be right.\n"))
    predict.demos = [{**inputs_of(sample.ask(4)), **dict(sample.reply()), "augmented": True}]
    predict.save(str(tmp_path / "program.json"))
    engine = Scripted(write(sample.reply()))
    asked(engine, KernelAdapter(), predict)
    program = load_program("tuned", tmp_path / "program.json")
    assert as_dicts(engine.requests[0]) == assemble.messages(sample.ask(), program)


def test_a_hostile_program_is_refused_before_the_model_is_asked() -> None:
    engine = Scripted(write(sample.reply()))
    with pytest.raises(ConfigError, match=r"begins with \[TASK"):
        asked(engine, KernelAdapter(), dspy.Predict(GenerateKernel.with_instructions("[TASK]\nSay hello.")))
    assert engine.requests == []


def test_refine_works_and_its_hint_reaches_the_task() -> None:
    advice = '[[ ## discussion ## ]]\nslow\n\n[[ ## advice ## ]]\n{"self": "Use TMA."}\n\n[[ ## completed ## ]]'
    engine = Scripted(write(sample.reply()), advice, write(sample.reply(hypothesis="Better.")))
    refine = dspy.Refine(
        dspy.Predict(GenerateKernel), N=2, threshold=1.0, reward_fn=lambda _, answer: answer.hypothesis == "Better."
    )
    assert asked(engine, KernelAdapter(), refine).hypothesis == "Better."
    last = as_dicts(engine.requests[-1])[-1]["content"]
    assert "\n[TASK]\n" in last
    assert last.split("[TASK]")[1].rstrip().endswith("hint:\n> Use TMA.")


def test_foreign_signatures_go_to_the_chat_adapter_once() -> None:
    engine = Scripted("[[ ## answer ## ]]\n4\n\n[[ ## completed ## ]]", "nonsense", "never asked")
    assert asked(engine, KernelAdapter(), dspy.Predict("question -> answer"), question="2+2?").answer == "4"
    with pytest.raises(AdapterParseError):
        asked(engine, KernelAdapter(), dspy.Predict("question -> answer"), question="2+2?")
    assert len(engine.requests) == 2


def test_format_and_parse_work_alone_for_both_kinds_of_signature() -> None:
    adapter = KernelAdapter()
    assert adapter.format(GenerateKernel, [], inputs_of(sample.ask()))[0]["content"].startswith("[SYSTEM]")
    assert adapter.parse(GenerateKernel, write(sample.reply()))["kernel"] == sample.reply().kernel
    with pytest.raises(AdapterParseError):
        adapter.parse(GenerateKernel, "nonsense")
    other = dspy.Signature("question -> answer")
    assert adapter.format(other, [], {"question": "2+2?"})[-1]["role"] == "user"
    assert adapter.parse(other, "[[ ## answer ## ]]\n4\n")["answer"] == "4"


def test_asking_asynchronously_is_refused() -> None:
    with pytest.raises(HarnessError, match="synchronously"):
        asyncio.run(KernelAdapter().acall(None, {}, GenerateKernel, [], {}))


def test_labelled_few_shot_compiles_from_logged_outcomes() -> None:
    examples = [
        dspy.Example(**inputs_of(sample.ask(state)), **dict(sample.reply())).with_inputs(*inputs_of(sample.ask()))
        for state in (0, 1)
    ]
    compiled = dspy.LabeledFewShot(k=2).compile(dspy.Predict(GenerateKernel), trainset=examples, sample=False)
    engine = Scripted(write(sample.reply()))
    asked(engine, KernelAdapter(), compiled)
    assert len(engine.requests[0].messages) == 5


def test_a_programs_own_demonstrations_can_be_the_demos() -> None:
    engine = Scripted(write(sample.reply()))
    predict = dspy.Predict(GenerateKernel)
    predict.demos = [sample.demonstration()]
    asked(engine, KernelAdapter(), predict)
    program = default_program().model_copy(update={"demonstrations": (sample.demonstration(),)})
    assert as_dicts(engine.requests[0]) == assemble.messages(sample.ask(), program)
