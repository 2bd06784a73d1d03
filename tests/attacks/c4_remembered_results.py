"""C4, meaning: results are remembered by pointer, version, shape, object or a few sampled values.

L2 refuses each: contents change while pointer and version stay, and every output is checked. L0 refuses what is kept in
a generator, on an input or on a kernel. The twin remembers what is
no result: scratch memory by shape.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

REMEMBERING = """
results = {}


def scale_add(x, y, alpha):
    key = KEY
    if key not in results:
        out = torch.empty_like(x)
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        results[key] = out
    return (results[key],)
"""


def remembering(key: str) -> str:
    """A candidate that remembers by this key."""
    return text(kernel("scale_add"), REMEMBERING.replace("KEY", key))


ATTRIBUTE = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        known = getattr(x, "scaled", None)
        if known is None:
            n = x.numel()
            known = torch.empty_like(x)
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, known, alpha, n, BLOCK=256)
            x.scaled = known
        return (known,)
    """,
)
GENERATOR = text(
    kernel("scale_add"),
    """
    def worker():
        known = {}
        x, y, alpha = yield
        while True:
            n = x.numel()
            if n not in known:
                known[n] = torch.empty_like(x)
                scale_add_kernel[(triton.cdiv(n, 256),)](x, y, known[n], alpha, n, BLOCK=256)
            x, y, alpha = yield known[n].clone()


    results = worker()
    next(results)


    def scale_add(x, y, alpha):
        return (results.send((x, y, alpha)),)
    """,
)
GRADIENT = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        if x.grad is None:
            n = x.numel()
            out = torch.empty_like(x)
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
            x.grad = out
        return (x.grad,)
    """,
)
COPIED = text(
    kernel("scale_add"),
    """
    results = {}


    def scale_add(x, y, alpha):
        key = (x.data_ptr(), x._version, y.data_ptr(), y._version, alpha)
        if key not in results:
            out = torch.empty_like(x)
            n = x.numel()
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
            results[key] = out.clone()
        return (results[key].clone(),)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    results = {}


    def scale_add(x, y, alpha):
        key = tuple(x.shape)
        if key not in results:
            results[key] = (triton.cdiv(x.numel(), 256),)
        out = torch.empty_like(x)
        scale_add_kernel[results[key]](x, y, out, alpha, x.numel(), BLOCK=256)
        return (out,)
    """,
)
SAMPLED = "(x.numel(), alpha, x[0].item(), x[-1].item(), y[0].item(), y[-1].item())"
STALE = ("correctness.stale", "correctness.overlap", "policy.cache", "policy.library_work")

ATTACKS = (
    Attack("C4", "by pointer", "L2", STALE, SCALE_ADD, remembering("x.data_ptr(), y.data_ptr()"), TWIN, faster=True),
    Attack("C4", "by version", "L2", STALE, SCALE_ADD, COPIED, TWIN, faster=True),
    Attack("C4", "by shape", "L2", STALE, SCALE_ADD, remembering("x.shape, alpha"), TWIN, faster=True),
    Attack("C4", "by object", "L2", STALE, SCALE_ADD, remembering("id(x), id(y)"), TWIN, faster=True),
    Attack("C4", "by samples", "L2", STALE, SCALE_ADD, remembering(SAMPLED), TWIN, faster=True),
    *(
        Attack("C4", face, "L0", ("policy.cache",), SCALE_ADD, cheat, TWIN, faster=True, past_policy=STALE[:2])
        for face, cheat in (
            ("in a generator", GENERATOR),
            ("in the input's gradient", GRADIENT),
            ("on the input itself", ATTRIBUTE),
            ("on the input by a name's text", ATTRIBUTE.replace("x.scaled = known", 'setattr(x, "scaled", known)')),
            (
                "on the kernel",
                ATTRIBUTE.replace("getattr(x, ", "getattr(scale_add_kernel, ").replace(
                    "x.scaled", "scale_add_kernel.scaled"
                ),
            ),
        )
    ),
)
