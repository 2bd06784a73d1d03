"""Inputs that once broke a door, each kept as it was found, made small."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kernelgen import cli
from kernelgen.candidates import read_back
from kernelgen.errors import BadInput, LogError
from kernelgen.eventlog.store import EventLog
from kernelgen.events import RegionFrozen
from kernelgen.generation.inputs import read_parts, read_pull_request
from tests.fuzz.fuzz_texts import CANDIDATES

LONG = "x" * 300


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a log with three events, in the working folder."""
    monkeypatch.chdir(tmp_path)
    with EventLog.open(tmp_path / "events.db") as log:
        for number in range(3):
            log.append(RegionFrozen(target="t", hardware="h200", why=str(number)))
    return tmp_path / "events.db"


def changed(path: Path, statement: str) -> None:
    """Do to a database what kernelgen never does."""
    with sqlite3.connect(path) as db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            if not statement.startswith("INSERT"):
                db.execute(f"DROP TRIGGER {trigger}")
        db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    "words",
    [
        ["status", f"policy={LONG}"],
        ["status", "--config-dir", LONG],
        ["champion", "show", f"target={LONG}"],
        ["log", f"events={LONG}"],
        ["constraints", "list", f"constraints={LONG}"],
        ["log", "limit=²"],
        ["log", f"limit={'9' * 5000}"],
        ["constraints", "add", "severity=soft", "Small tiles.", "state=٣²"],
    ],
)
@pytest.mark.usefixtures("filled")
def test_words_no_file_or_number_can_have_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("noun", ["list", "seed", "select"])
def test_a_stray_word_makes_no_log(noun: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["constraints", noun, "stray"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_event_that_follows_nothing_does_not_move_the_head(filled: Path) -> None:
    changed(filled, "INSERT INTO events VALUES (4, 'e', 't', 'k', '{}', 'p', 'h')")
    head = filled.with_name("events.db.head").read_bytes()
    with pytest.raises(LogError, match="event 4 does not follow"):
        EventLog.open(filled)
    assert filled.with_name("events.db.head").read_bytes() == head


def test_a_log_without_its_table_or_its_number_is_the_users_to_mend(filled: Path) -> None:
    changed(filled, "DROP TABLE events")
    with EventLog.read(filled) as log, pytest.raises(LogError, match="has lost a part"):
        list(log.rows())
    changed(filled, "PRAGMA user_version = 0")
    for opened in (EventLog.open, EventLog.read):
        with pytest.raises(LogError, match="schema's number"):
            opened(filled)


def test_a_pull_request_number_in_other_digits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "change.diff"
    for number in ("²", "9" * 5000):
        path.write_text(f"Repository: a/b\nNumber: {number}\nLicence: MIT\n\n+x\n", encoding="utf-8")
        with pytest.raises(BadInput, match="not a number"):
            read_pull_request(path)


def test_a_reference_whose_name_holds_a_nul_is_refused(tmp_path: Path) -> None:
    from tests import factories

    path = tmp_path / "parts.yaml"
    path.write_text('targets: [a, b]\nreference: "c\\0.py"\n')
    with pytest.raises(BadInput, match="null byte"):
        read_parts(path, lambda name: factories.champion(target=name, origin="promoted"))


def test_a_candidate_whose_entry_point_was_changed_is_refused() -> None:
    with pytest.raises(BadInput, match="entry point is not a name"):
        read_back(CANDIDATES[0].replace("# entry point: ", "# entry point: \0", 1))


def test_a_kernel_nested_too_deep_is_refused(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = filled.with_name("deep.py")
    kernel.write_text("x = " + "-" * 100_000 + "1\n")
    assert cli.main(["champion", "import", str(kernel), "target=mla_decode_fp8"]) == 2
    assert "does not parse" in capsys.readouterr().err


def test_a_profile_whose_header_names_a_column_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    header = '"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value","Metric Name"\n'
    row = '"0","k","Speed","DRAM Frequency","Ghz","3.20"\n'
    (tmp_path / "p.csv").write_text(header + row)
    assert cli.main(["profile", "import", "p.csv", "target=mla_decode_fp8", "shape=b64_s4096_h64"]) == 2
    assert "'Metric Name' twice" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[" * 3000, "a: " + "[" * 3000 + "]" * 3000, f"a: {'9' * 5000}"])
def test_yaml_that_no_reader_can_take_is_refused_in_a_sentence(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts.yaml").write_text(text)
    with pytest.raises(BadInput, match="cannot be read as yaml"):
        read_parts(tmp_path / "parts.yaml", lambda target: None)
    folder = tmp_path / "mine" / "target"
    folder.mkdir(parents=True)
    (folder / "deep.yaml").write_text(text)
    assert cli.main(["generate", "target=deep", "--config-dir", "mine"]) == 2
    assert cli.main(["target", "list", "--config-dir", "mine"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_python_that_warns_while_it_is_parsed_prints_no_second_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text("return 8inputs['q'],)\n")
    assert cli.main(["champion", "import", "k.py", "target=mla_decode_fp8"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_message_that_quotes_a_line_break_is_one_line() -> None:
    assert str(BadInput("key 'a\nb' and\r\n'c\x85d'")) == "key 'a b' and 'c d'"


def test_a_log_whose_columns_hold_no_texts_is_told_by_verify(filled: Path) -> None:
    with sqlite3.connect(filled) as db:
        db.execute("PRAGMA writable_schema=ON")
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute(
            "UPDATE sqlite_master SET sql = replace(replace(sql, 'NOT NULL', ''), 'STRICT', '') WHERE name = 'events'"
        )
    db.close()
    with sqlite3.connect(filled) as db:
        db.execute("PRAGMA ignore_check_constraints=ON")
        db.execute("UPDATE events SET payload = NULL, time = x'00' WHERE seq = 2")
    db.close()
    with EventLog.read(filled) as log:
        assert any("2" in problem for problem in log.verify().problems)
        with pytest.raises(LogError):
            list(log.rows())


def test_a_log_whose_texts_are_no_utf_8_is_damaged_and_kernelgen_is_not(filled: Path) -> None:
    with sqlite3.connect(filled) as db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute("UPDATE events SET time = CAST(x'ff' AS TEXT) WHERE seq = 2")
    db.close()
    with EventLog.read(filled) as log:
        assert log.verify().problems
        with pytest.raises(LogError, match="put back a copy"):
            list(log.rows())


@pytest.mark.parametrize("words", [["log", "target=\udce9"], ["log", "show", "\udce9"], ["replay", "\udce9"]])
@pytest.mark.usefixtures("filled")
def test_words_that_are_no_text_are_not_looked_for_in_the_log(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
