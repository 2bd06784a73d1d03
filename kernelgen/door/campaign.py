"""`kernelgen campaign`: generate, judge, learn and promote until the budget, the floor or exhaustion."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from kernelgen import lm
from kernelgen.campaign import drive
from kernelgen.campaign.ends import End, events_of
from kernelgen.campaign.profiling import Place, Refresher, gpu_is_here
from kernelgen.campaign.recorded import Recorded
from kernelgen.campaign.settings import (
    DEFAULT_ITERATIONS,
    DEFAULT_ROUND,
    Campaign,
    Gpu,
    Settings,
    campaigns,
    meant,
    new_campaign_id,
    start,
)
from kernelgen.campaign.summary import summarize
from kernelgen.campaign.view import read_view
from kernelgen.config import AutoTarget, Target
from kernelgen.door.arguments import PLACES, Arguments, Grammar, parse, whole_number
from kernelgen.door.campaign_lines import header, tell, tell_summary
from kernelgen.door.console import complain, emit
from kernelgen.door.judge import CLOCKS, one_of
from kernelgen.door.regions import choice, open_to_look, region_of
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.generation.inputs import read_text
from kernelgen.generation.prepare import prepare
from kernelgen.generation.workspace import Resolved
from kernelgen.judging.levels import level_named
from kernelgen.judging.session import session
from kernelgen.records import Level

ITERATIONS, MINUTES = "budget.iterations", "budget.minutes"
OF_THE_CONFIG = ("shape", "pr", "parts")
"""Keys of a generation's config that are no group."""
KEYS = (ITERATIONS, MINUTES, "gpu", "round", "seed", "learned", "judge", "clock", "verdicts", *OF_THE_CONFIG)
GROUPS = ("target", "hardware", "state", "lm", "policy", "program")
GRAMMAR = Grammar(
    nouns=("run", "show", "end"),
    default_noun="run",
    keys=KEYS,
    groups=GROUPS,
    flags=("--again",),
    values=("--why",),
    only={
        **dict.fromkeys((*KEYS, "--again", "state", "lm", "policy", "program"), ("run",)),
        "--why": ("end",),
    },
)
EXAMPLE = "kernelgen campaign target=mla_decode_fp8 budget.iterations=12"
END_EXAMPLE = "kernelgen campaign end target=mla_decode_fp8 --why 'the profile was wrong'"
SWITCH = {"on": True, "off": False}
HOME_LEVELS = ("L0", "L1", "L2")
"""How far a candidate can climb before a bundle takes it along."""


def run(argv: Sequence[str]) -> int:
    """Run one of the nouns."""
    arguments = parse(argv, GRAMMAR)
    verbs = {"run": _run, "show": _show, "end": _end}
    return verbs[str(arguments.noun)](arguments)


def _run(arguments: Arguments) -> int:
    arguments.no_words()
    resolved, target = _resolved(arguments)
    hardware, json = resolved.config.hardware.name, arguments.as_json
    recorded = _recorded(arguments)
    with EventLog.open(arguments.place("events")) as log, drive.alone(log.path, target.name, hardware):
        settings = _settings(arguments, _open_campaign(log, target.name, hardware))
        level = _level(arguments, settings.gpu)
        campaign = meant(log, target.name, hardware, settings, again="--again" in arguments.flags)
        if campaign is not None and campaign.ended is not None:
            complain(f"{campaign.id} is over ({campaign.ended.why}); --again begins another with the same settings.")
            tell_summary(summarize(log, campaign, target), as_json=json)
            return 0
        resolved = _for_campaign(resolved, settings)
        refresh = _refresher(resolved, target, settings)
        clock = CLOCKS[one_of(arguments, "clock", CLOCKS, "gpu")]
        place, policy = resolved.workspace, resolved.config.policy
        with session(
            log, place.constraints, resolved.catalog, policy, seed=settings.seed, clock=clock, learned=settings.learned
        ) as judging:
            if campaign is None:
                if refresh is not None and (sentence := refresh(log)) is not None:
                    complain(sentence)
                prepare(resolved, log)  # what would refuse the first request refuses the campaign
                campaign = start(log, new_campaign_id(), target.name, hardware, settings)
            emit(*header(campaign, resolved.config.lm.name), as_json=json)
            tools = drive.Tools(resolved, judging, level, place.out, clock, recorded, refresh)
            for said in drive.Driver(campaign, tools).drive():
                tell(said, campaign, _beside(arguments), as_json=json)
        now = next(one for one in campaigns(log, target.name, hardware) if one.id == campaign.id)
        if now.ended is not None:
            tell_summary(summarize(log, now, target), as_json=json)
    return 0


def _resolved(arguments: Arguments) -> tuple[Resolved, Target]:
    """The configs of every generation. Raises BadInput without a target, ConfigError for a key that is none."""
    from kernelgen.door import compose

    if choice(arguments_of_regions(arguments), "target") is None:
        raise BadInput(f"kernelgen campaign needs target=, as in `{EXAMPLE}`.")
    keys = arguments.keys
    shape = [f"shape={keys['shape']}"] if "shape" in keys else []
    found = compose.compose([*arguments.overrides, *shape], arguments.config_dirs)
    lm.check(found.config.lm)  # a config that holds a credential must not reach the log
    target = found.config.target
    if isinstance(target, AutoTarget):
        raise BadInput(f"kernelgen campaign needs one target, as in `{EXAMPLE}`; `kernelgen headroom` ranks them.")
    changes = {name: str(arguments.place(name)) for name in PLACES}
    files: dict[str, str] = {name: keys[name] for name in ("pr", "parts") if name in keys}
    config = found.config.model_copy(update={**changes, **files})
    said = (f"{name}={path}" for name, path in files.items())
    return replace(found, config=config, overrides=(*found.overrides, *said)), target


def arguments_of_regions(arguments: Arguments) -> Arguments:
    """The command line without keys inside a config group, which this command takes of every group."""
    return replace(arguments, overrides=[one for one in arguments.overrides if "." not in one.partition("=")[0]])


def _settings(arguments: Arguments, open_one: Campaign | None) -> Settings:
    """What the command asks for; where it leaves the GPU open, an open campaign's choice holds."""
    keys = arguments.keys
    iterations, minutes = _count(arguments, ITERATIONS), _minutes(arguments)
    if iterations is None and minutes is None:
        iterations = DEFAULT_ITERATIONS
    given = [one for one in arguments.overrides if one.partition("=")[0] not in ("target", "hardware")]
    given += [f"{name}={keys[name]}" for name in ("judge", "clock", *OF_THE_CONFIG) if name in keys]
    return Settings(
        gpu=_gpu(arguments, open_one),
        iterations=iterations,
        minutes=minutes,
        round_size=_count(arguments, "round") or DEFAULT_ROUND,
        seed=_number(arguments, "seed"),
        learned=SWITCH[one_of(arguments, "learned", SWITCH, "on")],
        overrides=tuple(sorted(given)),
    )


def _gpu(arguments: Arguments, open_one: Campaign | None) -> Gpu:
    given = one_of(arguments, "gpu", ("auto", *get_args(Gpu)), "auto")
    for gpu in get_args(Gpu):
        if given == gpu:
            return gpu  # type: ignore[no-any-return]
    if open_one is not None:
        return open_one.settings.gpu
    return "here" if gpu_is_here() else "bundle"


def _level(arguments: Arguments, gpu: Gpu) -> Level:
    """How far a candidate climbs here. Raises BadInput for one that no machine without a GPU tells."""
    level = level_named(arguments.keys.get("judge", "L4" if gpu == "here" else "L2"))
    if gpu == "bundle" and level not in HOME_LEVELS:
        raise BadInput(f"judge={level} needs the GPU: with gpu=bundle it is one of {', '.join(HOME_LEVELS)}.")
    return level


def _number(arguments: Arguments, key: str) -> int | None:
    given = arguments.keys.get(key)
    number = None if given is None else whole_number(given)
    if given is not None and number is None:
        raise BadInput(f"{key}={' '.join(given.split())} is not a number; write {key}=1.")
    return number


def _count(arguments: Arguments, key: str) -> int | None:
    number = _number(arguments, key)
    if number == 0:
        raise BadInput(f"{key}=0 leaves nothing to do; write {key}=1 or more.")
    return number


def _minutes(arguments: Arguments) -> float | None:
    given = arguments.keys.get(MINUTES)
    if given is None:
        return None
    try:
        minutes = float(given)
    except ValueError:
        minutes = math.nan
    if not (math.isfinite(minutes) and minutes > 0):
        raise BadInput(f"{MINUTES}={' '.join(given.split())} is not a time; write {MINUTES}=30.")
    return minutes


def _recorded(arguments: Arguments) -> Recorded | None:
    """The recorded verdicts, where a file of them is named."""
    given = arguments.keys.get("verdicts")
    if given is None:
        return None
    recorded = Recorded(read_text(Path(given), "file of verdicts").split("\n"))
    for sentence in recorded.unread:
        complain(f"{given}, {sentence}")
    return recorded


def _for_campaign(resolved: Resolved, settings: Settings) -> Resolved:
    """The configs with what the campaign sets of them."""
    if settings.learned:
        return resolved
    config = resolved.config.model_copy(update={"learned": False})
    return replace(resolved, config=config, overrides=(*resolved.overrides, "learned=false"))


def _refresher(resolved: Resolved, target: Target, settings: Settings) -> Callable[[EventLog], str | None] | None:
    """What takes profiles, where the GPU is here."""
    if settings.gpu != "here" or not gpu_is_here():
        return None
    folder = resolved.catalog.locate("target", target.name).folder
    return Refresher(Place(target, folder, resolved.config.hardware, resolved.config.shape or target.profile_shape))


def _beside(arguments: Arguments) -> list[str]:
    """What of this command `kernelgen ingest` must be given too."""
    places = [f"{name}={arguments.keys[name]}" for name in ("events", "constraints") if name in arguments.keys]
    policy = [one for one in arguments.overrides if one.lstrip("+~").split("=")[0].split(".")[0] == "policy"]
    return [*places, *policy, *(f"--config-dir={folder}" for folder in arguments.config_dirs)]


def _open_campaign(log: EventLog, target: str, hardware: str) -> Campaign | None:
    known = campaigns(log, target, hardware)
    return known[-1] if known and known[-1].ended is None else None


def _show(arguments: Arguments) -> int:
    """The summary of a campaign: the one named, or the latest of the region, or of all."""
    from kernelgen.door.compose import catalog

    with open_to_look(arguments.place("events")) as log:
        known = campaigns(log, choice(arguments, "target"), choice(arguments, "hardware"))
        if arguments.words:
            told = arguments.word("a campaign's ID", "kernelgen campaign show c2026")
            known = [one for one in known if one.id.startswith(told)]
        if not known:
            raise BadInput(f"The log has no such campaign; begin one: `{EXAMPLE}`.")
        campaign = known[-1]
        target, _ = catalog(arguments.config_dirs).target(campaign.target)
        tell_summary(summarize(log, campaign, target), as_json=arguments.as_json)
    return 0


def _end(arguments: Arguments) -> int:
    """End the region's open campaign."""
    arguments.no_words()
    region, why = region_of(arguments, END_EXAMPLE), arguments.flags.get("--why", "").strip()
    if not why:
        raise BadInput(f"kernelgen campaign end needs --why with the reason, as in `{END_EXAMPLE}`.")
    target, hardware = region.target, region.hardware.name
    with EventLog.open(arguments.place("events")) as log, drive.alone(log.path, target.name, hardware):
        campaign = _open_campaign(log, target.name, hardware)
        if campaign is None:
            raise BadInput(f"No campaign of {target.name} on {hardware} is open; nothing was changed.")
        log.append_all((event, ()) for event in events_of(read_view(log, campaign), End("stopped", why)))
        ended = next(one for one in campaigns(log, target.name, hardware) if one.id == campaign.id)
        tell_summary(summarize(log, ended, target), as_json=arguments.as_json)
    return 0
