"""A machine over the network that computes scale_add for whoever asks: what `d6_reaching_out` wants to reach."""

from __future__ import annotations

import array
import socketserver
import struct
import threading
from types import TracebackType

HEADER = struct.Struct("<id")


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        n, alpha = HEADER.unpack(self.rfile.read(HEADER.size))
        given = array.array("f", self.rfile.read(8 * n))
        assert isinstance(self.server, _Server)
        self.server.asked += 1
        self.wfile.write(array.array("f", [alpha * a + b for a, b in zip(given[:n], given[n:], strict=True)]).tobytes())


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    asked = 0


class Solver:
    """Listens on a port of loopback; a context manager."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def asked(self) -> int:
        """How often it was asked."""
        return self._server.asked

    def __enter__(self) -> Solver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
