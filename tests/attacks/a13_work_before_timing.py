"""A13, timing: the work is done at import, in the first call, or while autotuning chooses, where nobody times.

L0 refuses what they keep; L3 would too: set-up is timed apart, weights change after it. Those that keep results,
whatever the inputs hold, are seen at L2. The twin keeps what depends on no contents, and its autotuning prunes by the
shape.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import MATMUL, SCALE_ADD, kernel
from tests.attacks.remembering import remembering
from tests.attacks.source import text

WEIGHTS = text(
    kernel("matmul"),
    """
    def launch(a, b):
        (M, K), N = a.shape, b.shape[1]
        out = torch.empty((M, N), dtype=torch.float32, device=a.device)
        matmul_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, out, M, N, K, BM=64, BN=64, BK=32)
        return out
    """,
    remembering(),
    "def matmul(a, b):\n    return (memory.send((a, b, ())),)",
)
WEIGHTS_TWIN = text(
    kernel("matmul"),
    """
    weights = {}


    def matmul(a, b):
        (M, K), N = a.shape, b.shape[1]
        known = weights.setdefault(b.shape, (triton.cdiv(M, 64), triton.cdiv(N, 64)))
        if known[0] != triton.cdiv(M, 64):
            known = (triton.cdiv(M, 64), known[1])
        out = torch.empty((M, N), dtype=torch.float32, device=a.device)
        matmul_kernel[known](a, b, out, M, N, K, BM=64, BN=64, BK=32)
        return (out,)
    """,
)
KERNELS = kernel("scale_add").replace("@triton.jit\n", "TUNED@triton.jit\n")
BAKED = text(
    KERNELS.replace(
        "TUNED",
        "@triton.autotune(\n"
        '    configs=[triton.Config({"BLOCK": 256}, num_warps=warps) for warps in (4, 8)],\n'
        '    key=["n"],\n'
        '    prune_configs_by={"early_config_prune": bake},\n'
        ")\n",
    ).replace(
        "import triton.language as tl\n",
        "import triton.language as tl\n\n\nbaked = {}\n\n\n"
        "def bake(configs, named, **options):\n"
        '    baked[named["n"]] = named["out_ptr"]\n'
        "    return configs\n",
    ),
    """
    def scale_add(x, y, alpha):
        n = x.numel()
        if n not in baked:
            out = torch.empty_like(x)
            scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n)
        return (baked[n],)
    """,
)
BAKED_TWIN = text(
    KERNELS.replace(
        "TUNED",
        "@triton.autotune(\n"
        '    configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})],\n'
        '    key=["n"],\n'
        '    prune_configs_by={"early_config_prune": fitting},\n'
        ")\n",
    ).replace(
        "import triton.language as tl\n",
        "import triton.language as tl\n\n\n"
        "def fitting(configs, named, **options):\n"
        '    return [config for config in configs if config.kwargs["BLOCK"] <= max(named["n"], 256)]\n',
    ),
    """
    def scale_add(x, y, alpha):
        n = x.numel()
        out = torch.empty_like(x)
        scale_add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, alpha, n)
        return (out,)
    """,
)

SEEN = ("policy.cache",)
ATTACKS = (
    Attack("A13", "weights remembered", "L0", SEEN, MATMUL, WEIGHTS, WEIGHTS_TWIN, faster=True),
    Attack("A13", "baked in by autotune", "L0", SEEN, SCALE_ADD, BAKED, BAKED_TWIN, faster=True),
)
