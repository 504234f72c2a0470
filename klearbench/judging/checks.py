"""Outputs that a checker judges: a trusted one here and now, a program in a slot of its own.

A checker program sees the test's input, the expected output and the submission's output. It runs in slots of the role
"checker", which no submission ever enters, so what it is given is never near one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import cast

from klearbench.errors import ConfigError, KlearError
from klearbench.judging.checkers import FUNCTION, checker_arguments, checker_says, is_program, run_checker
from klearbench.judging.compare import Comparison, compare_output, compare_value
from klearbench.judging.outcome import told
from klearbench.judging.schedule import Slots
from klearbench.judging.views import View
from klearbench.sandbox.base import Command, Limits, RunResult, RunStatus, SandboxError
from klearbench.sandbox.values import decode
from klearbench.types import CodeTests

LIMITS = Limits(cpu_s=10.0, wall_s=100.0, memory_mb=4096, output_mb=1)
"""What a checker program may use for one output."""
_REFUSED = Comparison(False, "the checker refuses the output")

Mark = Callable[[View, int, Comparison, str], None]
"""Takes a view, the number of a test (from 0), what was found, and the submission's slot."""


class ReferenceFault(KlearError):
    """The problem's expected output or its checker can't be used: our fault, and no second try would help."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Check:
    """An output that waits for the checker program: the test's number (from 0), the text, where it was made."""

    test: int
    output: str
    slot: str
    views: tuple[View, ...]


def held_against(tests: CodeTests, test: int, result: RunResult, mode: str) -> Comparison | str:
    """What is to be said of a test's output, or the text of it that the checker program has to see.

    Raises:
        ReferenceFault: the expected output is no JSON value (functional mode), or the trusted checker failed.
    """
    expected, checker = tests.expected.outputs[test], tests.expected.checker
    functional = tests.inputs.mode == "functional"
    if checker is None and not functional:
        return compare_output(expected, result.stdout, mode)
    where = f"test {test + 1} of problem {tests.inputs.problem_id!r}"
    if checker is None:
        try:
            return compare_value(expected, result.value, mode)
        except ValueError as error:
            raise ReferenceFault(f"{where}: {error}") from None
    printed = _value_text(result.value) if functional else _text(result.stdout)
    if isinstance(printed, Comparison) or is_program(checker):
        return printed
    try:
        return run_checker(checker, tests.inputs.inputs[test], expected, printed.encode("utf-8", "surrogatepass"))
    except ConfigError as error:
        raise ReferenceFault(f"problem {tests.inputs.problem_id!r}: {error}") from None
    except Exception as error:  # a checker that fails says nothing of the submission, however it fails
        raise ReferenceFault(f"{where}: the checker {checker!r} failed: {told(error)}") from error


def _text(stdout: bytes) -> str | Comparison:
    try:
        return stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        return Comparison(False, f"the output is not UTF-8 (byte {error.start} of {len(stdout)})")


def _value_text(value: bytes) -> str | Comparison:
    """A returned value as the JSON text that a checker sees; a tuple is written as a list."""
    try:
        return json.dumps(decode(value))
    except (ValueError, TypeError, RecursionError) as error:
        return Comparison(False, f"the returned value can't be written as JSON ({type(error).__name__})")


def run_checks(tests: CodeTests, checks: Sequence[Check], slots: Slots, mark: Mark) -> None:
    """Let the checker program judge outputs, and mark what it says.

    Raises:
        ReferenceFault: it crashed, ran out of its limits, or said neither True nor False.
        SandboxError: the slot broke.
    """
    slot = slots.get("checker")
    command = Command(str(tests.expected.checker), mode="functional", fn_name=FUNCTION, limits=LIMITS)
    given = (
        checker_arguments(tests.inputs.inputs[check.test], tests.expected.outputs[check.test], check.output)
        for check in checks
    )
    runs = cast(Generator[RunResult, None, None], slot.run(command, given))
    with closing(runs):
        for check in checks:
            result = next(runs, None)
            if result is None:
                raise SandboxError(f"{slot.id} gave fewer results than it was given inputs")
            found = Comparison(True) if _says(tests, check, result) else _REFUSED
            for view in check.views:
                mark(view, check.test, found, check.slot)


def _says(tests: CodeTests, check: Check, result: RunResult) -> bool:
    where = f"the checker program of problem {tests.inputs.problem_id!r} failed on test {check.test + 1}"
    if result.status is RunStatus.exited and result.exit_code == 0 and result.value:
        try:
            return checker_says(result.value)
        except ValueError as error:
            raise ReferenceFault(f"{where}: {error} [{result.slot}]") from None
    tail = result.stderr.decode("utf-8", "replace").strip()[-300:]
    said = f": {tail!r}" if tail else ""
    raise ReferenceFault(f"{where}: {result.status.name}, exit code {result.exit_code}{said} [{result.slot}]")
