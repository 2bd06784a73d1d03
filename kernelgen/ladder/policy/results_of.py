"""What a call of a library's name gives: a tensor, a number, a container, a kernel."""

from __future__ import annotations

from kernelgen.ladder.policy.names import words
from kernelgen.ladder.policy.python_names import TORCH_HOST

TRITON_JIT = frozenset({"triton.jit", "triton.runtime.jit.jit", "triton.runtime.jit", "triton.experimental.gluon.jit"})
TILELANG_JIT = frozenset({"tilelang.jit", "tilelang.jit.jit", "tilelang.lazy_jit", "tilelang.autotune"})
PRIM_FUNCS = frozenset({"prim_func", "macro"})
DECORATORS = frozenset(
    {
        "functools.lru_cache",
        "functools.wraps",
        "triton.autotune",
        "triton.heuristics",
        "torch.no_grad",
        "torch.inference_mode",
    }
)
"""Called, they give what is called on a function."""
SAME = frozenset({"functools.cache", "functools.partial", "functools.cached_property", "copy.copy", "copy.deepcopy"})
CONTAINERS = words("list tuple dict set frozenset sorted zip enumerate reversed map filter iter next")
NUMBERS = words("int float bool len str range isinstance type hasattr repr hash print ord chr format bytes")
FOLDS = words("min max sum abs round pow divmod")
CONTAINER_ROOTS = ("collections", "itertools")


def result_of(path: str, given: frozenset[str]) -> frozenset[str]:
    """Values of a call of `path` whose arguments together have the values `given`."""
    root, _, name = path.partition(".")
    if root == "builtins":
        return _builtin(name, given)
    if path in SAME:
        return given
    if root == "torch":
        host = name.startswith(("cuda.", "version.", "utils.")) or name in TORCH_HOST
        return frozenset({"compiled" if name.startswith("utils.") else "host" if host else "tensor"})
    if path in ("tilelang.compile", "tilelang.cached"):
        return frozenset({"compiled"})
    if path.startswith("tilelang.jit"):
        return frozenset({"decorator"})
    if root in CONTAINER_ROOTS:
        return given | {"container"}
    if root == "operator":
        return frozenset({"tensor"}) if "tensor" in given else frozenset({"host"})
    if path == "functools.reduce":
        return frozenset(v for v in given if v in ("tensor", "pointer")) or frozenset({"host"})
    if root in ("tilelang", "tvm"):
        return frozenset({"?"})
    return frozenset({"host"})


def _builtin(name: str, given: frozenset[str]) -> frozenset[str]:
    if name in CONTAINERS:
        return given | {"container"}
    if name in NUMBERS:
        return frozenset({"host"})
    if name in FOLDS:
        return frozenset(v for v in given if v in ("tensor", "pointer")) or frozenset({"host"})
    return frozenset({"?"})
