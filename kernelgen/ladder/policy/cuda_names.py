"""What a CUDA C++ candidate may name: tables of identifiers, headers and calls, each with its check and reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kernelgen.ladder.policy.names import words
from kernelgen.ladder.policy.python_names import Rule


@dataclass(frozen=True)
class _Names:
    """Identifiers that are refused for one reason."""

    check: str
    """Id of the check."""
    reason: str
    """In a sentence; {0} is the name."""
    names: str
    """Regular expressions, each for a whole identifier, between blanks."""
    in_doubt: bool = False
    """Whether honest kernels use them too."""


_LIBRARY = "{0} has a library do the target's work"
# refused wherever they stand; the first that fits decides
_ANYWHERE = (
    _Names(
        "policy.ctypes",
        "{0} finds functions by their name's text",
        r"dlopen dlsym dlmopen dlvsym dladdr1? dlinfo dl_iterate_phdr cuGetProcAddress\w* ffi_\w+",
    ),
    _Names(
        "policy.process",
        "{0} reaches other processes",
        r"popen execl execle execlp execv execve execvp execvpe fexecve vfork posix_spawnp? ptrace syscall clone3 "
        r"waitpid prctl process_vm_\w+ setsid cudaIpc\w+ cuIpc\w+ cuda(Import|Export)\w+",
    ),
    _Names(
        "policy.files",
        "{0} reads or writes files",
        r"fopen(64)? freopen(64)? fdopen opendir mkstemp openat creat mmap(64)? shm_open memfd_create "
        r"basic_\w*fstream [io]?fstream filesystem readlink sendfile fread fwrite fscanf fgets",
    ),
    _Names(
        "policy.network",
        "{0} reaches the network",
        r"socket socketpair getaddrinfo gethostby\w+ sendto recvfrom sendmsg recvmsg inet_\w+",
    ),
    _Names("policy.threads", "{0} does work beside the call", r"pthread_\w+ thrd_\w+ jthread omp_\w+ __kmpc_\w+"),
    _Names(
        "policy.introspection",
        "{0} walks the program",
        r"mprotect sigaction sigsetjmp siglongjmp setjmp longjmp backtrace\w* __builtin_frame_address "
        r"__builtin_return_address _Unwind_\w+ program_invocation_\w+ cupti\w+ nvtx\w+ cudaProfiler\w+",
    ),
    _Names(
        "policy.flags",
        "{0} is the process's environment",
        r"getenv secure_getenv setenv putenv unsetenv clearenv environ",
    ),
    _Names(
        "policy.flags",
        "{0} changes the device for all",
        r"cudaDeviceSet(Limit|CacheConfig|SharedMemConfig) cudaSetDeviceFlags cudaCtx\w+ cuCtx\w+ cudaDeviceReset "
        r"cu(da)?StreamSetAttribute cuda(Launch|Stream)AttributeAccessPolicyWindow cudaAccessProperty\w+",
    ),
    _Names(
        "policy.late_work",
        "{0} runs code later",
        r"atexit at_quick_exit on_exit __cxa_\w+ cu(da)?LaunchHostFunc cu(da)?StreamAddCallback cu(da)?UserObject\w+",
    ),
    _Names(
        "policy.clock",
        "{0} reads a clock",
        r"clock64 clock_gettime clock_getres gettimeofday globaltimer\w* __globaltimer\w* __clock\w* __?rdtscp? "
        r"__builtin_ia32_rdtscp? chrono clock_nanosleep getrusage timespec_get",
    ),
    _Names(
        "policy.library_work",
        _LIBRARY,
        r"cublas\w* cusparse\w* cusolver\w* cufft\w* cudnn\w* cutensor\w* cudss\w* nccl\w* cblas_\w+ thrust",
    ),
    _Names("policy.library_work", "{0} is a library: a port says where it is from", r"cutlass cute", in_doubt=True),
    _Names(
        "policy.random",
        "{0} is a random generator",
        r"curand(Create|Generate|Set)\w* mt19937\w* random_device \w+_random_engine minstd_rand0?",
    ),
    _Names("policy.random", "{0} is a random generator", r"curand\w*", in_doubt=True),
    _Names(
        "policy.streams",
        "{0} goes round the caller's stream",
        r"cu(da)?StreamCreate\w* cudaStreamDestroy cu(da)?Event(?!\w*_t$)\w+ cu(da)?Graph(?!\w*_t$)\w+ "
        r"cu(da)?Stream\w*Captur\w+ cu(da)?StreamWaitEvent cudaStreamLegacy cudaStreamPerThread",
    ),
    _Names(
        "policy.dynamic_code",
        "{0} builds or loads code at run time",
        r"cu(Module|Library|Link)\w+ cudaLibrary\w+ cudaGetKernel nvrtc\w+ nvJitLink\w+ nvPTXCompiler\w+",
    ),
    _Names(
        "policy.late_work",
        "the attribute {0} runs code before or after the call",
        r"constructor destructor init_priority ifunc __attribute_alias__",
    ),
)
_ATTRIBUTES = words("constructor destructor init_priority ifunc __attribute_alias__")
# refused as a call of a free function on the host; x.read() or an own function of that name is something else
_CALLED = (
    _Names(
        "policy.process",
        "{0} reaches the operating system",
        "system fork kill raise _exit _Exit quick_exit pipe dup dup2 daemon wait",
    ),
    _Names(
        "policy.files",
        "{0} reads or writes files",
        "open open64 read write pread pwrite close remove rename unlink access stat lstat fstat chmod mkdir",
    ),
    _Names("policy.network", "{0} reaches the network", "connect bind listen accept send recv select poll"),
    _Names("policy.clock", "{0} reads a clock", "time clock difftime times sleep usleep nanosleep"),
    _Names("policy.late_work", "{0} runs code later", "signal sigprocmask"),
    _Names("policy.random", "{0} is a random generator", "rand srand random srandom drand48 rand_r"),
)
HANDED_ON = frozenset({"system", "fork", "kill", "_exit", "signal"})
"""Of those, refused as a value too: a pointer to one is called elsewhere."""
IN_STD = (
    _Names(
        "policy.threads",
        "std::{0} does work beside the call",
        "thread async future promise packaged_task shared_future this_thread",
    ),
    _Names("policy.process", "std::{0} reaches the operating system", "system"),
)
DRIVER_ENTRIES = frozenset({"cudaGetDriverEntryPoint", "cudaGetDriverEntryPointByVersion"})
TENSOR_MAP = re.compile(r"cuTensorMap(Encode|Replace)\w*")
CUB_DEVICE = re.compile(r"(Dispatch)?Device\w+")
HOST_ASM = re.compile(r"\b(syscall|sysenter|int\s+\$?0x80|cpuid|rdtscp?)\b|%%?[re](ax|bx|cx|dx|sp|ip|di|si)\b")
CLOCK_IN_ASM = re.compile(r"%?(global_?timer|clock64|clock_hi|%clock)", re.IGNORECASE)

_HEADERS_OK = re.compile(
    r"cuda(_\w+)?(\.h|\.hpp)?|cuda_runtime(_api)?\.h|cooperative_groups(\.h|/.+)|mma\.h|crt/mma\.h|device_\w+\.h|"
    r"vector_(types|functions)\.h(pp)?|math_constants\.h|sm_\w+\.h(pp)?|cudaTypedefs\.h|cuda/.+|cub/(block|warp|thread|util|cub).*|"
    r"(std(int|def|io|lib|bool|arg)|math|float|limits|assert|string|inttypes)\.h|"
    r"c(stdint|stddef|stdio|stdlib|stdarg|math|float|limits|assert|string|inttypes|stdbool)|"
    r"algorithm|type_traits|utility|array|tuple|initializer_list|limits|numeric|functional|vector|string|string_view|bit|"
    r"concepts|new|exception|stdexcept|memory|optional|variant|span|iterator|iostream|sstream|iomanip|atomic|mutex|map|set|"
    r"unordered_map|unordered_set|complex|ratio|ranges|deque|list|typeinfo|compare|version|thread|chrono|random|future"
)
_HEADERS_TORCH = re.compile(r"(torch|ATen|c10|pybind11)/.+|Python\.h")
_HEADERS_LIBRARY = re.compile(
    r"(cublas|cudnn|cusparse|cusolver|cufft|curand|thrust|cutlass|cute|nccl|cutensor)\b.*|cub/device.*"
)


@lru_cache(maxsize=4096)
def look_up(name: str) -> Rule | None:
    """The rule against an identifier wherever it stands; None where there is none."""
    return _first(name, _ANYWHERE)


def is_attribute(name: str) -> bool:
    """Whether the rule against a name is about attributes alone: elsewhere it is any name."""
    return name in _ATTRIBUTES


@lru_cache(maxsize=4096)
def look_up_call(name: str) -> Rule | None:
    """The rule against calling a free function of the host."""
    return _first(name, _CALLED)


@lru_cache(maxsize=4096)
def look_up_in_std(name: str) -> Rule | None:
    """The rule against a name of `std`."""
    return _first(name, IN_STD)


def _first(name: str, table: tuple[_Names, ...]) -> Rule | None:
    for entry in table:
        if any(re.fullmatch(pattern, name) for pattern in entry.names.split()):
            return Rule(entry.check, entry.reason.format(name), entry.in_doubt)
    return None


def look_up_header(header: str, *, with_torch: bool) -> Rule | None:
    """The rule against an `#include`, given as written."""
    name = header.strip('<>"')
    if header == "embed":
        return Rule("policy.files", "#embed reads a file")
    if not (header.startswith(("<", '"')) and len(name) + 2 == len(header)):
        return Rule("policy.files", "the name of an included header is not written out", in_doubt=True)
    if name.startswith("/") or ".." in name.split("/"):
        return Rule("policy.files", f"{header} is included by its path")
    if _HEADERS_OK.fullmatch(name) or (with_torch and _HEADERS_TORCH.fullmatch(name)):
        return None
    if _HEADERS_TORCH.fullmatch(name):
        return Rule("policy.library_work", f"{header} brings torch, which a .cu has no need of")
    if _HEADERS_LIBRARY.fullmatch(name):
        return Rule("policy.library_work", f"{header} brings a library that does such work", in_doubt=True)
    return Rule("policy.library_work", f"{header} is not known as a need of a kernel", in_doubt=True)
