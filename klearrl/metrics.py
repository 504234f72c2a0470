"""Training metrics: one line a step in metrics.jsonl, and the same numbers for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klearbench.store import JsonlWriter, dumps, read_rows, write_atomic
from klearrl import distributed


class Metrics:
    """Appends on rank 0; the other ranks' calls do nothing."""

    def __init__(self, run: Path, *, tensorboard: bool) -> None:
        self._run = run
        self._path = run / "metrics.jsonl"
        self._log: JsonlWriter | None = None
        self._board: Any = None
        self._tensorboard = tensorboard

    def start(self, stage: str, step: int) -> None:
        """Begin or resume a stage at `step`: lines of the stage beyond it are dropped, their steps will come again."""
        if not distributed.is_main():
            return
        self.close()
        if self._path.exists():
            rows = [row for _, row in read_rows(self._path, ours=True)]
            kept = [row for row in rows if row["stage"] != stage or row["step"] <= step]
            if len(kept) < len(rows):
                write_atomic(self._path, "".join(dumps(row) + "\n" for row in kept))
        self._log = JsonlWriter(self._path)
        if self._tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(self._run / "tensorboard" / stage), purge_step=step + 1)

    def log(self, stage: str, step: int, values: Mapping[str, float | int]) -> None:
        """One line: the stage, the step (from 1) and its numbers."""
        if self._log is None:
            return
        self._log.append({"stage": stage, "step": step, **values})
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._board is not None:
            self._board.close()
            self._board = None
