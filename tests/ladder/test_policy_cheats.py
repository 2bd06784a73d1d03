"""The policy refuses cheats in Python, however they are written, and names the check that found them."""

# ruff: noqa: E501 - a snippet's lines are as long as a candidate's
from __future__ import annotations

import pytest
from policy_subjects import ALLOCATE, HOST, LAUNCH, TRITON, host, judged, told

LIBRARY = {
    "called by its name": host("out = torch.matmul(x, w)"),
    "imported under another name": host("out = f(x, w)", top="from torch import matmul as f"),
    "the module under another name": host("out = t.mm(x, w)", top="import torch as t"),
    "an alias of an alias": host("a = torch\nb = a\nout = b.mm(x, w)"),
    "a walrus": host("if (t := torch) is not None:\n    out = t.mm(x, w)"),
    "a tuple of aliases": host("t, u = torch, tl\nout = t.mm(x, w)"),
    "an operator": host("out = x @ w"),
    "an operator in place": host("x @= w\nout = x"),
    "a method": host("out = x.mm(w)"),
    "a method of a parameter": host("out = helper(x, w)", top="def helper(a, b):\n    return a.bmm(b)"),
    "an unbound method": host("out = torch.Tensor.mm(x, w)"),
    "a method by type": host("out = type(x).mm(x, w)"),
    "the operator module": host("out = operator.matmul(x, w)", top="import operator"),
    "operator under another name": host("out = m(x, w)", top="from operator import matmul as m"),
    "a decorator": host("out = product()", top="def apply(f):\n    return f").replace(
        "out = product()", "@torch.no_grad()\n    def product():\n        return x.matmul(w)\n    out = product()"
    ),
    "a lambda": host("f = lambda a, b: torch.einsum('mk,kn->mn', a, b)\nout = f(x, w)"),
    "a nested function": host(
        "def inner():\n    def deeper():\n        return x.softmax(-1)\n    return deeper()\nout = inner()"
    ),
    "a class attribute": host("out = Holder.f(x, w)", top="class Holder:\n    f = torch.mm"),
    "a default argument": host("out = g(x, w)", top="def g(a, b, f=torch.mm):\n    return f(a, b)"),
    "a table of functions": host("out = OPS['mm'](x, w)", top="OPS = {'mm': torch.mm}"),
    "a partial": host("out = partial(torch.mm, x)(w)", top="from functools import partial"),
    "functional": host("out = F.linear(x, w.t())", top="import torch.nn.functional as F"),
    "functional from torch.nn": host("out = functional.softmax(x, -1)", top="from torch.nn import functional"),
    "a layer": host("out = torch.nn.Linear(4, 4)(x)"),
    "torch.ops": host("out = torch.ops.aten.mm(x, w)"),
    "an operator of torch's packages": host("out = ops.aten.mm.default(x, w)", top="from torch import ops"),
    "the compiler": host("out = g(x, w)", top="@torch.compile\ndef g(a, b):\n    return a * b"),
    "a private product": host("out = torch._scaled_mm(x, w)"),
    "grouped": host("out = torch._grouped_mm(x, w)"),
    "a sort": host("order = torch.argsort(seqlens)\nout = x[order]"),
    "top-k": host("out, _ = x.topk(8)"),
    "a reduction": host("sums = x.sum(dim=-1)"),
    "a reduction of values sent round by the host": host("total = x.sum().item()\nsums.fill_(total)"),
    "indexing": host("order = seqlens.to(torch.int64)\nout = x[order]"),
    "two tensors added": host("out = x + w"),
    "numpy": host("out = np.matmul(x, w)", top="import numpy as np"),
    "another library": host("out = flashinfer.norm.rmsnorm(x, w)", top="import flashinfer"),
    "vllm's operators": host("out = ops.rms_norm(x, w)", top="from vllm import _custom_ops as ops"),
    "a literal getattr": host("out = getattr(torch, 'mm')(x, w)"),
    "a literal getattr of a tensor": host("out = getattr(x, 'matmul')(w)"),
    "a comprehension": host("out = [f(x, w) for f in (torch.mm,)][0]"),
    "a match statement": host("match x:\n    case torch.Tensor(mm=f):\n        out = f(w)"),
    "a full-width letter": host("out = torch.\uff4datmul(x, w)"),
    "hidden in torch's neighbours": host("out = triton.testing.torch.mm(x, w)"),
    "a kernel's body run as Python": host("kernel.fn(x, w, seqlens, out, sums, M, K, N, eps, BLOCK)"),
    "a decorator that is no jit": TRITON.replace("@triton.jit", "@jit", 1).replace(
        "BLOCK = 128", "BLOCK = 128\njit = lambda f: f"
    )
    + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    out = x.mm(w)\n    return out, sums\n",
    "under a main that is none": host("")
    + "\n__name__ = '__main__'\nif __name__ == '__main__':\n    kernel = torch.mm\n",
    "only under a condition": host("if x.is_cuda:\n    pass\nelse:\n    out = torch.mm(x, w)"),
    "only for shapes nobody checks": host("if M > 100000:\n    return torch.mm(x, w), sums"),
    "map": host("out = list(map(torch.mm, [x], [w]))[0]"),
    "quantised by torch": host("out = x.to(torch.float8_e4m3fn)"),
    "an unknown library": host("out = fastgemm.mm(x, w)", top="import fastgemm"),
    "global, bound in a function": host("global f\nf = torch.mm\nout = f(x, w)"),
    "a kernel's body handed on as Python": host("out = list(map(kernel.fn, [x], [w]))[0]"),
}
INTROSPECTION = {
    "a name put together": host("out = getattr(x, 'mat' + 'mul')(w)"),
    "a name in an f-string": host("out = getattr(torch, f'{\"m\"}m')(x, w)"),
    "a name backwards": host("out = getattr(torch, 'mm'[::-1])(x, w)"),
    "getattr under another name": host("g = getattr\nout = g(torch, 'm' * 2)(x, w)"),
    "an attrgetter": host("out = attrgetter('mm')(x)(w)", top="from operator import attrgetter"),
    "a methodcaller": host("out = operator.methodcaller('mm', w)(x)", top="import operator"),
    "globals": host("out = globals()['torch'].mm(x, w)"),
    "vars": host("out = vars(torch)['m' + 'm'](x, w)"),
    "a dict of names": host("out = torch.__dict__['mm'](x, w)"),
    "base classes": host("out = x.__class__.__base__.mm(x, w)"),
    "subclasses": host("out = ().__class__.__bases__[0].__subclasses__()"),
    "a star import": host("out = mm(x, w)", top="from torch import *"),
    "modules": host("out = sys.modules['torch'].mm(x, w)", top="import sys"),
    "sys by way of another module": host("out = dataclasses.sys.modules['torch'].mm(x, w)", top="import dataclasses"),
    "frames": host("frame = sys._getframe(1)\nframe.f_locals", top="import sys"),
    "the caller's frame": host("expected = inspect.currentframe().f_back.f_locals", top="import inspect"),
    "garbage": host("for thing in gc.get_objects():\n    pass", top="import gc"),
    "a function's inside": host("run.__code__ = None"),
    "globals of a function": host("out = triton.cdiv.__globals__"),
    "a module handed on": host("out = helper(torch)(x, w)", top="def helper(t):\n    return t.empty"),
    "a module in a container": host("out = [torch][0].empty(1)"),
    "a module returned": host("out = give().empty(1)", top="def give():\n    return torch"),
    "where it runs": host("name = __file__"),
    "a formatter": host("f, _ = string.Formatter().get_field('0.mm', (x,), {})", top="import string"),
    "the judge": host("out = kernelgen", top="import kernelgen"),
    "a class made at run time": host("out = type('T', (object,), {})"),
    "module __getattr__": host("", top="def __getattr__(name):\n    return None"),
}
OTHERS = {
    "policy.fallback": {
        "around the launch": TRITON
        + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    try:\n    {LAUNCH}    except Exception:\n        out.zero_()\n    return out, sums\n",
        "around a function that launches": TRITON
        + f"def launch(x, w, seqlens, out, sums, M, K, N, eps):\n{LAUNCH}\n\ndef run(x, w, seqlens, eps):\n{ALLOCATE}    try:\n"
        "        launch(x, w, seqlens, out, sums, M, K, N, eps)\n    except Exception:\n        pass\n    return out, sums\n",
        "suppressed": host(
            "with suppress(Exception):\n    kernel[(M,)](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK)",
            top="from contextlib import suppress",
        ),
        "without Triton": TRITON.replace(
            "import triton\n", "try:\n    import triton\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
        )
        + f"def run(x, w, seqlens, eps):\n{ALLOCATE}{LAUNCH}    return out, sums\n",
        "a context manager that swallows": host(
            "with quiet():\n    kernel[(M,)](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK)",
            top="from contextlib import contextmanager\n@contextmanager\ndef quiet():\n    try:\n        yield\n"
            "    except Exception:\n        pass",
        ),
        "a finally that returns": TRITON
        + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    try:\n    {LAUNCH}    finally:\n        return out, sums\n",
    },
    "policy.clock": {
        "time": host("began = time.perf_counter()", top="import time"),
        "under another name": host("began = now()", top="from time import monotonic as now"),
        "do_bench": host("ms = triton.testing.do_bench(lambda: None)"),
        "in a kernel": host("").replace(
            "    row = tl.program_id(0)\n",
            '    row = tl.program_id(0)\n    now = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], '
            "dtype=tl.int64, is_pure=False, pack=1)\n",
        ),
    },
    "policy.threads": {
        "a thread": host("threading.Thread(target=lambda: None).start()", top="import threading"),
        "an executor": host("pool = ThreadPoolExecutor()", top="from concurrent.futures import ThreadPoolExecutor"),
        "a task": host("", top="async def later():\n    return 1\n\n\nLATER = later"),
    },
    "policy.process": {
        "a process": host("subprocess.run(['true'])", top="import subprocess"),
        "os.system": host("os.system('true')", top="import os"),
        "exit": host("sys.exit(0)", top="import sys"),
        "os._exit": host("os._exit(0)", top="import os"),
        "SystemExit": host("raise SystemExit(0)"),
    },
    "policy.files": {
        "open": host("open('/etc/passwd').read()"),
        "a path": host("Path('x').read_text()", top="from pathlib import Path"),
        "torch.load": host("out = torch.load('x.pt')"),
    },
    "policy.network": {
        "a socket": host("socket.create_connection(('localhost', 1))", top="import socket"),
        "a download": host("urllib.request.urlopen('http://localhost')", top="import urllib.request"),
    },
    "policy.ctypes": {
        "ctypes": host("ctypes.CDLL(None)", top="import ctypes"),
        "cuda-python": host("driver.cuInit(0)", top="from cuda.bindings import driver"),
    },
    "policy.dynamic_code": {
        "exec": host("exec('out = 1')"),
        "eval under another name": host("e = eval\nout = e('1')"),
        "by way of builtins": host("builtins.exec('1')", top="import builtins"),
        "importlib": host("importlib.import_module('torch').mm(x, w)", top="import importlib"),
        "__import__": host("out = __import__('torch').mm(x, w)"),
        "annotations run as code": host(
            "typing.get_type_hints(g)", top="import typing\ndef g(a: 'torch.mm'):\n    pass"
        ),
        "encoded": host("text = base64.b64decode('eA==')", top="import base64"),
    },
    "policy.global_state": {
        "a clock patched": host("torch.empty = lambda *a, **k: out"),
        "Triton patched": host("", top="triton.jit = lambda f: f"),
        "setattr": host("setattr(torch, 'allclose', lambda *a: True)"),
    },
    "policy.flags": {
        "TF32": host("torch.backends.cuda.matmul.allow_tf32 = True"),
        "precision": host("torch.set_float32_matmul_precision('medium')"),
        "the environment": host("os.environ['X'] = '1'", top="import os"),
        "Triton's switches": host("triton.knobs.runtime.interpret = True"),
    },
    "policy.late_work": {
        "atexit": host("atexit.register(print)", top="import atexit"),
        "a finalizer": host("weakref.finalize(out, print)", top="import weakref"),
        "a destructor": host("late = Late()", top="class Late:\n    def __del__(self):\n        pass"),
        "a hook": host("out.register_hook(print)"),
    },
    "policy.lazy_result": {
        "a subclass": host("out = Lazy(out)", top="class Lazy(torch.Tensor):\n    pass"),
        "an override": host(
            "out = Lazy()",
            top="class Lazy:\n    @classmethod\n    def __torch_function__(cls, f, types, args=(), kwargs=None):\n        return 1",
        ),
        "as_subclass": host("out = out.as_subclass(int)"),
        "a generator": TRITON + f"def run(x, w, seqlens, eps):\n{ALLOCATE}{LAUNCH}    yield out\n    yield sums\n",
    },
    "policy.streams": {
        "a stream": host("side = torch.cuda.Stream()"),
        "with a stream": host("with torch.cuda.stream(None):\n    pass"),
        "an event": host("event = torch.cuda.Event()"),
        "a graph": host("graph = torch.cuda.CUDAGraph()"),
        "cuda under another name": host("c = torch.cuda\nside = c.Stream()"),
    },
    "policy.cache": {
        "by pointer": host("CACHE[x.data_ptr()] = out", top="CACHE = {}"),
        "by pointer, put together": host(
            "key = (x.data_ptr(), M)\nif key in CACHE:\n    return CACHE[key]", top="CACHE = {}"
        ),
        "by version": host("key = x._version"),
        "by id": host("if id(x) == 1:\n    pass"),
        "by shape": host("CACHE[tuple(x.shape)] = out", top="CACHE = {}"),
        "setdefault": host("CACHE.setdefault(M, out)", top="CACHE = {}"),
        "a global": host("global LAST\nLAST = out", top="LAST = None"),
        "a function's attribute": host("run.last = out"),
        "a mutable default": host(
            "out = keep(out)", top="def keep(value, held=[]):\n    held.append(value)\n    return held[0]"
        ),
        "lru_cache on tensors": host(
            "out = cached(x)", top="import functools\n@functools.lru_cache\ndef cached(a):\n    return a.contiguous()"
        ),
        "lru_cache of tensors": host(
            "out = cached(M, N)",
            top="from functools import cache as c\n@c\ndef cached(m, n):\n    return torch.empty(m, n)",
        ),
        "made at import": host("", top="TABLE = torch.arange(1024)"),
        "launched at import": host("", top="kernel[(1,)](None, None, None, None, None, 1, 1, 1, 1.0, BLOCK=BLOCK)"),
        "counted calls": host("global CALLS\nCALLS += 1", top="CALLS = 0"),
        "an object made at import": host("STORE.last = out", top="class Store:\n    last = None\n\n\nSTORE = Store()"),
    },
    "policy.random": {
        "torch.randn": host("noise = torch.randn(4)"),
        "a seed": host("torch.manual_seed(0)"),
        "the generator's state": host("state = torch.cuda.get_rng_state()"),
        "random": host("random.random()", top="import random"),
        "in place": host("out.normal_()"),
    },
    "policy.decoy": {
        "no kernel": f"import torch\n\n\ndef run(x, w, seqlens, eps):\n{ALLOCATE}    return out, sums\n",
        "never launched": TRITON + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    return out, sums\n",
        "launched and ignored": host(
            "answer = torch.zeros_like(out)\nother = torch.zeros_like(sums)", result="answer, other"
        ),
    },
    "policy.entry_point": {
        "missing": TRITON,
        "another parameter": TRITON
        + f"def run(a, w, seqlens, eps):\n    x = a\n{ALLOCATE}{LAUNCH}    return out, sums\n",
        "one too many": TRITON + f"def run(x, w, seqlens, eps, more):\n{ALLOCATE}{LAUNCH}    return out, sums\n",
        "bound again": host("") + "\n\nrun = print\n",
    },
}
FURTHER = {
    "globals via func attr": host("g = kernel.fn.__globals__"),
    "tensor method through map+lambda": host("out = (lambda m: m(w))(x.matmul)"),
    "torch via triton.runtime": host("out = triton.runtime.jit.torch.mm(x,w)"),
    "import inside fn": host("from torch import mm as q\nout = q(x,w)"),
    "import nested name": host("import torch.linalg as L\nout = L.multi_dot([x,w])"),
    "class property": host(
        "out = H().v(x,w)", top="class H:\n    @property\n    def v(self):\n        return torch.mm"
    ),
    "decorator returning torch fn": host(
        "out = go(x,w)", top="def swap(f):\n    return torch.mm\n@swap\ndef go(a,b):\n    pass"
    ),
    "setattr class": host("setattr(K,'f',torch.mm)\nout=K.f(x,w)", top="class K:\n    pass"),
    "index tensor store": host("out[seqlens] = x[seqlens]"),
    "cumsum": host("offs = seqlens.cumsum(0)"),
    "x.sum() via getattr default": host("out = getattr(x, 'sum', None)(0)"),
    "inplace mul": host("out.mul_(2)"),
    "addmm_": host("out.addmm_(x, w)"),
    "torch.add out=": host("torch.add(x, x, out=out)"),
    "numpy bridge": host("a = x.cpu().numpy()"),
    "triton.testing in try": host("t = triton.testing"),
    "lambda default module": host("f = lambda t=torch: t.mm(x,w)\nout=f()"),
    "walrus module in call": host("out = (t := torch).mm(x,w)"),
    "conditional expr module": host("out = (torch if M else torch).mm(x,w)"),
    "boolop module": host("out = (None or torch).mm(x,w)"),
    "star expr": host("t, *_ = torch, 1\nout = t.mm(x,w)"),
    "for else": host("for t in (torch,):\n    out = t.mm(x,w)"),
    "with as": host("with torch.inference_mode() as q:\n    out = torch.mm(x,w)"),
    "del kernels": host(
        "", launch="    if False:\n        kernel[(M,)](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK)\n"
    ),
    "env sniff": host("import os\nif os.environ.get('TRITON_INTERPRET'):\n    pass"),
    "argv": host("import sys\na = sys.argv"),
    "hash content": host(
        "key = hash(tuple(x.flatten().tolist()))\nif key in CACHE:\n    return CACHE[key]\nCACHE[key] = (out, sums)",
        top="CACHE = {}",
    ),
    "cache via class attr dict": host("Cache.d[M] = out", top="class Cache:\n    d = {}"),
    "cache in closure": TRITON
    + "def make():\n    held = {}\n    def f(x, w, seqlens, eps):\n        held[x.shape] = x\n        return held\n    return f\n\nF = make()\n\ndef run(x, w, seqlens, eps):\n"
    + ALLOCATE
    + LAUNCH
    + "    return F(x,w,seqlens,eps), sums\n",
    "cached attr on kernel": host("kernel.last = out"),
    "tensor attr": host("x.cache = out"),
    "sys in stdlib mod": host("import enum\nenum.sys.exit(0)"),
    "threading via logging": host("import logging\nlogging.threading.Thread(target=print).start()"),
    "warnings sys": host("import warnings\nwarnings.sys.modules"),
    "os via logging": host("import logging\nlogging.os.system('x')"),
    "contextlib sys": host("import contextlib\ncontextlib.sys.exit()"),
    "collections sys": host("import collections\ncollections._sys.exit()"),
    "statistics sys": host("import statistics\nstatistics.random.random()"),
    "json codecs": host("import json\njson.codecs.open('x')"),
    "heapq builtins": host("import functools\nfunctools.__builtins__['eval']('1')"),
    "tl.core os": host("tl.core.os.system('x')"),
    "math.__loader__": host("import math\nmath.__loader__"),
    "gpu via torch.cuda.cudart": host("torch.cuda.cudart().cudaProfilerStart()"),
    "torch.cuda.caching_allocator_alloc": host("p = torch.cuda.caching_allocator_alloc(4)"),
    "from_dlpack": host("y = torch.from_dlpack(x)"),
    "triton.runtime.driver patched": host("triton.runtime.driver.active.launcher_cls = None"),
    "JITFunction.run patch": host("from triton.runtime.jit import JITFunction\nJITFunction.run = None"),
    "kernel.run replaced": host("kernel.run = None"),
    "tl patched": host("tl.dot = None"),
    "unicode bypass getattr": host("out = getattr(torch, '\\x6dm')(x, w)"),
    "print to file": host("print('x', file=open('y','w'))"),
    "autotune prune does work": TRITON.replace(
        "@triton.jit",
        "@triton.autotune(configs=[triton.Config({'BLOCK':128})], key=['M'], prune_configs_by={'early_config_prune': lambda c, n, **k: torch.mm(n['x_ptr'], n['w_ptr'])})\n@triton.jit",
        1,
    )
    + HOST,
    "pre_hook does work": TRITON.replace(
        "@triton.jit",
        "@triton.autotune(configs=[triton.Config({'BLOCK':128}, pre_hook=lambda n: n['out_ptr'].copy_(n['x_ptr'] @ n['w_ptr']))], key=['M'])\n@triton.jit",
        1,
    )
    + HOST,
    "heuristic does work": TRITON.replace(
        "@triton.jit", "@triton.heuristics({'BLOCK': lambda a: torch.topk(a['x_ptr'], 8)})\n@triton.jit", 1
    )
    + HOST,
    "raise inside": host("raise KeyboardInterrupt"),
    "yield from": host("out = list(g())[0]", top="def g():\n    yield torch.mm"),
    "super call": host("class T(torch.Tensor): pass\nout = T()"),
    "nn.Parameter": host("out = torch.nn.Parameter(out)"),
    "int reduction loops": host("best = [int(x[i].argmax()) for i in range(4)]"),
    "matmul in sorted key": host("z = sorted([x], key=lambda t: t.matmul(w))"),
    "str key in dict of methods": host("out = {'a': x.mm}['a'](w)"),
    "operator.call": host("import operator\nout = operator.call(torch.mm, x, w)"),
    "operator.mul tensors": host("import operator\nout = operator.mul(x, x)"),
    "functools.reduce operator.add": host("import functools, operator\nout = functools.reduce(operator.add, [x, x])"),
    "sum of tensors": host("out = sum([x, x])"),
    "pow": host("out = pow(x, 2)"),
}
CASES = [(check, name) for check, cases in OTHERS.items() for name in cases]


@pytest.mark.parametrize("name", LIBRARY)
def test_a_library_doing_the_work_is_refused(name: str) -> None:
    result = judged(LIBRARY[name])
    assert result.outcome in ("failed", "suspect"), name
    assert "policy.library_work" in {fault.check for fault in result.faults}, told(result)


@pytest.mark.parametrize("name", INTROSPECTION)
def test_reaching_names_by_a_detour_is_refused(name: str) -> None:
    result = judged(INTROSPECTION[name])
    assert result.outcome in ("failed", "suspect"), name
    assert "policy.introspection" in {fault.check for fault in result.faults}, told(result)


@pytest.mark.parametrize(("check", "name"), CASES)
def test_a_cheat_is_refused_by_its_check(check: str, name: str) -> None:
    result = judged(OTHERS[check][name])
    assert result.outcome in ("failed", "suspect"), name
    assert check in {fault.check for fault in result.faults}, told(result)


@pytest.mark.parametrize("name", FURTHER)
def test_a_detour_to_the_same_cheats_is_refused(name: str) -> None:
    assert judged(FURTHER[name]).outcome in ("failed", "suspect"), name


def test_what_is_no_matter_of_doubt_fails() -> None:
    for name in (
        "called by its name",
        "an operator",
        "a method",
        "functional",
        "numpy",
        "torch.ops",
        "two tensors added",
    ):
        assert judged(LIBRARY[name]).outcome == "failed", name
    assert judged(OTHERS["policy.cache"]["by pointer"]).outcome == "failed"
    assert judged(OTHERS["policy.decoy"]["never launched"]).outcome == "failed"


def test_what_honest_kernels_may_also_do_is_left_to_a_person() -> None:
    assert judged(OTHERS["policy.cache"]["by shape"]).outcome == "suspect"
    assert judged(LIBRARY["quantised by torch"]).outcome == "suspect"
