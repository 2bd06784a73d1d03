"""out[r, t] = x[r, t] + decay * out[r, t - 1], fp32: old values count so little that leaving them out looks right."""

from kernelgen.targets.compare import element_distance, structure

DECAY = 0.75
# large enough that it is still seen at the end of a row
SPIKE = 1e8


def make_inputs(dims, kind, seed, device):
    """plain: normal values. early_spike: the first of every row is 1e8."""
    import torch

    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)
    x = torch.randn(dims["R"], dims["T"], generator=generator, device=device)
    if kind == "early_spike":
        x[:, 0] = SPIKE
    return {"x": x, "decay": DECAY}


def reference(x, decay):
    """Step by step, in float64."""
    import torch

    columns, total = [], torch.zeros_like(x[:, 0], dtype=torch.float64)
    for column in x.double().unbind(dim=1):
        total = column + decay * total
        columns.append(total)
    return (torch.stack(columns, dim=1).float(),)


def compare(inputs, expected, got, tolerance):
    """Each element within rtol of itself and atol of what was summed."""
    size = reference(inputs["x"].abs(), inputs["decay"])[0].double()
    return structure(("out",), expected, got) or element_distance("out", expected[0], got[0], tolerance, size)


def flops(dims):
    return 2.0 * dims["R"] * dims["T"]


def bytes_moved(dims):
    return 8.0 * dims["R"] * dims["T"]
