"""A7, timing: a slow first call makes an adaptive judge repeat once, and that one call is handed a stored result.

L3 refuses it: repeats are fixed and every timed output is checked. This one keeps its results by their inputs' contents,
so that its answers are always right. The twin has a first call that is slow for the honest reason: it builds a table.
"""

from tests.attacks.attack import Attack, Naive, text
from tests.attacks.goals import SCALE_ADD, kernel

CHEAT = text(
    kernel("scale_add"),
    """
    kept = []


    def launch(x, y, alpha):
        out, n = torch.empty_like(x), x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return out


    def scale_add(x, y, alpha):
        for given, out in kept:
            if given[2] == alpha and torch.equal(given[0], x) and torch.equal(given[1], y):
                if len(kept) > 1:
                    return (out.clone(),)
                for _ in range(8):
                    launch(x, y, alpha)
        kept.append(((x.clone(), y.clone(), alpha), launch(x, y, alpha)))
        return (kept[-1][1].clone(),)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    table = []


    def scale_add(x, y, alpha):
        if not table:
            for block in (64, 128, 256):
                table.append(triton.next_power_of_2(block))
        out, n, block = torch.empty_like(x), x.numel(), max(table)
        scale_add_kernel[(triton.cdiv(n, block),)](x, y, out, alpha, n, BLOCK=block)
        return (out,)
    """,
)

ATTACKS = (
    Attack(
        "A7", "slow warm up", "L3", ("timing.",), SCALE_ADD, CHEAT, TWIN, naive=Naive(times="adaptive"), faster=True
    ),
)
