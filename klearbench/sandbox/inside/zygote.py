"""The first process of a slot: it shuts itself in, warms an interpreter up, and forks one process a submission.

Frames come on descriptor 3, or on standard input and output in a container. The configuration is a dict: `tier` (see
`jail.py`), `path` (folders to import solutions' packages from), and what the tier needs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import sys
import traceback
from typing import Any

from . import child, frames, jail, linux, preamble, submission
from .stream import Pages, Stream
from .tiers import Jail

PRELOAD = (
    *("bisect", "collections", "copy", "functools", "heapq", "io", "itertools", "json", "math", "operator", "random"),
    *("re", "string", "time", "typing"),
)
"""What most programs import. Each extension module costs every fork several mappings: the rarer ones are imported by
the submissions that name them."""


def main(config: dict[str, Any]) -> None:
    """Become the zygote and serve until the judge hangs up."""
    stream = _streams(config["tier"])
    try:
        _serve_all(*_start(config, stream), stream)
    except BaseException:
        stream.write(frames.frame(frames.FAULT, traceback.format_exc().encode()))
        os._exit(1)
    os._exit(0)


def _start(config: dict[str, Any], stream: Stream) -> tuple[Jail, preamble.Modules]:
    """Shut this process in and warm the interpreter up."""
    shut_in: Jail = jail.JAILS[config["tier"]](config, stream)
    sys.path.remove(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path += config["path"]
    for name in PRELOAD:
        importlib.import_module(name)
    child.warm_up()
    modules = preamble.modules()
    linux.small_thread_stacks()
    for name in [n for n in sys.modules if n.partition(".")[0] == __package__]:
        del sys.modules[name]  # a program has no business to import them
    gc.collect()
    gc.freeze()
    stream.write(frames.frame(frames.READY, json.dumps({"tier": config["tier"], "python": sys.version}).encode()))
    return shut_in, modules


def _serve_all(shut_in: Jail, modules: preamble.Modules, stream: Stream) -> None:
    opening = Pages()
    while stream.read_frame(opening) == frames.OPEN:
        with opening.view() as payload:
            settings, start = frames.unpack_open(payload)
            shut_in.box.keep(payload[start:])
        _submission(shut_in, stream, settings, modules)


def _streams(tier: str) -> Stream:
    """The frames' descriptors, moved out of the way of a test's own: 0 to 4 are taken, by nothing."""
    given = (0, 1) if tier == "container" else (3, 3)
    moved = [os.dup2(fd, 20 + n, inheritable=False) for n, fd in enumerate(given)]
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(child.NOTHING_FD + 1):
        os.dup2(nowhere, fd)
    if nowhere > child.NOTHING_FD:
        os.close(nowhere)
    return Stream(*moved)


def _submission(shut_in: Jail, stream: Stream, settings: frames.Settings, modules: preamble.Modules) -> None:
    """Serve one submission, by as many processes as it takes (one that finds leftovers of a test is replaced)."""
    again = True
    while again:
        pid = shut_in.fork_submission()
        if pid == 0:
            _serve(shut_in, stream, settings, modules)
        again = _wait(pid, stream) == submission.RENEW_EXIT
        if again:
            shut_in.renew()


def _serve(shut_in: Jail, stream: Stream, settings: frames.Settings, modules: preamble.Modules) -> None:
    try:
        os._exit(submission.Submission(shut_in, stream, settings, modules).serve())
    except BaseException:
        stream.write(frames.frame(frames.FAULT, traceback.format_exc().encode()))
        os._exit(1)


def _wait(pid: int, stream: Stream) -> int:
    """The exit code of a submission's process; ends with the judge, or when the process did not end well."""
    pidfd = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(stream.fd_in, 0)
    events = [fd for fd, _ in poll.poll()]
    if pidfd not in events:  # the judge hung up
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _, state = os.waitpid(pid, 0)
    os.close(pidfd)
    code = os.waitstatus_to_exitcode(state)
    if code not in (0, submission.RENEW_EXIT):
        stream.write(frames.frame(frames.FAULT, f"a submission's process ended with {code}".encode()))
        os._exit(1)
    return code
