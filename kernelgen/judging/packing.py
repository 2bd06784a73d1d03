"""Writes a bundle's folder: jobs, targets, the part of kernelgen that judges, the program, and the sums of all.

The folder appears whole or not at all. It holds nothing that needs pydantic, Hydra or DSPy, and no file of the user's
beside the modules of the targets and what lies with them.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelgen.errors import BadInput
from kernelgen.judging.jobs import moved
from kernelgen.ladder.work import sums
from kernelgen.ladder.work.jobs import JOBS, Job, Work
from kernelgen.ladder.work.one import MODULES

PACKAGE = Path(__file__).resolve().parents[1]
PARTS = ("__init__.py", "errors.py", "python_source.py", "ladder", "targets")
"""What of kernelgen a worker needs."""
OWN = "kernelgen."
TARGETS = "targets"
PROGRAM = "kernelgen_worker"
MAIN = '''\
"""Judges this bundle: `python -m kernelgen_worker > verdicts.jsonl`, or with `out=verdicts.jsonl`."""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))

from kernelgen.ladder.worker import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], FOLDER))
'''
LARGEST_BYTES = 64 << 20
"""Of what lies beside a target's module: more is no part of a target."""
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


@contextmanager
def drafted(out: Path) -> Iterator[Path]:
    """A folder beside `out` to fill; removed at the end where it was not moved. Raises BadInput."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise BadInput(f"No bundle can be made at {out}: {error.strerror}; name another folder with out=.") from error
    try:
        draft.chmod(0o755)
        yield draft
    except OSError as error:
        raise BadInput(f"The bundle {out} cannot be written: {error.strerror} ({error.filename}).") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def fill(draft: Path, jobs: str, modules: Modules) -> None:
    """Write everything of a bundle into an empty folder."""
    (draft / JOBS).write_text(jobs, encoding="utf-8")
    (draft / "kernelgen").mkdir()
    for part in PARTS:
        _copy(PACKAGE / part, draft / "kernelgen" / part)
    (draft / PROGRAM).mkdir()
    (draft / PROGRAM / "__init__.py").write_text('"""The program of a bundle."""\n', encoding="utf-8")
    (draft / PROGRAM / "__main__.py").write_text(MAIN, encoding="utf-8")
    for source, name in modules.copied.items():
        (draft / name).parent.mkdir(exist_ok=True)
        _copy(source, draft / name)
    (draft / sums.SUMS).write_text(sums.sums_of(draft), encoding="utf-8")


def place(draft: Path, out: Path) -> None:
    """Make the draft the bundle. Raises BadInput where there is something already."""
    try:
        os.replace(draft, out)
    except OSError as error:
        raise BadInput(f"{out} is there already, and is no empty folder; name another with out=.") from error


@dataclass
class Modules:
    """The targets' modules that travel, and where to."""

    copied: dict[Path, str] = field(default_factory=dict)
    """Folder or package, and its place in the bundle."""

    def settle(self, work: Work) -> Work:
        """The jobs with every target at its place in the bundle. Raises BadInput where one cannot travel."""
        return replace(work, jobs=tuple(self._settled(job) for job in work.jobs))

    def _settled(self, job: Job) -> Job:
        goal = job.subject.goal
        if goal.module.startswith(OWN):
            return moved(job, goal.module, None)
        if not goal.module.endswith(".py"):
            self._add(_package(goal.module, goal.name), lambda source: f"{MODULES}/{source.name}")
            return moved(job, goal.module, None)
        path = Path(goal.folder or ".").absolute() / goal.module
        folder = path.parent if goal.folder is None or Path(goal.module).is_absolute() else Path(goal.folder).absolute()
        placed = self._add(folder, lambda _: f"{TARGETS}/{len(self.copied) + 1}")
        return moved(job, path.relative_to(folder).as_posix(), placed)

    def _add(self, source: Path, name: Callable[[Path], str]) -> str:
        """The place of a folder or file, which is looked at when it is new."""
        if source not in self.copied:
            size = sum(path.stat().st_size for path in _files(source))
            if size > LARGEST_BYTES:
                mib = LARGEST_BYTES >> 20
                raise BadInput(f"{source} holds more than {mib} MiB beside the target; give the target its own folder.")
            self.copied[source] = name(source)
        return self.copied[source]


def _package(module: str, target: str) -> Path:
    """The folder or file of the outermost package of a dotted name. Raises BadInput."""
    top = module.partition(".")[0]
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        raise BadInput(f"The module {module} of target {target} cannot be bundled: there is no package {top} here.")
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def _files(source: Path) -> Iterator[Path]:
    """The files of a folder as far as they travel."""
    if source.is_file():
        yield source
        return
    for folder, folders, names in os.walk(source):
        folders[:] = [name for name in folders if name not in LEFT_OUT(folder, folders)]
        yield from (Path(folder) / name for name in names if name not in LEFT_OUT(folder, names))


def _copy(source: Path, to: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, to, ignore=LEFT_OUT)
    else:
        shutil.copyfile(source, to)
