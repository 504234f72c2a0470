"""Rule 2: a reference answer enters no prompt, no engine and no record of a run; it does reach the judge.

Every answer is a number that nobody would write by chance. It is looked for in everything that a path makes.
"""

from __future__ import annotations

import base64
import pickle
import re
import zlib
from dataclasses import asdict
from pathlib import Path

import pytest
from tools import ToyEngine, ok, tiny, write_jsonl

from klearbench.engines.base import Generation, Request, Sampling
from klearbench.engines.replay import ReplayEngine
from klearbench.evaluate import EvalOptions, evaluate, rescore
from klearbench.judging.judge import MathJudge
from klearbench.reports.html import write_report
from klearbench.suites.files import load_problem_file
from klearbench.types import FinishReason

FIRST = 918273645546372819
COUNT = 8
MARK = str(FIRST)[:16]
"""What all the answers begin with."""


def rows() -> list[dict]:
    return [
        {
            "id": f"q{i}", "problem": f"What is secret number {i}?", "answer": str(FIRST + i), "rule": "integer",
            "solution": f"It is {FIRST + i}.", "final_answer": str(FIRST + i), "level": i,
        }
        for i in range(COUNT)
    ]  # fmt: skip


@pytest.fixture
def suite(tmp_path):
    return load_problem_file(write_jsonl(tmp_path / "secrets.jsonl", rows()), "secrets")


@pytest.fixture
def judged(monkeypatch) -> list[str]:
    """Every reference answer that reaches MathJudge."""
    seen: list[str] = []
    real = MathJudge.judge_rows

    def spy(judge, items):
        seen.extend(answer.answer for _, answer, _ in items)
        return real(judge, items)

    monkeypatch.setattr(MathJudge, "judge_rows", spy)
    return seen


def echo(request: Request) -> str:
    """A model that gives away all it was told."""
    return f"I was asked {request.prompt[-1]['content']!r}, seed {request.seed}, place {request.place} \\boxed{{0}}"


def leaks(folder: Path, *besides: str) -> list[str]:
    """Files below a folder in which the mark stands, Parquet read, `besides` left out."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            table = pq.read_table(path)
            text = repr(table.to_pylist()) + repr(table.schema.metadata)
        else:
            text = path.read_bytes().decode(errors="replace")
        if path.suffix == ".html":
            text += packed_texts(text)
        if MARK in text and path.name not in besides:
            found.append(str(path.relative_to(folder)))
    return found


def packed_texts(page: str) -> str:
    """What a report holds packed: its samples, its prompts, its scripts."""
    pieces = re.findall(r'<script type="[a-z/]+" id="\w+">([\w+/=]+)</script>', page)
    return "".join(zlib.decompress(base64.b64decode(piece)).decode() for piece in pieces)


def assert_saw_nothing(engine: ToyEngine) -> None:
    assert engine.calls
    assert MARK not in repr(engine.calls) and MARK.encode() not in pickle.dumps(engine.calls)
    held = {name: value for name, value in vars(engine).items() if name != "reply"}
    assert MARK not in repr(held)


def test_the_search_can_fail(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "a.txt").write_text(f"x{FIRST + 3}")
    pq.write_table(pa.table({"answer": [str(FIRST)]}), tmp_path / "b.parquet", compression="zstd")
    (tmp_path / "c.txt").write_text("nothing")
    assert leaks(tmp_path) == ["a.txt", "b.parquet"]


def test_a_problem_holds_no_answer(suite):
    for problem in suite.problems:
        assert MARK not in repr(asdict(problem))
        assert problem.meta == {"level": int(problem.id[1:])}
    assert {a.answer for a in suite.answers.values()} == {str(FIRST + i) for i in range(COUNT)}


def test_evaluation_report_and_scoring(tmp_path, suite, judged):
    engine = ToyEngine(echo, batch_size=3)
    (score,) = evaluate(tmp_path / "run", [suite], engine, EvalOptions(samples=2))
    rescore(tmp_path / "run")
    write_report([tmp_path / "run"], tmp_path / "run" / "again.html")
    assert_saw_nothing(engine)
    assert leaks(tmp_path / "run") == []
    assert "secret number 3" in (tmp_path / "run" / "samples.jsonl").read_text(), "the engine echoes its prompt"
    assert "secret number 3" in packed_texts((tmp_path / "run" / "report.html").read_text()), "the search opens it"
    assert score.avg == 0.0
    assert set(judged) == {str(FIRST + i) for i in range(COUNT)}


def test_a_right_answer_is_seen_when_the_model_itself_says_it(tmp_path, suite, judged):
    """The search finds what a model wrote; and the judge compares with the right number."""
    engine = ToyEngine(lambda request: f"\\boxed{{{FIRST + int(request.place[0][1:])}}}", batch_size=3)
    (score,) = evaluate(tmp_path / "run", [suite], engine, EvalOptions())
    assert score.avg == 100.0
    assert "samples.jsonl" in leaks(tmp_path / "run")


def test_replay(tmp_path, suite, judged):
    recorded = [{"problem_id": f"q{i}", "sample_index": 0, "completion": f"\\boxed{{{i}}}"} for i in range(COUNT)]
    engine = ReplayEngine(str(write_jsonl(tmp_path / "recorded.jsonl", recorded)))
    evaluate(tmp_path / "run", [suite], engine, EvalOptions())
    assert MARK not in repr(vars(engine))
    assert leaks(tmp_path / "run") == []
    assert set(judged) == {str(FIRST + i) for i in range(COUNT)}


@pytest.mark.train
def test_a_transformers_engine(tmp_path, suite, judged, monkeypatch):
    from klearbench.engines.hf import HfEngine, load_engine

    shown: list[str] = []
    real = HfEngine.render

    def render(engine, prompt):
        ids = real(engine, prompt)
        shown.append(f"{prompt} {engine.tokenizer.decode(ids)}")
        return ids

    monkeypatch.setattr(HfEngine, "render", render)
    engine = load_engine(str(tiny(tmp_path / "model")), batch_size=4)
    evaluate(tmp_path / "run", [suite], engine, EvalOptions(sampling=Sampling(1.0, 1.0, 0, 4)))
    assert len(shown) == COUNT and MARK not in "".join(shown)
    assert leaks(tmp_path / "run") == []
    assert set(judged) == {str(FIRST + i) for i in range(COUNT)}


def test_judging_from_the_command_line_writes_no_reference(tmp_path):
    problems = [{"id": row["id"], "kind": "math", "answer": row["answer"], "rule": "integer"} for row in rows()]
    completions = [{"problem_id": f"q{i}", "sample_index": 0, "completion": f"\\boxed{{{i}}}"} for i in range(COUNT)]
    files = [write_jsonl(tmp_path / "p.jsonl", problems), write_jsonl(tmp_path / "c.jsonl", completions)]
    (tmp_path / "out").mkdir()
    ok("klearbench", "judge", files[1], "--problems", files[0], "-o", tmp_path / "out" / "v.jsonl")
    assert leaks(tmp_path / "out") == []


RECIPE = """
name: secrets
sources: [{file: secrets.jsonl, name: secrets, licence: mit, rule: integer}]
teacher: {engine: scripted, samples: 2, max_tokens: 64}
verify: {wrong: keep}
outputs: [{name: sft}, {name: rl}]
"""


def test_distillation(tmp_path, judged, monkeypatch):
    """The answer stands in the RL rows, which a trainer's judge needs, and nowhere else."""
    from klearbench.curation import pipeline

    write_jsonl(tmp_path / "secrets.jsonl", rows())
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    engine = ToyEngine(echo, batch_size=3)
    monkeypatch.setattr(pipeline, "build_engine", lambda name, options: engine)
    pipeline.curate(tmp_path / "recipe.yaml", tmp_path / "data", say=lambda _: None)
    assert_saw_nothing(engine)
    found = leaks(tmp_path / "data")
    assert found and all("rl" in Path(name).name and name.endswith(".parquet") for name in found), found
    assert set(judged) == {str(FIRST + i) for i in range(COUNT)}


@pytest.mark.train
def test_reinforcement_learning(tmp_path, judged, monkeypatch):
    pytest.importorskip("deepspeed")
    from klearbench.engines.hf import HfEngine
    from klearrl.config import OptimizerConfig, RlStage
    from klearrl.data import Order, split_rl_rows
    from klearrl.model import load_model
    from klearrl.rollouts.base import save_batch
    from klearrl.rollouts.collect import Source, collect

    calls: list[list[Request]] = []

    def generate(engine, requests, sampling) -> list[Generation]:
        calls.append(list(requests))
        assert MARK not in repr(vars(engine))
        ids = [engine.render(request.prompt) for request in requests]
        assert MARK not in engine.tokenizer.decode([token for row in ids for token in row])
        return [
            Generation(echo(r), FinishReason.stop, len(i), 3, (4, 5, 1), (-0.1, -0.2, -0.3))
            for r, i in zip(requests, ids, strict=True)
        ]

    monkeypatch.setattr(HfEngine, "generate", generate)
    model, tokenizer = load_model(str(tiny(tmp_path / "model")), "float32")
    table = [
        {"id": row["id"], "prompt": [{"role": "user", "content": row["problem"]}], "kind": "math",
         "answer": row["answer"], "rule": "integer"}
        for row in rows()
    ]  # fmt: skip
    prompts, answers = split_rl_rows(iter(table))
    assert MARK not in repr(prompts)
    lines: list[str] = []
    stage = RlStage(
        name="rl", steps=1, prompts=4, group_size=2, mini_batches=2, max_tokens=4, max_rounds=2,
        optimizer=OptimizerConfig(lr=1e-4),
    )  # fmt: skip
    with MathJudge() as judge:
        order = Order(len(prompts), 0, "rl")
        source = Source(prompts, answers, order, judge, tokenizer, 0, lines.append)
        batch = collect(stage, source, model, 0, 0)
    save_batch(tmp_path / "rollouts" / "step-1.parquet", batch)
    assert sum(map(len, calls)) == len(batch.rollouts) == COUNT * 2
    assert MARK not in repr(calls) and MARK not in repr(batch) and MARK not in repr(lines)
    assert leaks(tmp_path / "rollouts") == []
    assert set(judged) == {str(FIRST + i) for i in range(COUNT)}
