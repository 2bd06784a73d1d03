"""D7, round the task: a header that lies, of a candidate that kernelgen itself wrote and somebody changed.

L0 refuses each by what the generation logged: ids that were not injected, another state or target, a hypothesis that is
not the reply's, another kernel below it. The twin is the file as it was written. Who believes headers believes these.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelgen.candidates import read_back, read_header
from kernelgen.ids import digest_text
from kernelgen.judging.header import HeaderFacts

TWIN = (Path(__file__).parents[1] / "golden" / "candidate_py.txt").read_text(encoding="utf-8")
"""A candidate file as kernelgen writes it."""
LOGGED = (
    *("candidate", "target", "state", "state chosen by", "dsl", "entry point", "hypothesis", "prompt", "reply"),
    *("constraints honoured", "constraints left out", "constraints applied"),
)


@dataclass(frozen=True)
class FalseHeader:
    """One lie in a header."""

    face: str
    """Which, in a few words."""
    key: str
    """Line of the header that lies."""
    truth: str
    """What the file said."""
    lie: str
    """What it says now."""
    check: str
    """Id of the check that must refuse it."""

    @property
    def name(self) -> str:
        """Id and face as one word, for tests and tables."""
        return f"D7-{'-'.join(self.face.split())}"

    @property
    def cheat(self) -> str:
        """The file that lies."""
        assert self.truth in TWIN, self.truth
        return TWIN.replace(self.truth, self.lie, 1)


def facts() -> HeaderFacts:
    """What the generation of the twin logged."""
    said = read_header(TWIN)
    ids = tuple(line.partition(":")[0] for line in said["overrides"])
    return HeaderFacts({key: said[key] for key in LOGGED}, ids, digest_text(read_back(TWIN).kernel.code))


HONOURED = "# constraints honoured:\n#   h200_shared_bytes_per_block\n"
CHEATS = (
    FalseHeader(
        "id not injected",
        "constraints honoured",
        HONOURED,
        f"{HONOURED}#   c_never_injected\n",
        "header.constraints_honoured",
    ),
    FalseHeader("other state", "state", "# state: 1\n", "# state: 5\n", "header.state"),
    FalseHeader(
        "other target", "target", "# target: moe_dispatch_384expert\n", "# target: moe_combine\n", "header.target"
    ),
    FalseHeader(
        "fused that was not said",
        "hypothesis",
        "one fused launch removes",
        "one fused kernel halves",
        "header.hypothesis",
    ),
    FalseHeader(
        "constraint dropped",
        "constraints applied",
        "#   soft c_num_warps_16: num_warps of 16 was slower.\n",
        "",
        "header.constraints_applied",
    ),
    FalseHeader("override invented", "overrides", "#   c_num_warps_16: The", "#   c_other: The", "header.overrides"),
    FalseHeader("other kernel", "hypothesis", '"BLOCK_H": 1024', '"BLOCK_H": 2048', "header.model_part"),
)
