"""What calls of Triton's language give, and what a kernel does by them: one case each, unknown for the others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from kernelgen.constraints.constants import UNKNOWN, Constant
from kernelgen.constraints.operations import cast, joined, transposed
from kernelgen.constraints.tiles import BITS, FREE, NOTHING, Shape, Tile, promoted, scalar

_ELEMENTWISE = frozenset(
    {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sigmoid", "abs", "sin", "cos", "floor", "ceil"}
)
_TWO_OPERANDS = frozenset({"maximum", "minimum"})
_REDUCTIONS = frozenset({"sum", "max", "min"})
_HINTS = frozenset({"multiple_of", "max_contiguous", "max_constancy", "advance"})
_SCALARS = frozenset({"program_id", "num_programs"})


class Follower(Protocol):
    """Who follows a kernel: gives values, and is told what is met."""

    def tile(self, node: ast.expr, names: dict[str, Tile]) -> Tile:
        """What is known of an expression."""

    def constant(self, node: ast.expr, names: Mapping[str, Tile]) -> Constant:
        """Its value when compiling, or UNKNOWN."""

    def made(self, shape: Shape) -> None:
        """A block of this shape is made."""

    def loaded(self, address: Tile) -> Tile:
        """What is loaded from an address."""

    def product(self, left: Tile, right: Tile) -> None:
        """A product is taken."""

    def described(self, last: int | None, stride: int | None, dtype: str | None) -> None:
        """A tensor descriptor is made."""


@dataclass(frozen=True)
class Call:
    """One call of a function that is not the source's own."""

    follower: Follower
    node: ast.Call
    names: dict[str, Tile]

    @property
    def name(self) -> str:
        """The function's last name."""
        return called(self.node)

    def argument(self, position: int, keyword: str) -> ast.expr | None:
        """An argument by place or name."""
        named = next((k.value for k in self.node.keywords if k.arg == keyword), None)
        given = self.node.args[position] if position < len(self.node.args) else None
        return named if named is not None else given

    def tile(self, position: int, keyword: str) -> Tile:
        """An argument's value; unknown where it is not given."""
        node = self.argument(position, keyword)
        return NOTHING if node is None else self.follower.tile(node, self.names)

    def shape(self, position: int, keyword: str) -> Shape | None:
        """An argument that is a shape; None where its rank is not known."""
        node = self.argument(position, keyword)
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(map(_extent, (self.follower.constant(part, self.names) for part in node.elts)))
        value = UNKNOWN if node is None else self.follower.constant(node, self.names)
        if isinstance(value, tuple):
            return tuple(map(_extent, value))
        return (_extent(value),) if isinstance(value, int) else None

    def dtype(self, position: int, keyword: str) -> str | None:
        """An argument that is a dtype."""
        match self.argument(position, keyword):
            case ast.Attribute(attr=name) if name in BITS:
                return name
            case ast.Attribute(value=ast.Attribute(value=value, attr="dtype" | "type"), attr="element_ty"):
                return self.follower.tile(value, self.names).dtype
            case ast.Attribute(value=value, attr="dtype"):
                return self.follower.tile(value, self.names).dtype
        return None


def call(follower: Follower, node: ast.Call, names: dict[str, Tile]) -> Tile:
    """What a call of Triton's language gives."""
    one = Call(follower, node, names)
    is_method = isinstance(node.func, ast.Attribute) and not (
        isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("tl", "triton", "libdevice", "language", "math")
    )
    if is_method and isinstance(node.func, ast.Attribute):
        return _method(one, follower.tile(node.func.value, names))
    handler = _HANDLERS.get(one.name)
    if handler is not None:
        return handler(one)
    arguments = [follower.tile(argument, names) for argument in node.args if not isinstance(argument, ast.Starred)]
    if one.name in _ELEMENTWISE and arguments:
        return replace(arguments[0], constant=UNKNOWN, strides=None, direct=False)
    if one.name in _TWO_OPERANDS and len(arguments) == 2:
        return joined(arguments[0], arguments[1], promoted(arguments[0], arguments[1]), None)
    if one.name in _HINTS and arguments:
        return arguments[0]
    if one.name in _REDUCTIONS and arguments:
        return _reduced(one, arguments[0])
    return scalar(dtype="int32") if one.name in _SCALARS else NOTHING


def _method(one: Call, value: Tile) -> Tile:
    match one.name:
        case "to":
            return cast(value, one.dtype(0, "dtype"))
        case "load":
            return one.follower.loaded(value)
        case "trans":
            return transposed(value)
        case "reshape" | "view":
            return replace(value, shape=one.shape(0, "shape"), strides=None, direct=False)
    return NOTHING


def _arange(one: Call) -> Tile:
    start, end = (one.tile(position, name).constant for position, name in ((0, "start"), (1, "end")))
    extent = _extent(end - start) if isinstance(start, int) and isinstance(end, int) else None
    one.follower.made((extent,))
    return Tile(shape=(extent,), dtype="int32", strides=(1,))


def _block(one: Call) -> Tile:
    shape = one.shape(0, "shape")
    if shape is not None:
        one.follower.made(shape)
    dtype = one.dtype(1 if one.name == "zeros" else 2, "dtype")
    return Tile(shape=shape, dtype=dtype)


def _like(one: Call) -> Tile:
    like = one.tile(0, "input")
    return Tile(shape=like.shape, dtype=like.dtype)


def _dot(one: Call) -> Tile:
    left, right = one.tile(0, "input"), one.tile(1, "other")
    one.tile(2, "acc")
    one.follower.product(left, right)
    shape = None
    if left.shape is not None and right.shape is not None and len(left.shape) == len(right.shape) >= 2:
        shape = (*left.shape[:-1], right.shape[-1])
    is_integer = left.dtype in ("int8", "uint8")
    default = None if left.dtype is None else "int32" if is_integer else "float32"
    has_dtype = one.argument(99, "out_dtype") is not None
    return Tile(shape=shape, dtype=one.dtype(99, "out_dtype") if has_dtype else default)


def _load(one: Call) -> Tile:
    return one.follower.loaded(one.tile(0, "pointer"))


def _block_pointer(one: Call) -> Tile:
    base, shape = one.tile(0, "base"), one.shape(4, "block_shape")
    if shape is not None:
        one.follower.made(shape)
    strides = None if shape is None else (FREE,) * len(shape)
    return Tile(shape=shape, dtype=base.dtype, pointer=base.pointer, strides=strides)


def _descriptor(one: Call) -> Tile:
    base, shape = one.tile(0, "base"), one.shape(3, "block_shape")
    if shape:
        one.follower.made(shape)
        steps = one.shape(2, "strides") or (None,)
        one.follower.described(shape[-1], steps[-1], base.dtype if base.pointer else None)
    strides = (None,) * (len(shape) - 1) + (1,) if shape else None
    return Tile(shape=shape, dtype=base.dtype, pointer=base.pointer, strides=strides)


def _where(one: Call) -> Tile:
    condition, left, right = one.tile(0, "condition"), one.tile(1, "x"), one.tile(2, "y")
    return joined(condition, joined(left, right, promoted(left, right), None), promoted(left, right), None)


def _trans(one: Call) -> Tile:
    return transposed(one.tile(0, "input"))


def _expand_dims(one: Call) -> Tile:
    value, axis = one.tile(0, "input"), one.tile(1, "axis").constant
    if value.shape is None or not isinstance(axis, int) or not 0 <= axis <= len(value.shape):
        return replace(value, shape=None, strides=None, direct=False)
    strides = None if value.strides is None else (*value.strides[:axis], 0, *value.strides[axis:])
    return replace(value, shape=(*value.shape[:axis], 1, *value.shape[axis:]), strides=strides, direct=False)


def _reshaped(one: Call) -> Tile:
    return replace(one.tile(0, "input"), shape=one.shape(1, "shape"), strides=None, direct=False)


def _cast_call(one: Call) -> Tile:
    return cast(one.tile(0, "input"), one.dtype(1, "dtype"))


_HANDLERS: Mapping[str, Callable[[Call], Tile]] = MappingProxyType(
    {
        "arange": _arange,
        "zeros": _block,
        "full": _block,
        "zeros_like": _like,
        "dot": _dot,
        "load": _load,
        "make_block_ptr": _block_pointer,
        "make_tensor_descriptor": _descriptor,
        "where": _where,
        "trans": _trans,
        "expand_dims": _expand_dims,
        "reshape": _reshaped,
        "view": _reshaped,
        "broadcast_to": _reshaped,
        "cast": _cast_call,
    }
)


def called(node: ast.Call) -> str:
    """The last name of the function that is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _extent(value: Constant) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _reduced(one: Call, value: Tile) -> Tile:
    node = one.argument(1, "axis")
    axis = UNKNOWN if node is None else one.follower.constant(node, one.names)
    keeps = any(k.arg == "keep_dims" for k in one.node.keywords)
    dtype = value.dtype if value.dtype in ("float32", "float64", "int32") else None
    whole = replace(value, dtype=dtype, constant=UNKNOWN, strides=None, direct=False)
    if node is None:
        return replace(whole, shape=())
    if value.shape is None or not isinstance(axis, int) or not 0 <= axis < len(value.shape):
        return replace(whole, shape=None)
    kept = (1,) if keeps else ()
    return replace(whole, shape=(*value.shape[:axis], *kept, *value.shape[axis + 1 :]))
