"""kernelgen writes, judges and remembers GPU kernel candidates.

Importing the package loads nothing heavy: torch, triton, dspy, litellm and hydra sit behind the modules that need them.
"""

__version__ = "0.1.0"
