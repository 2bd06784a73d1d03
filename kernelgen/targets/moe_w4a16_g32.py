"""The routed experts of Kimi K2.6 in their own format: int4 weights in groups of 32, bf16 activations.

Weights are packed as compressed-tensors' pack-quantized does: eight nibbles in an int32 along the input dimension,
input 8w + i in bits 4i of word w; a weight is (nibble - 8) * scale, with a bf16 scale for each 32 inputs and no zero
point. The reference dequantises and works in float64. Experts, ids and -1 as in `experts`. One layer of a rank is
1.19 GB, so weights are made where they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelgen.errors import ConfigError, nearest
from kernelgen.targets.compare import ToleranceTable, structure, vector_distance
from kernelgen.targets.experts import (
    count_hits,
    expert_layer,
    experts_hit,
    layer_bytes,
    layer_flops,
    make_ids,
    make_weights,
    tokens_hit,
)
from kernelgen.targets.routing import KINDS

if TYPE_CHECKING:
    from torch import Generator, Tensor

GROUP = 32
NIBBLES = 8
NIBBLE_BITS = 4
ZERO_POINT = 8
# root mean square of the integers -8 to 7
INTEGER_RMS = 4.64
INT32_END = 2**31


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """x [T, H] bf16, w13 [E, 2n, H/8] int32 with w13_scales [E, 2n, H/32] bf16, w2 [E, H, n/8] int32 with
    w2_scales [E, H, n/32] bf16, ids [T, 8] int32, weights [T, 8] fp32 on `device`, the same for the same seed.

    Routing as in `experts.make_ids`. Every int4 is equally likely; stressed ones have rows of x in turn 1, 1/8 and 8
    times as large, with a spike in the last input, and scales spread over 2^-3 to 2^3 along the inputs. Raises
    ConfigError for an unknown kind.
    """
    import torch

    if kind not in KINDS:
        raise ConfigError(f"moe_w4a16_g32 has no input kind '{kind}'{nearest(kind, KINDS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    tokens, experts, inner, width = dims["T"], dims["E"], dims["n"], dims["H"]
    x = torch.randn(tokens, width, generator=generator, device=device)
    if kind == "stressed":
        x *= torch.tensor([1.0, 2.0**-3, 2.0**3], device=device)[torch.arange(tokens, device=device) % 3, None]
        x[:, -1] *= 64.0
    return {
        "x": x.bfloat16(),
        "w13": _words((experts, 2 * inner, width // NIBBLES), generator),
        "w13_scales": _scales((experts, 2 * inner, width // GROUP), kind, generator),
        "w2": _words((experts, width, inner // NIBBLES), generator),
        "w2_scales": _scales((experts, width, inner // GROUP), kind, generator),
        "ids": make_ids(tokens, experts, dims["EP"], kind, generator),
        "weights": make_weights(tokens, generator),
    }


def reference(
    x: Tensor, w13: Tensor, w13_scales: Tensor, w2: Tensor, w2_scales: Tensor, ids: Tensor, weights: Tensor
) -> tuple[Tensor, ...]:
    """(out [T, H] bf16,), in float64 on the dequantised weights of the experts that ids name."""

    def gate_up(expert: int) -> Tensor:
        return dequantise(w13[expert], w13_scales[expert])

    def down(expert: int) -> Tensor:
        return dequantise(w2[expert], w2_scales[expert])

    return (expert_layer(x, ids, weights, gate_up, down),)


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table lacks the output.
    """
    return structure(("out",), expected, got) or vector_distance("out", expected[0], got[0], tolerance, by_size=True)


def flops(dims: dict[str, int]) -> float:
    """2 * 8T / EP * 3nH; dequantisation and activation count for nothing."""
    return layer_flops(dims)


def bytes_moved(dims: dict[str, int]) -> float:
    """Expected for uniform routing: 3nH/2 + 3nH/32 * 2 for each expert hit, 2H for each token with an expert here, 64T
    for ids and weights, 2TH for the output. Nothing between the two projections is counted: a kernel may fuse them.
    """
    tokens, experts, ranks, width = dims["T"], dims["E"], dims["EP"], dims["H"]
    hits = experts_hit(tokens, experts, ranks), tokens_hit(tokens, experts, ranks)
    return layer_bytes((tokens, width), expert_bytes(dims["n"], width), 2.0 * width, hits)


def bytes_of(inputs: dict[str, Any]) -> float:
    """Bytes for these very ids: as `bytes_moved`, with the experts and tokens that they hit."""
    tokens, width = inputs["x"].shape
    inner = inputs["w2"].shape[2] * NIBBLES
    return layer_bytes((tokens, width), expert_bytes(inner, width), 2.0 * width, count_hits(inputs["ids"]))


def expert_bytes(inner: int, width: int) -> float:
    """Bytes of one expert's three matrices: half a byte a weight, two bytes for each 32."""
    return 3.0 * inner * width * (0.5 + 2.0 / GROUP)


def dequantise(words: Tensor, scales: Tensor) -> Tensor:
    """words [r, k/8] int32 and scales [r, k/32] to weights [r, k] float64, exactly."""
    import torch

    shifts = NIBBLE_BITS * torch.arange(NIBBLES, dtype=torch.int32, device=words.device)
    nibbles = (words[:, :, None] >> shifts) & (2**NIBBLE_BITS - 1)
    grouped = (nibbles - ZERO_POINT).double().reshape(*scales.shape, GROUP)
    return (grouped * scales.double()[:, :, None]).flatten(1)


def _words(shape: tuple[int, int, int], generator: Generator) -> Tensor:
    import torch

    return torch.randint(-INT32_END, INT32_END, shape, dtype=torch.int32, generator=generator, device=generator.device)


def _scales(shape: tuple[int, int, int], kind: str, generator: Generator) -> Tensor:
    """Scales with which unit inputs give outputs of about unit size; stressed ones vary between groups of inputs."""
    import torch

    device, groups = generator.device, shape[-1]
    scales = 0.5 + torch.rand(shape, generator=generator, device=device, dtype=torch.bfloat16)
    if kind == "stressed":
        # alike for all experts, so that none of a token's is lost beside the others
        scales *= torch.exp2(6.0 * torch.rand(groups, generator=generator, device=device) - 3.0).bfloat16()
    return scales / (INTEGER_RMS * (groups * GROUP) ** 0.5)
