"""The end of a program: what an interpreter does then, made by hand for a process that only was forked from one."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TextIO

_LONG = 1 << 63
_write = os.write  # kept from before a program runs, which may put another in its place
_OURS = os.path.dirname(__file__)


class Ending(Protocol):
    """What of a program matters at its end: see `child.Program`."""

    traits: dict[str, bool]
    callbacks: int
    stdout: TextIO
    module: types.ModuleType
    names: dict[str, Any]


def exit_code() -> int:
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
        report()
    return 1


def report() -> None:
    """Print the exception being handled, without our own frames, by the program's own hook."""
    kind, value, trace = sys.exc_info()
    while trace is not None and os.path.dirname(trace.tb_frame.f_code.co_filename) == _OURS:
        trace = trace.tb_next
    try:
        value.__traceback__ = trace  # type: ignore[union-attr]
        sys.excepthook(kind, value, trace)  # type: ignore[arg-type]
    except BaseException:
        _say(f"{getattr(kind, '__name__', 'exception')}\n")


def _say(text: str) -> None:
    _write(2, text.encode("utf-8", "backslashreplace"))


def finish(program: Ending, status: int) -> int:
    """What an interpreter does at its end, in its order; what can have no effect is left out. Nothing that goes wrong
    here but a failed flush changes the exit code."""
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


def _let_go(program: Ending) -> None:
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
        report()


def _silently(step: Callable[[], object]) -> None:
    with contextlib.suppress(BaseException):
        step()


def _flush() -> int:
    """120, as the interpreter says, when what was written can't be delivered: flush_std_files in pylifecycle.c."""
    failed = 0
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is None:
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
