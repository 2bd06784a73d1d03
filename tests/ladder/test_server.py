"""A session's messages arrive, whatever a child does is a result with its cause, and nothing of it is left."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgen.errors import HarnessError
from kernelgen.ladder.channel import read_descriptor
from kernelgen.ladder.server import ChildEnded, Ended, Limits, Server, Session

pytest.importorskip("torch")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MIB = 1 << 20
QUICK = Limits(seconds=20.0, memory_bytes=512 * MIB)


@pytest.fixture(scope="module", params=[True, False], ids=["contained", "uncontained"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server whose sessions run the jobs beside this file."""
    with Server("plain", contained=request.param, variables={"PYTHONPATH": str(HERE)}) as started:
        yield started


def begin(server: Server, source: str, limits: Limits = QUICK, **given: object) -> Session:
    session = server.open("server_jobs:run", limits=limits)
    session.send({"source": textwrap.dedent(source), "given": given})
    return session


def ended(server: Server, source: str, limits: Limits = QUICK, timeout_s: float = 10.0, **given: object) -> Ended:
    """How a session ended whose child never answers."""
    held: list[int] = []

    def listen(session: Session) -> None:
        while True:
            held.extend(session.receive(timeout_s)[1])

    with begin(server, source, limits, **given) as session, pytest.raises(ChildEnded) as caught:
        listen(session)
    for descriptor in held:
        os.close(descriptor)
    assert session.close() == caught.value.ended
    return caught.value.ended


def processes_of(marker: str) -> list[int]:
    """Living processes with a text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and marker.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_messages_and_descriptors_go_both_ways(server: Server) -> None:
    memory = os.memfd_create("x")
    os.write(memory, b"held")
    with server.open("server_jobs:echo") as session:
        for message in ({"text": "ß\n", "numbers": [1, 2.5, None]}, {"long": "x" * (3 << 20)}):
            session.send(message, [memory])
            answer, descriptors = session.receive(10.0)
            assert answer == message
            assert [read_descriptor(descriptor, 100) for descriptor in descriptors] == [b"held"]
            assert read_descriptor(descriptors[0], 3) is None
            os.close(descriptors[0])
    os.close(memory)
    assert session.close().cause is None


def test_sessions_at_the_same_time_do_not_mix(server: Server) -> None:
    with server.open("server_jobs:echo") as one, server.open("server_jobs:echo") as two:
        one.send({"to": "one"})
        two.send({"to": "two"})
        assert (two.receive(10.0)[0], one.receive(10.0)[0]) == ({"to": "two"}, {"to": "one"})
        assert one.folder != two.folder


@pytest.mark.parametrize(
    ("source", "cause", "sentence"),
    [
        ("import os; os._exit(0)", "process.exited", "ended with exit code 0 before it was done"),
        ("raise SystemExit(3)", "process.exited", "ended with exit code 3"),
        ("1 / 0", "process.exited", "ended with exit code 1"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "process.crashed", "killed by SIGSEGV"),
        ("import ctypes; ctypes.string_at(0)", "process.crashed", "killed by SIGSEGV"),
        ("import os; os.abort()", "process.crashed", "killed by SIGABRT"),
        ("import time; time.sleep(60)", "process.hung", "did not answer within 1 s"),
        ("while True: print('x' * 100_000)", "process.flooded", "printed more than 1048576 bytes"),
        ("import os, time; os.close(3); time.sleep(60)", "process.exited", "before it was done"),
        (
            "channel.send({}, [1]); import os; os._exit(0)",
            "process.exited",
            "ended with exit code 0 before it was done",
        ),
        (
            "channel.send({}, [3]); import os; os._exit(0)",
            "process.exited",
            "ended with exit code 0 before it was done",
        ),
        ("import os; os.write(3, b'x' * 100)", "process.flooded", "sent what is no message"),
        ("import os; os.write(3, bytes((0, 0, 0, 1, 0, 0)) + b'[')", "process.flooded", "sent what is no message"),
        ("channel._sendmsg([b'\\x00\\x00\\x00\\x02\\x00\\x05{}'])", "process.flooded", "0 descriptors where 5"),
    ],
)
def test_an_end_has_its_cause(server: Server, source: str, cause: str, sentence: str) -> None:
    timeout_s = 1.0 if cause == "process.hung" else 10.0
    how = ended(server, source, timeout_s=timeout_s)
    assert (how.cause, sentence in how.sentence) == (cause, True), how


@pytest.mark.parametrize("text", ['{"x": "\\ud800"}', "{" * 50, '{"a":' * 100_000, "\xff", '{"x": ' + "9" * 5000 + "}"])
def test_text_that_is_no_message_never_raises_anything_else(server: Server, text: str) -> None:
    source = f"""
    import os, struct
    text = {text!r}.encode("latin-1")
    os.set_blocking(3, True)
    frame = struct.pack("!IH", len(text), 0) + text
    while frame:
        frame = frame[os.write(3, frame):]
    import time; time.sleep(60)
    """
    assert ended(server, source).cause == "process.flooded"


def test_a_traceback_is_in_the_output(server: Server) -> None:
    how = ended(server, "def answer():\n    raise ValueError('said so')\nanswer()")
    assert "ValueError: said so" in how.output


def test_a_child_that_prints_a_lot_while_nobody_reads_is_not_stuck(server: Server) -> None:
    with begin(server, "print('x' * 300_000); value = 7") as session:
        time.sleep(0.2)
        assert session.receive(10.0)[0] == {"value": 7}
    assert session.close().output.endswith("xx\n")


def test_a_child_that_takes_no_message_does_not_block_its_parent(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelgen.ladder.session.SEND_S", 0.5)
    with begin(server, "import time; time.sleep(60)") as session, pytest.raises(ChildEnded) as caught:
        session.send({"long": "x" * (8 << 20)})
    assert caught.value.cause == "process.hung"


def test_a_session_ends_at_its_time_limit(server: Server) -> None:
    how = ended(server, "import time; time.sleep(60)", Limits(seconds=0.5))
    assert (how.cause, how.sentence) == ("process.hung", "did not end within 0.5 s")


@pytest.mark.parametrize(
    "source",
    [
        "held = bytearray(200 << 20); value = len(held)",
        """
        import mmap, time
        held = mmap.mmap(-1, 200 << 20)
        held.write(bytes(200 << 20))
        time.sleep(0.3)
        value = 1
        """,
        """
        import os, time
        held = os.memfd_create("x")
        for _ in range(200):
            os.write(held, bytes(1 << 20))
        time.sleep(0.3)
        value = 1
        """,
    ],
    ids=["private", "shared", "memfd"],
)
def test_memory_is_bounded(server: Server, source: str) -> None:
    with begin(server, source) as session:
        assert session.receive(10.0)[0]["value"]
    how = ended(server, source, Limits(seconds=20.0, memory_bytes=64 * MIB))
    assert how.cause == "process.out_of_memory", how


def test_its_folder_is_bounded(server: Server) -> None:
    many = """
    import time
    for number in range(200):
        with open(f"{number}", "wb") as file:
            file.write(bytes(1 << 20))
    time.sleep(wait_s)
    value = 1
    """
    with begin(server, many, wait_s=0) as session:
        assert session.receive(10.0)[0]["value"] == 1
    small = Limits(seconds=20.0, file_bytes=32 * MIB)
    assert ended(server, many, small, wait_s=5).cause == "process.flooded"
    one = "open('x', 'wb').write(bytes(64 << 20))"
    assert "File too large" in ended(server, one, small).output


def test_what_it_leaves_can_be_read_but_no_link(server: Server, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    source = "import os; open('plain', 'w').write('plain'); os.symlink(secret, 'link'); os.mkfifo('pipe')"
    with begin(server, source.replace("; os.mkfifo('pipe')", ""), secret=str(tmp_path / "secret")) as session:
        session.receive(10.0)
        assert session.read("plain", 100) == b"plain"
        assert (session.folder / "link").is_symlink()
        assert session.read("link", 100) is None
        assert session.read("plain", 2) is None
        assert session.read("missing", 100) is None
        with pytest.raises(ValueError, match="not the name of a file"):
            session.read("../x", 100)


def test_its_folder_goes_whatever_it_did_to_it(server: Server) -> None:
    source = """
    import os
    os.mkdir("locked")
    open("locked/x", "w").close()
    for _ in range(1200):
        os.mkdir("d")
        os.chdir("d")
    value = 1
    """
    with begin(server, source) as session:
        assert session.receive(10.0)[0]["value"] == 1
        assert session.folder.is_dir()
    assert not session.folder.exists()


def test_a_daemon_it_leaves_is_gone_with_the_session(server: Server) -> None:
    source = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(3)
            while True:
                os.write(descriptors[0], b"x")
                time.sleep(0.01)
        os._exit(0)
    channel.send({"left": 1})
    time.sleep(60)
    """
    reading, writing = os.pipe()
    session = server.open("server_jobs:run", limits=Limits(exec_allowed=True))
    session.send({"source": textwrap.dedent(source)}, [writing])
    os.close(writing)
    assert session.receive(10.0)[0] == {"left": 1}
    os.read(reading, 1000)
    time.sleep(0.1)
    assert os.read(reading, 1000), "the daemon runs"
    session.close()
    os.set_blocking(reading, False)
    while os.read(reading, 1 << 16):
        continue
    poll = select.poll()
    poll.register(reading, 0)
    assert poll.poll(0) == [(reading, select.POLLHUP)]
    os.close(reading)


def test_a_fork_bomb_ends(server: Server) -> None:
    bomb = "import os, time\nfor _ in range(10**6): os.fork()"
    how = ended(server, bomb, Limits(seconds=20.0, processes=32, exec_allowed=True), timeout_s=20.0)
    assert how.cause in ("process.flooded", "process.exited"), how
    with server.open("server_jobs:echo") as session:
        session.send({"alive": 1})
        assert session.receive(10.0)[0] == {"alive": 1}


def test_a_fork_within_the_limit_works(server: Server) -> None:
    forks = "import os, time\nvalue = 0\nfor _ in range(20):\n    value += os.fork() != 0 or time.sleep(60) is None"
    with begin(server, forks, Limits(exec_allowed=True)) as session:
        assert session.receive(10.0)[0]["value"] == 20


def test_a_killed_server_is_started_again(server: Server) -> None:
    with server.open("server_jobs:echo") as lost:
        os.kill(server._process.pid, signal.SIGKILL)
        with pytest.raises(HarnessError, match="keeper"):
            lost.receive(10.0)
        server._process.wait(10)
        with server.open("server_jobs:echo") as session:
            session.send({"again": 1})
            assert session.receive(10.0)[0] == {"again": 1}


def test_a_closed_server_leaves_nothing_and_starts_nothing() -> None:
    server = Server("plain", variables={"PYTHONPATH": str(HERE)})
    session = server.open("server_jobs:echo")
    base = str(server._base)
    assert processes_of(base)
    server.close()
    server.close()
    assert processes_of(base) == []
    assert not Path(base).exists()
    assert session.close().cause is None
    with pytest.raises(HarnessError, match="closed"):
        server.open("server_jobs:echo")


def test_an_unknown_job_is_the_harnesss_fault(server: Server) -> None:
    with pytest.raises(HarnessError, match="no_such_job"):
        server.open("server_jobs:no_such_job")
    with pytest.raises(HarnessError, match="nowhere"):
        server.open("nowhere:job")


def test_killing_the_parent_leaves_no_process(tmp_path: Path) -> None:
    script = f"""
    import sys, time
    sys.path[:0] = [{str(ROOT)!r}]
    from kernelgen.ladder.server import Limits, Server
    server = Server("plain", variables={{"PYTHONPATH": {str(HERE)!r}}})
    session = server.open("server_jobs:run", limits=Limits(exec_allowed=True))
    session.send({{"source": "import os, time; os.fork(); time.sleep(100)"}})
    print(server._base, flush=True)
    time.sleep(100)
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    base = parent.stdout.readline().strip()
    deadline = time.monotonic() + 10
    while len(processes_of(base)) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(processes_of(base)) >= 4, "server, keeper, child and what it forked"
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while processes_of(base) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(base) == []
    assert Path(base).is_dir()
    with Server("plain"):  # the next one tidies up
        assert not Path(base).exists()


def test_a_module_in_the_working_folder_is_not_taken_for_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("__version__ = 'not torch'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    asked = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "not torch\n"
    with Server("plain") as server:
        assert server.environment["torch"][0].isdecimal()


def test_the_interpreters_server_interprets() -> None:
    pytest.importorskip("triton")
    with Server("interpreter", variables={"PYTHONPATH": str(HERE)}) as server:
        source = "import triton.language as tl; value = type(tl.cdiv).__name__"
        with begin(server, source) as session:
            assert session.receive(10.0)[0] == {"value": "InterpretedFunction"}
        assert server.environment["triton"][0].isdecimal()


def test_a_session_costs_little(server: Server) -> None:
    times = []
    for _ in range(5):
        started = time.monotonic()
        with server.open("server_jobs:echo") as session:
            session.send({"n": 1})
            session.receive(10.0)
        times.append(time.monotonic() - started)
    assert min(times) < 0.3, json.dumps(times)
