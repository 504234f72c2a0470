"""What a sandbox is: a program and its inputs go in, what each run did comes out.

    Sandbox  --open()-->  Slot  --run(command, inputs)-->  one RunResult an input

Two backends share this Protocol: `local` (namespaces and seccomp on this machine) and `docker` (hardened containers).
Neither ever sees an expected output; comparing is the judge's work, in the judge's own process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol, Self

from klearbench.errors import KlearError

MIB = 1 << 20


class RunStatus(IntEnum):
    """How one run of a program ended. The numbers are the wire format between the judge and the sandbox.

    `exited` is any end of the program by itself, whatever its exit code; the others are ends that we brought about, or
    that kept the program from being run at all.
    """

    exited = 0
    signalled = 1
    cpu_limit = 2
    wall_limit = 3
    memory_limit = 4
    output_limit = 5
    compile_error = 6


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use.

    `cpu_s` is the CPU time at which a run is killed (seconds); `wall_s` catches sleepers; `memory_mb` bounds the
    address space (MiB); `output_mb` bounds what is written to stdout, or the encoded return value (MiB).
    """

    cpu_s: float = 6.0
    wall_s: float = 60.0
    memory_mb: int = 4096
    output_mb: int = 32


@dataclass(frozen=True, slots=True)
class Command:
    """A program to be run once an input, each time in a fresh process.

    Args:
        code: Python source.
        mode: "stdio" (the input is standard input) or "functional" (it holds one JSON value a line, the arguments of
            `fn_name`, a method of `Solution` or a function of the module).
        fn_name: the function called in functional mode.
        preamble: None, or "lcb": the names that LiveCodeBench imports before a program. Functional mode always has
            them.
        wait_for_threads: False ends a program with its main thread and keeps its standard streams in memory, as
            LiveCodeBench's own judge does.
        limits: what each run may use.
    """

    code: str
    mode: str = "stdio"
    fn_name: str | None = None
    preamble: str | None = None
    wait_for_threads: bool = True
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one run did.

    Attributes:
        status: how it ended.
        exit_code: of a program that ended by itself, else None.
        signal: the number of the signal that ended it, else None.
        stdout: what it wrote (its beginning when that is over the limit; empty in functional mode).
        stderr: the end of what it wrote there, at most 4 KiB.
        value: functional mode: the return value, encoded (see `klearbench.sandbox.values`); empty if there is none.
        cpu_s, wall_s: seconds.
        peak_mb: peak resident memory, MiB.
        slot: names the backend and the slot (a container's id for Docker), so that a verdict says where it came from.
    """

    status: RunStatus
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    value: bytes
    cpu_s: float
    wall_s: float
    peak_mb: float
    slot: str


class SandboxError(KlearError):
    """The sandbox itself failed (a worker or the container engine died). Never the program's fault."""

    exit_code = 3


class SandboxUnavailable(KlearError):
    """No sandbox of this kind can be had on this machine. The message says why, and the remedy."""


class Slot(Protocol):
    """A place where one program at a time runs. Used by one thread at a time, for thousands of programs."""

    @property
    def id(self) -> str:
        """The backend and the place, such as "local:3f2a namespaces" or "docker:5c1e0d2b9a41"."""
        ...

    def run(self, command: Command, inputs: Iterable[bytes]) -> Iterator[RunResult]:
        """Run the program once an input, in order; each result comes as soon as it is there.

        Closing the iterator early (`.close()`) ends the submission. After a SandboxError the slot is of no more use.

        Raises:
            SandboxError: the slot broke.
        """
        ...

    def close(self) -> None:
        """End the slot and everything in it. May be called twice, and from another thread to break a run off."""
        ...


class Sandbox(Protocol):
    """Makes slots. `name` is "local" or "docker", `tier` what protects the judge ("namespaces", "landlock", ...)."""

    @property
    def name(self) -> str: ...

    @property
    def tier(self) -> str: ...

    def open(self, role: str = "submission") -> Slot:
        """A new slot. `role` ("submission" or "checker") is part of its id; a slot never serves two roles.

        Raises:
            SandboxUnavailable: none can be made here.
            SandboxError: one should have started and did not.
        """
        ...

    def close(self) -> None:
        """End every slot and give back what the sandbox holds."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
