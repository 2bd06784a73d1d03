"""A14, timing: the work is left for a signal, a finalizer or the end of the process.

L3 synchronises and takes the output's fingerprint again; L0 refuses signals and exit hooks, and L2 finds an output that
is not there. The twin has a finalizer's name for what it does before it returns.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

LAUNCH = """
waiting = []


def finish(*_):
    while waiting:
        x, y, alpha, out = waiting.pop()
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
"""
ALARM = text(
    "import signal",
    kernel("scale_add"),
    LAUNCH,
    """
    signal.signal(signal.SIGALRM, finish)
    calls = 0


    def scale_add(x, y, alpha):
        global calls
        calls += 1
        out = torch.zeros_like(x)
        waiting.append((x, y, alpha, out))
        if calls == 1:
            finish()
        else:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
        return (out,)
    """,
)
AT_EXIT = text(
    "import atexit",
    kernel("scale_add"),
    LAUNCH,
    """
    atexit.register(finish)
    calls = 0


    def scale_add(x, y, alpha):
        global calls
        calls += 1
        out = torch.zeros_like(x)
        waiting.append((x, y, alpha, out))
        if calls == 1:
            finish()
        return (out,)
    """,
)
FINALIZER = text(
    kernel("scale_add"),
    LAUNCH,
    """
    class Rest:
        def __del__(self):
            finish()


    rests = []


    def scale_add(x, y, alpha):
        out = torch.zeros_like(x)
        waiting.append((x, y, alpha, out))
        if not rests:
            finish()
        rests.append(Rest())
        return (out,)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    def finish(x, y, alpha, out):
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)


    def scale_add(x, y, alpha):
        # atexit.register(finish), signal.signal(...) and __del__ would come too late
        waiting = [torch.empty_like(x)]
        try:
            finish(x, y, alpha, waiting[0])
        finally:
            at_exit = waiting.pop()
        return (at_exit,)
    """,
)
LATE = ("correctness.",)

ATTACKS = (
    Attack("A14", "alarm", "L0", ("policy.late_work",), SCALE_ADD, ALARM, TWIN, faster=True, past_policy=LATE),
    Attack("A14", "at exit", "L0", ("policy.late_work",), SCALE_ADD, AT_EXIT, TWIN, faster=True, past_policy=LATE),
    Attack("A14", "finalizer", "L2", ("policy.late_work", "correctness."), SCALE_ADD, FINALIZER, TWIN, faster=True),
)
