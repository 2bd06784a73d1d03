"""The policy refuses nothing that honest host wrappers and kernels do."""

# ruff: noqa: E501 - a snippet's lines are as long as a candidate's
from __future__ import annotations

import pytest
from policy_subjects import ALLOCATE, HOST, LAUNCH, TRITON, host, judged, told

WHOLE = {
    "autotuned, with configurations of its own": TRITON.replace(
        "@triton.jit",
        '@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (128, 256) for w in (4, 8)], key=["K"])\n'
        "@triton.jit",
    )
    + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    kernel[lambda meta: (triton.cdiv(M, 1),)](x, w, seqlens, out, sums, M, K, N, eps)\n"
    "    return out, sums\n",
    "heuristics": TRITON.replace(
        "@triton.jit", '@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["N"])})\n@triton.jit'
    )
    + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    kernel[(M,)](x, w, seqlens, out, sums, M, K, N, eps)\n    return out, sums\n",
    "table of configurations above": TRITON.replace(
        "@triton.jit", '@triton.autotune(configs=AUTOTUNE_CONFIGS["kernel"], key=["M", "K"])\n@triton.jit'
    )
    + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    kernel[(M,)](x, w, seqlens, out, sums, M, K, N, eps)\n    return out, sums\n",
    "unused imports": "import math\nimport os\nimport time\nimport numpy as np\nfrom typing import Optional, Tuple\n"
    + host(""),
    "a reference and a benchmark beside it": host("")
    + """
import time


def reference(x, w, seqlens, eps):
    out = torch.matmul(x, w)
    return out, out.float().sum(dim=-1)


def bench():
    began = time.perf_counter()
    x = torch.randn(16, 16, device="cuda")
    reference(x, x, None, 1.0)
    torch.cuda.synchronize()
    return triton.testing.do_bench(lambda: reference(x, x, None, 1.0)), time.perf_counter() - began


if __name__ == "__main__":
    torch.manual_seed(0)
    print(bench(), torch.allclose(*reference(torch.randn(4, 4), torch.randn(4, 4), None, 1.0)))
""",
    "a newer part of Triton where there is one": "try:\n    from triton.tools.tensor_descriptor import TensorDescriptor\n"
    "except ImportError:\n    TensorDescriptor = None\n" + host(""),
    "TMA descriptors": TRITON.replace(
        "import torch\n", "import torch\nfrom triton.tools.tensor_descriptor import TensorDescriptor\n"
    )
    + f"""
def alloc(size: int, alignment: int, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


def run(x, w, seqlens, eps):
{ALLOCATE}    triton.set_allocator(alloc)
    described = TensorDescriptor(x, shape=[M, K], strides=[K, 1], block_shape=[64, 64])
    other = TensorDescriptor.from_tensor(w, [64, 64])
    kernel[(M,)](described, other, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK)
    return out, sums
""",
    "a persistent grid": TRITON
    + f"""
NUM_SMS = None


def num_sms(device):
    global NUM_SMS
    if NUM_SMS is None:
        NUM_SMS = torch.cuda.get_device_properties(device).multi_processor_count
    return NUM_SMS


def run(x: torch.Tensor, w: torch.Tensor, seqlens: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
{ALLOCATE}    grid = (min(num_sms(x.device), triton.cdiv(M, 1)),)
    kernel[grid](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK)
    return out, sums
""",
    "numbers kept by functools": "import functools\n"
    + TRITON
    + f"""
@functools.lru_cache(maxsize=None)
def block_for(n: int) -> int:
    return max(16, triton.next_power_of_2(n))


@functools.cache
def sms(index):
    return torch.cuda.get_device_properties(index).multi_processor_count


def run(x, w, seqlens, eps):
{ALLOCATE}    kernel[(min(M, sms(x.device.index)),)](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=block_for(N))
    return out, sums
""",
    "a dataclass of parameters": "from dataclasses import dataclass\n"
    + TRITON
    + f"""
@dataclass(frozen=True)
class Plan:
    rows: int
    block: int

    @property
    def grid(self):
        return (self.rows,)


def plan(m, n):
    return Plan(rows=m, block=triton.next_power_of_2(n))


def run(x, w, seqlens, eps):
{ALLOCATE}    chosen = plan(M, N)
    kernel[chosen.grid](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=chosen.block)
    return out, sums
""",
    "a choice of kernels in a table": TRITON
    + f"""
@triton.jit
def small_kernel(x_ptr, w_ptr, seqlens_ptr, out_ptr, sums_ptr, M, K, N, eps, BLOCK: tl.constexpr):
    tl.store(sums_ptr + tl.program_id(0), 0.0)


KERNELS = {{"small": small_kernel, "large": kernel}}


def run(x, w, seqlens, eps):
{ALLOCATE}    KERNELS["small" if M < 64 else "large"][(M,)](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK)
    return out, sums
""",
    "keyword-only, with further defaults": TRITON
    + f"def run(*, x, w, seqlens, eps, num_warps=4, **ignored):\n{ALLOCATE}"
    "    kernel[(M,)](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK, num_warps=num_warps)\n    return out, sums\n",
    "assembly in a kernel": TRITON
    + f"""
@triton.jit
def fast_exp(value):
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [value], dtype=tl.float32, is_pure=True, pack=1)


def run(x, w, seqlens, eps):
{ALLOCATE}{LAUNCH}    return out, sums
""",
    "outputs by their views": TRITON
    + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    flat = out.view(-1)\n    rows = sums.view(torch.int32)\n"
    "    kernel[(M,)](x, w, seqlens, flat, rows, M, K, N, eps, BLOCK=BLOCK)\n    return out, sums\n",
    "arguments in a dict": TRITON
    + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    given = dict(out_ptr=out, sums_ptr=sums, M=M, K=K, N=N, eps=eps)\n"
    "    kernel[(M,)](x, w, seqlens, **given, BLOCK=BLOCK)\n    return out, sums\n",
    "outputs in a list": TRITON
    + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    results = []\n    results.append(out)\n    results.append(sums)\n"
    "    kernel[(M,)](x, w, seqlens, *results, M, K, N, eps, BLOCK=BLOCK)\n    return tuple(results)\n",
    "a class that launches": TRITON
    + f"class Op:\n    def __init__(self, block):\n        self.block = block\n\n    def launch(self, x, w, seqlens, out, sums, M, K, N, eps):\n"
    "        kernel[(M,)](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=self.block)\n\n\nOP = Op(128)\n\n\n"
    f"def run(x, w, seqlens, eps):\n{ALLOCATE}    OP.launch(x, w, seqlens, out, sums, M, K, N, eps)\n    return out, sums\n",
    "errors said more clearly": TRITON
    + f"""
def run(x, w, seqlens, eps):
{ALLOCATE}    try:
        kernel[(M,)](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK)
    except Exception as error:
        raise RuntimeError(f"the launch failed for {{M}} rows") from error
    return out, sums
""",
}
HOSTS = {
    "nothing more": "",
    "zeroed counters": "counts = torch.zeros((M,), dtype=torch.int32, device=x.device)",
    "filled buffers": "sums.zero_()\nout.fill_(0)\nout[:] = 0",
    "views and strides": "flat = x.view(-1, K).contiguous()\nstride = flat.stride(0) * flat.element_size()\nturned = w.t()\n"
    "wide = w.transpose(0, 1).reshape(N, K).unsqueeze(0).expand(2, N, K)",
    "bytes": "codes = x.view(torch.uint8)\nhalves = w.view(torch.int16)",
    "casts of metadata": "lengths = seqlens.to(torch.int32)\nif lengths.device != x.device:\n    lengths = lengths.to(x.device)",
    "longest length to the host": "longest = int(seqlens.max().item())\ntotal = int(seqlens.sum())\nblocks = triton.cdiv(longest, 64)",
    "checks": "assert x.is_cuda or True\nassert x.dtype == torch.bfloat16 and x.is_contiguous(), x.shape\n"
    'if x.ndim != 2 or w.shape[0] != K:\n    raise ValueError(f"bad shapes {tuple(x.shape)}")',
    "alignment": "aligned = x.data_ptr() % 16 == 0 and w.data_ptr() % 16 == 0\nEVEN = K % BLOCK == 0",
    "pointers of a group": "pointers = torch.tensor([x.data_ptr(), w.data_ptr()], dtype=torch.int64, device=x.device)",
    "powers and shapes": "block = min(1024, max(32, triton.next_power_of_2(N)))\nwarps = 4 if block <= 256 else 8\n"
    "sizes = [d for d in x.shape]\nsizes.sort()\nbiggest = max(sizes) * sum(sizes) // len(sizes)\nsizes.append(M * K)",
    "new tensors of a tensor": "scratch = x.new_empty((M, 4), dtype=torch.float32)\nmore = x.new_zeros(M)\n"
    "other = torch.empty_like(x)\nlike = torch.full((M,), float('-inf'), device=x.device)",
    "on its device": "with torch.cuda.device(x.device):\n    index = torch.cuda.current_device()",
    "empty batch": "if M == 0:\n    return out, sums",
    "literal getattr": "index = getattr(x.device, 'index', None)\nnewer = hasattr(tl, 'make_tensor_descriptor')\n"
    "code = getattr(torch, 'float8_e4m3fn', None)",
    "the interpreter's dot": "upcast = triton.knobs.runtime.interpret",
    "a nested grid": "def grid(meta):\n    return (triton.cdiv(M, meta['BLOCK']),)",
    "limits of types": "largest = torch.finfo(torch.float8_e4m3fn).max\nlowest = torch.iinfo(torch.int32).min\nscale = 1.0 / largest",
    "which card": "major, minor = torch.cuda.get_device_capability(x.device)\nhopper = major == 9\n"
    "sms = torch.cuda.get_device_properties(x.device).multi_processor_count",
    "allocation by choice": "few = M < 32\ncounts = (torch.empty if few else torch.zeros)((M,), dtype=torch.int32, device=x.device)",
    "several at once": "one, two = (torch.empty((size,), device=x.device) for size in (M, N))",
    "a property that may be missing": "try:\n    sms = torch.cuda.get_device_properties(0).multi_processor_count\n"
    "except RuntimeError:\n    sms = 132",
    "no gradient": "with torch.no_grad():\n    pass",
    "names reused": "k = x.shape[1]\nx_rows = x\nscale = K ** -0.5\nn = N\nn += 1\nn = n * 2 if n % 2 else n",
    "offsets of constants": "steps = torch.arange(0, 8, device=x.device, dtype=torch.int32)",
}
FURTHER = {
    "stream for launch": host("s = torch.cuda.current_stream(x.device).cuda_stream"),
    "device_of": host("with torch.cuda.device_of(x):\n    pass"),
    "contig choice": host(
        "x = x if x.is_contiguous() else x.contiguous()\nw = w.contiguous() if w.stride(-1) != 1 else w"
    ),
    "cpu list": host(
        "lens = seqlens.cpu().tolist()\nlongest = max(lens)\ntotal = sum(lens)\norder = sorted(range(len(lens)), key=lambda i: -lens[i])"
    ),
    "cfg get": host(
        "warps = {64: 4}.get(BLOCK, 8)\ncfg = CONFIGS[min(CONFIGS, key=lambda m: abs(m - M))]",
        top="CONFIGS = {1: dict(BLOCK=64), 64: dict(BLOCK=128)}",
    ),
    "math": host("scale = 1.0 / math.sqrt(K)\nlg = math.log2(M + 1)", top="import math"),
    "namedtuple": host(
        "o = Out(out, sums)",
        top="from typing import NamedTuple\nclass Out(NamedTuple):\n    out: torch.Tensor\n    sums: torch.Tensor",
    ),
    "logging": host("log.debug('x %s', M)", top="import logging\nlog = logging.getLogger(__name__)"),
    "slice result": host("", result="out[:M], sums[:M]"),
    "view result": host("", result="out.view(M, N), sums.reshape(-1)"),
    "lambda META": host("grid = lambda META: (triton.cdiv(M, META['BLOCK']) * triton.cdiv(N, 128),)"),
    "zeros int": host(
        "lock = torch.zeros(1024, dtype=torch.int32, device='cuda')\ncu = torch.zeros(M + 1, dtype=torch.int32, device=x.device)"
    ),
    "helper alloc": host(
        "a, b = make(M, N, x.device, x.dtype)",
        top="def make(m, n, device, dtype):\n    return torch.empty((m, n), device=device, dtype=dtype), torch.empty(m, device=device)",
    ),
    "enumerate zip": host("for i, (a, b) in enumerate(zip(x.shape, w.shape)):\n    assert a > 0 and b > 0"),
    "None default args": host(
        "o = f(x, None)", top="def f(a, b=None):\n    if b is None:\n        b = torch.empty_like(a)\n    return b"
    ),
    "size compare tensor": host(
        "if x.shape[0] == seqlens.shape[0] and x.dtype == w.dtype and x.device == w.device:\n    pass"
    ),
    "stride tuple": host("s = (*x.stride(), *w.stride())\nsx0, sx1 = x.stride()"),
    "numel math": host("n = x.numel() // K\nn = n * x.element_size() + 3\nblocks = -(-n // 128)"),
    "prev pow2": host("p = 1 << (N - 1).bit_length()\nq = N & -N"),
    "string dtype": host(
        "name = str(x.dtype).split('.')[-1]\nparts = name.split('_')\nparts.sort()\nidx = parts.index(name)\nc = parts.count('a')"
    ),
    "dict update": host("kw = {}\nkw.update(num_warps=4)\nkw['num_stages'] = 3"),
    "constexpr global": host("", top="LOG2E: tl.constexpr = tl.constexpr(1.44)\nMAX = tl.constexpr(4)"),
    "prune configs": TRITON.replace(
        "@triton.jit",
        "def prune(configs, named_args, **kwargs):\n    k = named_args['K']\n    return [c for c in configs if c.kwargs['BLOCK'] <= k] or configs\n\n\n@triton.autotune(configs=[triton.Config({'BLOCK': 128})], key=['K'], prune_configs_by={'early_config_prune': prune})\n@triton.jit",
        1,
    )
    + HOST.replace(", BLOCK=BLOCK", ""),
    "pre hook zero": TRITON.replace(
        "@triton.jit",
        "def zero(nargs):\n    nargs['sums_ptr'].zero_()\n\n\n@triton.autotune(configs=[triton.Config({'BLOCK': 128}, pre_hook=zero)], key=['K'])\n@triton.jit",
        1,
    )
    + HOST.replace(", BLOCK=BLOCK", ""),
    "pre hook desc": TRITON.replace(
        "@triton.jit",
        "def hook(nargs):\n    if not isinstance(nargs['x_ptr'], int):\n        nargs['x_ptr'].block_shape = [nargs['BLOCK'], 64]\n\n\n@triton.autotune(configs=[triton.Config({'BLOCK': 128}, pre_hook=hook)], key=['K'])\n@triton.jit",
        1,
    )
    + HOST.replace(", BLOCK=BLOCK", ""),
    "device props via driver": host(
        "d = triton.runtime.driver.active.get_current_device()\np = triton.runtime.driver.active.utils.get_device_properties(d)\nsm = p['multiprocessor_count']"
    ),
    "warmup regs": host(
        "k = kernel.warmup(x, w, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK, grid=(1,))\nk._init_handles()\nn = k.n_regs"
    ),
    "fn skip autotune": TRITON.replace(
        "@triton.jit", "@triton.autotune(configs=[triton.Config({'BLOCK': 128})], key=['K'])\n@triton.jit", 1
    )
    + HOST.replace("kernel[(M,)]", "kernel.fn[(M,)]"),
    "split chunk": host("gate, up = x.chunk(2, dim=-1)\na, b = x.split([K // 2, K - K // 2], dim=1)"),
    "flatten": host("f = x.flatten()\ng = x[..., 0]\nh = x[None, :, :]\ni = x.unsqueeze(0)[:, :M]"),
    "while": host("n = 1\nwhile n < N:\n    n *= 2"),
    "assert isinstance": host("assert isinstance(x, torch.Tensor) and isinstance(eps, (int, float))"),
    "class with config": host(
        "c = Cfg(M)\nblock = c.block()",
        top="class Cfg:\n    def __init__(self, m):\n        self.m = m\n        self.table = {}\n    def block(self):\n        return 64 if self.m < 64 else 128",
    ),
    "fp8 alloc view": host(
        "q = torch.empty((M, K), dtype=torch.float8_e4m3fn, device=x.device)\nq8 = q.view(torch.uint8)"
    ),
    "dtype map": host("t = MAP[x.dtype]", top="MAP = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}"),
    "to same dtype": host(
        "b = seqlens.to(device=x.device, dtype=torch.int32, non_blocking=True)\nf = sums.float()\nx2 = x.to(torch.bfloat16)"
    ),
    "raise from except key": host("try:\n    cfg = T[M]\nexcept KeyError:\n    cfg = T[0]", top="T = {0: 128}"),
    "contextvar none": host("from contextlib import nullcontext\nwith nullcontext():\n    pass"),
    "TYPE_CHECKING": host(
        "", top="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from collections.abc import Callable"
    ),
    "enum": host("m = Mode.FAST.value", top="import enum\nclass Mode(enum.Enum):\n    FAST = 1"),
    "compute capability const": host(
        "", top="HAS_TMA = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 9\nDEVICE = 'cuda'"
    ),
    "nonlocal counter": host("n = 0\ndef bump(k):\n    nonlocal n\n    n += k\n    return n\nbump(3)"),
    "list of tensors in call": host(
        "bufs = [torch.empty(M, device=x.device) for _ in range(3)]\nbufs[0].zero_()\na, *rest = bufs"
    ),
    "inline ints": host("seq = [int(v) for v in seqlens.tolist()]\nbig = [s for s in seq if s > 64]\nseq.append(1)"),
}
TILELANG = """\
import functools

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-2, -1])
def build(M, N, K, block=64, dtype="bfloat16", accum="float32"):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype), S: T.Tensor((M,), accum)
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            b = T.alloc_shared((block, block), dtype)
            c = T.alloc_fragment((block, block), accum)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=3):
                T.copy(A[by * block, k * block], a)
                T.copy(B[k * block, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])
            for i in T.Parallel(block):
                S[by * block + i] = c[i, 0]

    return main
"""
TILELANGS = {
    "a kernel for each shape, by tilelang's own cache": TILELANG
    + "def run(x, w, seqlens, eps):\n    M, K = x.shape\n    kernel = build(M, w.shape[1], K)\n    out, sums = kernel(x, w)\n"
    "    return out, sums\n",
    "kernels kept by lru_cache": TILELANG
    + "@functools.lru_cache(maxsize=None)\ndef kernel_for(M, N, K):\n    return build(M, N, K, block=128)\n\n\n"
    "def run(x, w, seqlens, eps):\n    M, K = x.shape\n    return kernel_for(M, w.shape[1], K)(x, w)\n",
    "kernels kept in a table": TILELANG
    + "KERNELS = {}\n\n\ndef run(x, w, seqlens, eps):\n    key = (tuple(x.shape), w.shape[1])\n    if key not in KERNELS:\n"
    "        KERNELS[key] = build(x.shape[0], w.shape[1], x.shape[1])\n    out, sums = KERNELS[key](x, w)\n    return out, sums\n",
    "compiled by hand into given outputs": TILELANG.replace("@tilelang.jit(out_idx=[-2, -1])\n", "")
    + "@functools.cache\ndef compiled(M, N, K):\n    return tilelang.compile(build(M, N, K), target='cuda')\n\n\n"
    "def run(x, w, seqlens, eps):\n    M, K = x.shape\n    out = torch.empty((M, w.shape[1]), dtype=x.dtype, device=x.device)\n"
    "    sums = torch.empty((M,), dtype=torch.float32, device=x.device)\n"
    "    compiled(M, w.shape[1], K)(x, w, out, sums)\n    return out, sums\n",
}


@pytest.mark.parametrize("name", WHOLE)
def test_an_honest_triton_candidate_passes(name: str) -> None:
    result = judged(WHOLE[name])
    assert result.outcome == "passed", told(result)


@pytest.mark.parametrize("name", HOSTS)
def test_what_honest_host_functions_do_passes(name: str) -> None:
    result = judged(host(HOSTS[name]))
    assert result.outcome == "passed", told(result)


@pytest.mark.parametrize("name", FURTHER)
def test_the_ways_of_other_peoples_wrappers_pass(name: str) -> None:
    result = judged(FURTHER[name])
    assert result.outcome == "passed", told(result)


@pytest.mark.parametrize("name", TILELANGS)
def test_an_honest_tilelang_candidate_passes(name: str) -> None:
    result = judged(TILELANGS[name])
    assert result.outcome == "passed", told(result)


def test_there_are_enough_honest_twins_to_say_so() -> None:
    assert len(WHOLE) + len(HOSTS) + len(FURTHER) + len(TILELANGS) >= 80
