"""`kernelgen prune` tries a space, keeps what it found, and goes on from it after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from kernelgen.door import prune
from kernelgen.errors import BadInput, ConfigError

SPACE = {"combine_kernel": {"BLOCK_H": [1024, 1536], "num_warps": [4, 8], "num_stages": [2]}}
RUN = "import sys; from kernelgen.door import prune; sys.exit(prune.run(sys.argv[1:]))"


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pruned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and record."""
    code = prune.run(["prune", "target=moe_combine", *arguments, "--json"])
    said = capsys.readouterr()
    assert said.err == ""  # no progress where there is no terminal
    return code, json.loads(said.out)


def test_a_space_of_values_to_combine_is_tried_kept_and_not_tried_again(capsys, tmp_path: Path) -> None:
    (tmp_path / "space.json").write_text(json.dumps(SPACE))
    code, record = pruned(capsys, "space=space.json", "out=kept.jsonl")
    assert code == 0
    found = {(one["config"]["kwargs"]["BLOCK_H"], one["config"]["num_warps"]): one for one in record["configs"]}
    assert {size for (size, _), one in found.items() if one["runs"]} == {1024}
    assert found[1536, 4]["check"] == "compile.block_shape"
    assert found[1024, 4]["registers"] > 0
    kept = (tmp_path / "kept.jsonl").read_text().splitlines()
    assert len(kept) == 4
    # a kill cut the last line short: that configuration alone is tried again
    (tmp_path / "kept.jsonl").write_text("\n".join(kept)[:-20])
    assert pruned(capsys, "space=space.json", "out=kept.jsonl")[1]["kernels_without"] == []
    lines = (tmp_path / "kept.jsonl").read_text().splitlines()
    assert lines[:3] == kept[:3]
    assert [json.loads(line)["config"] for line in lines[4:]] == [json.loads(kept[3])["config"]]


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    space = {"combine_kernel": {"BLOCK_H": [512, 1024, 2048, 4096], "num_warps": [2, 4, 8]}}
    (tmp_path / "space.json").write_text(json.dumps(space))
    kept = tmp_path / "prune.jsonl"
    command = [sys.executable, "-c", RUN, "prune", "target=moe_combine", "space=space.json", "--json"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (not kept.exists() or kept.read_bytes().count(b"\n") < 3):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = kept.read_bytes().splitlines()
    assert 3 <= len(before) < 12
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["configs"]) == 12
    after = kept.read_bytes().splitlines()
    assert after[: len(before)] == before
    assert len({json.loads(line)["key"] for line in after}) == 12


def test_a_kernel_left_without_a_configuration_ends_with_1_and_a_reason(capsys, tmp_path: Path) -> None:
    (tmp_path / "space.json").write_text('{"combine_kernel": [{"kwargs": {"BLOCK_H": 1000}}]}')
    assert prune.run(["prune", "target=moe_combine", "space=space.json"]) == 1
    said = capsys.readouterr().out
    assert "0 of 1 configurations can run" in said
    assert "compile.block_shape" in said
    assert "arange's range must be a power of 2" in said
    assert "without a configuration that can run: combine_kernel" in said


def test_a_users_file_is_tried_in_its_own_configurations_and_those_next_to_them(capsys, tmp_path: Path) -> None:
    source = (Path(prune.__file__).parents[1] / "targets" / "champions" / "moe_combine.py").read_text()
    (tmp_path / "mine.py").write_text(source.replace("1024", "256"))
    code, record = pruned(capsys, "file=mine.py")
    assert code == 0
    sizes = {one["config"]["kwargs"]["BLOCK_H"] for one in record["configs"]}
    assert {128, 256, 512} <= sizes
    assert record["file"] == "mine.py"


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        ("[]", "holds no kernels"),
        ("{}", "holds no configuration"),
        ("{", "is not JSON"),
        ('{"k": 3}', "neither a list of configurations nor values"),
        ('{"k": [{"BLOCK": 3}]}', "is no configuration"),
        ('{"k": [{"kwargs": {"BLOCK": [3]}}]}', "are no compile-time arguments"),
        ('{"k": [{"kwargs": {}, "num_warps": 0}]}', "whole numbers above 0"),
    ],
)
def test_a_space_of_another_form_is_one_sentence(tmp_path: Path, space: str, sentence: str) -> None:
    (tmp_path / "space.json").write_text(space)
    with pytest.raises(BadInput, match=sentence):
        prune.run(["prune", "target=moe_combine", "space=space.json"])
    assert not (tmp_path / "prune.jsonl").exists()


def test_what_cannot_be_pruned_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="needs target="):
        prune.run(["prune"])
    with pytest.raises(ConfigError, match="There is no target 'moe_combin'"):
        prune.run(["prune", "target=moe_combin"])
    with pytest.raises(BadInput, match=r"absent\.json"):
        prune.run(["prune", "target=moe_combine", "space=absent.json"])
    (tmp_path / "mine.cu").write_text('extern "C" int moe_combine(void* stream) { return 0; }')
    with pytest.raises(BadInput, match="only Triton's kernels"):
        prune.run(["prune", "target=moe_combine", "file=mine.cu"])
