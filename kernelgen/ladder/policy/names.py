"""The checks of L0's policy by id, each with the sentence that says what it refuses.

An id never changes its meaning: constraints, `conf/policy` and docs refer to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "policy.syntax": "The source must parse: valid Python, or CUDA C++ with balanced brackets and closed literals.",
        "policy.entry_point": "The target's entry point must be defined once, with the parameters it is called with.",
        "policy.library_work": "No library may do the target's work: torch may allocate, reshape and convert, no more.",
        "policy.fallback": "Nothing may stand in for a kernel that fails: its error must reach the caller.",
        "policy.clock": "No clocks and timers, on the host or in a kernel.",
        "policy.threads": "No threads, tasks or executors.",
        "policy.process": "No processes, no signals to them, and no ending of the own one.",
        "policy.files": "No reading or writing of files.",
        "policy.network": "No network.",
        "policy.ctypes": "No foreign functions: no ctypes, cffi, dlopen or driver entry points by name.",
        "policy.dynamic_code": "No code made from text or bytes at run time, and no machine code in host functions.",
        "policy.introspection": "No walking of frames, modules, classes, garbage or namespaces; names are written out.",
        "policy.global_state": "Nothing of an imported module may be replaced or set.",
        "policy.flags": "No global flags, environment variables, limits or precision switches.",
        "policy.late_work": "No work after the return: exit handlers, finalizers, destructors, callbacks, hooks.",
        "policy.lazy_result": "Results are plain tensors: no tensor subclasses, no overriding of torch's functions.",
        "policy.streams": "No streams, events and graphs of the candidate's own: it launches where it is called.",
        "policy.cache": "No tensors and results kept from call to call, and none made at import.",
        "policy.random": "No random generators on the host, and no touching of torch's.",
        "policy.decoy": "The target's kernels must be launched, and what they write must be what is returned.",
        "policy.similar": "Not a known kernel under other names, unless the state hands it in or ports it.",
        "policy.denied": "No name that this project's conf/policy denies.",
    }
)
"""By id."""


def words(text: str) -> frozenset[str]:
    """The words of a text: how the tables write sets of names."""
    return frozenset(text.split())
