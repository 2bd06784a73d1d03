"""Naive Triton champions, one file a target: correct, plain, and there to be beaten.

Each defines `AUTOTUNE_CONFIGS` (configurations by kernel name) and the target's entry point.
"""
