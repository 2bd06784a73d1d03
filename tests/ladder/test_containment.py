"""Attacks on what contains a candidate: each works without containment and fails with it, whatever a kernel lacks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernelgen.errors import BadInput
from kernelgen.ladder import containment
from kernelgen.ladder.containment import environment, landlock, mechanisms, paths
from kernelgen.ladder.containment.mechanisms import (
    IPC,
    LANDLOCK,
    LANDLOCK_SCOPE,
    LANDLOCK_TCP,
    NETWORK,
    NOTES,
    PID,
    PID_LIMIT,
    SECCOMP,
    USER,
    VIEW,
)
from kernelgen.ladder.server import ChildEnded, Ended, Limits, Server

pytest.importorskip("torch")
HERE = Path(__file__).resolve().parent
NAMESPACES = (USER, NETWORK, IPC, PID, PID_LIMIT, VIEW)
# what a machine may offer: everything, no namespaces, nothing but namespaces
OFFERS = {
    "all": (),
    "without namespaces": NAMESPACES,
    "without the view and pids": (VIEW, PID, PID_LIMIT, NOTES),
    "namespaces alone": (LANDLOCK, LANDLOCK_TCP, LANDLOCK_SCOPE, SECCOMP, NOTES),
}
# each offer, and what a GPU's driver is let do besides, where a machine offers all and where it has no namespaces
SERVERS = [*(("plain", offer) for offer in OFFERS), ("gpu", "all"), ("gpu", "without namespaces")]
REACHED = "reached"


@dataclass(frozen=True)
class Attack:
    """Source that sets `value` to "reached" where it comes through."""

    source: str
    """The attack; what `World` has is given."""
    attempt: str | None = None
    """How it is named, where the filter notes it."""
    starts: bool = False
    """Whether it is tried where processes may be started."""


ATTACKS = {
    "connects to a listener on loopback": Attack(
        "import socket; socket.create_connection(('127.0.0.1', port), 2); value = 'reached'", "open a network socket"
    ),
    "connects to a unix socket": Attack(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect(unix); value = 'reached'"
    ),
    "sends to a unix socket": Attack(
        "import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "s.sendto(b'x', unix + '.datagrams'); value = 'reached'",
        "open a unix socket",
    ),
    "sends to a unix socket from a socket pair": Attack(
        "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "a.sendto(b'x', unix + '.datagrams'); value = 'reached'"
    ),
    "reads a file beside the log": Attack("value = open(secret).read()"),
    "looks at the home": Attack("import os; assert at_home in os.listdir(home); value = 'reached'"),
    "reads a reference": Attack("open(target).read(); value = 'reached'"),
    "imports a reference": Attack("import kernelgen.targets.moe_align_384; value = 'reached'"),
    "reads the parent's environment": Attack(
        "assert b'PATH=' in open(f'/proc/{parent}/environ', 'rb').read(); value = 'reached'"
    ),
    "reads the parent's memory": Attack("open(f'/proc/{parent}/mem', 'rb').close(); value = 'reached'"),
    "writes outside": Attack("open(folder + '/written', 'w').write('x'); value = 'reached'"),
    "writes beside its folder": Attack(
        "import os; open(os.path.dirname(os.getcwd()) + '/x', 'w').close(); value = 'reached'"
    ),
    "takes its keeper's descriptors": Attack(
        "import os\n"
        "for n in range(40):\n"
        "    try: os.open(f'/proc/{os.getppid()}/fd/{n}', os.O_WRONLY); value = 'reached'\n"
        "    except OSError: pass\n"
        "value = globals().get('value')"
    ),
    "writes into Python's packages": Attack(
        "import torch, os; p = os.path.dirname(torch.__file__) + '/written_by_a_test'\n"
        "open(p, 'w').close(); os.remove(p); value = 'reached'"
    ),
    "removes a file outside": Attack("import os; os.remove(folder + '/removable'); value = 'reached'"),
    "renames a file into its folder": Attack("import os; os.rename(folder + '/movable', 'moved'); value = 'reached'"),
    "cuts a file short outside": Attack("import os; os.truncate(folder + '/cut', 0); value = 'reached'"),
    "makes a link to a file outside": Attack("import os; os.link(secret, 'linked'); value = open('linked').read()"),
    "signals the parent": Attack("import os; os.kill(parent, 0); value = 'reached'"),
    "traces a process": Attack(
        "import ctypes; assert ctypes.CDLL(None).ptrace(0x4206, parent, 0, 0) == 0; value = 'reached'",
        "trace a process",
    ),
    "reads the memory of the process that keeps it": Attack(
        "import ctypes, os\n"
        "class V(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]\n"
        "b = ctypes.create_string_buffer(8); l = V(ctypes.addressof(b), 8); c = ctypes.CDLL(None)\n"
        "assert c.process_vm_readv(os.getppid(), ctypes.byref(l), 1, ctypes.byref(l), 1, 0) == 8; value = 'reached'",
        "read another process's memory",
    ),
    "forks": Attack("import os\nif os.fork() == 0: os._exit(0)\nvalue = 'reached'"),
    "runs a program": Attack("import subprocess; subprocess.run(['/bin/true'], check=True); value = 'reached'"),
    "runs a program that is no compiler": Attack(
        "import subprocess, sys; subprocess.run([sys.executable, '-V'], check=True); value = 'reached'", starts=True
    ),
    "has a program of its own": Attack(
        "import os, shutil, subprocess; shutil.copy('/bin/true', 'own'); os.chmod('own', 0o700)\n"
        "subprocess.run(['./own'], check=True); value = 'reached'",
        starts=True,
    ),
    "makes a namespace": Attack("import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0; value = 'reached'"),
    "takes a kernel's ring": Attack(
        "import ctypes; b = ctypes.create_string_buffer(120); c = ctypes.CDLL(None)\n"
        "assert c.syscall(425, 1, b) >= 0; value = 'reached'"
    ),
    "changes a mode outside": Attack(
        "import os; os.chmod(folder + '/mode', 0o777); m = os.stat(folder + '/mode').st_mode\n"
        "assert m & 0o777 == 0o777; value = 'reached'"
    ),
    "leaves shared memory behind": Attack(
        "import os; open('/dev/shm/kernelgen-test', 'w').close()\n"
        "value = 'reached'"
    ),
}  # fmt: skip
# what these need is missing in namespaces alone, and no promise
NEEDS = {
    "forks": SECCOMP,
    "runs a program": SECCOMP,
    "runs a program that is no compiler": LANDLOCK,
    "has a program of its own": LANDLOCK,
    "makes a namespace": SECCOMP,
    "takes a kernel's ring": SECCOMP,
    "reads the memory of the process that keeps it": SECCOMP,
    "sends to a unix socket from a socket pair": None,
}


@dataclass(frozen=True)
class World:
    """What is outside, to be reached."""

    given: dict[str, Any]
    """By name, as the attacks have it."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A folder with a log, listeners, and this process."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "events.db").write_text(REACHED)
    unix = str(folder / "unix")
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        local.bind(unix)
        local.listen()
        datagrams.bind(f"{unix}.datagrams")
        yield World(
            {
                "port": tcp.getsockname()[1],
                "unix": unix,
                "secret": str(folder / "events.db"),
                "folder": str(folder),
                "home": str(Path.home()),
                "at_home": something_at_home(),
                "target": str(paths.PACKAGE / "targets" / "moe_align_384.py"),
                "parent": os.getpid(),
            }
        )


def something_at_home() -> str:
    """A name in the home that Python itself does not lie below."""
    names = [entry.name for entry in Path.home().iterdir() if not Path(sys.base_prefix).is_relative_to(entry)]
    if not names:
        pytest.skip(f"{Path.home()} is empty")
    return sorted(names)[0]


def lay_out(folder: str) -> None:
    for name in ("removable", "movable", "cut", "mode"):
        Path(folder, name).write_text("x")
        Path(folder, name).chmod(0o600)
    Path("/dev/shm/kernelgen-test").unlink(missing_ok=True)


def carry_out(server: Server, attack: Attack, world: World) -> tuple[object, Ended]:
    """What came of an attack, and how its session ended."""
    lay_out(world.given["folder"])
    value: object = None
    with server.open("server_jobs:run", limits=Limits(seconds=20, exec_allowed=attack.starts)) as session:
        session.send({"source": attack.source, "given": world.given})
        try:
            value = session.receive(10.0)[0]["value"]
        except ChildEnded:
            value = None
        return value, session.close()


@pytest.fixture(scope="module")
def uncontained() -> Iterator[Server]:
    with Server("plain", contained=False, variables={"PYTHONPATH": str(HERE)}) as server:
        yield server


@pytest.fixture(scope="module")
def held() -> dict[str, str]:
    return containment.holds()


@pytest.fixture(scope="module", params=SERVERS, ids=" with ".join)
def offer(request: pytest.FixtureRequest, held: dict[str, str]) -> Iterator[Server]:
    """A contained server, on a machine that offers less and less."""
    kind, offered = request.param
    without = OFFERS[offered]
    missing = mechanisms.broken(held | dict.fromkeys(without, "done without"))
    if missing:
        pytest.skip("; ".join(missing))
    if kind == "gpu":
        pytest.importorskip("triton")
    with Server(kind, variables={"PYTHONPATH": str(HERE)}, without=without) as server:
        yield server


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_works_without_containment(uncontained: Server, world: World, name: str) -> None:
    value, _ = carry_out(uncontained, ATTACKS[name], world)
    assert value == REACHED


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_fails_in_containment(offer: Server, world: World, name: str) -> None:
    need = NEEDS.get(name)
    if need is not None and not mechanisms.holds(offer.holds, need):
        pytest.skip(f"{need}: {offer.holds[need]}")
    value, ended = carry_out(offer, ATTACKS[name], world)
    if name == "leaves shared memory behind":
        assert not Path("/dev/shm/kernelgen-test").exists()
    else:
        assert value != REACHED
    attempt = ATTACKS[name].attempt
    if attempt is not None and mechanisms.holds(offer.holds, NOTES):
        assert attempt in ended.attempts
    for left in ("removable", "movable", "cut"):
        assert Path(world.given["folder"], left).read_text() == "x"
    assert Path(world.given["folder"], "mode").stat().st_mode & 0o777 == 0o600


def test_an_attempt_is_named_though_the_child_says_nothing_of_it(uncontained: Server, world: World) -> None:
    source = "import socket\ntry: socket.socket()\nexcept OSError: pass\nvalue = 1"
    with Server("plain", variables={"PYTHONPATH": str(HERE)}) as server:
        if not mechanisms.holds(server.holds, NOTES):
            pytest.skip(server.holds[NOTES])
        value, ended = carry_out(server, Attack(source), world)
    assert (value, ended.cause, ended.sentence) == (1, "process.reached_out", "tried to open a network socket")
    assert carry_out(uncontained, Attack(source), world)[1].cause is None


def test_a_contained_child_cannot_kill_its_keeper_or_anybody(offer: Server, world: World) -> None:
    source = """
    import os, signal
    assert os.getpgid(0) == os.getpid()  # a signal to its group stays with it
    for pid in (os.getppid(), 1, -1):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    value = "alive"
    """
    value, ended = carry_out(offer, Attack(textwrap.dedent(source)), world)
    assert (value, ended.cause) == ("alive", None)


def test_no_secret_of_the_environment_gets_through(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("CUDA_ACCESS_TOKEN", "sk-secret")
    source = "import os; value = [dict(os.environ), open('/proc/self/environ').read()]"
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    inherited = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "sk-secret" in inherited
    for contained in (True, False):
        with Server("plain", contained=contained, variables={"PYTHONPATH": str(HERE)}) as server:
            value, _ = carry_out(server, Attack(source), world)
        assert "sk-secret" not in json.dumps(value)
        assert isinstance(value, list)
        assert value[0]["HOME"] == value[0]["TMPDIR"]
        assert value[0]["HOME"] != os.environ["HOME"]


def test_what_a_kernel_needs_is_there(offer: Server, world: World) -> None:
    source = """
    import os, tempfile, torch
    import torch.fx, colorsys, wave  # not imported yet
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("x")
    os.makedirs("cache/a/b")
    os.rename("cache/a/b", "cache/c")
    os.urandom(4)
    open("/dev/null", "w").write("x")
    open("/proc/self/maps").read(); open("/proc/cpuinfo").read(); open("/proc/meminfo").read()
    os.listdir("/sys/devices/system/cpu")
    value = float(torch.ones(64, 64).matmul(torch.ones(64, 64)).sum())
    """
    value, ended = carry_out(offer, Attack(textwrap.dedent(source)), world)
    assert value == 64.0**3, ended.output


def test_a_compiler_runs_in_containment(offer: Server, world: World) -> None:
    source = """
    import ctypes, subprocess
    open("a.c", "w").write("int seven(void) { return 7; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "a.so", "a.c"], check=True)
    value = ctypes.CDLL("./a.so").seven()
    """
    value, ended = carry_out(offer, Attack(textwrap.dedent(source), starts=True), world)
    assert value == 7, ended.output


def test_what_holds_is_what_the_environment_says(offer: Server, uncontained: Server) -> None:
    said = offer.environment["containment"]
    for name in (VIEW, LANDLOCK, SECCOMP):
        assert (name in said) == mechanisms.holds(offer.holds, name)
    assert uncontained.environment["containment"] == "none (asked for)"


def test_too_little_to_contain_is_said_with_the_switch(held: dict[str, str]) -> None:
    before = threading.active_count()
    with pytest.raises(BadInput, match=r"no network .*seccomp: done without.*containment=off"):
        Server("plain", without=[SECCOMP, VIEW])
    assert threading.active_count() == before
    assert mechanisms.broken({}) != []
    assert mechanisms.broken(dict.fromkeys(held, mechanisms.HOLDS)) == []


def test_what_holds_is_printed_as_json(held: dict[str, str]) -> None:
    command = [sys.executable, "-m", "kernelgen.ladder.containment"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=paths.PACKAGE.parent)
    assert json.loads(done.stdout) == held
    assert set(held) >= {USER, NETWORK, IPC, PID, VIEW, LANDLOCK, SECCOMP, mechanisms.RLIMITS}


def test_a_hidden_folder_is_cut_out_of_the_readable_one_around_it(tmp_path: Path) -> None:
    for name in ("site/torch/x.py", "site/kernelgen/targets/x.py", "site/plain.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    site = str(tmp_path / "site")
    whole, listed = paths.carved(site, [f"{site}/kernelgen"])
    assert sorted(whole) == [f"{site}/plain.py", f"{site}/torch"]
    assert listed == [site]
    source = """
    import json, os, sys
    from kernelgen.ladder.containment import landlock
    site, whole, listed = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    landlock.restrict([(p, landlock.READ) for p in whole] + [(p, landlock.READ_DIR) for p in listed])
    open(site + "/torch/x.py").close()
    try:
        open(site + "/kernelgen/targets/x.py").close()
    except PermissionError:
        print("refused", len(os.listdir(site)))
    """
    try:
        landlock.abi()
    except OSError as error:
        pytest.skip(f"landlock: {error.strerror}")
    command = [sys.executable, "-c", textwrap.dedent(source), site, json.dumps(whole), json.dumps(listed)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "refused 3\n"


def test_the_environment_keeps_what_compilers_need() -> None:
    kept = environment.scrubbed({"PATH": "/x", "CUDA_HOME": "/cuda", "HF_TOKEN": "t", "LD_PRELOAD": "p", "EDITOR": "e"})
    assert kept["PATH"] == "/x"
    assert kept["CUDA_HOME"] == "/cuda"
    assert not {"HF_TOKEN", "LD_PRELOAD", "EDITOR"} & set(kept)
