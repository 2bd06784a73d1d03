"""The grammar of the command line: nouns, keys, flags, and what is said of anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgen import cli
from kernelgen.door.arguments import Grammar, parse
from kernelgen.errors import BadInput

GRAMMAR = Grammar(
    nouns=("list", "add"),
    default_noun="list",
    keys=("severity",),
    groups=("target",),
    flags=("--all",),
    values=("--why",),
)


def test_words_keys_overrides_and_flags_are_told_apart() -> None:
    found = parse(["constraints", "add", "a statement", "severity=soft", "target=t", "--why", "so", "--json"], GRAMMAR)
    assert (found.command, found.noun, found.words) == ("constraints add", "add", ["a statement"])
    assert (found.keys, found.overrides) == ({"severity": "soft"}, ["target=t"])
    assert found.flags == {"--why": "so", "--json": ""}
    assert found.as_json


@pytest.mark.parametrize("rest", [[], ["severity=hard"], ["--json"]])
def test_the_default_noun_is_meant_when_none_is_said(rest: list[str]) -> None:
    assert parse(["constraints", *rest], GRAMMAR).noun == "list"


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        (["lst"], "kernelgen constraints has no 'lst'; did you mean 'list'?"),
        (["list", "severty=soft"], "kernelgen constraints list has no key 'severty'; did you mean 'severity'?"),
        (["list", "--al"], "kernelgen constraints list has no flag --al; did you mean '--all'?"),
        (["list", "--why"], "--why needs a value after it."),
    ],
)
def test_what_is_wrong_is_named_with_the_nearest_right_word(rest: list[str], sentence: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse(["constraints", *rest], GRAMMAR)
    assert str(raised.value) == sentence


def test_a_file_whose_name_has_an_equals_sign_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run=3.csv").write_text("")
    assert parse(["profile", "run=3.csv"], Grammar()).words == ["run=3.csv"]


def test_a_statement_with_an_equals_sign_in_its_words_is_a_statement() -> None:
    for statement in ("Keep num_warps = 4 for M <= 64.", "num_warps=4 is slow here."):
        assert parse(["constraints", "add", statement, "severity=soft"], GRAMMAR).words == [statement]


def test_the_three_places_default_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = parse(["constraints", "events=x/e.db"], GRAMMAR)
    assert found.place("events") == tmp_path / "x/e.db"
    assert found.place("constraints") == tmp_path / "constraints.jsonl"


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["log", "verify", "kind=region_frozen"], "kernelgen log verify has no key 'kind'"),
        (["log", "show", "e1", "--texts"], "kernelgen log show has no flag --texts"),
        (["profile", "kernels", "x.json", "shape=t4096"], "kernelgen profile kernels has no key 'shape'"),
        (["target", "list", "--all"], "kernelgen target list has no flag --all"),
        (["champion", "import", "k.py", "--source"], "kernelgen champion import has no flag --source"),
    ],
)
def test_a_noun_refuses_what_only_another_noun_takes(
    words: list[str], refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert refused in capsys.readouterr().err
