"""What a rollout batch is, and how it lies on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from klearbench.errors import DataError
from klearbench.store import write_atomic
from klearbench.types import FinishReason, Status, parquet_text


@dataclass(frozen=True, slots=True)
class Rollout:
    """One completion of a prompt with its reward. Ids and log-probs are the engine's own, never retokenised."""

    prompt_id: str
    group: int
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    completion: str
    finish_reason: FinishReason
    status: Status
    reward: float | None
    dropped: str = ""
    """Why it is not trained on: the group's `NoSignal`, "judge_error", "truncated" or "surplus"; empty: it is."""


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """All rollouts of one step, the dropped ones too; `cursor` is how many prompts of the order were read so far."""

    rollouts: tuple[Rollout, ...]
    cursor: int
    rounds: int

    def groups(self) -> list[list[Rollout]]:
        """The rollouts to train on, prompt by prompt."""
        found: dict[int, list[Rollout]] = {}
        for rollout in self.rollouts:
            if not rollout.dropped:
                found.setdefault(rollout.group, []).append(rollout)
        return list(found.values())


def save_batch(path: Path, batch: RolloutBatch) -> None:
    """Write a batch as Parquet, whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [asdict(replace(r, completion=parquet_text(r.completion))) for r in batch.rollouts]
    counts = {"cursor": batch.cursor, "rounds": batch.rounds}
    table = pa.Table.from_pylist(rows, schema=_schema(pa).with_metadata({"klearrl": json.dumps(counts)}))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_atomic(path, sink.getvalue().to_pybytes())


def _schema(pa: Any) -> Any:
    text, ids = pa.string(), pa.list_(pa.int32())
    return pa.schema(
        {
            "prompt_id": text,
            "group": pa.int32(),
            "prompt_ids": ids,
            "token_ids": ids,
            "logprobs": pa.list_(pa.float32()),
            "completion": text,
            "finish_reason": text,
            "status": text,
            "reward": pa.float64(),
            "dropped": text,
        }
    )


def load_batch(path: Path) -> RolloutBatch:
    """Read a batch back. Raises DataError when it isn't one of ours."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    counts: Mapping[str, int] = json.loads((table.schema.metadata or {}).get(b"klearrl", b"{}"))
    if "cursor" not in counts:
        raise DataError(path, "is no rollout batch")
    return RolloutBatch(tuple(_from_row(row) for row in table.to_pylist()), counts["cursor"], counts["rounds"])


def _from_row(row: dict[str, Any]) -> Rollout:
    lists: dict[str, Sequence[Any]] = {k: tuple(row[k]) for k in ("prompt_ids", "token_ids", "logprobs")}
    enums = {"finish_reason": FinishReason(row["finish_reason"]), "status": Status(row["status"])}
    return Rollout(**{**row, **lists, **enums})
