"""The tiers by name, and the two that make no world of their own: within a container, and under Landlock."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from typing import Any

from . import linux
from .box import Box, FileBox, MemoryBox
from .limits import lower_limit, plain_limits
from .namespaces import NamespaceJail
from .seccomp import Filter
from .stream import Stream
from .tiers import DEVICES, Drop


class ContainerJail:
    """Within a container: the supervisor is its root with three capabilities, each test another user.

    /box (root's own) and /work (open to all, emptied after each test that used it) are file systems in memory.
    """

    _FIRST_USER, _USERS = 10_000, 50_000

    def __init__(self, config: dict[str, Any], stream: Stream) -> None:
        del config, stream
        self._filter = Filter()
        self._tests = 0
        os.setgroups([])
        plain_limits()
        with contextlib.suppress(OSError):
            os.symlink("/work", "/dev/shm")  # for semaphores, where the engine left none
        os.chdir("/work")
        box = FileBox(os.open("/box", os.O_RDONLY | os.O_DIRECTORY), "/box", "/work", self._clean)
        box.open()
        box.look()
        self.box: Box = box

    def fork_submission(self) -> int:
        return linux.fork()

    def prepare(self, threads: bool) -> Drop:
        del threads
        return self._drop

    def renew(self) -> None:
        """Never asked for: the box cleans up by itself."""

    @property
    def _user(self) -> int:
        return self._FIRST_USER + self._tests % self._USERS

    def _become_user(self) -> None:
        os.setresgid(self._user, self._user, self._user)
        os.setresuid(self._user, self._user, self._user)
        linux.die_with_parent()

    def _drop(self) -> None:
        lower_limit(resource.RLIMIT_NPROC, 512)
        self._become_user()
        linux.set_dumpable(True)  # else /dev/stdin, a link into /proc, would be closed to it
        self._filter.install()

    def _clean(self) -> None:
        """Remove what a test left: as the test's user, who alone may, since root has no right to others' folders."""
        pid = os.fork()
        if pid == 0:
            self._become_user()
            with contextlib.suppress(OSError):
                _empty(os.open("/work", os.O_RDONLY | os.O_DIRECTORY))
            os._exit(0)
        os.waitpid(pid, 0)
        self._tests += 1
        if os.listdir("/work"):
            raise OSError(errno.ENOTEMPTY, "files of a test can't be removed")


def _empty(folder: int) -> None:
    """Remove all that is in a folder, step by step: a path to the deepest place may be longer than any may be."""
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            os.chmod(name, 0o700, dir_fd=folder)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            _empty(inner)
            os.close(inner)
            os.rmdir(name, dir_fd=folder)


class LandlockJail:
    """Without user namespaces: Landlock and seccomp alone. A program can write no file."""

    def __init__(self, config: dict[str, Any], stream: Stream) -> None:
        del stream
        self._user = config.get("user")
        places = (*(source for source, _ in config["binds"]), *(f"/dev/{name}" for name in DEVICES))
        self._rules = linux.Landlock([path for path in places if os.path.exists(path)])
        self._filter = Filter("reader")
        self.box: Box = MemoryBox()
        plain_limits()

    def fork_submission(self) -> int:
        return linux.fork()

    def prepare(self, threads: bool) -> Drop:
        del threads
        return self._drop

    def renew(self) -> None:
        """Never asked for: a test can't write anywhere."""

    def _drop(self) -> None:
        if self._user is not None:
            os.setgroups([])
            os.setresgid(self._user, self._user, self._user)
            os.setresuid(self._user, self._user, self._user)
        linux.die_with_parent()
        linux.set_dumpable(False)
        os.chdir("/")
        self._rules.restrict()
        linux.drop_capabilities()
        self._filter.install()


JAILS: dict[str, Any] = {"namespaces": NamespaceJail, "container": ContainerJail, "landlock": LandlockJail}
