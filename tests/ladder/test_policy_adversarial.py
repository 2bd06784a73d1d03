"""Whatever text is handed in, the policy answers with a result, soon, and with a place."""

from __future__ import annotations

import random
import time
from typing import Literal

import pytest
from policy_subjects import CUDA_KERNEL, HOST, TRITON, cuda, host, judged

from kernelgen.ladder.policy import LONGEST

# far more than is needed on a free machine; a hang is minutes
SOON_S = 20.0
PYTHON = {
    "a megabyte": "x = 1\n" * (1 << 18),
    "as long as may be": TRITON + HOST + "x = (1, 2, 3)\n" * ((LONGEST - 4000) // 14),
    "brackets in brackets": "x = " + "(" * 5000 + "1" + ")" * 5000,
    "signs before a number": "x = " + "-" * 50_000 + "1",
    "a long chain of members": "x = a" + ".b" * 20_000,
    "a long chain of calls": "x = a" + "()" * 20_000,
    "a long sum": "x = " + " + ".join(["1"] * 20_000),
    "lambdas in lambdas": "x = " + "lambda: " * 3000 + "1",
    "functions in functions": "\n".join("    " * n + f"def f{n}():" for n in range(90)) + "\n" + "    " * 90 + "pass",
    "ifs in ifs": "\n".join(" " * n + "if x:" for n in range(300)) + "\n" + " " * 300 + "pass",
    "a NUL byte": TRITON + "x = '\0'\n" + HOST,
    "a byte order mark": "\ufeff" + TRITON + HOST,
    "half a surrogate": TRITON + "x = '\ud800'\n" + HOST,
    "other ends of lines": (TRITON + HOST).replace("\n", "\r\n"),
    "old ends of lines": (TRITON + HOST).replace("\n", "\r"),
    "form feeds and vertical tabs": TRITON + "\x0c\n\x0b\n" + HOST,
    "a coding line": "# -*- coding: utf-16 -*-\n" + TRITON + HOST,
    "an unknown coding": "# coding: klingon\n" + TRITON + HOST,
    "nothing": "",
    "blanks": "   \n\t\n",
    "an endless text": 'x = """' + "a" * 100_000,
    "quotes": "'" * 99_999,
    "backslashes": "\\" * 100_000,
    "a number without end": "x = " + "9" * 100_000,
    "powers": "x = 10 ** 10 ** 10 ** 10",
    "a text times a number": "x = 'a' * (1 << 40)",
    "names bound to one another": "\n".join(f"a{n} = a{(n + 1) % 3000}" for n in range(3000)) + "\n" + TRITON + HOST,
    "functions that call one another": "\n".join(f"def f{n}(x):\n    return f{(n + 1) % 1500}(x)" for n in range(1500)),
    "calls in calls of many": "\n".join(f"f = torch.x{n}" for n in range(20)) + "\nx = " + "f(" * 90 + "1" + ")" * 90,
    "choices in choices": "f = lambda x: x\nx = " + "(f if f else f)(" * 60 + "1" + ")" * 60,
    "a table of many": "x = {" + ", ".join(f"'{n}': torch.mm" for n in range(5000)) + "}",
    "doubtful escapes": TRITON + "x = '\\d\\w'\n" + HOST,
    "bidirectional marks": TRITON + "# \u202e\u2066\nx = '\u202e'\n" + HOST,
    "control characters": "".join(map(chr, range(1, 32))) * 100,
}
CUDA = {
    "a megabyte": "int x;\n" * (1 << 18),
    "as long as may be": CUDA_KERNEL * (LONGEST // len(CUDA_KERNEL)),
    "braces in braces": cuda(top="void f() " + "{" * 20_000 + "}" * 20_000),
    "brackets": "(" * 100_000,
    "macros that double": "#define A0 x\n"
    + "\n".join(f"#define A{n} A{n - 1} A{n - 1}" for n in range(1, 60))
    + "\nA59\n",
    "a macro of itself": "#define A B\n#define B A\nA B A;\n",
    "macros with arguments that double": "#define D(x) x x\n" + "D(" * 200 + "y" + ")" * 200,
    "arguments without end": "#define F(a, b) a b\nF(1, (2",
    "pasting": "#define P(a, b) a##b\n" + "P(" * 3000 + "x" + ",y)" * 3000,
    "conditions without end": "#if 1\n" * 20_000,
    "ends of conditions": "#endif\n" * 20_000,
    "a NUL byte": cuda() + "\0",
    "half a surrogate": cuda() + "\ud800",
    "other ends of lines": cuda().replace("\n", "\r\n"),
    "nothing": "",
    "quotes": '"' * 100_001,
    "raw texts": 'R"(' * 30_000,
    "comments": "/*" * 100_000,
    "comments never closed": "/* " * 100_000,
    "quotes never closed": '"' + '\\"' * 100_000,
    "a macro never closed": "#define D(x) x\n" + "D(" * 60_000,
    "assembly never closed": "asm " * 90_000,
    "namespaces": "cutlass::" * 40_000,
    "slashes": "/" * 100_000,
    "backslashes": "\\\n" * 100_000,
    "hashes": "#" * 100_000 + "\n" + "# " * 10_000,
    "angles": "template <" * 20_000,
    "statics": "\n".join(f"static int* v{n} = 0;" for n in range(8000)),
    "assembly": '__device__ void f() { asm volatile("' + "nop; " * 20_000 + '"); }',
    "digits": "0x" + "1'" * 50_000,
}


def soon(source: str, language: Literal["python", "cuda"]) -> None:
    began = time.process_time()
    result = judged(source, language=language, known={"one": TRITON + HOST, "two": source[:100_000]})
    assert time.process_time() - began < SOON_S
    assert result.level == "L0"
    lines = source.count("\n") + source.count("\r") + 1
    for fault in result.faults:
        assert fault.line is not None
        assert 1 <= fault.line <= lines
        assert fault.detail.startswith(f"line {fault.line}\n")
        assert len(fault.detail) < 1000
        assert "\n" not in fault.reason
    assert result.as_dict()["outcome"] == ("passed" if not result.faults else result.outcome)


@pytest.mark.parametrize("name", PYTHON)
def test_any_text_as_python_has_a_result(name: str) -> None:
    soon(PYTHON[name], "python")


@pytest.mark.parametrize("name", CUDA)
def test_any_text_as_cuda_has_a_result(name: str) -> None:
    soon(CUDA[name], "cuda")


@pytest.mark.parametrize("language", ["python", "cuda"])
def test_a_source_that_is_too_long_or_broken_fails(language: Literal["python", "cuda"]) -> None:
    for name in ("a megabyte", "nothing"):
        result = judged((PYTHON if language == "python" else CUDA)[name], language=language)
        assert result.outcome == "failed"


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_candidate_has_a_result(seed: int) -> None:
    chance = random.Random(seed)
    language: Literal["python", "cuda"] = "python" if seed % 2 else "cuda"
    source = list(host("counts = torch.zeros(4)") if seed % 2 else cuda("  static int n = 0;"))
    for _ in range(chance.randrange(1, 30)):
        place = chance.randrange(len(source))
        source[place : place + chance.randrange(3)] = chance.choice(
            ["(", "}", '"', "'", "#", "\n", "\\", "*", "def ", "\x00", "é", ";"]
        )
    soon("".join(source), language)
