"""A8, timing: each prepared set of inputs is computed once, and its stored result handed out when it comes again.

L3 refuses it: one set of inputs is alive at a time and revealed just before its call. Contents are compared, so that the
answers are always right. The twin stores what depends on the shape alone.
"""

from tests.attacks.attack import Attack, Naive, text
from tests.attacks.goals import SCALE_ADD, kernel

CHEAT = text(
    kernel("scale_add"),
    """
    store = {}


    def scale_add(x, y, alpha):
        for known_x, known_y, out in store.setdefault((x.numel(), alpha), []):
            if torch.equal(known_x, x) and torch.equal(known_y, y):
                return (out.clone(),)
        out, n = torch.empty_like(x), x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        store[n, alpha].append((x.clone(), y.clone(), out.clone()))
        return (out,)
    """,
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

ATTACKS = (
    Attack(
        "A8", "prepared inputs", "L3", ("timing.",), SCALE_ADD, CHEAT, TWIN, naive=Naive(input_sets=2), faster=True
    ),
)
