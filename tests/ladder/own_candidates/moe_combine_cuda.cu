// The weighted sum of each token's eight expert rows, with the shared expert's row or without: target moe_combine.
//
// A thread sums eight neighbouring columns of one token in fp32, 16 bytes a load; the row of a pair whose weight is 0 is
// unwritten memory and is not read.

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int kHidden = 7168;
constexpr int kChosen = 8;
constexpr int kWidth = 8;
constexpr int kThreads = 128;
constexpr int kGroups = kHidden / kWidth;
static_assert(kGroups % kThreads == 0, "blocks cover a row exactly");

__device__ __forceinline__ void add(float (&total)[kWidth], float weight, uint4 row) {
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&row);
#pragma unroll
  for (int i = 0; i < kWidth / 2; i++) {
    const float2 values = __bfloat1622float2(pairs[i]);
    total[2 * i] += weight * values.x;
    total[2 * i + 1] += weight * values.y;
  }
}

__global__ void __launch_bounds__(kThreads)
combine_kernel(const uint4* __restrict__ z, const float* __restrict__ weights, const uint4* __restrict__ shared,
               uint4* __restrict__ out, bool has_shared) {
  const int64_t token = blockIdx.x;
  const int group = blockIdx.y * kThreads + threadIdx.x;
  float total[kWidth] = {};
  if (has_shared) add(total, 1.0f, shared[token * kGroups + group]);
#pragma unroll
  for (int k = 0; k < kChosen; k++) {
    const int64_t pair = token * kChosen + k;
    const float weight = weights[pair];
    if (weight != 0.0f) add(total, weight, z[pair * kGroups + group]);
  }
  uint4 rounded;
  __nv_bfloat162* pairs = reinterpret_cast<__nv_bfloat162*>(&rounded);
#pragma unroll
  for (int i = 0; i < kWidth / 2; i++) pairs[i] = __floats2bfloat162_rn(total[2 * i], total[2 * i + 1]);
  out[token * kGroups + group] = rounded;
}

extern "C" int moe_combine(const void* z, const void* weights, const void* shared, int64_t S, int64_t T, void* out,
                           void* stream) {
  if (T == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>(T), kGroups / kThreads);
  combine_kernel<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const uint4*>(z), static_cast<const float*>(weights), static_cast<const uint4*>(shared),
      static_cast<uint4*>(out), S > 0);
  return cudaGetLastError();
}
