"""out = softmax(x) along the last axis of x [R, C] fp32: its answers are small, and plain inputs need no maximum."""

from kernelgen.targets.compare import element_distance, structure

# the last value of a late_spike row: exp of it overflows fp32
SPIKE = 200.0
SIZES = (1e-3, 1.0, 30.0)


def make_inputs(dims, kind, seed, device):
    """plain: normal values. late_spike: the last of every row is 200. mixed: rows of three sizes in turn."""
    import torch

    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)
    x = torch.randn(dims["R"], dims["C"], generator=generator, device=device)
    if kind == "late_spike":
        x[:, -1] = SPIKE
        x[:, dims["C"] // 2] = SPIKE - 1.0
    elif kind == "mixed":
        row = torch.arange(dims["R"], device=device)
        x = x * torch.tensor(SIZES, device=device)[row % len(SIZES), None]
    return {"x": x}


def reference(x):
    """In float64, rounded once."""
    return (x.double().softmax(dim=-1).float(),)


def compare(inputs, expected, got, tolerance):
    """Each element within rtol of itself."""
    return structure(("out",), expected, got) or element_distance("out", expected[0], got[0], tolerance)


def flops(dims):
    return 5.0 * dims["R"] * dims["C"]


def bytes_moved(dims):
    return 8.0 * dims["R"] * dims["C"]
