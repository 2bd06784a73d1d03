"""The nouns that pass between the parts: frozen, typed, and each able to name its digest.

Config nouns (target, hardware, approach, policy) are in `kernelgen.config`. A figure nobody measured is None here and
reads "not measured" wherever a person or a model sees it.
"""

from kernelgen.records.asks import (
    Answer,
    Ask,
    AutotuneConfig,
    CandidateFile,
    Demonstration,
    HardwareBrief,
    KernelSource,
    Override,
    Part,
    Parts,
    Program,
    PullRequest,
    Reply,
    TargetBrief,
    Usage,
)
from kernelgen.records.base import Bottleneck, Digest, Id, Language, Level, digest, to_text
from kernelgen.records.constraints import Constraint, Evidence, Retraction, Scope, SelectedConstraint, Selection
from kernelgen.records.profiles import Launch, LimitingFactor, Profile
from kernelgen.records.regions import Attempt, Champion, Measured, Position
from kernelgen.records.verdicts import Finding, LevelResult, Verdict

__all__ = [
    "Answer",
    "Ask",
    "Attempt",
    "AutotuneConfig",
    "Bottleneck",
    "CandidateFile",
    "Champion",
    "Constraint",
    "Demonstration",
    "Digest",
    "Evidence",
    "Finding",
    "HardwareBrief",
    "Id",
    "KernelSource",
    "Language",
    "Launch",
    "Level",
    "LevelResult",
    "LimitingFactor",
    "Measured",
    "Override",
    "Part",
    "Parts",
    "Position",
    "Profile",
    "Program",
    "PullRequest",
    "Reply",
    "Retraction",
    "Scope",
    "SelectedConstraint",
    "Selection",
    "TargetBrief",
    "Usage",
    "Verdict",
    "digest",
    "to_text",
]
