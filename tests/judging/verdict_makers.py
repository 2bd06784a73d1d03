"""A log with generations and verdicts as the judge appends them, their figures in the benchmark's own form. No GPU."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernelgen.catalog import read_yaml
from kernelgen.config import Policy
from kernelgen.constraints.store import ConstraintBook, ConstraintFile, reconcile
from kernelgen.door.compose import catalog
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CandidateGenerated, GenerationRequested, VerdictReached
from kernelgen.generation import region
from kernelgen.generation.region import ConstraintRows
from kernelgen.ids import canonical_json, digest_text
from kernelgen.judging.judge import figures, noun, speedup
from kernelgen.judging.learn import Learned, catch_up, learn
from kernelgen.judging.lessons import Regions, champion_now
from kernelgen.judging.promotion import Promotion, promote
from kernelgen.judging.retract import Retracted, retract
from kernelgen.ladder.benchmark import judgement
from kernelgen.ladder.benchmark.bench import Pair, Shape
from kernelgen.ladder.benchmark.terms import Ceilings, Recipe, Terms3, recipe_id
from kernelgen.ladder.decide import decide
from kernelgen.ladder.results import Fault, Result
from kernelgen.records import Champion, Verdict, to_text
from tests.factories import profile

ROOT = Path(__file__).resolve().parents[2]
TARGET, HARDWARE = "mla_decode_fp8", "h200"
ENVIRONMENT = {"triton": "3.6.0", "torch": "2.11.0", "gpu": "NVIDIA H200"}
CEILINGS = Ceilings(4.3e12, 1.5e15, 4.8e12, 1.979e15)
TIMES_US = 200.0
HELD_OUT_SECRET = "s5000"
"""Begins names of the target's held-out shapes, which no prompt may tell."""


def policy(**changes: Any) -> Policy:
    return Policy.model_validate({**read_yaml(ROOT / "conf" / "policy" / "default.yaml"), **changes})


def kernel(name: str = "one", *, tiles: tuple[int, ...] = (64,), warps: int = 4, entry: str = TARGET) -> str:
    """A Triton source with its table; not one that computes the target."""
    rows = "".join(
        f"        triton.Config({{'BLOCK_N': {tile}}}, num_warps={warps}, num_stages=3),\n" for tile in tiles
    )
    return (
        "import triton\n\n"
        f"AUTOTUNE_CONFIGS: dict[str, list[triton.Config]] = {{\n    '{name}_kernel': [\n{rows}    ],\n}}\n"
        "import torch\nimport triton\nimport triton.language as tl\n\n\n"
        f'@triton.autotune(configs=AUTOTUNE_CONFIGS["{name}_kernel"], key=["n"])\n@triton.jit\n'
        f"def {name}_kernel(x, out, n, BLOCK_N: tl.constexpr):\n"
        "    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)\n"
        "    tl.store(out + cols, tl.load(x + cols, mask=cols < n), mask=cols < n)\n\n\n"
        f"def {entry}(q, kv_pages, block_table, seqlens, sm_scale):\n"
        f"    {name}_kernel[lambda meta: (triton.cdiv(q.numel(), meta['BLOCK_N']),)](q, q, q.numel())\n"
        "    return q, q\n"
    )


def measured(level: str, shapes: dict[str, dict[str, int]], ratios: dict[str, float] | float, **options: Any) -> Result:
    """A measurement at shapes, its figures made by the benchmark's own functions; `ratios` above 1 are faster."""
    terms, recipe = Terms3(pairs=10), Recipe()
    found = []
    for name, dims in shapes.items():
        ratio = ratios if isinstance(ratios, float) else ratios.get(name, 1.0)
        shape = Shape(name, dims, calls=1, rounds=1, launch_s=2e-6)
        if options.get("chosen"):
            shape.chosen["candidate"] = options["chosen"](name)
        pairs = []
        for number in range(terms.pairs):
            noise = 1 + 0.002 * (number % 3 - 1)
            walls = {"candidate": TIMES_US / ratio * noise, "champion": TIMES_US, "blank": 10.0}
            seconds = {role: 1e-6 * (us + (10.0 if role != "blank" else 0.0)) for role, us in walls.items()}
            pairs.append(Pair(seconds, seconds))  # type: ignore[arg-type]
        found.append(judgement.measured(shape, pairs, terms.confidence, 1e8, 1e9))
    over_all, reason, fault = judgement.verdict(found, terms)
    details = {
        "seed": 1,
        "device": "cuda",
        "recipe": {
            "id": recipe_id(recipe, terms),
            "mode": "graph",
            "terms": {**asdict(terms), "recipe": asdict(recipe)},
        },
        "shapes": {one.shape.name: judgement.figures(one, CEILINGS) for one in found},
        "geometric_mean": over_all.as_dict(),
    }
    environment = {**ENVIRONMENT, **options.get("environment", {})}
    refused = fault is not None and level == "L3"
    faults = (fault,) if fault is not None and refused else ()
    outcome = "failed" if refused else "passed"
    return Result(level, outcome, faults[0].reason if faults else reason, faults, (), details, environment)  # type: ignore[arg-type]


class Bench:
    """A log and a constraint file in a folder, and what is done with them."""

    def __init__(self, folder: Path, log: EventLog, target: str = TARGET) -> None:
        self.log, self.file, self.policy = log, folder / "constraints.jsonl", policy()
        self.regions = Regions.of(catalog([]))
        found = self.regions.target(target)
        assert found is not None
        self.target = found

    def generation(self, id: str, *, state: int = 1, hypothesis: str = "Fewer bytes. Much fewer.", **texts: str) -> str:
        """Append a generation's request and candidate; its id."""
        about = to_text(profile(target=self.target.name, shape=self.target.profile_shape))
        ask = {"profile": about, **texts}
        of = {"iteration_id": id, "target": self.target.name, "hardware": HARDWARE, "state": state, "out": "/x"}
        digest = digest_text("{}")
        asked = GenerationRequested.model_validate(
            {
                **of, "chosen_by": "vector", "lm": "playbook", "program_name": "default", "config": digest,
                "overrides": (), "constraint_set": digest, "selection": digest, "program": digest, "messages": digest,
                "ask": {name: digest_text(text) for name, text in ask.items()}, "model": "playbook",
                "parameters": "{}", "versions": "{}",
            }
        )  # fmt: skip
        generated = CandidateGenerated.model_validate(
            {**of, "attempt": 1, "hypothesis": hypothesis, "configs": "{}", "honoured": (), "overridden": (),
             "left_out": 0, "files": {}}
        )  # fmt: skip
        self.log.append_all([(asked, ["{}", *ask.values()]), (generated, [])])
        return id

    def now(self) -> Champion:
        found = champion_now(self.log, self.target.name, HARDWARE, self.regions)
        assert found is not None
        return found

    def verdict(
        self,
        id: str,
        ratio: dict[str, float] | float,
        *,
        source: str = "",
        held_out: dict[str, float] | float | None = None,
        rival: Champion | None = None,
        state: int | None = 1,
        l2: str = "passed",
        suspect: str = "",
        **options: Any,
    ) -> Row:
        """Append a verdict up to L4, where L3 lets it; figures by `ratio`, at held-out shapes `held_out`."""
        rival = rival or self.now()
        beaten = {"id": rival.id, "digest": digest_text(rival.source)}
        results = [Result("L0", "passed", "parsed"), Result("L1", "inconclusive", "no compiler here")]
        results.append(Result("L2", l2, "right"))  # type: ignore[arg-type]
        tune, kept_back = self.target.shapes.tune, self.target.shapes.heldout
        first = measured("L3", tune, ratio, **options)
        if suspect:
            fault = Fault(suspect, "in doubt")
            first = Result("L3", "suspect", "in doubt", (fault, *first.faults), (), first.details, first.environment)
        results.append(first)
        if first.outcome == "passed":
            ratio = ratio if held_out is None else held_out
            second = measured("L4", kept_back, ratio, environment=options.get("environment", {}))
            results.append(decide(second, minimum_effect=0.01, largest_loss=0.02))
        for result in results[3:]:
            result.details["champion"] = beaten
        return self.append(id, results, source or kernel(id.replace("-", "_")), state)

    def append(self, id: str, results: list[Result], source: str, state: int | None) -> Row:
        verdict = Verdict(iteration_id=id, levels=tuple(map(noun, results)), speedup=speedup(results))
        texts = figures(results)
        event = VerdictReached(
            iteration_id=id,
            target=self.target.name,
            hardware=HARDWARE,
            state=state,
            verdict=verdict,
            highest=verdict.highest(),
            origin="file" if state is None else "generated",
            source=digest_text(source),
            details={level: digest_text(text) for level, text in texts.items()},
            machine=canonical_json(ENVIRONMENT),
        )
        return self.log.append(event, [source, *texts.values()])

    def promoted(self, id: str, ratio: float = 1.3, **options: Any) -> Row:
        """A generation judged, promoted and learned from; its verdict."""
        self.generation(id)
        row = self.verdict(id, ratio, **options)
        self.promote(row)
        assert self.now().id == id
        return row

    def promote(self, row: Row) -> Promotion | None:
        return promote(row, log=self.log, constraints=self.file, policy=self.policy, regions=self.regions)

    def learn(self, row: Row) -> list[Learned]:
        return learn(row, log=self.log, constraints=self.file, policy=self.policy, regions=self.regions)

    def catch_up(self) -> list[Learned]:
        return catch_up(self.log, constraints=self.file, policy=self.policy, regions=self.regions)

    def retract(self, told: str, why: str = "it reads past the end") -> Retracted:
        return retract(told, why, log=self.log, constraints=self.file, policy=self.policy, regions=self.regions)

    def book(self) -> ConstraintBook:
        return reconcile(ConstraintFile(self.file), ConstraintRows(self.log))

    def active(self) -> list[str]:
        return [constraint.id for constraint in self.book().active]

    def position(self, **changes: Any) -> Any:
        return region.position(self.log, self.target.name, HARDWARE, policy(**changes), None)
