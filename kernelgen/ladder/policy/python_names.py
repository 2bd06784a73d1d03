"""What a Python candidate may name: tables by dotted path. `paths.look_up` reads them.

Of torch and of the host's libraries only what is listed is allowed; of Triton and TileLang all but what is listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelgen.ladder.policy.names import words


@dataclass(frozen=True)
class Rule:
    """Why a name is refused."""

    check: str
    """Id of the check."""
    reason: str
    """In a sentence with the name."""
    in_doubt: bool = False
    """Whether honest kernels use it too."""


DTYPES = words(
    "float16 half bfloat16 float32 float float64 double int8 int16 short int32 int int64 long uint8 uint16 uint32 "
    "uint64 bool float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 "
    "complex64 cfloat bits8 int4 uint4"
)
TORCH_ALLOCATES = words(
    "empty empty_like empty_strided zeros zeros_like ones ones_like full full_like tensor as_tensor arange "
    "scalar_tensor"
)
TORCH_VIEWS = words(
    "as_strided reshape permute transpose t unsqueeze squeeze flatten unflatten movedim moveaxis swapaxes "
    "swapdims broadcast_to broadcast_tensors narrow chunk split tensor_split unbind view_as_real view_as_complex "
    "ravel select expand_copy atleast_1d atleast_2d atleast_3d detach"
)
TORCH_HOST = words(
    "Tensor dtype device Size layout strided memory_format contiguous_format preserve_format channels_last iinfo "
    "finfo is_tensor is_floating_point is_complex numel broadcast_shapes no_grad inference_mode is_grad_enabled "
    "SymInt get_default_dtype result_type promote_types typename __version__ version.cuda version.hip "
    "version.__version__ LongTensor IntTensor FloatTensor HalfTensor BFloat16Tensor ByteTensor BoolTensor "
    "_check _check_with _check_is_size _check_index _check_value _check_type _check_not_implemented _assert "
    "Generator inf nan pi e uint8 cuda.get_device_properties cuda.current_device cuda.device cuda.device_of "
    "cuda.get_device_capability cuda.device_count cuda.is_available cuda.current_stream cuda.get_device_name "
    "cuda.is_initialized cuda.init cuda.is_bf16_supported cuda.set_device utils.cpp_extension.load_inline"
)
TORCH_MODULES = words("torch torch.cuda torch.version torch.utils torch.utils.cpp_extension")
# what computes, of all that torch has: failed; anything else that is not listed is suspect
TORCH_WORK = words(
    "matmul mm bmm addmm addbmm baddbmm addmv addr mv dot vdot inner outer einsum tensordot chain_matmul kron "
    "cross topk sort argsort msort kthvalue median nanmedian mode quantile unique unique_consecutive bincount "
    "histc histogram searchsorted bucketize softmax log_softmax logsumexp sum mean nansum nanmean std var "
    "std_mean var_mean prod cumsum cumprod cummax cummin logcumsumexp max min amax amin aminmax argmax argmin all "
    "any norm dist cdist renorm index_select index_add index_copy index_fill index_put index_reduce gather "
    "scatter scatter_add scatter_reduce take take_along_dim masked_select masked_fill masked_scatter where "
    "nonzero argwhere count_nonzero repeat_interleave add sub mul div true_divide floor_divide remainder fmod pow "
    "square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sigmoid tanh relu silu gelu erf erfc sin cos tan asin "
    "acos atan atan2 sinh cosh abs neg sign reciprocal lerp addcmul addcdiv clamp clip round floor ceil trunc "
    "frac maximum minimum fmax fmin cat concat concatenate stack hstack vstack dstack column_stack roll flip "
    "fliplr flipud rot90 tile tril triu diag diag_embed diagflat trace eye meshgrid cartesian_prod combinations "
    "one_hot conv1d conv2d conv3d layer_norm rms_norm batch_norm group_norm instance_norm embedding dropout "
    "bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift logical_and logical_or "
    "logical_not logical_xor eq ne lt le gt ge equal isclose allclose isnan isinf isfinite scatter_add "
    "segment_reduce unfold narrow_copy linspace logspace vander polygamma logit nan_to_num multinomial_ "
    "cumulative_trapezoid trapz diff block_diag heaviside hypot ldexp frexp nextafter linalg fft special"
)
WORK_IN_NAME = re.compile(r"(^|_)(mm|matmul|gemm|bmm|conv\w*|attention|softmax|norm|linear|relu|gelu|quantize\w*)(_|$)")

LIBRARY = "{0} does work that the target's kernel has to do"
# by path, the longest that fits decides; {0} is the whole name
REFUSED: dict[str, tuple[str, str, bool]] = {
    "torch.nn": ("policy.library_work", LIBRARY, False),
    "torch.ops": ("policy.library_work", LIBRARY, False),
    "torch.compile": ("policy.library_work", "{0} has torch's compiler write the kernel", False),
    "torch.jit": ("policy.library_work", "{0} has torch's compiler write the kernel", False),
    "torch._dynamo": ("policy.library_work", "{0} has torch's compiler write the kernel", False),
    "torch._inductor": ("policy.library_work", "{0} has torch's compiler write the kernel", False),
    "torch.linalg": ("policy.library_work", LIBRARY, False),
    "torch.fft": ("policy.library_work", LIBRARY, False),
    "torch.special": ("policy.library_work", LIBRARY, False),
    "torch.sparse": ("policy.library_work", LIBRARY, False),
    "torch.ao": ("policy.library_work", LIBRARY, False),
    "torch.quantization": ("policy.library_work", LIBRARY, False),
    "torch._C": ("policy.introspection", "{0} is torch's inside", False),
    "torch.backends": ("policy.flags", "{0} is a global switch", False),
    "torch.random": ("policy.random", "{0} is torch's random generator", False),
    "torch.cuda.random": ("policy.random", "{0} is torch's random generator", False),
    "torch.Generator": ("policy.random", "{0} is a random generator", False),
    "torch.multiprocessing": ("policy.threads", "{0} starts processes", False),
    "torch.distributed": ("policy.network", "{0} talks to other processes", False),
    "torch.hub": ("policy.network", "{0} downloads", False),
    "torch.load": ("policy.files", "{0} reads a file", False),
    "torch.save": ("policy.files", "{0} writes a file", False),
    "torch.from_file": ("policy.files", "{0} reads a file", False),
    "torch.package": ("policy.files", "{0} reads files", False),
    "torch.classes": ("policy.dynamic_code", "{0} loads code", False),
    "torch.overrides": ("policy.lazy_result", "{0} overrides torch's functions", False),
    "torch.utils._python_dispatch": ("policy.lazy_result", "{0} overrides torch's functions", False),
    "torch.Tensor.__torch_function__": ("policy.lazy_result", "{0} overrides torch's functions", False),
    "torch._dispatch": ("policy.lazy_result", "{0} overrides torch's functions", False),
    "torch.library": ("policy.global_state", "{0} registers operators for the whole process", True),
    "torch.autograd": ("policy.library_work", "{0} is no need of a kernel's host function", True),
    "torch.cuda.synchronize": ("policy.streams", "{0} waits: a candidate launches where it is called", True),
    "torch.cuda.default_stream": ("policy.streams", "{0} goes round the caller's stream", True),
    "torch.cuda.memory": ("policy.introspection", "{0} looks at the process's memory", True),
    "torch.cuda.nvtx": ("policy.introspection", "{0} marks a profile", True),
    "torch.profiler": ("policy.clock", "{0} measures time", False),
    "torch.utils.benchmark": ("policy.clock", "{0} measures time", False),
    "torch.utils.cpp_extension.load": ("policy.files", "{0} reads source from files", False),
    "triton.testing": ("policy.clock", "{0} measures time", False),
    "triton.profiler": ("policy.clock", "{0} measures time", False),
    "triton.compile": ("policy.dynamic_code", "{0} builds kernels by hand", True),
    "triton.compiler": ("policy.introspection", "{0} is Triton's inside", True),
    "triton.backends": ("policy.introspection", "{0} is Triton's inside", True),
    "triton.tools": ("policy.introspection", "{0} is no need of a kernel", True),
    "triton.ops": ("policy.library_work", LIBRARY, False),
    "triton.runtime.build": ("policy.ctypes", "{0} builds and loads native code", False),
    "triton.runtime.cache": ("policy.files", "{0} reads and writes files", False),
    "triton.runtime.interpreter": ("policy.introspection", "{0} is Triton's inside", False),
    "triton.runtime.driver.set_active": ("policy.global_state", "{0} changes Triton for the whole process", False),
    "triton.runtime.driver.active.get_benchmarker": ("policy.clock", "{0} measures time", False),
    "triton.runtime.driver.active.launcher_cls": ("policy.introspection", "{0} is Triton's inside", False),
    "triton.runtime.driver.active.utils.load_binary": ("policy.ctypes", "{0} loads native code", False),
    "triton.runtime.jit.JITFunction": ("policy.introspection", "{0} is Triton's inside", True),
    "tilelang.profiler": ("policy.clock", "{0} measures time", False),
    "tilelang.testing": ("policy.clock", "{0} tests and measures", False),
    "tilelang.contrib": ("policy.ctypes", "{0} builds and loads native code", False),
    "tilelang.env": ("policy.flags", "{0} is a global switch", True),
    "tilelang.cache": ("policy.files", "{0} reads and writes files", True),
    "tvm.contrib": ("policy.ctypes", "{0} builds and loads native code", False),
    "tvm.ffi": ("policy.ctypes", "{0} calls functions by name", False),
    "tvm.get_global_func": ("policy.ctypes", "{0} calls functions by name", False),
    "tvm.register_func": ("policy.global_state", "{0} registers functions for the whole process", False),
    "tvm.register_global_func": ("policy.global_state", "{0} registers functions for the whole process", False),
    "tvm.runtime": ("policy.ctypes", "{0} loads native code", True),
    "tvm.rpc": ("policy.network", "{0} talks to other processes", False),
    "operator.matmul": ("policy.library_work", LIBRARY, False),
    "operator.imatmul": ("policy.library_work", LIBRARY, False),
    "operator.methodcaller": ("policy.introspection", "{0} calls a method by its name's text", False),
    "operator.attrgetter": ("policy.introspection", "{0} reaches an attribute by its name's text", False),
    "contextlib.ExitStack": ("policy.fallback", "{0} can hide a kernel's error", True),
    "typing.get_type_hints": ("policy.dynamic_code", "{0} runs text as code", False),
    "typing.ForwardRef": ("policy.dynamic_code", "{0} runs text as code", False),
    "typing_extensions.get_type_hints": ("policy.dynamic_code", "{0} runs text as code", False),
    "dataclasses.make_dataclass": ("policy.introspection", "{0} makes a class at run time", True),
    "string.Formatter": ("policy.introspection", "{0} reaches an attribute by its name's text", False),
    "logging.config": ("policy.global_state", "{0} changes logging for the whole process", False),
    "logging.handlers": ("policy.network", "{0} sends and writes", False),
    "tilelang.language.call_packed": ("policy.ctypes", "{0} calls functions by name", False),
    "tilelang.language.call_cpacked": ("policy.ctypes", "{0} calls functions by name", False),
    "tilelang.language.tvm_call_packed": ("policy.ctypes", "{0} calls functions by name", False),
    "tilelang.language.tvm_call_cpacked": ("policy.ctypes", "{0} calls functions by name", False),
    "contextlib.suppress": ("policy.fallback", "{0} hides a kernel's error", False),
    "contextlib.redirect_stdout": ("policy.global_state", "{0} replaces the process's output", False),
    "contextlib.redirect_stderr": ("policy.global_state", "{0} replaces the process's output", False),
    "logging.FileHandler": ("policy.files", "{0} writes a file", False),
    "logging.basicConfig": ("policy.global_state", "{0} changes logging for the whole process", True),
    "functools.singledispatch": ("policy.introspection", "{0} chooses by type", True),
    "builtins.eval": ("policy.dynamic_code", "{0} runs text as code", False),
    "builtins.exec": ("policy.dynamic_code", "{0} runs text as code", False),
    "builtins.compile": ("policy.dynamic_code", "{0} makes code of text", False),
    "builtins.__import__": ("policy.dynamic_code", "{0} imports by a name's text", False),
    "builtins.open": ("policy.files", "{0} reads or writes a file", False),
    "builtins.input": ("policy.files", "{0} reads from a file", False),
    "builtins.globals": ("policy.introspection", "{0} reaches names by their text", False),
    "builtins.locals": ("policy.introspection", "{0} reaches names by their text", False),
    "builtins.vars": ("policy.introspection", "{0} reaches names by their text", False),
    "builtins.dir": ("policy.introspection", "{0} lists names", False),
    "builtins.delattr": ("policy.introspection", "{0} removes an attribute by its name's text", False),
    "builtins.breakpoint": ("policy.introspection", "{0} opens a debugger", False),
    "builtins.help": ("policy.introspection", "{0} opens a console", False),
    "builtins.memoryview": ("policy.introspection", "{0} reaches memory", True),
    "builtins.exit": ("policy.process", "{0} ends the process", False),
    "builtins.quit": ("policy.process", "{0} ends the process", False),
    "builtins.SystemExit": ("policy.process", "{0} ends the process", False),
    "builtins.KeyboardInterrupt": ("policy.process", "{0} ends the process", False),
    "builtins.id": ("policy.cache", "{0} knows an object again", False),
    "builtins.__builtins__": ("policy.introspection", "{0} reaches names by their text", False),
    "builtins.__loader__": ("policy.introspection", "{0} reaches the import system", False),
    "builtins.__spec__": ("policy.introspection", "{0} reaches the import system", False),
    "builtins.__file__": ("policy.introspection", "{0} tells where the candidate runs", False),
    "builtins.__build_class__": ("policy.introspection", "{0} makes classes by hand", False),
    "os.environ": ("policy.flags", "{0} is the process's environment", False),
    "os.getenv": ("policy.flags", "{0} is the process's environment", False),
    "os.putenv": ("policy.flags", "{0} is the process's environment", False),
    "sys.exit": ("policy.process", "{0} ends the process", False),
}

ALLOWED_INSIDE = words("triton.tools.tensor_descriptor triton.experimental.gluon.nvidia")
"""Parts of what `REFUSED` names that kernels need."""

# roots of paths: libraries, and what of the standard library no kernel needs
ROOTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        words(
            "numpy scipy cupy cupyx jax jaxlib tensorflow keras pandas numba flashinfer flash_attn flash_mla "
            "flash_attn_interface vllm vllm_flash_attn sglang sgl_kernel xformers deep_gemm deep_ep deepgemm "
            "transformer_engine apex bitsandbytes cutlass cublas cuda_python cudnn nvmath liger_kernel "
            "tile_kernels triton_kernels fla humming quack helion thunderkittens tk aiter torchao torchvision "
            "torchaudio torch_scatter torch_sparse transformers kernels lightllm lmdeploy ktransformers "
            "megablocks grouped_gemm marlin gptqmodel auto_gptq pytorch_triton mlx tinygrad functorch torchgen "
            "opt_einsum cuequivariance causal_conv1d mamba_ssm"
        ),
        ("policy.library_work", LIBRARY),
    ),
    **dict.fromkeys(words("time timeit datetime sched profile cProfile"), ("policy.clock", "{0} tells time")),
    **dict.fromkeys(
        words(
            "threading _thread concurrent queue asyncio multiprocessing greenlet gevent trio anyio joblib "
            "selectors"
        ),
        ("policy.threads", "{0} does work beside the call"),
    ),
    **dict.fromkeys(
        words("subprocess os posix pty psutil resource pwd fcntl sysconfig"),
        ("policy.process", "{0} reaches the operating system"),
    ),
    **dict.fromkeys(
        words(
            "io pathlib tempfile shutil glob fileinput linecache mmap sqlite3 dbm shelve zipfile tarfile gzip bz2 "
            "lzma zipimport pkgutil ntpath posixpath fnmatch"
        ),
        ("policy.files", "{0} reads and writes files"),
    ),
    **dict.fromkeys(
        words(
            "socket socketserver urllib http ssl ftplib smtplib requests httpx aiohttp urllib3 xmlrpc telnetlib "
            "grpc zmq"
        ),
        ("policy.network", "{0} reaches the network"),
    ),
    **dict.fromkeys(
        words("ctypes _ctypes cffi cuda pycuda pynvml pybind11 tvm_ffi nvidia"),
        ("policy.ctypes", "{0} calls native code"),
    ),
    **dict.fromkeys(
        words(
            "importlib imp runpy code codeop codecs marshal pickle cloudpickle dill base64 binascii zlib pip "
            "setuptools"
        ),
        ("policy.dynamic_code", "{0} makes code or data of text and bytes"),
    ),
    **dict.fromkeys(
        words(
            "inspect sys gc types builtins traceback dis ast tokenize symtable pdb bdb faulthandler tracemalloc "
            "copyreg sitecustomize site kernelgen __main__"
        ),
        ("policy.introspection", "{0} walks the program"),
    ),
    **dict.fromkeys(words("atexit weakref signal contextvars"), ("policy.late_work", "{0} runs code later")),
    **dict.fromkeys(words("random secrets uuid"), ("policy.random", "{0} is a random generator")),
}  # fmt: skip
ALLOWED_ROOTS = words(
    "torch triton tilelang tvm math cmath typing typing_extensions functools dataclasses enum collections "
    "itertools operator abc numbers fractions decimal string textwrap re json bisect heapq statistics contextlib "
    "logging warnings copy __future__ builtins"
)
# roots whose names are what their kernels are made of
DSLS = words("triton tilelang tvm")
PRIVATE_OK = words("__future__ __version__ __name__ __doc__")
# names of libraries' own that are also names of modules
OWN_NAMES = {
    "triton": words("random code cuda types profile copy math"),
    "torch": words("random types cuda multiprocessing profile"),
    "tilelang": words("random types cuda code profile"),
    "tvm": words("cuda types random"),
    "concurrent": words("queue"),
}
