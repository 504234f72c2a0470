"""A test's own process: it gives up its rights, then runs the program as `python3 solution.py` would.

Forked from a warm interpreter, it has to make by hand what a fresh one has: clean standard streams, a `__main__`
module, the end of an interpreter (threads joined, atexit, flush, `__del__` of what the program leaves behind).
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import random
import signal
import sys
import threading
import traceback
import types
import weakref
from collections.abc import Callable
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


class Program:
    """A submission as its tests see it: made in the submission's process, so that a test finds it ready.

    `traits` says what the program may do that costs time to provide for: see `submission.traits`.
    """

    def __init__(self, settings: dict[str, Any], traits: dict[str, bool], path: str, names: dict[str, Any]) -> None:
        self.settings, self.traits, self.path = settings, traits, path
        self.functional = settings["mode"] == "functional"
        self.code: types.CodeType | None = None
        self.callbacks = atexit._ncallbacks()  # type: ignore[attr-defined]
        self.module = types.ModuleType("solution" if self.functional else "__main__")
        self.module.__dict__.update(__file__=path, __builtins__=__builtins__)
        if self.functional or settings["preamble"]:
            self.module.__dict__.update(names, stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)
        sys.modules["__main__"] = types.ModuleType("__main__")
        sys.modules[self.module.__name__] = self.module
        sys.argv[:] = [path]

    def compile(self, source: bytes) -> types.CodeType:
        """Raises what compile() raises."""
        return compile(source, self.path, "exec", dont_inherit=True)


def run(program: Program, jail: Jail, stage: Any, source: bytes, arguments: list[Any]) -> None:
    """Run one test and end this process. Descriptors 0 to 2, and 3 for a value, are the test's own already."""
    try:
        os.closerange(_VALUE_FD + program.functional, 1 << 16)
        if program.traits["random"]:
            random.seed()  # else every test would draw the same numbers
        jail.drop()
        code = program.code
        if code is None:
            stage[0] = COMPILING
            code = _compile(program, source, stage)
        stage[0] = COMPILED
        stage.close()
    except BaseException:
        _write(2, traceback.format_exc().encode(errors="replace"))
        _exit(FAULT_EXIT)
    if program.functional:
        _functional(program, code, arguments)
    _stdio(program, code)


def _compile(program: Program, source: bytes, stage: Any) -> types.CodeType:
    try:
        return program.compile(source)
    except BaseException:
        stage[0] = REFUSED
        _report()
        _exit(1)
    raise AssertionError


def _stdio(program: Program, code: types.CodeType) -> None:
    in_memory = not program.settings["wait_for_threads"]
    if in_memory:
        _keep_streams_in_memory(program)
    sys.setrecursionlimit(RECURSION_LIMIT if program.settings["preamble"] else 1000 + _depth())
    status = 0
    try:
        exec(code, program.module.__dict__)
    except BaseException:
        status = _exit_code()
    if in_memory:
        _write_all(1, _written())
    else:
        status = _finish(program, status)
    _exit(status & 0xFF)


def _functional(program: Program, code: types.CodeType, arguments: list[Any]) -> None:
    names, name = program.module.__dict__, program.settings["fn_name"]
    sys.setrecursionlimit(RECURSION_LIMIT)
    status = 0
    try:
        exec(code, names)
        holder = names.get("Solution")
        function = names[name] if holder is None else getattr(holder(), name)
        _write_all(_VALUE_FD, encode(function(*arguments)).encode())
    except BaseException:
        status = _exit_code()
    _exit(status & 0xFF)


def _keep_streams_in_memory(program: Program) -> None:
    """As LiveCodeBench's judge does: what a thread prints after the main program's end is lost."""
    with open(0, "rb", closefd=False) as stdin:
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.read()), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    if program.settings["preamble"]:
        program.module.__dict__.update(stdin=sys.stdin, stdout=sys.stdout)


def _written() -> bytes:
    try:
        sys.stdout.flush()
        return bytes(sys.stdout.buffer.getvalue())  # type: ignore[attr-defined]
    except BaseException:  # the program has put something else there, and printed to it
        return b""


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
        _write_all(_VALUE_FD, text)

    _exit(_guarded(call))


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
            return error.code
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
        sys.stderr.flush()
    except BaseException:
        _say(f"{getattr(kind, '__name__', 'exception')}\n")


def _say(text: str) -> None:
    _write(2, text.encode("utf-8", "backslashreplace"))


def _finish(program: Program, status: int) -> int:
    """What an interpreter does at its end, in its order.

    Every step touches memory that has to be copied for this process, so those that can have no effect are left out.
    """
    if program.traits["threads"]:
        _quietly(threading._shutdown)  # type: ignore[attr-defined]
    if atexit._ncallbacks() > program.callbacks:  # type: ignore[attr-defined]
        _quietly(atexit._run_exitfuncs)
    status = _flush() or status
    if program.traits["last_words"]:
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
        _quietly(_flush_writers)
        main = weakref.ref(program.module)
        del sys.modules["__main__"], program.module
        _quietly(gc.collect)
        if (kept := main()) is not None:
            _quietly(lambda: _clear(kept.__dict__))
        status = _flush() or status
    return status


def _flush_writers() -> None:
    """Text before bytes: the collector may end the lower half of a file before the upper one has handed on its text."""
    found = gc.get_objects()
    for kind in (io.TextIOWrapper, io.BufferedWriter):
        for writer in found:
            if type(writer) is kind and not writer.closed:
                writer.flush()


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
    stream = sys.stdout
    try:
        if stream is not None and not stream.closed:
            stream.flush()
        if sys.stderr is not sys.__stderr__:  # ours holds nothing back
            sys.stderr.flush()
    except BaseException:
        return 120
    return 0


def warm_up() -> None:
    """In the zygote: make what every test needs once."""
    import site

    site.setquit()
    site.setcopyright()
    site.sethelper()
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="strict", closefd=False)
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", errors="strict", closefd=False)
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True
    )
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a handler would let a test signal its parent
