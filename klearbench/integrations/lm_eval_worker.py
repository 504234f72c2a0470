"""The process that holds an lm-eval task: it makes the prompts, and later scores completions by the task's own code.

A process of its own, because tasks are anyone's code: they may print, hang, or set alarms (which work in a main thread
alone), and loading them takes many seconds, once. The documents, and with them the answers, never leave it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from klearbench.errors import DataError, KlearError, UsageError
from klearbench.integrations.lm_eval_docs import Loaded, Spec
from klearbench.integrations.lm_eval_load import load

LIMIT_S = 60.0
"""Wall seconds for scoring one completion."""
_PACKAGE_ROOT = str(Path(__file__).parents[2])

Scored = tuple[float | None, str | None, str]
"""The score (None: it failed, and the last text says why), what was scored, all metrics in one line."""


class TaskWorker:
    """Starts the process when it is needed, and again after it was ended. `score` is for one thread at a time."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._process: subprocess.Popen[bytes] | None = None
        self._link: Connection | None = None

    def load(self) -> Loaded:
        """The questions.

        Raises:
            UsageError, DataError: as `lm_eval_load.load`; DataError too if the process died.
        """
        self.close()
        here, there = Pipe()
        roots = os.pathsep.join(filter(None, (_PACKAGE_ROOT, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "klearbench.integrations.lm_eval_worker", str(there.fileno())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=[there.fileno()], start_new_session=True, env={**os.environ, "PYTHONPATH": roots},
        )  # fmt: skip
        there.close()
        self._link = here
        try:
            here.send(self._spec)
            answer = here.recv()
        except (EOFError, OSError):
            raise DataError(f"lm_eval:{self._spec.name}", "the process that loads it died") from None
        if isinstance(answer, KlearError):
            self.close()
            raise answer
        loaded: Loaded = answer
        return loaded

    def score(self, index: int, completion: str) -> Scored:
        """Score a completion of the problem with this number (from 0)."""
        try:
            if self._link is None:
                self.load()
            link = self._link
            assert link is not None
            link.send((index, completion))
            if link.poll(LIMIT_S):
                scored: Scored = link.recv()
                return scored
            why = f"no score within {LIMIT_S:g} s"
        except (EOFError, OSError):
            why = "the process that scores died"
        except KlearError as error:
            why = str(error)
        self.close()
        return None, None, why

    def close(self) -> None:
        """End the process; may be called from another thread, and again. The next score starts it anew."""
        process, self._process, self._link = self._process, None, None
        if process is not None:
            process.kill()
            process.wait()


def serve(link: Connection) -> None:
    """The worker: a Spec comes in, its questions go out; then completions come in, and scores go out."""
    spec: Spec = link.recv()
    try:
        loaded, docs = load(spec)
    except UsageError as error:
        link.send(UsageError(str(error)))  # a DataError can't be pickled: it is made of two texts
        return
    link.send(loaded)
    while True:
        try:
            index, completion = link.recv()
        except EOFError:
            return
        link.send(_score(docs[index], completion))


def _score(doc: Any, completion: str) -> Scored:
    try:
        scored: Scored = doc.score(completion)
        return scored
    except Exception as error:  # whatever a task's code does is no fault of the sample
        return None, None, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _end_with(parent: int) -> None:
    """A task that hangs must not outlive the run."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    serve(Connection(int(sys.argv[1])))
