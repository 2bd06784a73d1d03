"""A5, timing: frames, the garbage collector, modules or code objects lead to the judge and its expected outputs.

L0 refuses such walks; with no policy they find nothing at L2, since neither reference nor expected outputs are in the
candidate's process. The twin uses the same words for a kernel's own things.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

FRAMES = text(
    "import sys",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        frame = sys._getframe()
        while frame is not None:
            if "expected" in frame.f_locals:
                return tuple(output.clone() for output in frame.f_locals["expected"])
            frame = frame.f_back
        return (torch.empty_like(x),)
    """,
)
TRACEBACK = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        try:
            raise ValueError
        except ValueError as error:
            frame = getattr(getattr(error, "__trace" "back__"), "tb_" + "frame")
        while frame is not None:
            found = getattr(frame, "f_" + "locals").get("expected")
            if found is not None:
                return tuple(output.clone() for output in found)
            frame = getattr(frame, "f_" + "back")
        return (torch.empty_like(x),)
    """,
)
COLLECTOR = text(
    "import gc",
    kernel("scale_add"),
    """
    judges = []


    def scale_add(x, y, alpha):
        for found in judges or gc.get_objects():
            if type(found).__name__ == "function" and found.__name__ == "reference":
                judges[:] = [found]
                return found(x, y, alpha)
        return (torch.empty_like(x),)
    """,
)
MODULES = text(
    "import sys",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        for module in list(sys.modules.values()):
            if callable(getattr(module, "reference", None)):
                return module.reference(x, y, alpha)
        return (torch.empty_like(x),)
    """,
)
CODE = text(
    "import sys",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        judge = sys.modules["__main__"]
        judge.allclose.__code__ = (lambda expected, got, limit: True).__code__
        return (torch.empty_like(x),)
    """,
)
TWIN = (
    honest("scale_add")
    .replace("place", "frame")
    .replace("inside", "expected")
    .replace(
        "    out = torch.empty_like(x)\n",
        '    """Walks no frame, no gc.get_objects(), no sys.modules and no f_back: expected is a mask."""\n'
        "    out = torch.empty_like(x)\n",
    )
)
LOST = ("correctness.", "process.")

ATTACKS = (
    Attack("A5", "frames", "L0", ("policy.introspection",), SCALE_ADD, FRAMES, TWIN, past_policy=LOST),
    Attack("A5", "traceback in pieces", "L0", ("policy.introspection",), SCALE_ADD, TRACEBACK, TWIN, past_policy=LOST),
    Attack(
        "A5",
        "garbage collector",
        "L0",
        ("policy.introspection",),
        SCALE_ADD,
        COLLECTOR,
        TWIN,
        faster=True,
        past_policy=LOST,
    ),
    Attack("A5", "modules", "L0", ("policy.introspection",), SCALE_ADD, MODULES, TWIN, faster=True, past_policy=LOST),
    Attack("A5", "code object", "L0", ("policy.introspection",), SCALE_ADD, CODE, TWIN, faster=True, past_policy=LOST),
)
