"""A8, timing: each prepared set of inputs is computed once, and its stored result handed out when it comes again.

L0 refuses the generator that holds the results; L3 would too: one set of inputs is alive at a time, and revealed just
before its call. Its answers are always right (see `remembering`). The twin stores what depends on the shape alone.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.remembering import remembering
from tests.attacks.source import text

CHEAT = text(
    kernel("scale_add"),
    """
    def launch(x, y, alpha):
        out, n = torch.empty_like(x), x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return out
    """,
    remembering(),
    "def scale_add(x, y, alpha):\n    return (memory.send((x, y, (alpha,))),)",
)
TWIN = text(
    kernel("scale_add"),
    """
    store = {}


    def scale_add(x, y, alpha):
        out, n = torch.empty_like(x), x.numel()
        for blocks in store.setdefault(n, [triton.cdiv(n, 256)]):
            scale_add_kernel[(blocks,)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
SETS = Naive(input_sets=2)

ATTACKS = (Attack("A8", "prepared inputs", "L0", ("policy.cache",), SCALE_ADD, CHEAT, TWIN, naive=SETS, faster=True),)
