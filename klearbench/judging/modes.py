"""The rules of each judging mode: how a program is found, run and held against what was expected.

`strict` is ours. `compat` follows LiveCodeBench's judge: its extraction and comparison, its imports before every
program, a program ends with its main thread, `sys.exit(1)` is a normal end, and the first failing test is the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klearbench.judging.codeblocks import CodeBlock, extract_code, lcb_extract
from klearbench.judging.outcome import limits_of
from klearbench.sandbox.base import Command
from klearbench.types import CodeTests, FinishReason, Sample, Status, TestInputs, Verdict

if TYPE_CHECKING:
    from klearbench.judging.views import View

_SHOWN_CHARS = 1_000
_THREADS = re.compile(r"thread|concurrent|executor|multiprocessing", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rules:
    """One mode's rules.

    Attributes:
        name: the mode, as `compare_output` and `compare_value` know it.
        extract: a completion -> the program in it.
        preamble: what stands before a program whose problem names none.
        wait_for_threads: a program ends when all its threads have.
        exit_counts: an exit code other than 0 is a failure by itself.
        early: nothing is run after the first failing test.
    """

    name: str
    extract: Callable[[str], CodeBlock]
    preamble: str | None = None
    wait_for_threads: bool = True
    exit_counts: bool = True
    early: bool = False


STRICT = Rules("strict", extract_code)
COMPAT = Rules("compat", lcb_extract, "lcb", wait_for_threads=False, exit_counts=False, early=True)
MODES: dict[str, tuple[Rules, ...]] = {"strict": (STRICT,), "compat": (COMPAT,), "both": (STRICT, COMPAT)}
"""Mode -> the rules that are applied; the first ones make the verdict."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a sample brings: a program, or (`code` is None) the status and detail that it ends with."""

    code: str | None
    shown: str | None
    status: Status | None = None
    detail: str = ""


def read_program(rules: Rules, row: tuple[Sample, CodeTests, bool]) -> Program:
    """The program in a sample, or what a sample without a whole program comes to."""
    sample, _, final = row
    block = CodeBlock(sample.completion, "", True) if final else rules.extract(sample.completion)
    shown = block.code
    if shown is not None and len(shown) > _SHOWN_CHARS:
        shown = f"{shown[:_SHOWN_CHARS]}... ({len(shown)} characters)"
    cut = not final and sample.finish_reason is FinishReason.length
    if block.code is None:
        return Program(None, None, Status.truncated if cut else Status.no_answer, block.detail or "no code")
    if cut and not block.complete:
        return Program(None, shown, Status.truncated, "the token limit came before the end of the program")
    if not block.code.strip():
        return Program(None, None, Status.no_answer, "the program is empty")
    return Program(block.code, shown)


def command_of(rules: Rules, code: str, inputs: TestInputs) -> Command:
    """How a program is run. Modes that would see no difference get equal commands, and so share the runs."""
    preamble = inputs.preamble or (rules.preamble if inputs.mode == "stdio" else None)
    return Command(
        code,
        mode=inputs.mode,
        fn_name=inputs.fn_name,
        preamble=preamble,
        wait_for_threads=rules.wait_for_threads or not _THREADS.search(code),
        limits=limits_of(inputs),
    )


def cause_of(ours: Verdict, theirs: Verdict, strict: View, compat: View) -> str:
    """Why the compat status differs from the strict one, in a line; empty if it does not."""
    if ours.status is theirs.status or Status.judge_error in (ours.status, theirs.status):
        return ""
    if strict.program.code != compat.program.code:
        return "extraction: compat takes " + ("no code" if compat.program.code is None else "another block")
    test = next((i for i, a in enumerate(strict.statuses) if a is not compat.statuses[i]), 0)
    first, second = strict.statuses[test] or ours.status, compat.statuses[test] or theirs.status
    pair = f"test {test + 1}: strict {first}, compat {second}"
    return f"{_rule(strict, compat, test)} ({pair})"


def _rule(strict: View, compat: View, test: int) -> str:
    """The rule that a differing test rests on."""
    statuses = {strict.statuses[test], compat.statuses[test]}
    ours, theirs = strict.command, compat.command
    if test in strict.differs or test in compat.differs:
        return "comparison"
    if ours is not None and theirs is not None and ours != theirs:
        threads = "threads are not waited for" if ours.wait_for_threads != theirs.wait_for_threads else ""
        imports = "LiveCodeBench's imports come first" if ours.preamble != theirs.preamble else ""
        return "run: in compat " + " and ".join(filter(None, (threads, imports)))
    if statuses <= {Status.correct, Status.wrong_answer}:
        return "comparison"
    if Status.runtime_error in statuses:
        return "exit code"
    return "limits"
