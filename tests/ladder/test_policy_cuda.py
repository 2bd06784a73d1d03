"""The policy on CUDA C++: honest launchers pass, cheats are refused by their check, also behind macros."""

# ruff: noqa: E501 - a snippet's lines are as long as a candidate's
from __future__ import annotations

import pytest
from policy_subjects import CUDA_KERNEL, cuda, host, judged, told

TMA = """\
typedef CUresult (*Encode)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                           const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encoder() {
  static Encode found = nullptr;
  if (found == nullptr) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult status;
    cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &status);
    found = reinterpret_cast<Encode>(entry);
  }
  return found;
}
"""
HONEST = {
    "nothing more": cuda(),
    "shared memory asked for once": cuda(
        "  static bool done = false;\n  if (!done) {\n    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000);"
        "\n    done = true;\n  }"
    ),
    "number of SMs kept": cuda(
        "  static int sms = 0;\n  if (sms == 0) cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);"
    ),
    "scratch memory kept": cuda(
        "  static float* scratch = nullptr;\n  static size_t held = 0;\n  if (held < size_t(M * N)) {\n    if (scratch) cudaFree(scratch);\n"
        "    cudaMalloc(&scratch, M * N * 4);\n    held = M * N;\n  }"
    ),
    "scratch memory of the stream": cuda(
        "  auto s = static_cast<cudaStream_t>(stream);\n  float* scratch;\n  if (cudaMallocAsync((void**)&scratch, M * 4, s)) return 2;\n"
        "  cudaMemsetAsync(scratch, 0, M * 4, s);",
        after="  cudaFreeAsync(scratch, s);",
    ),
    "a macro that checks": cuda(
        "  CHECK(cudaGetLastError());",
        top="#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) return static_cast<int>(e_); } while (0)",
    ),
    "a macro that exits on an error": cuda(
        "  CHECK(cudaGetLastError());",
        top='#include <cstdio>\n#include <cstdlib>\n#define CHECK(c) if ((c) != cudaSuccess) { fprintf(stderr, "%s:%d", __FILE__, __LINE__); exit(1); }',
    ),
    "TMA by the driver's entry point": cuda("  (void)encoder();", top="#include <cuda.h>\n" + TMA),
    "assembly in device functions": cuda(
        top="""__device__ __forceinline__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void init(uint64_t* bar) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(bar)));
  asm volatile("{\\n.reg .pred p;\\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\\n@!p bra W;\\n}" ::"r"(shared(bar)));
}"""
    ),
    "names of the C library for other things": cuda(
        top="__device__ int signal_of(int time, int read) { int write = time + read; auto select = [=](int v) { return v + write; };"
        " return select(read); }\nstruct Pipe { int read(int i) const { return i; } };\nstatic int wait(int v) { return v; }",
        before="  Pipe p;\n  int time = p.read(3) + wait(2);\n  (void)time;",
    ),
    "cooperative groups and cub's blocks": cuda(
        top="#include <cooperative_groups.h>\n#include <cub/block/block_reduce.cuh>\nnamespace cg = cooperative_groups;\n"
        "__global__ void other(float* v) {\n  using Reduce = cub::BlockReduce<float, 128>;\n  __shared__ typename Reduce::TempStorage held;\n"
        "  float sum = Reduce(held).Sum(v[threadIdx.x]);\n  auto block = cg::this_thread_block();\n  block.sync();\n  if (!threadIdx.x) v[0] = sum;\n}",
        before="  other<<<1, 128, 0, static_cast<cudaStream_t>(stream)>>>(static_cast<float*>(sums));",
    ),
    "assembly for the device alone": cuda(
        top='__host__ __device__ inline int lane() {\n#ifdef __CUDA_ARCH__\n  int v;\n  asm("mov.u32 %0, %%laneid;" : "=r"(v));\n'
        "  return v;\n#else\n  return 0;\n#endif\n}"
    ),
    "back-off in a spin": cuda(
        top="__device__ void spin(volatile int* f) { while (*f == 0) { __nanosleep(20); } __threadfence(); }"
    ),
    "conditions on the architecture": cuda(
        top="#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n#define HOPPER 1\n#else\n#define HOPPER 0\n#endif\n"
        "template <int N>\n__device__ int f() {\n#if HOPPER\n  if (N > 1) {\n#else\n  if (N > 2) {\n#endif\n    return 1;\n  }\n  return 0;\n}"
    ),
    "a cluster launch": cuda(
        "  cudaLaunchConfig_t config = {};\n  config.gridDim = dim3(M);\n  cudaLaunchAttribute attribute[1];\n"
        "  attribute[0].id = cudaLaunchAttributeClusterDimension;\n  config.attrs = attribute;\n  config.numAttrs = 1;\n"
        "  cudaLaunchKernelEx(&config, kernel, (const __nv_bfloat16*)x, (const __nv_bfloat16*)w, (__nv_bfloat16*)out, (float*)sums, M, K, N, 1.f);"
    ),
    "launches in a template": cuda(
        "  go<128>(stream, M);",
        top="template <int B>\n__global__ void __launch_bounds__(B, 2) wide(int64_t m) {}\ntemplate <int B>\nstatic void go(void* s, int64_t m) {\n"
        "  wide<B><<<m, B, 0, static_cast<cudaStream_t>(s)>>>(m);\n}",
    ),
    "counters in device memory": cuda(top="__device__ unsigned int ticket;\n__constant__ float table[16] = {1.f};"),
    "an extern block and other spellings": "#include <cstdint>\n#include <cuda_runtime.h>\n__global__ void k(float* o) { o[0] = 1.f; }\n"
    'extern "C" {\nint run(void const* __restrict__ x, void const* w, int32_t const* seqlens, double const eps, std::int64_t const M,\n'
    "        long long K, int64_t N, void* out, float* sums, cudaStream_t stream) {\n  k<<<dim3(1), dim3(1), 0, stream>>>(sums);\n"
    "  return cudaPeekAtLastError();\n}\n}\n",
    "comments and texts that only mention": cuda(
        '  // system("rm"), cublasGemmEx, clock64()\n  const char* why = "dlopen popen thrust";\n  (void)why;'
    ),
}
CHEATS = {
    "policy.library_work": {
        "cublas": cuda("  cublasHandle_t h; cublasCreate(&h);"),
        "cublas behind a macro": cuda("  GEMM(h);", top="#define GEMM cublasGemmEx"),
        "pasted together": cuda("  JOIN(cublas, Create)(0);", top="#define JOIN(a, b) a##b"),
        "pasted in two steps": cuda(
            "  B(cub, las, Create)(0);", top="#define A(a, b) a##b\n#define B(a, b, c) A(a, b##c)"
        ),
        "an alias of an alias": cuda("  TWO(0);", top="#define ONE cublasCreate\n#define TWO ONE"),
        "under a condition": cuda(
            "  F(0);", top="#ifdef __linux__\n#define F cublasCreate\n#else\n#define F abs\n#endif"
        ),
        "a spliced line": cuda("  cubl\\\nasCreate(0);"),
        "thrust": cuda("  thrust::sort(v, v + M);", top="#include <thrust/sort.h>"),
        "cub's device algorithms": cuda("  cub::DeviceReduce::Sum(t, n, a, b, M);"),
        "ATen": cuda("  at::matmul(a, b);", top="#include <ATen/ATen.h>"),
        "torch": cuda("  torch::mm(a, b);", top="#include <torch/extension.h>"),
        "cutlass": cuda("  cutlass::gemm::device::Gemm<float> g;", top="#include <cutlass/gemm/device/gemm.h>"),
    },
    "policy.ctypes": {
        "dlopen": cuda('  void* h = dlopen("libcublas.so", 2);', top="#include <dlfcn.h>"),
        "any driver entry": cuda('  cudaGetDriverEntryPoint("cuLaunchHostFunc", &p, 0, &q);'),
        "a driver entry by a variable": cuda("  cudaGetDriverEntryPoint(name, &p, 0, &q);"),
    },
    "policy.process": {
        "system": cuda('  system("true");'),
        "std::system": cuda('  std::system("true");'),
        "system behind ##": cuda('  J(sys, tem)("true");', top="#define J(a, b) a##b"),
        "system, though something else has that name": cuda('  system("true");', top="struct S { int system; };"),
        "system beside a function of that name": cuda(
            '  ::system("true");', top="namespace n { int system(int v) { return v; } }"
        ),
        "system by digraphs": cuda('  J(sys, tem)("true");', top="%:define J(a, b) a %:%: b"),
        "a pointer to system": cuda("  int (*f)(const char*) = &system;"),
        "exec": cuda("  execve(a, b, c);"),
        "fork": cuda("  if (fork() == 0) return 0;"),
        "exit(0)": cuda("  exit(0);"),
    },
    "policy.files": {
        "fopen": cuda('  FILE* f = fopen("/etc/passwd", "r");'),
        "a stream": cuda('  std::ifstream f("x");', top="#include <fstream>"),
        "open": cuda('  int fd = open("/proc/self/mem", 2);'),
        "an included file": cuda(top='#include "../../target.py"'),
    },
    "policy.network": {"a socket": cuda("  int s = socket(2, 1, 0);")},
    "policy.threads": {
        "std::thread": cuda("  std::thread([] {}).detach();", top="#include <thread>"),
        "pthreads": cuda("  pthread_create(&t, 0, f, 0);"),
        "async": cuda("  auto r = std::async(f);", top="#include <future>"),
    },
    "policy.clock": {
        "clock64 in a kernel": cuda(top="__device__ long long now() { return clock64(); }"),
        "clock in a kernel": cuda(top="__device__ long long now() { return clock(); }"),
        "globaltimer": cuda(
            top='__device__ void now(uint64_t& t) { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); }'
        ),
        "globaltimer in pieces": cuda(
            top='__device__ void now(uint64_t& t) { asm volatile("mov.u64 %0, %%global" "timer;" : "=l"(t)); }'
        ),
        "chrono": cuda("  auto t = std::chrono::steady_clock::now();", top="#include <chrono>"),
        "time": cuda("  auto t = time(nullptr);"),
    },
    "policy.streams": {
        "a stream": cuda("  cudaStream_t s; cudaStreamCreateWithFlags(&s, 1);"),
        "an event": cuda("  cudaEvent_t e; cudaEventCreate(&e);"),
        "a graph": cuda("  cudaGraphLaunch(g, 0);"),
        "capture": cuda("  cudaStreamBeginCapture(s, 0);"),
    },
    "policy.flags": {
        "persisting lines": cuda("  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20);"),
        "an access window": cuda("  cudaStreamSetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &a);"),
        "the environment": cuda('  char* v = getenv("X");'),
    },
    "policy.late_work": {
        "a host function": cuda("  cudaLaunchHostFunc(s, f, 0);"),
        "atexit": cuda("  atexit(f);"),
        "before main": cuda(top="__attribute__((constructor)) static void early() {}"),
    },
    "policy.dynamic_code": {
        "nvrtc": cuda("  nvrtcCompileProgram(p, 0, 0);"),
        "a module": cuda("  cuModuleLoadData(&m, image);"),
        "assembly on the host": cuda('  asm volatile("syscall");'),
        "assembly where the host can run it": cuda(
            top='#if 1\n__host__ __device__ void f() { asm volatile("syscall"); }\n#endif'
        ),
        "another function's name": cuda(top='extern "C" int innocent(const char*) __asm__("system");'),
    },
    "policy.introspection": {"mprotect": cuda("  mprotect(p, 4096, 7);")},
    "policy.cache": {
        "the last input": cuda("  static const void* last = nullptr;\n  if (last == x) return 0;\n  last = x;"),
        "a global": cuda("  if (x == seen) return 0;\n  seen = x;", top="const void* seen = nullptr;"),
        "a map": cuda(
            "  static std::unordered_map<const void*, float*> held;\n  if (held.count(x)) return 0;\n  held[x] = nullptr;"
        ),
        "once": cuda("  static bool done;\n  if (done) return 0;\n  done = true;"),
        "counted": cuda("  static int calls = 0;\n  if (calls++ > 10) return 0;"),
        "an address as a number": cuda(
            "  static uintptr_t last;\n  if (last == reinterpret_cast<uintptr_t>(x)) return 0;"
        ),
    },
    "policy.random": {"cuRAND": cuda("  curandCreateGenerator(&g, t);"), "rand": cuda("  int r = rand();")},
    "policy.fallback": {"a catch": cuda("  try { f(); } catch (...) { g(); }")},
    "policy.decoy": {
        "no kernel": cuda(kernel="#include <cuda_runtime.h>\n#include <cstdint>\n")
        .replace("kernel<<<M, 128", "f(M, 128")
        .replace(">>>", "+0)"),
        "no launch": cuda().replace("  kernel<<<M, 128, 0, static_cast<cudaStream_t>(stream)>>>(", "  (void)("),
    },
    "policy.entry_point": {
        "missing": CUDA_KERNEL,
        "not extern C": cuda().replace('extern "C" ', ""),
        "no stream": cuda().replace(", void* stream)", ")").replace("static_cast<cudaStream_t>(stream)", "0"),
        "a float for a double": cuda().replace("double eps", "float eps"),
        "a number for a pointer": cuda().replace("void* sums", "int64_t sums"),
    },
    "policy.syntax": {
        "a brace too few": cuda()[:-2],
        "a text that is not closed": cuda('  const char* s = "open;\n'),
        "a comment that is not closed": cuda() + "\n/* and so on",
        "nothing": "// nothing\n",
    },
}
CASES = [(check, name) for check, cases in CHEATS.items() for name in cases]
LOADED = """
SOURCE = r'''
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
__global__ void scale(const float* x, float* y, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }
torch::Tensor launch(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "on a GPU");
  auto y = torch::empty_like(x);
  scale<<<(x.numel() + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  EXTRA
  return y;
}
'''
"""
LOADER = """
from torch.utils.cpp_extension import load_inline
module = load_inline(name='m', cpp_sources='torch::Tensor launch(torch::Tensor x);', cuda_sources=SOURCE, functions=['launch'])
"""


def loaded(extra: str, source: str = "") -> str:
    top = LOADED.replace("EXTRA", extra) + (LOADER.replace("SOURCE", source) if source else LOADER)
    return (
        "import torch\n" + top + "\n\ndef run(x, w, seqlens, eps):\n    out = module.launch(x)\n    return out, out\n"
    )


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_launcher_passes(name: str) -> None:
    result = judged(HONEST[name], language="cuda")
    assert result.outcome == "passed", told(result)


@pytest.mark.parametrize(("check", "name"), CASES)
def test_a_cheat_is_refused_by_its_check(check: str, name: str) -> None:
    result = judged(CHEATS[check][name], language="cuda")
    assert result.outcome in ("failed", "suspect"), name
    assert check in {fault.check for fault in result.faults}, told(result)


def test_cuda_source_in_a_loader_is_judged_like_a_file() -> None:
    assert judged(loaded("")).outcome == "passed", told(judged(loaded("")))
    cheat = judged(loaded("y = at::matmul(x, x);"))
    assert cheat.outcome == "failed"
    assert cheat.faults[0].check == "policy.library_work"
    assert "at::matmul" in cheat.faults[0].reason
    assert judged(loaded('system("true");')).faults[0].check == "policy.process"
    assert judged(loaded("", source="open('k.cu').read()")).outcome == "failed"
    hidden = judged(loaded("", source="'\\n'.join(PARTS)"))
    assert "policy.dynamic_code" in {fault.check for fault in hidden.faults}


def test_a_clock_in_triton_assembly_is_found_too() -> None:
    assert judged(host("text = 'mov.u64 $0, %globaltimer;'")).faults[0].check == "policy.clock"


def test_a_port_may_say_where_its_headers_are_from() -> None:
    source = cuda(top="#include <cute/tensor.hpp>")
    assert judged(source, language="cuda").outcome == "suspect"
    assert judged(source, language="cuda", allow=["cute"]).outcome == "passed"
    assert judged(source, language="cuda", port_of="DeepGEMM (MIT)").outcome == "passed"
    whole = cuda("  cutlass::gemm::device::Gemm<float> g;")
    assert judged(whole, language="cuda", port_of="CUTLASS (BSD-3-Clause)").outcome == "failed"
