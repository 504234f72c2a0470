"""What a slot is shut in, by tier. Every tier gives the same few steps to the zygote, the submission and the test.

namespaces  user, mount, network, IPC, host name and PID namespaces; a root of its own in memory; no /proc
container   the container around it (Docker, podman) is the jail; tests run as another user
landlock    an ordinary process: reads a few folders, writes nothing; for machines without user namespaces
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .box import Box

DEVICES = ("null", "zero", "full", "random", "urandom")
"""The device files that a program finds."""

Drop = Callable[[], object]


class Jail(Protocol):
    """The steps of one tier. `box` holds the files of the tests; it is made once, and serves one test at a time."""

    box: Box

    def fork_submission(self) -> int:
        """Fork the zygote: 0 in the submission's process, which is shut in further, its number in the zygote."""
        ...

    def prepare(self, threads: bool) -> Drop:
        """In the submission's process, before a test. `threads` says whether the program may start threads. What is
        returned is called in a test's process to give up every right, for good."""
        ...

    def renew(self) -> None:
        """In the zygote: a test has left files behind; make the place where tests write a new one."""
        ...
