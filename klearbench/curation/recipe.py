"""What a curation recipe may say. Reading one loads no engine, judge or Parquet library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from klearbench.config import Section, load_recipe
from klearbench.curation.filters import Filter, build_filter


class Source(Section):
    """Where problems come from: the generated puzzles, a suite by name, or a file of one's own."""

    suite: str | None = None
    """"puzzles", or any name of `klearbench suites`. Give this or `file`."""
    file: Path | None = None
    """A .jsonl or .parquet file, relative to the recipe."""
    name: str | None = None
    """What a file's problems are filed under (`suite` in the records); its stem when absent."""
    kind: str = "chains"
    """Puzzles only: chains, sums, sorting or code."""
    split: Literal["train", "test"] = "train"
    """Puzzles only."""
    count: int | None = Field(default=None, gt=0)
    """How many problems; all of them when absent (the puzzles need it)."""
    seed: int = 0
    """Puzzles only: which puzzles are drawn."""
    fields: dict[Literal["id", "problem", "answer", "source", "date", "rule"], str] = Field(default_factory=dict)
    """Files only: our column name -> the file's."""
    rule: str = "expression"
    """Files only: how answers are compared, unless a row says otherwise."""
    licence: str | None = None
    """SPDX name; the recipe's when absent."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.suite is None) == (self.file is None):
            raise ValueError("give either `suite` or `file`")
        if self.suite == "puzzles" and self.count is None:
            raise ValueError("the puzzles need a `count`")
        allowed = {"licence", "count"} | ({"file", "name", "fields", "rule"} if self.file else {"suite"})
        if self.suite == "puzzles":
            allowed |= {"kind", "split", "seed"}
        if idle := sorted(self.model_fields_set - allowed):
            raise ValueError(f"{idle[0]!r} has no meaning for this source (allowed: {', '.join(sorted(allowed))})")
        return self


class Teacher(Section):
    """Who answers the problems, and how its tokens are chosen."""

    engine: str
    """Any engine of `klearbench eval --engine`."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """What the engine is built with (model, batch_size, ...)."""
    name: str | None = None
    """How the data names the teacher; the engine's name when absent."""
    samples: int = Field(default=1, gt=0)
    """Responses a problem (the report: up to 16). A rerun may raise it."""
    temperature: float = Field(default=0.6, ge=0)
    top_p: float = Field(default=0.95, gt=0, le=1)
    top_k: int = Field(default=0, ge=0)
    """0: off."""
    max_tokens: int = Field(default=32768, gt=0)

    @property
    def label(self) -> str:
        return self.name or self.engine


class Verify(Section):
    """How responses are judged, and what becomes of the wrong ones.

    The report (arXiv 2508.07629, SFT ablation): wrong traces hurt on easy problems and help on hard ones.
    """

    judge: Literal["math"] = "math"
    """Of the problems with an answer; those with tests are judged by running the program."""
    mode: Literal["strict", "math-verify", "both"] = "strict"
    """The math judge's mode; "both" takes the strict verdicts and lists where math-verify's differ."""
    code_mode: Literal["strict", "compat"] = "strict"
    """How programs are judged: by our rules, or by LiveCodeBench's."""
    sandbox: Literal["local", "docker"] = "local"
    """Where programs run; changes no result."""
    wrong: Literal["keep", "drop", "drop_on_easy"] = "drop_on_easy"
    """What becomes of traces that aren't correct."""
    easy_above: float = Field(default=0.5, ge=0, le=1)
    """A problem is easy when its pass rate (0..1) lies above this."""
    workers: int = Field(default=1, gt=0)
    """Judge processes; changes no result."""


class FilterSpec(Section):
    """One filter by name, with its parameters."""

    name: str
    params: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        self.build()
        return self

    def build(self) -> Filter:
        return build_filter(self.name, self.params)


class Decontaminate(Section):
    """Which benchmarks must not stand in the data, and what counts as a copy. No benchmark: nothing is looked for."""

    against: tuple[str, ...] = ()
    """Suites by name, or suite files."""
    exact: bool = True
    """Whole texts, equal but for spaces, line breaks and case."""
    ngram: int = Field(default=9, ge=0)
    """Words in a row that count as a copy (the report: 9); 0: off."""
    containment: float = Field(default=0.0, ge=0, le=1)
    """Share of a benchmark problem's n-grams that must be found; 0 is the report's rule: any one of them."""
    common: int = Field(default=0, ge=0)
    """N-grams that stand in so many benchmark problems are phrasing and don't count; 0: all count (the report)."""


class Dedup(Section):
    """What is kept once only (compared without regard to spaces, line breaks and case)."""

    problems: bool = True
    """Problems of the same text; the first one stays. Done before the teacher is asked."""
    traces: bool = True
    """Responses of the same text to the same problem."""


class Output(Section):
    """One configuration of the dataset."""

    name: Literal["sft", "rl"]
    """sft: one row a response (`messages`); rl: one row a problem (`prompt`, `answer` or `tests`, `pass_rate`)."""
    pass_rate: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest pass rate of a problem that is kept, both included."""

    @field_validator("pass_rate")
    @classmethod
    def _in_order(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not 0 <= value[0] <= value[1] <= 1:
            raise ValueError("two numbers in 0..1, the lower one first")
        return value


class Recipe(Section):
    """A whole curation."""

    name: str = Field(min_length=1)
    """The dataset's name, for its card."""
    about: str = ""
    """One or two sentences for the card."""
    seed: int = 0
    """Every response's own seed is drawn from it."""
    licence: str = "other"
    """SPDX name, in lower case as the hub writes it."""
    data_dir: Path | None = None
    """Where suites that aren't embedded have their files, relative to the recipe; else KLEARBENCH_DATA."""
    sources: tuple[Source, ...] = Field(min_length=1)
    teacher: Teacher
    verify: Verify = Verify()
    filters: tuple[FilterSpec, ...] = ()
    """Applied to each response in this order; the first that says no gives the reason."""
    decontaminate: Decontaminate = Decontaminate()
    dedup: Dedup = Dedup()
    validation_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of the problems (chosen by a hash of their text) that goes to the validation split."""
    outputs: tuple[Output, ...] = Field(default=(Output(name="sft"),), min_length=1)
    """The first one is the dataset's default configuration."""

    @field_validator("outputs")
    @classmethod
    def _each_once(cls, value: tuple[Output, ...]) -> tuple[Output, ...]:
        if len({output.name for output in value}) < len(value):
            raise ValueError("each output may stand once")
        return value

    def run_config(self) -> dict[str, Any]:
        """The part that decides the result: what a rerun must have in common with the first run."""
        config = self.model_dump(mode="json")
        del config["verify"]["workers"], config["verify"]["sandbox"]
        return config


EXTENDS = ("teacher.samples",)
"""What a rerun of the same recipe may raise."""


def load_curation(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read and check a curation recipe. Raises ConfigError or DataError, one line with file, line and key."""
    return load_recipe(path, Recipe, overrides)
