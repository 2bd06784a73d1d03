"""out = a @ b transposed, e4m3 in and fp32 out: the declared instruction is fp8's, and upcasting gives it away."""

from kernelgen.targets.compare import element_distance, structure


def make_inputs(dims, kind, seed, device):
    """plain: normal values. integers: small ones, nothing rounds. b is [N, K]."""
    import torch

    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)
    a = torch.randn(dims["M"], dims["K"], generator=generator, device=device)
    b = torch.randn(dims["N"], dims["K"], generator=generator, device=device)
    if kind == "integers":
        a, b = a.round(), b.round()
    return {"a": a.to(torch.float8_e4m3fn), "b": b.to(torch.float8_e4m3fn)}


def reference(a, b):
    """In float64, rounded once."""
    return ((a.double() @ b.double().T).float(),)


def compare(inputs, expected, got, tolerance):
    """Each element within atol of the sum of its terms' sizes."""
    size = inputs["a"].double().abs() @ inputs["b"].double().abs().T
    return structure(("out",), expected, got) or element_distance("out", expected[0], got[0], tolerance, size)


def flops(dims):
    return 2.0 * dims["M"] * dims["N"] * dims["K"]


def bytes_moved(dims):
    m, n, k = dims["M"], dims["N"], dims["K"]
    return 1.0 * (m * k + k * n) + 4.0 * m * n
