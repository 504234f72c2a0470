"""A test's own process: it gives up its rights, then runs the program as `python3 solution.py` would.

Forked from a warm interpreter, it has to make by hand what a fresh one has: clean standard streams, a `__main__`
module, the end of an interpreter (threads joined, atexit, flush, `__del__` of what the program leaves behind).
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import random
import resource
import signal
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from .frames import Settings
from .jail import Drop
from .preamble import RECURSION_LIMIT
from .values import encode

SETTING_UP, COMPILING, COMPILED, REFUSED = 0, 1, 2, 3
"""How far a test got, told through a page of memory that it gives up before the program starts."""

FAULT_EXIT = 97
VALUE_FD, NOTHING_FD = 3, 4
_LONG = 1 << 63
_FRAMES_TO_COME = 1
"""Between the making of a `Program` and the program itself."""
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
        self.plain = not (self.in_memory or traits["threads"] or traits["last_words"])
        self.code: types.CodeType | None = None
        self.callbacks = atexit._ncallbacks()
        self.stdout, self.stderr = sys.stdout, sys.stderr
        self.names = module.__dict__
        name = "solution" if self.functional else "__main__"
        self.names.update(__name__=name, __file__=path)
        sys.modules["__main__"] = types.ModuleType("__main__")
        sys.modules[name] = module
        sys.argv[:] = [path]
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
        _report()
        _exit(FAULT_EXIT)
    status = 0
    try:
        exec(code, program.names)
        if program.functional:
            _call(program, arguments)
    except BaseException:
        status = _exit_code()
    if not program.functional:
        status = _finish(program, status)
    _exit(status & 0xFF)


def _arguments() -> list[Any]:
    """The test's input, one JSON value a line; the program then finds nothing to be read."""
    with open(0, "rb", closefd=False) as file:
        data = file.read()
    os.dup2(NOTHING_FD, 0)
    return [json.loads(line) for line in data.decode().split("\n") if line.strip()]


def _compile(program: Program, source: bytes, stage: Any) -> types.CodeType:
    try:
        return program.compile(source)
    except BaseException:
        stage[0] = REFUSED
        _report()
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


def _exit_code() -> int:
    """The exit code that the interpreter would end with for the exception being handled."""
    error = sys.exc_info()[1]
    if isinstance(error, SystemExit):
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code if -_LONG <= error.code < _LONG else -1
        _say(f"{error.code}\n")
    elif isinstance(error, MemoryError):
        _write(2, b"MemoryError\n")  # no more: printing the rest may fail
    else:
        _report()
    return 1


def _report() -> None:
    """Print the exception being handled, without the frames of this file, by the program's own hook."""
    kind, value, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        value.__traceback__ = trace  # type: ignore[union-attr]
        sys.excepthook(kind, value, trace)  # type: ignore[arg-type]
    except BaseException:
        _say(f"{getattr(kind, '__name__', 'exception')}\n")


def _say(text: str) -> None:
    _write(2, text.encode("utf-8", "backslashreplace"))


def _finish(program: Program, status: int) -> int:
    """What an interpreter does at its end, in its order; what can have no effect is left out. Nothing that goes wrong
    here but a failed flush changes the exit code."""
    if program.in_memory:
        _write_all(1, _written())
        return status
    if program.traits["threads"]:
        _quietly(_join_threads)
    if atexit._ncallbacks() > program.callbacks:
        _quietly(atexit._run_exitfuncs)
    status = _flush() or status
    if program.traits["last_words"]:
        _quietly(lambda: _let_go(program))
    if getattr(sys, "stdout", None) is not program.stdout:
        _silently(program.stdout.flush)  # as it would be when it is let go of
    return status


def _let_go(program: Program) -> None:
    """End the main module's objects, so that what they do at their end is done."""
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    _flush_writers()
    main = weakref.ref(program.module)
    sys.modules.pop("__main__", None)
    del program.module, program.names
    gc.collect()
    if (kept := main()) is not None:
        _clear(kept.__dict__)
    _silently(program.stdout.flush)


def _join_threads() -> None:
    """Wait for the program's threads, if it has the module that makes them."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()


def _flush_writers() -> None:
    """Text before bytes: the collector may end the lower half of a file before the upper one has handed on its text."""
    found = gc.get_objects()
    for kind in (io.TextIOWrapper, io.BufferedWriter):
        for writer in found:
            if type(writer) is kind:
                _silently(writer.flush)


def _clear(names: dict[str, Any]) -> None:
    """Let go of a module's names as the interpreter does: those with one underscore first."""
    for private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") is private:
                names[name] = None


def _quietly(step: Callable[[], object]) -> None:
    """Do it; what goes wrong is told, as the interpreter does at its end."""
    try:
        step()
    except BaseException:
        _report()


def _silently(step: Callable[[], object]) -> None:
    with contextlib.suppress(BaseException):
        step()


def _flush() -> int:
    """120, as the interpreter says, when what was written can't be delivered: flush_std_files in pylifecycle.c."""
    failed = 0
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is None or (stream is sys.__stderr__):  # ours holds nothing back
            continue
        try:
            closed = bool(stream.closed)
        except BaseException:
            closed = False
        try:
            if not closed:
                stream.flush()
        except BaseException:
            failed = 120
    return failed


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
            io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace", "\n", write_through=True
        ),
    }
    for name, stream in streams.items():
        stream.mode = "r" if name == "stdin" else "w"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a handler would let a test signal its parent
