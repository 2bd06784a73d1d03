"""The names of what contains a process, and which of them must hold for a candidate to count as contained."""

from __future__ import annotations

from collections.abc import Mapping

HOLDS = "holds"

USER = "user namespace"
NETWORK = "network namespace"
IPC = "ipc namespace"
PID = "pid namespace"
PID_LIMIT = "limit of the pid namespace"
VIEW = "private view of files"
LANDLOCK = "landlock"
LANDLOCK_TCP = "landlock: tcp"
LANDLOCK_SCOPE = "landlock: signals"
SECCOMP = "seccomp"
NOTES = "seccomp: notes attempts"
RLIMITS = "rlimits"
BUBBLEWRAP = "bubblewrap"

# what is promised, and each set of mechanisms that keeps it alone
PROMISES: dict[str, tuple[tuple[str, ...], ...]] = {
    "no network": ((SECCOMP,), (NETWORK, VIEW)),
    "no writes outside its folder": ((VIEW,), (LANDLOCK, SECCOMP)),
    "no reads of home, log and reference": ((VIEW,), (LANDLOCK,)),
    "no signals to other processes": ((PID,), (LANDLOCK_SCOPE,), (SECCOMP,)),
    "bounded resources": ((RLIMITS,),),
}


def broken(record: Mapping[str, str]) -> list[str]:
    """Each promise that is not kept, with why: `no network (seccomp: Operation not permitted)`."""
    sentences = []
    for promise, ways in PROMISES.items():
        if not any(all(holds(record, name) for name in way) for way in ways):
            lacking = sorted({name for way in ways for name in way if not holds(record, name)})
            why = "; ".join(f"{name}: {record.get(name, 'not tried')}" for name in lacking)
            sentences.append(f"{promise} ({why})")
    return sentences


def holds(record: Mapping[str, str], name: str) -> bool:
    """Whether a mechanism holds."""
    return record.get(name) == HOLDS


def summary(record: Mapping[str, str]) -> str:
    """What contains a process, in one line: `user, network, ipc, pid namespaces; landlock; seccomp; rlimits`."""
    spaces = [name.removesuffix(" namespace") for name in (USER, NETWORK, IPC, PID) if holds(record, name)]
    others = [name for name in (VIEW, LANDLOCK, SECCOMP, RLIMITS) if holds(record, name)]
    return "; ".join(([", ".join(spaces) + " namespaces"] if spaces else []) + others)
