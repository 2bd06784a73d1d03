"""A candidate's own test says in a plain line each what passed, what failed and why, and what is not here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ladder_candidates import write_candidate

pytest.importorskip("triton")
torch = pytest.importorskip("torch")

from kernelgen.errors import BadInput  # noqa: E402
from kernelgen.ladder import child, selftest  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="says what is said where there is no GPU")

# `{sign}` of the second configuration alone decides whether the sum is right
ADD = """
import torch
import triton
import triton.language as tl


@triton.autotune(
    [triton.Config({{"BLOCK": 64, "SIGN": 1}}), triton.Config({{"BLOCK": {block}, "SIGN": {sign}}})], key=["n"]
)
@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr, SIGN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + SIGN * tl.load(y + at, mask=inside), mask=inside)


def add(x, y):
    {prelude}
    out = torch.empty_like(x)
    add_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel())
    return (out,)
"""
# needs BLOCK * BLOCK * 4 bytes for each of its stages and operands
PRODUCT = """
import torch
import triton
import triton.language as tl


@triton.autotune([{configs}], key=["n"])
@triton.jit
def product_kernel(x, y, out, n, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    at = rows[:, None] * BLOCK + rows[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        total = tl.dot(tl.load(x + at + k), tl.load(y + at + k), total)
    tl.store(out + at, total)


def add(x, y):
    out = torch.empty_like(x)
    product_kernel[(1,)](x, y, out, x.numel())
    return (out,)
"""
SMALL, LARGE = 'triton.Config({"BLOCK": 32})', 'triton.Config({"BLOCK": 64}, num_stages=10)'


def add(**parts: object) -> str:
    return ADD.format(**{"block": 256, "sign": 1, "prelude": "pass", **parts})


def one_check(kind: str, file: Path, *further: str, timeout_s: float = 120.0) -> child.Ended:
    """One check in its process, as the self-test makes it."""
    return child.python(
        "kernelgen.ladder.checks",
        [kind, str(file), *further],
        timeout_s=timeout_s,
        interpreter=sys.executable,
        variables={"TRITON_INTERPRET": "1"} if kind == "interpreter" else {},
    )


@no_gpu
def test_a_good_candidate_passes_a_line_each_and_ends_with_0(candidate) -> None:
    path = candidate(add())
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    names = [line.split(": ")[:2] for line in done.stdout.splitlines()]
    assert names == [
        ["python", "passed"],
        ["torch", "passed"],
        ["triton", "passed"],
        ["compile", "passed"],
        ["interpreter", "passed"],
        ["gpu", "not here"],
    ]
    assert "compiled for sm_90a: 1 kernel, 2 configs; registers up to " in done.stdout
    assert "interpreter: passed: logic check, not numerics; 2 of 2 configurations" in done.stdout
    assert "smoke" not in done.stdout  # the million elements of the timed shape were shapes alone


@no_gpu
def test_a_wrong_result_in_one_configuration_fails_and_ends_with_1(
    candidate, capsys: pytest.CaptureFixture[str]
) -> None:
    code = selftest.main(str(candidate(add(sign=-1))), ["--json"])
    record = json.loads(capsys.readouterr().out)
    assert code == record["exit_code"] == 1
    checks = {check["name"]: check for check in record["checks"]}
    assert checks["compile"]["status"] == "passed"
    assert [build["kwargs"]["SIGN"] for build in checks["compile"]["builds"]] == [1, -1]
    assert checks["interpreter"]["status"] == "failed"
    assert "out is off by up to" in checks["interpreter"]["note"]
    assert "SIGN: -1" in checks["interpreter"]["note"]
    assert "Traceback" in checks["interpreter"]["detail"]


# one process for them all: starting one costs more than what it does
COMPILED = """
import json, sys
from pathlib import Path
from kernelgen.ladder import checks, declaration
print(json.dumps({Path(file).stem: checks.check_compile(declaration.read(Path(file))) for file in sys.argv[1:]}))
"""
PARTS = {
    "not_a_power_of_two": add(block=48),
    "one_too_large": PRODUCT.format(configs=f"{SMALL}, {LARGE}"),
    "all_too_large": PRODUCT.format(configs=LARGE),
    "needs_values": add(prelude="assert x[0].item() == x[0].item()"),
    "no_kernel": "def add(x, y):\n    return (x + y,)\n",
}


@pytest.fixture(scope="module")
def compiled(run_script, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("compiled")
    return run_script(COMPILED, *(str(write_candidate(folder, part, name=name)) for name, part in PARTS.items()))


def test_a_compile_error_is_told_with_place_and_reason(compiled) -> None:
    record = compiled["not_a_power_of_two"]
    assert record["status"] == "failed"
    assert "CompilationError: at " in record["note"]
    assert "arange's range must be a power of 2" in record["note"]
    assert "(not_a_power_of_two.py, line " in record["note"]
    assert "\n" not in record["note"]


def test_a_configuration_that_cannot_run_is_named_and_the_others_pass(compiled) -> None:
    record = compiled["one_too_large"]
    assert record["status"] == "passed", record
    assert "1 kernel, 1 config;" in record["note"]
    assert "cannot run: product_kernel[BLOCK=64" in record["note"]
    assert "Hardware limit: 232448" in record["note"]


def test_a_candidate_with_no_configuration_that_can_run_fails(compiled) -> None:
    record = compiled["all_too_large"]
    assert record["status"] == "failed"
    assert "out of resource: shared memory" in record["note"]


def test_host_code_that_needs_values_is_compiled_on_the_smoke_shapes(compiled) -> None:
    record = compiled["needs_values"]
    assert record["status"] == "passed", record
    assert "on the smoke shapes alone, since on the tune shapes: " in record["note"]
    assert "item()" in record["note"]


def test_an_entry_point_without_a_kernel_fails(compiled) -> None:
    assert compiled["no_kernel"] == {"status": "failed", "note": "add launched no Triton kernel"}


@pytest.mark.parametrize(
    ("models_part", "timeout_s", "failure", "note"),
    [
        ("raise SystemExit(0)", 60, None, "called sys.exit(0) (g1.py, line 7)"),
        ("while True: pass", 3, "did not end within 3 s", None),
        ("while True: print('x' * 100_000)", 60, "printed more than 16 MiB", None),
    ],
    ids=["exit", "hang", "flood"],
)
def test_an_early_end_is_a_failure_with_its_cause(candidate, models_part, timeout_s, failure, note) -> None:
    ended = one_check("gpu", candidate(f"{models_part}\n"), timeout_s=timeout_s)
    assert ended.failure == failure
    assert (ended.record or {}).get("note") == note


def test_an_access_out_of_bounds_is_a_failure_with_its_cause(candidate) -> None:
    far = add().replace("tl.load(x + at, mask=inside)", "tl.load(x + at + (1 << 44))")
    assert one_check("interpreter", candidate(far), "60").failure == "killed by SIGSEGV"


def test_an_end_without_a_record_fails_the_check(candidate, monkeypatch: pytest.MonkeyPatch) -> None:
    path = candidate("import os; os._exit(0)\n")
    ended = one_check("gpu", path)
    assert (ended.failure, ended.record) == (None, None)
    monkeypatch.setattr(child, "python", lambda *_, **__: ended)
    made = selftest.checks(path)
    assert ("compile", "failed", "ended the process before the check was done") in [
        (check.name, check.status, check.note) for check in made
    ]
    assert selftest.exit_code(made) == 1


def test_without_packages_it_says_what_to_install_and_ends_with_2(candidate) -> None:
    # -S: no installed packages, as on a machine that has Python alone
    done = subprocess.run(
        [sys.executable, "-S", "-m", "kernelgen.ladder.selftest", candidate(add()), candidate(add(), name="g2")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout.count("torch: not here: pip install 'kernelgen[kernels]'") == 2
    assert "compile" not in done.stdout
    assert str(candidate(add(), name="g2")) in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("KERNELGEN_ARCH = 90\n", ""), "declares no KERNELGEN_ARCH"),
        (
            ("KERNELGEN_ARCH = 90\n", "KERNELGEN_ARCH = 90\nKERNELGEN_ARCH = 80\n"),
            "KERNELGEN_ARCH is assigned a second time",
        ),
        (("KERNELGEN_ARCH = 90\n", "KERNELGEN_ARCH = 'sm_90'\n"), "it needs a compute capability"),
        (("KERNELGEN_ARCH = 90\n", "KERNELGEN_ARCH = int(90)\n"), "KERNELGEN_ARCH must be a literal"),
        (("KERNELGEN_ARCH = 90\n", "KERNELGEN_ARCH = = 90\n"), "is not Python"),
    ],
)
def test_a_file_that_is_no_candidate_is_one_sentence(candidate, capsys, change, sentence) -> None:
    path = candidate(add())
    path.write_text(path.read_text().replace(*change))
    assert selftest.main(str(path), []) == BadInput.exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err
    assert str(path) in said.err


def test_a_target_that_cannot_be_loaded_is_no_verdict_on_the_candidate(candidate) -> None:
    path = candidate(add())
    path.write_text(path.read_text().replace('"adder_target.py"', '"absent_target.py"'))
    ended = one_check("compile", path)
    assert ended.failure is None
    assert "absent_target.py" in ended.record["error"]
