"""A toy sandbox for tests of the judge: it runs nothing.

A program's text is looked up in `programs`; what stands there is called with the input and a `Call`, and says how the
run ended. Everything that entered a slot is kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from klearbench.sandbox.base import Command, RunResult, RunStatus, SandboxError, SandboxUnavailable
from klearbench.types import CodeTests, ExpectedOutputs, FinishReason, Sample, TestInputs


@dataclass(frozen=True)
class Call:
    """One run: its slot, and how many others were under way when it began."""

    slot: str
    role: str
    command: Command
    data: bytes
    others: int


Program = Callable[[bytes, Call], RunResult]


def ran(stdout: bytes | str = b"", **fields: Any) -> RunResult:
    """A run that ended well, but for the fields that are given."""
    out = stdout.encode() if isinstance(stdout, str) else stdout
    plain: dict[str, Any] = {
        "status": RunStatus.exited, "exit_code": 0, "signal": None, "stdout": out, "stderr": b"", "value": b"",
        "cpu_s": 0.01, "wall_s": 0.02, "peak_mb": 10.0, "slot": "",
    }  # fmt: skip
    return RunResult(**plain | fields)


class FakeSlot:
    def __init__(self, sandbox: FakeSandbox, name: str, role: str) -> None:
        self._sandbox, self.id, self.role = sandbox, name, role
        self.closed = threading.Event()

    def run(self, command: Command, inputs: Iterable[bytes]) -> Iterator[RunResult]:
        box = self._sandbox
        box.submissions.append((self.id, command))
        for data in inputs:
            if self.closed.is_set():
                raise SandboxError(f"{self.id} is closed")
            with box.lock:
                call = Call(self.id, self.role, command, data, box.running)
                box.running += 1
                box.most = max(box.most, box.running)
                box.calls.append(call)
            try:
                result = box.programs[command.code](data, call)
            finally:
                with box.lock:
                    box.running -= 1
            yield RunResult(**{f: getattr(result, f) for f in RunResult.__slots__} | {"slot": self.id})

    def close(self) -> None:
        self.closed.set()
        self._sandbox.open_slots.discard(self.id)


class FakeSandbox:
    """`opening(number, role)` is called before a slot is made, and may raise."""

    name, tier = "fake", "none"

    def __init__(self, programs: dict[str, Program], opening: Callable[[int, str], None] | None = None) -> None:
        self.programs = programs
        self.opening = opening
        self.lock = threading.Lock()
        self.calls: list[Call] = []
        self.submissions: list[tuple[str, Command]] = []
        self.open_slots: set[str] = set()
        self.opened = 0
        self.running = self.most = 0
        self.closed = False

    def open(self, role: str = "submission") -> FakeSlot:
        with self.lock:
            self.opened += 1
            number = self.opened
        if self.opening is not None:
            self.opening(number, role)
        slot = FakeSlot(self, f"fake:{number} {role}", role)
        self.open_slots.add(slot.id)
        return slot

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seen(self, code: str) -> list[bytes]:
        """The inputs that a program was run on, in order."""
        return [call.data for call in self.calls if call.command.code == code]


def double(data: bytes, _: Call) -> RunResult:
    """A right program for the tests of `doubling`."""
    return ran(str(2 * int(data)))


def plus_one(data: bytes, _: Call) -> RunResult:
    """Right for the input 1 alone."""
    return ran(str(int(data) + 1))


def sleepy(seconds: float) -> Program:
    def program(data: bytes, call: Call) -> RunResult:
        time.sleep(seconds)
        return double(data, call)

    return program


def broken(data: bytes, call: Call) -> RunResult:
    raise SandboxError(f"{call.slot} died")


def nowhere(number: int, role: str) -> None:
    raise SandboxUnavailable("no user namespaces here; run as root, or choose --sandbox docker")


def doubling(
    numbers: Iterable[int] = (1, 2, 3), problem: str = "p", outputs: Iterable[str] | None = None, **fields: Any
) -> CodeTests:
    """Tests "n in, 2n out"; further fields are those of TestInputs, `checker` that of ExpectedOutputs."""
    numbers = list(numbers)
    checker = fields.pop("checker", None)
    expected = tuple(str(2 * n) for n in numbers) if outputs is None else tuple(outputs)
    inputs = TestInputs(problem, fields.pop("mode", "stdio"), tuple(str(n) for n in numbers), **fields)
    return CodeTests(inputs, ExpectedOutputs(problem, expected, checker))


def sample(code: str, index: int = 0, problem: str = "p", *, raw: bool = False, finish: str = "stop") -> Sample:
    """A sample whose completion is a fenced program (or, `raw`, just the text)."""
    text = code if raw else f"Here it is.\n```python\n{code}\n```\n"
    return Sample("s", problem, index, 0, text, 0, 0, FinishReason(finish))
