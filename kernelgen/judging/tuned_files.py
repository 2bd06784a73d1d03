"""A champion's tuned configurations as the JSON files that vLLM and SGLang load for their fused MoE kernel.

One file for each count of experts and inner width: an object from token count to a configuration. File names and keys
as in their `get_config_file_name` and tuning scripts, seen 2026-11. A configuration is taken where the autotuner's
choice at a timed shape is known and is a row of the champion's own table; what cannot be expressed is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kernelgen.errors import BadInput, NoPlay
from kernelgen.judging.promotion import Ancestor
from kernelgen.playbook.champion import table_of
from kernelgen.records import AutotuneConfig

FORMATS = ("vllm", "sglang")
NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "BLOCK_SIZE_M": ("BLOCK_SIZE_M", "BLOCK_M"),
        "BLOCK_SIZE_N": ("BLOCK_SIZE_N", "BLOCK_N"),
        "BLOCK_SIZE_K": ("BLOCK_SIZE_K", "BLOCK_K"),
        "GROUP_SIZE_M": ("GROUP_SIZE_M", "GROUP_M"),
    }
)
"""Their keys, and what a kernel may call the same."""
BLOCK_M = "BLOCK_SIZE_M"
NEEDED = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K")
PRODUCTS = 2
"""Matrix products of the layer: gate and up, and down."""
NO_GROUPS = 1
"""GROUP_SIZE_M of a kernel that does not order its blocks in groups."""
_CHOSEN = re.compile(r"(\w+)\[([^\[\]]*)\]")
_PAIR = re.compile(r"(\w+): (\w+)")


@dataclass(frozen=True)
class Form:
    """How a target's kernels are named there."""

    dtype: str
    """The `dtype=` of the file's name."""
    block_shape: tuple[int, int] | None
    """The `block_shape=` of the file's name, or None for no such part."""


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "moe_fp8_block": Form("fp8_w8a8", (128, 128)),
        "moe_w4a16_g32": Form("int4_w4a16", None),
    }
)
"""The targets that are such a kernel: T tokens, E experts, n values each."""
Theirs = dict[str, int]
"""One configuration by their keys."""


def tuned_files(
    ancestor: Ancestor | None, target: str, shapes: Mapping[str, Mapping[str, int]], gpu: str, style: str
) -> dict[str, str]:
    """Text by file name. Raises BadInput where the target or the champion cannot be so expressed.

    `shapes` are the target's timed ones, `gpu` the device's name as torch tells it, `style` one of `FORMATS`.
    """
    form = FORMS.get(target)
    if form is None:
        raise BadInput(
            f"{style} loads configurations of fused MoE kernels, and {target} is none: only "
            f"{' and '.join(FORMS)} can be so expressed. Export it as a module."
        )
    if ancestor is None or ancestor.measured is None:
        raise BadInput(f"The champion of {target} was not promoted here, so no configuration of it was measured.")
    table = _tables(ancestor, style)
    layouts: dict[tuple[int, int], dict[int, list[Theirs]]] = {}
    for shape, figures in ancestor.measured.shapes.items():
        if shape in shapes:
            dims, chosen = shapes[shape], chosen_rows(figures.chosen)
            rows = [_as_theirs(_row(kernel, rows, chosen, shape), kernel, style) for kernel, rows in table.items()]
            layouts.setdefault((dims["E"], dims["n"]), {})[dims["T"]] = rows
    files: dict[str, str] = {}
    for (experts, inner), by_tokens in layouts.items():
        for suffix, rows_of in _products(by_tokens, tuple(table), style).items():
            name = _file_name(experts, inner, gpu, form, style, suffix)
            files[name] = json.dumps({str(tokens): rows_of[tokens] for tokens in sorted(rows_of)}, indent=4) + "\n"
    return files


def chosen_rows(text: str) -> dict[str, dict[str, str]]:
    """Values by name, by kernel, of what a process says that its autotuners chose; nothing of any other text."""
    return {kernel: dict(_PAIR.findall(values)) for kernel, values in _CHOSEN.findall(text)}


def _tables(ancestor: Ancestor, style: str) -> dict[str, list[AutotuneConfig]]:
    """Configurations of the champion's matrix products, in the order of the source."""
    champion = ancestor.champion
    try:
        table = {} if champion.language == "cuda" else table_of(champion.source)
    except NoPlay as error:
        raise BadInput(f"The configurations of {champion.id} cannot be read: {error}") from error
    found = {kernel: rows for kernel, rows in table.items() if all(_is_product(row) for row in rows)}
    if not found:
        raise BadInput(
            f"No kernel of {champion.id} is tuned by {', '.join(NEEDED)} (or BLOCK_M and so on), which {style} needs; "
            "export it as a module."
        )
    return found


def _is_product(row: AutotuneConfig) -> bool:
    return all(any(name in row.kwargs for name in NAMES[key]) for key in NEEDED)


def _row(
    kernel: str, rows: list[AutotuneConfig], chosen: Mapping[str, Mapping[str, str]], shape: str
) -> AutotuneConfig:
    """The configuration that won at a shape."""
    if len(rows) == 1:
        return rows[0]
    said = chosen.get(kernel, {})
    for row in rows:
        values = {**row.kwargs, "num_warps": row.num_warps, "num_stages": row.num_stages}
        if said and all(said.get(name) == str(value) for name, value in values.items()):
            return row
    raise BadInput(f"Which configuration of {kernel} won at {shape} was not recorded; judge it again.")


def _products(
    by_tokens: Mapping[int, list[Theirs]], kernels: tuple[str, ...], style: str
) -> dict[str, dict[int, Theirs]]:
    """Configurations by token count, by what the file's name has behind it: of both products, or of each."""
    if len(kernels) > PRODUCTS:
        raise BadInput(f"{style} tunes {PRODUCTS} products, and the champion has {len(kernels)}: {', '.join(kernels)}.")
    first = {tokens: rows[0] for tokens, rows in by_tokens.items()}
    last = {tokens: rows[-1] for tokens, rows in by_tokens.items()}
    if first == last:
        return {"": first}
    if style == "sglang" and all(first[tokens][BLOCK_M] == last[tokens][BLOCK_M] for tokens in first):
        return {"": first, "_down": last}
    what = f"{BLOCK_M} for both products" if style == "sglang" else "configuration for both products"
    raise BadInput(f"{style} loads one {what}, and {kernels[0]} and {kernels[-1]} differ; export it as a module.")


def _as_theirs(row: AutotuneConfig, kernel: str, style: str) -> Theirs:
    """A configuration by their keys. Raises BadInput where one of its values has none."""
    left, found = dict(row.kwargs), {}
    for key, names in NAMES.items():
        value = next((left.pop(name) for name in names if name in left), NO_GROUPS)
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadInput(f"{key} of {kernel} is {value!r}, which {style} cannot load.")
        found[key] = value
    if left:
        raise BadInput(f"{style} has no key for {', '.join(sorted(left))} of {kernel}; export it as a module.")
    return {**found, "num_warps": row.num_warps, "num_stages": row.num_stages}


def _file_name(experts: int, inner: int, gpu: str, form: Form, style: str, suffix: str) -> str:
    """The name under which they look for it."""
    device = gpu.replace(" ", "_")
    if style == "vllm" and "H200" in device.split("_"):
        device = "NVIDIA_H200"  # vLLM takes all of the family for one
    shape = "" if form.block_shape is None else f",block_shape={list(form.block_shape)}"
    shape = shape.replace(" ", "") if style == "vllm" else shape
    return f"E={experts},N={inner},device_name={device},dtype={form.dtype}{shape}{suffix}.json"
