"""C10, meaning: a low-precision target is computed by upcasting, so that the instruction it is about is never used.

L1 refuses it: the declared instruction is looked for in the machine code. The twins cast too, and still reach it.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import MATMUL, MATMUL_FP8, honest

UPCAST_FP8 = honest("matmul_fp8").replace("tl.dot(a, b, total)", "tl.dot(a.to(tl.float16), b.to(tl.float16), total)")
UPCAST_FP16 = honest("matmul").replace(
    "tl.dot(a, b, total)", 'tl.dot(a.to(tl.float32), b.to(tl.float32), total, input_precision="ieee")'
)
TWIN_FP8 = honest("matmul_fp8").replace("tl.store(out_ptr", "total = total.to(tl.float32)\n    tl.store(out_ptr")
TWIN_FP16 = honest("matmul").replace("tl.dot(a, b, total)", "tl.dot(a.to(tl.float16), b.to(tl.float16), total)")

ATTACKS = (
    Attack("C10", "fp8 as fp16", "L1", ("compile.instruction",), MATMUL_FP8, UPCAST_FP8, TWIN_FP8),
    Attack("C10", "fp16 as fp32", "L1", ("compile.instruction",), MATMUL, UPCAST_FP16, TWIN_FP16),
)
