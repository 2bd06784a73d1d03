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
NEEDED = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K")
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
Files = dict[str, dict[str, dict[str, int]]]


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
    files: Files = {}
    for shape, figures in ancestor.measured.shapes.items():
        if shape not in shapes:
            continue
        dims, chosen = shapes[shape], chosen_rows(figures.chosen)
        rows = {kernel: _row(kernel, rows, chosen, shape) for kernel, rows in table.items()}
        for kernel, suffix in _files_for(rows, style, shape).items():
            name = _file_name(dims["E"], dims["n"], gpu, form, style, suffix)
            files.setdefault(name, {})[str(dims["T"])] = _as_theirs(rows[kernel], kernel, style)
    return {name: json.dumps(_by_tokens(rows), indent=4) + "\n" for name, rows in files.items()}


def chosen_rows(text: str) -> dict[str, dict[str, str]]:
    """Values by name, by kernel, of what a process says that its autotuners chose; nothing of what is not in the form."""
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
    raise BadInput(
        f"Which of the {len(rows)} configurations of {kernel} won at {shape} was not recorded; judge it again."
    )


def _files_for(rows: Mapping[str, AutotuneConfig], style: str, shape: str) -> dict[str, str]:
    """Which kernels' configurations are written, and what their file's name has behind it."""
    first, *others = rows
    theirs = [_as_theirs(rows[kernel], kernel, style) for kernel in rows]
    if len(rows) > 2:
        raise BadInput(f"{style} tunes two products, and the champion has {len(rows)}: {', '.join(rows)}.")
    if not others or theirs[0] == theirs[1]:
        return {first: ""}
    if style == "sglang" and theirs[0]["BLOCK_SIZE_M"] == theirs[1]["BLOCK_SIZE_M"]:
        return {first: "", others[0]: "_down"}
    what = "BLOCK_SIZE_M for both products" if style == "sglang" else "configuration for both products"
    raise BadInput(f"{style} loads one {what}, and {first} and {others[0]} differ at {shape}.")


def _as_theirs(row: AutotuneConfig, kernel: str, style: str) -> dict[str, int]:
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


def _by_tokens(rows: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return dict(sorted(rows.items(), key=lambda entry: int(entry[0])))
