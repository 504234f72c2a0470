"""A container's standard streams as a channel: its stdin takes our frames, its stdout gives the inside program's."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from klearbench.sandbox.base import SandboxError

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

_HEADER = struct.Struct(">BxxxI")
"""Docker's own framing of the attach stream: the stream's number (1 stdout, 2 stderr), the length."""
_STDERR = 2
_SEND_S = 120.0
_LOOK_S = 3.0
"""A sender that gets nowhere for so long asks whether the container still runs."""
_CAUSE_S = 5
_CHUNK = 1 << 16


class AttachedContainer:
    """A running container's channel. Attached before the start, so that nothing is missed; started by the constructor.

    Raises:
        docker.errors.DockerException, OSError: the container could not be attached to or started.
    """

    def __init__(self, client: DockerClient, container: Container) -> None:
        self._client = client
        self._container = container
        # The response object owns the connection: it must live as long as the socket.
        self._stream = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        self._socket: Any = getattr(self._stream, "_sock", self._stream)
        self._raw = bytearray()
        self._out = bytearray()
        self._said = b""
        self._closed = False
        self._lock = threading.Lock()
        container.start()

    def send(self, data: bytes) -> None:
        rest = memoryview(data)
        stuck_s = 0.0
        while rest:
            try:
                self._socket.settimeout(_LOOK_S)
                rest = rest[self._socket.send(rest) :]
                stuck_s = 0.0
            except TimeoutError:
                # The engine does not hang up on a sender whose container died, so we have to look.
                stuck_s += _LOOK_S
                if stuck_s >= _SEND_S:
                    raise SandboxError(f"{self._name()} took no input for {_SEND_S:.0f} s") from None
                if not self._runs():
                    raise SandboxError(self._cause()) from None
            except (OSError, ValueError):
                raise SandboxError(self._cause()) from None

    def _runs(self) -> bool:
        from docker.errors import DockerException

        try:
            self._container.reload()
        except (DockerException, OSError):
            return False
        return bool(self._container.status == "running")

    def recv_exact(self, count: int, timeout_s: float) -> bytes:
        while len(self._out) < count:
            self._receive(timeout_s)
        data = bytes(memoryview(self._out)[:count])
        del self._out[:count]
        return data

    def _receive(self, timeout_s: float) -> None:
        try:
            self._socket.settimeout(timeout_s)
            data = self._socket.recv(_CHUNK)
        except TimeoutError:
            raise SandboxError(f"{self._name()} gave no answer for {timeout_s:.0f} s") from None
        except (OSError, ValueError):
            raise SandboxError(self._cause()) from None
        if not data:
            raise SandboxError(self._cause())
        self._raw += data
        self._demultiplex()

    def _demultiplex(self) -> None:
        """Move every complete piece of the raw stream to where it belongs."""
        start = 0
        while len(self._raw) - start >= _HEADER.size:
            stream, length = _HEADER.unpack_from(self._raw, start)
            end = start + _HEADER.size + length
            if end > len(self._raw):
                break
            piece = self._raw[start + _HEADER.size : end]
            if stream == _STDERR:
                self._said = (self._said + piece)[-2000:]
            else:
                self._out += piece
            start = end
        del self._raw[:start]

    def close(self) -> None:
        """End the container at once; the engine removes it. A reader in another thread gets a SandboxError."""
        from docker.errors import DockerException

        with self._lock:
            if self._closed:
                return
            self._closed = True
        # Gone already, or a kind of connection (ssh, named pipe) that has no shutdown.
        with suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)
        # Removed by the engine meanwhile; or the engine is gone, and with it the other end of the container's stdin.
        with suppress(DockerException, OSError):
            self._container.remove(force=True)
        self._stream.close()
        self._socket.close()

    def _name(self) -> str:
        return f"container {self._container.id[:12]}"

    def _cause(self) -> str:
        """Why the stream ended, as the engine tells it: one line."""
        if self._closed:
            return f"{self._name()} was closed"
        from docker.errors import DockerException

        try:
            events = self._events()
            self._client.ping()
        except (DockerException, OSError):
            where = os.environ.get("DOCKER_HOST", "its default address")
            return f"the Docker engine at {where} stopped while {self._name()} was running"
        return f"{self._name()} {self._death(events)}"

    def _events(self) -> dict[str, dict[str, str]]:
        """What the engine saw of this container, up to its death: actions and their attributes.

        A dead container is removed at once, so only the engine's log of events knows how it died.
        """
        seen: dict[str, dict[str, str]] = {}
        stream = self._client.api.events(
            since=0,
            until=int(time.time()) + _CAUSE_S,
            filters={"container": self._container.id, "type": "container"},
            decode=True,
        )
        for event in stream:
            seen[event["Action"]] = event["Actor"]["Attributes"]
            if event["Action"] == "die":
                break
        stream.close()
        return seen

    def _death(self, events: dict[str, dict[str, str]]) -> str:
        code = events.get("die", {}).get("exitCode")
        if code is None:
            return "closed its stream but did not end"
        starved = "oom" in events
        if code == "137":
            return "was killed for lack of memory" if starved else "was killed from outside (SIGKILL)"
        said = " ".join(self._said.decode(errors="replace").split())[-500:]
        parts = [f"ended with exit code {code}"]
        parts += ["a process in it had been killed for lack of memory"] if starved else []
        parts += [f"it said: {said}"] if said else []
        return "; ".join(parts)
