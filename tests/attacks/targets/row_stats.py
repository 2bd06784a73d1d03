"""(mean, variance) of the rows of x [R, C] fp32, each [R] fp32: two outputs, of which one can be left out."""

from kernelgen.targets.compare import element_distance, structure


def make_inputs(dims, kind, seed, device):
    """plain: normal values. shifted: a mean that hides the variance of a one-pass formula."""
    import torch

    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)
    x = torch.randn(dims["R"], dims["C"], generator=generator, device=device)
    return {"x": x + 1000.0 if kind == "shifted" else x}


def reference(x):
    """In float64, rounded once; the variance is that of the population."""
    wide = x.double()
    return wide.mean(dim=-1).float(), wide.var(dim=-1, unbiased=False).float()


def compare(inputs, expected, got, tolerance):
    """Each element within rtol of itself and atol of the row's size."""
    faults = structure(("mean", "variance"), expected, got)
    size = inputs["x"].double().abs().mean(dim=-1)
    return faults or [
        fault
        for name, want, have in zip(("mean", "variance"), expected, got, strict=True)
        for fault in element_distance(name, want, have, tolerance, size)
    ]


def flops(dims):
    return 5.0 * dims["R"] * dims["C"]


def bytes_moved(dims):
    return 4.0 * dims["R"] * dims["C"] + 8.0 * dims["R"]
