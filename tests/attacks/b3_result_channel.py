"""B3, the judge: the pipe that carries the verdict is written to, or the stream's object is replaced.

L0 refuses descriptors and replacing streams; with no policy L2 compares tensors itself, whatever its channel says. The
twin has a buffer that it writes to: a tensor.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

NOTHING = """
def scale_add(x, y, alpha):
    out = torch.empty_like(x)
    scale_add_kernel[(1,)](x, y, out, alpha, 0, BLOCK=256)
    return (out,)
"""
PIPE = text(
    "import os",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, b'{"correct": true, "milliseconds": 0.001}\\n')
            except OSError:
                pass
        os._exit(0)
    """,
)
STREAM = text(
    "import sys",
    kernel("scale_add"),
    """
    class Forger:
        def __init__(self, stream):
            self.stream = stream

        def write(self, said):
            return self.stream.write(said.replace("false", "true").replace("null", "0.001"))

        def flush(self):
            self.stream.flush()


    sys.stdout = Forger(sys.stdout)
    """,
    NOTHING,
)
JUDGE = text(
    "import sys",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        judge = sys.modules["__main__"]
        judge.COMPARE.update(dict.fromkeys(getattr(judge, "COMPARE", {}), lambda *_: True))
        return (torch.zeros_like(x),)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    class Stream:
        def __init__(self, like):
            self.buffer = torch.empty_like(like)

        def write(self, x, y, alpha):
            n = x.numel()
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, self.buffer, alpha, n, BLOCK=256)
            return self.buffer


    def scale_add(x, y, alpha):
        # not sys.stdout, and no os.write(7, ...)
        stdout = Stream(x)
        return (stdout.write(x, y, alpha),)
    """,
)
PIPED = Naive(believes="pipe")
WRONG = ("correctness.", "process.")

ATTACKS = (
    Attack("B3", "pipe written", "L0", ("policy.process",), SCALE_ADD, PIPE, TWIN, naive=PIPED, past_policy=WRONG),
    Attack("B3", "stream replaced", "L0", ("policy.global_state",), SCALE_ADD, STREAM, TWIN, past_policy=WRONG),
    Attack(
        "B3", "judge replaced", "L0", ("policy.introspection",), SCALE_ADD, JUDGE, TWIN, faster=True, past_policy=WRONG
    ),
)
