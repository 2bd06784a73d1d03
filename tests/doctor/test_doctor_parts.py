"""The doctor's parts: what follows from what was found, what is said of it, and what is kept out of it."""

from __future__ import annotations

import json
import platform
import re
import socket
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kernelgen import cli
from kernelgen.doctor import children, facts, levels, models, needs, packages, places, privacy
from kernelgen.doctor.asking import Question, Told
from kernelgen.doctor.combinations import findings
from kernelgen.doctor.gpus import Driver, Gpu, Known
from kernelgen.eventlog.connection import OLDEST_SQLITE
from kernelgen.lm.secrets import shown_variable

ROOT = Path(__file__).resolve().parents[2]
H200 = Gpu("NVIDIA H200", 140.4, 90, "580.95.05")


def machine(**answers: Any) -> facts.Facts:
    """A machine of which only this was found out."""
    unknown = dict.fromkeys(facts.Facts.__dataclass_fields__, Told[Any](None, "not asked"))
    return facts.Facts(**{**unknown, **{name: Told(value) for name, value in answers.items()}})


def test_a_version_that_is_not_wanted_is_named_with_the_one_that_is() -> None:
    old = packages.Package("dspy", "3.1.0", ">=3.4.1,<3.5", "kernelgen wants >=3.4.1,<3.5")
    assert machine(core=[old]).core_problems() == ["dspy 3.1.0: kernelgen wants >=3.4.1,<3.5"]
    first, *_ = needs.missing(machine(core=[old]), levels.table(frozenset()))
    assert first.install == "pip install 'dspy>=3.4.1,<3.5'"


def test_in_a_source_tree_the_whole_package_is_to_install() -> None:
    absent = packages.Package("dspy", None, None, packages.NOT_INSTALLED)
    first, *_ = needs.missing(machine(core=[absent]), levels.table(frozenset()))
    assert (first.what, first.install) == ("dspy", "pip install kernelgen")


def test_a_gpu_of_the_same_architecture_alone_fits_no_hardware() -> None:
    configs = (Known("h100", 90), Known("h200", 90), Known("a100", 80))
    fits = {
        name: facts.fitted(Gpu(name, None, 90), configs).hardware
        for name in ("NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA GH200 480GB", "NVIDIA A100-SXM4-80GB")
    }
    assert fits == {
        "NVIDIA H100 80GB HBM3": "h100", "NVIDIA H200": "h200", "NVIDIA GH200 480GB": None,
        "NVIDIA A100-SXM4-80GB": None,
    }  # fmt: skip


def test_a_listener_that_takes_no_connection_is_not_waited_for() -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as server,
        socket.socket() as first,
        socket.socket() as second,
    ):
        for filling in (first, second):
            filling.setblocking(False)
            filling.connect_ex(server.getsockname())
        started = time.monotonic()
        models._listens("127.0.0.1", server.getsockname()[1])
        assert time.monotonic() - started < 2 * models.CONNECT_S


def test_names_within_words_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.setattr(platform, "node", lambda: "gpu7")
    privacy._patterns.cache_clear()
    try:
        text = "annotated /home/ann/x /home/anna/x /data/ann/y on gpu7, gpu70 and gpu7.example"
        assert privacy.shown(text) == "annotated ~/x /home/anna/x /data/USER/y on HOST, gpu70 and HOST.example"
    finally:
        privacy._patterns.cache_clear()


def test_the_event_log_is_told_by_its_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    events = tmp_path / "events.db"
    monkeypatch.chdir(tmp_path)

    def log() -> places.Log:
        return places.event_log(events)

    assert log() == places.Log("events.db", None, None, None, None)
    given = [f"events={events}", f"constraints={tmp_path / 'constraints.jsonl'}"]
    assert cli.main(["constraints", "seed", "hardware=h200", *given]) == 0
    capfd.readouterr()
    seeded = log()
    assert seeded.whole
    assert seeded.events == len((tmp_path / "constraints.jsonl").read_text().splitlines())
    head = events.with_name("events.db.head")
    kept = head.read_text()
    head.write_text(f"{seeded.events + 2:020d} {kept.split()[1]}\n")
    cut = log()
    assert not cut.whole
    assert "was cut" in (cut.problem or "")
    head.write_text(kept)
    events.unlink()
    assert log().problem == f"it is gone, and its head counts {seeded.events} events; put back a copy"
    head.unlink()
    events.write_text("another program's file")
    assert log().problem == "events.db is not a SQLite database; name another file with events=PATH"


def test_a_question_that_breaks_or_hangs_is_answered_with_a_reason() -> None:
    def breaks() -> int:
        raise RuntimeError("no such\nthing")

    def leaves() -> int:
        raise SystemExit(3)

    deadline = time.monotonic() + 0.3
    asked = [Question(breaks), Question(leaves), Question(lambda: time.sleep(3)), Question(lambda: 7)]
    answers = [question.answer(deadline) for question in asked]
    assert [told.why_not for told in answers] == [
        "RuntimeError: no such thing",
        "SystemExit: 3",
        "no answer in time",
        None,
    ]
    assert answers[3].value == 7


@pytest.mark.parametrize(
    ("have", "can"),
    [
        (set(), ["L0"]),
        ({"torch", "triton", "numpy"}, ["L0", "L2 as a logic check (triton)"]),
        ({"torch", "triton", "numpy", "ptxas", "cuobjdump"}, ["L0", "L1 (triton)", "L2 as a logic check (triton)"]),
        ({"torch", "nvcc", "g++", "cuobjdump", levels.GPU}, ["L0", "L1 (cuda)", "L2 (cuda)"]),
        (
            {"torch", "triton", "tilelang", "numpy", "ptxas", "cuobjdump", "nvcc", "g++", "a C compiler", levels.GPU},
            ["L0", "L1", "L2"],
        ),
    ],
)
def test_what_can_be_judged_follows_from_what_is_here(have: set[str], can: list[str]) -> None:
    assert levels.abilities(levels.table(frozenset(have))) == can


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"optional": {"triton": "3.6.0", "numpy": "2.5.2"}}, "Triton 3.6.0's interpreter fails under numpy 2.5.2"),
        (
            {"optional": {"torch": "2.13.0+cpu"}, "torch_build": ("CPU build", None), "listed": (H200,)},
            "There is a GPU, and torch is a CPU build",
        ),
        (
            {
                "optional": {"torch": "2.11.0"}, "torch_build": ("CUDA 13.0 build", (13, 0)), "listed": (H200,),
                "driver": Driver((12, 8), (H200,), None),
            },
            "The GPU's driver takes CUDA 12.8 and torch is built for CUDA 13.0",
        ),
        (
            {"listed": (H200,), "driver": Driver((13, 0), (), "the driver answers: system not yet initialized")},
            "no CUDA program can open it: the driver answers: system not yet initialized",
        ),
        ({"listed": (Gpu("NVIDIA H200", 140.4, 90, mig="Enabled"),)}, "MIG splits a GPU here"),
        ({"containment": {"broken": ["no network (seccomp: refused)"]}}, "be contained here: no network (seccomp"),
        ({"free_gib": 0.2}, "has 0.2 GiB left"),
    ],
)  # fmt: skip
def test_a_bad_combination_is_said_in_a_sentence(answers: dict[str, Any], sentence: str) -> None:
    (finding,) = findings(machine(**answers))
    assert sentence in finding.sentence
    assert finding.sentence.endswith(".")


@pytest.mark.parametrize(
    "optional", [{"triton": "3.6.0", "numpy": "2.3.5"}, {"triton": "3.7.1", "numpy": "2.5.2"}, {"triton": "nightly"}]
)
def test_a_good_combination_is_not_mentioned(optional: dict[str, str]) -> None:
    assert findings(machine(optional=optional)) == []


def test_a_gpu_can_be_used_where_build_and_driver_agree() -> None:
    fine = {"optional": {"torch": "2.11.0"}, "torch_build": ("CUDA 13.0 build", (13, 0)), "listed": (H200,)}
    assert machine(**fine, driver=Driver((13, 1), (H200,), None)).no_gpu() is None
    assert machine(**fine, driver=Driver((12, 8), (H200,), None)).no_gpu() == "the driver takes CUDA 12 at most"
    assert machine(**fine, driver=Driver((13, 1), (), None)).no_gpu() == "the driver shows none to this process"
    assert machine().no_gpu() == "no GPU here"


def installed(folder: Path, name: str, version: str, *requirements: str) -> None:
    """A package as pip leaves it, without its code."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {r}" for r in requirements)]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


def test_a_pin_that_is_not_kept_is_said_by_who_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "torch", "2.11.0", "triton==3.6.0; platform_system == 'Linux'", "nothing==1; extra == 'none'")
    installed(tmp_path, "triton", "3.9.0")
    installed(tmp_path, "tilelang", "0.1.15", "apache-tvm-ffi<0.1.13,>=0.1.11", "z3-solver<4.15.5,>=4.13.0")
    installed(tmp_path, "apache-tvm-ffi", "0.1.14")
    installed(tmp_path, "z3-solver", "4.15.4.0")
    monkeypatch.syspath_prepend(tmp_path)
    assert packages.unmet(["torch", "triton", "tilelang", "is-not-here"]) == [
        "torch 2.11.0 wants triton==3.6.0 (here is 3.9.0).",
        "tilelang 0.1.15 wants apache-tvm-ffi<0.1.13,>=0.1.11 (here is 0.1.14).",
    ]


@pytest.mark.parametrize(
    ("cuda", "build"),
    [("'13.0'", ("CUDA 13.0 build", (13, 0))), ("'12'", ("CUDA 12 build", (12, 0))), ("None", ("CPU build", None))],
)
def test_torchs_build_is_read_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuda: str, build: tuple[str, Any]
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    constants = f"__version__ = '2.11.0'\ncuda: Optional[str] = {cuda}\nhip: Optional[str] = None\n"
    (tmp_path / "torch" / "version.py").write_text(f"from typing import Optional\n{constants}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert packages.torch_build() == build


def test_what_is_written_twice_is_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.match(r"[\w-]+", text)[0] for text in project["dependencies"]}  # type: ignore[index]
    assert set(packages.CORE) == named
    (oldest, first_not) = [
        tuple(map(int, text.split("."))) for text in re.findall(r"3\.\d+", project["requires-python"])
    ]
    assert (oldest, first_not) == facts.PYTHONS
    assert facts.OLDEST_SQLITE == OLDEST_SQLITE
    for name in ("OPENAI_API_KEY", "sk-live-1", "A" * 65, "lower_case"):
        assert (models._VARIABLE.fullmatch(name) is not None) == (shown_variable(name) == name)


def test_a_child_that_dies_midway_has_left_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies() -> Any:
        yield {"first": 1}
        raise RuntimeError("gone")

    monkeypatch.setitem(children.KINDS, "dies", dies)
    record = tmp_path / "record.json"
    with pytest.raises(RuntimeError):
        children.main(["dies", str(record)])
    assert json.loads(record.read_text()) == {"first": 1}
