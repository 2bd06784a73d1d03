"""Candidate files: the specification's form, the model's part byte for byte, comments that nothing breaks out of."""

from __future__ import annotations

import ast
import os
import re
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgen import markers
from kernelgen.candidates import TargetBinding, build, read_back, read_header, write_files
from kernelgen.candidates.comment import escaped, unescaped
from kernelgen.errors import BadInput, ReplyError
from kernelgen.ids import digest_text
from kernelgen.ladder import declaration
from kernelgen.prompt.reply import parse, write
from kernelgen.records import Ask, AutotuneConfig, CandidateFile, KernelSource, Reply, to_text
from tests import factories as sample
from tests.golden.compare import assert_golden
from tests.prompt import spec_check

ID = "g20261130t181420123456_9f3ac2d1b06e"
BINDING = TargetBinding(
    module="kernelgen.targets.moe_dispatch_384expert",
    folder=None,
    smoke={"one": {"T": 1}, "odd": {"T": 7}},
    tune={"t64": {"T": 64}},
    kinds=("plain", "skewed"),
    tolerance={"weights": (1e-5, 1e-6), "rows": (0.0, 0.0)},
    compute_capability=90,
)


def built(reply: Reply | None = None, ask: Ask | None = None, binding: TargetBinding = BINDING) -> list[CandidateFile]:
    return build(
        ID,
        ask or sample.ask(),
        reply or sample.reply(),
        prompt_digest=digest_text("prompt"),
        reply_digest=digest_text("reply"),
        binding=binding,
    )


def cuda(**changes: Any) -> list[CandidateFile]:
    return built(sample.cuda_reply(**changes), sample.ask(3))


def python_reply(code: str, **changes: Any) -> Reply:
    kernel = KernelSource(language="python", code=code, entry_point=sample.TARGET)
    return sample.reply(kernel=kernel, **{"autotune": {}, **changes})


def texts(files: list[CandidateFile]) -> dict[str, str]:
    return {file.path: file.text for file in files}


# ---- form


def test_a_triton_candidate_has_every_element() -> None:
    assert spec_check.missing_from_candidate(texts(built()), autotuned=True) == []


def test_a_cuda_candidate_has_every_element_and_its_test_beside_it() -> None:
    files = texts(cuda())
    folder = f"scripts/kernels/{sample.TARGET}"
    assert list(files) == [f"{folder}/{ID}.cu", f"{folder}/{ID}_test.py"]
    assert spec_check.missing_from_candidate(files, autotuned=False) == []


ELEMENTS = {**spec_check.HEADER, **spec_check.TEST, **spec_check.KERNEL, **spec_check.CONFIGS}


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("state", [1, 3])
def test_removing_an_element_is_noticed(element: str, state: int) -> None:
    files = texts(built() if state == 1 else cuda())
    if state == 3 and element in spec_check.CONFIGS:
        return
    cut = {path: re.sub(ELEMENTS[element], "", text, flags=re.MULTILINE) for path, text in files.items()}
    assert element in spec_check.missing_from_candidate(cut, autotuned=state == 1)


@pytest.mark.parametrize("state", [1, 3])
def test_the_candidate_is_the_accepted_one(state: int) -> None:
    for file in built() if state == 1 else cuda():
        assert_golden(f"candidate_{Path(file.path).name.removeprefix(ID).replace('.', '_').strip('_')}.txt", file.text)


def test_the_file_is_python_that_defines_door_table_kernel_and_test() -> None:
    tree = ast.parse(built()[0].text)
    assert isinstance(tree.body[0], ast.If)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert functions == ["gather_kernel", sample.TARGET, "test_correctness"]


def test_without_configurations_there_is_no_table_and_no_import_of_triton() -> None:
    above = built(python_reply("def f(): pass\n"))[0].text.split(markers.begin("python"))[0]
    assert "import triton" not in above
    assert "AUTOTUNE_CONFIGS" not in above


def test_the_ladder_reads_the_constants(tmp_path: Path) -> None:
    for files in (built(), cuda()):
        write_files(tmp_path, files)
        declared = declaration.read(tmp_path / files[0].path)
        assert declared.target_module == BINDING.module
        assert declared.target_folder is None
        assert declared.entry_point == sample.TARGET
        assert declared.arch == 90
        assert declared.smoke == BINDING.smoke
        assert declared.tune == BINDING.tune
        assert declared.kinds == BINDING.kinds
        assert declared.source == tmp_path / files[0].path


def test_records_read_back_from_the_log_give_the_same_bytes() -> None:
    binding = BINDING.model_copy(update={"tune": {"b": {"T": 2, "B": 1}, "a": {"T": 1, "B": 2}}})
    again = built(
        ask=Ask.model_validate_json(to_text(sample.ask())),
        binding=TargetBinding.model_validate_json(to_text(binding)),
    )
    assert again == built(binding=binding)


def test_a_source_with_a_marker_line_is_refused() -> None:
    with pytest.raises(ReplyError, match="marker line"):
        built(python_reply(f"def {sample.TARGET}(): pass\n{markers.end('python')}"))


# ---- the correctness test

TARGET_CODE = """
def make_inputs(dims, kind, seed, device):
    return {"x": [float(seed)] * dims["T"]}

def reference(x):
    return ([2 * value for value in x],)

def compare(inputs, expected, got, tolerance):
    rtol, atol = tolerance["y"]
    pairs = zip(expected[0], got[0])
    return [f"{want} {have}" for want, have in pairs if abs(want - have) > atol + rtol * abs(want)]

def flops(dims):
    return 1.0

def bytes_moved(dims):
    return 1.0
"""


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ("return ([2 * value for value in x],)", None),
        ("return ([2.05 * value for value in x],)", None),
        ("return ([3 * value for value in x],)", "shape odd, skewed inputs: 2.0 3.0"),
        (
            "global KERNELGEN_TOLERANCE, KERNELGEN_SMOKE; return ([3 * value for value in x],)\n"
            "KERNELGEN_TOLERANCE, KERNELGEN_SMOKE = {'y': (9, 9)}, {}",
            "2.0 3.0",
        ),
        ("return ([0],)\n\ndef test_correctness(device):\n    pass", "2.0 0"),
    ],
)
def test_the_test_runs_the_entry_point_against_the_reference(tmp_path: Path, body: str, failure: str | None) -> None:
    (tmp_path / "doubling.py").write_text(TARGET_CODE)
    changes = {"module": "doubling.py", "folder": str(tmp_path), "tolerance": {"y": (0.05, 0.0)}}
    reply = python_reply(f"def {sample.TARGET}(x):\n    {body}\n")
    file = built(reply, binding=BINDING.model_copy(update=changes))[0]
    module: dict[str, Any] = {"__name__": "candidate", "__file__": file.path}
    exec(compile(file.text, file.path, "exec"), module)
    if failure is None:
        module["test_correctness"]("cpu")
        return
    with pytest.raises(AssertionError, match=failure):
        module["test_correctness"]("cpu")


# ---- the header


def test_the_header_reads_back() -> None:
    header = read_header(built()[0].text)
    assert header["candidate"] == (ID,)
    assert header["target"] == (sample.TARGET,)
    assert header["state"] == ("1",)
    assert header["champion figure"] == ()
    assert header["overrides"] == ("c_num_warps_16: The rows are 16384 wide here.",)
    assert header["constraints left out"] == ("c_left_out",)
    assert header["prompt"] == (digest_text("prompt"),)
    assert header["model part"] == (digest_text(sample.reply().kernel.code),)
    assert read_header(cuda()[0].text)["dsl"] == ("cuda",)


def test_a_measured_champion_has_its_figure_in_the_header() -> None:
    ask = sample.ask(champion=sample.champion(figures=(sample.measured(), sample.measured(occupancy_percent=50.0))))
    figures = read_header(built(ask=ask)[0].text)["champion figure"]
    assert figures[0] == "42.5 us at t64: 0.02 TFLOPS, 197.6 GB/s, occupancy not measured"
    assert figures[1].endswith("occupancy 50 %")


@pytest.mark.parametrize("text", ["", "x = 1\n", "# something else\n", "/*\n * other\n */\n"])
def test_another_file_has_no_header(text: str) -> None:
    with pytest.raises(BadInput, match="no candidate file"):
        read_header(text)


HOSTILE = (
    "*/ int x; /*\n# noqa\r\nimport os\rimport os\x0bimport os\x85import os\u2028import os\u2029\x00\u202e\\\n\n  */"
)
foreign = st.one_of(
    st.text(min_size=1), st.lists(st.sampled_from("*/\\\n\r\u2028 \tx#"), min_size=1).map("".join), st.just(HOSTILE)
)


@given(foreign)
def test_escaped_text_is_one_printable_line_and_reads_back(text: str) -> None:
    line = escaped(text)
    assert len(line.splitlines()) <= 1
    assert "*/" not in line
    assert line.replace("\t", "").isprintable() or not text.isprintable()
    assert unescaped(line) == text


@given(hypothesis=foreign, reason=foreign, statement=foreign, title=foreign)
def test_nothing_foreign_breaks_out_of_the_header(hypothesis: str, reason: str, statement: str, title: str) -> None:
    ask_changes = {
        "selection": sample.selection(chosen=(sample.selected(severity="soft", ids=("c_s",), statement=statement),)),
        "hardware": sample.hardware_brief(title=title),
    }
    said = {"hypothesis": hypothesis, "overrides": ({"id": "c_s", "reason": reason},)}
    python = built(python_reply("pass\n", **said), sample.ask(**ask_changes))[0].text
    comment, begin, _ = python.partition('\nif __name__ == "__main__":\n')
    assert begin
    assert all(line.startswith("#") for line in comment.splitlines())
    c = built(sample.cuda_reply(**said), sample.ask(3, **ask_changes))[0].text
    assert c.split("*/")[0].startswith("/*\n * kernelgen candidate ")
    assert c.split("*/", 1)[1].startswith(f"\n\n{markers.begin('cuda')}")
    for text in (python, c):
        assert read_back(text).hypothesis == hypothesis


# ---- read back

values = st.one_of(st.integers(), st.booleans(), st.text(max_size=5))
tables = st.dictionaries(
    st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
    st.lists(
        st.builds(
            AutotuneConfig,
            kwargs=st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), values, max_size=3),
            num_warps=st.integers(1, 64),
            num_stages=st.integers(1, 9),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    max_size=3,
)


@given(code=st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: f"{text}\n"), autotune=tables)
def test_the_models_part_is_read_back_exactly(code: str, autotune: dict[str, tuple[AutotuneConfig, ...]]) -> None:
    reply = python_reply(code, autotune=autotune)
    part = read_back(built(reply)[0].text)
    assert (part.hypothesis, part.kernel, part.autotune) == (reply.hypothesis, reply.kernel, reply.autotune)


def test_a_cuda_models_part_is_read_back_exactly() -> None:
    part = read_back(cuda()[0].text)
    assert (part.kernel, part.autotune) == (sample.cuda_reply().kernel, {})


def test_a_parsed_reply_becomes_a_file_and_back() -> None:
    reply = parse(write(sample.reply()), sample.ask())
    assert read_back(built(reply)[0].text).kernel.code == reply.kernel.code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (markers.begin("python"), ""),
        (markers.end("python"), ""),
        (markers.begin("python"), markers.begin("python") * 2),
        ("# entry point: moe_dispatch_384expert\n", ""),
        ("num_warps=8", "num_warps=eight"),
        ("triton.Config({'BLOCK_H': 8192}, num_warps=8, num_stages=2)", "None"),
        ("'gather_kernel': [", "'gather_kernel': ["[:-1] + "("),
    ],
)
def test_a_changed_candidate_is_not_read_back(old: str, new: str) -> None:
    text = built()[0].text
    assert old in text
    with pytest.raises(BadInput):
        read_back(text.replace(old, new, 1))


# ---- on disk


def test_files_are_written_once_with_the_folders_notice(tmp_path: Path) -> None:
    for _ in range(2):
        write_files(tmp_path / "new", cuda())
    written = {str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*") if path.is_file()}
    assert written == {*texts(cuda()), "scripts/kernels/README.md"}
    for path, text in texts(cuda()).items():
        assert (tmp_path / "new" / path).read_bytes() == text.encode("utf-8")
        assert stat.S_IMODE((tmp_path / "new" / path).stat().st_mode) == 0o644


def test_a_users_own_notice_is_kept(tmp_path: Path) -> None:
    notice = tmp_path / "scripts/kernels/README.md"
    notice.parent.mkdir(parents=True)
    notice.write_text("mine")
    write_files(tmp_path, built())
    assert notice.read_text() == "mine"


def test_another_content_is_never_overwritten(tmp_path: Path) -> None:
    write_files(tmp_path, built())
    with pytest.raises(BadInput, match="exists with another content"):
        write_files(tmp_path, built(sample.reply(hypothesis="Other.")))
    assert (tmp_path / built()[0].path).read_text() == built()[0].text
    assert not list(tmp_path.rglob(".*"))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "scripts").write_text("a file where a folder should be")
    with pytest.raises(BadInput, match=r"cannot be written .*; choose another folder with out=DIR"):
        write_files(tmp_path, built())


@pytest.mark.parametrize("path", ["../x.py", "/x.py", "scripts/../../x.py"])
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(BadInput, match="leads out of"):
        write_files(tmp_path, [CandidateFile(path=path, text="x")])


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, [])
    monkeypatch.setattr(os, "fsync", _disk_full)
    with pytest.raises(BadInput, match="No space left"):
        write_files(tmp_path, built())
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["README.md"]


def test_a_file_system_without_links_is_written_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", _no_links)
    for _ in range(2):
        write_files(tmp_path, built())
    with pytest.raises(BadInput, match="exists with another content"):
        write_files(tmp_path, built(sample.reply(hypothesis="Other.")))
    assert (tmp_path / built()[0].path).read_text() == built()[0].text


def test_many_writers_of_one_file_agree(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def writer() -> None:
        try:
            write_files(tmp_path, built())
        except BadInput as error:
            failures.append(error)

    threads = [threading.Thread(target=writer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def _disk_full(_: int) -> None:
    raise OSError(28, "No space left on device")


def _no_links(source: str, target: Path) -> None:
    raise PermissionError(1, "Operation not permitted")
