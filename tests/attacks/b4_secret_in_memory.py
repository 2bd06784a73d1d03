"""B4, the judge: the token that marks a true verdict is looked for in the process's memory, and a forged one printed.

L0 refuses the walk; with no policy there is no secret to find at L2. The twin has a `token` of its own: a position in a
sequence.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

MODULE = text(
    "import sys",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        print(sys.modules["__main__"].token + ' {"correct": true, "milliseconds": 0.001}', flush=True)
        return (torch.zeros_like(x),)
    """,
)
COLLECTOR = text(
    "import gc",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        for found in gc.get_objects():
            if type(found) is dict and type(found.get("token")) is str:
                print(found["token"] + ' {"correct": true, "milliseconds": 0.001}', flush=True)
        return (torch.zeros_like(x),)
    """,
)
TWIN = honest("scale_add").replace("place", "token").replace("inside", "secret")
TOKEN = Naive(believes="token")
WRONG = ("correctness.", "process.")

ATTACKS = (
    Attack(
        "B4",
        "module",
        "L0",
        ("policy.introspection",),
        SCALE_ADD,
        MODULE,
        TWIN,
        naive=TOKEN,
        faster=True,
        past_policy=WRONG,
    ),
    Attack(
        "B4",
        "memory",
        "L0",
        ("policy.introspection",),
        SCALE_ADD,
        COLLECTOR,
        TWIN,
        naive=TOKEN,
        faster=True,
        past_policy=WRONG,
    ),
)
