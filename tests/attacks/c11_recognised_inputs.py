"""C11, meaning: the inputs' distribution is taken for granted, and a path taken that is right for it alone.

L2 refuses it: scaled inputs, spikes late in the tensor, mixed amplitudes. The twins clamp only
where it changes nothing.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import ROW_SOFTMAX, SCALE_ADD, honest, kernel
from tests.attacks.source import text

NO_MAXIMUM = honest("row_softmax").replace("tl.exp(x - tl.max(x, axis=0))", "tl.exp(x)")
SAMPLED = honest("row_softmax").replace("tl.max(x, axis=0)", 'tl.max(tl.where(column < 16, x, float("-inf")), axis=0)')
CLAMPED = honest("row_softmax").replace("tl.exp(x - tl.max(x, axis=0))", "tl.exp(tl.minimum(x, 16.0))")
TWIN = honest("row_softmax").replace("tl.exp(x - tl.max(x, axis=0))", "tl.exp(tl.minimum(x - tl.max(x, axis=0), 0.0))")
SMALL = text(
    kernel("scale_add").replace("alpha * x + y", "(alpha * tl.clamp(x, -8.0, 8.0)).to(tl.float32) + y"),
    honest("scale_add").partition("@triton.jit")[2].partition("\n\n\n")[2],
)
SMALL_TWIN = SMALL.replace("tl.clamp(x, -8.0, 8.0)", "tl.clamp(x, -3.0e38, 3.0e38)")
WRONG = ("correctness.",)

ATTACKS = (
    Attack("C11", "no maximum", "L2", WRONG, ROW_SOFTMAX, NO_MAXIMUM, TWIN),
    Attack("C11", "sampled maximum", "L2", WRONG, ROW_SOFTMAX, SAMPLED, TWIN),
    Attack("C11", "clamped values", "L2", WRONG, ROW_SOFTMAX, CLAMPED, TWIN),
    Attack("C11", "clamped inputs", "L2", WRONG, SCALE_ADD, SMALL, SMALL_TWIN),
)
