"""`kernelgen profile run`: one sentence without a GPU; what profilers leave is imported, and what they refuse is told.

Profilers are stood in for by programs that leave real recordings of an H200.
"""

from __future__ import annotations

import json
import lzma
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelgen import cli
from kernelgen.campaign import profiling, recording
from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ProfileImported
from kernelgen.generation import region
from kernelgen.ladder.profiling import Order, naive_order
from kernelgen.ladder.profiling import main as recorder
from tests.campaign.campaign_desk import ROOT, TARGET, Desk

EXAMPLES = ROOT / "examples" / "profiles"
RECORDER = f"""
import shutil, sys
out = sys.argv[sys.argv.index("--out") + 1]
shutil.copy({str(EXAMPLES / "champion_t64.torch_trace.json")!r}, out)
"""
NCU = """#!{python}
import shutil, sys
arguments = sys.argv[1:]
if "--import" in arguments:
    print(open({page!r}).read())
elif {permitted}:
    assert arguments[arguments.index("--clock-control") + 1] == "none"
    open(arguments[arguments.index("-o") + 1] + ".ncu-rep", "w").close()
else:
    print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")
    sys.exit(1)
"""


@pytest.fixture
def recorded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk where a GPU seems to be, and the recorder leaves the trace of a real one."""
    (desk.folder / "stand_in_recorder.py").write_text(RECORDER)
    monkeypatch.setenv("PYTHONPATH", str(desk.folder))
    monkeypatch.setattr(recording, "RECORDER", "stand_in_recorder")
    monkeypatch.setattr(profiling, "gpu_is_here", lambda: True)
    return desk


def stand_in_ncu(folder: Path, monkeypatch: pytest.MonkeyPatch, *, permitted: bool) -> None:
    page = folder / "page.csv"
    page.write_bytes(lzma.decompress((EXAMPLES / "champion_t64.ncu_raw.csv.xz").read_bytes()))
    path = folder / "bin" / "ncu"
    path.parent.mkdir()
    path.write_text(NCU.format(python=sys.executable, page=str(page), permitted=permitted))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")


def run(desk: Desk, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.main(["profile", "run", TARGET, "shape=t16", *arguments, *desk.places(), "--json"]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


def test_without_a_gpu_it_is_one_sentence(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    if profiling.gpu_is_here():
        pytest.skip("there is a GPU here")
    before = len(desk.events(ProfileImported))
    assert cli.main(["profile", "run", TARGET, *desk.places()]) == 2
    assert "there is no NVIDIA GPU here" in capsys.readouterr().err
    assert recorder([TARGET, "T=16", "--with", "torch", "--out", "x.json"]) == 2
    assert len(desk.events(ProfileImported)) == before


def test_a_trace_alone_is_imported_and_says_that_there_are_no_counters(
    recorded: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    told = run(recorded, capsys, f"to={recorded.folder / 'kept'}")
    (profile,) = told["profiles"]
    assert profile["subject"].startswith("champion naive: ")
    assert profile["floor_us"] > 0
    assert told["notes"] == ["no counters: ncu is not on PATH"]
    assert Path(told["files"][0]).read_text() == (EXAMPLES / "champion_t64.torch_trace.json").read_text()


def test_counters_come_from_ncu_and_are_what_the_next_prompt_tells(
    recorded: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_ncu(recorded.folder, monkeypatch, permitted=True)
    trace, counted = run(recorded, capsys)["profiles"]
    assert trace["dram_percent"] is None
    assert counted["dram_percent"] > 0
    with EventLog.read(recorded.log) as log:
        latest = region.latest_profile(log, TARGET, "h200", None)
    assert latest is not None
    assert latest.id == counted["id"]


def test_counters_for_administrators_alone_are_a_note(
    recorded: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_ncu(recorded.folder, monkeypatch, permitted=False)
    told = run(recorded, capsys)
    assert len(told["profiles"]) == 1
    assert "only administrators" in told["notes"][0]


def test_a_candidate_is_profiled_once_it_passed_and_never_taken_for_the_champion(
    recorded: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.command("generate", f"target={TARGET}", "state=1", "judge=none")
    with EventLog.read(recorded.log) as log:
        generated = next(row.event for row in log.rows(kinds=("candidate_generated",)))
    name = generated.iteration_id  # type: ignore[union-attr]
    assert cli.main(["profile", "run", TARGET, f"what={name}", *recorded.places()]) == 2
    assert "no verdict that passed L2" in capsys.readouterr().err
    mine = recorded.folder / "mine.py"
    mine.write_text(naive_order(TARGET, {"T": 16}).source)
    told = run(recorded, capsys, f"what={mine}", "counters=off")
    assert told["profiles"][0]["subject"].endswith(f"candidate {mine}")
    assert told["profiles"][0]["subject_source_digest"] is None


def test_a_campaign_profiles_a_champion_once(recorded: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    catalog = Catalog([shipped_conf()])
    target, located = catalog.target(TARGET)
    refresh = profiling.Refresher(profiling.Place(target, located.folder, catalog.hardware("h200"), "t16"))
    with EventLog.open(recorded.log) as log:
        assert "profiled naive at t16" in str(refresh(log))
        assert refresh(log) is None
        assert (
            profiling.Refresher(profiling.Place(target, located.folder, catalog.hardware("h200"), "t16"))(log) is None
        )


def test_an_order_survives_its_file_and_a_wrong_one_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = Order("m", None, "s", "cuda", "e", {"T": 1}, "plain", (("out", "float32", ["T", 8]),))
    assert json.loads(order.as_text())["outputs"] == [["out", "float32", ["T", 8]]]
    (tmp_path / "order.json").write_text("{}")
    assert recorder(["--order", str(tmp_path / "order.json"), "--with", "torch"]) == 2
    assert "is no order to profile a kernel" in capsys.readouterr().err
    with pytest.raises(BadInput):
        naive_order("no_such_target", {})
