"""Candidate files: made from a reply (`build`), read back (`read_back`, `read_header`), put on disk (`write_files`).

docs/formats.md has the form. The text is a function of the records and digests given, so a replay makes the same bytes.
"""

from kernelgen.candidates.binding import TargetBinding
from kernelgen.candidates.build import build
from kernelgen.candidates.files import write_files
from kernelgen.candidates.header import read_header
from kernelgen.candidates.reading import ModelPart, read_back

__all__ = ["ModelPart", "TargetBinding", "build", "read_back", "read_header", "write_files"]
