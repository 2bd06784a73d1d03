"""CUDA source that a Python candidate hands to torch's loader: honest and common, and judged like a `.cu`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelgen.ladder.policy import cuda
from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.view import View, at

LOADER = "torch.utils.cpp_extension.load_inline"
SOURCES = frozenset({"cpp_sources", "cuda_sources"})
POSITIONS = {1: "cpp_sources", 2: "cuda_sources"}


def check(view: View) -> Iterator[Finding]:
    """The sources of every loader call, each finding at the call."""
    for node, scope in view.host:
        if not isinstance(node, ast.Call) or LOADER not in view.paths(node.func, scope):
            continue
        given = {POSITIONS[i]: argument for i, argument in enumerate(node.args) if i in POSITIONS}
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg in SOURCES}
        for name, value in given.items():
            text = view.text(value, scope)
            if text is None:
                yield at(value, "policy.dynamic_code", f"{name} is not written out", in_doubt=True)
                continue
            for finding in cuda.check_text(text, view.allowed, view.denied, with_torch=True):
                reason = f"in {name}, line {finding.line}: {finding.reason}"
                yield at(value, finding.check, reason, in_doubt=finding.in_doubt)
