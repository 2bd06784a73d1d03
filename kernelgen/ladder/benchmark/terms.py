"""What a measuring is made by: the policy's terms, the recipe's parameters, and a GPU's ceilings. Plain data.

Two figures may be compared where their recipe ids are the same: the id covers every parameter and the code itself.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelgen.errors import BadInput

MIB = 1 << 20
LEAST_PAIRS = 3


@dataclass(frozen=True)
class Ceilings:
    """What a GPU can do."""

    bytes_per_s: float
    """Measured rate of memory."""
    flops_per_s: float
    """Measured rate of the products that the target's fastest honest kernel is made of."""
    peak_bytes_per_s: float
    """The vendor's rate of memory: less time than that takes is impossible."""
    peak_flops_per_s: float
    """The vendor's highest dense rate of any product the target may be computed with."""

    def floor_us(self, moved: float, flops: float) -> float:
        """Least time by the measured rates; honest kernels may pass it a little."""
        return 1e6 * max(moved / self.bytes_per_s, flops / self.flops_per_s)

    def impossible_us(self, moved: float, flops: float) -> float:
        """Less time than this is impossible."""
        return 1e6 * max(moved / self.peak_bytes_per_s, flops / self.peak_flops_per_s)


@dataclass(frozen=True)
class Recipe:
    """How calls are timed. A block is some rounds of calls, asked for and waited for as one."""

    calls: int = 32
    """Calls of a round at most, each on other contents: one CUDA graph."""
    answer_bytes: int = 4096 * MIB
    """Memory for the answers of a round at most; fewer calls where they need more."""
    flush_bytes: int = 192 * MIB
    """Read before each call to empty the L2 cache; 0 for no flush."""
    call_s: float = 0.01
    """Seconds that the calls of a block take together at least: the clock is out by some 20 us a block."""
    block_s: float = 0.2
    """Seconds that a block may take, flushes included, where that leaves two rounds."""
    rounds: int = 2
    """Rounds of a block at least."""
    far: float = 3.0
    """A candidate that takes so many times the champion's time in its first block is measured briefly: it is slower."""
    far_pairs: int = 5
    """Pairs for such a one, of the least rounds."""
    renewal_s: float = 4.0
    """Seconds a shape for making sets of inputs and their right answers; one set a pair where that suffices."""
    sets: int = 3
    """Sets of inputs a shape at least."""
    probes: int = 3
    """Blocks a shape on contents that do not change, to see whether results are remembered."""
    remembered: float = 0.6
    """A call on unchanged contents in less than this part of the usual time comes from memory."""
    overlap: float = 1.25
    """A call that takes more than this times its usual time where no flush precedes it ran beside the flush."""
    overlap_s: float = 2e-6
    """Seconds by which it may be longer in any case: without a flush a launch is not prepared meanwhile."""
    clock_share: float = 0.03
    """Part of a block's time by which the events in the process may differ from the judge's clock."""
    clock_s: float = 3e-4
    """Seconds by which they may differ in any case."""
    settle_s: float = 0.15
    """Seconds to wait for work that is still under way after an answer."""
    disturbed: float = 0.1
    """Spread of the blocks without a call, as a part of them, above which the machine was not quiet."""
    decides: bool = True
    """Whether times decide; without, nothing but cheating and faults is looked for."""


CPU_RECIPE = Recipe(calls=2, flush_bytes=0, call_s=0.0, rounds=1, decides=False)
"""Through the interpreter: few plain calls, nothing to flush, and a clock that means nothing."""


@dataclass(frozen=True)
class Terms3:
    """What the policy says of L3."""

    pairs: int = 30
    """Pairs of blocks a shape, candidate and champion: fixed beforehand."""
    minimum_effect: float = 0.01
    """A smaller difference is none."""
    confidence: float = 0.99
    """Of the interval of a ratio."""
    shape_s: float = 60.0
    """Seconds for each side at a shape: import or compile, first call and all blocks."""
    recipe: Recipe | None = None
    """How calls are timed; None for the default of the device."""

    def recipe_on(self, device: str) -> Recipe:
        """The recipe on a device."""
        return self.recipe or (CPU_RECIPE if device == "cpu" else Recipe())

    def check(self) -> None:
        """Raise BadInput where these terms cannot be kept."""
        if self.pairs < LEAST_PAIRS:
            raise BadInput(f"A benchmark of {self.pairs} pairs has no interval; take at least {LEAST_PAIRS}.")
        if not 0.5 <= self.confidence < 1.0:
            raise BadInput(f"A confidence of {self.confidence:g} makes no interval; take 0.99.")
        if not 0.0 <= self.minimum_effect < 1.0:
            raise BadInput(f"A least effect of {self.minimum_effect:g} makes no sense; take 0.01.")


def recipe_id(recipe: Recipe, terms: Terms3, **beside: str) -> str:
    """Digest of every parameter, of what else decides how calls are timed, and of this package's source."""
    source = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        source.update(file.name.encode() + b"\0" + file.read_bytes())
    parameters = {**asdict(terms), "recipe": asdict(recipe), **beside, "source": source.hexdigest()}
    text = json.dumps(parameters, sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
