"""B6, the judge: the counter of errors in the judge's module is replaced by one that never counts.

L0 refuses the way there; with no policy nothing is counted in the candidate's process at L2. The twin counts in its
kernel, where the target says so.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import HISTOGRAM, SCALE_ADD, honest, kernel
from tests.attacks.source import text

CHEAT = text(
    "import sys",
    kernel("scale_add"),
    """
    class Calm(int):
        def __add__(self, other):
            return self


    def scale_add(x, y, alpha):
        sys.modules["__main__"].errors = Calm()
        return (torch.zeros_like(x),)
    """,
)
COUNTING = text(
    "import sys",
    kernel("histogram"),
    """
    class Calm(int):
        def __add__(self, other):
            return self


    def histogram(values, bins):
        for module in list(sys.modules.values()):
            if isinstance(getattr(module, "errors", None), int):
                module.errors = Calm()
        return (torch.zeros(bins, dtype=torch.int32),)
    """,
)
TWIN = honest("scale_add").replace("place", "errors").replace("    n = x.numel()\n", "    n = 0\n    n += x.numel()\n")
COUNTING_TWIN = honest("histogram").replace("counts", "errors")
COUNTED = Naive(compare="counted")
WRONG = ("correctness.", "process.")

ATTACKS = (
    Attack(
        "B6",
        "counter",
        "L0",
        ("policy.introspection",),
        SCALE_ADD,
        CHEAT,
        TWIN,
        naive=COUNTED,
        faster=True,
        past_policy=WRONG,
    ),
    Attack(
        "B6",
        "counters of all modules",
        "L0",
        ("policy.introspection",),
        HISTOGRAM,
        COUNTING,
        COUNTING_TWIN,
        naive=COUNTED,
        past_policy=WRONG,
    ),
)
