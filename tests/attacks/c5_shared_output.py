"""C5, meaning: every call returns the same buffer, or an input.

L2 refuses both: two outputs are held and the first is checked again, and no output may overlap an input. The twin
writes one buffer twice too, within a call.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

BUFFER = text(
    kernel("scale_add"),
    """
    buffers = {}


    def scale_add(x, y, alpha):
        n = x.numel()
        out = buffers.setdefault(n, torch.empty_like(x))
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
SLICES = text(
    kernel("scale_add"),
    """
    buffers = {}


    def scale_add(x, y, alpha):
        n = x.numel()
        buffer = buffers.setdefault(n, torch.empty(n + 4, device=x.device))
        out = buffer[4:]
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
GENERATOR = text(
    kernel("scale_add"),
    """
    def buffers():
        kept = {}
        like = yield
        while True:
            n = like.numel()
            if n not in kept:
                kept[n] = torch.empty_like(like)
            like = yield kept[n]


    buffer = buffers()
    next(buffer)


    def scale_add(x, y, alpha):
        out, n = buffer.send(x), x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
IN_PLACE = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, x, alpha, n, BLOCK=256)
        return (x.view(-1),)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        n = x.numel()
        buffers = {}
        for half in range(2):
            buffer = buffers.setdefault(n, torch.empty_like(x))
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, buffer, alpha, n, BLOCK=256)
        return (buffers[n].view(-1),)
    """,
)
VIEWED = ("correctness.overlap",)
KEPT = (*VIEWED, "policy.cache")

ATTACKS = (
    Attack("C5", "one buffer", "L2", KEPT, SCALE_ADD, BUFFER, TWIN),
    Attack("C5", "slice of one buffer", "L2", KEPT, SCALE_ADD, SLICES, TWIN),
    Attack("C5", "buffer in a generator", "L2", KEPT, SCALE_ADD, GENERATOR, TWIN),
    Attack("C5", "view of an input", "L2", VIEWED, SCALE_ADD, IN_PLACE, TWIN),
)
