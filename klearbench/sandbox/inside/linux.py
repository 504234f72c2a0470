"""Linux system calls that Python has no function for, through the C library. Sources: their manual pages, section 2."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import signal
from typing import ClassVar

libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_NOATIME = 1, 2, 4, 8, 32, 1024
MS_BIND, MS_REC, MS_PRIVATE, MS_RELATIME = 4096, 16384, 1 << 18, 1 << 21
MNT_DETACH = 2

_ARM = platform.machine() == "aarch64"
_SYS_PIVOT_ROOT = 41 if _ARM else 155
_SYS_CAPSET = 91 if _ARM else 126
_SYS_MOUNT_SETATTR = 442
_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_ADD, _SYS_LANDLOCK_RESTRICT = 444, 445, 446
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CAP_VERSION = 0x20080522


_fork = ctypes.PyDLL(None, use_errno=True).fork


def fork() -> int:
    """fork(2) without Python's own hooks, for a process with one thread that holds the interpreter's lock throughout.

    The hooks (new locks, the threading module's bookkeeping, a new seed) touch 150 pages, each copied for the child:
    two thirds of what a fork costs. None of them is needed where no thread runs and no lock is held; who needs a new
    seed has to ask for it.
    """
    pid: int = _fork()
    check(pid, "fork")
    return pid


def check(result: int, what: str) -> None:
    """Raise OSError with the call's own error number when it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """unshare(2)."""
    check(libc.unshare(flags), f"unshare {flags:#x}")


def setns(fd: int, flags: int) -> None:
    """setns(2)."""
    check(libc.setns(fd, flags), f"setns {flags:#x}")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""
    texts = [None if t is None else t.encode() for t in (source, target, kind, data)]
    result = libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])
    check(result, f"mount {source or ''} on {target}")


def unmount(target: str) -> None:
    """umount2(2), lazily."""
    check(libc.umount2(target.encode(), MNT_DETACH), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2)."""
    check(libc.syscall(_SYS_PIVOT_ROOT, new.encode(), old.encode()), "pivot_root")


def read_only_recursive(target: str) -> None:
    """Make a mount and all below it read-only: mount_setattr(2), Linux 5.12."""
    attributes = (ctypes.c_uint64 * 4)(MS_RDONLY | MS_NOSUID | MS_NODEV, 0, 0, 0)
    at_recursive = 0x8000
    result = libc.syscall(_SYS_MOUNT_SETATTR, -100, target.encode(), at_recursive, ctypes.byref(attributes), 32)
    check(result, f"mount_setattr {target}")


def die_with_parent() -> None:
    """SIGKILL when the parent ends. Cleared by a change of user: call it after."""
    check(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "PR_SET_PDEATHSIG")


def set_dumpable(value: bool) -> None:
    """Whether processes of the same user may look at this one through /proc."""
    check(libc.prctl(_PR_SET_DUMPABLE, int(value), 0, 0, 0), "PR_SET_DUMPABLE")


def no_new_privileges() -> None:
    """No gain of rights by exec, for good."""
    check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def drop_capabilities() -> None:
    """Empty every capability set of this process: capset(2)."""
    header, none = _CapHeader(_CAP_VERSION, 0), (ctypes.c_uint32 * 6)()
    check(libc.syscall(_SYS_CAPSET, ctypes.byref(header), ctypes.byref(none)), "capset")


def small_thread_stacks(size: int = 8 << 20) -> None:
    """Threads get 8 MiB of stack whatever the stack limit of the main thread is (glibc; elsewhere nothing happens)."""
    if not hasattr(libc, "pthread_setattr_default_np"):
        return
    attributes = ctypes.create_string_buffer(64)
    if libc.pthread_attr_init(attributes) == 0:
        libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size))
        libc.pthread_setattr_default_np(attributes)


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("fd", ctypes.c_int32))


class Landlock:
    """A Landlock ruleset: some paths can be read, nothing can be written. Raises OSError where the kernel has none.

    Source: landlock(7); the access bits of each ABI version from linux/landlock.h.
    """

    _FS_BITS: ClassVar[dict[int, int]] = {1: 13, 2: 14, 3: 15, 4: 15}
    _EXECUTE, _READ_FILE, _READ_DIR = 1, 4, 8

    def __init__(self, readable: list[str]) -> None:
        self.abi = libc.syscall(_SYS_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
        check(self.abi, "Landlock")
        everything = (1 << self._FS_BITS.get(self.abi, 16)) - 1
        rules = _Ruleset(everything, 3 if self.abi >= 4 else 0, 3 if self.abi >= 6 else 0)
        size = 24 if self.abi >= 6 else 16 if self.abi >= 4 else 8
        self._fd = libc.syscall(_SYS_LANDLOCK_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), 0)
        check(self._fd, "landlock_create_ruleset")
        low, self._fd = self._fd, fcntl.fcntl(self._fd, fcntl.F_DUPFD_CLOEXEC, 100)  # 0 to 4 will be taken
        os.close(low)
        for path in readable:
            self._allow(path)

    def _allow(self, path: str) -> None:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            directory = self._READ_DIR if os.path.isdir(path) else 0
            rule = _PathRule(self._EXECUTE | self._READ_FILE | directory, fd)
            check(libc.syscall(_SYS_LANDLOCK_ADD, self._fd, 1, ctypes.byref(rule), 0), f"Landlock rule for {path}")
        finally:
            os.close(fd)

    def restrict(self) -> None:
        """Bind this process to the rules, for good."""
        no_new_privileges()
        check(libc.syscall(_SYS_LANDLOCK_RESTRICT, self._fd, 0), "landlock_restrict_self")
