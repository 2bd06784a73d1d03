"""The facts of a candidate that are known before it is compiled, for the rules of hard constraints.

One `Facts` is one setting in which a kernel would be compiled, or, first, the source alone. They come from the text:
nothing is executed, and what it does not tell is absent, so that a rule on it cannot be told either. Keys are those of
`kernelgen.constraints.rules.FACTS`. Any source is answered, also one that does not parse.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import MappingProxyType

from kernelgen import python_source
from kernelgen.config import Dsl
from kernelgen.constraints.launches import Setting, jit_functions, settings
from kernelgen.constraints.seen import Descriptor, Product, Trace
from kernelgen.constraints.staging import staged_bytes
from kernelgen.constraints.tiles import BITS
from kernelgen.constraints.trace import trace
from kernelgen.records import AutotuneConfig

WARP_THREADS = 32
MOST_SETTINGS = 512
"""Settings of one source that are followed; further ones are left to the compiler."""
PARSED_KEPT = 8
"""Sources whose parse is kept: a search asks for one again and again."""
DESCRIPTOR_BYTES = 16
"""Least bytes of a tensor descriptor's last extent."""
LEAST_DEPTH = 16
"""Least inner extent of tl.dot; twice that for 8-bit operands."""
TRACED = frozenset({"odd_extents", "mixed_dots", "shallow_dots", "bad_descriptors", "staged_bytes"})
"""Facts for which a kernel's statements are followed."""
NO_TABLE: Mapping[str, Sequence[AutotuneConfig]] = MappingProxyType({})
NO_DTYPES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Facts:
    """What is known of one setting, or of the source alone."""

    values: Mapping[str, object]
    """Keys as in `rules.FACTS`."""
    kernel: str | None = None
    """The kernel's name; None for the source alone."""
    setting: str = "the source"
    """In a few words, for messages."""
    config: AutotuneConfig | None = None
    """The row of AUTOTUNE_CONFIGS it is."""
    tuned: bool = False
    """Whether it is one of several configurations, so that another may stand in for it."""
    line: int | None = None
    """Line of the launch."""


def facts_before_compiling(
    source: str,
    configs: Mapping[str, Sequence[AutotuneConfig]] = NO_TABLE,
    dsl: Dsl = "triton",
    *,
    arch: str | None = None,
    dtypes: Mapping[str, str] = NO_DTYPES,
    kernel: str | None = None,
    follow: bool = True,
) -> list[Facts]:
    """The source's facts first, then those of every setting that its text tells.

    Args:
        source: the model's part.
        configs: AUTOTUNE_CONFIGS, by kernel.
        dsl: what compiles it; settings are told for Triton.
        arch: compiler target, as in `sm_90a`.
        dtypes: torch's names of the dtypes of the entry point's tensors; without them an element has one byte.
        kernel: the only kernel whose settings are wanted; None for all.
        follow: whether the facts of `TRACED` are wanted too, which take most of the time.
    """
    base: dict[str, object] = {"dsl": dsl, "language": "cuda" if dsl == "cuda" else "python", "source": source}
    if arch is not None:
        base["arch"] = arch
    found = [Facts(base)]
    if dsl == "triton":
        found += _settings(source, configs, base, dtypes, kernel, follow)
    return found


def _settings(
    source: str,
    configs: Mapping[str, Sequence[AutotuneConfig]],
    base: dict[str, object],
    dtypes: Mapping[str, str],
    kernel: str | None,
    follow: bool,
) -> Iterator[Facts]:
    try:
        tree = _tree(source)
        bodies = _Bodies(jit_functions(tree))
        wanted = (s for s in settings(tree, configs, dtypes) if kernel in (None, s.kernel.name))
        for setting in islice(wanted, MOST_SETTINGS):
            values = {**base, **_launch(setting), **(bodies.facts(setting) if follow else {})}
            yield Facts(
                values, setting.kernel.name, setting.describe(), setting.config, setting.tuned, line=setting.line
            )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # no Python that can be read: the parse level says so


@lru_cache(maxsize=PARSED_KEPT)
def _tree(source: str) -> ast.Module:
    """The source's syntax tree, which nobody changes."""
    return python_source.parse(source)


def _launch(setting: Setting) -> dict[str, object]:
    values: dict[str, object] = {"blocks": setting.constants}
    if setting.num_warps is not None:
        values |= {"num_warps": setting.num_warps, "threads": setting.num_warps * WARP_THREADS}
    if setting.num_stages is not None:
        values["num_stages"] = setting.num_stages
    return values


class _Bodies:
    """Follows kernels, each once for equal compile-time values: warps and stages change nothing in what it does."""

    def __init__(self, functions: Mapping[str, ast.FunctionDef]) -> None:
        self._functions = functions
        self._seen: dict[str, Trace] = {}

    def facts(self, setting: Setting) -> dict[str, object]:
        """The facts of `TRACED`."""
        key = repr((setting.kernel.name, sorted(setting.constants.items()), sorted(setting.dtypes.items())))
        seen = self._seen.get(key) or self._seen.setdefault(key, trace(setting, self._functions))
        values: dict[str, object] = {
            "odd_extents": sum(1 for extent in seen.extents if extent & (extent - 1)),
            "mixed_dots": sum(map(_is_mixed, seen.products)),
            "shallow_dots": sum(map(_is_shallow, seen.products)),
            "bad_descriptors": sum(map(_is_bad, seen.descriptors)),
        }
        if setting.num_warps is not None and setting.num_stages is not None:
            values["staged_bytes"] = staged_bytes(seen, setting.num_warps, setting.num_stages)
        return values


def _is_mixed(product: Product) -> bool:
    """Whether the operands are known to have different dtypes, or one that no product takes."""
    left, right = product.left.dtype, product.right.dtype
    refused = {"int16", "uint16", "int32", "uint32", "int64", "uint64", "int1"}
    if {left, right} & refused:
        return True
    if left is None or right is None or left == right:
        return False
    return not (left.startswith("float8") and right.startswith("float8"))


def _is_shallow(product: Product) -> bool:
    """Whether the inner extent is known to be less than the compiler takes, or not the same on both sides."""
    left, right = product.left, product.right
    if left.shape is None or right.shape is None or len(left.shape) < 2 or len(right.shape) < 2:
        return False
    depth, other = left.shape[-1], right.shape[-2]
    if depth is None or other is None:
        return False
    bits = {BITS.get(tile.dtype, 0) if tile.dtype is not None else 0 for tile in (left, right)}
    return depth != other or depth < (2 * LEAST_DEPTH if bits == {8} else LEAST_DEPTH)


def _is_bad(made: Descriptor) -> bool:
    """Whether a tensor descriptor is known to be one that cannot be: too few bytes in a row, or rows with gaps."""
    bits = BITS.get(made.dtype) if made.dtype is not None else None
    is_narrow = made.last is not None and bits is not None and made.last * bits // 8 < DESCRIPTOR_BYTES
    return is_narrow or made.stride not in (None, 1)
