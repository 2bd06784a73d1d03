"""Binaries of strangers are read without being run, and compilers' words of several versions mean the same checks."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kernelgen.constraints import rules
from kernelgen.errors import BadInput
from kernelgen.ladder import elf
from kernelgen.ladder.compile import words
from kernelgen.ladder.compile.kept import Kept
from kernelgen.ladder.compile.report import Build, Findings


def _library() -> bytes:
    """The C library of this process."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "/libc.so" in line or "/libc-" in line:
            return Path(line.split()[-1]).read_bytes()
    pytest.skip("no C library to read")


def test_exported_functions_are_those_a_library_defines() -> None:
    exported = elf.exported_functions(_library())
    assert {"printf", "malloc", "fopen"} <= exported
    # a variable, and one it takes from elsewhere
    assert not {"stdout", "a_function_that_is_not_there"} & exported


@pytest.mark.parametrize("length", [0, 3, 40, 64, 4096])
def test_a_library_cut_short_is_a_value_error(length: int) -> None:
    with pytest.raises(ValueError, match="ELF"):
        elf.exported_functions(_library()[:length])


@pytest.mark.parametrize(("place", "value"), [(40, 1 << 60), (60, 0xFFFF), (62, 0xFFFF), (58, 3)])
def test_a_header_that_points_outside_is_a_value_error(place: int, value: int) -> None:
    data = bytearray(_library())
    size = 8 if place == 40 else 2
    data[place : place + size] = struct.pack("<Q", value)[:size]
    with pytest.raises(ValueError, match="ELF"):
        elf.exported_functions(bytes(data))


@pytest.mark.parametrize(
    ("said", "check", "facts"),
    [
        (
            "out of resource: shared memory, Required: 300000, Hardware limit: 232448. Reducing block sizes may help.",
            "compile.shared_memory",
            {"shared_bytes": 300000, "limit_bytes": 232448, "block.M": 48},
        ),
        (
            "ptxas error   : Entry function 'k' uses too much shared data (0x40000 bytes, 0x38c00 max)",
            "compile.shared_memory",
            {"shared_bytes": 0x40000, "limit_bytes": 0x38C00},
        ),
        ("register allocation failed with register count of '255'", "compile.registers", {"registers": 255}),
        ("type fp8e4nv not supported in this architecture", "compile.dot_dtype", {"dtype": "fp8e4nv"}),
        ("First input (fp16) and second input (bf16) must have the same dtype", "compile.dot_dtype", {}),
        ("AssertionError: T.gemm K shape check failed: K_A = 64, K_B = 32", "compile.dot_shape", {}),
        ("N must be divisible by 8, but got 100", "compile.dot_shape", {"multiple": 8, "extent": 100}),
        ("KeyError: 'fp7'", "compile.unknown_name", {"name": "fp7"}),
        ("something that no version said so far", "compile.other", {}),
    ],
)  # fmt: skip
def test_the_words_of_each_compiler_mean_a_check_and_its_facts(said, check, facts) -> None:
    meant, found = words.classify(said, {"M": 48, "FAST": True, "NAME": "x"})
    assert (meant, {key: found.get(key) for key in facts}) == (check, facts)
    assert not any(name in found for name in ("block.FAST", "block.NAME"))


def test_every_extent_that_a_fault_is_about_can_stand_in_a_rule() -> None:
    said = "at 2:4:\n    at = tl.arange(0, BLOCK)\n         ^\narange's range must be a power of 2"
    _, facts = words.classify(said, {"BLOCK": 48, "OTHER": 100})
    blocks = {name.removeprefix("block."): size for name, size in facts.items() if name.startswith("block.")}
    assert blocks == {"BLOCK": 48}
    assert rules.parse('is_power_of_two(block("BLOCK"))').check({"blocks": blocks}) is False


def test_of_a_configuration_compiled_twice_the_larger_is_kept_with_all_its_shapes() -> None:
    found = Findings()
    for registers, call in ((40, "a"), (60, "b"), (50, "c")):
        found.add(Build("k", {"M": 64}, 4, 3, registers=registers, calls=(call,)))
    assert [(build.registers, build.calls) for build in found.builds] == [(60, ("a", "b", "c"))]


def test_kept_results_survive_and_a_line_cut_short_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    kept = Kept(path)
    kept.add("a", {"runs": True})
    kept.add("b", {"runs": False})
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])  # killed while the second line was written
    again = Kept(path)
    assert (again.get("a"), again.get("b")) == ({"runs": True}, None)
    again.add("b", {"runs": False})
    assert Kept(path).get("b") == {"runs": False}
    assert Kept(path).get("a") == {"runs": True}
    with pytest.raises(BadInput, match="cannot be used to keep results"):
        Kept(tmp_path)
