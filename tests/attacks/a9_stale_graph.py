"""A9, timing: a CUDA graph is captured without the launch, and each replay leaves the first call's output in place.

L0 refuses graphs of the candidate's own; where they are allowed L3 does, for outputs are poisoned before each
replay and inputs change in place. The twin keeps sizes in what it calls graphs. Winning needs a GPU.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import LARGE_SCALE_ADD, kernel
from tests.attacks.source import text

LAUNCH = """
def launch(x, y, alpha, out):
    n = x.numel()
    scale_add_kernel[(triton.cdiv(n, 1024),)](x, y, out, alpha, n, BLOCK=1024)
    return (out,)
"""
CHEAT = text(
    kernel("scale_add"),
    LAUNCH,
    """
    graphs = {}


    def scale_add(x, y, alpha):
        n = x.numel()
        if not x.is_cuda:
            return launch(x, y, alpha, torch.empty_like(x))
        if n not in graphs:
            graph, out, mark = torch.cuda.CUDAGraph(), torch.empty_like(x), torch.zeros(1, device=x.device)
            launch(x, y, alpha, out)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                mark.zero_()
            graphs[n] = (graph, out, mark)
        graphs[n][0].replay()
        return (graphs[n][1],)
    """,
)
TWIN = text(
    kernel("scale_add"),
    LAUNCH,
    """
    graphs = {}


    def scale_add(x, y, alpha):
        n = x.numel()
        if n not in graphs:
            # no torch.cuda.CUDAGraph() and no replay(): how wide a block is, for each size
            graphs[n] = min(1024, triton.next_power_of_2(n))
        out = torch.empty_like(x)
        scale_add_kernel[(triton.cdiv(n, graphs[n]),)](x, y, out, alpha, n, BLOCK=graphs[n])
        return (out,)
    """,
)

ATTACKS = (
    Attack(
        "A9", "stale graph", "L3", ("policy.streams", "benchmark."), LARGE_SCALE_ADD, CHEAT, TWIN, faster=True, gpu=True
    ),
)
