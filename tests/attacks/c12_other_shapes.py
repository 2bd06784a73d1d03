"""C12, meaning: right on the shapes that are checked, and less work on those that are timed or held out.

L2 refuses the first: a GPU checks every timed shape, the interpreter the smallest; held-out shapes are seen at L4. The
twin chooses its blocks by the shape.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

CALL = """
def scale_add(x, y, alpha):
    out = torch.empty_like(x)
    n = x.numel()
    blocks = triton.cdiv(n, 256)
    if CONDITION:
        blocks = (blocks + 1) // 2
    scale_add_kernel[(blocks,)](x, y, out, alpha, n, BLOCK=256)
    return (out,)
"""
TIMED = text(kernel("scale_add"), CALL.replace("CONDITION", "n >= 2000"))
HELD_OUT = text(kernel("scale_add"), CALL.replace("CONDITION", "1200 < n < 2000"))
TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        block = 512 if n >= 2000 else 256
        scale_add_kernel[(triton.cdiv(n, block),)](x, y, out, alpha, n, BLOCK=block)
        return (out,)
    """,
)
SMALL = Naive(shape="n1000")

ATTACKS = (
    Attack("C12", "wrong when timed", "L2", ("correctness.",), SCALE_ADD, TIMED, TWIN, naive=SMALL),
    Attack("C12", "wrong when held out", "L4", ("benchmark.",), SCALE_ADD, HELD_OUT, TWIN, naive=SMALL),
)
