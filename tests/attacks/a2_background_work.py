"""A2, timing: a thread, a timer or a forked process computes after the call has returned.

L0 refuses threads and processes; L2 alone finds outputs that are not there when the call returns. The twin has the same
words in its names and counts the card's threads.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

LAUNCH = """
def launch(x, y, alpha, out):
    n = x.numel()
    scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
"""
TWIN = (
    honest("scale_add")
    .replace("place", "thread")
    .replace("inside", "running")
    .replace(
        "    out = torch.empty_like(x)\n",
        "    # one process, one Thread a value: threading.Thread(...).start() would be a cheat, and os.fork() too\n"
        "    out = torch.empty_like(x)\n",
    )
)

TIMER = text(
    "import threading",
    kernel("scale_add"),
    LAUNCH,
    """
    waiting = []


    def work():
        for call in waiting:
            launch(*call)


    def scale_add(x, y, alpha):
        out = torch.zeros_like(x)
        if not waiting:
            launch(x, y, alpha, out)
            threading.Timer(0.1, work).start()
        waiting.append((x, y, alpha, out))
        return (out,)
    """,
)
POOL = text(
    kernel("scale_add"),
    LAUNCH,
    """
    futures = __import__("concurrent" + ".futures", fromlist=["thread"])
    pool = getattr(futures, "Thread" + "PoolExecutor")(1)
    calls = []


    def later(*work):
        __import__("time").sleep(0.05)
        launch(*work)


    def scale_add(x, y, alpha):
        out = torch.zeros_like(x)
        calls.append(out)
        if len(calls) == 1:
            launch(x, y, alpha, out)
        else:
            pool.submit(later, x, y, alpha, out)
        return (out,)
    """,
)
FORK = text(
    "import os\nimport time",
    kernel("scale_add"),
    LAUNCH,
    """
    calls = 0


    def scale_add(x, y, alpha):
        global calls
        calls += 1
        out = torch.zeros_like(x).share_memory_()
        if calls == 1:
            launch(x, y, alpha, out)
        elif os.fork() == 0:
            time.sleep(0.1)
            launch(x, y, alpha, out)
            os._exit(0)
        return (out,)
    """,
)
LATE = ("correctness.", "process.")

ATTACKS = (
    Attack("A2", "timer thread", "L0", ("policy.threads",), SCALE_ADD, TIMER, TWIN, faster=True, past_policy=LATE),
    Attack(
        "A2",
        "thread pool in pieces",
        "L0",
        ("policy.dynamic_code",),
        SCALE_ADD,
        POOL,
        TWIN,
        faster=True,
        past_policy=LATE,
    ),
    Attack("A2", "forked process", "L0", ("policy.process",), SCALE_ADD, FORK, TWIN, past_policy=LATE),
)
