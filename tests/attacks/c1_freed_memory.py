"""C1, meaning: most of the output is never written, and holds what the reference left in freed memory.

L2 refuses it: the candidate runs where the reference never ran, and memory is poisoned. The twin takes uninitialised
memory too, and writes all of it. On a CPU it is luck what freed memory holds.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

# takes memory a little smaller than the answer, which fits where it was, and looks for the answer's middle in it
CHEAT = text(
    kernel("scale_add").replace("tl.program_id(0) * BLOCK", "tl.program_id(0) * (n - BLOCK)"),
    """
    def leftover(x, y, alpha, n):
        out = torch.empty_like(x)
        places = range(256, n - 256, max(1, n // 8))
        wanted = [alpha * float(x[k]) + float(y[k]) for k in places]
        spares = []
        for size in [n - 64] * 40 + [n] * 8 + [4 * n] * 4:
            spares.append(torch.empty(size))
            values = memoryview(spares[-1].numpy())
            for shift in range(-256, size - n + 256):
                if all(abs(values[k + shift] - want) < 1e-4 for k, want in zip(places, wanted)):
                    out[256 : n - 256] = spares[-1][256 + shift : n - 256 + shift]
                    return out
        return out


    def scale_add(x, y, alpha):
        n = x.numel()
        out = leftover(x, y, alpha, n)
        scale_add_kernel[(2,)](x, y, out, alpha, n, BLOCK=256)
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

SEEN = ("correctness.uninitialised", "policy.library_work")
LUCKY = Naive(tries=20)
LATE = ("correctness.uninitialised",)

ATTACKS = (Attack("C1", "freed memory", "L2", SEEN, SCALE_ADD, CHEAT, TWIN, naive=LUCKY, past_policy=LATE),)
