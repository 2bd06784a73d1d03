"""Naive SiLU, product and e4m3 quantisation: a program for each row and group of 128 columns.

The e4m3 codes are made by integer arithmetic, which needs no fp8 instructions.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "silu_kernel": [triton.Config({"BLOCK_R": 4}, num_warps=4)],
}
GROUP = 128


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


@triton.autotune(configs=AUTOTUNE_CONFIGS["silu_kernel"], key=["rows", "columns"])
@triton.jit
def silu_kernel(gate_up_ptr, codes_ptr, scales_ptr, rows, columns, GROUP: tl.constexpr, BLOCK_R: tl.constexpr):
    """BLOCK_R rows of one group: codes [R, n] bytes, scales [R, n/128] fp32."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    group = tl.program_id(1)
    inside = row[:, None] < rows
    column = group * GROUP + tl.arange(0, GROUP)[None, :]
    gate = tl.load(gate_up_ptr + row[:, None] * 2 * columns + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up_ptr + row[:, None] * 2 * columns + columns + column, mask=inside, other=0.0).to(tl.float32)
    value = gate * tl.sigmoid(gate) * up
    scale = tl.maximum(tl.max(tl.abs(value), axis=1), 1e-10) / 448.0
    quotient = tl.minimum(tl.maximum(value / scale[:, None], -448.0), 448.0)
    tl.store(codes_ptr + row[:, None] * columns + column, e4m3_codes(quotient), mask=inside)
    tl.store(scales_ptr + row * (columns // GROUP) + group, scale, mask=row < rows)


def silu_mul_fp8_g128(gate_up):
    """(y, scales) of gate_up [R, 2n] bf16."""
    rows, columns = gate_up.shape[0], gate_up.shape[1] // 2
    y = torch.empty((rows, columns), dtype=torch.float8_e4m3fn, device=gate_up.device)
    scales = torch.empty((rows, columns // GROUP), dtype=torch.float32, device=gate_up.device)

    def grid(meta):
        return (triton.cdiv(rows, meta["BLOCK_R"]), columns // GROUP)

    silu_kernel[grid](gate_up, y.view(torch.uint8), scales, rows, columns, GROUP=GROUP)
    return y, scales
