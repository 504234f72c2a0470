"""A test's own process: it gives up its rights, then runs the program as `python3 solution.py` would.

Forked from a warm interpreter, it has to make by hand what a fresh one has: clean standard streams, a `__main__`
module, the end of an interpreter (threads joined, atexit, flush, `__del__` of what the program leaves behind).
"""

from __future__ import annotations

import atexit
import io
import json
import os
import random
import resource
import signal
import sys
import types
from typing import Any

from .ending import exit_code, finish, report
from .frames import Settings
from .preamble import RECURSION_LIMIT
from .tiers import Drop
from .values import encode

SETTING_UP, COMPILING, COMPILED, REFUSED = 0, 1, 2, 3
"""How far a test got, told through a page of memory that it gives up before the program starts."""

FAULT_EXIT = 97
VALUE_FD, NOTHING_FD = 3, 4
_FRAMES_TO_COME = 1
"""Between the making of a `Program` and the program itself."""
# Kept from before a program runs, which may put others in their place.
_exit = os._exit
_write = os.write


class Program:
    """A submission as its tests see it: made in the submission's process, so that a test finds it ready.

    `traits` says what the program may do that costs time to provide for: see `submission.traits`; `module` is the
    zygote's, with the preamble's names where these are wanted: this process needs it once only.
    """

    def __init__(
        self,
        settings: Settings,
        traits: dict[str, bool],
        path: str,
        module: types.ModuleType,
        drop: Drop,
        memory: tuple[int, int],
    ) -> None:
        self.traits, self.path, self.module, self.drop, self.memory = traits, path, module, drop, memory
        self.functional, self.preamble = settings.functional, settings.preamble
        self.first_fd = VALUE_FD + self.functional
        self.fn_name = settings.fn_name
        self.in_memory = not settings.wait_for_threads
        self.code: types.CodeType | None = None
        self.callbacks = atexit._ncallbacks()
        self.stdout = sys.stdout
        self.names = module.__dict__
        name = "solution" if self.functional else "__main__"
        self.names.update(__name__=name, __file__=path)
        sys.modules["__main__"] = types.ModuleType("__main__")
        sys.modules[name] = module
        sys.argv[:] = [path]
        sys.orig_argv[:] = ["python3", path]  # the real one shows where the judge lies
        limit = RECURSION_LIMIT if settings.preamble or self.functional else 1000 + _depth() + _FRAMES_TO_COME
        sys.setrecursionlimit(limit)

    def compile(self, source: bytes) -> types.CodeType:
        """Raises what compile() raises."""
        return compile(source, self.path, "exec", dont_inherit=True)


def run(program: Program, stage: Any, source: bytes) -> None:
    """Run one test and end this process. Descriptors 0 to 2, and 3 for a value, are the test's own already.

    Flat, since each function called and each object looked at is a page of memory that has to be copied first.
    """
    try:
        arguments = _arguments() if program.functional else []
        resource.setrlimit(resource.RLIMIT_AS, program.memory)
        program.drop()
        os.closerange(program.first_fd, 1 << 16)
        code = program.code
        if code is None:
            stage[0] = COMPILING
            code = _compile(program, source, stage)
        if program.traits["random"]:
            random.seed()  # else every test would draw the same numbers
        if program.in_memory:
            _keep_streams_in_memory(program)
        stage[0] = COMPILED
        stage.close()
    except BaseException:
        report()
        _exit(FAULT_EXIT)
    status = 0
    try:
        exec(code, program.names)
        if program.functional:
            _call(program, arguments)
    except BaseException:
        status = exit_code()
    if program.in_memory:
        _write_all(1, _written())
    elif not program.functional:
        status = finish(program, status)
    _exit(status & 0xFF)


def _arguments() -> list[Any]:
    """The test's input, one value a line; the program then finds nothing to be read."""
    with open(0, "rb", closefd=False) as file:
        data = file.read()
    os.dup2(NOTHING_FD, 0)
    return [_value(line) for line in data.decode().split("\n") if line.strip()]


def _value(line: str) -> Any:
    """JSON, or after "=" a Python literal: what JSON does not have (tuples, sets, keys other than text)."""
    if not line.startswith("="):
        return json.loads(line)
    import ast

    return ast.literal_eval(line[1:])


def _compile(program: Program, source: bytes, stage: Any) -> types.CodeType:
    try:
        return program.compile(source)
    except BaseException:
        stage[0] = REFUSED
        report()
        _exit(1)
    raise AssertionError


def _call(program: Program, arguments: list[Any]) -> None:
    """Functional mode: a method of `Solution`, or where there is no such class a function of the module."""
    holder = program.names.get("Solution")
    function = program.names[program.fn_name] if holder is None else getattr(holder(), program.fn_name)
    _write_all(VALUE_FD, encode(function(*arguments)).encode())


def _keep_streams_in_memory(program: Program) -> None:
    """As LiveCodeBench's judge does: what a thread prints after the main program's end is lost."""
    with open(0, "rb", closefd=False) as stdin:
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.read()), encoding="utf-8", newline="\n")
    sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")
    if program.preamble:
        program.names.update(stdin=sys.stdin, stdout=sys.stdout)


def _written() -> bytes:
    try:
        sys.stdout.flush()
        return bytes(sys.stdout.buffer.getvalue())  # type: ignore[union-attr]
    except BaseException:  # the program has put something else there, and printed to it
        return b""


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[_write(fd, rest) :]


def _depth() -> int:
    """How many frames stand below a program that a fresh interpreter would start at once."""
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth + 1


def warm_up() -> None:
    """In the zygote: make what every test needs once."""
    import site

    site.setquit()
    site.setcopyright()
    site.sethelper()
    streams: dict[str, Any] = {
        "stdin": io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", "strict", "\n"),
        "stdout": io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8", "strict", "\n"),
        "stderr": io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace", "\n", line_buffering=True
        ),
    }
    for name, stream in streams.items():
        stream.mode = "r" if name == "stdin" else "w"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a handler would let a test signal its parent
