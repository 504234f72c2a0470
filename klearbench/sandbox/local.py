"""Programs on this machine: a warm, jailed interpreter a slot, by namespaces or, where there are none, by Landlock.

Tiers, best first: `namespaces` (as root or as an ordinary user), `landlock`; without either, programs are refused.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any, Self

from klearbench.errors import ConfigError, unknown_name
from klearbench.sandbox.base import Command, SandboxError, SandboxUnavailable
from klearbench.sandbox.inside import frames
from klearbench.sandbox.wire import StreamSlot, read_frame, read_ready

TIERS = ("namespaces", "landlock")
_FOLDER = Path(__file__).parent
_START_LIMIT_S = 60.0
_CHUNK = 1 << 18
_STACK_BYTES = 256 << 20
_FIRST_USER = 200_000
_NOBODY = 65534
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    # A program that depends on the order of a set gets the same verdict every time. (`python -I` would ignore this.)
    "PYTHONHASHSEED": "0",
    "MALLOC_ARENA_MAX": "1",  # else each thread reserves 64 MiB of address space
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
_numbers = itertools.count()


class _SocketChannel:
    """The judge's end of a zygote's socket, and the zygote's process."""

    def __init__(self, arguments: list[str]) -> None:
        ours, theirs = socket.socketpair()
        self._socket, self._lock, self._closed = ours, threading.Lock(), False
        self._received = bytearray()
        try:
            self._process = subprocess.Popen(
                [_interpreter(), "-s", "-P", "-S", "-X", "utf8", "-c", _BOOT, str(theirs.fileno()), *arguments],
                pass_fds=[theirs.fileno()], env=_ENVIRONMENT, cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._poll = select.poll()
        self._poll.register(ours.fileno(), select.POLLIN)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise SandboxError(f"the sandbox's process is gone ({error.strerror or error})") from None

    def recv_exact(self, count: int, timeout_s: float) -> bytes:
        while len(self._received) < count:
            try:
                if not self._poll.poll(timeout_s * 1000):
                    raise SandboxError(f"the sandbox gave no answer within {timeout_s:.0f} s")
                data = self._socket.recv(_CHUNK)
            except OSError as error:
                raise SandboxError(f"the sandbox's process is gone ({error.strerror or error})") from None
            if not data:
                raise SandboxError("the sandbox's process ended")
            self._received += data
        data = bytes(self._received[:count])
        del self._received[:count]
        return data

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in recv
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._socket.close()


_BOOT = f"""
import json, os, resource, sys
fd, folder, config, again = sys.argv[1:]
if not again:
    if fd != "3":
        os.dup2(int(fd), 3)
    os.set_inheritable(3, True)
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    wanted = {_STACK_BYTES}
    resource.setrlimit(resource.RLIMIT_STACK, (wanted if hard < 0 else min(wanted, hard), hard))
    # Again, because room for the stack is set aside when a program starts.
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-4], "3", folder, config, "again"])
sys.path.append(folder)
from inside.zygote import main
main(json.loads(config))
"""


def _interpreter() -> str:
    """The interpreter behind a virtual environment: its own folder holds nothing but Python."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


class LocalSandbox:
    """Slots on this machine.

    Args:
        tier: "namespaces" or "landlock"; None takes the best that works here.
        solutions: a folder of packages that programs may import (bound read-only); None looks where `make sandbox`
            and `klearbench doctor --fix` put it.

    Raises:
        ConfigError: an unknown tier.
        SandboxUnavailable: no tier works here.
    """

    name = "local"

    def __init__(self, tier: str | None = None, solutions: Path | None = None) -> None:
        if tier is not None and tier not in TIERS:
            raise ConfigError(unknown_name("sandbox tier", tier, TIERS))
        self._solutions = solutions or _find_solutions()
        self._slots: list[StreamSlot] = []
        self.tier = tier or _best_tier()

    def open(self, role: str = "submission") -> StreamSlot:
        """A new slot; see `klearbench.sandbox.base.Sandbox.open`."""
        channel = _start(self.tier, self._solutions)
        label = self.tier if role == "submission" else f"{self.tier} {role}"
        slot = StreamSlot(channel, f"local:{channel.pid} {label}")
        self._slots.append(slot)
        return slot

    def close(self) -> None:
        """End every slot."""
        for slot in self._slots:
            slot.close()
        self._slots.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _find_solutions() -> Path | None:
    from klearbench.sandbox.environment import find_environment

    return find_environment()


def _config(tier: str, solutions: Path | None) -> dict[str, Any]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    standard = dict.fromkeys((os.path.dirname(os.path.realpath(os.__file__)), f"{sys.base_exec_prefix}/lib/{version}"))
    binds = list(dict.fromkeys([*_LIBRARIES, *standard]))
    masked = [f"{path}/{name}" for path in standard for name in ("site-packages", "dist-packages")]
    place = str(solutions.resolve()) if solutions and tier == "landlock" else "/solutions"
    config: dict[str, Any] = {
        "tier": tier,
        "root": os.geteuid() == 0,
        "binds": [*((path, path) for path in binds), *([(str(solutions.resolve()), place)] if solutions else [])],
        "masked": [*masked, "/usr/lib/python3/dist-packages"],
        "path": [place] if solutions else [],
    }
    if tier == "landlock" and os.geteuid() == 0 and all(map(_open_to_all, (*standard, *config["path"]))):
        config["user"] = _NOBODY  # else the tests stay root without any capability: nobody could read no library
    return config


def _open_to_all(path: str) -> bool:
    """Whether every user can reach a folder."""
    place = Path(path)
    return all(folder.stat().st_mode & 0o001 for folder in (place, *place.parents))


def _start(tier: str, solutions: Path | None) -> _SocketChannel:
    """A warm, jailed zygote. Raises SandboxError when it does not come up."""
    channel = _SocketChannel([str(_FOLDER), json.dumps(_config(tier, solutions)), ""])
    try:
        if tier == "namespaces":
            _map_users(channel)
        read_ready(channel, _START_LIMIT_S)
    except BaseException:
        channel.close()
        raise
    return channel


def _map_users(channel: _SocketChannel) -> None:
    """Say who the jail's users are outside: as root two numbers that nobody bears, else the judge's own user."""
    read_frame(channel, frames.USERS, _START_LIMIT_S)
    process = Path("/proc") / str(channel.pid)
    number = next(_numbers)
    try:
        if os.geteuid() != 0:
            (process / "setgroups").write_text("deny")
            _write_maps(process, ((1000, os.geteuid()),), ((1000, os.getegid()),))
            users = 1
        else:
            first = _FIRST_USER + 2 * ((os.getpid() * 64 + number) % 500_000)
            ids = ((0, first), (1000, first + 1))
            _write_maps(process, ids, ids)
            users = 2
    except OSError as error:
        raise SandboxError(f"the sandbox's user map can't be written ({error.strerror})") from None
    channel.send(frames.frame(frames.USERS, str(users).encode()))


def _write_maps(process: Path, users: tuple[tuple[int, int], ...], groups: tuple[tuple[int, int], ...]) -> None:
    for name, pairs in (("uid_map", users), ("gid_map", groups)):
        (process / name).write_text("".join(f"{inside} {outside} 1\n" for inside, outside in pairs))


@cache
def probe() -> tuple[str, str]:
    """The best tier that works here ("" for none), and why not a better one (empty when it is the best).

    Each tier is tried for real: a slot is opened in it and runs a program.
    """
    reasons: list[str] = []
    for tier in TIERS:
        try:
            with contextlib.closing(StreamSlot(_start(tier, None), f"local probe {tier}")) as slot:
                (result,) = slot.run(Command("print(input())"), [b"ready"])
            if result.stdout == b"ready\n":
                return tier, "; ".join(reasons)
            reasons.append(f"{tier}: a trivial program ended as {result.status.name}")
        except SandboxError as error:
            reasons.append(f"{tier}: {str(error).splitlines()[-1]}")
    return "", "; ".join(reasons)


def _best_tier() -> str:
    tier, reason = probe()
    if not tier:
        raise SandboxUnavailable(
            f"no local sandbox works here ({reason}); allow user namespaces (sysctl user.max_user_namespaces), or use "
            "--sandbox docker"
        )
    return tier
