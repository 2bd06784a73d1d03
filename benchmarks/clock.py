"""Times a call on the GPU with a cold L2 cache, host launches left out."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

FLUSH_BYTES = 192 * 1024 * 1024
REPEATS = 15
CALLS = 10
METHOD = (
    f"microseconds of a call: a CUDA graph of {CALLS} x [read 192 MiB to empty the L2 cache, call] less a graph of "
    f"{CALLS} x [read], over {CALLS}; median of {REPEATS} replays. spread: the middle half of the replays over the "
    "median. floor: the larger of bytes / 4.26 TB/s and operations / 677 TFLOP/s, each input read and each output "
    "written once. correct: the answer is within the target's tolerance of its float64 reference at every tune shape, "
    "at the first of them with every kind of input; wrong configurations are not timed. best: the fastest "
    "configuration of each kernel, searched kernel by kernel, timed again together"
)


class Clock:
    """Holds the flush buffer and the time of the flush alone."""

    def __init__(self) -> None:
        self._buffer = torch.zeros(FLUSH_BYTES // 4, dtype=torch.float32, device="cuda")
        self._sum = torch.zeros((), dtype=torch.float32, device="cuda")
        self._empty = statistics.median(self._seconds(lambda: None))

    def time(self, call: Callable[[], Any]) -> dict[str, float]:
        """Median time of a call in microseconds, and the spread of the replays as a fraction of it."""
        times = [(seconds - self._empty) / CALLS * 1e6 for seconds in self._seconds(call)]
        middle = statistics.median(times)
        low, _, high = statistics.quantiles(times, n=4)
        return {"us": round(middle, 2), "spread": round((high - low) / middle, 3)}

    def _flush(self) -> None:
        torch.sum(self._buffer, dim=0, out=self._sum)

    def _seconds(self, call: Callable[[], Any]) -> list[float]:
        """Times of REPEATS replays of CALLS times [flush, call]."""
        torch.cuda.synchronize()  # the inputs may still be in the making on another stream
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            self._flush()
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                self._flush()
                call()
        times = []
        for _ in range(REPEATS + 1):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        return times[1:]
