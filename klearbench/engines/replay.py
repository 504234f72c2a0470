"""Completions read from a file instead of a model: judges and scores what was sampled elsewhere.

Rows: `{"problem_id": .., "sample_index": .., "completion": ..}`, optional `prompt` is ignored, `finish_reason` kept.
The engine finds a row by (problem_id, sample_index), which the requests carry in `place`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from klearbench.engines.base import Generation, Request, Sampling
from klearbench.errors import DataError, UsageError
from klearbench.store import content_hash, read_rows
from klearbench.types import FinishReason


class ReplayEngine:
    """Answers each request with the recorded completion of its problem and sample index."""

    def __init__(self, model: str, batch_size: int = 256) -> None:
        self.batch_size = batch_size
        self._path = Path(model)
        self._rows: dict[tuple[str, int], Generation] = {}
        for line, row in read_rows(self._path):
            try:
                key = (str(row["problem_id"]), int(row["sample_index"]))
                text, reason = str(row["completion"]), FinishReason(row.get("finish_reason", "stop"))
            except (KeyError, ValueError, TypeError) as error:
                raise DataError(self._path, f"needs problem_id, sample_index and completion ({error})", line) from None
            if key in self._rows:
                raise DataError(self._path, f"problem {key[0]!r}, sample {key[1]} stands twice", line)
            self._rows[key] = Generation(text, reason, 0, int(row.get("completion_tokens", len(text.split()))))

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
