"""On a GPU the naive champions are right at every tune and held-out shape, for every kind of input, and twice the same.

Needs Python, torch, Triton, PyYAML and pytest, nothing else of kernelgen's dependencies. `-k moe_combine` or
`-k "tune and plain"` picks some of the cases.
"""

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelgen.ladder.inputs import shapes_only
from kernelgen.targets.code import load_code

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
CONF = Path(__file__).parents[2] / "conf" / "target"
TARGETS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted(CONF.glob("*.yaml"))
    if path.stem != "auto"
}
CASES = [
    pytest.param(name, dims, kind, id=f"{name}-{group}-{shape}-{kind}")
    for name, target in TARGETS.items()
    for group in ("tune", "heldout")
    for shape, dims in target["shapes"][group].items()
    for kind in target["input_kinds"]
]
# float64 copies in the reference and in the comparison, next to inputs and two answers
MEMORY_FACTOR = 8


def _input_bytes(code: Any, dims: dict[str, int]) -> int:
    """Of all input tensors, whether a call reads them or not: a token reads 8 of 384 experts."""
    inputs = shapes_only(code, dims, "plain", seed=11)
    assert inputs is not None
    return sum(value.nbytes for value in inputs.values() if isinstance(value, torch.Tensor))


def _same_bits(one: Any, other: Any) -> bool:
    """Whether two tensors hold the same bytes: a NaN equals itself here."""
    return torch.equal(one.contiguous().view(-1).view(torch.uint8), other.contiguous().view(-1).view(torch.uint8))


@pytest.mark.parametrize(("name", "dims", "kind"), CASES)
def test_champion_matches_the_reference_and_repeats_itself(name: str, dims: dict[str, int], kind: str) -> None:
    target = TARGETS[name]
    code = load_code(target["module"])
    free, _ = torch.cuda.mem_get_info()
    if MEMORY_FACTOR * max(code.bytes_moved(dims), _input_bytes(code, dims)) > free:
        pytest.skip("does not fit this GPU's free memory")
    entry = getattr(importlib.import_module(f"kernelgen.targets.champions.{name}"), target["entry_point"])
    tolerance = {output: (float(t["rtol"]), float(t["atol"])) for output, t in target["tolerance"].items()}
    inputs = code.make_inputs(dims, kind, seed=11, device="cuda")
    before = {key: value.clone() for key, value in inputs.items() if isinstance(value, torch.Tensor)}
    first = entry(**inputs)
    assert code.compare(inputs, code.reference(**inputs), first, tolerance) == []
    assert all(_same_bits(one, other) for one, other in zip(first, entry(**inputs), strict=True))
    assert all(_same_bits(value, inputs[key]) for key, value in before.items())
