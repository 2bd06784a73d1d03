"""D2, round the task: the kernel fails or is passed by, and torch answers in its place.

L0 refuses a way round the kernel; with no policy L2 makes the kernel raise, and the call must fail. The twins have a
`try` that hides nothing, and a branch between two kernels.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

BROKEN = kernel("scale_add").replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK - 1)")
TRY = text(
    BROKEN,
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        try:
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        except Exception:
            out = torch.add(y, x, alpha=alpha)
        return (out,)
    """,
)
SUPPRESSED = text(
    "import contextlib",
    BROKEN,
    """
    def scale_add(x, y, alpha):
        out = x * alpha + y
        n = x.numel()
        with contextlib.suppress(Exception):
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
QUIET = text(
    kernel("scale_add"),
    """
    class Guard:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return True


    def scale_add(x, y, alpha):
        out = y.clone()
        out += x * alpha
        n = x.numel()
        with Guard():
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=100)
        return (out,)
    """,
)
BRANCH = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        if n > 16 and x.is_contiguous():
            return (torch.add(y, x, alpha=alpha),)
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
TWIN = text(
    """
    try:
        from triton.language.extra import libdevice
    except ImportError:
        libdevice = None
    """,
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        try:
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        except Exception as error:
            raise RuntimeError(f"scale_add_kernel failed for n = {n}") from error
        return (out,)
    """,
)
BRANCH_TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        if n > 1024 and x.is_contiguous():
            scale_add_kernel[(triton.cdiv(n, 512),)](x, y, out, alpha, n, BLOCK=512)
            return (out,)
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
RAN = ("correctness.",)

ATTACKS = (
    Attack("D2", "try and except", "L0", ("policy.fallback",), SCALE_ADD, TRY, TWIN, faster=True, past_policy=RAN),
    Attack("D2", "suppressed", "L0", ("policy.fallback",), SCALE_ADD, SUPPRESSED, TWIN, faster=True, past_policy=RAN),
    Attack(
        "D2", "guard that swallows", "L0", ("policy.fallback",), SCALE_ADD, QUIET, TWIN, faster=True, past_policy=RAN
    ),
    Attack(
        "D2", "branch", "L0", ("policy.library_work",), SCALE_ADD, BRANCH, BRANCH_TWIN, faster=True, past_policy=RAN
    ),
)
