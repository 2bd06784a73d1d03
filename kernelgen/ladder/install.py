"""How what is missing is installed: one line each, said wherever it is missed."""

KERNELS_LINE = "pip install 'kernelgen[kernels]'"
TILELANG_LINE = "pip install tilelang"
NVCC_LINE = "pip install 'nvidia-cuda-nvcc>=13' 'nvidia-cuda-runtime>=13' 'nvidia-cuda-cccl>=13', or set CUDA_HOME"
