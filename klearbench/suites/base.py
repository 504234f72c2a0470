"""What a suite is: questions on one side, answers on the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klearbench.types import CodeTests, Problem, Reference

PROMPTS = ("ours", "official")
"""How programs are asked for: in our own words, or by LiveCodeBench's template, read from the data directory."""


@dataclass(frozen=True, slots=True)
class Erratum:
    """One known fault of a benchmark, or of the copy that was read, and what was done about it.

    Attributes:
        id: the problem.
        kind: "wrong_tests", "interactive", "multiple_answers", "wrong_answer", "wrong_statement", "not_expressible".
        why: one sentence.
        action: "left out", "corrected", "judged by a checker", or "listed" (kept as it is).
    """

    id: str
    kind: str
    why: str
    action: str


@dataclass(frozen=True, slots=True)
class Suite:
    """A loaded benchmark. `problems` may go anywhere; `answers` (by problem id) go to a judge and nowhere else.

    `content_hash` covers all that decides the suite; `errata` are the known faults that were met in it.
    `sampling` holds fields of `engines.base.Sampling` that the suite itself fixes, such as a task's stop texts.
    """

    name: str
    problems: tuple[Problem, ...]
    answers: Mapping[str, Reference]
    content_hash: str
    errata: tuple[Erratum, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_code(self) -> bool:
        """Whether any problem asks for a program."""
        return any(isinstance(self.answers[problem.id], CodeTests) for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Asked:
    """How a suite is wanted: its data's folder (None: KLEARBENCH_DATA, else the hub), its prompts, errata applied."""

    data_dir: Path | None = None
    prompt: str = "ours"
    errata: bool = True


@dataclass(frozen=True, slots=True)
class HubSource:
    """Where a suite's rows can be had on the Hugging Face hub.

    Attributes:
        dataset: its id.
        row: its row (with the row's number, from 0) -> a row in the format of our file. KeyError: a column is missing.
        config: the configuration, None for the only one.
        split: the split's name.
        count: how many rows it has, where that is not the suite's count.
        files: JSONL files of the repository that are read as they are, in place of a split.
    """

    dataset: str
    row: Callable[[int, Mapping[str, Any]], Mapping[str, Any]] = lambda _, row: row
    config: str | None = None
    split: str = "test"
    count: int | None = None
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = [self.config, ", ".join(self.files) if self.files else f"split {self.split}"]
        return f"{self.dataset} ({', '.join(filter(None, more))})"


@dataclass(frozen=True, slots=True)
class SuiteInfo:
    """One line of `klearbench suites`.

    `file` is the name looked for in the data directory, None for an embedded suite; `count` the number of problems,
    errata included; `hub` where else it can be had; `here` tells for a folder whether the suite's files are in it.
    """

    name: str
    about: str
    count: int
    source: str
    licence: str
    file: str | None
    load: Callable[[Asked], Suite]
    hub: HubSource | None = None
    here: Callable[[Path], bool] | None = None

    def in_folder(self, folder: Path) -> bool:
        """Whether the suite can be read from a data directory."""
        return self.here(folder) if self.here is not None else self.file is not None and (folder / self.file).is_file()
