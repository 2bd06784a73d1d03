"""Measures kernelgen's own speed and memory: `make bench`. Each module has `run() -> dict` and measures one thing."""
