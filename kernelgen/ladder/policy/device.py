"""What a Triton kernel's body may ask of a value: the attributes that Triton and Gluon give tensors, types and tuples.

Triton compiles the body, and an interpreter runs it as Python, where `place.handle.data` is the interpreter's memory.
What is not listed, and is no field of a class of the candidate's own, is suspect.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.kinds import PATH, paths
from kernelgen.ladder.policy.names import words
from kernelgen.ladder.policy.scopes import Scope
from kernelgen.ladder.policy.view import View, at

INSIDE = "policy.introspection"
# an attribute of the candidate's own class may have any name but these
NEVER = words("handle handles data _data _semantic")
OF_VALUES = words(
    "T abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or "
    "atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum erf exp exp2 expand_dims flip floor fma "
    "gather histogram item log log2 logical_and logical_or max min permute ravel reduce reduce_or reshape rsqrt "
    "sigmoid sin softmax sort split sqrt sqrt_rn store sum tanh to trans topk view xor_sum dtype type shape ndim rank "
    "numel value join interleave"
)
OF_TYPES = words(
    "element_ty scalar primitive_bitwidth itemsize fp_mantissa_width int_bitwidth int_signedness exponent_bias name "
    "is_bf16 is_block is_bool is_const is_dtype is_floating is_fp16 is_fp32 is_fp64 is_fp8 is_fp8e4b15 is_fp8e4b8 "
    "is_fp8e4nv is_fp8e5 is_fp8e5b16 is_int is_int1 is_int16 is_int32 is_int64 is_int8 is_int_signed "
    "is_int_unsigned is_ptr is_standard_floating is_uint16 is_uint32 is_uint64 is_uint8 is_void kind "
    "get_int_max_value get_int_min_value get_block_shapes with_element_ty address_space nbytes"
)
OF_MEMORY = words(
    "load scatter block_shape block_type strides index slice layout load_max load_min nbytes_per_cta arrive wait init "
    "invalidate expect permute reinterpret _reinterpret subslice split_n parent"
)
OF_PYTHON = words("append extend insert pop keys values items get format count lower upper startswith endswith join")
ALLOWED = OF_VALUES | OF_TYPES | OF_MEMORY | OF_PYTHON


def check(view: View) -> Iterator[Finding]:
    """Every attribute in a kernel's body, written out or asked for by its name's text."""
    own = _fields(view) - NEVER
    for node, scope in view.places:
        if not view.meanings.in_kernel(scope):
            continue
        if isinstance(node, ast.Attribute):
            values = view.of(node.value, scope)
            if not (values and all(value.startswith(PATH) for value in values)) and not _is_library(view, node, scope):
                yield from _asked(node, node.attr, own)
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            if any(path in ("builtins.getattr", "builtins.setattr") for path in view.paths(node.func, scope)):
                asked = node.args[1]
                yield from _asked(node, str(asked.value) if isinstance(asked, ast.Constant) else "", own)
        elif isinstance(node, ast.MatchClass):
            for name in node.kwd_attrs:
                yield from _asked(node, name, own)


def _asked(node: ast.AST, name: str, own: frozenset[str]) -> Iterator[Finding]:
    if name not in ALLOWED and name not in own:
        yield at(node, INSIDE, f".{name} is no part of a value that a kernel's body needs", in_doubt=True)


def _is_library(view: View, node: ast.Attribute, scope: Scope) -> bool:
    """Whether an attribute is of a name that a module-level binding makes a library's, whatever else it may be."""
    return isinstance(node.value, ast.Name) and bool(paths(view.of(node.value, scope)))


def _fields(view: View) -> frozenset[str]:
    """Names of fields and methods of the candidate's own classes."""
    names: set[str] = set()
    for node, scope in view.module.places:
        if scope.is_class:
            if isinstance(node, ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
            elif isinstance(node, ast.Assign):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            names.add(node.attr)
    return frozenset(names)


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
