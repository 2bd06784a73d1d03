"""Other people's candidates: a KernelBench-style solution judged against the problem file that it claims to solve.

The problem becomes a target of this process alone, of its own shapes, whose inputs are get_inputs' and the Model's
parameters; the solution is judged whole, with the judge's lines around it. No header is asked for. What a level does
otherwise for a problem says `problem_levels`. Imports torch only when called.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from kernelgen import python_source
from kernelgen.config import Dsl, Hardware, ScalarSpec, ShapeSets, Target, TensorSpec, Tolerance
from kernelgen.errors import BadInput
from kernelgen.generation.inputs import read_text
from kernelgen.ids import digest_text, new_id
from kernelgen.judging.subjects import FILE_PREFIX, Judged, goal
from kernelgen.ladder.subject import Subject
from kernelgen.records import Level

if TYPE_CHECKING:
    from kernelgen.judging.levels import Terms
    from kernelgen.judging.problem_levels import Usual
    from kernelgen.ladder.problem_trial import Loaded
    from kernelgen.ladder.results import Result
    from kernelgen.ladder.solution import Solution

ENTRY_POINT = "judged_forward"
CALLS = "judged_calls"
CALL = "judged_call"
MODELS = ("ModelNew", "Model")
SHAPE = "given"


@dataclass(frozen=True, kw_only=True)
class JudgedSolution(Judged):
    """A solution, with what is known of its problem."""

    loaded: Loaded
    """The problem."""
    read: Solution | None
    """What the solution is made of; None where it does not parse."""
    problem_name: str
    """The problem file's stem."""

    @property
    def origin(self) -> Literal["generated", "file", "problem"]:
        """It solves a problem from outside: the verdict teaches nothing of this project's regions."""
        return "problem"

    def step(self, level: Level, terms: Terms, usual: Usual) -> Result:
        """A level, as it is for this problem and this kind of solution; `usual` is how it is for any candidate."""
        from kernelgen.judging.problem_levels import STEPS

        return STEPS[level](self, terms, usual)


def solution(path: Path, reference: Path, hardware: Hardware) -> JudgedSolution:
    """What to judge of a solution to a problem. Raises BadInput where a file or the problem cannot be used."""
    if path.suffix != ".py":
        raise BadInput(f"{path} is no Python file; a solution to {reference} is one with a class ModelNew.")
    text = read_text(path, "solution file")
    problem_text = read_text(reference, "problem file")
    loaded = _loaded(reference.resolve(), digest_text(problem_text))
    target = _target(loaded, reference)
    body, above, has_moved = _without_future(text)
    lines = f"\n\ndef {ENTRY_POINT}(**given):\n    return {CALL}({_model(text)}, given)\n"
    own_lines = _own_lines(loaded)
    subject = Subject(
        name=path.stem,
        language="python",
        dsl="triton",
        source=body.rstrip("\n") + "\n" + lines,
        preamble=above + own_lines,
        entry_point=ENTRY_POINT,
        goal=goal(target, hardware, target.module, None),
    )
    from kernelgen.ladder import solution as solutions

    read = solutions.read(subject, frozenset(loaded.work.unlisted))
    dsl: Dsl = read.dsl if read is not None and read.dsl in ("triton", "tilelang", "cuda") else "triton"  # type: ignore[assignment]
    notes = [f"judged against {reference}, on the problem's own shapes; the last 2 lines are the judge's"]
    notes += ["its line `from __future__ …` stands above the judge's lines"] if has_moved else []
    return JudgedSolution(
        iteration_id=new_id(FILE_PREFIX),
        told=str(path),
        target=target,
        hardware=hardware,
        state=None,
        subject=replace(subject, dsl=dsl),
        notes=(*notes, *loaded.notes, *_about_weights(loaded)),
        loaded=loaded,
        read=read,
        problem_name=reference.stem,
    )


@lru_cache(maxsize=8)
def _loaded(path: Path, digest: str) -> Loaded:
    """The problem of a file with this content, loaded once."""
    from kernelgen.ladder.problem_file import load

    loaded = load(path)
    problem = loaded.problem
    module = ModuleType(_module_name(digest))
    module.__file__ = str(path)
    for name in ("make_inputs", "reference", "compare", "flops", "bytes_moved"):
        setattr(module, name, getattr(problem, name))
    sys.modules[module.__name__] = module  # where a target's module is looked up by its name
    return loaded


def _module_name(digest: str) -> str:
    return f"kernelgen_problem_{digest.rpartition(':')[2][:16]}"


def _target(loaded: Loaded, path: Path) -> Target:
    """The problem as a target."""
    problem = loaded.problem
    name = "problem_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in path.stem)
    reason = "KernelBench's, as of its commit 0d12226, for the coarsest dtype of the problem; see docs"
    return Target(
        name=name,
        title=f"the problem {path.stem}",
        summary=f"What class Model of {path.name} computes.",
        entry_point=ENTRY_POINT,
        inputs=tuple(
            TensorSpec(name=n, dtype=d, shape=tuple(s), doc=_doc(problem.parameters.get(n)))
            for n, d, s in problem.inputs
        ),
        scalars=tuple(
            ScalarSpec(name=n, type=t, doc="A number that get_inputs gives.") for n, t in problem.scalars.items()
        ),
        outputs=tuple(
            TensorSpec(name=n, dtype=d, shape=tuple(s), doc="What forward returns.") for n, d, s in problem.outputs
        ),
        shapes=ShapeSets(smoke={SHAPE: {}}, tune={SHAPE: {}}, heldout={}),
        profile_shape=SHAPE,
        input_kinds=loaded.kinds,
        tolerance={n: Tolerance(rtol=r, atol=a, reason=reason) for n, (r, a) in loaded.tolerance.items()},
        calls_per_step=1,
        module=_module_name(digest_text(path.read_text(encoding="utf-8"))),
        champion=str(path),
    )


def _doc(parameter: str | None) -> str:
    return "What get_inputs gives." if parameter is None else f"The Model's {parameter}."


def _own_lines(loaded: Loaded) -> str:
    """The judge's lines above the solution: they make its model and call it."""
    from kernelgen.ladder import called_model
    from kernelgen.ladder.problem import SEED_INPUT
    from kernelgen.ladder.problem_file import literal
    from kernelgen.ladder.torch_work import FAMILIES

    problem, limits = loaded.problem, loaded.work.limits()
    init = literal(problem.init)
    if init is None:
        raise BadInput(f"{problem.path}: get_init_inputs gives what cannot be written down; it must give plain values.")
    order = [
        f"('input', {argument.name!r})" if argument.is_input else f"('value', {literal(argument.value)})"
        for argument in problem.arguments
    ]
    listed = FAMILIES | {family: frozenset({name}) for family, name in loaded.work.unlisted.items()}
    work = {family: " ".join(sorted(listed[family])) for family in limits}
    text = Path(called_model.__file__).read_text(encoding="utf-8")
    needs_torch = "torch." in init or any("torch." in part for part in order)
    given = f"init={init}, order=[{', '.join(order)}], parameters={problem.parameters!r}, seed={SEED_INPUT!r}"
    ends = f"{CALL} = {CALLS}({given}, work={work!r}, limits={limits!r})\n"
    return f"{text}\n\n" + ("import torch\n" if needs_torch else "") + ends


def _about_weights(loaded: Loaded) -> tuple[str, ...]:
    """How a solution comes by the Model's weights."""
    if not loaded.problem.parameters:
        return ()
    names = ", ".join(loaded.problem.parameters.values())
    return (f"ModelNew is given the Model's {names} by name; others keep what they drew under the Model's seed",)


def _model(text: str) -> str:
    """The class that the solution's model is."""
    try:
        tree = python_source.parse(text)
    except SyntaxError:  # L0 says where
        return MODELS[0]
    bound = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    bound |= {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return next((name for name in MODELS if name in bound), MODELS[0])


def _without_future(text: str) -> tuple[str, str, bool]:
    """The source with its `from __future__` lines left empty, those lines, and whether there are any."""
    try:
        tree = python_source.parse(text)
    except SyntaxError:
        return text, "", False
    lines = text.splitlines(keepends=True)
    moved = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            moved.append(ast.unparse(node) + "\n")
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = ["\n"] * (last - first)
    return "".join(lines), "".join(moved), bool(moved)
