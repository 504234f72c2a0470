"""Evaluation with engines that batch by themselves, and judging beside sampling."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from tools import ToyEngine, jsonl, write_jsonl

from klearbench.engines.base import (
    LOG,
    Generation,
    Request,
    Sampling,
    StreamingEngine,
    sample_seed,
    stream_in_order,
)
from klearbench.errors import EngineDown, IncompleteError, RunConflict
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.judging.judge import MathJudge
from klearbench.suites.base import Suite
from klearbench.suites.files import load_problem_file
from klearbench.types import FinishReason

OPTIONS = EvalOptions(samples=2, sampling=Sampling(1.0, 1.0, 0, 64))


@pytest.fixture
def suite(tmp_path) -> Suite:
    rows = [{"id": f"q{i}", "problem": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(10)]
    return load_problem_file(write_jsonl(tmp_path / "sums.jsonl", rows), "sums", rule="integer")


def right(request: Request) -> str:
    return f"\\boxed{{{int(request.place[0][1:]) + 1}}}"


class Backwards(ToyEngine):
    """Holds up to `window` requests and gives the last one back first; `fails` says what happens at the n-th."""

    def __init__(self, window: int = 3, fails: Callable[[int], None] = lambda n: None) -> None:
        super().__init__(right)
        self.window, self.fails, self.closed_early = window, fails, False

    def stream(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[tuple[Request, Generation]]:
        held: list[Request] = []
        given = 0
        source = iter(requests)
        try:
            while True:
                while len(held) < self.window and (request := next(source, None)) is not None:
                    self.calls.append([request])
                    held.append(request)
                if not held:
                    return
                self.fails(given)
                given += 1
                request = held.pop()
                yield request, Generation(self.reply(request), FinishReason.stop, 1, 3)
        except GeneratorExit:
            self.closed_early = True
            raise


def asked(engine: ToyEngine) -> list[tuple[str, int]]:
    return [request.place for call in engine.calls for request in call]


def test_an_engine_that_streams_is_told_from_one_that_does_not():
    assert isinstance(Backwards(), StreamingEngine)
    assert not isinstance(ToyEngine(right), StreamingEngine)


def test_generate_of_a_stream_is_in_order_even_for_equal_requests():
    engine = Backwards(window=4)
    requests = [Request((), 1, ("q1", 0)), Request((), 2, ("q2", 0)), Request((), 1, ("q1", 0))]
    made = stream_in_order(engine, requests, Sampling())
    assert [g.completion for g in made] == ["\\boxed{2}", "\\boxed{3}", "\\boxed{2}"]


def test_everything_is_asked_once_and_written_as_it_is_finished(tmp_path, suite):
    engine = Backwards()
    (score,) = evaluate(tmp_path / "run", [suite], engine, OPTIONS)
    assert score.avg == 100.0 and score.complete
    assert asked(engine) == [(f"q{n}", index) for index in (0, 1) for n in range(10)], "in the order of the plan"
    rows = jsonl(tmp_path / "run" / "samples.jsonl")
    assert [row["problem_id"] for row in rows[:3]] == ["q2", "q3", "q4"], "in the order in which they were finished"
    for row in rows:
        assert row["seed"] == sample_seed(0, "sums", row["problem_id"], row["sample_index"])
    verdicts = jsonl(tmp_path / "run" / "verdicts.jsonl")
    assert [(v["problem_id"], v["sample_index"]) for v in verdicts] == [
        (r["problem_id"], r["sample_index"]) for r in rows
    ]


def test_an_interrupted_stream_goes_on_with_what_is_missing(tmp_path, suite):
    def stop(given: int) -> None:
        if given == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "run", [suite], Backwards(fails=stop), OPTIONS)
    kept = jsonl(tmp_path / "run" / "samples.jsonl")
    assert len(kept) == 7
    engine = Backwards()
    (score,) = evaluate(tmp_path / "run", [suite], engine, OPTIONS)
    assert score.complete
    rows = jsonl(tmp_path / "run" / "samples.jsonl")
    assert rows[:7] == kept
    places = {(row["problem_id"], row["sample_index"]) for row in rows}
    assert len(rows) == len(places) == 20
    assert set(asked(engine)) == places - {(row["problem_id"], row["sample_index"]) for row in kept}


def test_an_engine_that_is_down_for_good_keeps_what_was_finished(tmp_path, suite):
    def down(given: int) -> None:
        if given == 5:
            raise EngineDown("the server does not answer")

    with pytest.raises(IncompleteError, match="does not answer") as caught:
        evaluate(tmp_path / "run", [suite], Backwards(fails=down), OPTIONS)
    assert caught.value.exit_code == 3
    assert len(jsonl(tmp_path / "run" / "samples.jsonl")) == 5
    assert len(jsonl(tmp_path / "run" / "verdicts.jsonl")) == 5, "what was quick to judge was judged"
    assert not (tmp_path / "run" / "scores.json").exists()


def test_a_failed_request_is_no_wrong_answer_and_its_reason_is_logged(tmp_path, suite):
    class OneFails(Backwards):
        def stream(self, requests, sampling):
            for request, made in super().stream(requests, sampling):
                failed = request.place == ("q3", 1) and not self.closed
                yield request, Generation("", FinishReason.error, 0, 0, detail="too long") if failed else made

    engine = OneFails()
    with pytest.raises(IncompleteError, match="1 engine errors"):
        evaluate(tmp_path / "run", [suite], engine, OPTIONS)
    assert "engine error: sums q3 sample 1: too long" in (tmp_path / "run" / "log.txt").read_text()
    engine.close()
    engine.calls.clear()
    (score,) = evaluate(tmp_path / "run", [suite], engine, OPTIONS)
    assert score.complete and asked(engine) == [("q3", 1)]


def test_what_engines_tell_stands_in_the_log(tmp_path, suite):
    before = list(LOG.handlers)
    engine = Backwards(fails=lambda given: LOG.warning("try %s", given) if given == 4 else None)
    evaluate(tmp_path / "run", [suite], engine, OPTIONS)
    assert "engine: try 4" in (tmp_path / "run" / "log.txt").read_text()
    assert LOG.handlers == before


def test_judging_runs_while_the_engine_works(tmp_path, suite, monkeypatch):
    """The engine's second call ends only when a sample of the first has been judged."""
    judged = threading.Event()
    real = MathJudge.judge

    def judge(self: MathJudge, items: Any) -> Any:
        try:
            return real(self, items)
        finally:
            judged.set()

    monkeypatch.setattr(MathJudge, "judge", judge)
    engine = ToyEngine(right, 5)
    made = engine.generate

    def generate(requests, sampling):
        if len(engine.calls) == 1:
            assert judged.wait(30), "nothing was judged while the engine was busy"
        return made(requests, sampling)

    engine.generate = generate
    (score,) = evaluate(tmp_path / "run", [suite], engine, OPTIONS)
    assert score.avg == 100.0


def test_what_the_judge_raises_ends_the_run(tmp_path, suite, monkeypatch):
    def judge(self, items):
        raise IncompleteError("no sandbox any more")

    monkeypatch.setattr(MathJudge, "judge", judge)
    with pytest.raises(IncompleteError, match="no sandbox any more"):
        evaluate(tmp_path / "run", [suite], ToyEngine(right, 5), OPTIONS)


def test_an_interrupt_breaks_a_slow_judge_off_and_writes_no_verdict_of_it(tmp_path, suite, monkeypatch):
    """Its workers are killed, and what they say then is no verdict."""
    ended = threading.Event()
    real_judge, real_close = MathJudge.judge, MathJudge.close

    def judge(self, items):
        ended.wait(60)
        return real_judge(self, items)

    def close(self):
        ended.set()
        real_close(self)

    monkeypatch.setattr(MathJudge, "judge", judge)
    monkeypatch.setattr(MathJudge, "close", close)

    def interrupted(request: Request) -> str:
        if request.place == ("q0", 1):
            raise KeyboardInterrupt
        return right(request)

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "run", [suite], ToyEngine(interrupted, 5), OPTIONS)
    assert time.monotonic() - start < 30
    assert jsonl(tmp_path / "run" / "verdicts.jsonl") == []
    assert len(jsonl(tmp_path / "run" / "samples.jsonl")) == 10


def test_the_asked_problems_are_in_the_run_folder_without_answers(tmp_path, suite):
    evaluate(tmp_path / "run", [suite], ToyEngine(right, 5), EvalOptions(system="Be brief."))
    rows = jsonl(tmp_path / "run" / "problems.jsonl")
    assert [row["id"] for row in rows] == [f"q{n}" for n in range(10)]
    assert rows[3]["prompt"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 3 + 1?"},
    ]
    evaluate(tmp_path / "run", [suite], ToyEngine(right, 5), EvalOptions(system="Be brief."))
    assert jsonl(tmp_path / "run" / "problems.jsonl") == rows, "a rerun adds nothing"


def test_suites_may_differ_in_their_samples(tmp_path, suite):
    rows = [{"id": "r0", "problem": "What is 0 + 1?", "answer": "1"}]
    other = load_problem_file(write_jsonl(tmp_path / "other.jsonl", rows), "other")
    options = EvalOptions(samples={"sums": 1, "other": 3})
    first, second = evaluate(tmp_path / "run", [suite, other], ToyEngine(right, 5), options)
    assert (first.k, second.k, second.judged) == (1, 3, 3)
    config = json.loads((tmp_path / "run" / "manifest.json").read_text())["config"]
    assert config["samples"] == {"sums": 1, "other": 3}
    first, second = evaluate(
        tmp_path / "run", [suite, other], ToyEngine(right, 5), EvalOptions(samples={"sums": 1, "other": 4})
    )
    assert (first.k, second.k) == (1, 4), "one suite's samples are raised alone"
    first, second = evaluate(tmp_path / "run", [suite, other], ToyEngine(right, 5), EvalOptions(samples=4))
    assert (first.k, second.k) == (4, 4), "one number for all of them, raised for one"
    with pytest.raises(RunConflict, match=r"samples\.other = 4, this command has 3"):
        options = EvalOptions(samples={"sums": 5, "other": 3})
        evaluate(tmp_path / "run", [suite, other], ToyEngine(right, 5), options)
