"""C3, meaning: the inputs are changed so that the reference, run on them afterwards, agrees.

L2 refuses it: the reference has copies of its own, and inputs are hashed before and after. The twin writes to a copy.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

IN_KERNEL = text(
    kernel("scale_add").replace(
        "    tl.store(out_ptr + place, alpha * x + y, mask=inside)\n",
        "    zero = x - x\n"
        "    tl.store(x_ptr + place, zero, mask=inside)\n"
        "    tl.store(y_ptr + place, zero, mask=inside)\n"
        "    tl.store(out_ptr + place, zero, mask=inside)\n",
    ),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
ON_HOST = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        x.zero_()
        y.data.fill_(0.0)
        return (torch.zeros_like(x),)
    """,
)
VIEW = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        for tensor in (x, y):
            tensor.numpy()[:] = 0
        return (torch.zeros_like(x),)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        scratch = y.clone()
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, scratch, scratch, alpha, n, BLOCK=256)
        return (scratch,)
    """,
)
AFTER = Naive(reference_first=False)
CHANGED = ("correctness.inputs_changed",)
EITHER = ("policy.decoy", *CHANGED)

ATTACKS = (
    Attack("C3", "by the kernel", "L2", CHANGED, SCALE_ADD, IN_KERNEL, TWIN, naive=AFTER),
    Attack("C3", "on the host", "L2", EITHER, SCALE_ADD, ON_HOST, TWIN, naive=AFTER, faster=True, past_policy=CHANGED),
    Attack("C3", "through a view", "L2", EITHER, SCALE_ADD, VIEW, TWIN, naive=AFTER, faster=True, past_policy=CHANGED),
)
