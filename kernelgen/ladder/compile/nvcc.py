"""The job of a child that builds CUDA C++: `kernelgen.ladder.compile.nvcc:job`.

nvcc reads whatever a source includes, so it runs where there is nothing to read. The library and its device code go to
the parent as open files; the child neither loads nor judges them.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelgen.ladder.channel import Channel

SOURCE, LIBRARY, KEPT = "candidate.cu", "candidate.so", "kept"
# the end of what nvcc said: errors come before "too many errors"
MOST_CHARACTERS = 200_000


def job(channel: Channel) -> None:
    """Build once: the task names nvcc, its options and the source; the answer has its exit code and words."""
    task, _ = channel.receive()
    folder = channel.folder
    (folder / KEPT).mkdir()
    (folder / SOURCE).write_text(task["source"], encoding="utf-8")
    command = [task["nvcc"], *task["options"], "--keep", "--keep-dir", KEPT, "-o", LIBRARY, SOURCE]
    variables = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "TMPDIR": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False,
    )  # fmt: skip
    said = done.stdout.decode("utf-8", "replace")[:MOST_CHARACTERS]
    # one of the library's device code, none of linking
    device = [path for path in (folder / KEPT).glob("*.cubin") if not path.stem.endswith("_dlink")]
    answer: dict[str, Any] = {"event": "built", "code": done.returncode, "words": said}
    if done.returncode != 0 or len(device) != 1:
        channel.send(answer)
        return
    descriptors = [os.open(path, os.O_RDONLY) for path in (folder / LIBRARY, device[0])]
    channel.send(answer, tuple(descriptors))
