"""L2 through the interpreter lets pass what honest kernels are written like, and never fails what it cannot run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rows_candidates import ALLOCATE, HONEST, LAUNCH, PRODUCT, changed, judge

from kernelgen.ladder.server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("interpreter") as running:
        yield running


LOAD = "tl.load(w_ptr + columns, mask=inside, other=0.0)"
ROW = "    row = tl.program_id(0).to(tl.int64)\n"
LIBDEVICE = "from triton.language.extra import libdevice\n"
CUDA_LIBDEVICE = "from triton.language.extra.cuda import libdevice\n"


def _persistent(loop: str, wide: str = ".to(tl.int64)") -> str:
    """The kernel with a loop over its rows."""
    head, _, body = HONEST.partition(ROW)
    body, _, rest = body.partition("\n\ndef rows(")
    inner = "".join(f"    {line}\n" for line in body.rstrip().splitlines())
    whole = f"{head}    for one in {loop}:\n        row = one{wide}\n{inner}\n\ndef rows({rest}"
    return whole.replace("factor, N,", "factor, M, N,").replace(
        LAUNCH, LAUNCH.replace("(x.shape[0],)]", "(2,)]").replace("factor,", "factor, x.shape[0],")
    )


PASSES = {
    "asserts is_cuda": changed(ALLOCATE, "    assert x.is_cuda and not x.is_cpu and x.get_device() == 0\n" + ALLOCATE),
    "allocates on cuda": changed("device=x.device", 'device="cuda"'),
    "device by its number": changed("device=x.device", 'device=torch.device("cuda", torch.cuda.current_device())'),
    "device that is a number": changed("device=x.device", "device=x.get_device()"),
    "within the device": changed(LAUNCH, "    with torch.cuda.device(x.device):\n    " + LAUNCH),
    "synchronizes": changed(
        LAUNCH, LAUNCH + "    torch.cuda.synchronize()\n    torch.cuda.current_stream().synchronize()\n"
    ),
    "moves to cuda": changed(ALLOCATE, "    x = x.cuda()\n" + ALLOCATE),
    "sizes at import": changed(
        "\n\n@triton.jit", '\nSMS = torch.cuda.get_device_properties("cuda").multi_processor_count\n\n\n@triton.jit'
    ),
    "fma": CUDA_LIBDEVICE + changed(f"x * {LOAD} * factor", f"libdevice.fma(x * {LOAD}, factor, 0.0)"),
    "tanh": LIBDEVICE + changed("* factor\n", "* (factor + 0.0 * libdevice.tanh(x))\n"),
    "exp and pow": LIBDEVICE
    + changed("* factor\n", "* (factor + libdevice.pow(x, 2.0) * 0.0 + libdevice.exp(x * 0.0) - 1.0)\n"),
    "persistent": _persistent("range(tl.program_id(0), M, tl.num_programs(0))"),
    "persistent with tl.range": _persistent("tl.range(tl.program_id(0), M, tl.num_programs(0), num_stages=2)"),
    "loop of 64 bits": _persistent("tl.range(tl.program_id(0).to(tl.int64), M, 2)", ""),
    "unrolled": changed(PRODUCT, "        for _ in tl.static_range(2):\n            total += 0.0\n" + PRODUCT),
    "reads a scale": changed(ALLOCATE, ALLOCATE + "    scale = w[0].item() + sum(w[:4].tolist())\n"),
    "reads what is whole": changed(ALLOCATE, ALLOCATE + "    torch.arange(64).tolist()\n"),
}  # fmt: skip
ASM = "tl.inline_asm_elementwise('mul.f32 $0, $1, $2;', '=r,r,r', [x, x], dtype=tl.float32, is_pure=True, pack=1)"
GLUON = """\
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def rows_kernel(x_ptr):
    gl.store(x_ptr, gl.program_id(0))


def rows(x, w, factor):
    y, total = torch.empty_like(x), torch.empty(x.shape[0], device=x.device)
    rows_kernel[(1,)](y)
    return y, total
"""
LACKING = {
    "inline_asm": changed(PRODUCT, f"{PRODUCT}        y += 0.0 * {ASM}\n"),
    "libdevice.clz": LIBDEVICE + changed(PRODUCT, PRODUCT + "        y += libdevice.clz(columns)\n"),
    "Gluon": GLUON,
    "tl.extra.cuda.smid()": changed(PRODUCT, PRODUCT + "        y += 0 * tl.extra.cuda.smid()\n"),
}


@pytest.mark.parametrize("name", PASSES)
def test_an_honest_kernel_passes(name: str, server: Server) -> None:
    result = judge(PASSES[name], server)
    assert result.outcome == "passed", result.faults


@pytest.mark.parametrize("construct", LACKING)
def test_what_the_interpreter_lacks_is_inconclusive_and_named(construct: str, server: Server) -> None:
    result = judge(LACKING[construct], server)
    assert (result.outcome, result.faults) == ("inconclusive", ()), result.reason
    assert construct in result.reason
    assert result.reason.endswith("judge on a GPU")


def test_a_loop_and_libdevice_are_computed_and_not_waved_through(server: Server) -> None:
    wrong = PASSES["fma"].replace("factor, 0.0)", "factor, 0.5)")
    assert judge(wrong, server).outcome == "failed"
    assert judge(PASSES["persistent"].replace("row = one", "row = 0 * one"), server).outcome == "failed"


def test_an_error_of_the_candidates_own_is_not_the_interpreters(server: Server) -> None:
    result = judge(changed(ALLOCATE, "    raise NotImplementedError('inline_asm not supported')\n" + ALLOCATE), server)
    assert (result.outcome, result.faults[0].check) == ("failed", "correctness.raised")
