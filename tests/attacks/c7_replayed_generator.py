"""C7, meaning: the inputs are known in advance, since the generator's seed is, or they are made to repeat.

L2 refuses it: seeds are unknown to the candidate and inputs come from another process. The twin works a
constant out of a seed of its own.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

LAUNCH = """
def launch(x, y, alpha):
    out = torch.empty_like(x)
    n = x.numel()
    scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
    return out
"""
SEED = text(
    kernel("scale_add"),
    LAUNCH,
    """
    generator = torch.Generator().manual_seed(42)
    ANSWER = launch(*(torch.randn(2048, generator=generator) for _ in range(2)), 2.125 + 42 % 5 / 8)


    def scale_add(x, y, alpha):
        return (ANSWER,)
    """,
)
RESEEDED = text(
    kernel("scale_add"),
    LAUNCH,
    """
    answers = []


    def scale_add(x, y, alpha):
        torch.manual_seed(0)
        if len(answers) < 2:
            answers.append(launch(x, y, alpha))
        return (answers[-1],)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    # torch.Generator().manual_seed(42) is not asked for any numbers
    manual_seed = 42
    SKEW = 1 + (1103515245 * manual_seed + 12345) % 2


    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n, block = x.numel(), 128 * SKEW
        scale_add_kernel[(triton.cdiv(n, block),)](x, y, out, alpha, n, BLOCK=block)
        return (out,)
    """,
)
STALE = ("correctness.", "policy.random")

ATTACKS = (
    Attack("C7", "known seed", "L2", STALE, SCALE_ADD, SEED, TWIN, faster=True, past_policy=("correctness.",)),
    Attack(
        "C7",
        "generator set back",
        "L2",
        STALE,
        SCALE_ADD,
        RESEEDED,
        TWIN,
        naive=Naive(trials=3),
        faster=True,
        past_policy=("correctness.",),
    ),
)
