"""The seccomp filters: an allow list for a submitted program, and a wider one for the process that starts its tests.

`program`: threads but no processes, signals to itself alone. Installed by a test's own process.
`reader`: the same list without what Landlock has no say over: modes, times, sizes of files that the user owns.
`spawner`: the same list, and what starting tests takes. Installed once by the zygote and inherited by all its tests.
They are kept from forking by RLIMIT_NPROC, from signalling their parent because it is the init of their PID namespace,
and from mounts and namespaces by having no capability. Installing a filter costs about 0.45 ms of CPU (the kernel
compiles it), as much as all the rest of starting a test; so a program that mentions no threads has the spawner's alone.

Classic BPF, made here because no library for it comes with Python. The calls stand in a binary tree, so that a call
costs a few comparisons.

Sources: seccomp(2); linux/seccomp.h, linux/filter.h, linux/audit.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from .syscalls import AARCH64, ARGUMENTS_DECIDE, CHANGES_FILES, PRETEND_ABSENT, SPAWNER_ONLY, X86_64

_TABLES = {"x86_64": (0xC000003E, X86_64), "aarch64": (0xC00000B7, AARCH64)}
_LD, _JEQ, _JSET, _JGE, _JA, _RET = 0x20, 0x15, 0x45, 0x35, 0x05, 0x06
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_X32_BIT = 0x40000000
_OWN_PID = 0x4F574E21
"""Stands for the process's own number until the filter is installed."""

_CLONE_THREAD = 0x00010000
_FORK_FLAGS = 0x01200011
"""What the C library's fork() passes: CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD."""
_AF_UNIX = 1
_PRCTL_NAMES = (15, 16, 0x53564D41)
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""

_FCNTLS = (0, 1, 2, 3, 4, 1030, 1032, 1033, 1034)
"""F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS. What is left
out sends signals, or leaves something on a file or a pipe that the next test could find (locks, sizes, hints)."""

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 1, 38, 22, 2

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant."""


def _fail(number: int) -> list[Instruction]:
    return [(_RET, 0, 0, 0x00050000 | number)]


_PERMIT: list[Instruction] = [(_RET, 0, 0, _ALLOW)]


def _one_of(argument: int, values: tuple[int, ...], otherwise: int) -> list[Instruction]:
    """Allow when the low half of an argument is one of some values and the high half is zero."""
    code: list[Instruction] = [(_LD, 0, 0, argument + 4), (_JEQ, 1, 0, 0), *_fail(otherwise), (_LD, 0, 0, argument)]
    for value in values:
        code += [(_JEQ, 0, 1, value), *_PERMIT]
    return code + _fail(otherwise)


def _clone(fork: bool) -> list[Instruction]:
    code: list[Instruction] = [(_LD, 0, 0, _ARG0), (_JSET, 0, 1, _CLONE_THREAD), *_PERMIT]
    if fork:
        code += [(_JEQ, 0, 1, _FORK_FLAGS), *_PERMIT]
    return code + _fail(errno.EPERM)


_RULES = {
    "clone": _clone(fork=False),
    "kill": _one_of(_ARG0, (_OWN_PID,), errno.EPERM),
    "tgkill": _one_of(_ARG0, (_OWN_PID,), errno.EPERM),
    "prlimit64": _one_of(_ARG0, (0, _OWN_PID), errno.EPERM),
    "prctl": _one_of(_ARG0, _PRCTL_NAMES, errno.EPERM),
    "ioctl": _one_of(_ARG1, _IOCTLS, errno.ENOTTY),
    "fcntl": _one_of(_ARG1, _FCNTLS, errno.EPERM),
    "socketpair": _one_of(_ARG0, (_AF_UNIX,), errno.EPERM),
}
_NEW_PID_NAMESPACE = 0x20000000
_SPAWNER_RULES = _RULES | {
    "unshare": _one_of(_ARG0, (_NEW_PID_NAMESPACE,), errno.EPERM),
    "setns": _one_of(_ARG1, (_NEW_PID_NAMESPACE,), errno.EPERM),
    "prctl": _one_of(_ARG0, (*_PRCTL_NAMES, _PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS), errno.EPERM),
    "clone": _clone(fork=True),
    "kill": _PERMIT,
    "tgkill": _PERMIT,
    "prlimit64": _one_of(_ARG0, (0,), errno.EPERM),
}


def _tree(leaves: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """A binary search over (first number, code) pairs in ascending order."""
    if len(leaves) == 1:
        return leaves[0][1]
    middle = len(leaves) // 2
    left, right = _tree(leaves[:middle]), _tree(leaves[middle:])
    pivot = leaves[middle][0]
    if len(left) <= 255:
        return [(_JGE, len(left), 0, pivot), *left, *right]
    return [(_JGE, 0, 1, pivot), (_JA, 0, 0, len(left)), *left, *right]


def build(kind: str = "program", machine: str | None = None) -> bytes:
    """A filter as bytes: `kind` is "program" (`_OWN_PID` still stands in it) or "spawner".

    Raises:
        OSError: no table for this architecture.
    """
    machine = machine or platform.machine()
    if machine not in _TABLES:
        raise OSError(errno.ENOSYS, f"no system call table for {machine}")
    audit, table = _TABLES[machine]
    actions = {table[name]: action for name in table if (action := _action(name, kind)) is not None}
    refuse = _fail(errno.EPERM)
    leaves: list[tuple[int, list[Instruction]]] = []
    for number in range(max(table.values()) + 2):
        action = actions.get(number, refuse)
        if not leaves or leaves[-1][1] != action:
            leaves.append((number, action))
    head: list[Instruction] = [(_LD, 0, 0, _ARCH), (_JEQ, 1, 0, audit), (_RET, 0, 0, _KILL), (_LD, 0, 0, _NR)]
    if machine == "x86_64":
        head += [(_JGE, 0, 1, _X32_BIT), *_fail(errno.ENOSYS)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in [*head, *_tree(leaves)])


def _action(name: str, kind: str) -> list[Instruction] | None:
    if name in PRETEND_ABSENT:
        return _fail(errno.ENOSYS)
    if kind == "reader" and name in CHANGES_FILES:
        return None
    if name in SPAWNER_ONLY and kind != "spawner":
        return None
    if name in ARGUMENTS_DECIDE:
        return (_SPAWNER_RULES if kind == "spawner" else _RULES)[name]
    return _PERMIT


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Filter:
    """A filter, ready to be installed by a forked process."""

    def __init__(self, kind: str = "program") -> None:
        code = build(kind)
        marker = struct.pack("I", _OWN_PID)
        self._buffer = ctypes.create_string_buffer(code, len(code))
        self._places = [i + 4 for i in range(0, len(code), 8) if code[i + 4 : i + 8] == marker]
        self._program = _Program(len(code) // 8, ctypes.addressof(self._buffer))
        self._libc = ctypes.CDLL(None, use_errno=True)

    def install(self) -> None:
        """Bind this process (and its threads to come) to the filter, for good. Raises OSError."""
        own = struct.pack("I", os.getpid())
        for place in self._places:
            ctypes.memmove(ctypes.addressof(self._buffer) + place, own, 4)
        if self._libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no new privileges")
        if self._libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(self._program), 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp filter")
