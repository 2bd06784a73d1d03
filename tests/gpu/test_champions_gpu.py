"""On a GPU the naive champions are right at every tune and held-out shape, for every kind of input, and twice the same.

Needs Python, torch, Triton, PyYAML and pytest, nothing else of kernelgen's dependencies.
"""

import importlib
from pathlib import Path

import pytest
import yaml

from kernelgen.targets.code import load_code

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
CONF = Path(__file__).parents[2] / "conf" / "target"
TARGETS = {
    name: yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    for name in ("moe_dispatch_384expert", "mla_decode_fp8")
}
CASES = [
    pytest.param(name, dims, kind, id=f"{name}-{shape}-{kind}")
    for name, target in TARGETS.items()
    for shape, dims in (target["shapes"]["tune"] | target["shapes"]["heldout"]).items()
    for kind in target["input_kinds"]
]
# float64 copies in the reference and in the comparison, next to inputs and two answers
MEMORY_FACTOR = 8


@pytest.mark.parametrize(("name", "dims", "kind"), CASES)
def test_champion_matches_the_reference_and_repeats_itself(name: str, dims: dict[str, int], kind: str) -> None:
    target = TARGETS[name]
    code = load_code(target["module"])
    free, _ = torch.cuda.mem_get_info()
    if MEMORY_FACTOR * code.bytes_moved(dims) > free:
        pytest.skip("does not fit this GPU's free memory")
    entry = getattr(importlib.import_module(f"kernelgen.targets.champions.{name}"), target["entry_point"])
    tolerance = {output: (float(t["rtol"]), float(t["atol"])) for output, t in target["tolerance"].items()}
    inputs = code.make_inputs(dims, kind, seed=11, device="cuda")
    before = {key: value.clone() for key, value in inputs.items() if isinstance(value, torch.Tensor)}
    first = entry(**inputs)
    assert code.compare(inputs, code.reference(**inputs), first, tolerance) == []
    assert all(torch.equal(one, other) for one, other in zip(first, entry(**inputs), strict=True))
    assert all(torch.equal(value, inputs[key]) for key, value in before.items())
