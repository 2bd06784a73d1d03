"""Targets: one module a kernel region, with its trusted reference, input makers, comparison and cost formulas.

Everything here runs on a GPU machine that has only Python, torch and Triton: no pydantic, no other part of kernelgen
but `errors`. torch is imported inside functions, so that costs can be computed without it.
"""
