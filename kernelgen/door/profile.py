"""`kernelgen profile`: take a profile or import one, list and show what was imported, list the kernels of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgen import champions
from kernelgen.door.arguments import Arguments, Grammar, parse
from kernelgen.door.console import bold, emit, good, table, warn
from kernelgen.door.regions import choice, hardware_of, region_of
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ProfileImported
from kernelgen.generation import region as regions
from kernelgen.profile.listing import list_kernels
from kernelgen.records import Profile

if TYPE_CHECKING:
    from kernelgen.campaign.profiling import Kernel, Place
    from kernelgen.catalog import Catalog

GRAMMAR = Grammar(
    nouns=("list", "import", "run", "show", "kernels"),
    default_noun="list",
    keys=("shape", "kernels", "subject", "what", "counters", "to"),
    groups=("target", "hardware"),
    only={
        "shape": ("import", "run"),
        **dict.fromkeys(("kernels", "subject"), ("import",)),
        **dict.fromkeys(("what", "counters", "to"), ("run",)),
        **dict.fromkeys(("target", "hardware"), ("list", "import", "run", "show")),
    },
)
EXAMPLE = "kernelgen profile import p.csv target=mla_decode_fp8 shape=b64_s4096_h64"
RUN_EXAMPLE = "kernelgen profile run mla_decode_fp8 shape=b64_s4096_h64"
LAUNCHES_SHOWN = 30
CHAMPION = "champion"
SWITCH = {"on": True, "off": False}


def run(argv: Sequence[str]) -> int:
    """Run one of the nouns."""
    arguments = parse(argv, GRAMMAR)
    verbs = {"list": _list, "import": _import, "run": _run, "show": _show, "kernels": _kernels}
    verbs[str(arguments.noun)](arguments)
    return 0


def _import(arguments: Arguments) -> None:
    from kernelgen.campaign.profiling import Place, import_file

    path = Path(arguments.word("a profile file", EXAMPLE))
    region = region_of(arguments, EXAMPLE)
    shape = arguments.need("shape", EXAMPLE)
    place = Place(region.target, region.located.folder, region.hardware, shape)
    place.dims()
    with EventLog.open(arguments.place("events")) as log:
        profile = import_file(
            path, place, log, kernels=arguments.keys.get("kernels"), subject=arguments.keys.get("subject")
        )
    emit(profile.model_dump(mode="json"), f"{good('imported')} {_headed(profile)}", as_json=arguments.as_json)


def _run(arguments: Arguments) -> None:
    """Take a profile on the GPU here: of the champion, or of what `what=` names."""
    from kernelgen.campaign import profiling
    from kernelgen.door.judge import one_of

    name = choice(arguments, "target") or arguments.word("a target", RUN_EXAMPLE)
    hardware, catalog = hardware_of(arguments)
    target, located = catalog.target(name)
    place = profiling.Place(target, located.folder, hardware, arguments.keys.get("shape", target.profile_shape))
    place.dims()
    counters = SWITCH[one_of(arguments, "counters", SWITCH, "on")]
    keep = Path(arguments.keys["to"]).absolute() if "to" in arguments.keys else None
    profiling.check_gpu()
    with EventLog.open(arguments.place("events")) as log:
        kernel = _kernel(arguments.keys.get("what", CHAMPION), place, log, catalog)
        made = profiling.record(kernel, place, log, counters=counters, keep=keep)
    lines = [f"{good('profiled')} {_headed(profile)}\n\n{_shares(profile)}\n" for profile in made.profiles]
    lines += [*(warn(note) for note in made.notes), *(f"kept {path}" for path in made.files)]
    record = {
        "profiles": [profile.model_dump(mode="json") for profile in made.profiles],
        "notes": list(made.notes),
        "files": [str(path) for path in made.files],
    }
    emit(record, "\n".join(lines), as_json=arguments.as_json)


def _kernel(what: str, place: Place, log: EventLog, catalog: Catalog) -> Kernel:
    """The champion, the naive one, or the candidate named."""
    from kernelgen.campaign import profiling
    from kernelgen.judging import subjects
    from kernelgen.judging.jobs import Rivals

    target, hardware = place.target, place.hardware
    if what == CHAMPION:
        return profiling.of_champion(regions.champion(log, target, hardware.name, place.folder))
    if what == champions.NAIVE:
        naive = Rivals(log, catalog).naive(target.name, hardware.name)
        now = regions.champion(log, target, hardware.name, place.folder)
        kernel = profiling.of_champion(naive)
        return kernel if now.id == naive.id else replace(kernel, subject="the naive champion")
    judged = subjects.find(what, subjects.Place(log, catalog, hardware, target.name))
    if judged.target.name != target.name:
        raise BadInput(f"{what} computes {judged.target.name}, not {target.name}.")
    return profiling.of_candidate(judged, log)


def _shares(profile: Profile) -> str:
    """Kernels by their share of the time, launches of one name together."""
    spent: dict[str, list[float]] = {}
    for launch in profile.launches:
        spent.setdefault(launch.name, []).append(launch.time_us)
    ranked = sorted(spent.items(), key=lambda item: -sum(item[1]))[:LAUNCHES_SHOWN]
    rows = [
        (f"{sum(times):.1f}", f"{100 * sum(times) / profile.time_us:.1f}%", str(len(times)), _short(name))
        for name, times in ranked
    ]
    return table(("us", "share", "launches", "kernel"), rows)


def _headed(profile: Profile) -> str:
    return f"{profile.id}: {profile.target} on {profile.hardware} at {profile.shape}\n{_summary(profile)}"


def _summary(profile: Profile) -> str:
    dominant = profile.launches[profile.dominant]
    return "\n".join(
        [
            f"  profiled: {profile.subject} ({profile.format}, {profile.source_file})",
            f"  {len(profile.launches)} launches, {profile.time_us:.1f} us in all; floor {profile.floor_us:.1f} us "
            f"by {profile.floor_by}",
            f"  longest: {_short(dominant.name)}, {dominant.time_us:.1f} us",
            f"  DRAM {_percent(profile.dram_percent)}, SM {_percent(profile.sm_percent)}, occupancy "
            f"{_percent(profile.occupancy_percent)}",
            f"  bottleneck: {profile.bottleneck}; {profile.limiting_factor.sentence}",
            f"  target metric: {profile.target_metric}",
        ]
    )


def _percent(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.0f}%"


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
