"""What a call of a library's name gives: a tensor, a number, a container, a kernel."""

from __future__ import annotations

from kernelgen.ladder.policy.python_names import TORCH_HOST

DECORATORS = frozenset(
    {
        "functools.lru_cache", "functools.wraps", "functools.partial_decorator", "triton.autotune", "triton.heuristics",
        "triton.jit_with", "torch.no_grad", "torch.inference_mode",
    }
)  # fmt: skip
"""Called, they give what is called on a function."""
SAME = frozenset({"functools.cache", "functools.partial", "functools.cached_property", "copy.copy", "copy.deepcopy"})
CONTAINERS = frozenset("list tuple dict set frozenset sorted zip enumerate reversed map filter iter next".split())
NUMBERS = frozenset("int float bool len str range isinstance type hasattr repr hash print ord chr format bytes".split())
FOLDS = frozenset("min max sum abs round pow divmod".split())
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
        return frozenset({"?" if name.startswith("utils.") else "host" if host else "tensor"})
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
