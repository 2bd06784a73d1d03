"""B5, the judge: NaN compares as not worse than any limit, or the expected output itself is zeroed.

L2 refuses both: what is not finite is refused unless the target allows it, and the reference is in the parent. The twin
has infinities and NaN in its kernel where they belong: in what a mask leaves out.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import ROW_SOFTMAX, SCALE_ADD, kernel
from tests.attacks.source import text

NAN = text(
    kernel("scale_add").replace("alpha * x + y", 'float("nan") * (x + y)'),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
ZEROED = text(
    "import gc",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        for found in gc.get_objects():
            if type(found) is tuple and len(found) == 1 and type(found[0]) is torch.Tensor:
                if found[0].shape == x.shape:
                    found[0].zero_()
        return (torch.zeros_like(x),)
    """,
)
ZEROED_FRAME = text(
    "import sys",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        for output in sys._getframe(1).f_locals.get("expected", ()):
            output.zero_()
        return (torch.zeros_like(x),)
    """,
)
TWIN = text(
    kernel("row_softmax").replace(
        "    power = tl.exp(x - tl.max(x, axis=0))\n",
        '    x = tl.where(inside, x, float("-inf"))\n'
        '    outside = tl.full((BLOCK,), float("nan"), tl.float32)\n'
        "    power = tl.where(inside, tl.exp(x - tl.max(x, axis=0)), outside)\n"
        "    power = tl.where(inside, power, 0.0)\n",
    ),
    """
    def row_softmax(x):
        rows, columns = x.shape
        out = torch.full_like(x, float("nan"))
        softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return (out,)
    """,
)
NAN_TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.full_like(x, float("nan"))
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
NAN_SOFTMAX = text(
    kernel("row_softmax").replace("power / tl.sum(power, axis=0)", 'power * float("nan")'),
    """
    def row_softmax(x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return (out,)
    """,
)
WORST = Naive(compare="worst")
WRONG = ("correctness.", "process.")

ATTACKS = (
    Attack("B5", "NaN", "L2", ("correctness.not_finite",), SCALE_ADD, NAN, NAN_TWIN, naive=WORST),
    Attack(
        "B5",
        "NaN counted",
        "L2",
        ("correctness.not_finite",),
        ROW_SOFTMAX,
        NAN_SOFTMAX,
        TWIN,
        naive=Naive(compare="counted"),
    ),
    Attack(
        "B5", "expected zeroed", "L0", ("policy.introspection",), SCALE_ADD, ZEROED_FRAME, NAN_TWIN, past_policy=WRONG
    ),
    Attack("B5", "tuples zeroed", "L0", ("policy.introspection",), SCALE_ADD, ZEROED, NAN_TWIN, past_policy=WRONG),
)
