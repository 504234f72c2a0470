"""The system call filters: numbers against the kernel's headers, and what each filter says, by a small interpreter."""

from __future__ import annotations

import errno
import re
import struct
from itertools import product
from pathlib import Path

import pytest

from klearbench.sandbox.inside.seccomp import build
from klearbench.sandbox.inside.syscalls import AARCH64, ARGUMENTS_DECIDE, PRETEND_ABSENT, SPAWNER_ONLY, X86_64

TABLES = {"x86_64": (0xC000003E, X86_64), "aarch64": (0xC00000B7, AARCH64)}
HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"),),
}
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, ENOTTY = (ERRNO | n for n in (errno.EPERM, errno.ENOSYS, errno.ENOTTY))
OWN = 0x4F574E21
"""Stands in a built filter for the process's own number."""
THREAD = 0x3D0F00
"""What the C library passes to clone for a thread."""
FORK = 0x01200011
KINDS = ("program", "spawner")


def judge(code: bytes, number: int, arguments: tuple[int, ...] = (), arch: int = 0xC000003E) -> int:
    """What the kernel would make of a call: classic BPF over struct seccomp_data."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<iIQ6Q", number if number < 1 << 31 else number - (1 << 32), arch, 0, *padded)
    accumulator, place, steps = 0, 0, 0
    while True:
        steps += 1
        assert steps < 200, "a filter must not be long"
        op, if_true, if_false, constant = struct.unpack_from("<HBBI", code, 8 * place)
        place += 1
        if op == 0x20:  # load a word
            [accumulator] = struct.unpack_from("<I", data, constant)
        elif op == 0x15:
            place += if_true if accumulator == constant else if_false
        elif op == 0x35:
            place += if_true if accumulator >= constant else if_false
        elif op == 0x45:
            place += if_true if accumulator & constant else if_false
        elif op == 0x05:
            place += constant
        elif op == 0x06:
            return constant
        else:
            raise AssertionError(f"an instruction that no filter here needs: {op:#x}")


def numbers(path: Path) -> dict[str, int]:
    """The calls of a kernel header. asm-generic has some under two names, for 32 and 64 bits."""
    found = re.findall(r"^#define __NR(3264)?_(\w+)\s+(\d+)$", path.read_text(), re.MULTILINE)
    return {name: int(number) for _, name, number in found}


@pytest.mark.parametrize("machine", TABLES)
def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    path = next((path for path in HEADERS[machine] if path.exists()), None)
    if path is None:
        pytest.skip("no kernel headers here (remedy: apt-get install linux-libc-dev)")
    known = numbers(path)
    if machine == "aarch64":  # the generic names of calls that exist once for 32 and 64 bits
        assert (known["fstatat"], known["fstat"]) == (79, 80)
        known["newfstatat"] = known["fstatat"]
    table = TABLES[machine][1]
    missing = {name for name in table if name not in known}
    assert missing <= {"epoll_pwait2", "futex_waitv"}, "newer than old headers, or no call at all"
    assert {name: table[name] for name in table if name in known} == {n: known[n] for n in table if n in known}


@pytest.mark.parametrize("machine", TABLES)
def test_the_groups_of_calls_name_calls(machine: str) -> None:
    table = TABLES[machine][1]
    assert set(ARGUMENTS_DECIDE) | set(PRETEND_ABSENT) | set(SPAWNER_ONLY) <= set(table)
    assert len(set(table.values())) == len(table)


@pytest.mark.parametrize(("machine", "kind"), list(product(TABLES, KINDS)))
def test_each_number_is_allowed_or_refused_as_the_table_says(machine: str, kind: str) -> None:
    arch, table = TABLES[machine]
    code = build(kind, machine)
    names = {number: name for name, number in table.items()}
    for number in (*range(700), 1 << 16, 0x3FFFFFFF):
        name = names.get(number, "")
        if name in ARGUMENTS_DECIDE and (kind == "spawner" or name not in SPAWNER_ONLY):
            continue
        said = judge(code, number, arch=arch)
        if name in PRETEND_ABSENT:
            assert said == ENOSYS, name
        elif not name or (name in SPAWNER_ONLY and kind == "program"):
            assert said == EPERM, name or number
        else:
            assert said == ALLOW, name


DANGEROUS = """
    ptrace process_vm_readv process_vm_writev execve execveat fork vfork socket connect bind listen accept accept4
    keyctl add_key request_key bpf perf_event_open io_uring_enter io_uring_register userfaultfd pivot_root chroot
    mknod mknodat setuid setgid setgroups setsid setpgid shmget shmat msgget semget mq_open personality seccomp
    kexec_load init_module finit_module open_by_handle_at name_to_handle_at move_mount open_tree fsopen fsmount
    mount_setattr pidfd_getfd pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo tkill kcmp fanotify_init
    inotify_init1 inotify_add_watch setxattr fsetxattr memfd_create vmsplice splice tee setpriority
    sched_setscheduler sched_setattr ioprio_set setfsuid capget modify_ldt iopl ioperm uselib ustat sysfs quotactl
    acct swapon reboot settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname syslog chown
    fchown lchown fchownat landlock_create_ruleset landlock_restrict_self memfd_secret process_madvise mbind
    migrate_pages move_pages lookup_dcookie flock
""".split()  # noqa: SIM905


@pytest.mark.parametrize("machine", TABLES)
def test_no_dangerous_call_stands_in_a_table(machine: str) -> None:
    """Named on purpose, so that adding one to a table takes a second thought."""
    assert not set(DANGEROUS) & set(TABLES[machine][1])


RULES = [
    # call, arguments, what the program's filter says, what the spawner's says
    ("clone", (THREAD,), ALLOW, ALLOW),
    ("clone", (FORK,), EPERM, ALLOW),
    ("clone", (17,), EPERM, EPERM),
    ("clone", (FORK | 0x10000000,), EPERM, EPERM),
    ("clone", (FORK | 0x20000000,), EPERM, EPERM),
    ("clone", (FORK | 0x8000,), EPERM, EPERM),
    ("kill", (OWN, 9), ALLOW, ALLOW),
    ("kill", (OWN + 1, 9), EPERM, ALLOW),
    ("kill", (0, 9), EPERM, ALLOW),
    ("kill", (0xFFFFFFFF, 9), EPERM, ALLOW),
    ("kill", (0xFFFFFFFFFFFFFFFF, 9), EPERM, ALLOW),
    ("kill", (OWN | 1 << 32, 9), EPERM, ALLOW),
    ("tgkill", (OWN, OWN, 9), ALLOW, ALLOW),
    ("tgkill", (1, 1, 9), EPERM, ALLOW),
    ("prlimit64", (0, 7, 0, 0), ALLOW, ALLOW),
    ("prlimit64", (OWN, 7, 0, 0), ALLOW, EPERM),
    ("prlimit64", (1, 7, 0, 0), EPERM, EPERM),
    ("prlimit64", (1 << 32, 7, 0, 0), EPERM, EPERM),
    ("prctl", (15,), ALLOW, ALLOW),
    ("prctl", (16,), ALLOW, ALLOW),
    ("prctl", (1, 9), EPERM, ALLOW),
    ("prctl", (4, 1), EPERM, EPERM),
    ("prctl", (8, 1), EPERM, EPERM),
    ("prctl", (22, 2), EPERM, ALLOW),
    ("prctl", (36, 1), EPERM, EPERM),
    ("prctl", (47, 2), EPERM, EPERM),
    ("ioctl", (1, 0x5401), ALLOW, ALLOW),
    ("ioctl", (0, 0x541B), ALLOW, ALLOW),
    ("ioctl", (0, 0x5412), ENOTTY, ENOTTY),
    ("ioctl", (0, 0x541C), ENOTTY, ENOTTY),
    ("ioctl", (0, 0x5412 | 1 << 32), ENOTTY, ENOTTY),
    ("fcntl", (1, 3), ALLOW, ALLOW),
    ("fcntl", (1, 4, 0o4000), ALLOW, ALLOW),
    ("fcntl", (1, 1030), ALLOW, ALLOW),
    *[("fcntl", (1, command), EPERM, EPERM) for command in (6, 7, 8, 10, 15, 37, 38, 1024, 1026, 1031, 1036)],
    ("socketpair", (1, 1, 0), ALLOW, ALLOW),
    ("socketpair", (2, 1, 0), EPERM, EPERM),
    ("unshare", (0x20000000,), EPERM, ALLOW),
    ("unshare", (0x10000000,), EPERM, EPERM),
    ("unshare", (0x30000000,), EPERM, EPERM),
    ("unshare", (0x20000000 | 1 << 32,), EPERM, EPERM),
    ("unshare", (0,), EPERM, EPERM),
    ("setns", (5, 0x20000000), EPERM, ALLOW),
    ("setns", (5, 0x10000000), EPERM, EPERM),
    ("setns", (5, 0), EPERM, EPERM),
]


@pytest.mark.parametrize("machine", TABLES)
def test_arguments_decide(machine: str) -> None:
    arch, table = TABLES[machine]
    for column, kind in enumerate(KINDS, 2):
        code = build(kind, machine)
        for rule in RULES:
            assert judge(code, table[rule[0]], rule[1], arch) == rule[column], (kind, rule)
    assert {rule[0] for rule in RULES} == set(ARGUMENTS_DECIDE)


@pytest.mark.parametrize(("machine", "kind"), list(product(TABLES, KINDS)))
def test_another_architecture_is_killed(machine: str, kind: str) -> None:
    code = build(kind, machine)
    foreign = {0xC000003E, 0xC00000B7, 0x40000003, 0x40000028, 0} - {TABLES[machine][0]}
    for arch in foreign:
        assert {judge(code, number, arch=arch) for number in (0, 1, 39, 63, 0x40000000)} == {KILL}


@pytest.mark.parametrize("kind", KINDS)
def test_the_x32_numbers_of_x86_64_do_not_exist(kind: str) -> None:
    code = build(kind, "x86_64")
    assert {judge(code, number | 0x40000000) for number in range(600)} == {ENOSYS}
    assert judge(code, 0xFFFFFFFF) == ENOSYS


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_beyond_the_table_are_refused_on_aarch64(kind: str) -> None:
    code = build(kind, "aarch64")
    assert {judge(code, number, arch=0xC00000B7) for number in (0x40000000, 0x40000040, 0xFFFFFFFF)} == {EPERM}


def test_a_filter_fits_the_kernels_limit_and_an_unknown_machine_is_told() -> None:
    assert all(len(build(kind, machine)) // 8 <= 4096 for kind, machine in product(KINDS, TABLES))
    with pytest.raises(OSError, match="no system call table for riscv64"):
        build("program", "riscv64")
