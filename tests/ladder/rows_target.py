"""A target for the tests of L2: y = factor * w * x for rows x [T, N] fp32, and total [T] fp32, the sums of y's rows."""

KINDS = ("plain", "stressed", "exact")
OUTPUTS = ("y", "total")


def make_inputs(dims, kind, seed, device):
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    x = torch.randn(dims["T"], dims["N"], generator=generator, device=device)
    w = torch.rand(dims["N"], generator=generator, device=device) + 0.5
    if kind == "exact":
        x, w = torch.round(4 * x), torch.round(2 * w)
    elif kind == "stressed":
        x[-1] *= 1e4
    # a column of padding
    x[:, -1] = 0.0
    return {"x": x, "w": w, "factor": 2.0 if kind == "exact" else 1.0 + (seed % 1000) / 1000}


def reference(x, w, factor):
    y = factor * w.double() * x.double()
    return y.float(), y.sum(dim=-1).float()


def compare(inputs, expected, got, tolerance):
    from kernelgen.targets.compare import element_distance

    size = expected[0].double().abs().sum(dim=-1)
    faults = element_distance("y", expected[0], got[0], tolerance)
    return faults or element_distance("total", expected[1], got[1], tolerance, size)


def flops(dims):
    return 3.0 * dims["T"] * dims["N"]


def bytes_moved(dims):
    return 4.0 * (2 * dims["T"] * dims["N"] + dims["T"] + dims["N"])
