"""What a Python candidate may do with a tensor, by the method's name: tables, and their reader `look_up_method`."""

from __future__ import annotations

from kernelgen.ladder.policy.names import words
from kernelgen.ladder.policy.python_names import DTYPES, TORCH_VIEWS, TORCH_WORK, WORK_IN_NAME, Rule

HOST_ATTRIBUTES = words(
    "shape dtype device ndim is_cuda is_cpu is_meta nbytes itemsize layout requires_grad names is_contiguous "
    "stride size dim numel nelement element_size storage_offset is_floating_point is_complex is_signed get_device "
    "item tolist dense_dim is_sparse is_quantized"
)
"""What they give is a number, a flag or a description."""
TENSOR_ATTRIBUTES = words("T mT H mH data real imag")
"""Attributes that are tensors."""
VIEWS = TORCH_VIEWS | words(
    "view view_as reshape_as expand expand_as contiguous squeeze_ unsqueeze_ transpose_ t_ as_strided_ "
    "requires_grad_ diagonal detach_ unsafe_chunk unsafe_split split_with_sizes"
)
ALLOCATES = words("new_empty new_zeros new_ones new_full new_empty_strided new_tensor zero_ fill_ clone copy_")
CONVERTS = DTYPES | words("to type type_as cuda cpu byte char")
ALLOWED = HOST_ATTRIBUTES | TENSOR_ATTRIBUTES | VIEWS | ALLOCATES | CONVERTS | words("data_ptr untyped_storage grad")

# computing to the eye of anybody who reads `x.NAME`, whatever x is
WORK = words(
    "matmul mm bmm addmm addbmm baddbmm addmv addr einsum tensordot topk argsort msort kthvalue nanmedian "
    "bincount histc softmax log_softmax logsumexp cumsum cumprod cummax cummin logcumsumexp index_select "
    "index_add index_copy index_fill index_put index_reduce scatter scatter_add scatter_reduce take_along_dim "
    "masked_select masked_fill masked_scatter repeat_interleave sigmoid rsqrt layer_norm rms_norm addcmul addcdiv "
    "amax amin aminmax argmax argmin nansum nanmean bitwise_and bitwise_or bitwise_xor searchsorted "
    "unique_consecutive relu silu gelu tensor_dot nan_to_num __matmul__ __rmatmul__ __imatmul__"
)
# also names of other things' methods: only where a tensor is meant, or called on what nobody can tell
SOFT_WORK = (TORCH_WORK - WORK) | words("repeat new mul_ sum max min mean numpy apply_ map_ set_ resize_ share_memory_")
# methods of lists, sets, texts and numbers among them
EVERYDAY = words(
    "add sort index count copy remove split pow sub div all any round floor ceil equal update get take where mode "
    "gather max min dot new abs norm flip special cat stack log inner outer cross unfold tile trace sign mul exp "
    "eq ne lt le gt ge square std var clip clamp one_hot repeat map_ diff"
)
REDUCTIONS = words("max min amax amin sum any all count_nonzero")
"""Allowed where one number of integer metadata goes to the host: `int(seqlens.max())`."""
OTHER: dict[str, tuple[str, str, bool]] = {
    "_version": ("policy.cache", "._version knows a tensor again", False),
    "register_hook": ("policy.late_work", ".register_hook runs code later", False),
    "register_post_accumulate_grad_hook": ("policy.late_work", ".{0} runs code later", False),
    "register_forward_hook": ("policy.late_work", ".{0} runs code later", False),
    "register_forward_pre_hook": ("policy.late_work", ".{0} runs code later", False),
    "add_done_callback": ("policy.late_work", ".{0} runs code later", False),
    "as_subclass": ("policy.lazy_result", ".as_subclass makes something else of a tensor", False),
    "_make_subclass": ("policy.lazy_result", ".{0} makes something else of a tensor", False),
    "_make_wrapper_subclass": ("policy.lazy_result", ".{0} makes something else of a tensor", False),
    "wait_stream": ("policy.streams", ".{0} orders streams of the candidate's own", False),
    "wait_event": ("policy.streams", ".{0} orders streams of the candidate's own", False),
    "record_event": ("policy.streams", ".{0} orders streams of the candidate's own", False),
    "record_stream": ("policy.streams", ".{0} orders streams of the candidate's own", False),
    "elapsed_time": ("policy.clock", ".{0} measures time", False),
    "get_profiler": ("policy.clock", ".{0} measures time", True),
    "f_back": ("policy.introspection", ".{0} walks frames", False),
    "f_globals": ("policy.introspection", ".{0} walks frames", False),
    "f_locals": ("policy.introspection", ".{0} walks frames", False),
    "f_builtins": ("policy.introspection", ".{0} walks frames", False),
    "f_code": ("policy.introspection", ".{0} walks frames", False),
    "tb_frame": ("policy.introspection", ".{0} walks frames", False),
    "tb_next": ("policy.introspection", ".{0} walks frames", False),
    "gi_frame": ("policy.introspection", ".{0} walks frames", False),
    "gi_code": ("policy.introspection", ".{0} walks frames", False),
    "cr_frame": ("policy.introspection", ".{0} walks frames", False),
    "ag_frame": ("policy.introspection", ".{0} walks frames", False),
    "mro": ("policy.introspection", ".{0} walks classes", True),
}
# of `__x__`; the rest are ways into the language's inside
DUNDERS_READ = words("__name__ __doc__ __len__ __version__ __init__ __post_init__ __call__ __qualname__")
DUNDERS_DEFINED = DUNDERS_READ | words(
    "__new__ __repr__ __str__ __hash__ __eq__ __lt__ __le__ __gt__ __ge__ __iter__ __next__ __getitem__ "
    "__contains__ __bool__ __int__ __index__ __slots__ __match_args__ __annotations__ __enter__ __all__"
)
DUNDERS_REFUSED: dict[str, tuple[str, str, bool]] = {
    "__del__": ("policy.late_work", "__del__ runs code later", False),
    "__torch_function__": ("policy.lazy_result", "__torch_function__ overrides torch's functions", False),
    "__torch_dispatch__": ("policy.lazy_result", "__torch_dispatch__ overrides torch's functions", False),
    "__exit__": ("policy.fallback", "__exit__ can hide a kernel's error", True),
    "__getattr__": ("policy.lazy_result", "__getattr__ answers only when asked", True),
    "__getattribute__": ("policy.lazy_result", "__getattribute__ answers only when asked", False),
}


def look_up_method(name: str, *, is_tensor: bool, is_called: bool = True, is_plain: bool = False) -> Rule | None:
    """The rule against `x.name`; None where it may be used.

    `is_tensor`: x is, or may be, a tensor. `is_plain`: x is a list, text or number, as far as can be told.
    """
    bare = name.rstrip("_") if not name.startswith("_") else name
    if name in OTHER:
        check, reason, in_doubt = OTHER[name]
        return Rule(check, reason.format(name), in_doubt)
    if name.startswith("__") and name.endswith("__") and name not in WORK:
        if name in DUNDERS_REFUSED and DUNDERS_REFUSED[name][0] == "policy.lazy_result":
            return Rule("policy.lazy_result", f".{name} overrides torch's functions")
        return None if name in DUNDERS_READ else Rule("policy.introspection", f".{name} reaches the language's inside")
    if bare in WORK or name in WORK:
        return Rule("policy.library_work", f".{name} has torch do work that the target's kernel has to do")
    if is_tensor and name in ALLOWED:
        return None
    if (
        not is_plain
        and (bare in SOFT_WORK or name in SOFT_WORK)
        and (is_tensor or (is_called and bare not in EVERYDAY))
    ):
        return Rule("policy.library_work", f".{name} has torch do work that the target's kernel has to do")
    if is_tensor and WORK_IN_NAME.search(name):
        return Rule("policy.library_work", f".{name} has torch do work that the target's kernel has to do")
    if is_tensor and any(
        word in name for word in ("random", "uniform", "normal", "bernoulli", "exponential", "cauchy")
    ):
        return Rule("policy.random", f".{name} is torch's random generator")
    if is_tensor:
        return Rule("policy.library_work", f".{name} is not known as a need of a kernel's host function", True)
    return None
