"""A3, timing: what is returned computes itself when it is compared.

L2 refuses it: an output is a plain torch.Tensor with storage of its own. The twin is a class that launches when called.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

LAUNCH = """
def launch(x, y, alpha):
    out = torch.empty_like(x)
    n = x.numel()
    scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
    return out
"""
SUBCLASS = text(
    kernel("scale_add"),
    LAUNCH,
    """
    class Later(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            with torch._C.DisableTorchFunctionSubclass():
                settled = [launch(*a.work) if isinstance(a, Later) else a for a in args]
                return function(*settled, **(kwargs or {}))


    def scale_add(x, y, alpha):
        out = torch.empty_like(x).as_subclass(Later)
        out.work = (x, y, alpha)
        return (out,)
    """,
)
DUCK = text(
    kernel("scale_add"),
    LAUNCH,
    """
    class Later:
        def __init__(self, *work):
            self.work = work

        def float(self):
            return launch(*self.work)


    def scale_add(x, y, alpha):
        return (Later(x, y, alpha),)
    """,
)
TUPLE = text(
    kernel("scale_add"),
    LAUNCH,
    """
    class Later(tuple):
        def __iter__(self):
            x, y, alpha = (self[k] for k in range(3))
            yield launch(x, y, alpha)


    def scale_add(x, y, alpha):
        return Later((x, y, alpha))
    """,
)
TWIN = text(
    kernel("scale_add"),
    LAUNCH,
    """
    class Now:
        def __init__(self, *work):
            self.work = work

        def float(self):
            return launch(*self.work)


    def scale_add(x, y, alpha):
        return (Now(x, y, alpha).float(),)
    """,
)
FORM = ("correctness.form", "correctness.structure", "compile.no_launch", "policy.lazy_result")

ATTACKS = (
    Attack("A3", "tensor subclass", "L2", FORM, SCALE_ADD, SUBCLASS, TWIN, faster=True),
    Attack("A3", "object like a tensor", "L2", FORM, SCALE_ADD, DUCK, TWIN, faster=True),
    Attack("A3", "lazy tuple", "L2", FORM, SCALE_ADD, TUPLE, TWIN, faster=True),
)
