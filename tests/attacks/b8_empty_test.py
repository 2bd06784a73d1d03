"""B8, the judge: the candidate brings its own test, which holds nothing.

L2 refuses it: a candidate's own test decides nothing. The twin brings a real test and a reference in torch, which its
entry point never calls.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

EMPTY = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.zeros_like(x)
        scale_add_kernel[(1,)](x, y, out, alpha, 0, BLOCK=256)
        return (out,)


    def test_correctness(device="cuda"):
        assert scale_add is not None
    """,
)
WEAK = text(
    kernel("scale_add").replace("alpha * x + y", "x + y"),
    """
    def scale_add(x, y, alpha):
        out, n = torch.empty_like(x), x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)


    def test_correctness(device="cpu"):
        x = torch.zeros(100, device=device)
        assert torch.allclose(scale_add(x, x, 2.0)[0], x)
    """,
)
TWIN = text(
    honest("scale_add"),
    """
    def reference(x, y, alpha):
        return alpha * x + y


    def test_correctness(device="cpu"):
        x, y = (torch.randn(1000, device=device) for _ in range(2))
        torch.testing.assert_close(scale_add(x, y, 2.0)[0], reference(x, y, 2.0))


    if __name__ == "__main__":
        test_correctness()
    """,
)
OWN = Naive(compare="own test")

ATTACKS = (
    Attack("B8", "empty test", "L2", ("correctness.",), SCALE_ADD, EMPTY, TWIN, naive=OWN, faster=True),
    Attack("B8", "weak test", "L2", ("correctness.",), SCALE_ADD, WEAK, TWIN, naive=OWN),
)
