"""A chat completions endpoint on loopback that plays a script: one behaviour a request, the last one repeated.

And what is asked of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dspy.lm15 import Message, Request

MESSAGES = [
    {"role": "system", "content": "You are an engineer."},
    {"role": "user", "content": "An example?"},
    {"role": "assistant", "content": "One."},
    {"role": "user", "content": "Write a kernel."},
]


def request_of(model: str, messages: list[dict[str, str]] = MESSAGES) -> Request:
    """The request as the prompt's adapter makes it: texts only, no sampling parameters."""
    system, *rest = messages
    makers = {"user": Message.user, "assistant": Message.assistant}
    turns = tuple(makers[message["role"]](message["content"]) for message in rest)
    return Request(model=model, system=system["content"], messages=turns)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.paths.append(self.path)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.keys.append(self.headers.get("Authorization", ""))
        script = self.server.script
        try:
            (script.pop(0) if len(script) > 1 else script[0])(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up, as some tests want it to

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None, length: int | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)


class ChatServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: list[Behaviour]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.keys: list[str] = []
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


Behaviour = Callable[[Handler], None]


@contextmanager
def serving(*script: Behaviour) -> Iterator[ChatServer]:
    server = ChatServer(list(script))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def completion(content: Any, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "big-model-0905",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200},
    }


def says(content: Any, finish_reason: str = "stop", **message: Any) -> Behaviour:
    return sends(200, completion(content, finish_reason, **message))


def sends(status: int, body: Any, **headers: str) -> Behaviour:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda handler: handler.send(
        status, data, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def fails(status: int, message: str, code: str | None = None, **headers: str) -> Behaviour:
    return sends(status, {"error": {"message": message, "type": "x", "code": code}}, **headers)


def echoes_the_key(status: int, text: str) -> Behaviour:
    """`{key}` in the text becomes the Authorization header's value."""
    return lambda handler: fails(status, text.format(key=handler.headers["Authorization"]))(handler)


def breaks_off(handler: Handler) -> None:
    body = json.dumps(completion("half of this")).encode()
    handler.send(200, body[: len(body) // 2], length=len(body))
    handler.close_connection = True


def says_nothing(handler: Handler) -> None:
    handler.server.stopped.wait(5)
    handler.close_connection = True


def trickles(handler: Handler) -> None:
    handler.send(200, b"{", length=1000)
    while not handler.server.stopped.wait(0.05):
        handler.wfile.write(b" ")
