"""`kernelgen profile`: import where the time goes, list and show what was imported, list the kernels of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelgen.door.arguments import Arguments, Grammar, parse
from kernelgen.door.console import bold, emit, good, table
from kernelgen.door.regions import choice, region_of
from kernelgen.errors import BadInput, nearest
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ProfileImported
from kernelgen.generation import region as regions
from kernelgen.ids import digest_text
from kernelgen.profile.importer import import_profile
from kernelgen.profile.listing import list_kernels
from kernelgen.records import Profile, to_text
from kernelgen.targets.code import load_code

GRAMMAR = Grammar(
    nouns=("list", "import", "show", "kernels"),
    default_noun="list",
    keys=("shape", "kernels", "subject"),
    groups=("target", "hardware"),
    only={
        **dict.fromkeys(("shape", "kernels", "subject"), ("import",)),
        **dict.fromkeys(("target", "hardware"), ("list", "import", "show")),
    },
)
EXAMPLE = "kernelgen profile import p.csv target=mla_decode_fp8 shape=b64_s4096_h64"
LAUNCHES_SHOWN = 30


def run(argv: Sequence[str]) -> int:
    """Run one of the nouns."""
    arguments = parse(argv, GRAMMAR)
    verbs = {"list": _list, "import": _import, "show": _show, "kernels": _kernels}
    verbs[str(arguments.noun)](arguments)
    return 0


def _import(arguments: Arguments) -> None:
    path = Path(arguments.word("a profile file", EXAMPLE))
    region = region_of(arguments, EXAMPLE)
    shape = arguments.need("shape", EXAMPLE)
    target = region.target
    dims = target.shapes.find(shape)
    if dims is None:
        raise BadInput(f"{target.name} has no shape '{shape}'{nearest(shape, target.shapes.names())}")
    code = load_code(target.module, region.located.folder)
    with EventLog.open(arguments.place("events")) as log:
        champion = regions.champion(log, target, region.hardware.name, region.located.folder)
        profile, raw = import_profile(
            path,
            target=target,
            hardware=region.hardware,
            shape=shape,
            flops=code.flops(dims),
            floor_bytes=code.bytes_moved(dims),
            champion=champion,
            kernels=arguments.keys.get("kernels"),
            subject=arguments.keys.get("subject"),
        )
        text = to_text(profile)
        event = ProfileImported(
            target=target.name,
            hardware=region.hardware.name,
            shape=shape,
            profile=digest_text(text),
            raw=digest_text(raw),
        )
        log.append(event, [text, raw])
    summary = (
        f"{good('imported')} {profile.id}: {target.name} on {region.hardware.name} at {shape}\n{_summary(profile)}"
    )
    emit(profile.model_dump(mode="json"), summary, as_json=arguments.as_json)


def _summary(profile: Profile) -> str:
    dominant = profile.launches[profile.dominant]
    return "\n".join(
        [
            f"  profiled: {profile.subject} ({profile.format}, {profile.source_file})",
            f"  {len(profile.launches)} launches, {profile.time_us:.1f} us in all; floor {profile.floor_us:.1f} us "
            f"by {profile.floor_by}",
            f"  longest: {_short(dominant.name)}, {dominant.time_us:.1f} us",
            f"  bottleneck: {profile.bottleneck}; {profile.limiting_factor.sentence}",
            f"  target metric: {profile.target_metric}",
        ]
    )


def _short(name: str, most: int = 90) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _profiles(log: EventLog, arguments: Arguments) -> Iterator[Profile]:
    target, hardware = choice(arguments, "target"), choice(arguments, "hardware")
    for row in log.rows(kinds=("profile_imported",), target=target, hardware=hardware):
        assert isinstance(row.event, ProfileImported)
        yield Profile.model_validate_json(log.text(row.event.profile))


def _list(arguments: Arguments) -> None:
    arguments.no_words()
    with EventLog.read(arguments.place("events")) as log:
        found = list(_profiles(log, arguments))
    cells = [
        (
            p.id,
            p.target,
            p.hardware,
            p.shape,
            f"{p.time_us:.1f}",
            f"{p.floor_us:.1f}",
            p.bottleneck,
            _short(p.subject, 60),
        )
        for p in found
    ]
    header = ("id", "target", "hardware", "shape", "us", "floor us", "bottleneck", "profiled")
    text = table(header, cells) if cells else "no profiles; import one first"
    emit({"profiles": [p.model_dump(mode="json") for p in found]}, text, as_json=arguments.as_json)


def _kernels(arguments: Arguments) -> None:
    path = Path(arguments.word("a profile file", "kernelgen profile kernels trace.json"))
    found = list_kernels(path)
    rows = [
        (f"{row.time_us:.1f}", f"{row.share_percent:.1f}%", str(row.launches), _short(row.name))
        for row in found.kernels
    ]
    text = (
        f"{bold(found.format)}: {found.launches} launches of {len(rows)} kernels, {found.time_us:.1f} us in all\n\n"
        f"{table(('us', 'share', 'launches', 'kernel'), rows)}"
    )
    emit(found.model_dump(mode="json"), text, as_json=arguments.as_json)


def _show(arguments: Arguments) -> None:
    identity = arguments.word("a profile's ID", "kernelgen profile show p2026")
    with EventLog.read(arguments.place("events")) as log:
        found = [p for p in _profiles(log, arguments) if p.id.startswith(identity)]
    if len(found) != 1:
        problem = "no profile begins with" if not found else "several profiles begin with"
        raise BadInput(f"{problem.capitalize()} '{identity}'; `kernelgen profile list` names them.")
    profile = found[0]
    ranked = sorted(profile.launches, key=lambda launch: -launch.time_us)[:LAUNCHES_SHOWN]
    rows = [
        (f"{x.time_us:.1f}", "not measured" if x.dram_bytes is None else f"{x.dram_bytes / 1e6:.1f}", _short(x.name))
        for x in ranked
    ]
    text = f"{bold(profile.id)}\n{_summary(profile)}\n\n{table(('us', 'DRAM MB', 'kernel'), rows)}"
    emit(profile.model_dump(mode="json"), text, as_json=arguments.as_json)
