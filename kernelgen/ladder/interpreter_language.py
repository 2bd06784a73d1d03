"""What Triton's interpreter lacks of the language, for `interpreter.install`: loop variables, libdevice, the rest.

A `for` over `range` or `tl.range` gives tensors, as in a compiled kernel. Functions of libdevice that numpy has are
computed by it, in float64 and rounded once. Whatever else the interpreter has not raises `NotInterpreted`, by which a
judge tells it from what a kernel does wrong.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from kernelgen.ladder import stand_in  # noqa: F401 it says how to install Triton where it is missing
from kernelgen.ladder.correctness.raising import NotInterpreted

# after stand_in
import triton.language as tl  # isort: skip
from triton.language.extra import libdevice as any_libdevice  # isort: skip
from triton.language.extra.cuda import libdevice as cuda_libdevice  # isort: skip
from triton.runtime import interpreter as triton_interpreter  # isort: skip
from triton.runtime.jit import JITFunction  # isort: skip

LOOP = "interpreted_range"
WIDE_BITS = 64
# functions of libdevice that numpy has: by the same name, by another (`name=numpy's`), and approximate ones
SAME = "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh ceil floor trunc rint abs hypot fmod"
OTHER = (
    "asin=arcsin acos=arccos atan=arctan atan2=arctan2 pow=power fabs=abs asinh=arcsinh acosh=arccosh atanh=arctanh "
    "nearbyint=rint fmax=fmax fmin=fmin copysign=copysign add_rn=add mul_rn=multiply sub_rn=subtract div_rn=divide "
    "fast_expf=exp fast_logf=log fast_log2f=log2 fast_log10f=log10 fast_sinf=sin fast_cosf=cos fast_tanf=tan "
    "fast_tanhf=tanh fast_powf=power fast_dividef=divide"
)
MATHS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in SAME.split()},
    **{name: getattr(np, theirs) for name, theirs in (pair.split("=") for pair in OTHER.split())},
    **dict.fromkeys(("fma", "fma_rn"), lambda x, y, z: x * y + z),
    **dict.fromkeys(("rsqrt", "rsqrt_rn"), lambda x: 1.0 / np.sqrt(x)),
    "rcp_rn": np.reciprocal,
    "exp10": lambda x: np.power(10.0, x),
}


def complete() -> None:
    """Complete the interpreter of this process."""
    setattr(triton_interpreter, LOOP, _loop)  # it gives a kernel's module all names of its own
    triton_interpreter.FunctionRewriter.ast_transformer = _LoopsToo()
    for module in (any_libdevice, cuda_libdevice):
        _compute(module)
    triton_interpreter.InterpreterBuilder.__getattr__ = _lacking
    JITFunction.run = _compiled  # what is compiled here is no kernel of the interpreter's


class _LoopsToo(triton_interpreter.ASTTransformer):  # type: ignore[misc]
    """Rewrites a kernel's source as Triton's interpreter does, its loops too."""

    def visit_For(self, node: ast.For) -> ast.For:
        """A loop over a range gives tensors; one over `tl.static_range` does not, being unrolled."""
        self.generic_visit(node)
        call = node.iter
        if isinstance(call, ast.Call) and _is_range(call.func):
            call.func = ast.copy_location(ast.Name(id=LOOP, ctx=ast.Load()), call.func)
        return node


def _is_range(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "range"
    return isinstance(function, ast.Attribute) and function.attr == "range"


def _loop(arg1: Any, arg2: Any = None, step: Any = None, **_: Any) -> Iterator[Any]:
    """What a loop over a range gives: tensors of one element, of 64 bits where a bound is."""
    first, last = (0, arg1) if arg2 is None else (arg1, arg2)
    bounds = [value for value in (first, last, step) if isinstance(value, tl.tensor)]
    wide = any(bound.dtype.primitive_bitwidth == WIDE_BITS for bound in bounds)
    dtype, kind = (tl.int64, np.int64) if wide else (tl.int32, np.int32)
    by = 1 if step is None else operator.index(step)
    for value in range(operator.index(first), operator.index(last), by):
        if wide or np.iinfo(np.int32).min <= value <= np.iinfo(np.int32).max:
            yield tl.tensor(triton_interpreter.TensorHandle(np.array([value], dtype=kind), dtype), dtype)
        else:
            yield triton_interpreter.interpreter_semantic.to_tensor(value)


def _compute(module: ModuleType) -> None:
    """Let a module of libdevice be computed by numpy, as far as that goes."""
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == module.__name__ or hasattr(function, "__wrapped__"):
            how = MATHS.get(name)
            setattr(module, name, _named(f"libdevice.{name}") if how is None else partial(_numpy, name, how))


def _numpy(name: str, how: Callable[..., Any], *args: Any, _semantic: Any = None) -> Any:
    """A function of libdevice by numpy, of floats or of whole numbers that it takes as floats."""
    semantic = triton_interpreter.interpreter_semantic
    tensors = [semantic.to_tensor(arg) for arg in args]
    kinds = {tensor.dtype for tensor in tensors if tensor.dtype in (tl.float32, tl.float64)}
    if not kinds or any(tensor.dtype not in (tl.float32, tl.float64) for tensor in tensors):
        raise NotInterpreted(f"libdevice.{name} of {', '.join(str(tensor.dtype) for tensor in tensors)}")
    dtype = tl.float64 if tl.float64 in kinds else tl.float32
    with np.errstate(all="ignore"):  # infinities and NaN are right answers
        data = np.asarray(how(*(tensor.handle.data.astype(np.float64) for tensor in tensors)))
    shape = list(np.broadcast_shapes(*(tensor.handle.data.shape for tensor in tensors)))
    form = tl.block_type(dtype, shape) if any(tensor.type.is_block() for tensor in tensors) else dtype
    kind = np.float64 if dtype == tl.float64 else np.float32
    return tl.tensor(triton_interpreter.TensorHandle(data.astype(kind), dtype), form)


def _named(construct: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotInterpreted(construct)

    return refuse


def _lacking(_: Any, name: str) -> Any:
    """Whatever the interpreter's builder has not."""
    if name.startswith(("create_", "get_")):
        raise NotInterpreted(name.partition("_")[2])
    raise AttributeError(name)


def _compiled(kernel: Any, *_: Any, **__: Any) -> Any:
    """A launch of what is compiled even here: a kernel of Gluon's."""
    if "gluon" in type(kernel).__module__:
        raise NotInterpreted("Gluon")
    raise NotInterpreted(type(kernel).__name__)
