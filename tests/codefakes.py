"""A stand-in for a sandbox: it runs the toy programs of our own tests in this process, and remembers what it was given.

Only for programs that stand in a test file. Real ones, and hostile ones, go to a real sandbox.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterable, Iterator

from klearbench.sandbox.base import Command, RunResult, RunStatus


class ToySandbox:
    """`seen` holds every (role, command, input) that entered a slot."""

    name, tier = "toy", "none"

    def __init__(self) -> None:
        self.seen: list[tuple[str, Command, bytes]] = []

    def open(self, role: str = "submission") -> ToySlot:
        return ToySlot(self, role)

    def close(self) -> None:
        pass

    def __enter__(self) -> ToySandbox:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class ToySlot:
    def __init__(self, sandbox: ToySandbox, role: str) -> None:
        self.sandbox, self.role = sandbox, role
        self.id = f"toy:{role}"

    def run(self, command: Command, inputs: Iterable[bytes]) -> Iterator[RunResult]:
        for given in inputs:
            self.sandbox.seen.append((self.role, command, given))
            yield self._one(command, given)

    def _one(self, command: Command, given: bytes) -> RunResult:
        names: dict = {"__name__": "__main__" if command.mode == "stdio" else "solution"}
        stdout, stdin, value, code = io.StringIO(), sys.stdin, b"", 0
        sys.stdin = io.StringIO(given.decode())
        try:
            with contextlib.redirect_stdout(stdout):
                exec(command.code, names)
                if command.mode == "functional":
                    value = json.dumps(names[command.fn_name](*map(json.loads, given.decode().split("\n")))).encode()
        except Exception:
            code = 1
        finally:
            sys.stdin = stdin
        printed = stdout.getvalue().encode() if command.mode == "stdio" else b""
        return RunResult(RunStatus.exited, code, None, printed, b"", value, 0.001, 0.001, 1.0, self.id)

    def close(self) -> None:
        pass
