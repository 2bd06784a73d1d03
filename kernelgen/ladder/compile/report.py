"""What a build is, and how builds and refusals become the result of L1.

A configuration that the card has no room for is left out by Triton's tuner, and so only noted here, as long as another
one of the same kernel can run. Every other refusal would end the call on the card, and fails the candidate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from kernelgen.ladder import binary
from kernelgen.ladder.compile import words
from kernelgen.ladder.reasons import shorten
from kernelgen.ladder.results import Fact, Fault, Result

WARP_SIZE = 32
# what Triton's tuner takes as "not this configuration" and goes on
LEFT_OUT_BY_TUNER = frozenset({"OutOfResources", "CompileTimeAssertionFailure", "PTXASError"})

# what libraries of the compiler check before a launch, or while TileLang traces a kernel
SEEN_BY_HOST_CODE = frozenset({"compile.alignment", "compile.dot_shape", "compile.dot_dtype", "compile.shared_memory"})

Value = bool | int | float | str | None


@dataclass(frozen=True)
class Build:
    """One kernel compiled in one configuration."""

    kernel: str
    """Its name."""
    kwargs: dict[str, Value] = field(default_factory=dict)
    """Compile-time arguments as resolved; empty where the language has none."""
    num_warps: int | None = None
    """Warps of a block; None where only a launch says it."""
    num_stages: int | None = None
    """Pipeline stages; None where the language has no such option."""
    registers: int = 0
    """32-bit registers of a thread."""
    stack_bytes: int = 0
    """Local memory of a thread: spilled registers, and arrays indexed at run time."""
    shared_bytes: int = 0
    """Shared memory of a block; for CUDA C++ the static part, since a launch asks for the rest."""
    instructions: dict[str, int] = field(default_factory=dict)
    """How often the telling instructions stand in the machine code."""
    digest: str = ""
    """sha256 of the binary it was read from."""
    calls: tuple[str, ...] = ()
    """Shapes at which it was launched."""

    def describe(self) -> str:
        """The configuration in one line: `gather_kernel[BLOCK=256, num_warps=4, num_stages=3]`."""
        return described(self.kernel, self.kwargs, self.num_warps, self.num_stages)


@dataclass(frozen=True)
class Refusal:
    """One kernel in one configuration that cannot run."""

    kernel: str
    """Its name."""
    kwargs: dict[str, Value]
    """Compile-time arguments as resolved."""
    num_warps: int | None
    """Warps of a block; None where the launch named none."""
    num_stages: int | None
    """Pipeline stages; None likewise."""
    error: str
    """Name of the exception's class."""
    said: str
    """The compiler's words, uncut."""
    line: int | None
    """Line of the judged source that it points at."""
    call: str | None
    """Shape at which it was launched; None for a launch while the file was loaded."""

    def describe(self) -> str:
        """The configuration in one line."""
        return described(self.kernel, self.kwargs, self.num_warps, self.num_stages)

    def fault(self, launch_line: int | None) -> Fault:
        """As what is wrong with the candidate; `launch_line` is told where the compiler names no line."""
        check, facts = words.classify(self.said, self.kwargs)
        options: dict[str, Fact] = {
            name: value
            for name, value in (("num_warps", self.num_warps), ("num_stages", self.num_stages))
            if value is not None
        }
        reason = f"{self.describe()} cannot run: {shorten(self.said)}"
        return Fault(check, reason, detail=self.said, line=self.line or launch_line, facts={**options, **facts})


@dataclass(frozen=True)
class Called:
    """One call of the entry point, or the loading of the file, that raised."""

    call: str | None
    """The shape; None for the loading."""
    failure: str
    """In one line."""
    said: str
    """The traceback from the candidate's first line on."""
    line: int | None
    """Line of the judged source that it left last."""
    from_kernel: bool
    """Whether a compile that failed is the cause."""


@dataclass
class Findings:
    """Everything that compiling a candidate brought up."""

    builds: list[Build] = field(default_factory=list)
    """What can run, each configuration once: of its specialisations the one with most registers."""
    refusals: list[Refusal] = field(default_factory=list)
    """What cannot."""
    raised: list[Called] = field(default_factory=list)
    """Calls that did not return."""
    faults: list[Fault] = field(default_factory=list)
    """What is wrong beside, such as an early end."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know."""

    def add(self, build: Build) -> None:
        """Note one build; of the same configuration only the one with most registers is kept, with all its shapes."""
        name = build.describe()
        for index, known in enumerate(self.builds):
            if known.describe() == name:
                kept = max(known, build, key=lambda one: one.registers)
                calls = tuple(dict.fromkeys([*known.calls, *build.calls]))
                self.builds[index] = Build(**{**kept.__dict__, "calls": calls})
                return
        self.builds.append(build)


def read_builds(content: bytes, instructions: Sequence[str] | None) -> list[Build]:
    """The kernels of a binary as builds. Raises ValueError where it cannot be read."""
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return [
        Build(
            kernel=used.name,
            registers=used.registers,
            stack_bytes=used.stack_bytes,
            shared_bytes=used.static_shared_bytes,
            instructions=used.instructions,
            digest=digest,
        )
        for used in binary.read(content, instructions)
    ]


def described(kernel: str, kwargs: dict[str, Value], num_warps: int | None, num_stages: int | None) -> str:
    """A configuration in one line."""
    options = {"num_warps": num_warps, "num_stages": num_stages}
    stated = kwargs | {name: value for name, value in options.items() if value is not None}
    return f"{kernel}[{', '.join(f'{name}={value}' for name, value in stated.items())}]" if stated else kernel


def conclude(
    found: Findings,
    *,
    entry_point: str,
    arch: str,
    shared_limit: int,
    instructions: Sequence[str],
    environment: dict[str, str],
    seconds: float,
) -> Result:
    """The result of L1."""
    faults = [*found.faults, *_refused(found), *_raised(found)]
    if not faults and not found.builds:
        faults.append(Fault("compile.no_launch", f"{entry_point} launches no kernel at any tune shape"))
    faults += _over_limit(found.builds, shared_limit)
    present = sorted({name for build in found.builds for name in build.instructions})
    # it may be right all the same: a person decides, and nothing is learned from it
    doubtful = not faults and bool(instructions) and not set(present) & set(instructions)
    if doubtful:
        faults.append(_without_instruction(instructions, present, arch))
    pruned = {} if faults else {refusal.describe(): shorten(refusal.said) for refusal in found.refusals}
    left_out = [f"cannot run, and is left out by the tuner: {name}: {why}" for name, why in pruned.items()]
    return Result(
        level="L1",
        outcome="suspect" if doubtful else "failed" if faults else "passed",
        reason=faults[0].reason if faults else _summary(found.builds, arch, shared_limit),
        faults=tuple(faults),
        notes=(*found.notes, *left_out),
        details={
            "builds": [asdict(build) for build in found.builds],
            "refused": [{"config": refusal.describe(), "why": shorten(refusal.said)} for refusal in found.refusals],
            "shared_limit_bytes": shared_limit,
            "instructions": present,
        },
        environment=environment,
        seconds=seconds,
    )


def _refused(found: Findings) -> Iterable[Fault]:
    """Refusals that the tuner does not pass over, or that leave a kernel nothing; each cause of a kernel once."""
    able = {(build.kernel, call) for build in found.builds for call in build.calls}
    places = {called.call: called.line for called in found.raised if called.from_kernel}
    told: set[tuple[str, str, int | None]] = set()
    for refusal in found.refusals:
        if refusal.error in LEFT_OUT_BY_TUNER and (refusal.kernel, refusal.call) in able:
            continue
        fault = refusal.fault(places.get(refusal.call))
        cause = (refusal.kernel, fault.check, fault.line)
        if cause not in told:
            told.add(cause)
            yield fault


def _raised(found: Findings) -> Iterable[Fault]:
    """Calls that raised by themselves, each place once."""
    told: set[int | str] = set()
    for called in found.raised:
        place = called.failure if called.line is None else called.line
        if called.from_kernel or place in told:
            continue
        told.add(place)
        where = "while the file is loaded" if called.call is None else f"at shape {called.call}"
        meant, facts = words.classify(called.said, {})
        check = meant if meant in SEEN_BY_HOST_CODE else "compile.host"
        yield Fault(check, f"host code raised {where}: {called.failure}", called.said, called.line, facts)


def _over_limit(builds: Sequence[Build], limit: int) -> Iterable[Fault]:
    """Builds with more shared memory than a block can have: what no compiler of theirs refused."""
    for build in builds:
        if build.shared_bytes > limit:
            reason = f"{build.describe()} needs {build.shared_bytes} bytes of shared memory; a block has {limit}"
            blocks: dict[str, Fact] = {f"block.{name}": value for name, value in words.extents(build.kwargs).items()}
            yield Fault(
                "compile.shared_memory",
                reason,
                facts={"shared_bytes": build.shared_bytes, "limit_bytes": limit, **blocks},
            )


def _without_instruction(wanted: Sequence[str], present: Sequence[str], arch: str) -> Fault:
    reason = f"no kernel has {' or '.join(wanted)} in its machine code for {arch}, which the target's work is done with"
    return Fault("compile.instruction", reason, detail=f"telling instructions found: {', '.join(present) or 'none'}")


def _summary(builds: Sequence[Build], arch: str, shared_limit: int) -> str:
    kernels = len({build.kernel for build in builds})
    return (
        f"compiled for {arch}: {_count(kernels, 'kernel')}, {_count(len(builds), 'configuration')}; registers up to "
        f"{max(build.registers for build in builds)}, stack up to {max(build.stack_bytes for build in builds)} B, "
        f"shared memory up to {max(build.shared_bytes for build in builds)} of {shared_limit} B"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
