"""`kernelgen profile import`: one profiler file in, one Profile record and the text of its raw metrics out.

All launches of the file are the region unless a regex narrows them, and what was profiled is said in the record.
Whatever is wrong with the file ends in a ProfileError; nothing is written here.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from kernelgen.config import Hardware, Target
from kernelgen.errors import ConfigError, ProfileError, nearest
from kernelgen.ids import digest_text, new_id
from kernelgen.profile import formats
from kernelgen.profile.limits import limiting_factor, target_metric
from kernelgen.profile.roofline import Peak, Region, Roofline, classify, region, roofline
from kernelgen.profile.subject import kernel_names, name_subject
from kernelgen.profile.table import KernelLaunch, LaunchTable, raw_text, short_name
from kernelgen.profile.textfile import digest, shown
from kernelgen.records import Champion, Launch, Profile

ESTIMATE = "the occupancy is the profiler's estimate, not measured"
"""Said wherever a record's occupancy is one."""
NAMES_SHOWN = 12
"""Kernel names a message lists at most."""

_CAPABILITY = re.compile(r"([0-9]{1,3})[.,]([0-9])")
_MODEL = re.compile(r"\b[A-Z]{1,3}[0-9]{2,4}[A-Z]?\b")  # H200 of `NVIDIA H200 SXM`


def import_profile(
    path: Path,
    *,
    target: Target,
    hardware: Hardware,
    shape: str,
    flops: float,
    floor_bytes: float,
    champion: Champion,
    champion_kernels: Collection[str] | None = None,
    kernels: str | None = None,
    subject: str | None = None,
    peak: Peak = "bf16",
) -> tuple[Profile, str]:
    """Read a profile of `target` on `hardware` at `shape`; returns the record and the raw metrics' canonical JSON.

    `flops` and `floor_bytes` are the target's formulas at that shape. `champion_kernels` are the names under which the
    champion's kernels show (default: read from its source); `kernels` is a regex that a launch's name must match
    somewhere; `subject` extends the phrase that says what was profiled; `peak` names the FLOP ceiling of the floor.
    Raises ProfileError for the file and what was asked of it, ConfigError for formulas that give no usable number.
    """
    _check_request(target, shape, flops, floor_bytes)
    roof = roofline(hardware, flops=flops, floor_bytes=floor_bytes, peak=peak)
    table = formats.read(path)
    chosen = _choose(table, kernels, shown(path))
    _check_device(chosen, hardware, shown(path))
    whole = region(chosen, hardware, shown(path))
    names = kernel_names(champion) if champion_kernels is None else champion_kernels
    what = name_subject(whole, champion, names, subject)
    raw = raw_text(table)
    profile = Profile(
        id=new_id("p"),
        target=target.name,
        hardware=hardware.name,
        shape=shape,
        dims=target.shapes.find(shape) or {},
        subject=what.phrase,
        subject_source_digest=what.source_digest,
        raw=digest_text(raw),
        **_source(path, table),
        **_measured(whole),
        **_judged(whole, roof, hardware),
    )
    return profile, raw


def _source(path: Path, table: LaunchTable) -> dict[str, Any]:
    """The record's fields that name the file."""
    return {"source_file": shown(path), "source_digest": digest(path), "format": table.format}


def _measured(whole: Region) -> dict[str, Any]:
    """The record's fields that come from the file alone."""
    launches = tuple(
        Launch(name=launch.name, time_us=one.time_us, dram_bytes=one.dram_bytes, grid=launch.grid, block=launch.block)
        for launch, one in zip(whole.launches, whole.each, strict=True)
    )
    return {
        "device": whole.launches[0].device,
        "launches": launches,
        "dominant": whole.dominant,
        "time_us": whole.time_us,
        "dram_bytes": whole.dram_bytes,
        "dram_percent": whole.dram_percent,
        "sm_percent": whole.sm_percent,
        "occupancy_percent": whole.occupancy_percent,
    }


def _judged(whole: Region, roof: Roofline, hardware: Hardware) -> dict[str, Any]:
    """The record's fields that the roofline gives."""
    bottleneck = classify(whole, roof, hardware)
    factor = limiting_factor(whole, roof, bottleneck, hardware)
    if whole.occupancy_estimated:
        factor = factor.model_copy(update={"sentence": f"{factor.sentence}; {ESTIMATE}"})
    return {
        "flops": roof.flops,
        "floor_bytes": roof.floor_bytes,
        "floor_us": roof.floor_us,
        "floor_by": roof.floor_by,
        "intensity": roof.intensity,
        "ridge": roof.ridge,
        "bottleneck": bottleneck,
        "limiting_factor": factor,
        "target_metric": target_metric(whole, roof, bottleneck),
    }


def _check_request(target: Target, shape: str, flops: float, floor_bytes: float) -> None:
    if target.shapes.find(shape) is None:
        raise ProfileError(f"target {target.name} has no shape '{shape}'{nearest(shape, target.shapes.names())}")
    if not (math.isfinite(flops) and flops >= 0 and math.isfinite(floor_bytes) and floor_bytes > 0):
        raise ConfigError(
            f"target {target.name} costs {flops!r} FLOPs and {floor_bytes!r} bytes at shape {shape}; mend flops and "
            f"bytes_moved in {target.module}"
        )


def _choose(table: LaunchTable, kernels: str | None, file: str) -> tuple[KernelLaunch, ...]:
    """The launches whose names the regex finds, or all."""
    if kernels is None:
        return table.launches
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a regex that a later Python may read otherwise is still the user's
            pattern = re.compile(kernels)
    except (re.error, RecursionError, OverflowError) as error:
        raise ProfileError(f"kernels='{kernels}' is not a regular expression ({error}); escape its brackets") from error
    chosen = tuple(launch for launch in table.launches if pattern.search(launch.name))
    if not chosen:
        names = list(dict.fromkeys(short_name(launch.name) for launch in table.launches))
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        raise ProfileError(
            f"{file} has no launch that matches kernels='{kernels}'; its kernels are "
            f"{', '.join(names[:NAMES_SHOWN])}{more}"
        )
    return chosen


def _check_device(chosen: Sequence[KernelLaunch], hardware: Hardware, file: str) -> None:
    """Refuse launches that ran on another GPU than the hardware says, as far as the file tells."""
    meant = set(_MODEL.findall(hardware.title))
    for launch in chosen:
        match = _CAPABILITY.fullmatch(launch.capability.strip())
        if match is not None and int(match[1]) * 10 + int(match[2]) != hardware.compute_capability:
            major, minor = divmod(hardware.compute_capability, 10)
            raise ProfileError(
                f"{file}:{launch.line}: was taken on compute capability {match[1]}.{match[2]}, but hardware "
                f"{hardware.name} has {major}.{minor}; name the hardware it was taken on"
            )
        seen = set(_MODEL.findall(launch.device))
        if seen and meant and not seen & meant:
            raise ProfileError(
                f"{file}:{launch.line}: was taken on {launch.device}, but hardware {hardware.name} is {hardware.title}"
                "; name the hardware it was taken on"
            )
