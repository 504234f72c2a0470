"""A test's own process: it gives up its rights, then runs the program as `python3 solution.py` would.

Forked from a warm interpreter, it has to make by hand what a fresh one has: clean standard streams, a `__main__`
module, the end of an interpreter (threads joined, atexit, flush, `__del__` of what the program leaves behind).
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import random
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .jail import Jail
from .preamble import RECURSION_LIMIT
from .values import encode

SETTING_UP, COMPILING, COMPILED, REFUSED = 0, 1, 2, 3
"""How far a test got, told through a page of memory that it gives up before the program starts."""

FAULT_EXIT = 97
_VALUE_FD = 3
_exit = os._exit
_write = os.write


@dataclass(slots=True)
class Program:
    """A submission as its tests see it."""

    settings: dict[str, Any]
    source: bytes
    path: str
    names: dict[str, Any]
    code: types.CodeType | None = None

    def compile(self) -> types.CodeType:
        """Raises what compile() raises."""
        return compile(self.source, self.path, "exec", dont_inherit=True)


def run(program: Program, jail: Jail, stage: Any, data: bytes, files: tuple[int, ...]) -> None:
    """Run one test and end this process. `files`: stdin, stdout, stderr, and the pipe for the value or -1."""
    try:
        for number, fd in enumerate(files):
            if fd >= 0:
                os.dup2(fd, number)
        os.closerange(_VALUE_FD + (files[_VALUE_FD] >= 0), 1 << 16)
        if program.settings["seeds"]:
            random.seed()  # else every test would draw the same numbers
        jail.drop()
        arguments = _arguments(data) if program.settings["mode"] == "functional" else []
        code = program.code
        if code is None:
            stage[0] = COMPILING
            code = _compile(program, stage)
        stage[0] = COMPILED
        stage.close()
    except BaseException:
        _write(2, traceback.format_exc().encode(errors="replace"))
        _exit(FAULT_EXIT)
    if program.settings["mode"] == "functional":
        _functional(program, code, arguments)
    else:
        _stdio(program, code)


def _compile(program: Program, stage: Any) -> types.CodeType:
    try:
        return program.compile()
    except BaseException:
        stage[0] = REFUSED
        _report()
        _exit(1)
    raise AssertionError


def _arguments(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.decode().split("\n") if line.strip()]


def _stdio(program: Program, code: types.CodeType) -> None:
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=program.path, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    sys.argv[:] = [program.path]
    if program.settings["preamble"]:
        main.__dict__.update(program.names, stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)
        sys.setrecursionlimit(RECURSION_LIMIT)
    else:
        sys.setrecursionlimit(1000 + _depth())
    status = _guarded(lambda: exec(code, main.__dict__))
    _exit(_finish(main, status, program.settings) & 0xFF)


def _functional(program: Program, code: types.CodeType, arguments: list[Any]) -> None:
    module = types.ModuleType("solution")
    module.__dict__.update(program.names, __file__=program.path, __builtins__=__builtins__)
    module.__dict__.update(stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)
    sys.modules.update(solution=module, __main__=types.ModuleType("__main__"))
    sys.argv[:] = [program.path]
    sys.setrecursionlimit(RECURSION_LIMIT)
    name = program.settings["fn_name"]

    def call() -> None:
        exec(code, module.__dict__)
        holder = module.__dict__.get("Solution")
        function = module.__dict__[name] if holder is None else getattr(holder(), name)
        text = encode(function(*arguments)).encode()
        rest = memoryview(text)
        while rest:
            rest = rest[_write(_VALUE_FD, rest) :]

    _exit(_guarded(call))


def _depth() -> int:
    """How many frames stand below a program that a fresh interpreter would start at once."""
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth + 1


def _guarded(work: Callable[[], None]) -> int:
    """The exit code that the interpreter would end with."""
    try:
        work()
        return 0
    except SystemExit as error:
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code
        _say(f"{error.code}\n")
    except MemoryError:
        _write(2, b"MemoryError\n")  # first: printing more may fail
    except BaseException:
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
        sys.stderr.flush()
    except BaseException:
        _say(f"{getattr(kind, '__name__', 'exception')}\n")


def _say(text: str) -> None:
    _write(2, text.encode("utf-8", "backslashreplace"))


def _finish(main: types.ModuleType, status: int, settings: dict[str, Any]) -> int:
    """What an interpreter does at its end, in its order.

    Every step touches memory that has to be copied for this process, so those that can have no effect are left out.
    """
    if settings["wait_for_threads"]:
        if settings["threads"]:
            _quietly(threading._shutdown)  # type: ignore[attr-defined]
        if atexit._ncallbacks() > settings["callbacks"]:  # type: ignore[attr-defined]
            _quietly(atexit._run_exitfuncs)
    status = _flush() or status
    if settings["wait_for_threads"] and settings["finalizes"]:
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
        _quietly(lambda: _clear(main.__dict__))
        _quietly(gc.collect)
        status = _flush() or status
    return status


def _clear(names: dict[str, Any]) -> None:
    """Let go of a module's names as the interpreter does: those with one underscore first."""
    for private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") is private:
                names[name] = None


def _quietly(step: Callable[[], object]) -> None:
    try:
        step()
    except BaseException:
        _report()


def _flush() -> int:
    """120, as the interpreter says, when what was written can't be delivered."""
    failed = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
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
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="strict", closefd=False)
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", errors="strict", closefd=False)
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a handler would let a test signal its parent
