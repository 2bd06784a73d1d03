"""C9, meaning: lower precision than declared, in the kernel or by a global switch.

L2 refuses it by an error budget against float64 and by whole numbers that must come out exactly; L0 refuses the switch,
and L2 alone compares such switches before and after. The twins use low precision where it loses nothing.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import MATMUL, SCALE_ADD, honest
from tests.attacks.source import text

HALF = (
    honest("matmul")
    .replace("dtype=tl.float32)\n    for", "dtype=tl.float16)\n    for")
    .replace("total = tl.dot(a, b, total)", "total += tl.dot(a, b).to(tl.float16)")
)
ROUNDED = honest("scale_add").replace("alpha * x + y", "(alpha * x).to(tl.bfloat16).to(tl.float32) + y")
SWITCH = text(
    honest("matmul"),
    """
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("medium")
    """,
)
DEFAULT = text(honest("scale_add"), "torch.set_default_dtype(torch.float64)\ntorch.use_deterministic_algorithms(False)")
MATMUL_TWIN = honest("matmul").replace(
    "total = tl.dot(a, b, total)", "total += tl.dot(a.to(tl.float32).to(tl.float16), b)"
)
TWIN = honest("scale_add").replace("alpha * x + y", "alpha * x.to(tl.float32) + (y * 1.0).to(tl.float32)")
SWITCH_TWIN = honest("matmul").replace(
    "    (M, K)", "    # torch.backends.cuda.matmul.allow_tf32 stays as it is: this is fp16\n    (M, K)"
)
NORM = Naive(compare="norm")
WRONG = ("correctness.",)

ATTACKS = (
    Attack("C9", "half accumulator", "L2", WRONG, MATMUL, HALF, MATMUL_TWIN, naive=NORM),
    Attack("C9", "bfloat16 product", "L2", WRONG, SCALE_ADD, ROUNDED, TWIN, naive=NORM),
    Attack("C9", "global switch", "L0", ("policy.flags",), MATMUL, SWITCH, SWITCH_TWIN, past_policy=WRONG),
    Attack("C9", "default dtype", "L0", ("policy.flags",), SCALE_ADD, DEFAULT, TWIN, past_policy=WRONG),
)
