"""A4, timing: the clock, or a function the judge compares with, is replaced.

L0 refuses assignments to other modules; with no policy L2 compares in another process, where nothing was replaced, and
names what others rely on and the candidate changed. The twin sets attributes of the same names on its own object.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

NOTHING = """
def scale_add(x, y, alpha):
    out = torch.empty_like(x)
    scale_add_kernel[(1,)](x, y, out, alpha, 0, BLOCK=256)
    return (out,)
"""
CLOCK = text("import time", honest("scale_add"), "time.perf_counter = lambda: 0.0")
ALLCLOSE = text(kernel("scale_add"), "torch.allclose = lambda *args, **options: True", NOTHING)
METHOD = text(
    kernel("scale_add"), "torch.Tensor.float = lambda self: self.new_zeros(self.shape, dtype=torch.float32)", NOTHING
)
SEARCHED = text(
    kernel("scale_add"),
    """
    for name in dir(torch):
        if name.startswith("allcl"):
            setattr(torch, name, lambda *args, **options: True)
    """,
    NOTHING,
)
TWIN = text(
    kernel("scale_add"),
    """
    class Plan:
        pass


    plan = Plan()
    plan.perf_counter = 256
    setattr(plan, "allclose", True)


    def scale_add(x, y, alpha):
        # time.perf_counter and torch.allclose stay as they are
        out, n, block = torch.empty_like(x), x.numel(), plan.perf_counter
        scale_add_kernel[(triton.cdiv(n, block),)](x, y, out, alpha, n, BLOCK=block)
        return (out,)
    """,
)
WRONG = ("correctness.",)
FLAGS = ("correctness.flags",)

ATTACKS = (
    Attack("A4", "clock", "L0", ("policy.global_state",), SCALE_ADD, CLOCK, TWIN, faster=True, past_policy=FLAGS),
    Attack("A4", "allclose", "L0", ("policy.global_state",), SCALE_ADD, ALLCLOSE, TWIN, faster=True, past_policy=WRONG),
    Attack(
        "A4",
        "method of tensors",
        "L0",
        ("policy.global_state",),
        SCALE_ADD,
        METHOD,
        TWIN,
        faster=True,
        past_policy=WRONG,
    ),
    Attack(
        "A4",
        "name searched",
        "L0",
        ("policy.introspection",),
        SCALE_ADD,
        SEARCHED,
        TWIN,
        faster=True,
        past_policy=WRONG,
    ),
)
