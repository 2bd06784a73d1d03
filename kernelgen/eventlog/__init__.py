"""The event log: an append-only, hash-chained SQLite database, and the locks of running generations."""

from kernelgen.eventlog.adopt import adopt
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.runs import RunLock, abandoned
from kernelgen.eventlog.store import EventLog
from kernelgen.eventlog.verify import Verification

__all__ = ["EventLog", "Row", "RunLock", "Verification", "abandoned", "adopt"]
