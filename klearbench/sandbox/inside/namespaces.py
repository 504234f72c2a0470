"""The tier `namespaces`: everything a slot can see is made for it, by an ordinary user or by root."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from functools import partial
from typing import Any

from . import frames, linux
from .box import Box, FileBox
from .limits import lower_limit, plain_limits
from .seccomp import Filter
from .stream import Pages, Stream
from .tiers import DEVICES, Drop

_ROOT = "/proc"
"""Any folder that exists everywhere will do: the new root is mounted over it before it becomes the root."""

_BOX, _WORK = "/run/box", "/run/work"
"""In the new root: where no Python and no library lies."""

_PLAIN = linux.MS_NOSUID | linux.MS_NODEV
_TEST_USER = 1000


class NamespaceJail:
    """Namespaces made by an ordinary user or by root.

    Args:
        config: `binds` (what is bound read-only: source, place), `masked` (folders hidden within them), `root`
            (whether the judge is root).
        stream: the frames to the judge, which alone can write the user map.
    """

    def __init__(self, config: dict[str, Any], stream: Stream) -> None:
        self._config = config
        spaces = linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS | linux.CLONE_NEWPID
        if config["root"]:
            linux.unshare(linux.CLONE_NEWNS)
            self._build_root()
        linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS | spaces)
        self._users = _ask_for_users(stream)
        if config["root"]:
            os.setgroups([])
        if self._users > 1:
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
        if not config["root"]:
            self._build_root()
        self._become_init()
        self._own = os.pidfd_open(os.getpid())
        self.box = self._make_box()
        plain_limits()
        self._program = Filter()
        Filter("spawner").install()

    def _become_init(self) -> None:
        """The zygote is the first process of the PID namespace: when it ends, the kernel ends all others."""
        pid = os.fork()
        if pid:
            for fd in range(3, 32):
                with contextlib.suppress(OSError):
                    os.close(fd)
            os.waitpid(pid, 0)
            os._exit(0)
        os.setsid()  # or a test could signal the process that waits, which may be its own user's
        linux.die_with_parent()

    def _build_root(self) -> None:
        linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("tmpfs", _ROOT, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,nr_inodes=400,mode=755")
        for source, place in self._config["binds"]:
            _bind(source, _ROOT + place)
        for path in self._config["masked"]:
            if os.path.isdir(_ROOT + path):
                flags = linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
                linux.mount("tmpfs", _ROOT + path, "tmpfs", flags, "size=4k,mode=755")
        for folder in ("/dev", _BOX, _WORK, "/old"):
            os.makedirs(_ROOT + folder, exist_ok=True)
        for name in DEVICES:
            open(f"{_ROOT}/dev/{name}", "w").close()
            linux.mount(f"/dev/{name}", f"{_ROOT}/dev/{name}", None, linux.MS_BIND)
            # A device can be written to all the same; the machine's own node can't be touched.
            kept = _kept_flags(f"/dev/{name}") & ~linux.MS_NODEV
            linux.mount(None, f"{_ROOT}/dev/{name}", None, linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | kept)
        for name in ("stdin", "stdout", "stderr"):
            os.symlink(f"{_BOX}/{name}", f"{_ROOT}/dev/{name}")
        for place in ("/tmp", "/dev/shm"):
            os.symlink(_WORK, _ROOT + place)
        linux.pivot_root(_ROOT, f"{_ROOT}/old")
        os.chdir("/")
        linux.unmount("/old")
        os.rmdir("/old")
        linux.mount(None, "/", None, linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | linux.MS_NOSUID)

    def fork_submission(self) -> int:
        linux.unshare(linux.CLONE_NEWPID)
        pid = linux.fork()
        if pid:
            linux.setns(self._own, linux.CLONE_NEWPID)  # or this process could start no further submission
        return pid

    def _make_box(self) -> Box:
        """/box: one mount that we keep open for writing, another over it that tests see and can't write to."""
        linux.mount("tmpfs", _BOX, "tmpfs", _PLAIN, f"mode=755,uid={_TEST_USER},gid={_TEST_USER}")
        folder = os.open(_BOX, os.O_RDONLY | os.O_DIRECTORY)
        box = FileBox(folder, _BOX, _WORK)
        linux.mount(_BOX, _BOX, None, linux.MS_BIND)
        linux.mount(None, _BOX, None, linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | _PLAIN)
        box.open()
        self._mount_work()
        box.look()
        return box

    def _mount_work(self) -> None:
        linux.mount("tmpfs", _WORK, "tmpfs", _PLAIN | linux.MS_NOATIME, "size=16m,nr_inodes=1024,mode=1777")
        os.chdir(_WORK)

    def renew(self) -> None:
        os.chdir("/")
        linux.unmount(_WORK)
        self._mount_work()
        self.box.look()

    def prepare(self, threads: bool) -> Drop:
        if threads:
            return self._drop
        self._leave_rights()
        return partial(resource.setrlimit, resource.RLIMIT_NPROC, (1, 1))

    def _leave_rights(self) -> None:
        if self._users > 1:
            os.setresgid(_TEST_USER, _TEST_USER, _TEST_USER)
            os.setresuid(_TEST_USER, _TEST_USER, _TEST_USER)
        linux.die_with_parent()
        linux.drop_capabilities()

    def _drop(self) -> None:
        lower_limit(resource.RLIMIT_NPROC, 512)
        self._leave_rights()
        self._program.install()


def _ask_for_users(stream: Stream) -> int:
    """Have the judge write the user map; how many users it holds.

    The pages end here, before the next fork: a child has the object but not the memory, and letting go of it there
    would unmap whatever has come into its place.
    """
    stream.write(frames.frame(frames.USERS))
    answer = Pages()
    stream.read_frame(answer)
    with answer.view() as text:
        return int(bytes(text))


def _bind(source: str, target: str) -> None:
    """Bind a path read-only; a symbolic link is made again, an absent path left out."""
    if os.path.islink(source):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.readlink(source), target)
        return
    if not os.path.exists(source):
        return
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "w").close()
    try:
        linux.mount(source, target, None, linux.MS_BIND)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # In a user namespace a mount with others below it can only be bound with them.
        linux.mount(source, target, None, linux.MS_BIND | linux.MS_REC)
        linux.read_only_recursive(target)
        return
    linux.mount(None, target, None, linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | _kept_flags(source))


def _kept_flags(path: str) -> int:
    """Flags that a user namespace may not take away from a mount."""
    given = os.statvfs(path).f_flag
    flags = linux.MS_NOSUID | linux.MS_NODEV
    pairs = ((os.ST_NOEXEC, linux.MS_NOEXEC), (os.ST_NOATIME, linux.MS_NOATIME), (os.ST_RELATIME, linux.MS_RELATIME))
    for shown, flag in pairs:
        flags |= flag if given & shown else 0
    return flags
