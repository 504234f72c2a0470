"""The tests of LiveCodeBench's rows: plain JSON, or base64 -> zlib -> pickle -> JSON, read without unpickling anything.

    {"question_id": "1873_A", "public_test_cases": "[{\\"input\\": .., \\"output\\": .., \\"testtype\\": \\"stdin\\"}]",
     "private_test_cases": "eJx1..", "metadata": "{\\"func_name\\": ..}"}

Format and order (public, then private tests) as in lcb_runner/benchmarks/code_generation.py of
LiveCodeBench/LiveCodeBench at 28fef95; the 6 seconds and the import preamble are those of its testing_util.py, the
4 GiB its comment there.

Covered: a hostile pickle (only the opcodes of one string are known here, so nothing can be called), a zip bomb, cut or
corrupt data. Not covered: JSON within the size limit that is very deep or slow to read.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickletools
import zlib
from collections.abc import Mapping
from typing import Any

from klearbench.errors import DataError
from klearbench.suites.coderows import parse_code
from klearbench.types import CodeTests

TIME_LIMIT_S = 6.0
MEMORY_LIMIT_MB = 4096
MAX_BYTES = 512 << 20
"""The largest decompressed tests of one row: the official ones stay well below it."""
_MODES = {"stdin": "stdio", "functional": "functional"}
_FIELDS = ("public_test_cases", "private_test_cases")
_STRINGS = {"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
_HARMLESS = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}


def read_lcb_tests(path: object, line: int | None, row: Mapping[str, Any]) -> CodeTests | None:
    """All tests of a row, public ones first; None for a row without any (whether that will do is the suite's to say).

    Args:
        path: the file, for messages.
        line: the row's line, for messages.
        row: a row in LiveCodeBench's format.

    Raises:
        DataError: a field is missing, damaged, hostile, too large, or of another format (file, line and problem named).
    """
    key = row.get("question_id")
    if not isinstance(key, str) or not key:
        raise DataError(path, f"question_id is {key!r}, a string was expected", line)
    try:
        tests = [test for field in _FIELDS for test in _field(field, row.get(field))]
        return _code_tests(key, tests, _metadata(row.get("metadata"))) if tests else None
    except ValueError as error:
        raise DataError(path, f"problem {key!r}: {error}", line) from None


def decode_tests(text: str, max_bytes: int = MAX_BYTES) -> list[Any]:
    """The tests of one field.

    Raises:
        ValueError: it is damaged, hostile, or more than `max_bytes` when inflated (one line).
    """
    plain = text if text.lstrip()[:1] in ("[", "") else unpickle_text(_inflate(text, max_bytes))
    try:
        tests = json.loads(plain)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON ({error})") from None
    if not isinstance(tests, list):
        raise ValueError(f"a list of tests was expected, found {type(tests).__name__}")
    return tests


def _inflate(text: str, max_bytes: int) -> bytes:
    try:
        packed = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"neither JSON nor base64 ({error})") from None
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(packed, max_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"not zlib data ({error})") from None
    if len(data) > max_bytes:
        raise ValueError(f"more than {max_bytes:,} bytes when inflated: a zip bomb, or not LiveCodeBench's")
    if not stream.eof:
        raise ValueError("cut off: the zlib data has no end")
    return data


def unpickle_text(data: bytes) -> str:
    """The string that a pickle holds. Read by the list of its opcodes: nothing is built, imported or called.

    Raises:
        ValueError: it is no pickle, or a pickle of anything but one string.
    """
    stream = io.BytesIO(data)
    found: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            if opcode.name in _STRINGS:
                found.append(str(argument))
            elif opcode.name not in _HARMLESS:
                raise _NotTextError(f"a pickle of something other than a string ({opcode.name}): refused, unread")
    except _NotTextError:
        raise
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"not a whole pickle ({error})") from None
    if len(found) != 1 or stream.read(1):
        raise ValueError("a pickle of something other than one string: refused")
    return found[0]


class _NotTextError(ValueError):
    """An opcode that a string's pickle has no use for."""


def _field(name: str, value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{name} is {'missing' if value is None else type(value).__name__}, a string was expected")
    try:
        return decode_tests(value) if value.strip() else []
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _metadata(value: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(value) if isinstance(value, str) and value.strip() else value or {}
    except ValueError as error:
        raise ValueError(f"metadata: not valid JSON ({error})") from None
    if not isinstance(found, Mapping):
        raise ValueError(f"metadata is {type(found).__name__}, an object was expected")
    return found


def _code_tests(key: str, tests: list[Any], metadata: Mapping[str, Any]) -> CodeTests:
    for number, test in enumerate(tests, start=1):
        if not isinstance(test, Mapping):
            raise ValueError(f"test {number} is {type(test).__name__}, an object was expected")
    kinds = sorted({str(test.get("testtype")) for test in tests})
    if len(kinds) > 1 or kinds[0] not in _MODES:
        raise ValueError(f"its tests must have one testtype of {', '.join(_MODES)}; found {', '.join(kinds)}")
    row = {
        "mode": _MODES[kinds[0]],
        "tests": [{"input": test.get("input"), "output": test.get("output")} for test in tests],
        "time_limit_s": TIME_LIMIT_S,
        "memory_limit_mb": MEMORY_LIMIT_MB,
        "preamble": "lcb",
    }
    return parse_code(key, row if kinds == ["stdin"] else {**row, "fn_name": metadata.get("func_name")})
