"""`kernelgen doctor` tells the truth about this machine, ends soon whatever is broken, and tells no secret."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelgen.doctor import packages, survey
from kernelgen.door import doctor
from kernelgen.errors import BadInput

START = "import sys; from kernelgen.door.doctor import run; sys.exit(run(['doctor', *sys.argv[1:]]))"
HIDING = """
import importlib.machinery, importlib.metadata
hidden = {hidden!r}
find_spec, from_name = importlib.machinery.PathFinder.find_spec, importlib.metadata.Distribution.from_name

def finds(name, path=None, target=None):
    return None if name.split(".")[0] in hidden else find_spec(name, path, target)

def named(name):
    if name in hidden:
        raise importlib.metadata.PackageNotFoundError(name)
    return from_name(name)

importlib.machinery.PathFinder.find_spec = staticmethod(finds)
importlib.metadata.Distribution.from_name = staticmethod(named)
"""
LISTENING_IN = """
import sys

def told(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        with open({to!r}, "a") as file:
            file.write(f"{{event}} {{arguments[1] if event == 'socket.connect' else arguments[0]}}\\n")

sys.addaudithook(told)
"""
H200_ROW = "NVIDIA H200, 143771, 9.0, 580.95.05, 345, 1980, 3201, Disabled"


def run(
    folder: Path, *arguments: str, variables: Mapping[str, str] | None = None, site: str | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, in a folder; `site` is Python that runs before anything else there."""
    environment = {**os.environ, **(variables or {})}
    if site is not None:
        (folder / "site").mkdir(exist_ok=True)
        (folder / "site" / "sitecustomize.py").write_text(site)
        environment["PYTHONPATH"] = str(folder / "site")
    command = [sys.executable, "-c", START, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def told(folder: Path, *arguments: str, **how: Any) -> dict[str, Any]:
    """Its record."""
    done = run(folder, "--json", *arguments, **how)
    record: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if record["core"]["ok"] else 1), done.stderr
    assert done.stderr == ""
    return record


def tool(folder: Path, name: str, script: str) -> dict[str, str]:
    """The environment in which a shell script is the tool of this name."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": f"{path.parent}{os.pathsep}{os.environ['PATH']}"}


def own_lm(folder: Path, name: str, **keys: Any) -> None:
    """A language model's config of a user's own, in `folder/own`."""
    (folder / "own" / "lm").mkdir(parents=True, exist_ok=True)
    config = {"name": name, "door": "openai_compatible", "model": "m", **keys}
    (folder / "own" / "lm" / f"{name}.yaml").write_text(yaml.safe_dump(config))


def test_it_says_what_this_machine_can_do_within_seconds(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run(tmp_path)
    assert time.monotonic() - started < 20, "a second where it has the machine to itself"
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("this machine can: generate, L0, L1")
    assert "\x1b" not in done.stdout, "colours are for terminals"
    assert [line.split("  ")[0] for line in rest if line.startswith("L")] == [
        "L0 parse",
        "L1 compile",
        "L2 correctness",
    ]
    assert list(tmp_path.iterdir()) == [], "looking leaves nothing behind"


def test_its_record_has_the_same_keys_always(tmp_path: Path) -> None:
    record = told(tmp_path)
    assert set(record) == {
        "form", "can", "core", "packages", "torch_build", "compilers", "gpu", "ncu", "containment", "ladder", "models",
        "models_why_not", "here", "missing", "findings", "seconds",
    }  # fmt: skip
    assert record["form"] == survey.FORM
    assert set(record["core"]) == {"ok", "problems", "kernelgen", "python", "sqlite", "platform", "packages"}
    assert set(record["gpu"]) == {"found", "usable", "why_not", "driver_cuda", "nvidia_smi"}
    assert set(record["ncu"]) == {"told", "why_not", "counters"}
    assert set(record["containment"]) == {"holds", "told", "why_not"}
    assert set(record["compilers"]) == {"ptxas", "nvcc", "g++", "c"}
    assert set(record["packages"]) == set(packages.OPTIONAL)
    assert set(record["here"]) == {"free_gib", "log"}
    assert {level: set(row) for level, row in record["ladder"].items()} == {
        level: {"triton", "tilelang", "cuda"} for level in ("L0", "L1", "L2")
    }
    assert {model["choice"] for model in record["models"]} >= {"playbook", "recorded", "openai", "ollama"}


def test_neither_the_door_nor_the_survey_imports_what_may_be_missing() -> None:
    code = (
        "import sys, kernelgen.door.doctor, kernelgen.cli\n"
        "heavy = {'torch', 'triton', 'tilelang', 'pydantic', 'hydra', 'omegaconf', 'dspy', 'yaml', 'tiktoken', "
        "'sqlite_utils', 'numpy', 'packaging'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_the_dsls_it_generates_and_parses_and_names_what_to_install(tmp_path: Path) -> None:
    record = told(tmp_path, site=HIDING.format(hidden=["torch", "triton", "tilelang"]))
    assert record["can"] == ["generate", "L0"]
    assert record["packages"]["torch"] is None
    assert record["ladder"]["L1"]["triton"]["missing"][:2] == ["torch", "triton"]
    lines = {what["install"]: what for what in record["missing"]}
    assert "torch, triton" in lines["pip install 'kernelgen[kernels]'"]["what"]
    assert lines["pip install tilelang"]["gives"] == "L1 (tilelang), L2 (tilelang)"


def test_without_a_package_of_the_core_it_fails_and_names_the_one_to_install(tmp_path: Path) -> None:
    site = HIDING.format(hidden=["dspy", "pydantic"])
    record = told(tmp_path, site=site)
    assert not record["core"]["ok"]
    assert record["core"]["problems"] == ["not installed: dspy, pydantic"]
    assert "generate" not in record["can"]
    assert "L0" in record["can"], "the ladder needs neither"
    assert re.fullmatch(r"pip install 'dspy[<>=.,\d]+' 'pydantic[<>=.,\d]+'", record["missing"][0]["install"])
    shown = run(tmp_path, site=site)
    assert shown.returncode == 1
    assert "it cannot generate: not installed: dspy, pydantic" in shown.stdout


def test_what_it_reads_with_may_be_missing_too(tmp_path: Path) -> None:
    record = told(tmp_path, site=HIDING.format(hidden=["yaml", "packaging", "sqlite_utils", "sqlite-utils"]))
    assert record["core"]["problems"] == ["not installed: sqlite-utils"]
    assert record["models"] == []
    assert "yaml" in record["models_why_not"]


def test_a_package_that_does_not_import_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "site" / "tiktoken"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('libfoo.so.7: cannot open shared object file')\n")
    record = told(tmp_path, site="")
    assert record["core"]["problems"] == ["tiktoken: ImportError: libfoo.so.7: cannot open shared object file"]


def test_a_package_whose_import_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "site" / "json_repair"
    hanging.mkdir(parents=True)
    (hanging / "__init__.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setattr(survey, "IMPORT_S", 3.0)
    monkeypatch.chdir(tmp_path)
    seen = survey.look(tmp_path / "events.db", tmp_path, [])
    assert len(seen.core_problems) == 1
    assert "trying the packages" in seen.core_problems[0]


def test_token_encodings_that_are_not_here_are_a_problem_of_the_core(tmp_path: Path) -> None:
    # litellm's wheel carries them; dspy itself imports without it
    site = HIDING.format(hidden=["litellm"])
    record = told(tmp_path, site=site)
    assert any("token encoding" in problem for problem in record["core"]["problems"]), record["core"]
    assert "pip install --force-reinstall litellm" in [what["install"] for what in record["missing"]]


def test_a_hanging_nvidia_smi_costs_its_own_line_and_nothing_else(tmp_path: Path) -> None:
    started = time.monotonic()
    script = f"echo $$ >{tmp_path / 'pid'}\ntrap '' TERM INT HUP\nsleep 600"
    record = told(tmp_path, variables=tool(tmp_path, "nvidia-smi", script))
    assert time.monotonic() - started < 15
    assert record["core"]["ok"]
    assert "did not end within" in record["gpu"]["nvidia_smi"]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'could not communicate with the NVIDIA driver'; exit 9", "could not communicate"),
        ("printf '\\377\\376, what, is, this'", "answers in another form"),
        ("true", None),
    ],
)
def test_what_nvidia_smi_says_wrong_is_a_line(tmp_path: Path, script: str, reason: str | None) -> None:
    record = told(tmp_path, variables=tool(tmp_path, "nvidia-smi", script))
    assert record["core"]["ok"]
    if reason is not None:
        assert reason in record["gpu"]["nvidia_smi"]


def test_a_gpu_is_shown_with_the_hardware_it_fits(tmp_path: Path) -> None:
    record = told(tmp_path, variables=tool(tmp_path, "nvidia-smi", f"echo '{H200_ROW}'"))
    (gpu,) = record["gpu"]["found"]
    assert gpu == {
        "name": "NVIDIA H200", "memory_gib": 140.4, "compute_capability": 90, "driver": "580.95.05",
        "sm_clock_mhz": 345, "max_sm_clock_mhz": 1980, "memory_clock_mhz": 3201, "mig": "Disabled", "hardware": "h200",
    }  # fmt: skip


def test_no_secret_of_environment_or_config_is_ever_shown(tmp_path: Path) -> None:
    key, other, password = "sk-live-0123456789abcdef", "ghp_abcdefghijklmnop0123", "hunter2hunter2"
    own_lm(tmp_path, "pasted", api_base="https://llm.corp.example/v1", key_env=key)
    own_lm(tmp_path, "inside", api_base=f"http://me:{password}@127.0.0.1:9/v1?key={other}")
    own_lm(tmp_path, "corporate", api_base="https://llm.corp.example/v1", key_env="CORPORATE_KEY")
    variables = {"OPENAI_API_KEY": key, "GITHUB_TOKEN": other, "CORPORATE_KEY": password, key: other}
    as_text, as_json = (run(tmp_path, *how, "--config-dir", "own", variables=variables) for how in ([], ["--json"]))
    for done in (as_text, as_json):
        assert done.returncode == 0, done.stderr
        for secret in (key, other, password, "corp.example"):
            assert secret not in done.stdout + done.stderr
    record = json.loads(as_json.stdout)
    states = {model["choice"]: (model["state"], model["note"]) for model in record["models"]}
    assert states["openai"] == ("key set", "OPENAI_API_KEY")
    assert states["corporate"] == ("key set", "CORPORATE_KEY")
    assert states["pasted"][1] == "the variable that its key_env names"
    assert states["inside"] == ("nothing listens", "127.0.0.1:9")


def test_only_loopback_is_connected_to_and_no_name_server_is_asked(tmp_path: Path) -> None:
    to = tmp_path / "connections"
    for number, host in enumerate(
        ["llm.corp.example", "10.1.2.3", "[fd00::1]", "192.168.0.2", "127.0.0.1.evil.example"]
    ):
        own_lm(tmp_path, f"remote_{number}", api_base=f"http://{host}:8000/v1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        own_lm(tmp_path, "mine", api_base=f"http://localhost:{port}/v1")
        own_lm(tmp_path, "keyless", api_base=f"http://127.0.0.1:{port}/v1", key_env="A_KEY_THAT_IS_NOT_SET")
        record = told(tmp_path, "--config-dir", "own", site=LISTENING_IN.format(to=str(to)))
    states = {model["choice"]: model["state"] for model in record["models"]}
    assert states["mine"] == "listens"
    assert states["keyless"] == "key not set"
    assert {states[f"remote_{number}"] for number in range(5)} == {"not tried"}
    seen = to.read_text().splitlines()
    asked = {re.sub(r"^\S+ \(?'?([^',\s]+).*", r"\1", line) for line in seen}
    assert f"socket.connect ('127.0.0.1', {port})" in seen, "the ear works"
    assert asked <= {"127.0.0.1", "::1"}, seen


def test_home_user_and_host_are_not_shown(tmp_path: Path) -> None:
    home = tmp_path / "home" / "alice_doe"
    toolkit = home / "cuda" / "bin"
    toolkit.mkdir(parents=True)
    nvcc = toolkit / "nvcc"
    nvcc.write_text("#!/bin/sh\necho 'release 13.0, V13.0.88'\n")
    nvcc.chmod(0o755)
    (home / "events.db").write_text("no database at all")
    variables = {"HOME": str(home), "USER": "alice_doe", "LOGNAME": "alice_doe", "CUDA_HOME": str(home / "cuda")}
    work = tmp_path / "work"
    work.mkdir()
    # what a tool says may name the host too
    variables |= tool(tmp_path, "nvidia-smi", "echo 'buildbox17: no devices were found'; exit 6")
    site = "import platform\nplatform.node = lambda: 'buildbox17'\n"
    as_text, as_json = (
        run(work, *how, f"events={home / 'events.db'}", variables=variables, site=site) for how in ([], ["--json"])
    )
    for done in (as_text, as_json):
        assert "alice_doe" not in done.stdout + done.stderr
        assert "buildbox17" not in done.stdout + done.stderr
        assert "~/events.db" in done.stdout
    record = json.loads(as_json.stdout)
    assert "HOST: no devices were found" in record["gpu"]["nvidia_smi"]
    assert record["compilers"]["nvcc"]["told"] == {"version": "13.0.88", "path": "~/cuda/bin/nvcc"}


def test_words_and_keys_it_does_not_take_are_refused() -> None:
    with pytest.raises(BadInput, match="does not know what to do with 'gpu'"):
        doctor.run(["doctor", "gpu"])
    with pytest.raises(BadInput, match="has no key 'target'"):
        doctor.run(["doctor", "target=mla_decode_fp8"])
