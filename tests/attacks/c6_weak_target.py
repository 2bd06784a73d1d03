"""C6, meaning: zeros pass, since the target's tolerance is larger than its answers. Not the candidate's fault alone.

The target's own check refuses the target, before any candidate: trivial answers must fail it. Its twin is an honest
softmax, judged by a target that passes its check.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import ROW_SOFTMAX, WEAK_SOFTMAX, honest, kernel
from tests.attacks.source import text

ZEROS = text(
    kernel("row_softmax").replace("power / tl.sum(power, axis=0)", "power * 0.0"),
    """
    def row_softmax(x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return (out,)
    """,
)
MEAN = ZEROS.replace("power * 0.0", "power * 0.0 + 1.0 / columns")

ATTACKS = (
    Attack(
        "C6",
        "zeros",
        "target",
        ("refuses zeros",),
        WEAK_SOFTMAX,
        ZEROS,
        honest("row_softmax"),
        entry_point="row_softmax",
    ),
    Attack(
        "C6",
        "mean",
        "target",
        ("refuses the mean",),
        WEAK_SOFTMAX,
        MEAN,
        honest("row_softmax"),
        entry_point="row_softmax",
    ),
    Attack(
        "C6",
        "zeros for a sound target",
        "L2",
        ("correctness.",),
        ROW_SOFTMAX,
        ZEROS,
        honest("row_softmax"),
        naive=Naive(shape="r4_c8192"),
    ),
)
