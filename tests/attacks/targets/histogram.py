"""counts[b] = how many values are b, int32, by atomic additions: balanced values hide a kernel that drops some."""

from kernelgen.targets.compare import exact_distance, structure


def make_inputs(dims, kind, seed, device):
    """plain: uniform values. skewed: nearly all in one bin. edges: the first and the last bin alone."""
    import torch

    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)
    values = torch.randint(0, dims["bins"], (dims["n"],), generator=generator, device=device, dtype=torch.int32)
    if kind == "skewed":
        values[: dims["n"] - dims["n"] // 16] = seed % dims["bins"]
    elif kind == "edges":
        values = (values % 2) * (dims["bins"] - 1)
    return {"values": values, "bins": dims["bins"]}


def reference(values, bins):
    """By torch's own count."""
    import torch

    return (torch.bincount(values, minlength=bins).int(),)


def compare(inputs, expected, got, tolerance):
    """Exactly."""
    del inputs, tolerance
    return structure(("counts",), expected, got) or exact_distance("counts", expected[0], got[0], "counts are exact")


def flops(dims):
    return 1.0 * dims["n"]


def bytes_moved(dims):
    return 4.0 * dims["n"] + 4.0 * dims["bins"]
