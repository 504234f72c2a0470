"""Commands in processes forked from one that has imported everything: each start of torch would cost five seconds.

For tests that start the same commands again and again. Signals, exit codes and what is printed are those of a real
command; `tools.start` makes a real one.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.tools import ROOT, environment

_PRELOADED = (
    *("klearrl.train", "klearrl.cli", "klearbench.cli", "klearbench.evaluate", "klearbench.curation.pipeline"),
    *("klearbench.engines.hf", "transformers.models.qwen3.modeling_qwen3", "safetensors.torch"),
    *("datasets", "pyarrow.parquet"),
)
_ONE_AT_A_TIME = threading.Lock()
"""A start looks how all other processes are, and two threads that look at one process may lose its exit code."""


@contextmanager
def _environ(wanted: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@functools.cache
def _server() -> Any:
    """The process that is forked; it has the environment of commands, so torch has one thread in it."""
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    with _environ(environment()):
        forkserver.ensure_running()
    return context


def fork(call: Callable[..., None], *arguments: object, out: Path, err: Path, env: Mapping[str, str]) -> BaseProcess:
    """A process that calls a module's function; `env` is its whole environment, and names its faults.

    The files take what it prints; they may be one.
    """
    with _ONE_AT_A_TIME:
        process: BaseProcess = _server().Process(target=_child, args=(call, arguments, str(out), str(err), dict(env)))
        process.start()
    return process


def _child(call: Callable[..., None], arguments: tuple[object, ...], out: str, err: str, env: dict[str, str]) -> None:
    for path, number in ((os.devnull, 0), (out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.environ.clear()
    os.environ.update(env)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import torch

    from klearbench import faults

    torch.set_num_threads(1)
    faults._PLAN.update(faults._parse(env.get("KLEAR_FAULT", "")))
    call(*arguments)


def command(program: str, words: list[str], cwd: str = "") -> None:
    """What `python -m {program}.cli` does, in a folder or in that of the tests."""
    import importlib

    if cwd:
        os.chdir(cwd)
    sys.argv = [program, *words]
    importlib.import_module(f"{program}.cli").main()


class Forked:
    """A module's function in a process of its own; the part of `subprocess.Popen` that the tests use."""

    def __init__(self, call: Callable[..., None], *arguments: object, fault: str = "") -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._files = [Path(self._folder.name) / name for name in ("out", "err")]
        self.args = [call.__name__, *map(str, arguments)]
        out, err = self._files
        self._process = fork(call, *arguments, out=out, err=err, env=environment(fault))

    @property
    def returncode(self) -> int | None:
        with _ONE_AT_A_TIME:
            return self._process.exitcode

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Nothing happens where the process has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it printed. Raises subprocess.TimeoutExpired when it has not ended in time."""
        end = time.monotonic() + (300.0 if timeout is None else timeout)
        while self.returncode is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(self.args, timeout or 300.0)
            time.sleep(0.01)
        out, err = (path.read_text() if path.exists() else "" for path in self._files)
        self._folder.cleanup()
        return out, err


def start(program: str, *words: object, fault: str = "", cwd: Path = ROOT) -> Forked:
    """A command, as `tools.start` makes a real one."""
    return Forked(command, program, [str(word) for word in words], str(cwd), fault=fault)


def run(program: str, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    process = start(program, *words, **options)
    try:
        out, err = process.communicate()
    except BaseException:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def ok(program: str, *words: object) -> str:
    done = run(program, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout
