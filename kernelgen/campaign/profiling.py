"""Takes a profile where the GPU is, and imports it: a trace for the shares of time, ncu's counters where it can be had.

The kernel runs in a process of its own, with an environment cut down to what a GPU needs; it can be killed, and is not
contained: profilers reach where containment does not let. So of kernels that a model wrote only those are profiled that
passed L2. The floor is the target's formula, with or without counters.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kernelgen.campaign import recording
from kernelgen.config import Hardware, Target
from kernelgen.errors import BadInput, ProfileError, nearest
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ProfileImported
from kernelgen.generation import region
from kernelgen.generation.region import retracted_verdicts
from kernelgen.ids import digest_text
from kernelgen.judging.subjects import Judged
from kernelgen.ladder.install import KERNELS_LINE
from kernelgen.ladder.profiling import KIND, NO_GPU, Order
from kernelgen.profile.importer import import_profile
from kernelgen.records import Champion, Profile, to_text
from kernelgen.targets.code import load_code

PASSED_BEFORE = ("L2", "L3", "L4")


@dataclass(frozen=True)
class Place:
    """What a profile is of, beside the kernel."""

    target: Target
    """The target."""
    folder: Path
    """Folder of its yaml."""
    hardware: Hardware
    """The hardware."""
    shape: str
    """Name of the shape."""

    def dims(self) -> dict[str, int]:
        """The shape's dimensions. Raises BadInput where the target has no such shape."""
        found = self.target.shapes.find(self.shape)
        if found is None:
            near = nearest(self.shape, self.target.shapes.names())
            raise BadInput(f"{self.target.name} has no shape '{self.shape}'{near}")
        return found


@dataclass(frozen=True)
class Kernel:
    """What is profiled."""

    source: str
    """The whole text."""
    language: str
    """python or cuda."""
    subject: str | None
    """Says which kernel it is where it is not the champion."""


@dataclass(frozen=True)
class Recording:
    """What was recorded and imported."""

    profiles: tuple[Profile, ...]
    """The trace's, then ncu's where there is one: what a prompt tells is the last one."""
    notes: tuple[str, ...]
    """What could not be had, and why."""
    files: tuple[Path, ...]
    """The profilers' files, where they were kept."""


def gpu_is_here() -> bool:
    """Whether torch can use an NVIDIA GPU here."""
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def check_gpu() -> None:
    """Raises BadInput, with the mend, where there is none."""
    if find_spec("torch") is None:
        raise BadInput(f"A profile is taken with torch, which is not installed: {KERNELS_LINE}.")
    if not gpu_is_here():
        raise BadInput(
            f"A profile cannot be taken: {NO_GPU}. Take it where there is one (docs/profiling.md says how) and import "
            "it: `kernelgen profile import FILE`."
        )


def of_champion(champion: Champion) -> Kernel:
    """The region's champion."""
    return Kernel(champion.source, champion.language, None)


def of_candidate(judged: Judged, log: EventLog) -> Kernel:
    """A candidate, or a user's own file. Raises BadInput for a candidate that did not pass L2."""
    if judged.origin == "generated" and not _is_right(judged.iteration_id, log):
        raise BadInput(
            f"{judged.iteration_id} has no verdict that passed L2, and a profile runs it uncontained; judge it first: "
            f"`kernelgen judge {judged.iteration_id}`."
        )
    subject = judged.subject
    return Kernel(subject.preamble + subject.source, subject.language, f"candidate {judged.told}")


def _is_right(iteration_id: str, log: EventLog) -> bool:
    gone = retracted_verdicts(log)
    rows = [row for row in log.rows(kinds=("verdict_reached",), iteration_id=iteration_id) if row.id not in gone]
    return bool(rows) and getattr(rows[-1].event, "highest", None) in PASSED_BEFORE


def record(
    kernel: Kernel, place: Place, log: EventLog, *, counters: bool = True, keep: Path | None = None
) -> Recording:
    """Profile one call and import it. Raises BadInput where that is not possible here, or the kernel does not run.

    `counters` asks for ncu's too, where they can be had; `keep` is a folder for the profilers' files.
    """
    check_gpu()
    dims = place.dims()
    with tempfile.TemporaryDirectory(prefix="kernelgen-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        order = folder / "order.json"
        order.write_text(_order(kernel, place, dims).as_text(), encoding="utf-8")
        name = f"{place.target.name}.{place.shape}"
        files, notes = [recording.trace(order, folder, name)], []
        profiles = [_imported_as(kernel, files[0], place, log)]
        if counters:
            try:
                files.append(recording.counters(order, folder, name))
                # imported last: the next prompt tells its counters
                profiles.append(_imported_as(kernel, files[1], place, log))
            except BadInput as error:
                notes.append(str(error))
        return Recording(tuple(profiles), tuple(notes), tuple(_kept(files, keep)))


def import_file(
    path: Path,
    place: Place,
    log: EventLog,
    *,
    kernels: str | None = None,
    subject: str | None = None,
    champion_kernels: frozenset[str] | None = None,
) -> Profile:
    """Import a profiler's file and append it. Raises ProfileError for the file, ConfigError for the target."""
    target, dims = place.target, place.dims()
    code = load_code(target.module, place.folder)
    profile, raw = import_profile(
        path,
        target=target,
        hardware=place.hardware,
        shape=place.shape,
        flops=code.flops(dims),
        floor_bytes=code.bytes_moved(dims),
        champion=region.champion(log, target, place.hardware.name, place.folder),
        champion_kernels=champion_kernels,
        kernels=kernels,
        subject=subject,
    )
    text = to_text(profile)
    event = ProfileImported(
        target=target.name,
        hardware=place.hardware.name,
        shape=place.shape,
        profile=digest_text(text),
        raw=digest_text(raw),
    )
    log.append(event, [text, raw])
    return profile


class Refresher:
    """Takes a profile of the champion where the latest one is missing or of another kernel; each champion once."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._tried: set[str] = set()

    def __call__(self, log: EventLog) -> str | None:
        """What was taken, in a sentence, or why not; None where the latest profile shows the champion.

        Raises BadInput where there is no profile at all and none can be taken.
        """
        target, hardware, shape = self._place.target, self._place.hardware.name, self._place.shape
        champion = region.champion(log, target, hardware, self._place.folder)
        digest, latest = digest_text(champion.source), region.latest_profile(log, target.name, hardware, shape)
        if digest in self._tried or (latest is not None and latest.subject_source_digest == digest):
            return None
        self._tried.add(digest)
        try:
            made = record(of_champion(champion), self._place, log)
        except (BadInput, ProfileError) as error:
            if latest is None:
                raise
            return f"no profile of {champion.id} could be taken, so {latest.id} stands: {error}"
        profile = made.profiles[-1]
        return f"profiled {champion.id} at {shape}: {profile.time_us:.1f} us, {profile.limiting_factor.sentence}"


def _order(kernel: Kernel, place: Place, dims: dict[str, int]) -> Order:
    target = place.target
    return Order(
        module=target.module,
        folder=str(place.folder) if target.module.endswith(".py") else None,
        source=kernel.source,
        language=kernel.language,
        entry_point=target.entry_point,
        dims=dims,
        kind=KIND if KIND in target.input_kinds else target.input_kinds[0],
        outputs=tuple((one.name, one.dtype, list(one.shape)) for one in target.outputs),
    )


def _imported_as(kernel: Kernel, path: Path, place: Place, log: EventLog) -> Profile:
    """The profile; a candidate's kernels may be named as the champion's, and are not taken for them."""
    names = None if kernel.subject is None else frozenset[str]()
    return import_file(path, place, log, subject=kernel.subject, champion_kernels=names)


def _kept(files: Sequence[Path], keep: Path | None) -> list[Path]:
    if keep is None:
        return []
    try:
        keep.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(path, keep)) for path in files]
    except OSError as error:
        raise BadInput(f"{keep} cannot be written: {error.strerror}; name another folder with to=.") from error
