"""The check of a target finds what makes it not worth passing, names it, and does not confuse it with what is sound."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelgen.errors import ConfigError
from kernelgen.targets.check import check, hold_to_reference, main
from kernelgen.targets.extents import extent
from kernelgen.targets.findings import Task

SOUND = """
def make_inputs(dims, kind, seed, device):
    import torch
    generator = torch.Generator(device=device).manual_seed(seed)
    x = torch.randn(dims["N"], 4, generator=generator, device=device)
    return {"x": x * 100 if kind == "large" else x, "factor": 2.5}
def reference(x, factor):
    return (x * factor,)
def compare(inputs, expected, got, tolerance):
    from kernelgen.targets.compare import element_distance, structure
    return structure(("out",), expected, got) or element_distance("out", expected[0], got[0], tolerance)
def flops(dims):
    return 4.0 * dims["N"]
def bytes_moved(dims):
    return 32.0 * dims["N"]
"""


def _task(folder: Path, text: str, **changes: Any) -> Task:
    (folder / "mine.py").write_text(text, encoding="utf-8")
    fields: dict[str, Any] = {
        "module": "mine.py",
        "folder": str(folder),
        "inputs": [("x", "float32", ["N", 4])],
        "scalars": {"factor": "float"},
        "outputs": [("out", "float32", ["N", 4])],
        "smoke": {"n2": {"N": 2}, "n3": {"N": 3}},
        "shapes": {"n2": {"N": 2}, "n3": {"N": 3}, "n9": {"N": 9}},
        "kinds": ["plain", "large"],
        "tolerance": {"out": (1e-5, 1e-6)},
    }
    return Task(**{**fields, **changes})


def test_a_sound_target_has_no_fault_and_every_check_was_made(tmp_path: Path) -> None:
    found = check(_task(tmp_path, SOUND))
    assert found.faults == {}
    assert {"form", "deterministic", "seeds differ", "kinds differ", "costs", "accepts the reference"} <= set(
        found.made
    )
    refusals = {name for name in found.made if name.startswith("refuses ")}
    assert len(refusals) == 9
    assert found.made["refuses zeros"] == 4
    assert found.made["refuses lower precision"] == 2


def _swap(old: str, new: str) -> Callable[[str], str]:
    assert old in SOUND
    return lambda text: text.replace(old, new)


@pytest.mark.parametrize(
    ("change", "name", "sentence"),
    [
        (_swap("return (x * factor,)", "x *= factor; return (x,)"), "leaves inputs alone", "n2, plain: the reference"),
        (_swap("manual_seed(seed)", "manual_seed(7)"), "seeds differ", "make the same inputs"),
        (_swap("x * 100 if kind", "x if kind"), "kinds differ", "plain and large make the same inputs"),
        (_swap("return (x * factor,)", "import torch; return (x + torch.rand_like(x),)"), "deterministic", "n2, plain"),
        (_swap("return (x * factor,)", "return (x[:, :2] * factor,)"), "form", "out is torch.float32 [2, 2]"),
        (_swap("return (x * factor,)", "return x * factor"), "form", "must return a tuple of 1"),
        (_swap('"factor": 2.5', '"factor": 2'), "form", "factor is of type int; the yaml declares float"),
        (_swap('{"x": x', '{"y": x'), "form", "make_inputs gives y, factor; the yaml declares x, factor"),
        (_swap("return structure", "return []; structure"), "refuses zeros", "n2, plain: accepted"),
        (_swap("return structure", "return []; structure"), "refuses wrong forms", "n2, plain: accepted None"),
        (_swap("structure((", "[] and structure(("), "runs", "n2, plain: TypeError"),
        (_swap("expected[0], got[0]", "expected[0], expected[0]"), "refuses half of the work", "accepted"),
        (_swap("return structure", "return ['no'] or structure"), "accepts the reference", "n2, plain: no"),
        (_swap("x * factor,", "x * 0,"), "refuses zeros", "it is the right answer at every smoke shape"),
        (
            _swap("return (x * factor,)", "return (x.fly(),)"),
            "runs",
            "AttributeError: 'Tensor' object has no attribute",
        ),
        (_swap("4.0 * dims", "-4.0 * dims"), "costs", "both must be finite, above 0"),
        (_swap("32.0 * dims", "1.0 / dims"), "costs", "flops change by 4 and bytes by -"),
        (_swap("4.0 * dims", "dims['K'] * dims"), "costs", "KeyError: 'K'"),
    ],
)
def test_each_weakness_is_found_and_named(
    tmp_path: Path, change: Callable[[str], str], name: str, sentence: str
) -> None:
    faults = check(_task(tmp_path, change(SOUND))).faults
    assert name in faults
    assert sentence in faults[name][0]


def test_a_tolerance_that_hides_a_coarser_format_is_found(tmp_path: Path) -> None:
    found = check(_task(tmp_path, SOUND, tolerance={"out": (1e-2, 0.0)}))
    assert found.faults == {
        "refuses lower precision": [f"{kind} inputs: accepted at every smoke shape" for kind in ("plain", "large")]
    }


def test_integers_alone_have_no_coarser_format(tmp_path: Path) -> None:
    text = SOUND.replace("x = torch.randn(dims", "x = torch.randint(1, 99, (dims").replace("], 4, gen", "], 4), gen")
    text = text.replace('"factor": 2.5', '"factor": 3')
    ints = {"inputs": [("x", "int64", ["N", 4])], "outputs": [("out", "int64", ["N", 4])], "scalars": {"factor": "int"}}
    found = check(_task(tmp_path, text, **ints))
    assert found.faults == {}
    assert not {"refuses lower precision", "refuses NaN"} & set(found.made)


def test_the_record_holds_findings_or_the_sentence_why_there_are_none(tmp_path: Path) -> None:
    task, record = tmp_path / "task.json", tmp_path / "record.json"
    task.write_text(json.dumps(vars(_task(tmp_path, SOUND))), encoding="utf-8")
    assert main([str(task), str(record)]) == 0
    lines = json.loads(record.read_text(encoding="utf-8"))["checks"]
    assert all(line["status"] == "passed" for line in lines)
    task.write_text(json.dumps(vars(_task(tmp_path, "1 / 0\n"))), encoding="utf-8")
    assert main([str(task), str(record)]) == 0
    assert "does not import: ZeroDivisionError" in json.loads(record.read_text(encoding="utf-8"))["error"]


def test_a_wrong_kernel_is_told_with_shape_and_kind(tmp_path: Path) -> None:
    task = _task(tmp_path, SOUND)
    given = ((task.module, task.folder), task.smoke, tuple(task.kinds), task.tolerance, "cpu")
    hold_to_reference(lambda x, factor: (factor * x,), *given)
    with pytest.raises(AssertionError, match=r"shape n2, plain inputs: out\[\d, \d\] is"):
        hold_to_reference(lambda x, factor: (x + factor,), *given)


def test_extents_are_arithmetic_over_dimensions() -> None:
    assert extent(64, {}) == 64
    assert extent("(B+1)*((S+63)//64) - 2 % 2", {"B": 3, "S": 65}) == 8


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("2*Sx", "names the dimension 'Sx', which the shape has not; did you mean 'S'"),
        ("S +", "extent 'S \\+' cannot be computed"),
        ("S // 0", "cannot be computed"),
        ("max(S, 1)", "is not made of dimensions"),
        ("S / 2", "is not made of dimensions"),
        ("__import__('os')", "is not made of dimensions"),
    ],
)
def test_an_extent_that_is_none_is_refused(written: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        extent(written, {"S": 4})
