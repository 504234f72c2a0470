"""A slot of the local sandbox for tests: programs in, results out; and the same programs by a plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from klearbench.sandbox.base import Command, Limits, RunResult, RunStatus, SandboxError
from klearbench.sandbox.local import LocalSandbox

PYTHON = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
"""The interpreter that the sandbox runs: the one behind our virtual environment."""


class Box:
    """One slot of a tier, used by many tests on purpose: what one program does must not matter to the next."""

    def __init__(self, tier: str) -> None:
        self.tier = tier
        self._sandbox = LocalSandbox(tier)
        self.slot = self._sandbox.open()

    def runs(self, code: str, *inputs: bytes | str, limits: Limits | None = None, **fields: Any) -> list[RunResult]:
        """One result an input (one empty input where none is given)."""
        command = Command(code, limits=limits or Limits(cpu_s=10, wall_s=60), **fields)
        given = [data.encode() if isinstance(data, str) else data for data in inputs or (b"",)]
        try:
            return list(self.slot.run(command, given))
        except SandboxError:
            self.slot = self._sandbox.open()  # for the tests that follow
            raise

    def run(self, code: str, data: bytes | str = b"", **fields: Any) -> RunResult:
        return self.runs(code, data, **fields)[0]

    def say(self, code: str, data: bytes | str = b"", **fields: Any) -> str:
        """What a program prints that has to end well."""
        result = self.run(code, data, **fields)
        assert (result.status, result.exit_code) == (RunStatus.exited, 0), result
        return result.stdout.decode()

    def call(self, code: str, arguments: str = "", name: str = "f", **fields: Any) -> RunResult:
        """Functional mode."""
        return self.run(code, arguments, mode="functional", fn_name=name, **fields)

    def close(self) -> None:
        self._sandbox.close()


def library_is_open() -> bool:
    """Whether every user can read Python's library (one below /root can't be read by the user that root's tests are
    in the Landlock tier)."""
    return all(folder.stat().st_mode & 0o5 == 0o5 for folder in Path(os.__file__).resolve().parents)


def plain(folder: Path, code: str, data: str = "") -> tuple[str, int]:
    """What a plain `python3 solution.py` prints, and its exit code. For honest programs alone."""
    path = folder / "solution.py"
    path.write_bytes(code.encode())
    (folder / "input").write_text(data)
    environment = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin"}
    with (folder / "input").open("rb") as stdin:
        done = subprocess.run(
            [PYTHON, path], stdin=stdin, capture_output=True, env=environment, cwd=folder, check=False, timeout=60
        )
    return done.stdout.decode(), done.returncode
