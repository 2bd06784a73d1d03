"""Naive residual add, RMSNorm and e4m3 quantisation: a program holds a whole row and goes over it once.

The e4m3 codes are made by integer arithmetic, which needs no fp8 instructions.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "norm_kernel": [triton.Config({}, num_warps=8)],
}
HIDDEN = 7168
GROUP = 128
GROUPS = 56
# the next power of two: Triton's blocks have no other sizes
GROUPS_PADDED = 64


@triton.jit
def e4m3_codes(value):
    """fp32 in -448 to 448 to e4m3 bytes, rounded to nearest even."""
    bits = value.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    # 20 of the 23 mantissa bits go, and the exponent's bias falls from 127 to 7
    normal = ((size + 0x7FFFF + ((size >> 20) & 1)) >> 20) - (120 << 3)
    # below 2^-6 the step is 2^-9: that of fp32 just above 2^14
    small = (tl.abs(value) + 16384.0).to(tl.int32, bitcast=True) & 0xF
    code = tl.where(tl.abs(value) < 0.015625, small, normal)
    return (code | ((bits >> 24) & 0x80)).to(tl.uint8)


@triton.autotune(configs=AUTOTUNE_CONFIGS["norm_kernel"], key=[])
@triton.jit
def norm_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    residual_out_ptr,
    codes_ptr,
    scales_ptr,
    eps,
    HIDDEN: tl.constexpr,
    GROUP: tl.constexpr,
    GROUPS: tl.constexpr,
    GROUPS_PADDED: tl.constexpr,
):
    """One row: residual_out [T, 7168] bf16, codes [T, 7168] bytes, scales [T, 56] fp32."""
    row = tl.program_id(0).to(tl.int64)
    group = tl.arange(0, GROUPS_PADDED)
    inside = group[:, None] < GROUPS
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    x = tl.load(x_ptr + row * HIDDEN + column, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * HIDDEN + column, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    total = x + residual
    tl.store(residual_out_ptr + row * HIDDEN + column, total.to(residual_out_ptr.dtype.element_ty), mask=inside)
    mean = tl.sum(tl.sum(total * total, axis=1), axis=0) / HIDDEN
    normal = total * tl.rsqrt(mean + eps) * weight
    scale = tl.maximum(tl.max(tl.abs(normal), axis=1), 1e-10) / 448.0
    quotient = tl.minimum(tl.maximum(normal / scale[:, None], -448.0), 448.0)
    tl.store(codes_ptr + row * HIDDEN + column, e4m3_codes(quotient), mask=inside)
    tl.store(scales_ptr + row * GROUPS + group, scale, mask=group < GROUPS)


def add_rmsnorm_fp8_g128(x, residual, weight, eps):
    """(residual_out, y, scales) of x and residual [T, 7168] bf16 and weight [7168] bf16."""
    tokens = x.shape[0]
    residual_out = torch.empty_like(x)
    y = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty((tokens, GROUPS), dtype=torch.float32, device=x.device)
    norm_kernel[(tokens,)](
        x,
        residual,
        weight,
        residual_out,
        y.view(torch.uint8),
        scales,
        eps,
        HIDDEN=HIDDEN,
        GROUP=GROUP,
        GROUPS=GROUPS,
        GROUPS_PADDED=GROUPS_PADDED,
    )
    return residual_out, y, scales
