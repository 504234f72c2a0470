"""What the curation tests share: small recipes, a toy teacher, readers of the files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from klearbench.curation import pipeline
from klearbench.engines.base import Generation
from klearbench.types import FinishReason

PUZZLES = """
name: tiny
seed: 3
licence: apache-2.0
sources: [{suite: puzzles, kind: chains, split: train, count: 60, seed: 1}]
teacher: {engine: scripted, options: {errors: {min: 0.7, max: 0.2}}, samples: 4, temperature: 1.0, max_tokens: 64}
verify: {wrong: drop_on_easy, easy_above: 0.5}
decontaminate: {against: [puzzles]}
validation_share: 0.25
outputs: [{name: sft}, {name: rl, pass_rate: [0.25, 0.75]}]
"""

FILE = """
name: mine
sources: [{file: rows.jsonl, name: mine, licence: mit}]
teacher: {engine: scripted, samples: 2}
verify: {wrong: keep}
outputs: [{name: sft}, {name: rl}]
"""


def write(folder: Path, text: str, rows: list[dict] | None = None) -> Path:
    if rows is not None:
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "recipe.yaml"
    path.write_text(text)
    return path


def quiet(_: str) -> None:
    pass


def run(recipe: Path, out: Path, *overrides: str) -> pipeline.Summary:
    return pipeline.curate(recipe, out, overrides, say=quiet)


def read(path: Path) -> list[dict]:
    return pq.read_table(path).to_pylist()


def data(out: Path, config: str, split: str = "train") -> list[dict]:
    return read(out / "data" / f"{split}-{config}-00000-of-00001.parquet")


class Teacher:
    """Answers every prompt with what `reply(prompt text, sample index)` says, and remembers what it was given."""

    batch_size = 3

    def __init__(self, reply):
        self.reply, self.seen = reply, []

    def identity(self):
        return {"name": "toy"}

    def generate(self, requests, sampling):
        self.seen += [(request, sampling) for request in requests]
        return [self._one(request) for request in requests]

    def _one(self, request):
        text = self.reply(request.prompt[-1]["content"], request.place[1])
        if text is None:
            return Generation("", FinishReason.error, 1, 0)
        return Generation(text, FinishReason.stop, 1, len(text.split()))

    def close(self):
        pass


def teach(monkeypatch, reply) -> Teacher:
    """Let curation be taught by `reply`, whatever engine the recipe names."""
    teacher = Teacher(reply)
    monkeypatch.setattr(pipeline, "build_engine", lambda name, options: teacher)
    return teacher
