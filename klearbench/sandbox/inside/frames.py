"""The frames between the judge and the inside of a sandbox: a kind (one byte), a length (four), a payload.

    judge -> inside   O open a submission (settings, source)   T run a test (its input)   C close the submission
    both ways         U the user map is needed, then how many users it holds (namespaces only, before R)
    inside -> judge   R ready (JSON)   r the result of a test   E our own fault (text); the slot ends

The judge sends a test only after the result of the one before, so neither side can block the other.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER = struct.Struct("!cI")
OPEN, TEST, CLOSE = b"O", b"T", b"C"
READY, RESULT, FAULT = b"R", b"r", b"E"
USERS = b"U"
MAX_PAYLOAD = 1 << 30

_OPEN = struct.Struct("!???ddIII")
_RESULT = struct.Struct("!BiidddII")


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """One frame as bytes."""
    return HEADER.pack(kind, len(payload)) + payload


class Settings(NamedTuple):
    """What holds for every test of a submission: see `klearbench.sandbox.base.Command` and `Limits`."""

    functional: bool
    fn_name: str
    preamble: bool
    wait_for_threads: bool
    cpu_s: float
    wall_s: float
    memory_mb: int
    output_mb: int


def pack_open(settings: Settings, source: bytes) -> bytes:
    """The payload of an OPEN frame."""
    name = settings.fn_name.encode()
    flags = (settings.functional, settings.preamble, settings.wait_for_threads)
    return _OPEN.pack(*flags, *settings[4:], len(name)) + name + source


def unpack_open(payload: memoryview) -> tuple[Settings, int]:
    """The settings of a submission, and where in the payload its source begins."""
    functional, preamble, wait, cpu_s, wall_s, memory_mb, output_mb, length = _OPEN.unpack_from(payload)
    end = _OPEN.size + length
    name = bytes(payload[_OPEN.size : end]).decode()
    return Settings(functional, name, preamble, wait, cpu_s, wall_s, memory_mb, output_mb), end


def result_head(
    status: int, exit_code: int, signal: int, times: tuple[float, float], peak_mb: float, sizes: tuple[int, int, int]
) -> bytes:
    """The beginning of a RESULT frame, up to its texts. `exit_code` and `signal` are -1 where there is none; `times`
    are CPU and wall seconds; `sizes` are those of stdout, stderr and the encoded value, which follow."""
    head = _RESULT.pack(status, exit_code, signal, *times, peak_mb, *sizes[:2])
    return HEADER.pack(RESULT, len(head) + sum(sizes)) + head


def unpack_result(payload: bytes) -> tuple[int, int, int, float, float, float, bytes, bytes, bytes]:
    """Status, exit code, signal, CPU seconds, wall seconds, peak MiB, stdout, stderr, value.

    Raises:
        ValueError: the lengths don't fit.
    """
    if len(payload) < _RESULT.size:
        raise ValueError("a result frame is too short")
    status, exit_code, signal, cpu, wall, peak, out_len, err_len = _RESULT.unpack_from(payload)
    out_end = _RESULT.size + out_len
    err_end = out_end + err_len
    if err_end > len(payload):
        raise ValueError("a result frame's lengths don't fit")
    out, err, value = payload[_RESULT.size : out_end], payload[out_end:err_end], payload[err_end:]
    return status, exit_code, signal, cpu, wall, peak, out, err, value
