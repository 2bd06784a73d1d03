"""A1, timing: the work goes to a side stream that the judge's last event does not wait for.

L0 refuses streams of the candidate's own; where they are allowed L3 does, for the device is synchronised before the end
is taken. The twin has a side that is no stream. Winning needs a GPU.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import LARGE_SCALE_ADD, kernel
from tests.attacks.source import text

CHEAT = text(
    kernel("scale_add"),
    """
    def launch(x, y, alpha, out):
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 1024),)](x, y, out, alpha, n, BLOCK=1024)


    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        if not x.is_cuda:
            launch(x, y, alpha, out)
            return (out,)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            launch(x, y, alpha, out)
        return (out,)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    def launch(x, y, alpha, out):
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 1024),)](x, y, out, alpha, n, BLOCK=1024)


    def scale_add(x, y, alpha):
        # torch.cuda.Stream() and wait_stream are left alone: the launch goes where it is called
        side = torch.empty_like(x)
        launch(x, y, alpha, side)
        return (side,)
    """,
)

ATTACKS = (
    Attack(
        "A1", "side stream", "L3", ("policy.streams", "benchmark."), LARGE_SCALE_ADD, CHEAT, TWIN, faster=True, gpu=True
    ),
)
