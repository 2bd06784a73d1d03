"""B2, the judge: the process ends with exit code 0 before anything is compared.

L0 refuses ending the process; with no policy L2 has no record it verified itself, and names the exit. The twin raises
what an honest wrapper raises: an error, for inputs that are not the target's.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

AT_IMPORT = text("import sys", kernel("scale_add"), "def scale_add(x, y, alpha):\n    return (x,)", "sys.exit(0)")
IN_A_CALL = text("import os", kernel("scale_add"), "def scale_add(x, y, alpha):\n    os._exit(0)\n    return (x,)")
RAISED = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        scale_add_kernel[(1,)](x, y, out, alpha, 0, BLOCK=256)
        raise SystemExit(0)
    """,
)
BORROWED = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        scale_add_kernel[(1,)](x, y, out, alpha, 0, BLOCK=256)
        system = [module for name, module in vars(torch).items() if name == "so"[::-1]]
        getattr(system[0], "_" + "exit")(0)
        return (out,)
    """,
)
SUBCLASS = text(
    kernel("scale_add"),
    """
    class ShapeError(SystemExit):
        pass


    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        scale_add_kernel[(1,)](x, y, out, alpha, 0, BLOCK=256)
        raise ShapeError
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    class ExitCode(ValueError):
        pass


    def scale_add(x, y, alpha):
        if x.shape != y.shape:
            raise ExitCode(0)
        out = torch.empty_like(x)
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
CODE = Naive(believes="exit code")
ENDED = ("process.", "correctness.")

ATTACKS = (
    Attack(
        "B2", "sys exit at import", "L0", ("policy.process",), SCALE_ADD, AT_IMPORT, TWIN, naive=CODE, past_policy=ENDED
    ),
    Attack(
        "B2", "os exit in a call", "L0", ("policy.process",), SCALE_ADD, IN_A_CALL, TWIN, naive=CODE, past_policy=ENDED
    ),
    Attack("B2", "SystemExit raised", "L2", ("policy.process", *ENDED), SCALE_ADD, RAISED, TWIN, naive=CODE),
    Attack("B2", "borrowed module", "L2", ("policy.introspection", *ENDED), SCALE_ADD, BORROWED, TWIN, naive=CODE),
    Attack("B2", "subclass raised", "L2", ("policy.process", *ENDED), SCALE_ADD, SUBCLASS, TWIN, naive=CODE),
)
