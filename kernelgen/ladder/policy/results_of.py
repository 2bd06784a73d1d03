"""What a call of a library's name gives: a tensor, a number, a container, a kernel."""

from __future__ import annotations

from kernelgen.ladder.policy.kinds import PARTS
from kernelgen.ladder.policy.names import words
from kernelgen.ladder.policy.python_names import DTYPES, TORCH_ALLOCATES, TORCH_HOST

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
CONTAINERS = words("list tuple dict set frozenset sorted next")
ITERATORS = words("zip enumerate reversed map filter iter")
"""They remember how far they were read."""
TYPES = frozenset(f"path:torch.{name}" for name in DTYPES)
RECORDS = frozenset({"collections.namedtuple", "typing.NamedTuple"})
"""They make a class."""
FLOATS = frozenset({f"path:torch.{name}" for name in ("float16", "half", "bfloat16", "float32", "float", "float64")})
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
        if name.startswith("utils.") or host:
            return frozenset({"compiled" if name.startswith("utils.") else "host"})
        return _tensor(name, given)
    if path in ("tilelang.compile", "tilelang.cached"):
        return frozenset({"compiled"})
    if path.startswith("tilelang.jit"):
        return frozenset({"decorator"})
    if root in CONTAINER_ROOTS:
        return given | {"container", "iterator"} if root == "itertools" else (given - {"iterator"}) | {"container"}
    if root == "operator":
        return frozenset({"tensor"}) if "tensor" in given else frozenset({"host"})
    if path == "functools.reduce":
        return frozenset(v for v in given if v in ("tensor", "pointer")) or frozenset({"host"})
    if root in ("tilelang", "tvm"):
        return frozenset({"?"})
    return frozenset({"host"})


def _tensor(name: str, given: frozenset[str]) -> frozenset[str]:
    """What a function of torch gives: whether it holds floating-point values of an input, or may."""
    made = {"tensor", "container"} if name in PARTS else {"tensor"}
    is_float = bool(FLOATS & given) if name in TORCH_ALLOCATES else "float" in given
    # like another, and of its type unless one is given
    like = name.endswith("_like") and "float" in given and not any(value in TYPES for value in given)
    return frozenset(made | ({"float"} if is_float or like else set()))


def _builtin(name: str, given: frozenset[str]) -> frozenset[str]:
    if name in CONTAINERS:
        return (given - {"iterator"}) | {"container"}
    if name in ITERATORS:
        return given | {"container", "iterator"}
    if name in NUMBERS:
        return frozenset({"host"})
    if name in FOLDS:
        return frozenset(v for v in given if v in ("tensor", "pointer")) or frozenset({"host"})
    return frozenset({"?"})
