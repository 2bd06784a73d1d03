"""Runs Triton kernels on the CPU through Triton's interpreter, with the faults that fail honest kernels mended.

`install` makes bfloat16 and fp8 right (dot, arithmetic, sums, constants, casts rounded to nearest even as on sm_90),
gives loops run-time bounds under any numpy, completes the language (`interpreter_language`), and makes autotuned
kernels run exactly one configuration, the one `Tuning.choice` points at: a kernel that works in place runs once, and a
caller who repeats its check for each choice checks every configuration. A pass is a logic check, not numerics: programs
run one after another, so races are not seen, nothing is limited, and an unmasked access out of bounds may kill the
process. In a process of its own: nothing is put back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelgen.errors import HarnessError
from kernelgen.ladder import interpreter_language, stand_in
from kernelgen.ladder.floats import BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2, FloatFormat, decode, encode

# after stand_in, which says how to install it where it is missing
import triton  # isort: skip
import triton.language as tl  # isort: skip
from triton.runtime import interpreter as triton_interpreter  # isort: skip
from triton.runtime.autotuner import Autotuner  # isort: skip

FORMATS: dict[Any, FloatFormat] = {tl.bfloat16: BFLOAT16, tl.float8e4nv: FLOAT8_E4M3, tl.float8e5: FLOAT8_E5M2}


class Tuning:
    """Which of its configurations an autotuned kernel runs."""

    def __init__(self) -> None:
        self._choice = 0
        self._tuners: dict[int, tuple[Any, int]] = {}
        self._chosen: dict[int, str] = {}

    def choose(self, choice: int) -> None:
        """Run the configuration of this number from now on, counted from 0, modulo how many a kernel has."""
        self._choice = choice
        self._chosen.clear()
        for tuner, _ in self._tuners.values():
            tuner.cache.clear()

    @property
    def choices(self) -> int:
        """How many configurations the kernels run so far have at most; at least 1."""
        return max((count for _, count in self._tuners.values()), default=1)

    def chosen(self) -> str:
        """The configurations picked since the last `choose`, by kernel; empty where there was nothing to pick."""
        return ", ".join(self._chosen.values())

    def pick(self, tuner: Any, pruned: list[Any]) -> list[Any]:
        """Of the configurations that pruning leaves, the chosen one alone."""
        _, seen = self._tuners.get(id(tuner), (tuner, 0))
        self._tuners[id(tuner)] = (tuner, max(seen, len(pruned)))
        config = pruned[self._choice % len(pruned)]
        self._chosen[id(tuner)] = f"{tuner.base_fn.__name__}[{config}]"
        return [config]


def install(compute_capability: int = 90) -> Tuning:
    """Mend the interpreter of this process; the current device answers as a card of this compute capability.

    Raises:
        HarnessError: TRITON_INTERPRET=1 was not set before triton was imported.
        BadInput: the compute capability is not known.
    """
    if not isinstance(tl.cdiv, triton_interpreter.InterpretedFunction):
        raise HarnessError("Set TRITON_INTERPRET=1 before triton is imported: its own functions are bound at import.")
    card = stand_in.card(compute_capability)
    stand_in.answer_for(card)
    triton.runtime.driver.set_active(stand_in.StandInDriver(card, torch_device="cpu"))
    _mend_casts()
    _mend_arithmetic()
    _mend_dot()
    _mend_loop_bounds()
    interpreter_language.complete()
    return _mend_autotune()


def _numbers(handle: Any) -> Any:
    """A handle's data as numbers: bfloat16 and fp8 are held as bit patterns."""
    form = FORMATS.get(handle.dtype.scalar)
    return handle.data if form is None else decode(handle.data, form)


def _handle(numbers: Any, dtype: Any) -> Any:
    """A handle of this scalar type that holds numbers, rounded to nearest even."""
    form = FORMATS.get(dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # overflow to infinity is the right answer, not a warning
        data = numbers.astype(triton_interpreter._get_np_dtype(dtype)) if form is None else encode(numbers, form)
    return triton_interpreter.TensorHandle(data, dtype)


def _mend_casts() -> None:
    """Casts truncate, are off by a factor of two, or reinterpret bits where the source is neither float32 nor fp8."""
    builder = triton_interpreter.InterpreterBuilder
    cast_impl, create_fp_to_fp = builder.cast_impl, builder.create_fp_to_fp
    toward_zero = triton_interpreter._ir.ROUNDING_MODE.RTZ

    def cast(self: Any, src: Any, dst_type: Any) -> Any:
        if src.dtype.scalar in FORMATS or dst_type.scalar in FORMATS:
            return _handle(_numbers(src), dst_type.scalar)
        return cast_impl(self, src, dst_type)

    def float_to_float(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if rounding_mode == toward_zero:
            return create_fp_to_fp(self, src, dst_type, rounding_mode)
        return _handle(_numbers(src), dst_type.scalar)

    builder.cast_impl = cast
    builder.create_fp_to_fp = float_to_float


def _mend_arithmetic() -> None:
    """Arithmetic and sums on bfloat16 work on bit patterns, and there is no bfloat16 constant."""
    builder, reduce = triton_interpreter.InterpreterBuilder, triton_interpreter.ReduceOps
    binary_op, create_fma, total = builder.binary_op, builder.create_fma, reduce.sum

    def binary(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
        dtype = lhs.dtype.scalar
        if dtype not in FORMATS:
            return binary_op(self, lhs, rhs, op)
        result = op(_numbers(lhs), _numbers(rhs))
        # a comparison's handle keeps the operands' type; its tensor says int1
        return triton_interpreter.TensorHandle(result, dtype) if result.dtype == bool else _handle(result, dtype)

    def fused_multiply_add(self: Any, x: Any, y: Any, z: Any) -> Any:
        dtype = z.dtype.scalar
        if dtype not in FORMATS:
            return create_fma(self, x, y, z)
        return _handle(_numbers(x) * _numbers(y) + _numbers(z), dtype)

    def reduced_sum(self: Any, tensor: Any) -> Any:
        dtype = tensor.dtype.scalar
        if dtype not in FORMATS:
            return total(self, tensor)
        result = np.asarray(np.sum(_numbers(tensor.handle), axis=self.axis, keepdims=self.keep_dims))
        return self.to_tensor(encode(result, FORMATS[dtype]), dtype)

    builder.binary_op = binary
    builder.create_fma = fused_multiply_add
    builder.get_bf16 = lambda self, value: _handle(np.array([value], dtype=np.float32), tl.bfloat16)
    reduce.sum = reduced_sum


def _mend_dot() -> None:
    """`tl.dot` multiplies the bit patterns of bfloat16 operands (triton-lang/triton issue 11584)."""

    def dot(self: Any, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        # cast first: numpy has a fast product for its accumulator's type alone
        left, right = _numbers(a).astype(d.data.dtype), _numbers(b).astype(d.data.dtype)
        return triton_interpreter.TensorHandle(np.matmul(left, right) + d.data, d.dtype.scalar)

    triton_interpreter.InterpreterBuilder.create_dot = dot


def _mend_loop_bounds() -> None:
    """Triton 3.6 turns a loop's run-time bound, an array of one element, into an int as numpy 2.4 no longer does."""
    patch_tensor = triton_interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    triton_interpreter._patch_lang_tensor = patched


def _mend_autotune() -> Tuning:
    """Autotuning asks for a GPU's benchmark; nothing is timed here, so nothing but the chosen configuration runs."""
    tuning = Tuning()
    prune_configs = Autotuner.prune_configs

    def pruned(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        return tuning.pick(self, prune_configs(self, kwargs))

    Autotuner.prune_configs = pruned
    Autotuner._bench = lambda self, *args, config, **meta: [1.0, 1.0, 1.0]
    return tuning
