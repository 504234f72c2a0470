"""The columns of the Parquet files, and a writer whose bytes depend on the rows alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from klearbench.curation.filters import Trace
from klearbench.curation.recipe import Recipe
from klearbench.faults import fault
from klearbench.store import disk_full, dumps, text_hash
from klearbench.suites.coderows import code_row
from klearbench.types import Answer, CodeTests, Problem, Reference, parquet_text

_ROWS_A_GROUP = 4096

_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))

SFT = pa.schema(
    [
        ("id", pa.string()),
        ("messages", _MESSAGES),
        ("problem_id", pa.string()),
        ("suite", pa.string()),
        ("sample_index", pa.int32()),
        ("source", pa.string()),
        ("licence", pa.string()),
        ("teacher", pa.string()),
        ("temperature", pa.float64()),
        ("top_p", pa.float64()),
        ("top_k", pa.int32()),
        ("max_tokens", pa.int32()),
        ("seed", pa.int64()),
        ("finish_reason", pa.string()),
        ("completion_tokens", pa.int32()),
        ("status", pa.string()),
        ("score", pa.float64()),
        ("pass_rate", pa.float64()),
        ("content_hash", pa.string()),
    ]
)

RL = pa.schema(
    [
        ("id", pa.string()),
        ("prompt", _MESSAGES),
        ("kind", pa.string()),
        ("answer", pa.string()),
        ("rule", pa.string()),
        ("tests", pa.string()),
        ("pass_rate", pa.float64()),
        ("source", pa.string()),
        ("suite", pa.string()),
        ("licence", pa.string()),
        ("content_hash", pa.string()),
    ]
)

PROBLEM = pa.schema(
    [("id", pa.string()), ("suite", pa.string()), ("source", pa.string()), ("prompt", _MESSAGES)],
)

SCHEMAS = {"sft": SFT, "rl": RL, "problems": PROBLEM}

COLUMNS = {
    "id": "unique in its file",
    "messages": "the chat: user, then assistant (the teacher's response)",
    "prompt": "the chat messages that the model is asked with",
    "problem_id": "the problem's id in its suite",
    "suite": "where the problem is filed",
    "sample_index": "which of the teacher's responses to the problem, from 0",
    "source": "where the problem comes from",
    "licence": "the problem's licence",
    "teacher": "who wrote the response",
    "temperature": "of the sampling",
    "top_p": "of the sampling; 1 is off",
    "top_k": "of the sampling; 0 is off",
    "max_tokens": "token limit of the response",
    "seed": "the response's own seed",
    "finish_reason": "stop, or length when the response was cut off",
    "completion_tokens": "length of the response",
    "status": "the verdict: correct, wrong_answer, no_answer, truncated, ...",
    "score": "0..1",
    "pass_rate": "share (0..1) of the teacher's responses to this problem that are correct",
    "content_hash": "SHA-256 of the contents of the messages",
    "kind": "math, or code: judged by its tests",
    "answer": "math: the reference answer, for a judge, never for a prompt",
    "rule": "math: how answers are compared",
    "tests": "code: a JSON object with inputs, expected outputs, limits; for a judge, never for a prompt",
}


def _chat(messages: tuple[Mapping[str, str], ...]) -> list[dict[str, str]]:
    return [{"role": m["role"], "content": parquet_text(m["content"])} for m in messages]


def _content_hash(chat: list[dict[str, str]]) -> str:
    return text_hash("\0".join(message["content"] for message in chat))


def sft_row(trace: Trace, recipe: Recipe, licence: str) -> dict[str, Any]:
    """One response as a row of the SFT schema."""
    problem, sample, teacher = trace.problem, trace.sample, recipe.teacher
    chat = _chat((*problem.prompt, {"role": "assistant", "content": sample.completion}))
    return {
        "id": parquet_text(f"{problem.suite}/{problem.id}/{sample.sample_index}"),
        "messages": chat,
        "problem_id": parquet_text(problem.id),
        "suite": problem.suite,
        "sample_index": sample.sample_index,
        "source": parquet_text(problem.source),
        "licence": licence,
        "teacher": teacher.label,
        "temperature": teacher.temperature,
        "top_p": teacher.top_p,
        "top_k": teacher.top_k,
        "max_tokens": teacher.max_tokens,
        "seed": sample.seed,
        "finish_reason": str(sample.finish_reason),
        "completion_tokens": sample.completion_tokens,
        "status": None if trace.status is None else str(trace.status),
        "score": trace.score,
        "pass_rate": trace.pass_rate,
        "content_hash": _content_hash(chat),
    }


def rl_row(problem: Problem, reference: Reference, pass_rate: float | None, licence: str) -> dict[str, Any]:
    """One problem as a row of the RL schema. `tests` is ASCII JSON: inputs with NUL or lone surrogates survive it."""
    answer = reference if isinstance(reference, Answer) else None
    chat = _chat(problem.prompt)
    return {
        "id": parquet_text(f"{problem.suite}/{problem.id}"),
        "prompt": chat,
        "kind": str(problem.kind),
        "answer": answer and parquet_text(answer.answer),
        "rule": answer and answer.rule,
        "tests": dumps(code_row(reference)) if isinstance(reference, CodeTests) else None,
        "pass_rate": pass_rate,
        "source": parquet_text(problem.source),
        "suite": problem.suite,
        "licence": licence,
        "content_hash": _content_hash(chat),
    }


def problem_row(problem: Problem) -> dict[str, Any]:
    """One problem without its answer, for the list of rejected ones."""
    return {
        "id": parquet_text(f"{problem.suite}/{problem.id}"),
        "suite": problem.suite,
        "source": parquet_text(problem.source),
        "prompt": _chat(problem.prompt),
    }


def rejected(schema: pa.Schema) -> pa.Schema:
    """A schema with the reason why its rows were dropped: `stage` and `reason` are names, `detail` is free text."""
    extra = [pa.field(name, pa.string()) for name in ("stage", "reason", "detail")]
    return pa.schema([*schema, *extra])


class TableWriter:
    """Writes rows into one Parquet file, a row group at a time: memory holds one group. `rows` counts them.

    Raises:
        DiskFull: the unfinished file is of no use and is written again by the next run.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path, self.schema, self.rows = path, schema, 0
        self._buffer: list[dict[str, Any]] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = pq.ParquetWriter(path, schema, compression="zstd")

    def append(self, row: dict[str, Any]) -> None:
        self._buffer.append(row)
        self.rows += 1
        if len(self._buffer) == _ROWS_A_GROUP:
            try:
                self._flush()
            except OSError as error:
                raise disk_full(error, self.path) or error from None

    def _flush(self) -> None:
        if not self._buffer:
            return
        self._file.write_table(pa.Table.from_pylist(self._buffer, self.schema))
        self._buffer = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if error is None:
                fault("parquet.write")
                self._flush()
            self._file.close()
        except OSError as failure:
            raise disk_full(failure, self.path) or failure from None
