"""Why a compiler refused a candidate, and what the next author must do: one cause an id of L1's checks.

A cause suggests rules, the general one first. Limits that the hardware's config states hold on that hardware for any
kernel; everything else is a compiler's word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kernelgen.config import Hardware
from kernelgen.constraints import rules
from kernelgen.constraints.facts import WARP_THREADS, Facts
from kernelgen.records import Finding

BLOCK_FACT = "block."
LONGEST_SAID = 200
"""Characters of a compiler's line in a statement."""
KIB = 1024
TRITON_LANGUAGE = "triton.language"
REPRODUCED = "Repro command"
"""Begins the line in which Triton repeats how it called ptxas."""
_ERROR = re.compile(r"\b(?:error|fatal)\b", re.IGNORECASE)
_FOLDERS = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+")
_TEXT_ONLY = (
    (re.compile(r"0x[0-9a-fA-F]+"), "#"),
    (re.compile(r"(?:[\w.-]*/)+[\w.-]+"), "PATH"),
    (re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`"), "NAME"),
    (re.compile(r"\b\w+\[[^\]]*\]"), "NAME"),
    (re.compile(r"\b\w*[\d_]\w*\b"), "NAME"),
)
"""What in a text differs from kernel to kernel, and what stands for it."""


@dataclass(frozen=True)
class Failure:
    """One finding, and what is needed to understand it."""

    finding: Finding
    """What was found."""
    hardware: Hardware
    """Whose limits it may be about."""
    before: Sequence[Facts]
    """What was known of the candidate before compiling."""
    said_by: str
    """The compiler, with its version where known."""

    @property
    def own(self) -> dict[str, object]:
        """Launch parameters of the finding: they stand for a source that is not at hand or does not tell them."""
        own: dict[str, object] = {"blocks": self.blocks}
        own |= {name: value for name in ("num_warps", "num_stages") if (value := self.number(name)) is not None}
        if (warps := self.number("num_warps")) is not None:
            own["threads"] = warps * WARP_THREADS
        return own

    @property
    def blocks(self) -> dict[str, int]:
        """The compile-time numbers the finding is about."""
        named = {k.removeprefix(BLOCK_FACT): v for k, v in self.finding.facts.items() if k.startswith(BLOCK_FACT)}
        return {k: v for k, v in named.items() if isinstance(v, int) and not isinstance(v, bool) and k.isidentifier()}

    def number(self, name: str) -> int | None:
        """A whole number among the facts."""
        value = self.finding.facts.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def proved(self, *suggested: str | None) -> str | None:
        """The first of the rules that refuses this candidate before it is compiled."""
        return next((rule for rule in suggested if rule is not None and self._is_refused_by(rule)), None)

    def _is_refused_by(self, rule: str) -> bool:
        parsed = rules.parse(rule)
        about = [facts for facts in self.before if facts.kernel is not None and self._is_about(facts)]
        # where none can be the one, the text tells other values than the launch had: any may be
        told = [facts.values for facts in self.before if not about or facts.kernel is None or facts in about]
        return any(parsed.check(facts) is False for facts in (*told, self.own))

    def _is_about(self, setting: Facts) -> bool:
        """Whether a setting can be the one that failed."""
        blocks, values = setting.values.get("blocks"), setting.values
        known = blocks if isinstance(blocks, Mapping) else {}
        options = [(values.get(name), self.number(name)) for name in ("num_warps", "num_stages")]
        pairs = [*options, *((known.get(name), size) for name, size in self.blocks.items())]
        return all(there is None or ours is None or there == ours for there, ours in pairs)


@dataclass(frozen=True)
class Cause:
    """Why a candidate failed."""

    kind: str
    """What makes it the same cause beside the check's id."""
    statement: str
    """What a kernel author must do."""
    rule: str | None = None
    """A proved rule, or None."""
    of_the_architecture: bool = False
    """Whether it is a limit that the hardware's config states."""
    said_by_compiler: bool = True
    """Whether it is a compiler's word."""


def compile_cause(failure: Failure) -> Cause:
    """The cause of a finding of L1."""
    understand = _CAUSES.get(failure.finding.check, _other)
    return understand(failure)


def _shared_memory(failure: Failure) -> Cause:
    limit = failure.number("limit_bytes") or int(failure.hardware.shared_bytes_per_block.value)
    statement = (
        f"A block can use at most {limit} bytes of shared memory ({limit / KIB:g} KiB): what a loop loads for tl.dot "
        "takes the bytes of its tiles times num_stages; choose smaller tiles or fewer stages."
    )
    general = failure.proved(f"shared_bytes <= {limit} and staged_bytes <= {limit}")
    if general is not None:
        return Cause("shared memory", statement, general, of_the_architecture=True)
    if larger := failure.proved(_not_as_large(failure)):
        return Cause("shared memory of a configuration", statement, larger)
    return Cause("shared memory, once compiled", statement, f"shared_bytes <= {limit}", of_the_architecture=True)


def _not_as_large(failure: Failure, *, shared_by_warps: bool = False) -> str | None:
    """Refuses this configuration and every one that is at least as large in all of its numbers.

    With `shared_by_warps` those alone that have no more warps to share the work: more would mend it.
    """
    least = [f'block("{name}") >= {size}' for name, size in sorted(failure.blocks.items()) if size > 1]
    stages = failure.number("num_stages")
    least += [f"num_stages >= {stages}"] if stages is not None and stages > 1 else []
    warps = failure.number("num_warps") if shared_by_warps else None
    least += [f"num_warps <= {warps}"] if warps is not None and least else []
    rule = f"not ({' and '.join(least)})"
    return rule if failure.blocks and least and len(rule) <= rules.LONGEST_RULE else None


def _num_warps(failure: Failure) -> Cause:
    warps = failure.number("num_warps")
    if warps is not None and warps > 0 and not warps & (warps - 1):
        return _threads(failure)
    rule = "is_power_of_two(num_warps)"
    return Cause("power of two", "num_warps must be a power of two.", failure.proved(rule) or rule)


def _threads(failure: Failure) -> Cause:
    threads = failure.hardware.max_threads_per_block.value
    warps = int(threads // failure.hardware.warp_size.value)
    statement = f"A block can have at most {threads} threads, {warps} warps."
    return Cause("threads", statement, f"threads <= {threads} and num_warps <= {warps}", of_the_architecture=True)


def _registers(failure: Failure) -> Cause:
    most = failure.hardware.max_registers_per_thread.value
    statement = (
        f"A thread can have at most {most} registers, and a block's must fit its SM: use smaller tiles or more warps."
    )
    larger = failure.proved(_not_as_large(failure, shared_by_warps=True))
    return Cause("registers", statement, larger)


def _block_shape(failure: Failure) -> Cause:
    if "elements" in failure.finding.facts:
        rule = failure.proved(_not_as_large(failure))
        statement = "A block has too many elements for the compiler: use smaller extents and a loop."
        return Cause("elements", statement, rule)
    odd = [name for name, size in failure.blocks.items() if size <= 0 or size & (size - 1)]
    named = [f'is_power_of_two(block("{name}"))' for name in sorted(odd)]
    rule = failure.proved("odd_extents == 0", " and ".join(named) or None)
    statement = "Every extent of tl.arange and of a block is a power of two: pad to the next one and mask."
    return Cause("power of two", statement, rule)


def _dot_dtype(failure: Failure) -> Cause:
    unsupported = failure.finding.facts.get("dtype")
    if isinstance(unsupported, str) and unsupported.isidentifier():
        name = re.sub(r"^fp(?=\d)", "float", unsupported)
        rule = failure.proved(f'not source_matches(r"\\b{name}\\b")')
        return Cause(f"dtype {name}", f"This architecture has no {name}: use another dtype.", rule)
    patterns = (f'not source_matches(r"{pattern}")' for pattern in DOT_PATTERNS)
    rule = failure.proved("mixed_dots == 0", *patterns)
    statement = (
        "Both operands of tl.dot have the same dtype, one that its product takes; convert one to the other's first, as "
        "in p.to(v.dtype)."
    )
    return Cause("operands", statement, rule)


DOT_PATTERNS = (
    r"\btl\.dot\(.*\bout_dtype\s*=\s*tl\.bfloat16\b",
    r"\btl\.dot\(.*\.to\(\s*tl\.(int16|int32|int64|float64)\s*\)",
)
"""Products that no compiler takes, as they are written."""


def _dot_shape(failure: Failure) -> Cause:
    least = failure.number("least_k")
    small = failure.blocks if least is not None and len(failure.blocks) == 1 else {}
    named = [f'block("{name}") >= {least}' for name in small]
    rule = failure.proved("shallow_dots == 0", *named)
    statement = (
        f"The inner extent of tl.dot is the same on both sides and at least {least or 16}"
        f"{'' if least == 32 else ', at least 32 where both operands have 8 bits'}."
    )
    return Cause("inner extent", statement, rule)


def _alignment(failure: Failure) -> Cause:
    needed = failure.number("bytes_needed") or 16
    named = [f'block("{name}") > {size}' for name, size in failure.blocks.items()] if len(failure.blocks) == 1 else []
    rule = failure.proved("bad_descriptors == 0", *named)
    statement = (
        f"A tensor descriptor's rows have at least {needed} bytes, lie {needed}-byte aligned and without gaps: base "
        "and other strides are multiples of that, the last stride is 1."
    )
    return Cause("descriptor", statement, rule)


def _no_launch(failure: Failure) -> Cause:
    return Cause("no launch", "The entry point launches at least one kernel at every shape.", said_by_compiler=False)


def _unknown_name(failure: Failure) -> Cause:
    name = failure.finding.facts.get("name")
    if not isinstance(name, str) or not name.isidentifier() or len(name) > LONGEST_SAID // 4:
        return _other(failure)
    owner = failure.finding.facts.get("owner")
    if not isinstance(owner, str) or not owner.startswith(TRITON_LANGUAGE):
        # of a value, or of no one that is known: the bare name may be right elsewhere
        return Cause(f"name {name}", f"{failure.said_by} has no '{name}' here: use what it has.")
    spelt = owner.replace(TRITON_LANGUAGE, "tl", 1) + f".{name}"
    pattern = spelt.replace(".", r"\.")
    rule = failure.proved(f'not source_matches(r"\\b{pattern}\\b")')
    return Cause(f"name {spelt}", f"{failure.said_by} has no {spelt}: use what it has.", rule)


def _other(failure: Failure) -> Cause:
    line = _telling(failure.finding)
    said = " ".join(_FOLDERS.sub("", line).split())
    shown = said if len(said) <= LONGEST_SAID else f"{said[: LONGEST_SAID - 1]}…"
    return Cause(_impersonal(line), f"{failure.said_by} does not build a kernel of which it says: {shown}")


def _telling(finding: Finding) -> str:
    """The line of a compiler's words that says why: its first error, else the last."""
    lines = [line for line in finding.detail.splitlines() if line.strip() and not line.strip().startswith(REPRODUCED)]
    return next((line for line in lines if _ERROR.search(line)), lines[-1] if lines else finding.reason)


def _impersonal(text: str) -> str:
    """A text without numbers, names, places and addresses."""
    for pattern, stand_in in _TEXT_ONLY:
        text = pattern.sub(stand_in, text)
    return " ".join(text.split())


_CAUSES: Mapping[str, Callable[[Failure], Cause]] = MappingProxyType(
    {
        "compile.shared_memory": _shared_memory,
        "compile.num_warps": _num_warps,
        "compile.threads": _threads,
        "compile.registers": _registers,
        "compile.block_shape": _block_shape,
        "compile.dot_dtype": _dot_dtype,
        "compile.dot_shape": _dot_shape,
        "compile.alignment": _alignment,
        "compile.no_launch": _no_launch,
        "compile.unknown_name": _unknown_name,
    }
)
"""By the check's id; what is not here is told by its text."""
