"""What torch's operators do, by family of work: which a problem's Model needs, and which a kernel must do itself.

A family is named as a person names the work: matrix product, convolution, softmax. Operators that only allocate, view,
copy or cast belong to none; any other one that is not listed is a family of its own. `Work` is what a Model asks for;
its `main` families are those that a kernel must do itself: the heavy ones where there are any, else all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from kernelgen.ladder.correctness.suspicion import ALLOWED as NO_WORK_AT_ALL


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# by family: names of operators, functions and methods alike, as torch and aten have them
FAMILIES: dict[str, frozenset[str]] = {
    "matrix product": _words(
        "matmul mm bmm addmm addbmm baddbmm linear bilinear mv addmv dot vdot addr ger outer inner einsum tensordot "
        "kron chain_matmul multi_dot vecdot _scaled_mm _int_mm _grouped_mm scaled_mm grouped_mm mkldnn_linear "
        "_addmm_activation _trilinear linalg_vecdot sparse_mm"
    ),
    "convolution": _words(
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc convolution "
        "_convolution convolution_overrideable mkldnn_convolution cudnn_convolution cudnn_convolution_relu "
        "cudnn_convolution_transpose _conv_depthwise2d conv_depthwise3d "
        "_slow_conv2d_forward slow_conv3d slow_conv_transpose2d "
        "slow_conv_transpose3d slow_conv_dilated2d slow_conv_dilated3d thnn_conv2d"
    ),
    "attention": _words(
        "scaled_dot_product_attention multi_head_attention_forward _scaled_dot_product_attention_math "
        "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
        "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention _flash_attention_forward "
        "_efficient_attention_forward _native_multi_head_attention _transformer_encoder_layer_fwd flex_attention"
    ),
    "recurrence": _words(
        "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell mkldnn_rnn_layer _cudnn_rnn "
        "_thnn_fused_lstm_cell _thnn_fused_gru_cell"
    ),
    "softmax": _words(
        "softmax log_softmax _softmax _log_softmax _safe_softmax softmin gumbel_softmax logsumexp _masked_softmax"
    ),
    "normalisation": _words(
        "layer_norm group_norm batch_norm instance_norm rms_norm local_response_norm normalize native_layer_norm "
        "native_group_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training "
        "_batch_norm_with_update cudnn_batch_norm _fused_rms_norm renorm"
    ),
    "reduction": _words(
        "sum mean prod amax amin max min aminmax argmax argmin var std var_mean std_mean any all norm nansum nanmean "
        "linalg_vector_norm vector_norm matrix_norm count_nonzero dist cdist _cdist_forward pdist trace"
    ),
    "scan": _words("cumsum cumprod cummax cummin logcumsumexp _cummax_helper _cummin_helper _logcumsumexp"),
    "sorting": _words(
        "sort topk argsort msort kthvalue median nanmedian mode unique unique_consecutive quantile nanquantile histc "
        "bincount searchsorted bucketize _unique2"
    ),
    "pooling": _words(
        "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
        "adaptive_avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d lp_pool1d lp_pool2d max_pool2d_with_indices max_pool3d_with_indices fractional_max_pool2d"
    ),
    "loss": _words(
        "mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss nll_loss_forward nll_loss2d_forward kl_div "
        "binary_cross_entropy binary_cross_entropy_with_logits hinge_embedding_loss triplet_margin_loss "
        "margin_ranking_loss cosine_embedding_loss cosine_similarity soft_margin_loss multi_margin_loss ctc_loss "
        "gaussian_nll_loss poisson_nll_loss multilabel_margin_loss pairwise_distance"
    ),
    "elementwise arithmetic": _words(
        "add sub mul div true_divide floor_divide remainder fmod pow square sqrt rsqrt exp exp2 expm1 log log2 log10 "
        "log1p abs neg sign reciprocal sin cos tan tanh sinh cosh asin acos atan atan2 erf erfc sigmoid "
        "relu relu_ relu6 "
        "leaky_relu gelu silu hardswish hardsigmoid hardtanh elu selu celu softplus softsign mish prelu _prelu_kernel "
        "rrelu threshold log_sigmoid_forward logsigmoid glu tanhshrink hardshrink softshrink clamp clamp_min clamp_max "
        "maximum minimum fmax fmin where addcmul addcdiv lerp rsub logit frac floor ceil round trunc masked_fill "
        "special_erf special_log_ndtr special_xlogy xlogy bernoulli dropout native_dropout eq ne lt le gt ge "
        "logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not isnan isinf "
        "isfinite"
    ),
    "gathering": _words(
        "embedding embedding_bag gather index index_select index_add index_put scatter scatter_add scatter_reduce take "
        "take_along_dim masked_select one_hot"
    ),
    "rearrangement": _words(
        "cat concat stack hstack vstack pad constant_pad_nd roll flip tile repeat_interleave triu tril diag diag_embed "
        "interpolate upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d upsample_trilinear3d "
        "upsample_bicubic2d upsample_linear1d grid_sample grid_sampler_2d pixel_shuffle pixel_unshuffle im2col col2im "
        "fold affine_grid reflection_pad1d reflection_pad2d replication_pad2d"
    ),
}
# modules of torch.nn by family, by how their name begins
MODULES: dict[str, tuple[str, ...]] = {
    "matrix product": ("Linear", "Bilinear", "LazyLinear"),
    "convolution": ("Conv", "LazyConv"),
    "attention": ("MultiheadAttention", "Transformer"),
    "recurrence": ("LSTM", "GRU", "RNN"),
    "softmax": ("Softmax", "LogSoftmax", "Softmin"),
    "normalisation": ("LayerNorm", "GroupNorm", "BatchNorm", "InstanceNorm", "RMSNorm", "LocalResponse", "SyncBatch"),
    "pooling": ("MaxPool", "AvgPool", "AdaptiveAvg", "AdaptiveMax", "LPPool", "FractionalMax"),
    "loss": (
        "MSELoss", "L1Loss", "SmoothL1", "Huber", "CrossEntropy", "NLLLoss", "KLDiv", "BCE", "HingeEmb", "Triplet",
    ),
    "elementwise arithmetic": (
        "ReLU", "LeakyReLU", "GELU", "SiLU", "Sigmoid", "Tanh", "Hard", "ELU", "SELU", "CELU", "Softplus", "Softsign",
        "Mish", "PReLU", "Threshold", "LogSigmoid", "GLU", "Dropout",
    ),
    "gathering": ("Embedding",),
    "rearrangement": ("Upsample", "PixelShuffle", "ZeroPad", "ConstantPad", "ReflectionPad", "Fold", "Unfold"),
}  # fmt: skip
HEAVY = ("matrix product", "convolution", "attention", "recurrence")
"""Where one of them is asked for, the others are its trimmings."""
SAME_AS: dict[str, tuple[str, ...]] = {
    "matrix product": ("convolution",),
    "convolution": ("matrix product",),
    "attention": ("matrix product",),
    "recurrence": ("matrix product",),
}
"""Families that do the same work in other words."""
MADE_OF: dict[str, frozenset[str]] = {
    "softmax": frozenset({"elementwise arithmetic", "reduction"}),
    "normalisation": frozenset({"elementwise arithmetic", "reduction"}),
    "loss": frozenset({"elementwise arithmetic", "reduction"}),
    "pooling": frozenset({"reduction"}),
}
"""Families that together do the work of another."""
NO_WORK = ("rearrangement", "gathering")
"""A kernel's own only where nothing else is asked for."""
OPERATORS = {name: family for family, names in FAMILIES.items() for name in names}
"""Family by name."""
SHARE = 0.5
"""Of a Model's own numbers, how many may pass through torch in a family that a kernel must do itself."""


CHECKS = frozenset({"_linalg_check_errors", "_assert_async", "_assert_scalar"})
"""Operators that look at a result."""
_INNER = re.compile(r"^_+|^(linalg|special)_|(_ex|_)$")


def family_of(name: str) -> str | None:
    """The listed family of an operator, function or method by its bare name, in place or not; None for another."""
    return OPERATORS.get(name) or OPERATORS.get(name.rstrip("_"))


def own_family(name: str) -> str:
    """An operator that no family lists as a family of its own: `linalg_cholesky_ex` is `cholesky`."""
    return _INNER.sub("", _INNER.sub("", name))


def family_of_module(name: str) -> str | None:
    """The family of a module of torch.nn by its name."""
    for family, beginnings in MODULES.items():
        if name.startswith(beginnings):
            return family
    return None


@dataclass(frozen=True)
class Work:
    """What a Model asks of torch in one call."""

    amounts: Mapping[str, int]
    """Numbers that go in and out of the operators of a family; families without any are absent."""
    unlisted: Mapping[str, str]
    """Operators by family, of the families that are no more than an operator."""

    @property
    def main(self) -> tuple[str, ...]:
        """The families that a kernel must do itself."""
        heavy = tuple(family for family in HEAVY if family in self.amounts)
        work = tuple(family for family in self.amounts if family not in NO_WORK)
        return heavy or work or tuple(self.amounts)

    def left(self, done: frozenset[str]) -> tuple[str, ...]:
        """Families that remain for a kernel where torch does `done`."""
        return tuple(family for family in self.amounts if family not in NO_WORK and not covers(done, family))

    def limits(self) -> dict[str, int]:
        """By family the numbers that may pass through torch in a solution's call."""
        limits: dict[str, int] = {}
        for family in self.main:
            for other in (family, *SAME_AS.get(family, ()), *MADE_OF.get(family, ())):
                limits[other] = max(limits.get(other, 0), int(SHARE * self.amounts[family]))
        return limits


def covers(done: frozenset[str], family: str) -> bool:
    """Whether what torch does, by family, amounts to the work of a family."""
    pieces = MADE_OF.get(family)
    return family in done or bool(done & set(SAME_AS.get(family, ()))) or (pieces is not None and pieces <= done)


class Amounts(TorchDispatchMode):  # type: ignore[misc]
    """Counts the numbers that pass through operators of each family."""

    def __init__(self) -> None:
        super().__init__()
        self.by_family: dict[str, int] = {}
        self.unlisted: dict[str, str] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Not: hiding this mode from torch's compiler would load all of it."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        namespace, _, name = func.name().partition("::")
        bare = name.partition(".")[0]
        family = family_of(bare)
        if family is None and namespace == "aten" and bare not in NO_WORK_AT_ALL | CHECKS:
            family = own_family(bare)
            self.unlisted[family] = bare
        if family is not None:
            amount = sum(tensor.numel() for tensor in tensors(args) + tensors(result))
            self.by_family[family] = self.by_family.get(family, 0) + amount
        return result


def work_of(run: Callable[[], Any]) -> Work:
    """What a call asks of torch."""
    with Amounts() as amounts:
        run()
    done = {family: amount for family, amount in amounts.by_family.items() if amount}
    return Work(done, {family: name for family, name in amounts.unlisted.items() if family in done})


def tensors(value: Any) -> list[Any]:
    """The tensors of a nest of tuples, lists and dicts."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, tuple | list | dict):
        return [found for part in (value.values() if isinstance(value, dict) else value) for found in tensors(part)]
    return []
