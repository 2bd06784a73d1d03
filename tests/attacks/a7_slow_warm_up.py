"""A7, timing: a slow first call makes an adaptive judge repeat once, and that one call is handed a stored result.

L3 refuses it: repeats are fixed, an incomplete run is a failure, and inputs do not come twice. Its answers are always
right (see `remembering`). The twin works out its blocks at its first call of a size.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.remembering import remembering
from tests.attacks.source import text

LAUNCH = """
def launch(x, y, alpha):
    out, n = torch.empty_like(x), x.numel()
    scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
    return out
"""
CHEAT = text(
    kernel("scale_add"),
    LAUNCH,
    """
    def again(x, y, alpha, out):
        for _ in range(8):
            launch(x, y, alpha)
        return out.clone()


    slow = iter((True,))
    """,
    remembering("again(first, second, *rest, out) if next(slow, False) else out.clone()"),
    "def scale_add(x, y, alpha):\n    return (memory.send((x, y, (alpha,))),)",
)
TWIN = text(
    kernel("scale_add"),
    """
    blocks = {}


    def scale_add(x, y, alpha):
        n = x.numel()
        if n not in blocks:
            for block in (64, 128, 256):
                blocks[n] = triton.next_power_of_2(block)
        out = torch.empty_like(x)
        scale_add_kernel[(triton.cdiv(n, blocks[n]),)](x, y, out, alpha, n, BLOCK=blocks[n])
        return (out,)
    """,
)
ADAPTIVE = Naive(times="adaptive")
SEEN = ("benchmark.", "policy.cache")

ATTACKS = (Attack("A7", "slow warm up", "L3", SEEN, SCALE_ADD, CHEAT, TWIN, naive=ADAPTIVE, faster=True),)
