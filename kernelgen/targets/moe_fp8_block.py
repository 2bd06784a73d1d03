"""The routed experts of Kimi K2-Instruct's format: e4m3 weights in 128 x 128 blocks, e4m3 activations in groups of 128.

A weight is its code times the fp32 scale of its block; an activation its code times the fp32 scale of its token and
128 inputs. The reference dequantises both and works in float64 throughout: a kernel may quantise the activations
between the projections, or keep them in bf16, and the tolerance allows either. Experts, ids and -1 as in `experts`. One
layer of a rank is 2.1 GB, so weights are made where they are used.
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
from kernelgen.targets.fp8_groups import group_bytes, quantise_groups
from kernelgen.targets.routing import KINDS

if TYPE_CHECKING:
    from torch import Generator, Tensor

BLOCK = 128
# codes of weights: the four octaves from 0.5 to 7.5, where e4m3 has 8 steps each, and a sign
OCTAVES_FROM = 0x30
OCTAVE_CODES = 32
SIGN = 0x80
# root mean square of those values
CODE_RMS = 3.38


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """x [T, H] e4m3 with x_scales [T, H/128] fp32, w13 [E, 2n, H] e4m3 with w13_scales [E, 2n/128, H/128] fp32,
    w2 [E, H, n] e4m3 with w2_scales [E, H/128, n/128] fp32, ids [T, 8] int32, weights [T, 8] fp32 on `device`, the same
    for the same seed.

    Routing as in `experts.make_ids`. Stressed ones have rows of x in turn 1, 1/8 and 8 times as large, with a spike in
    the last input that leaves its group few codes, and scales spread over 2^-3 to 2^3 along the inputs. Raises
    ConfigError for an unknown kind.
    """
    import torch

    if kind not in KINDS:
        raise ConfigError(f"moe_fp8_block has no input kind '{kind}'{nearest(kind, KINDS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    tokens, experts, inner, width = dims["T"], dims["E"], dims["n"], dims["H"]
    x = torch.randn(tokens, width, generator=generator, device=device)
    if kind == "stressed":
        x *= torch.tensor([1.0, 2.0**-3, 2.0**3], device=device)[torch.arange(tokens, device=device) % 3, None]
        x[:, -1] *= 64.0
    codes, x_scales = quantise_groups(x)
    return {
        "x": codes,
        "x_scales": x_scales,
        "w13": _codes((experts, 2 * inner, width), generator),
        "w13_scales": _scales((experts, 2 * inner, width), kind, generator),
        "w2": _codes((experts, width, inner), generator),
        "w2_scales": _scales((experts, width, inner), kind, generator),
        "ids": make_ids(tokens, experts, dims["EP"], kind, generator),
        "weights": make_weights(tokens, generator),
    }


def reference(
    x: Tensor,
    x_scales: Tensor,
    w13: Tensor,
    w13_scales: Tensor,
    w2: Tensor,
    w2_scales: Tensor,
    ids: Tensor,
    weights: Tensor,
) -> tuple[Tensor, ...]:
    """(out [T, H] bf16,), in float64 on the dequantised rows and weights of the experts that ids name."""

    def gate_up(expert: int) -> Tensor:
        return dequantise(w13[expert], w13_scales[expert])

    def down(expert: int) -> Tensor:
        return dequantise(w2[expert], w2_scales[expert])

    rows = (x.double().reshape(*x_scales.shape, BLOCK) * x_scales.double()[:, :, None]).reshape(x.shape)
    return (expert_layer(rows, ids, weights, gate_up, down),)


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table lacks the output.
    """
    return structure(("out",), expected, got) or vector_distance("out", expected[0], got[0], tolerance, by_size=True)


def flops(dims: dict[str, int]) -> float:
    """2 * 8T / EP * 3nH; scales and activation count for nothing."""
    return layer_flops(dims)


def bytes_moved(dims: dict[str, int]) -> float:
    """Expected for uniform routing: 3nH(1 + 4/16384) for each expert hit, H(1 + 4/128) for each token with an expert
    here, 64T for ids and weights, 2TH for the output. Nothing between the projections is counted: they may be fused.
    """
    tokens, experts, ranks, width = dims["T"], dims["E"], dims["EP"], dims["H"]
    hits = experts_hit(tokens, experts, ranks), tokens_hit(tokens, experts, ranks)
    return layer_bytes((tokens, width), expert_bytes(dims["n"], width), group_bytes(1, width), hits)


def bytes_of(inputs: dict[str, Any]) -> float:
    """Bytes for these very ids: as `bytes_moved`, with the experts and tokens that they hit."""
    tokens, width = inputs["x"].shape
    inner = inputs["w2"].shape[2]
    return layer_bytes((tokens, width), expert_bytes(inner, width), group_bytes(1, width), count_hits(inputs["ids"]))


def expert_bytes(inner: int, width: int) -> float:
    """Bytes of one expert's three matrices: a byte a weight, four bytes for each block of 128 x 128."""
    return 3.0 * inner * width * (1.0 + 4.0 / BLOCK**2)


def dequantise(codes: Tensor, scales: Tensor) -> Tensor:
    """codes [r, k] e4m3 and scales [r/128, k/128] fp32 to weights [r, k] float64, exactly."""
    rows, columns = scales.shape
    blocks = codes.double().reshape(rows, BLOCK, columns, BLOCK)
    return (blocks * scales.double()[:, None, :, None]).reshape(codes.shape)


def _codes(shape: tuple[int, int, int], generator: Generator) -> Tensor:
    """Codes of either sign, made as bytes: there is no normal fp32 copy of a layer's weights."""
    import torch

    draw = torch.randint(2 * OCTAVE_CODES, shape, dtype=torch.uint8, generator=generator, device=generator.device)
    signs = (draw & OCTAVE_CODES) * (SIGN // OCTAVE_CODES)
    return ((draw & (OCTAVE_CODES - 1)) + OCTAVES_FROM + signs).view(torch.float8_e4m3fn)


def _scales(shape: tuple[int, int, int], kind: str, generator: Generator) -> Tensor:
    """Scales with which unit inputs give outputs of about unit size; stressed ones vary between blocks of inputs."""
    import torch

    experts, rows, columns = shape
    device, blocks = generator.device, columns // BLOCK
    scales = 0.5 + torch.rand(experts, rows // BLOCK, blocks, generator=generator, device=device)
    if kind == "stressed":
        # alike for all experts, so that none of a token's is lost beside the others
        scales *= torch.exp2(6.0 * torch.rand(blocks, generator=generator, device=device) - 3.0)
    return scales / (CODE_RMS * columns**0.5)
