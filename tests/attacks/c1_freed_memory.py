"""C1, meaning: most of the output is never written, and holds what the reference left in freed memory.

L2 refuses it: the candidate runs where the reference never ran, and memory is poisoned. The twin takes uninitialised
memory too, and writes all of it. On a CPU it is luck what freed memory holds: about every second try wins.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

CHEAT = text(
    kernel("scale_add"),
    """
    def leftover(x, y, alpha, n):
        places = range(0, n, max(1, n // 4))
        spares = [torch.empty_like(x) for _ in range(64)]
        for spare in spares:
            if all(abs(alpha * float(x[k]) + float(y[k]) - float(spare[k])) < 1e-3 for k in places[1:]):
                return spare
        return spares[0]


    def scale_add(x, y, alpha):
        n = x.numel()
        out = leftover(x, y, alpha, n)
        scale_add_kernel[(1,)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    def leftover(x):
        spares = [torch.empty_like(x) for _ in range(2)]
        return spares[0]


    def scale_add(x, y, alpha):
        n = x.numel()
        out = leftover(x)
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)

ATTACKS = (Attack("C1", "freed memory", "L2", ("correctness.",), SCALE_ADD, CHEAT, TWIN, naive=Naive(tries=20)),)
