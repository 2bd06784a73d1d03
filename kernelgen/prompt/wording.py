"""How single values read in a prompt or a header: figures with their unit, text on one line, a shape, a performance."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.records import Measured

NOT_MEASURED = "not measured"
_WHOLE_FROM = 1000.0
"""From here on a figure needs no digits after the point."""


def figure(value: float | None, unit: str = "") -> str:
    """The value to four significant digits with its unit, or `not measured`."""
    if value is None:
        return NOT_MEASURED
    number = f"{value:.0f}" if abs(value) >= _WHOLE_FROM else f"{value:.4g}"
    return f"{number} {unit}" if unit else number


def one_line(text: str) -> str:
    """The text with every run of white space, line ends of any kind included, as one space."""
    return " ".join(text.split())


def shape(name: str, dims: Mapping[str, int]) -> str:
    """A shape with its dimensions by name, as in `t64 (T=64)`."""
    return f"{name} ({', '.join(f'{dim}={extent}' for dim, extent in sorted(dims.items()))})"


def performance(measured: Measured | None) -> str:
    """The specification's three figures: TFLOPS, BW and occupancy."""
    if measured is None:
        return f"TFLOPS {NOT_MEASURED}, BW {NOT_MEASURED}, occupancy {NOT_MEASURED}"
    return (
        f"TFLOPS {figure(measured.tflops)}, BW {figure(measured.gbytes_per_s, 'GB/s')}, "
        f"occupancy {figure(measured.occupancy_percent, '%')}, time {figure(measured.time_us, 'us')} "
        f"at {measured.shape} [{one_line(measured.source)}]"
    )
