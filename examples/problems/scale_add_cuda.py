"""A solution to scale_add.py: a CUDA kernel, built and loaded by torch."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void scale_add_kernel(const float* x, const float* y, float* out, float factor, long size) {
  long at = blockIdx.x * long(blockDim.x) + threadIdx.x;
  if (at < size) out[at] = factor * x[at] + y[at];
}

torch::Tensor scale_add(torch::Tensor x, torch::Tensor y, double factor) {
  auto out = torch::empty_like(x);
  const int threads = 256;
  const long size = x.numel();
  scale_add_kernel<<<(size + threads - 1) / threads, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), float(factor), size);
  return out;
}
"""
CPP_SOURCE = "torch::Tensor scale_add(torch::Tensor x, torch::Tensor y, double factor);"

extension = load_inline(name="scale_add", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["scale_add"])


class ModelNew(nn.Module):
    """The same sum, computed by one kernel."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, factor: float) -> torch.Tensor:
        """x, y: (size,); returns the same shape."""
        return extension.scale_add(x, y, factor)
