"""The records: frozen, stdlib only, a public contract (their field names are those of the JSONL and Parquet files).

The question and its answer are different types on purpose. A `Problem` may go anywhere: into a prompt, an engine,
a log. An `Answer` or `ExpectedOutputs` goes to a judge and nowhere else.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from klearbench.errors import nearest

Message = Mapping[str, str]
"""One chat message: `{"role": "system" | "user" | "assistant", "content": text}`."""


class Kind(StrEnum):
    """What a problem asks for."""

    math = "math"
    code = "code"


class Status(StrEnum):
    """How judging one sample ended. `judge_error` is our fault, never the sample's: its score is null."""

    correct = "correct"
    wrong_answer = "wrong_answer"
    runtime_error = "runtime_error"
    time_limit = "time_limit"
    memory_limit = "memory_limit"
    output_limit = "output_limit"
    compile_error = "compile_error"
    no_answer = "no_answer"
    truncated = "truncated"
    judge_error = "judge_error"


class FinishReason(StrEnum):
    """Why the engine stopped writing: an end-of-turn token, the token limit, or a failure of the engine."""

    stop = "stop"
    length = "length"
    error = "error"


@dataclass(frozen=True, slots=True)
class Problem:
    """What the model is asked. `prompt` is a list of chat messages; `date` is ISO 8601 or None."""

    id: str
    suite: str
    kind: Kind
    prompt: tuple[Message, ...]
    source: str = ""
    date: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """The reference answer of a math problem. `rule` names how it is compared ("integer_0_999", "expression", ...)."""

    problem_id: str
    answer: str
    rule: str = "expression"


@dataclass(frozen=True, slots=True)
class TestInputs:
    """What a submitted program is fed, with its limits (seconds of CPU time, MiB)."""

    problem_id: str
    mode: str
    inputs: tuple[str, ...]
    fn_name: str | None = None
    preamble: str | None = None
    time_limit_s: float = 6.0
    memory_limit_mb: int = 4096


@dataclass(frozen=True, slots=True)
class ExpectedOutputs:
    """What a right program prints or returns. Never enters the sandbox of a submission."""

    problem_id: str
    outputs: tuple[str, ...]
    checker: str | None = None


@dataclass(frozen=True, slots=True)
class CodeTests:
    """The reference of a code problem: what a program is fed, and, apart from it, what must come out."""

    inputs: TestInputs
    expected: ExpectedOutputs


Reference = Answer | CodeTests
"""What a sample is judged against. Goes to a judge and nowhere else."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion. `token_ids` and `logprobs` are kept for RL only; how it was made stands in the run's manifest."""

    suite: str
    problem_id: str
    sample_index: int
    seed: int
    completion: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: FinishReason
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None

    @property
    def key(self) -> SampleKey:
        return (self.suite, self.problem_id, self.sample_index)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of one sample. `score` is in 0..1, None for `judge_error`; times in seconds, memory in MiB."""

    suite: str
    problem_id: str
    sample_index: int
    status: Status
    score: float | None
    extracted: str | None = None
    passed: int | None = None
    total: int | None = None
    detail: str = ""
    cpu_s: float | None = None
    wall_s: float | None = None
    peak_mb: float | None = None

    @property
    def key(self) -> SampleKey:
        return (self.suite, self.problem_id, self.sample_index)


SampleKey = tuple[str, str, int]
"""(suite, problem_id, sample_index): unique within a run."""


def reward(verdict: Verdict, finish_reason: FinishReason) -> float | None:
    """The RL reward of a judged rollout, in 0..1, or None for "drop this rollout" (our judge failed).

    A completion that ran into the token limit earns 0, as much as a wrong one and never more.
    """
    if verdict.status is Status.judge_error:
        return None
    if finish_reason is FinishReason.length:
        return 0.0
    return verdict.score


R = TypeVar("R")

_NOT_UTF8 = re.compile("[\x00\ud800-\udfff]")


def to_row(record: Any) -> dict[str, Any]:
    """A record as a plain dict for JSONL or Parquet; fields of RL alone are left out when they are None."""
    row = asdict(record)
    if isinstance(record, Sample):
        row = {k: v for k, v in row.items() if v is not None}
    return row


def from_row(cls: type[R], row: Mapping[str, Any]) -> R:
    """A record from a plain dict.

    Raises:
        ValueError: a field is unknown, missing or of the wrong type (one line that names it).
    """
    readers = _readers(cls)  # type: ignore[arg-type]
    for name in row:
        if name not in readers:
            allowed = ", ".join(readers)
            raise ValueError(f"unknown field {name!r}{nearest(name, readers)} (a {cls.__name__} has {allowed})")
    values = {name: readers[name](name, value) for name, value in row.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(str(error).replace(f"{cls.__name__}.__init__() ", "")) from None


Reader = Callable[[str, Any], Any]
"""A field's name and its JSON value -> the value as the record holds it."""


@cache
def _readers(cls: type) -> dict[str, Reader]:
    """A reader a field, made once a class: logs have a hundred thousand rows."""
    hints = get_type_hints(cls)
    return {f.name: _reader(hints[f.name]) for f in fields(cls)}


def _reader(hint: Any) -> Reader:
    """Reads a JSON value as the type of its field: lists become tuples, names of an enum its members."""
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        members = {member.value: member for member in hint}

        def read_member(name: str, value: Any) -> Any:
            if not isinstance(value, str) or value not in members:
                raise ValueError(f"{name} is {value!r} (allowed: {', '.join(members)})")
            return members[value]

        return read_member
    fitting = fits(hint)
    wanted = getattr(hint, "__name__", str(hint)) if isinstance(hint, type) else str(hint).replace("typing.", "")

    def read(name: str, value: Any) -> Any:
        if not fitting(value):
            raise ValueError(f"{name} is {reprlib.repr(value)} ({type(value).__name__}); {wanted} is expected")
        return tuple(value) if isinstance(value, list) else value

    return read


def fits(hint: Any) -> Callable[[Any], bool]:
    """Whether a JSON value is one of a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: True
    if origin in (Union, UnionType):
        ways = [fits(argument) for argument in arguments]
        return lambda value: any(way(value) for way in ways)
    if origin is tuple:
        item = fits(arguments[0])
        return lambda value: isinstance(value, list | tuple) and all(map(item, value))
    if origin is Mapping:
        entry = fits(arguments[1])
        return lambda value: isinstance(value, Mapping) and all(map(entry, value.values()))
    if hint is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if hint is bool:
        return lambda value: isinstance(value, bool)
    return lambda value: isinstance(value, hint) and not isinstance(value, bool)


def parquet_text(text: str) -> str:
    """Text that Parquet (UTF-8) can hold: a lone surrogate or NUL becomes U+FFFD. JSONL keeps both, ASCII-escaped."""
    return _NOT_UTF8.sub("\ufffd", text)


def by_problem(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """Verdicts of one suite grouped by problem, each group in the order of the sample index."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.problem_id, []).append(verdict)
    return {key: sorted(group, key=lambda v: v.sample_index) for key, group in groups.items()}
