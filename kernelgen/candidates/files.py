"""Puts a candidate's files under the out folder: each whole or not at all, and never over another content.

A file appears under its name by a link of a synced temporary file, so a kill at any instant leaves no half of one.
Writing the same content again is no error: that is how a killed run is finished.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from kernelgen.candidates.build import FOLDER
from kernelgen.errors import BadInput
from kernelgen.records import CandidateFile

NOTICE = CandidateFile(
    path=f"{FOLDER}/README.md",
    text="# Candidates\n\nProducts of `kernelgen generate`: lint, tests and packaging leave them out.\n",
)
"""Says what the folder is; written where there is no such file."""
MODE = 0o644
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)


def write_files(out: Path, files: Iterable[CandidateFile]) -> None:
    """Write the files under `out`, making folders as needed.

    Raises BadInput where a file of that name has another content, or the folder cannot be written.
    """
    if not (out / NOTICE.path).exists():
        _write(out, NOTICE)
    for file in files:
        _write(out, file)


def _write(out: Path, file: CandidateFile) -> None:
    relative = PurePosixPath(file.path)
    if relative.is_absolute() or ".." in relative.parts:
        raise BadInput(f"The candidate's path {file.path!r} leads out of the out folder.")
    path = out / relative
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _link(path, file.text.encode("utf-8"))
    except FileExistsError as error:
        raise BadInput(f"{path} exists with another content; move it away and try again.") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}); choose another folder with out=DIR.") from error


def _link(path: Path, content: bytes) -> None:
    """Make the file appear whole. Raises FileExistsError where one with another content is there."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.stem}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, MODE)
        _name(name, path)
    except FileExistsError:
        if not path.is_file() or path.read_bytes() != content:
            raise
    finally:
        Path(name).unlink(missing_ok=True)
    _sync_folder(path.parent)


def _name(temporary: str, path: Path) -> None:
    """Give the file its name, where no other has it."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # a file system without hard links: here two writers of one name could race, and names are unique
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        os.rename(temporary, path)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
