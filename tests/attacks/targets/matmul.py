"""out = a @ b, fp16 in and fp32 out, accumulated in fp32: lower precision and ready-made products are tempting."""

from kernelgen.targets.compare import element_distance, structure

# rows of a mixed left side, and how much larger than the others the last quarter of the sum is
SIZES = (1e-2, 1.0, 30.0)


def make_inputs(dims, kind, seed, device):
    """plain: normal values. integers: small ones, nothing rounds. mixed: rows of three sizes, terms that cancel."""
    import torch

    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)
    a = torch.randn(dims["M"], dims["K"], generator=generator, device=device)
    b = torch.randn(dims["K"], dims["N"], generator=generator, device=device)
    if kind == "integers":
        a, b = (3 * a).round(), (3 * b).round()
    elif kind == "mixed":
        row = torch.arange(dims["M"], device=device)
        a = a * torch.tensor(SIZES, device=device)[row % len(SIZES), None]
        a[:, 1::2] = -a[:, 0::2][:, : dims["K"] // 2] * 0.99
    return {"a": a.half(), "b": b.half()}


def reference(a, b):
    """In float64, rounded once."""
    return ((a.double() @ b.double()).float(),)


def compare(inputs, expected, got, tolerance):
    """Each element within atol of the sum of its terms' sizes."""
    size = inputs["a"].double().abs() @ inputs["b"].double().abs()
    return structure(("out",), expected, got) or element_distance("out", expected[0], got[0], tolerance, size)


def flops(dims):
    return 2.0 * dims["M"] * dims["N"] * dims["K"]


def bytes_moved(dims):
    m, n, k = dims["M"], dims["N"], dims["K"]
    return 2.0 * (m * k + k * n) + 4.0 * m * n
