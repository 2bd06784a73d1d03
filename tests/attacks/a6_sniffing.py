"""A6, timing: the candidate knows warm-up from timing, by counting calls or by looking round, and then does nothing.

L2 refuses one that only counts: every output is checked, of many calls. L0 refuses looking at environment, arguments
and callers; with no policy L2 shows nothing of them to see, or checks the output all the same. One that is right on a
CPU alone is seen on a GPU. The twin works out its grid at its first call of a size.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

SKIPPING = """
kept = []


def scale_add(x, y, alpha):
    if kept and not watched():
        return (kept[0],)
    out = torch.empty_like(x)
    n = x.numel()
    scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
    kept[:] = [out]
    return (out,)
"""
COUNT = text(
    kernel("scale_add"),
    """
    calls = 0


    def watched():
        global calls
        calls += 1
        return calls < 3
    """,
    SKIPPING,
)
ENVIRONMENT = text(
    "import os",
    kernel("scale_add"),
    """
    def watched():
        return os.environ["BENCHMARK_RUN"] != "1"
    """,
    SKIPPING,
)
ARGUMENTS = text(
    "import sys",
    kernel("scale_add"),
    """
    def watched():
        return not sys.argv[1].endswith("candidate.py")
    """,
    SKIPPING,
)
CALLERS = text(
    "import traceback",
    kernel("scale_add"),
    """
    def watched():
        return any("check" in frame.name or "correct" in frame.name for frame in traceback.extract_stack())
    """,
    SKIPPING,
)
BY_ITERATOR = text(
    "import itertools",
    kernel("scale_add"),
    """
    turns = itertools.chain((1, 1, 1), itertools.repeat(0))


    def scale_add(x, y, alpha):
        out, n = torch.empty_like(x), x.numel()
        blocks = triton.cdiv(n, 256)
        for turn in turns:
            blocks *= turn
            break
        scale_add_kernel[(blocks,)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
ON_CPU = text(
    kernel("scale_add")
    .replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, SPARE: tl.constexpr")
    .replace("    inside = place < n\n", "    inside = place < n\n    if SPARE:\n        inside = place < 0\n"),
    """
    def scale_add(x, y, alpha):
        out, n = torch.empty_like(x), x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256, SPARE=x.is_cuda)
        return (out,)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    kept = {}


    def scale_add(x, y, alpha):
        n = x.numel()
        if n not in kept:
            kept[n] = (triton.cdiv(n, 256),)
        out = torch.empty_like(x)
        scale_add_kernel[kept[n]](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
COUNTED = ("correctness.", "policy.cache")
SEEN = ("correctness.", "process.")

ATTACKS = (
    Attack("A6", "counting calls", "L2", COUNTED, SCALE_ADD, COUNT, TWIN, faster=True),
    Attack("A6", "counting by an iterator", "L2", COUNTED, SCALE_ADD, BY_ITERATOR, TWIN, faster=True),
    Attack("A6", "right on a CPU alone", "L2", COUNTED, SCALE_ADD, ON_CPU, TWIN, seen_on_gpu=True),
    Attack("A6", "environment", "L0", ("policy.flags",), SCALE_ADD, ENVIRONMENT, TWIN, faster=True, past_policy=SEEN),
    Attack(
        "A6", "arguments", "L0", ("policy.introspection",), SCALE_ADD, ARGUMENTS, TWIN, faster=True, past_policy=SEEN
    ),
    Attack("A6", "callers", "L0", ("policy.introspection",), SCALE_ADD, CALLERS, TWIN, faster=True, past_policy=SEEN),
)
