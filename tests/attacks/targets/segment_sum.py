"""out[b] = sum of rows offsets[b] to offsets[b + 1] of values [B * L, D] fp32: segments of one length are tempting."""

from kernelgen.targets.compare import element_distance, structure


def make_inputs(dims, kind, seed, device):
    """plain: every segment has L rows. skewed: the last has all. ragged: any lengths, some empty. Values are whole."""
    import torch

    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)
    segments, rows = dims["B"], dims["B"] * dims["L"]
    values = (1000 * torch.randn(rows, dims["D"], generator=generator, device=device)).round()
    offsets = torch.arange(segments + 1, device=device, dtype=torch.int32) * dims["L"]
    if kind == "skewed":
        offsets[:-1] = 0
    elif kind == "ragged":
        cuts = torch.randint(0, rows + 1, (segments - 1,), generator=generator, device=device, dtype=torch.int32)
        offsets[1:-1] = cuts.sort().values
    return {"values": values, "offsets": offsets}


def reference(values, offsets):
    """Row by row, in float64."""
    from itertools import pairwise

    import torch

    sums = [values[begin:end].double().sum(dim=0) for begin, end in pairwise(offsets.tolist())]
    return (torch.stack(sums).float(),)


def compare(inputs, expected, got, tolerance):
    """Each element within rtol of itself: whole numbers do not round."""
    del inputs
    return structure(("out",), expected, got) or element_distance("out", expected[0], got[0], tolerance)


def flops(dims):
    return 1.0 * dims["B"] * dims["L"] * dims["D"]


def bytes_moved(dims):
    return 4.0 * dims["D"] * dims["B"] * (dims["L"] + 1) + 4.0 * (dims["B"] + 1)
