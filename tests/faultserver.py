"""A small OpenAI-compatible server on 127.0.0.1 that fails by a plan, in every way in which servers fail clients.

with FaultServer(lambda call: "500" if call.attempt == 1 else "ok") as server:
    engine = load_engine("m", server.url)
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from klearbench.engines.openai import OpenAIEngine
from klearbench.engines.openai_pace import Patience
from klearbench.engines.openai_server import read_address
from klearbench.engines.openai_wire import Extras


@dataclass(frozen=True)
class Call:
    """One POST: its body, which try of its seed it is (from 1), when it came (monotonic seconds), its headers."""

    body: Mapping[str, Any]
    attempt: int
    at: float
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        return self.body.get("seed")


def echo(call: Call) -> dict[str, Any]:
    """A message that depends on seed and prompt alone."""
    return {"content": f"{call.body['messages'][-1]['content']} -> {call.seed}"}


Fault = Callable[["_Handler", Call, str], None]
"""What a handler does with a call; the text is the plan's argument."""
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


class FaultServer:
    """`plan(call)` names the fault of each call (`FAULTS`; "429:0.5" passes an argument), "ok" for none, or is one."""

    def __init__(self, plan: Callable[[Call], str | Fault] = lambda call: "ok", **options: Any) -> None:
        self.plan = plan
        self.reply: Callable[[Call], dict[str, Any]] = options.pop("reply", echo)
        self.finish: str | None = options.pop("finish", "stop")
        self.usage: dict[str, Any] | None = options.pop("usage", USAGE)
        self.model: dict[str, Any] = {"id": "m", "object": "model"} | options.pop("model", {})
        self.gets: dict[str, tuple[int, str, bytes]] = options.pop("gets", {})
        self.headers: dict[str, str] = options.pop("headers", {})
        assert not options, options
        self.calls: list[Call] = []
        self.asked: list[str] = []
        self.open = self.most_open = 0
        self.release = threading.Event()
        self.lock = threading.Lock()
        self._tries: Counter[int] = Counter()
        self._sockets: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self.port = 0
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def up(self) -> None:
        """Listen, on the same port as before."""
        handler = type("Bound", (_Handler,), {"faults": self})
        server = type("Server", (ThreadingHTTPServer,), {"allow_reuse_address": True, "request_queue_size": 128})
        self.release.clear()
        self._server = server(("127.0.0.1", self.port), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is None:
            return
        server, self._server = self._server, None
        self.release.set()
        server.shutdown()
        server.socket.close()
        with self.lock:
            sockets, self._sockets = self._sockets, set()
        for connection in sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> FaultServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def take(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> Call:
        with self.lock:
            self._tries[body.get("seed")] += 1
            call = Call(body, self._tries[body.get("seed")], time.monotonic(), headers)
            self.calls.append(call)
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        return call

    def answer(self, call: Call) -> dict[str, Any]:
        choice = {"index": 0, "message": {"role": "assistant"} | self.reply(call), "finish_reason": self.finish}
        return {"id": "x", "object": "chat.completion", "choices": [choice]} | (
            {"usage": self.usage} if self.usage else {}
        )

    def events(self, call: Call) -> list[bytes]:
        """The answer piece by piece, three characters each; then finish, usage and [DONE]."""
        pieces: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
        for key, text in self.reply(call).items():
            for start in range(0, len(text), 3) if isinstance(text, str) else ():
                pieces.append({"choices": [{"index": 0, "delta": {key: text[start : start + 3]}}]})
        pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": self.finish}]})
        if self.usage and (call.body.get("stream_options") or {}).get("include_usage"):
            pieces.append({"choices": [], "usage": self.usage})
        sent = [b": sign of life\n\n"]
        sent += [b"data: " + json.dumps(piece, ensure_ascii=False).encode() + b"\r\n\r\n" for piece in pieces]
        return [*sent, b"data: [DONE]\n\n"]


class _Handler(BaseHTTPRequestHandler):
    faults: FaultServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.faults.lock:
            self.faults._sockets.add(self.connection)

    def finish(self) -> None:
        with self.faults.lock:
            self.faults._sockets.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def handle(self) -> None:
        with suppress(OSError, ValueError):  # a client that left, a file that a fault has closed
            super().handle()

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        server = self.faults
        server.asked.append(self.path)
        path = self.path.partition("?")[0]
        if path in server.gets:
            status, kind, body = server.gets[path]
            return self.send(
                status, body, kind, **({"Location": "http://elsewhere/v1/models"} if status == 307 else {})
            )
        if path == "/v1/models":
            return self.send(200, json.dumps({"object": "list", "data": [server.model]}).encode())
        self.send(404, b'{"detail":"Not Found"}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.startswith("/v1/chat/completions"):
            return self.send(404, b"<html>nothing here</html>", "text/html")
        if "messages" not in body:
            return self.send(422, b'{"detail":[{"type":"missing","loc":["body","messages"]}]}')
        call = self.faults.take(body, dict(self.headers))
        planned = self.faults.plan(call)
        name, _, argument = planned.partition(":") if isinstance(planned, str) else ("", "", "")
        self.inside = True
        try:
            (FAULTS[name] if name else planned)(self, call, argument)
        finally:
            self.leave()

    def leave(self) -> None:
        """The call counts as over from its last byte on: a client must not find its own last call still open."""
        with self.faults.lock:
            self.faults.open -= self.inside
            self.inside = False

    def send(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self) -> None:
        self.send_response(200)
        for name, value in {
            "Content-Type": "text/event-stream; charset=utf-8", "Transfer-Encoding": "chunked", **self.faults.headers,
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _ok(h: _Handler, call: Call, _: str) -> None:
    if not call.body.get("stream"):
        data = json.dumps(h.faults.answer(call), ensure_ascii=False).encode()
        h.leave()
        return h.send(200, data, **h.faults.headers)
    h.begin_stream()
    events = h.faults.events(call)
    for event in events[:-1]:
        h.chunk(event[: len(event) // 2])
        h.chunk(event[len(event) // 2 :])
    h.leave()
    h.chunk(events[-1])
    h.chunk(b"")


def _status(status: int) -> Fault:
    def fault(h: _Handler, _: Call, wait: str) -> None:
        body = {"error": {"message": f"this is a {status}", "type": "planned", "code": status}}
        h.leave()
        h.send(status, json.dumps(body).encode(), **({"Retry_After": wait} if wait else {}))

    return fault


def told(body: bytes, kind: str = "application/json", status: int = 200) -> Fault:
    """An answer word for word."""
    return lambda h, call, _: (h.leave(), h.send(status, body, kind))[1]


def _half(h: _Handler, call: Call, _: str) -> None:
    """The connection breaks in the middle of the body."""
    data = json.dumps(h.faults.answer(call)).encode()
    h.send_response(200)
    h.send_header("Content-Length", str(len(data)))
    h.end_headers()
    h.wfile.write(data[: len(data) // 2])
    h.hang_up()


def _half_json(h: _Handler, call: Call, _: str) -> None:
    """A whole response of half an answer."""
    data = json.dumps(h.faults.answer(call)).encode()
    h.send(200, data[: len(data) // 2])


def _reset(h: _Handler, call: Call, _: str) -> None:
    """An RST in place of an answer."""
    h.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    h.close_connection = True
    h.wfile.close()
    h.rfile.close()
    h.connection.close()


def _hang(h: _Handler, call: Call, seconds: str) -> None:
    """Nothing, for so long or until the server goes down; then the connection is closed."""
    h.faults.release.wait(float(seconds or 60))
    h.hang_up()


def _garbage(h: _Handler, call: Call, _: str) -> None:
    h.wfile.write(b"\x00\x01 this is no HTTP \r\n\r\n")
    h.hang_up()


def _streamed(write: Callable[[_Handler, list[bytes]], None]) -> Fault:
    def fault(h: _Handler, call: Call, argument: str) -> None:
        h.begin_stream()
        write(h, h.faults.events(call))

    return fault


def _cut(h: _Handler, events: list[bytes]) -> None:
    """The connection breaks between two pieces."""
    for event in events[:4]:
        h.chunk(event)
    h.hang_up()


def _cut_clean(h: _Handler, events: list[bytes]) -> None:
    """The stream ends as if all were well, before the answer does."""
    for event in events[:4]:
        h.chunk(event)
    h.chunk(b"")


def _half_event(h: _Handler, events: list[bytes]) -> None:
    for event in [*events[:4], events[4][:20]]:
        h.chunk(event)
    h.chunk(b"")


def _error_event(h: _Handler, events: list[bytes]) -> None:
    for event in [*events[:4], b'data: {"error": {"message": "the engine fell over", "code": 500}}\n\n', events[-1]]:
        h.chunk(event)
    h.chunk(b"")


def _silent(h: _Handler, events: list[bytes]) -> None:
    for event in events[:4]:
        h.chunk(event)
    h.faults.release.wait(60)
    h.hang_up()


def _trickle(h: _Handler, events: list[bytes]) -> None:
    """Everything, at 30 ms a piece: slow, and all right."""
    for event in events[:-1]:
        h.chunk(event)
        h.faults.release.wait(0.03)
    h.leave()
    h.chunk(events[-1])
    h.chunk(b"")


def _lingers(h: _Handler, events: list[bytes]) -> None:
    """Everything, and then the connection stays as it is."""
    for event in events:
        h.chunk(event)
    h.leave()
    h.faults.release.wait(60)
    h.hang_up()


FAULTS: dict[str, Fault] = {
    "ok": _ok,
    **{
        str(code): _status(code) for code in (400, 401, 402, 403, 404, 405, 408, 413, 422, 425, 429, 500, 502, 503, 529)
    },
    "half": _half,
    "half-json": _half_json,
    "not-json": told(b"<html><h1>502 Bad Gateway</h1></html>", "text/html"),
    "empty": told(b""),
    "null": told(b"null"),
    "list": told(b"[1, 2]"),
    "deep": told(b"[" * 100_000),
    "latin-1": told('{"choices": "é"}'.encode("latin-1")),
    "no-choices": told(b'{"id": "x", "object": "chat.completion"}'),
    "empty-choices": told(b'{"choices": []}'),
    "no-message": told(b'{"choices": [{"index": 0, "finish_reason": "stop"}]}'),
    "no-finish": told(b'{"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": null}]}'),
    "number": told(b'{"choices": [{"index": 0, "message": {"content": 7}, "finish_reason": "stop"}]}'),
    "abort": told(b'{"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "abort"}]}'),
    "error-body": told(b'{"error": {"message": "upstream is gone", "code": 502}}'),
    "close": lambda h, call, _: h.hang_up(),
    "garbage": _garbage,
    "reset": _reset,
    "hang": _hang,
    "cut": _streamed(_cut),
    "cut-clean": _streamed(_cut_clean),
    "half-event": _streamed(_half_event),
    "error-event": _streamed(_error_event),
    "silent": _streamed(_silent),
    "trickle": _streamed(_trickle),
    "lingers": _streamed(_lingers),
}
ANYTIME = (
    *("408", "425", "500", "502", "503", "529", "half", "half-json", "not-json", "empty", "null", "list", "deep"),
    *("latin-1", "no-choices", "empty-choices", "no-message", "no-finish", "number", "abort", "error-body", "close"),
    *("garbage", "reset"),
)
"""Faults that pass and cost no time, whether the answer is to be streamed or not."""
STREAMED = ("cut", "cut-clean", "half-event", "error-event")
"""Faults of streams alone."""

QUICK = Patience(timeout_s=10, retries=6, backoff_s=0.01, backoff_cap_s=0.05, down_s=0.5)


def engine_of(
    server: FaultServer, concurrency: int = 8, patience: Patience = QUICK, url: str = "", **extras: Any
) -> OpenAIEngine:
    """An engine of that server whose waits are milliseconds; its key is in SOME_KEY."""
    return OpenAIEngine(read_address(url or server.url, "SOME_KEY"), "m", Extras(**extras), patience, concurrency)
