"""A reply becomes the files of a candidate, in the form of docs/formats.md: text work alone, the same bytes every time.

The model's part stands between two marker lines, byte for byte. Header, door, constants and test are kernelgen's; the
constants and the test stand below the model's part, so that nothing in it rebinds them while the file is loaded.
"""

from __future__ import annotations

import functools
from importlib import resources
from string import Template

from kernelgen import markers
from kernelgen.candidates import header
from kernelgen.candidates.binding import TargetBinding
from kernelgen.errors import ReplyError
from kernelgen.records import Ask, AutotuneConfig, CandidateFile, KernelSource, Reply

FOLDER = "scripts/kernels"
SUFFIX = {"python": ".py", "cuda": ".cu"}
TABLE = "AUTOTUNE_CONFIGS"
"""Name of the table of configurations that the model's source refers to."""


def build(
    iteration_id: str,
    ask: Ask,
    reply: Reply,
    *,
    prompt_digest: str,
    reply_digest: str,
    binding: TargetBinding,
) -> list[CandidateFile]:
    """The candidate's files, the candidate itself first; for CUDA C++ its test beside it.

    Digests are of the messages asked and of the raw reply. Raises ReplyError for a source that holds a marker line.
    """
    if markers.holds_marker(reply.kernel.code):
        raise ReplyError("the source holds a marker line of kernelgen; leave such lines out.")
    about = header.write(iteration_id, ask, reply, prompt_digest=prompt_digest, reply_digest=reply_digest)
    stem = f"{FOLDER}/{ask.target.name}/{iteration_id}"
    path = stem + SUFFIX[reply.kernel.language]
    part, constants = _model_part(reply.kernel), _constants(reply, ask, binding)
    if reply.kernel.language == "cuda":
        title = f"# The correctness test of {iteration_id}.cu, which has the header and the kernels.\n"
        test = _filled("test_cuda", source=f"{iteration_id}.cu")
        return [
            CandidateFile(path=path, text=f"{about}\n{part}"),
            CandidateFile(path=f"{stem}_test.py", text=f"{title}\n{_text('door')}\n{constants}\n\n{test}"),
        ]
    test = _filled("test_python", entry_point=reply.kernel.entry_point)
    table = f"\n{table_text(reply.autotune)}" if reply.autotune else ""
    return [CandidateFile(path=path, text=f"{about}\n{_text('door')}{table}\n{part}\n{constants}\n\n{test}")]


def _model_part(kernel: KernelSource) -> str:
    return f"{markers.begin(kernel.language)}{kernel.code}{markers.end(kernel.language)}"


def table_text(autotune: dict[str, tuple[AutotuneConfig, ...]]) -> str:
    """The lines that define the table of configurations, their import included."""
    lines = ["import triton\n", "\n", f"{TABLE}: dict[str, list[triton.Config]] = {{\n"]
    for kernel, configs in autotune.items():
        lines.append(f"    {kernel!r}: [\n")
        lines += [
            f"        triton.Config({config.kwargs!r}, num_warps={config.num_warps}, num_stages={config.num_stages}),\n"
            for config in configs
        ]
        lines.append("    ],\n")
    return "".join([*lines, "}\n"])


def _constants(reply: Reply, ask: Ask, binding: TargetBinding) -> str:
    return _filled(
        "constants",
        module=repr(binding.module),
        folder=repr(binding.folder),
        entry_point=repr(reply.kernel.entry_point),
        arch=repr(binding.compute_capability),
        dsl=repr(ask.approach.dsl),
        smoke=repr(_ordered(binding.smoke)),
        tune=repr(_ordered(binding.tune)),
        kinds=repr(binding.kinds),
        tolerance=repr(dict(sorted(binding.tolerance.items()))),
    )


def _ordered(shapes: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Shapes and their dimensions by name: records read back from the log have lost any other order."""
    return {name: dict(sorted(dims.items())) for name, dims in sorted(shapes.items())}


@functools.cache
def _text(name: str) -> str:
    return resources.files("kernelgen.candidates").joinpath("text", f"{name}.txt").read_text(encoding="utf-8")


def _filled(name: str, **values: str) -> str:
    return Template(_text(name)).substitute(values)
