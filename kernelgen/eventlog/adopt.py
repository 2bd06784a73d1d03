"""Accepting a log as it stands, after its head or its guards were lost.

For a log copied without its head, restored from an older copy, or rewritten by a tool that dropped the triggers: the
guards are made anew and the head is set to the last event. Only a log whose chain and texts are whole is accepted;
events that were cut off stay lost, and nothing in the log tells of them afterwards.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from kernelgen.errors import LogError
from kernelgen.eventlog.chain import START
from kernelgen.eventlog.connection import sentences
from kernelgen.eventlog.migrations import restore_guards
from kernelgen.eventlog.opening import open_for_writing, tail
from kernelgen.eventlog.verify import Verification, inspect


def adopt(path: Path) -> Verification:
    """Restore guards and head of the log at `path`. LogError when its chain or its texts are not whole."""
    db, head = open_for_writing(path, create=False, trusted=True)
    with sentences(path), closing(head), closing(db), head.locked():
        restore_guards(db)
        found = inspect(db, START)
        if not found.ok:
            more = len(found.problems) - 1
            raise LogError(f"{path} cannot be accepted, put back a copy: {found.problems[0]} ({more} more problems)")
        head.write(tail(db))
    return found
