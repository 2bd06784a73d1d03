"""Work and state in corners: grids, heuristics and hooks, objects' fields, numbers read into Python, generators."""

# ruff: noqa: E501 - a snippet's lines are as long as a candidate's
from __future__ import annotations

import warnings

import pytest
from policy_subjects import ALLOCATE, HOST, LAUNCH, TRITON, host, judged, told

from kernelgen.judging.problems import _model, _without_future
from kernelgen.ladder.results import Result

DATA = "from dataclasses import dataclass\nfrom typing import Any\n"
JOB = DATA + "@dataclass\nclass Job:\n    x: Any\n    w: Any\n    out: Any\n"
WORK = {
    "fields of a dataclass in a grid": host(
        "job = Job(x, w, out)\ndef grid(meta):\n    job.out.copy_(job.x * job.w)\n    return (M,)", top=JOB
    ),
    "fields by name": host("job = Job(w=w, out=out, x=x)\nout = job.x + job.w", top=JOB),
    "fields of a class": host(
        "job = Job(x, w)\nout = job.work()",
        top="class Job:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n    def work(self):\n        return self.a - self.b",
    ),
    "fields of a class above": host(
        "job = Job(x, w)\nout = job.a * job.b",
        top="class Base:\n    def __init__(self, a, b):\n        self.a = a\n        self.b = b\nclass Job(Base):\n    pass",
    ),
    "a property": host(
        "out = Job(x, w, out).both",
        top=JOB + "    @property\n    def both(self):\n        return self.x * self.w",
    ),
    "fields set later": host("job = Job()\njob.a = x\njob.b = w\nout = job.a * job.b", top="class Job:\n    pass"),
    "a function's attributes": host(
        "def grid(meta):\n    grid.out.copy_(grid.x * grid.w)\n    return (M,)\ngrid.x, grid.w, grid.out = x, w, out"
    ),
    "a named tuple": host(
        "job = Job(x, w)\nout = job.x * job.w", top="import collections\nJob = collections.namedtuple('Job', 'x w')"
    ),
    "a typed named tuple": host(
        "a, b = Job(x, w)\nout = a * b",
        top=DATA + "from typing import NamedTuple\nclass Job(NamedTuple):\n    x: Any\n    w: Any",
    ),
    "a dataclass as a dict": host(
        "parts = dataclasses.asdict(Job(x, w, out))\nout = parts['x'] * parts['w']", top="import dataclasses\n" + JOB
    ),
    "an object that is a grid": host(
        "job = Job(x, w, out)",
        top=JOB + "    def __call__(self, meta):\n        self.out.copy_(self.x * self.w)\n        return (meta['M'],)",
        launch=LAUNCH.replace("(M,)", "job"),
    ),
    "a grid's arguments": host(
        "def grid(meta):\n    meta['out_ptr'].copy_(meta['x_ptr'] * meta['w_ptr'])\n    return (M,)",
        launch=LAUNCH.replace("(M,)", "grid"),
    ),
    "a grid's arguments by a loop": host(
        "def grid(meta):\n    a, b, c = (meta[name] for name in ('x_ptr', 'w_ptr', 'out_ptr'))\n    c.copy_(a * b)\n    return (M,)",
        launch=LAUNCH.replace("(M,)", "grid"),
    ),
    "a grid's arguments handed on": host(
        "def grid(meta):\n    work(**meta)\n    return (M,)",
        top="def work(x_ptr, w_ptr, out_ptr, **others):\n    out_ptr.copy_(x_ptr * w_ptr)",
        launch=LAUNCH.replace("(M,)", "grid"),
    ),
    "a grid's arguments by get": host(
        "def grid(meta):\n    meta.get('out_ptr').copy_(meta.get('x_ptr') * meta.get('w_ptr'))\n    return (M,)",
        launch=LAUNCH.replace("(M,)", "grid"),
    ),
    "a heuristic": "def prepare(args):\n    args['out_ptr'].copy_(args['x_ptr'] * args['w_ptr'])\n    return 128\n"
    + TRITON.replace("@triton.jit", "@triton.heuristics({'BLOCK': lambda args: prepare(args)})\n@triton.jit", 1)
    + HOST.replace(", BLOCK=BLOCK", ""),
    "a hook": TRITON.replace(
        "@triton.jit",
        "@triton.autotune(configs=[triton.Config({'BLOCK': 128}, pre_hook=lambda n: n['out_ptr'].copy_(n['x_ptr'] * n['w_ptr']))], key=['M'])\n@triton.jit",
        1,
    )
    + HOST.replace(", BLOCK=BLOCK", ""),
    "a pruning": TRITON.replace(
        "@triton.jit",
        "@triton.autotune(configs=[triton.Config({'BLOCK': 128})], key=['M'], prune_configs_by={'early_config_prune': lambda c, n, **k: n['out_ptr'].copy_(n['x_ptr'] + n['w_ptr'])})\n@triton.jit",
        1,
    )
    + HOST.replace(", BLOCK=BLOCK", ""),
    "mapped": host("out = list(map(lambda a, b: a * b, [x], [w]))[0]"),
    "reduced": host("out = functools.reduce(lambda a, b: a * b, [x, w])", top="import functools"),
    "partly given": host("out = functools.partial(lambda a, b: a * b, x)(w)", top="import functools"),
    "stars": host("out = both(x, w)", top="def both(*given):\n    return given[0] * given[1]"),
    "stars of names": host("out = both(a=x, b=w)", top="def both(**given):\n    return given['a'] * given['b']"),
    "parts of a tensor": host("one, two = x.chunk(2)\nout = one * two"),
    "values that nobody can tell": host("def work():\n    a, b = yield\n    out.copy_(a * b)\njob = work()\nnext(job)"),
}
READ = {
    "tolist": host("rows = x.tolist()"),
    "tolist of a view": host("rows = x.view(-1)[1:].float().cpu().tolist()"),
    "tolist of a copy": host("held = torch.empty(K)\nheld.copy_(x)\nrows = held.tolist()"),
    "tolist of a field": host("rows = Job(x, w, out).x.tolist()", top=JOB),
    "tolist under another name": host("read = x.tolist\nrows = read()"),
    "numpy": host("rows = x.numpy()"),
    "a list": host("rows = list(x)"),
    "a loop": host("rows = []\nfor row in x:\n    rows.append(row)"),
    "a comprehension": host("rows = [row for row in x[0]]"),
    "zip": host("rows = [(a, b) for a, b in zip(x, w)]"),
    "a star": host("rows = [*x]"),
    "element by element": host("rows = [float(x[i, 0]) for i in range(M)]"),
    "item by item": host("for i in range(M):\n    rows = x[i, 0].item()"),
    "in a lambda": host("rows = list(map(lambda i: x[i, 0].item(), range(M)))"),
    "fsum": host("total = math.fsum(x[0])", top="import math"),
}
HOLDER = "def holder():\n    held = None\n    while True:\n        held = yield held\n"
KEPT = {
    "in a generator": host("HOLD.send(x)", top=HOLDER + "HOLD = holder()"),
    "in a generator held by a default": host(
        "keep(x)", top=HOLDER + "def keep(t, held=holder()):\n    return held.send(t)"
    ),
    "in a generator in a table": host("next(TABLE['hold'])", top=HOLDER + "TABLE = {'hold': holder()}"),
    "in a generator in a class": host("next(Kept.hold)", top=HOLDER + "class Kept:\n    hold = holder()"),
    "in a generator in a closure": host(
        "tick()",
        top="import itertools\ndef make():\n    calls = itertools.count()\n    def tick():\n        return next(calls)\n    return tick\ntick = make()",
    ),
    "in a gradient": host("x.grad = out"),
    "in an input's attribute": host("x.memo = out"),
    "by setattr": host("setattr(x, 'memo', out)"),
    "by a loop's target": host("for x.memo in [out]:\n    pass"),
    "through a helper": host("keep(x, out)", top="def keep(t, value):\n    t.memo = value"),
    "in an object in a table": host("CACHE[M] = Job(x, w, out)", top=JOB + "CACHE = {}"),
    "a count": host("if next(CALLS) > 40:\n    return out, sums", top="import itertools\nCALLS = itertools.count()"),
    "a count read by a loop": host("for n in CALLS:\n    break", top="import itertools\nCALLS = itertools.count()"),
    "a count read by islice": host(
        "n, = itertools.islice(CALLS, 1)", top="import itertools\nCALLS = itertools.count()"
    ),
    "a count read by zip": host("n = list(zip([0], CALLS))", top="CALLS = iter(range(100))"),
    "a count of a generator expression": host("n = list(zip([0], CALLS))", top="CALLS = (i for i in range(100))"),
    "a count by a cycle": host("skip = next(TURN)", top="import itertools\nTURN = itertools.cycle([0, 0, 1])"),
    "a count without +=": host("global CALLS\nCALLS = CALLS + 1", top="CALLS = 0"),
    "a count in a table": host("C['n'] = C['n'] + 1", top="C = {'n': 0}"),
    "a list's length": host("CALLS.append(1)\nif len(CALLS) > 40:\n    return out, sums", top="CALLS = []"),
    "a list that runs out": host("left = LEFT.pop()", top="LEFT = [0] * 40"),
    "on the kernel": host("kernel.last = x"),
}
ROW = "    row = tl.program_id(0)\n"
INSIDE = {
    "the interpreter's memory": ROW + "    row.handle.data[0] = 1\n",
    "by its name's text": ROW + "    inner = getattr(row, 'handle')\n",
    "a pointer's": ROW + "    memory = out_ptr.handle\n",
    "whatever else": ROW + "    memory = row.storage\n",
}
HONEST = {
    "a hook, a heuristic and a grid with numbers": TRITON.replace(
        "@triton.jit",
        "@triton.autotune(configs=[triton.Config({'BLOCK': 128}, pre_hook=lambda args: None)], key=['K'])\n"
        "@triton.heuristics({'EVEN': lambda args: args['K'] % args['BLOCK'] == 0 and args['x_ptr'].dtype == torch.bfloat16})\n@triton.jit",
        1,
    ).replace("BLOCK: tl.constexpr)", "BLOCK: tl.constexpr, EVEN: tl.constexpr)")
    + HOST.replace(", BLOCK=BLOCK", "").replace(
        "(M,)", "lambda meta: (meta['M'] * triton.cdiv(meta['N'], meta['BLOCK']),)"
    ),
    "checks of torch's": host(
        "torch._assert(x.ndim == 2, 'rank')\ntorch._check(w.dtype == torch.bfloat16, lambda: 'dtype')"
    ),
    "lengths read": host(
        "lens = seqlens.tolist()\nrows = [n for n in seqlens.cpu()]\nfirst = [int(n) for n in seqlens]"
    ),
    "lengths in a plan": host(
        "plan = Plan(seqlens, x.shape[0])\nblocks = plan.rows * 2 + len(plan.lengths.tolist())",
        top=DATA + "@dataclass\nclass Plan:\n    lengths: Any\n    rows: int",
    ),
    "an object of numbers": host(
        "tile = Tile(128, 64)\nsize = tile.rows * tile.columns + tile.area()",
        top="class Tile:\n    def __init__(self, rows, columns):\n        self.rows = rows\n        self.columns = columns\n    def area(self):\n        return self.rows * self.columns",
    ),
    "counters on the device": host("counts = x.new_zeros(M, dtype=torch.int32)\nseen = counts.tolist()"),
    "parts of a tensor": host("one, two = x.chunk(2)\nfor part in x.split(8):\n    rows = part.shape[0] * 2"),
    "tensors in a loop": host("for t in (x, w, out):\n    assert t.is_cuda and t.stride(-1) == 1"),
    "configurations of a product": host(
        "",
        top="import itertools\nCONFIGS = [triton.Config({'BLOCK': b}, num_warps=n) for b, n in itertools.product((64, 128), (4, 8))]\nSIZES = tuple(map(int, '1 2'.split()))",
    ).replace("    M, K = x.shape\n", "    M, K = x.shape\n    sizes = SIZES[0] + len(CONFIGS)\n"),
    "configurations of a generator": host(
        "chosen = CONFIGS[0]",
        top="def configs():\n    for b in (64, 128):\n        yield triton.Config({'BLOCK': b})\nCONFIGS = list(configs())",
    ),
    "a finally that tidies": TRITON
    + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    try:\n    {LAUNCH}    finally:\n        for n in (1, 2):\n            if n > 1:\n                break\n    return out, sums\n",
    "one scalar read": host("largest = float(sums[0])\nfirst = x[0, 0].item()"),
}


def _checks(result: Result) -> set[str]:
    return {fault.check for fault in result.faults}


@pytest.mark.parametrize("name", WORK)
def test_work_on_what_tensors_were_put_into_is_refused(name: str) -> None:
    result = judged(WORK[name])
    assert "policy.library_work" in _checks(result), told(result)


@pytest.mark.parametrize("name", READ)
def test_a_floating_point_input_read_into_python_is_refused(name: str) -> None:
    result = judged(READ[name])
    assert "policy.library_work" in _checks(result), told(result)


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_in_odd_places_is_refused(name: str) -> None:
    result = judged(KEPT[name])
    assert "policy.cache" in _checks(result), told(result)


@pytest.mark.parametrize("name", INSIDE)
def test_a_kernels_body_that_reaches_an_interpreters_inside_is_refused(name: str) -> None:
    result = judged(host("").replace(ROW, INSIDE[name]))
    assert "policy.introspection" in _checks(result), told(result)


@pytest.mark.parametrize("name", HONEST)
def test_honest_kernels_that_look_like_these_pass(name: str) -> None:
    result = judged(HONEST[name])
    assert result.outcome == "passed", told(result)


def test_a_finally_that_returns_is_shown_at_its_return() -> None:
    source = (
        TRITON
        + f"def run(x, w, seqlens, eps):\n{ALLOCATE}    try:\n    {LAUNCH}    finally:\n        return out, sums\n"
    )
    fault = judged(source).faults[0]
    assert (fault.check, fault.line) == ("policy.fallback", source.splitlines().index("        return out, sums") + 1)


def test_what_is_put_on_a_kernel_is_told_as_what_it_is() -> None:
    kept, replaced = judged(host("kernel.last = x")), judged(host("kernel.run = None"))
    assert (kept.faults[0].check, replaced.faults[0].check) == ("policy.cache", "policy.introspection")
    for result in (kept, replaced):
        assert result.outcome == "failed"
        assert "the candidate's own kernel" in result.reason
        assert "policy.global_state" not in _checks(result)


def test_the_reason_is_the_first_faults_own() -> None:
    for source in (WORK["mapped"], "def run(", host("x.memo = out\nout = torch.mm(x, w)")):
        result = judged(source)
        assert result.reason == result.faults[0].reason


def test_odd_foreign_source_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    odd = host("b = 1if M else 2\nc = (1)(2) if M < 0 else ()\nd = M is 1\nassert (M, 'always')")
    with pytest.warns(SyntaxWarning):
        compile(odd, "odd", "exec")
    odd += "a = '\\d'\n"
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for source in (odd, odd + "\0", "(" * 5000, "x = '\ud800'"):
            judged(source)
            _model(source)
            _without_future(source)
    assert not heard
    assert capfd.readouterr() == ("", "")
