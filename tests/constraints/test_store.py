"""The file is append-only, and file and log always agree."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
from pathlib import Path

import pytest
from constraint_makers import made

from kernelgen.constraints.book import ConstraintBook
from kernelgen.constraints.lines import line_text, read_line
from kernelgen.constraints.store import ConstraintFile, reconcile
from kernelgen.errors import ConstraintError
from kernelgen.events import EVENT, ConstraintAdded, ConstraintRetracted
from kernelgen.ids import digest_text
from kernelgen.records import Retraction


class FileLog:
    """A log that several processes can share: one event a line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def constraint_rows(self):
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        for number, line in enumerate(lines):
            event = EVENT.validate_json(line)
            assert isinstance(event, ConstraintAdded | ConstraintRetracted)
            yield f"e{number}", event

    def append_all(self, events):
        with self.path.open("a") as out:
            out.writelines(event.model_dump_json() + "\n" for event in events)

    def ids(self):
        events = [event for _, event in self.constraint_rows()]
        return [e.constraint.id if isinstance(e, ConstraintAdded) else e.retraction.id for e in events]


@pytest.fixture
def file(tmp_path):
    return ConstraintFile(tmp_path / "constraints.jsonl")


@pytest.fixture
def log(tmp_path):
    return FileLog(tmp_path / "log.jsonl")


def ids_in(file):
    return [line.record.id for line in file.read()]


def test_a_missing_file_is_an_empty_book_and_is_not_made(file, log):
    assert file.read() == []
    assert reconcile(file, log).all == ()
    file.append([])
    assert not file.path.exists()


def test_append_keeps_what_is_there_and_mends_the_last_line_end(file):
    file.path.write_bytes(
        b'\r\n{"id": "a", "severity": "soft", "statement": "x"}\r\n\n{"severity":"hard","statement":"y"}'
    )
    before = file.path.read_bytes()
    file.append([made("b")])
    assert file.path.read_bytes() == before + b"\n" + line_text(made("b")).encode() + b"\n"
    assert [line.number for line in file.read()] == [2, 4, 5]


def test_what_is_there_already_is_not_added_again(file):
    file.append([made("a"), made("b")])
    before = file.path.read_bytes()
    file.append([made("b"), made("a")])
    assert file.path.read_bytes() == before


def test_an_id_with_other_content_is_refused_and_nothing_is_written(file):
    file.append([made("a")])
    before = file.path.read_bytes()
    with pytest.raises(ConstraintError, match=r"constraints.jsonl:1: the id 'a' is taken"):
        file.append([made("b"), made("a", statement="Other")])
    assert file.path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"severity": "soft", "statement": "x"}\n{"severity"\n', r"constraints.jsonl:2: this is not JSON"),
        (b'{"severity": "soft", "statement": "\xff"}\n', r"constraints.jsonl:1: byte 36 is not UTF-8"),
        (
            b'{"id": "a", "severity": "soft", "statement": "x"}\n\n{"id": "a", "severity": "hard", "statement": "x"}',
            r"constraints.jsonl:3: line 1 has the id 'a' too",
        ),
    ],
)
def test_a_broken_line_names_file_and_line_and_loses_nothing(file, log, content, said):
    file.path.write_bytes(content)
    for act in (file.read, lambda: file.append([made("n")]), lambda: reconcile(file, log)):
        with pytest.raises(ConstraintError, match=said):
            act()
    assert file.path.read_bytes() == content
    assert log.ids() == []


def test_a_byte_order_mark_and_an_exact_repetition_are_allowed(file):
    line = line_text(made("a")).encode()
    file.path.write_bytes(b"\xef\xbb\xbf" + line + b"\n" + line + b"\n")
    assert ids_in(file) == ["a"]


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path, log):
    folder = ConstraintFile(tmp_path)
    with pytest.raises(ConstraintError, match="cannot be written"):
        folder.append([made("a")])
    with pytest.raises(ConstraintError, match="cannot be read"):
        folder.read()
    with pytest.raises(ConstraintError, match=r"cannot be written.*No such file"):
        ConstraintFile(tmp_path / "none" / "constraints.jsonl").append([made("a")])


def test_a_read_only_file_can_be_used_and_not_added_to(file, log, monkeypatch):
    file.append([made("a")])
    honest = os.open

    def read_only(path, flags, mode=0o777):
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return honest(path, flags, mode)

    # by permissions alone root could still write
    monkeypatch.setattr("os.open", read_only)
    assert [c.id for c in reconcile(file, log).active] == ["a"]
    with pytest.raises(ConstraintError, match=r"cannot be written .Permission denied"):
        file.append([made("b")])


def test_a_write_that_stops_short_leaves_the_file_as_it_was(file, monkeypatch):
    file.append([made("a")])
    before, write = file.path.read_bytes(), os.write
    monkeypatch.setattr("os.write", lambda descriptor, data: write(descriptor, data[:10]))
    with pytest.raises(ConstraintError, match=r"10 of .* bytes written"):
        file.append([made("b")])
    assert file.path.read_bytes() == before


def test_every_line_enters_the_log_once_with_its_texts_digest(file, log):
    text = '{"severity":"soft",   "statement": "By hand."}'
    file.path.write_text(text + "\n")
    file.append([made("a"), Retraction(id="r1", retracts="a", why="Wrong.")])
    book = reconcile(file, log)
    events = [event for _, event in log.constraint_rows()]
    assert [event.line for event in events] == [digest_text(line.text) for line in file.read()]
    assert events[0].line == digest_text(text)
    assert [c.statement for c in book.active] == ["By hand."]
    reconcile(file, log)
    assert len(log.ids()) == 3


def test_what_only_the_log_has_is_appended_to_the_file_again(file, log):
    retraction = Retraction(id="r1", retracts="a", why="Wrong.")
    file.append([made("a"), made("b"), retraction])
    reconcile(file, log)
    file.path.write_text(line_text(retraction) + "\n" + line_text(made("c")) + "\n")
    book = reconcile(file, log)
    assert ids_in(file) == ["r1", "c", "a", "b"]
    assert log.ids() == ["a", "b", "r1", "c"]
    assert [c.id for c in book.active] == ["c", "b"]
    file.path.unlink()
    assert [c.id for c in reconcile(file, log).active] == ["b", "c"]
    assert ids_in(file) == ["a", "b", "r1", "c"]


def test_a_line_edited_in_place_is_named_with_the_mend(file, log):
    file.append([made("a"), made("b")])
    reconcile(file, log)
    file.path.write_text(file.path.read_text().replace("Rule of b", "Rule of me"))
    edited = file.path.read_bytes()
    with pytest.raises(ConstraintError, match=r"constraints.jsonl:2: 'b' was edited.*undo the edit, or retract it"):
        reconcile(file, log)
    assert file.path.read_bytes() == edited
    assert len(log.ids()) == 2


def test_a_retraction_of_nothing_is_refused_before_anything_is_written(file, log):
    file.append([made("abcd"), Retraction(id="r1", retracts="abce", why="Wrong.")])
    with pytest.raises(ConstraintError, match=r"r1 retracts 'abce'.*did you mean 'abcd'"):
        reconcile(file, log)
    assert log.ids() == []


def _reconcile_often(path: Path, log_path: Path, name: str) -> None:
    file, log = ConstraintFile(path), FileLog(log_path)
    for number in range(5):
        file.append([made(f"{name}{number}"), made(f"shared{number}")])
        reconcile(file, log)


def test_processes_side_by_side_add_everything_once(file, log):
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_reconcile_often, args=(file.path, log.path, name)) for name in ("x", "y")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    expected = sorted(f"{name}{number}" for name in ("x", "y", "shared") for number in range(5))
    assert sorted(log.ids()) == sorted(read_line(text).id for text in file.path.read_text().splitlines()) == expected


def test_a_file_put_in_place_of_the_locked_one_is_locked_instead(file, monkeypatch):
    file.append([made("a")])
    calls = []

    def replace_once(descriptor, operation):
        if not calls:
            replacement = file.path.with_suffix(".new")
            replacement.write_text(line_text(made("b")) + "\n")
            replacement.replace(file.path)
        calls.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr("fcntl.flock", replace_once)
    with file.locked(create=False) as held:
        assert held
    assert calls[-1] == file.path.stat().st_ino != calls[0]


def test_the_book_knows_active_and_retracted():
    retraction = Retraction(id="r1", retracts="a", why="Wrong.")
    book = ConstraintBook([retraction, made("a"), made("b")])
    assert [c.id for c in book.all] == ["a", "b"]
    assert book.active == (made("b"),)
    assert book.get("a") == made("a")
    assert (book.retraction("a"), book.retraction("b")) == (retraction, None)
    assert book.retractions == (retraction,)
    assert book.index() is book.index()


def test_an_unknown_id_names_the_nearest_and_never_a_long_list():
    with pytest.raises(ConstraintError, match="no constraint 'h200_shred'; did you mean 'h200_shared'"):
        ConstraintBook([made("h200_shared"), made("h200_l2")]).get("h200_shred")
    many = ConstraintBook([made(f"c{n}") for n in range(1000)])
    with pytest.raises(ConstraintError, match=r"did you mean 'c(12|1|2|123)"):
        many.get("c12x")
    with pytest.raises(ConstraintError, match="constraints list --all` shows them"):
        many.get("zzzz")


def test_a_line_is_plain_json_for_other_tools(file):
    file.append([made("a", rule="num_warps <= 8")])
    assert json.loads(file.path.read_text()) == {
        "id": "a", "severity": "hard", "statement": "Rule of a", "rule": "num_warps <= 8",
    }  # fmt: skip
