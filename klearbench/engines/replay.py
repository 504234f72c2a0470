"""Completions read from a file instead of a model: judges and scores what was sampled elsewhere.

Rows: `{"problem_id": .., "sample_index": .., "completion": ..}`, optional `prompt` is ignored, `finish_reason` kept.
The engine finds a row by (problem_id, sample_index), which the requests carry in `place`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from klearbench.engines.base import Generation, Request, Sampling
from klearbench.errors import DataError, UsageError
from klearbench.store import content_hash, read_rows
from klearbench.types import FinishReason

_FIELDS = (("problem_id", (str, int), "a text"), ("sample_index", int, "an integer"), ("completion", str, "a text"))


class ReplayEngine:
    """Answers each request with the recorded completion of its problem and sample index."""

    def __init__(self, model: str, batch_size: int = 256) -> None:
        self.batch_size = batch_size
        self._path = Path(model)
        self._rows: dict[tuple[str, int], Generation] = {}
        for line, row in read_rows(self._path):
            key, generation = self._read(row, line)
            if key in self._rows:
                raise DataError(self._path, f"problem {key[0]!r}, sample {key[1]} stands twice", line)
            self._rows[key] = generation

    def _read(self, row: Mapping[str, Any], line: int) -> tuple[tuple[str, int], Generation]:
        for name, kind, article in _FIELDS:
            value = row.get(name)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise DataError(self._path, f"{name} is {reprlib.repr(value)}; {article} is needed", line)
        reason = row.get("finish_reason", "stop")
        if reason not in list(FinishReason):
            raise DataError(self._path, f"finish_reason is {reason!r} (allowed: {', '.join(FinishReason)})", line)
        text = row["completion"]
        tokens = row.get("completion_tokens", len(text.split()))
        if not isinstance(tokens, int) or isinstance(tokens, bool):
            raise DataError(self._path, f"completion_tokens is {reprlib.repr(tokens)}; an integer is needed", line)
        return (str(row["problem_id"]), row["sample_index"]), Generation(text, FinishReason(reason), 0, tokens)

    def identity(self) -> Mapping[str, Any]:
        return {"name": "replay", "completions_hash": content_hash(self._path)}

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """The recorded completions. Raises UsageError for a sample that the file doesn't hold."""
        found = []
        for request in requests:
            if request.place not in self._rows:
                raise UsageError(
                    f"{self._path} holds no completion of problem {request.place[0]!r}, sample {request.place[1]}"
                )
            found.append(self._rows[request.place])
        return found

    def close(self) -> None:
        """Nothing is held."""
