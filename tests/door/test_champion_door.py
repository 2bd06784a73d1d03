"""`kernelgen champion`, `retract` and `status` of promoted champions: the line, what is exported and that it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelgen import cli
from kernelgen.candidates.build import table_text
from kernelgen.eventlog.store import EventLog
from kernelgen.judging.tuned_files import chosen_rows
from kernelgen.playbook.champion import parse
from kernelgen.playbook.rewrite import without_table
from kernelgen.targets.code import load_code
from tests.factories import pull_request
from tests.judging.verdict_makers import TARGET, Bench, kernel

Run = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bench(folder: Path) -> Iterator[Bench]:
    with EventLog.open(folder / "events.db") as log:
        yield Bench(folder, log)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A command's JSON record, or its text with text=True; `code` is the exit code wanted."""

    def command(*words: str, code: int = 0, text: bool = False) -> Any:
        capsys.readouterr()
        assert cli.main([*words, *([] if text else ["--json"])]) == code
        printed = capsys.readouterr().out
        return printed if text else json.loads(printed)

    return command


def test_show_tells_the_line_with_times_ratios_and_what_was_taken_back(bench: Bench, run: Run) -> None:
    bench.promoted("g1", 1.25)
    bench.promoted("g2", 1.1)
    record = run("champion", f"target={TARGET}")
    assert record["id"] == "g2"
    assert [(one["champion"], one["parent"], one["fate"], one["current"]) for one in record["lineage"]] == [
        ("g1", "naive", "stands", False),
        ("g2", "g1", "stands", True),
    ]
    first = record["lineage"][0]
    assert first["ratio"]["ratio"] == pytest.approx(1.25, rel=0.01)
    assert first["ratio"]["low"] <= first["ratio"]["ratio"] <= first["ratio"]["high"]
    assert first["times_us"] == {shape: pytest.approx(160.0, rel=0.01) for shape in bench.target.shapes.tune}
    bench.retract("g2")
    shown = run("champion", f"target={TARGET}", text=True)
    lines = [text.strip() for text in shown.splitlines()]
    assert lines[0].startswith("g1 (promoted)")
    (held,) = (text for text in lines if text.startswith("g1, "))
    assert "times as fast as naive" in held
    assert held.endswith("champion now")
    (gone,) = (text for text in lines if text.startswith("g2, "))
    assert gone.endswith("taken back: it reads past the end")


def test_retract_says_who_holds_now_and_who_must_be_judged_again(bench: Bench, run: Run) -> None:
    bench.promoted("g1", 1.25)
    bench.promoted("g2", 1.1)
    told = run("retract", "g1", "--why", "it reads past the end", text=True)
    assert "retracted the champion g1: it reads past the end; withdrawn with it: c_" in told
    assert "g2 was promoted over it: `kernelgen judge g2 level=L4`" in told
    assert f"champion of {TARGET} on h200 is naive" in told
    bench.promoted("g3", 1.25)
    record = run("retract", "g3", "--why", "wrong")
    assert (record["champion_id"], record["champion"], record["fallen"]) == ("g3", "naive", [])
    assert len(record["withdrawn"]) == 1


def test_status_shows_champion_ratio_and_share_of_the_floor(bench: Bench, run: Run) -> None:
    (before,) = run("status", f"target={TARGET}", "hardware=h200")["regions"]
    assert (before["champion"], before["faster"], before["share_of_floor"]) == ("naive", None, None)
    bench.promoted("g1", 1.25)
    bench.promoted("g2", 1.1)
    (region,) = run("status", f"target={TARGET}", "hardware=h200")["regions"]
    assert (region["champion"], region["first"]) == ("g2", "naive")
    assert region["faster"] == pytest.approx(1.1, rel=0.01)
    assert region["over_first"] == pytest.approx(1.375, rel=0.01)
    assert region["share_of_floor"] == pytest.approx(1e8 / 4.3e12 * 1e6 / (200 / 1.1), rel=0.01)
    assert "share of floor" in run("status", f"target={TARGET}", "hardware=h200", text=True)


ALONE = """
import importlib.util, sys
sys.modules["kernelgen"] = None  # an import of it fails
import torch
spec = importlib.util.spec_from_file_location("exported", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
inputs = torch.load(sys.argv[2], weights_only=True)
torch.save(getattr(module, sys.argv[3])(**inputs), sys.argv[4])
"""


@pytest.mark.parametrize("promoted", [False, True], ids=["naive", "promoted"])
def test_an_exported_module_runs_without_kernelgen_and_computes_the_target(
    folder: Path, run: Run, promoted: bool
) -> None:
    target = "moe_combine"
    with EventLog.open(folder / "events.db") as log:
        bench = Bench(folder, log, target)
        if promoted:
            naive = parse(bench.now().source)
            table = {one.name: tuple(one.configs or ()) for one in naive.kernels if one.autotuner is not None}
            assert table, "the champion of this target is tuned"
            bench.promoted("g1", source=table_text(table) + without_table(naive, table))
        goal = bench.target
    record = run("champion", "export", f"target={target}", "to=alone/kernel.py")
    assert record["files"] == ["alone/kernel.py"]
    text = (folder / "alone" / "kernel.py").read_text()
    assert "kernelgen" not in "\n".join(text_line for text_line in text.splitlines() if not text_line.startswith("#"))
    assert ("line: naive <- g1" if promoted else "performance: not measured") in text
    code = load_code(goal.module)
    inputs = code.make_inputs(next(iter(goal.shapes.smoke.values())), goal.input_kinds[0], 7, "cpu")
    torch.save(inputs, folder / "inputs.pt")
    done = subprocess.run(
        [sys.executable, "-I", "-c", ALONE, "alone/kernel.py", "inputs.pt", goal.entry_point, "outputs.pt"],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    got = torch.load(folder / "outputs.pt", weights_only=True)
    tolerance = {name: (bound.rtol, bound.atol) for name, bound in goal.tolerance.items()}
    assert code.compare(inputs, code.reference(**inputs), got, tolerance) == []


def test_the_header_of_a_port_names_its_licence_and_so_do_its_descendants(bench: Bench, run: Run, folder: Path) -> None:
    from kernelgen.records import to_text

    bench.generation("g1", state=4, pr=to_text(pull_request(licence="Apache-2.0\nimport os")))
    bench.promote(bench.verdict("g1", 1.25, state=4))
    bench.promoted("g2", 1.1)
    run("champion", "export", f"target={TARGET}", "to=port.py")
    text = (folder / "port.py").read_text()
    assert (
        "# licence: g1 is a port of example/kernels#7, Apache-2.0\\u000aimport os: keep that licence's notice" in text
    )
    assert "# line: naive <- g1 <- g2" in text
    assert "# hypothesis: Fewer bytes. Much fewer." in text
    assert "# measured with: gpu NVIDIA H200, triton 3.6.0, torch 2.11.0" in text


def test_what_cannot_stand_alone_or_is_there_already_is_refused_with_the_mend(
    bench: Bench, run: Run, folder: Path
) -> None:
    target = f"target={TARGET}"
    assert "to=" in run("champion", "export", target, code=2)["message"]
    assert "name a file that ends in .py" in run("champion", "export", target, "to=x.cu", code=2)["message"]
    assert (
        "is not one of module, vllm, sglang"
        in run("champion", "export", target, "to=x.py", "format=json", code=2)["message"]
    )
    (folder / "x.py").write_text("mine")
    assert "exists already" in run("champion", "export", target, "to=x.py", code=2)["message"]
    assert (folder / "x.py").read_text() == "mine"
    for line, why in (("import kernelgen.ids", "imports kernelgen"), ("X = AUTOTUNE_CONFIGS", "does not define it")):
        (folder / "own.py").write_text(f"{line}\n\n\ndef {TARGET}():\n    return ()\n")
        run("champion", "import", "own.py", target)
        assert why in run("champion", "export", target, "to=y.py", code=2)["message"]
    assert not (folder / "y.py").exists()


def test_a_cuda_champion_is_exported_as_source(bench: Bench, run: Run, folder: Path) -> None:
    source = '#include <cuda_runtime.h>\n__global__ void go() {}\nextern "C" int f() { go<<<1, 1>>>(); return 0; }\n'
    bench.generation("g1", state=3, hypothesis="It ends */ here.")
    bench.promote(bench.verdict("g1", 1.25, source=source, state=3))
    assert "python" not in run("champion", "export", f"target={TARGET}", "to=k.cu", text=True)
    text = (folder / "k.cu").read_text()
    assert text.startswith("/*\n * mla_decode_fp8")
    assert text.count("*/") == 1
    assert text.endswith(f"*/\n\n{source}")
    assert "adapts published kernels" in text


MOE = "moe_fp8_block"


def gemm(names: tuple[str, ...] = ("gate_up_kernel", "down_kernel"), rows: str = "") -> str:
    """A source whose table tunes its products by the three block sizes."""
    rows = rows or (
        "triton.Config({'BLOCK_M': 16, 'BLOCK_N': 128, 'BLOCK_K': 128, 'GROUP_M': 8}, num_warps=4, num_stages=3), "
        "triton.Config({'BLOCK_M': 64, 'BLOCK_N': 128, 'BLOCK_K': 64, 'GROUP_M': 1}, num_warps=8, num_stages=4)"
    )
    table = ", ".join(f"'{name}': [{rows}]" for name in names)
    kernels = "".join(
        f"@triton.autotune(configs=AUTOTUNE_CONFIGS['{name}'], key=['n'])\n@triton.jit\n"
        f"def {name}(x, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,\n"
        "             GROUP_M: tl.constexpr):\n    pass\n\n\n"
        for name in names
    )
    launches = "".join(f"    {name}[(1,)](x, 1)\n" for name in names)
    return (
        "import triton\nimport triton.language as tl\n\n"
        f"AUTOTUNE_CONFIGS = {{{table}}}\n\n\n{kernels}def {MOE}(x, *rest):\n{launches}    return (x,)\n"
    )


def chose(first: str, second: str, names: tuple[str, ...] = ("gate_up_kernel", "down_kernel")) -> Callable[[str], str]:
    """What the process says it chose: `first` below 1024 tokens for all, then `second` for all."""
    values = {
        "small": "BLOCK_M: 16, BLOCK_N: 128, BLOCK_K: 128, GROUP_M: 8, num_warps: 4, num_ctas: 1, num_stages: 3",
        "large": "BLOCK_M: 64, BLOCK_N: 128, BLOCK_K: 64, GROUP_M: 1, num_warps: 8, num_ctas: 1, num_stages: 4",
    }
    tail = ", maxnreg: None"
    return lambda shape: ", ".join(f"{n}[{values[second if 't1024' in shape else first]}{tail}]" for n in names)


SMALL = {
    "BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 8, "num_warps": 4, "num_stages": 3,
}  # fmt: skip
LARGE = {
    "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 1, "num_warps": 8, "num_stages": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("style", "name"),
    [
        ("vllm", "E=384,N=128,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json"),
        ("sglang", "E=384,N=128,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128, 128].json"),
    ],
)
def test_tuned_configurations_have_the_names_and_keys_that_the_engines_look_for(
    folder: Path, run: Run, style: str, name: str
) -> None:
    with EventLog.open(folder / "events.db") as log:
        Bench(folder, log, MOE).promoted("g1", source=gemm(), chosen=chose("small", "large"))
    record = run("champion", "export", f"target={MOE}", f"format={style}", "to=configs")
    assert len(record["files"]) == 3, "a file for each layout: TP16, TP8, EP8"
    assert json.loads((folder / "configs" / name).read_text()) == {"16": SMALL, "64": SMALL, "1024": LARGE}


def test_products_that_differ_get_a_second_file_for_sglang_and_are_refused_for_vllm(folder: Path, run: Run) -> None:
    first = "triton.Config({'BLOCK_M': 16, 'BLOCK_N': 64, 'BLOCK_K': 128}, num_warps=4, num_stages=3)"
    last = first.replace("'BLOCK_N': 64", "'BLOCK_N': 256")
    source = gemm(rows=first).replace(f"'down_kernel': [{first}]", f"'down_kernel': [{last}]")
    with EventLog.open(folder / "events.db") as log:
        Bench(folder, log, MOE).promoted("g1", source=source)
    refused = run("champion", "export", f"target={MOE}", "format=vllm", "to=a", code=2)["message"]
    assert "one configuration for both products, and gate_up_kernel and down_kernel differ" in refused
    files = run("champion", "export", f"target={MOE}", "format=sglang", "to=b")["files"]
    assert sum(name.endswith("_down.json") for name in files) == 3
    down = json.loads((folder / next(name for name in files if name.endswith("_down.json"))).read_text())
    assert {row["BLOCK_SIZE_N"] for row in down.values()} == {256}
    assert {row["GROUP_SIZE_M"] for row in down.values()} == {1}


def test_what_the_engines_cannot_load_is_refused_with_a_sentence(folder: Path, run: Run) -> None:
    def refusal(target: str) -> str:
        return str(run("champion", "export", f"target={target}", "format=vllm", "to=configs", code=2)["message"])

    with EventLog.open(folder / "events.db") as log:
        Bench(folder, log).promoted("g1")
        assert "loads configurations of fused MoE kernels, and mla_decode_fp8 is none" in refusal(TARGET)
        bench = Bench(folder, log, MOE)
        assert "was not promoted here" in refusal(MOE)
        bench.promoted("g2", source=kernel("own", entry=MOE))
        assert "No kernel of g2 is tuned by BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K" in refusal(MOE)
        bench.promoted("g3", source=gemm())
        assert "Which configuration of gate_up_kernel won at t1024_ep8 was not recorded" in refusal(MOE)
        bench.promoted("g4", source=gemm(), chosen=lambda shape: "gate_up_kernel[BLOCK_M: 999, num_warps: 4]")
        assert "was not recorded" in refusal(MOE), "a process may say what it likes; a row of the table it must be"
        odd = "triton.Config({'BLOCK_M': 16, 'BLOCK_N': 64, 'BLOCK_K': 128, 'SPLITS': 2}, num_warps=4)"
        bench.promoted("g5", source=gemm(rows=odd))
        assert "vllm has no key for SPLITS" in refusal(MOE)
    assert not (folder / "configs").exists()


def test_what_a_process_says_of_its_choice_is_read_in_tritons_form_alone() -> None:
    assert chosen_rows("a[BLOCK: 64, num_warps: 4], b[X: True]") == {
        "a": {"BLOCK": "64", "num_warps": "4"},
        "b": {"X": "True"},
    }
    assert chosen_rows("ignore all rules") == {}


def test_a_folder_is_asked_for_where_the_files_names_are_given(bench: Bench, run: Run) -> None:
    assert "name a folder" in run("champion", "export", f"target={MOE}", "format=vllm", "to=x.json", code=2)["message"]


def test_export_of_a_region_without_a_log_writes_the_naive_champion(folder: Path, run: Run) -> None:
    run("champion", "export", f"target={TARGET}", "to=naive.py")
    assert "champion: naive (naive), exported by kernelgen" in (folder / "naive.py").read_text()
    refused = run("champion", "export", "extra", f"target={TARGET}", "to=z.py", code=2)["message"]
    assert "does not know what to do with 'extra'" in refused
