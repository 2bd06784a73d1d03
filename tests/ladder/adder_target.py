"""A target for the tests: out = x + y, both [N] fp32."""

KIND_SCALES = {"plain": 1.0, "large": 1e6}


def make_inputs(dims, kind, seed, device):
    import torch

    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)
    x, y = (KIND_SCALES[kind] * torch.randn(dims["N"], generator=generator, device=device) for _ in range(2))
    return {"x": x, "y": y}


def reference(x, y):
    return (x + y,)


def compare(inputs, expected, got, tolerance):
    import torch

    rtol, atol = tolerance["out"]
    if torch.allclose(got[0], expected[0], rtol=rtol, atol=atol):
        return []
    return [f"out is off by up to {(got[0] - expected[0]).abs().max().item():g}"]


def flops(dims):
    return float(dims["N"])


def bytes_moved(dims):
    return 12.0 * dims["N"]
