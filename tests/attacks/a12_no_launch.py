"""A12, timing: nothing is launched once the answer is known, or the judge is killed before it can say anything.

L3 refuses a time below what the card can do; this one answers stale contents besides, which L2 sees. Killing is refused
at L0; with no policy L2 finds a process that ended without its answer. The twin launches an empty grid where there is
nothing to do.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

EMPTY = text(
    kernel("scale_add"),
    """
    outputs = {}


    def scale_add(x, y, alpha):
        n = x.numel()
        blocks = 0 if n in outputs else triton.cdiv(n, 256)
        out = outputs.setdefault(n, torch.empty_like(x))
        scale_add_kernel[(blocks,)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
KILL = text(
    "import os\nimport signal",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        print('{"correct": true, "milliseconds": 0.001}', flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        n = x.numel()
        out = torch.empty_like(x)
        blocks = 0 if n == 0 else triton.cdiv(n, 256)
        scale_add_kernel[(blocks,)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)

SEEN = ("benchmark.", "correctness.", "policy.cache")
ATTACKS = (
    Attack("A12", "empty grid", "L3", SEEN, SCALE_ADD, EMPTY, TWIN, faster=True),
    Attack(
        "A12",
        "killing the judge",
        "L0",
        ("policy.process",),
        SCALE_ADD,
        KILL,
        TWIN,
        naive=Naive(believes="printed"),
        past_policy=("process.",),
    ),
)
