"""`kernelgen target`: the list is fast and whole, targets go by their other names, bad input ends in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernelgen import cli
from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.door import compose
from kernelgen.errors import ConfigError

CONF = Path(__file__).parents[2] / "conf" / "target"


def test_the_list_names_every_target_with_its_other_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["target", "list", "--json"]) == 0
    targets = {target["name"]: target for target in json.loads(capsys.readouterr().out)["targets"]}
    assert sorted(targets) == sorted(path.stem for path in CONF.glob("*.yaml") if path.stem != "auto")
    assert targets["add_rmsnorm_fp8_g128"]["aliases"] == ["fused_add_rmsnorm_h7168"]
    assert all(target["calls_per_step"] in (60, 61, 121) for target in targets.values())


def test_the_list_loads_nothing_heavy() -> None:
    code = (
        "import sys; from kernelgen.cli import main; main(['target', 'list', '--json'])\n"
        "heavy = {'torch', 'dspy', 'hydra', 'omegaconf', 'pydantic', 'sqlite_utils'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_target_is_shown_by_another_name_with_its_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["target", "show", "fused_add_rmsnorm_h7168", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["name"] == "add_rmsnorm_fp8_g128"
    # 7TH + TH/32 bytes, the weight aside, at 4.26 TB/s
    assert record["costs"]["t8192"]["floor_us"] == pytest.approx(8192 * 7168 * (7 + 1 / 32) / 4.26e12 * 1e6, rel=1e-3)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("target=fused_add_rmsnorm_h7168", "target=add_rmsnorm_fp8_g128"),
        ("target=moe_dispatch_384expert,fused_add_rmsnorm_h7168", "target=moe_dispatch_384expert,add_rmsnorm_fp8_g128"),
        ("target=auto", "target=auto"),
        ("target=no_such", "target=no_such"),
        ("state=0", "state=0"),
    ],
)
def test_generate_takes_a_target_by_another_name(override: str, expected: str) -> None:
    assert compose.typed_overrides([override], []) == [expected]


def test_two_targets_with_one_other_name_are_told_apart_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    text = (CONF / "add_rmsnorm_fp8_g128.yaml").read_text(encoding="utf-8")
    (tmp_path / "target" / "mine.yaml").write_text(text.replace("name: add_rmsnorm_fp8_g128", "name: mine"))
    with pytest.raises(ConfigError, match="is another name of add_rmsnorm_fp8_g128 and of mine; say which"):
        Catalog([shipped_conf(), tmp_path]).locate("target", "fused_add_rmsnorm_h7168")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "mla_decode_fp9"], "There is no target 'mla_decode_fp9'; did you mean 'mla_decode_fp8'?"),
        (["check"], "kernelgen target check needs a target, or --all,"),
        (["chek"], "kernelgen target has no 'chek'; did you mean 'check'?"),
        (["check", "--all", "mla_decode_fp8"], "does not know what to do with 'mla_decode_fp8'"),
        (["list", "--config-dir", "nowhere"], "--config-dir nowhere is not a folder."),
    ],
)
def test_bad_input_ends_in_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["target", *arguments]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_a_yaml_without_a_needed_key_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "mine.yaml").write_text("name: mine\ntitle: T\nshapes: {tune: {}}\n")
    assert cli.main(["target", "list", "--config-dir", str(tmp_path)]) == 2
    assert "mine.yaml.calls_per_step is missing: add it." in capsys.readouterr().err
