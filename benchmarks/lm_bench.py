"""Times of several candidates of one prompt (`n=`), asked of a loopback server that answers slowly.

The server takes DELAYS_S for its replies, so the slowest reply is known exactly. Measured is the whole of `run_all`:
logging the requests, asking, logging the replies, parsing, writing the files. Composing and preparing are not part.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.generate_bench import prepared

TARGET = "moe_dispatch_384expert"
DELAYS_S = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
REPEATS = 3
REPLY = (
    f"[HYPOTHESIS]\nFewer launches.\n\n[KERNEL]\nEntry point: {TARGET}\n```python\n"
    f"def {TARGET}(**inputs):\n    raise NotImplementedError\n```\n"
)


class SlowServer(ThreadingHTTPServer):
    """Chat completions, each reply after the next of the delays."""

    daemon_threads = True

    def __init__(self, delays_s: Iterator[float]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.delays_s = delays_s

    @property
    def url(self) -> str:
        """For lm.api_base."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: SlowServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            delay = next(self.server.delays_s)
        time.sleep(delay)
        choice = {"index": 0, "message": {"role": "assistant", "content": REPLY}, "finish_reason": "stop"}
        body = json.dumps({"id": "1", "object": "chat.completion", "model": "slow", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def slow_server(delays_s: Iterator[float]) -> Iterator[str]:
    """The URL of a server with these delays."""
    server = SlowServer(delays_s)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def run_all_s(n: int, delays_s: tuple[float, ...]) -> float:
    """Seconds of one `run_all` of n candidates in the working folder. Raises RuntimeError when one has no candidate."""
    from kernelgen.door import compose
    from kernelgen.eventlog.store import EventLog
    from kernelgen.generation.models import open_model
    from kernelgen.generation.prepare import prepare
    from kernelgen.generation.run import Outcome
    from kernelgen.generation.several import run_all

    with slow_server(iter(delays_s)) as url:
        lm = ("lm=vllm", "lm.model=slow", f"lm.api_base={url}", "lm.retries=0")
        resolved = compose.compose([f"target={TARGET}", "state=1", f"n={n}", *lm], [])
        with EventLog.open(resolved.workspace.events) as log:
            model = open_model(resolved.config.lm, log)
            ready = prepare(resolved, log)
            started = time.perf_counter()
            results = run_all(ready, log=log, model=model, out=resolved.workspace.out)
            seconds = time.perf_counter() - started
    if not all(isinstance(result, Outcome) for result in results):
        raise RuntimeError(f"a candidate failed: {results}")
    return seconds


def run() -> dict[str, object]:
    """Measure everything; about a minute and a half."""
    slowest = max(DELAYS_S)
    with tempfile.TemporaryDirectory() as name, chdir(name):
        prepared(Path(name))
        run_all_s(1, (0.0,))  # what is imported on first use is not measured
        one = statistics.median(run_all_s(1, (slowest,)) for _ in range(REPEATS))
        eight = [run_all_s(len(DELAYS_S), DELAYS_S) for _ in range(REPEATS)]
    return {
        "slowest_reply_s": slowest,
        "one_candidate_s": one,
        "eight_candidates_s": statistics.median(eight),
        "eight_candidates_worst_s": max(eight),
        "eight_over_slowest": max(eight) / slowest,
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
