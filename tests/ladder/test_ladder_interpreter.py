"""The mended interpreter is right where Triton's is known to be wrong, and each mend has a case that shows it."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")
pytest.importorskip("torch")

# prints, for each case, whether the kernel gave what torch gives; argument `mended` or `plain`
CASES = """
import json, sys
mended = sys.argv[1] == "mended"
if mended:
    from kernelgen.ladder import interpreter
    tuning = interpreter.install()
import torch, triton
import triton.language as tl

RESULTS = {}

def case(function):
    try:
        RESULTS[function.__name__] = bool(function())
    except Exception as error:
        RESULTS[function.__name__] = False

@triton.jit
def dot_kernel(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))

@case
def bf16_dot():
    a, b = (torch.randn(16, 16).bfloat16() for _ in range(2))
    out = torch.empty(16, 16)
    dot_kernel[(1,)](a, b, out, N=16)
    return torch.allclose(out, a.float() @ b.float(), atol=1e-4)

@triton.jit
def arithmetic_kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i) * tl.load(y + i))

@case
def bf16_arithmetic():
    x, y = (torch.randn(64).bfloat16() for _ in range(2))
    out = torch.empty_like(x)
    arithmetic_kernel[(1,)](x, y, out, N=64)
    return torch.equal(out, x + y * y)

@triton.jit
def constant_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) * 2.0)

@case
def bf16_constant():
    x = torch.randn(64).bfloat16()
    out = torch.empty_like(x)
    constant_kernel[(1,)](x, out, N=64)
    return torch.equal(out, x * 2.0)

@triton.jit
def sum_kernel(x, out, N: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, N)), axis=0))

@case
def bf16_sum():
    x = torch.tensor([1.5, -0.25, 3.0, -8.0]).bfloat16()
    out = torch.empty(1)
    sum_kernel[(1,)](x, out, N=4)
    return out.item() == -3.75

@triton.jit
def cast_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))

def cast(x, dtype):
    out = torch.empty(x.shape, dtype=dtype)
    cast_kernel[(1,)](x, out, N=x.numel())
    return out

ALL_HALVES = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16).view(torch.float16).float()
ALL_HALVES = torch.where(ALL_HALVES.abs() <= 448.0, ALL_HALVES, 0.0)

@case
def fp32_to_bf16():
    x = torch.randn(4096)
    return torch.equal(cast(x, torch.bfloat16), x.bfloat16())

@case
def int_to_bf16():
    x = torch.arange(-300, 212, dtype=torch.int32)
    return torch.equal(cast(x, torch.bfloat16), x.bfloat16())

@case
def fp32_to_e4m3():
    wanted = ALL_HALVES.to(torch.float8_e4m3fn)
    return torch.equal(cast(ALL_HALVES, torch.float8_e4m3fn).view(torch.uint8), wanted.view(torch.uint8))

@case
def fp32_to_e5m2():
    wanted = ALL_HALVES.to(torch.float8_e5m2)
    return torch.equal(cast(ALL_HALVES, torch.float8_e5m2).view(torch.uint8), wanted.view(torch.uint8))

@triton.autotune([triton.Config({"STEP": 1}), triton.Config({"STEP": 10})], key=[])
@triton.jit
def in_place_kernel(x, STEP: tl.constexpr):
    tl.store(x, tl.load(x) + STEP)

@case
def autotuned_in_place():
    x = torch.zeros(1)
    in_place_kernel[(1,)](x)
    return x.item() == 1.0

if mended:
    @case
    def every_configuration_has_its_turn():
        got = []
        for choice in range(tuning.choices):
            tuning.choose(choice)
            x = torch.zeros(1)
            in_place_kernel[(1,)](x)
            got.append(x.item())
        return got == [1.0, 10.0] and "STEP: 10" in tuning.chosen()

    @triton.jit
    def truncate_kernel(x, out):
        tl.store(out, tl.load(x).to(tl.bfloat16, fp_downcast_rounding="rtz"))

    @case
    def rounding_toward_zero_where_asked_for():
        out = torch.empty(1, dtype=torch.bfloat16)
        truncate_kernel[(1,)](torch.tensor([1.0 + 2**-8 + 2**-9]), out)
        return out.item() == 1.0

print(json.dumps(RESULTS))
"""

LOOP = """
import json
import triton
from triton.runtime import interpreter as theirs
from kernelgen.errors import HarnessError
from kernelgen.ladder import interpreter, offline
patch_tensor = theirs._patch_lang_tensor

def as_triton_3_6_with_numpy_2_4(tensor, scope):
    patch_tensor(tensor, scope)
    def refuse(self):
        raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
    scope.set_attr(tensor, "__index__", refuse)

theirs._patch_lang_tensor = as_triton_3_6_with_numpy_2_4
import torch
import triton.language as tl

@triton.jit
def loop_kernel(out, n):
    total = 0
    for i in range(0, n):
        total += i
    tl.store(out, total)

def run():
    out = torch.zeros(1, dtype=torch.int32)
    try:
        loop_kernel[(1,)](out, 5)
    except Exception as error:
        return repr(error)
    return out.item()

plain = run()
interpreter.install()
refused = None
try:
    offline.install()
except HarnessError as error:
    refused = str(error)
print(json.dumps([plain, run(), refused]))
"""


def test_each_mend_is_right_where_the_interpreter_alone_is_wrong(run_script) -> None:
    plain = run_script(CASES, "plain", TRITON_INTERPRET="1")
    mended = run_script(CASES, "mended", TRITON_INTERPRET="1")
    assert [name for name, right in mended.items() if not right] == []
    assert [name for name, right in plain.items() if right] == []
    assert plain.keys() < mended.keys()


def test_a_loop_may_have_a_run_time_bound_under_any_numpy_and_compiling_is_refused(run_script) -> None:
    plain, mended, refused = run_script(LOOP, TRITON_INTERPRET="1")
    assert "only 0-dimensional" in plain
    assert mended == 10
    assert refused == "Compiling offline needs a process of its own: TRITON_INTERPRET is set here."
