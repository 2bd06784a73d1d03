"""The command line's first step: picks the command, and turns errors into one sentence and an exit code.

Everything heavy is imported by the command that needs it, so that `kernelgen --help` answers at once.
Exit codes: 0 done, 1 some failed, 2 bad input or refused.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module, resources

from kernelgen import __version__
from kernelgen.errors import BadInput, KernelgenError, nearest

# command -> module of kernelgen.door with `run(arguments) -> exit code`, and the line that --help shows
COMMANDS = {
    "generate": ("generate", "write the next kernel candidate, or a sweep of them with -m"),
    "judge": ("judge", "how far up the ladder a candidate, or a kernel file of your own, comes"),
    "campaign": ("campaign", "profile, generate, judge, learn and advance until the budget, the floor or exhaustion"),
    "bundle": ("bundle", "candidates in a folder that a machine with a GPU judges alone"),
    "ingest": ("ingest", "append the verdicts that a bundle's worker brought back"),
    "replay": ("replay", "make past generations again from the log and compare every byte"),
    "constraints": ("constraints", "seed, list, show, add, retract, select; proposals, adopt"),
    "target": ("target", "list, show and check targets"),
    "prune": ("prune", "which configurations of an autotuning space can run at all, and why not"),
    "profile": ("profile", "import a profile; list and show the imported ones"),
    "headroom": ("headroom", "rank targets by the microseconds that can be won back"),
    "champion": ("champion", "show the kernel to beat and its line; import your own; export it"),
    "freeze": ("freeze", "stop generating for a target"),
    "unfreeze": ("freeze", "generate for it again"),
    "status": ("status", "where every target stands on every hardware"),
    "retract": ("retract", "take a champion or a verdict back, and what came from it"),
    "doctor": ("doctor", "what this machine can do, and how to install what is missing"),
    "log": ("log", "list, show, export and verify what happened"),
}

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""A command lives for seconds and imports much that is never garbage; Python's 700 costs it a tenth of its time."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        return _dispatch(arguments)
    except KernelgenError as error:
        _report(error, as_json="--json" in arguments)
        return error.exit_code
    except BrokenPipeError:
        # the reader of a pipe left; what it wanted was written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("kernelgen: interrupted; what was logged stays, and the next run goes on from it.", file=sys.stderr)
        return 130


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(help_text("kernelgen"))
        return 0
    command = arguments[0]
    if command in ("--version", "version"):
        print(f"kernelgen {__version__}")
        return 0
    if command not in COMMANDS:
        raise BadInput(f"There is no command '{command}'{nearest(command, COMMANDS)}")
    if "--help" in arguments or "-h" in arguments:
        print(help_text(command))
        return 0
    module = import_module(f"kernelgen.door.{COMMANDS[command][0]}")
    return int(module.run(arguments))


def help_text(command: str) -> str:
    """What `kernelgen COMMAND --help` prints."""
    text = (resources.files("kernelgen.door") / "help" / f"{command}.txt").read_text(encoding="utf-8").rstrip()
    if command == "kernelgen":
        width = max(map(len, COMMANDS))
        rows = "\n".join(f"  {name:<{width}}  {line}" for name, (_, line) in COMMANDS.items())
        return text.replace("{commands}", rows)
    return text


def _report(error: KernelgenError, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": type(error).__name__, "message": str(error), "exit_code": error.exit_code}))
    else:
        print(f"kernelgen: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
