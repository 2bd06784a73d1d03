"""out = alpha * x + y, all [n] fp32: so little work that every shortcut is tempting."""

from kernelgen.targets.compare import element_distance, structure

# exact in fp32, as are the eighths that the seed adds: a number is an input like any other
ALPHAS = {"plain": 2.125, "integers": 3.0, "mixed": -0.75}
# a late element of a mixed vector, and the sizes of its others in turn
SPIKE = 1e4
SIZES = (1e-3, 1.0, 50.0)


def make_inputs(dims, kind, seed, device):
    """plain: normal values. integers: small ones, nothing rounds. mixed: three sizes in turn and one late spike."""
    import torch

    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)
    x, y = (torch.randn(dims["n"], generator=generator, device=device) for _ in range(2))
    if kind == "integers":
        x, y = (8 * x).round(), (8 * y).round()
    elif kind == "mixed":
        place = torch.arange(dims["n"], device=device)
        x = x * torch.tensor(SIZES, device=device)[place % len(SIZES)]
        x[-1] = SPIKE
    return {"x": x, "y": y, "alpha": ALPHAS[kind] + seed % 5 / 8}


def reference(x, y, alpha):
    """In float64, rounded once."""
    return ((alpha * x.double() + y.double()).float(),)


def compare(inputs, expected, got, tolerance):
    """Each element within rtol of itself and atol of what was summed."""
    size = (inputs["alpha"] * inputs["x"].double()).abs() + inputs["y"].double().abs()
    return structure(("out",), expected, got) or element_distance("out", expected[0], got[0], tolerance, size)


def flops(dims):
    return 2.0 * dims["n"]


def bytes_moved(dims):
    return 12.0 * dims["n"]
