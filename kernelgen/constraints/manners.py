"""What a kernel author must not do beside the kernel, by the id of L0's check, in words to follow.

The policy itself finds such code, whatever it is called; the pattern of an entry is what an author would write, so that
a fresh candidate is refused with the constraint's id where it writes just that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kernelgen.constraints.causes import Cause, Failure

LONGEST_NAME = 60
"""Characters of a dotted name in a rule."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


class Manner(NamedTuple):
    """One thing that is not done."""

    statement: str
    """For a kernel author."""
    pattern: str | None = None
    """How it is usually written."""


MANNERS: Mapping[str, Manner] = MappingProxyType(
    {
        "policy.entry_point": Manner(
            "Define the entry point once, at top level, with the target's parameters by name."
        ),
        "policy.library_work": Manner(
            "Do the target's work in your own kernel: torch may allocate, reshape and convert, no more.",
            r"\btorch\.(matmul|mm|bmm|einsum|compile|softmax|addmm|baddbmm)\b",
        ),
        "policy.fallback": Manner(
            "Put nothing around the kernel that stands in for it when it fails: let its error out."
        ),
        "policy.clock": Manner(
            "Read no clock and time nothing, on the host or in a kernel: the judge measures.",
            r"\b(perf_counter|perf_counter_ns|monotonic|time_ns|elapsed_time|do_bench|import time)\b",
        ),
        "policy.threads": Manner("Start no threads, tasks or executors.", r"\b(threading|Thread|ThreadPoolExecutor)\b"),
        "policy.process": Manner(
            "Start, signal and end no process.", r"\b(subprocess|os\.system|os\.fork|os\._exit|sys\.exit|os\.kill)\b"
        ),
        "policy.files": Manner(
            "Read and write no files.", r"(?<![.\w])(open\s*\(|pathlib\b|torch\.load\b|torch\.save\b)"
        ),
        "policy.network": Manner("Use no network.", r"\b(socket|urllib|requests|http\.client|httpx)\b"),
        "policy.ctypes": Manner("Call no foreign functions: no ctypes, cffi or dlopen.", r"\b(ctypes|cffi|dlopen)\b"),
        "policy.dynamic_code": Manner(
            "Write the code out: none is made from text or bytes at run time.",
            r"(?<![.\w])(exec|eval|compile|__import__)\s*\(",
        ),
        "policy.introspection": Manner(
            "Do not walk frames, modules, classes or garbage; write names out.",
            r"\b(sys\._getframe|inspect|gc\.get_objects|gc\.get_referrers|sys\.modules|__subclasses__)\b",
        ),
        "policy.global_state": Manner("Replace and set nothing of an imported module."),
        "policy.flags": Manner(
            "Set no global flags, environment variables or precision switches.",
            r"\b(os\.environ|allow_tf32|set_float32_matmul_precision|torch\.backends)\b",
        ),
        "policy.late_work": Manner(
            "Do all work before the entry point returns: no exit handlers, finalizers or callbacks.",
            r"\b(atexit|weakref\.finalize|__del__)\b",
        ),
        "policy.lazy_result": Manner("Return plain tensors: no subclasses, no overriding of torch's functions."),
        "policy.streams": Manner(
            "Launch on the current stream where you are called: no streams, events or graphs of your own.",
            r"\b(torch\.cuda\.(Stream|stream|Event|CUDAGraph|graph))\b",
        ),
        "policy.cache": Manner("Keep no tensors and results from call to call, and make none at import."),
        "policy.random": Manner(
            "Use no random generator on the host.", r"\b(torch\.(manual_seed|rand|randn|randint))\b"
        ),
        "policy.decoy": Manner("Launch the target's kernels, and return what they wrote."),
    }
)
"""By the check's id."""


def policy_cause(failure: Failure) -> Cause:
    """The cause of a finding of L0."""
    finding = failure.finding
    manner = MANNERS.get(finding.check)
    name = finding.facts.get("name")
    by_name = f'not source_matches(r"\\b{re.escape(name)}\\b")' if _is_plain(name) and isinstance(name, str) else None
    if manner is None:
        kind = str(name) if by_name is not None else finding.check
        return Cause(kind, finding.reason, failure.proved(by_name), said_by_compiler=False)
    usual = None if manner.pattern is None else f'not source_matches(r"{manner.pattern}")'
    return Cause("", manner.statement, failure.proved(usual, by_name), said_by_compiler=False)


def _is_plain(name: object) -> bool:
    return isinstance(name, str) and len(name) <= LONGEST_NAME and _DOTTED.fullmatch(name) is not None
