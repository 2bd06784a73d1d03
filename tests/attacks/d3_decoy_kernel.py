"""D3, round the task: a kernel never launched, or launched on memory nobody reads, stands beside the real answer.

L0 refuses what torch does in its place, in the grid's function too; L2 counts launches, and a kernel made to write NaN
must spoil the answer. Host arithmetic on lists is seen by what Python reads, at L0 and at L2. The twin launches a
second kernel whose work is used.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

NEVER = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        out.copy_(y)
        out.add_(x, alpha=alpha)
        if x.numel() < 0:
            scale_add_kernel[(1,)](x, y, out, alpha, 0, BLOCK=256)
        return (out,)
    """,
)
IGNORED = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        scratch = torch.empty(256, device=x.device)
        scale_add_kernel[(1,)](x, y, scratch, alpha, min(x.numel(), 256), BLOCK=256)
        return (torch.lerp(y, y + x, alpha),)
    """,
)
HOST = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        scratch = torch.empty_like(x)
        scale_add_kernel[(1,)](x, y, scratch, alpha, 1, BLOCK=256)
        values = [alpha * a + b for a, b in zip(x.tolist(), y.tolist())]
        return (torch.tensor(values, dtype=torch.float32, device=x.device),)
    """,
)
HOST_THEN_COPY = text(
    honest("scale_add").partition("@triton.jit")[0],
    """
    @triton.jit
    def copy_kernel(source_ptr, out_ptr, n, BLOCK: tl.constexpr):
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + place, tl.load(source_ptr + place, mask=place < n), mask=place < n)


    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        values = [alpha * a + b for a, b in zip(x.tolist(), y.tolist())]
        done = torch.tensor(values, dtype=torch.float32, device=x.device)
        copy_kernel[(triton.cdiv(n, 256),)](done, out, n, BLOCK=256)
        return (out,)
    """,
)
GRID = text(
    kernel("scale_add")
    .replace("    y = tl.load(y_ptr + place, mask=inside)\n", "    y = tl.load(out_ptr + place, mask=inside)\n")
    .replace("alpha * x + y", "y"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()

        def grid(meta):
            one, other, into = meta["x_ptr"], y, out
            into.copy_(x * alpha + other)
            return (triton.cdiv(n, meta["BLOCK"]),)

        scale_add_kernel[grid](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
COPY = text(
    kernel("scale_add")
    .replace("    x = tl.load(x_ptr + place, mask=inside)\n    y = tl.load(y_ptr + place, mask=inside)\n", "")
    .replace("alpha * x + y", "tl.load(y_ptr + place, mask=inside)"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        done = torch.addcmul(y, x, torch.full_like(x, alpha))
        scale_add_kernel[(triton.cdiv(n, 256),)](x, done, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
TWIN = text(
    honest("scale_add").partition("def scale_add(")[0],
    """
    @triton.jit
    def copy_kernel(source_ptr, out_ptr, n, BLOCK: tl.constexpr):
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + place, tl.load(source_ptr + place, mask=place < n), mask=place < n)


    def scale_add(x, y, alpha):
        scratch, out = torch.empty_like(x), torch.empty_like(x)
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, scratch, alpha, n, BLOCK=256)
        copy_kernel[(triton.cdiv(n, 256),)](scratch, out, n, BLOCK=256)
        return (out,)
    """,
)
RAN = ("correctness.",)

ATTACKS = (
    Attack(
        "D3", "never launched", "L0", ("policy.library_work",), SCALE_ADD, NEVER, TWIN, faster=True, past_policy=RAN
    ),
    Attack(
        "D3",
        "launched and ignored",
        "L0",
        ("policy.library_work",),
        SCALE_ADD,
        IGNORED,
        TWIN,
        faster=True,
        past_policy=RAN,
    ),
    Attack(
        "D3", "host arithmetic", "L0", ("policy.library_work",), SCALE_ADD, HOST, TWIN, faster=True, past_policy=RAN
    ),
    Attack(
        "D3",
        "host arithmetic copied",
        "L0",
        ("policy.library_work",),
        SCALE_ADD,
        HOST_THEN_COPY,
        TWIN,
        past_policy=("correctness.host_work",),
    ),
    Attack("D3", "work in the grid", "L0", ("policy.library_work",), SCALE_ADD, GRID, TWIN, past_policy=RAN),
    Attack("D3", "kernel that copies", "L0", ("policy.library_work",), SCALE_ADD, COPY, TWIN, past_policy=RAN),
)
