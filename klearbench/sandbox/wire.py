"""The judge's end of a slot: commands out, results in, over any channel of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from klearbench.faults import fault
from klearbench.sandbox.base import Command, RunResult, RunStatus, SandboxError
from klearbench.sandbox.inside import frames

_GRACE_S = 60.0
"""How much longer than its wall limit a run may take on a loaded machine before the slot counts as hung."""


class Channel(Protocol):
    """A stream of bytes to and from the inside of a sandbox."""

    def send(self, data: bytes) -> None:
        """Send all of it. Raises SandboxError when the other end is gone."""
        ...

    def recv_exact(self, count: int, timeout_s: float) -> bytes:
        """Exactly `count` bytes. Raises SandboxError at the end of the stream, or when nothing comes for so long."""
        ...

    def close(self) -> None:
        """End the inside and free everything. May be called twice, and from another thread."""
        ...


class StreamSlot:
    """A slot over a channel."""

    def __init__(self, channel: Channel, slot_id: str) -> None:
        self._channel = channel
        self._id = slot_id
        self._busy = False

    @property
    def id(self) -> str:
        return self._id

    def run(self, command: Command, inputs: Iterable[bytes]) -> Iterator[RunResult]:
        """Run the program once an input; see `klearbench.sandbox.base.Slot.run`."""
        if self._busy:
            raise SandboxError(f"slot {self._id} is already running a submission")
        self._busy = True
        limit_s = command.limits.wall_s + _GRACE_S
        try:
            fault("sandbox.run")
            self._channel.send(frames.frame(frames.OPEN, _opening(command)))
            for data in inputs:
                self._channel.send(frames.frame(frames.TEST, data))
                yield self._result(limit_s)
            self._channel.send(frames.frame(frames.CLOSE))
            self._busy = False
        except GeneratorExit:
            # Between two tests the stream is in step, so the slot stays of use.
            self._channel.send(frames.frame(frames.CLOSE))
            self._busy = False
            raise

    def _result(self, limit_s: float) -> RunResult:
        payload = read_frame(self._channel, frames.RESULT, limit_s)
        try:
            status, exit_code, signal, cpu, wall, peak, out, err, value = frames.unpack_result(payload)
            return RunResult(
                RunStatus(status),
                None if exit_code < 0 else exit_code,
                None if signal < 0 else signal,
                out,
                err,
                value,
                cpu,
                wall,
                peak,
                self._id,
            )
        except ValueError as error:
            raise SandboxError(f"slot {self._id} sent a broken result: {error}") from None

    def close(self) -> None:
        self._channel.close()


def read_frame(channel: Channel, kind: bytes, timeout_s: float) -> bytes:
    """The payload of the next frame, which must be of this kind. Raises SandboxError; a FAULT frame's text is told."""
    found, length = frames.HEADER.unpack(channel.recv_exact(frames.HEADER.size, timeout_s))
    if length > frames.MAX_PAYLOAD:
        raise SandboxError("the sandbox sent a frame that is too long")
    payload = channel.recv_exact(length, timeout_s) if length else b""
    if found == frames.FAULT:
        lines = payload.decode(errors="replace").strip().splitlines() or ["no word of why"]
        where = " ".join(line.strip() for line in lines[:-1])[-600:]
        raise SandboxError(f"the sandbox broke: {lines[-1]}" + (f" ({where})" if where else ""))
    if found != kind:
        raise SandboxError(f"the sandbox sent a frame {found!r}, {kind!r} was expected")
    return payload


def read_ready(channel: Channel, timeout_s: float) -> dict[str, Any]:
    """Wait for a new slot's first frame; what it says of itself."""
    ready: dict[str, Any] = json.loads(read_frame(channel, frames.READY, timeout_s))
    return ready


def _opening(command: Command) -> bytes:
    limits = command.limits
    settings = frames.Settings(
        functional=command.mode == "functional",
        fn_name=command.fn_name or "",
        preamble=command.preamble is not None,
        wait_for_threads=command.wait_for_threads,
        cpu_s=limits.cpu_s,
        wall_s=limits.wall_s,
        memory_mb=limits.memory_mb,
        output_mb=limits.output_mb,
    )
    # A lone surrogate can't be encoded; passed on, the compiler refuses it, which is the program's own fault.
    return frames.pack_open(settings, command.code.encode("utf-8", "surrogatepass"))
