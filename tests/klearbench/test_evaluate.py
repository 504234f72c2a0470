"""The evaluation path: interrupted, resumed, extended, refused, scored again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tools import ToyEngine, jsonl, result, snapshot, tiny, write_jsonl

from klearbench.engines.base import Sampling
from klearbench.engines.replay import ReplayEngine
from klearbench.engines.scripted import ScriptedEngine
from klearbench.errors import DataError, IncompleteError, RunConflict, UsageError
from klearbench.evaluate import EvalOptions, evaluate, rescore
from klearbench.judging.judge import MathJudge
from klearbench.sampling import plan_batches
from klearbench.store import read_records
from klearbench.suites import puzzles
from klearbench.suites.base import Erratum, Suite
from klearbench.suites.files import load_problem_file
from klearbench.types import FinishReason, Sample, Status, Verdict

OPTIONS = EvalOptions(samples=2, sampling=Sampling(1.0, 1.0, 0, 64))


@pytest.fixture
def suite(tmp_path) -> Suite:
    rows = [{"id": f"q{i}", "problem": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(10)]
    return load_problem_file(write_jsonl(tmp_path / "sums.jsonl", rows), "sums", rule="integer")


def reply(request) -> str:
    """Right for even problems; otherwise the sample index, which is sometimes right."""
    number = int(request.place[0][1:])
    return f"So \\boxed{{{number + 1 if number % 2 == 0 else request.place[1]}}}"


def toy(batch_size: int = 4) -> ToyEngine:
    return ToyEngine(reply, batch_size)


def places(engine: ToyEngine) -> list[list[tuple[str, int]]]:
    return [[request.place for request in call] for call in engine.calls]


class Interrupted(ToyEngine):
    """Stops at its n-th call, as a kill would, between two batches."""

    def __init__(self, engine, at: int) -> None:
        self.engine, self.at, self.batch_size = engine, at, engine.batch_size
        self.calls = []

    def identity(self):
        return self.engine.identity()

    def generate(self, requests, sampling):
        self.calls.append(list(requests))
        if len(self.calls) == self.at:
            raise KeyboardInterrupt
        return self.engine.generate(requests, sampling)


def test_the_plan_never_mixes_sample_indices(suite):
    plan = [[(p.id, i) for p, i in batch] for batch in plan_batches(suite, 2, 4)]
    assert [len(batch) for batch in plan] == [4, 4, 2, 4, 4, 2]
    assert plan[0] == [("q0", 0), ("q1", 0), ("q2", 0), ("q3", 0)]
    assert plan[5] == [("q8", 1), ("q9", 1)]


def test_a_run_from_prompt_to_score(tmp_path, suite):
    engine = toy()
    (score,) = evaluate(tmp_path / "run", [suite], engine, OPTIONS)
    # even problems are right twice; of the odd ones, problem i wants i + 1: never 0 or 1
    assert (score.avg, score.k, score.problems, score.judged, score.complete) == (50.0, 2, 10, 20, True)
    assert places(engine) == [[(p.id, i) for p, i in batch] for batch in plan_batches(suite, 2, 4)]
    samples = jsonl(tmp_path / "run" / "samples.jsonl")
    assert len({row["seed"] for row in samples}) == 20
    assert all("token_ids" not in row for row in samples)
    assert json.loads((tmp_path / "run" / "scores.json").read_text())["sums"]["avg"] == 50.0
    assert (tmp_path / "run" / "report.html").exists()
    assert not (tmp_path / "run" / ".lock").exists()


def hf(tmp_path):
    pytest.importorskip("torch")
    from klearbench.engines.hf import load_engine

    if not (tmp_path / "model").exists():
        tiny(tmp_path / "model")
    return load_engine(str(tmp_path / "model"), batch_size=4, dtype="float32")


def recorded(tmp_path, suite):
    rows = [
        {"problem_id": p.id, "sample_index": i, "completion": f"\\boxed{{{n % 7}}}"}
        for n, p in enumerate(suite.problems)
        for i in range(2)
    ]
    return ReplayEngine(str(write_jsonl(tmp_path / "recorded.jsonl", rows)), batch_size=4)


ENGINES = {
    "scripted": lambda tmp_path, suite: ScriptedEngine(batch_size=4),
    "replay": recorded,
    "hf": lambda tmp_path, suite: hf(tmp_path),
}


@pytest.mark.train
@pytest.mark.parametrize("name", ENGINES)
def test_an_interrupted_run_ends_with_the_same_files(tmp_path, name):
    suite = replace(puzzles.load(), problems=puzzles.load().problems[:10])
    evaluate(tmp_path / "whole", [suite], ENGINES[name](tmp_path, suite), OPTIONS)
    wanted = result(tmp_path / "whole")
    for at in (1, 2, 6):
        out = tmp_path / f"stopped-{at}"
        with pytest.raises(KeyboardInterrupt):
            evaluate(out, [suite], Interrupted(ENGINES[name](tmp_path, suite), at), OPTIONS)
        engine = Interrupted(ENGINES[name](tmp_path, suite), 99)
        evaluate(out, [suite], engine, OPTIONS)
        assert len(engine.calls) == 6 - (at - 1)
        assert result(out) == wanted


def test_a_batch_that_was_interrupted_is_made_whole_and_only_what_was_missing_is_written(tmp_path, suite):
    evaluate(tmp_path / "whole", [suite], toy(), OPTIONS)
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        evaluate(out, [suite], Interrupted(toy(), 3), OPTIONS)
    path = out / "samples.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]) + lines[6][:20])  # the second batch died in the middle of its third line
    kept = (out / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (out / "verdicts.jsonl").write_bytes(b"".join(kept[:4]))
    engine = toy()
    evaluate(out, [suite], engine, OPTIONS)
    assert places(engine)[0] == [("q4", 0), ("q5", 0), ("q6", 0), ("q7", 0)], "the whole batch"
    assert len(engine.calls) == 5
    assert result(out) == result(tmp_path / "whole")


def test_a_finished_run_is_scored_again_without_a_call(tmp_path, suite):
    evaluate(tmp_path / "run", [suite], toy(), OPTIONS)
    before, engine = result(tmp_path / "run"), toy()
    evaluate(tmp_path / "run", [suite], engine, OPTIONS)
    assert engine.calls == [] and result(tmp_path / "run") == before


def test_more_samples_extend_by_new_batches_alone(tmp_path, suite):
    evaluate(tmp_path / "run", [suite], toy(), OPTIONS)
    engine = toy()
    (score,) = evaluate(tmp_path / "run", [suite], engine, replace(OPTIONS, samples=3))
    assert places(engine) == [[(p.id, 2) for p, _ in batch] for batch in plan_batches(suite, 1, 4)]
    assert (score.k, score.judged, score.complete) == (3, 30, True)
    evaluate(tmp_path / "at-once", [suite], toy(), replace(OPTIONS, samples=3))
    assert result(tmp_path / "run") == result(tmp_path / "at-once")


def test_a_higher_limit_extends_and_repeats_at_most_the_batch_that_was_partial(tmp_path, suite):
    evaluate(tmp_path / "run", [suite], toy(), replace(OPTIONS, limit=6, samples=1))
    engine = toy()
    evaluate(tmp_path / "run", [suite], engine, replace(OPTIONS, limit=10, samples=1))
    assert places(engine) == [[(f"q{i}", 0) for i in (4, 5, 6, 7)], [("q8", 0), ("q9", 0)]]
    keys = [(row["problem_id"], row["sample_index"]) for row in jsonl(tmp_path / "run" / "samples.jsonl")]
    assert keys == [(f"q{i}", 0) for i in range(10)]
    engine = toy()
    evaluate(tmp_path / "run", [suite], engine, replace(OPTIONS, limit=None, samples=1))
    assert engine.calls == [], "no limit is the highest one"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"samples": 1}, "samples = 2, this command has 1"),
        ({"limit": 5}, "limit = 8, this command has 5"),
        ({"seed": 1}, "seed = 0, this command has 1"),
        ({"sampling": Sampling(0.6, 1.0, 0, 64)}, "sampling.temperature = 1.0, this command has 0.6"),
        ({"sampling": Sampling(1.0, 0.95, 0, 64)}, "sampling.top_p = 1.0, this command has 0.95"),
        ({"sampling": Sampling(1.0, 1.0, 5, 64)}, "sampling.top_k = 0, this command has 5"),
        ({"sampling": Sampling(1.0, 1.0, 0, 65)}, "sampling.max_tokens = 64, this command has 65"),
        ({"math_judge": "math-verify"}, "judge.mode = 'strict', this command has 'math-verify'"),
    ],
)
def test_another_configuration_is_refused_by_the_fields_name(tmp_path, suite, change, name):
    first = replace(OPTIONS, limit=8)
    evaluate(tmp_path / "run", [suite], toy(), first)
    before = snapshot(tmp_path / "run")
    with pytest.raises(RunConflict) as caught:
        evaluate(tmp_path / "run", [suite], toy(), replace(first, **change))
    assert name in str(caught.value) and "\n" not in str(caught.value)
    assert snapshot(tmp_path / "run") == before


def test_another_engine_batch_size_or_content_is_refused(tmp_path, suite):
    evaluate(tmp_path / "run", [suite], toy(), OPTIONS)
    with pytest.raises(RunConflict, match=r"engine\.name = 'toy', this command has 'other'"):
        evaluate(tmp_path / "run", [suite], ToyEngine(reply, 4, "other"), OPTIONS)
    with pytest.raises(RunConflict, match=r"inputs\.suite:sums"):
        evaluate(tmp_path / "run", [replace(suite, content_hash="x")], toy(), OPTIONS)


def test_the_number_of_workers_decides_nothing(tmp_path, suite):
    first = evaluate(tmp_path / "run", [suite], toy(), OPTIONS)
    assert evaluate(tmp_path / "run", [suite], toy(), replace(OPTIONS, judge_workers=2)) == first


class Flaky:
    """The judge fails for some samples, by our own fault."""

    def __init__(self, monkeypatch, broken: set[tuple[str, int]]) -> None:
        real, self.broken = MathJudge.judge, broken

        def judge(judge, items):
            return [
                replace(v, status=Status.judge_error, score=None) if (v.problem_id, v.sample_index) in broken else v
                for v in real(judge, items)
            ]

        monkeypatch.setattr(MathJudge, "judge", judge)


def test_our_own_fault_is_no_wrong_answer_and_is_tried_again(tmp_path, suite, monkeypatch):
    flaky = Flaky(monkeypatch, {("q0", 0), ("q2", 1)})
    out = tmp_path / "run"
    with pytest.raises(IncompleteError, match=r"sums has 2 judge errors, 0 engine errors and 0 missing") as caught:
        evaluate(out, [suite], toy(), OPTIONS)
    assert caught.value.exit_code == 3
    score = json.loads((out / "scores.json").read_text())["sums"]
    assert (score["judge_errors"], score["judged"], score["complete"]) == (2, 18, False)
    assert {row["score"] for row in jsonl(out / "verdicts.jsonl") if row["status"] == "judge_error"} == {None}
    (partial,) = evaluate(out, [suite], toy(), replace(OPTIONS, allow_partial=True))
    assert not partial.complete
    flaky.broken.clear()
    engine = toy()
    (healed,) = evaluate(out, [suite], engine, OPTIONS)
    assert (engine.calls, healed.avg, healed.complete) == ([], 50.0, True)
    keys = [(row["problem_id"], row["sample_index"]) for row in jsonl(out / "verdicts.jsonl")]
    assert len(keys) == len(set(keys)) == 20
    evaluate(tmp_path / "whole", [suite], toy(), OPTIONS)
    assert (out / "scores.json").read_bytes() == (tmp_path / "whole" / "scores.json").read_bytes()


def test_several_suites_share_a_run(tmp_path, suite):
    chains = replace(puzzles.load(), problems=puzzles.load().problems[:5])
    other = replace(suite, name="again", problems=tuple(replace(p, suite="again") for p in suite.problems))
    scores = evaluate(tmp_path / "run", [suite, other], toy(), OPTIONS)
    assert [(s.suite, s.avg) for s in scores] == [("sums", 50.0), ("again", 50.0)]
    seeds = {(row["suite"], row["problem_id"], row["sample_index"]): row["seed"]
             for row in jsonl(tmp_path / "run" / "samples.jsonl")}  # fmt: skip
    assert len(set(seeds.values())) == len(seeds) == 40, "a seed of its own for the same id in another suite"
    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "cut", [suite, other], Interrupted(toy(), 8), OPTIONS)
    evaluate(tmp_path / "cut", [suite, other], toy(), OPTIONS)
    assert result(tmp_path / "cut") == result(tmp_path / "run")
    with pytest.raises(RunConflict, match="suites"):
        evaluate(tmp_path / "run", [suite, chains], toy(), OPTIONS)


def test_two_suites_of_one_name_are_refused(tmp_path, suite):
    with pytest.raises(UsageError, match="two suites are named 'sums'"):
        evaluate(tmp_path / "run", [suite, replace(suite, content_hash="x")], toy(), OPTIONS)
    assert not (tmp_path / "run").exists()


def test_a_reference_that_is_none_is_refused_before_anything_is_sampled(tmp_path, suite):
    bad = {**suite.answers, "q3": replace(suite.answers["q3"], answer="no number")}
    engine = toy()
    with pytest.raises(DataError, match=r"^q3: the reference answer 'no number'"):
        evaluate(tmp_path / "run", [replace(suite, answers=bad)], engine, OPTIONS)
    assert engine.calls == [] and not (tmp_path / "run").exists()


def test_scoring_again_gives_the_same_bytes(tmp_path, suite):
    evaluate(tmp_path / "run", [suite], toy(), OPTIONS)
    scores = (tmp_path / "run" / "scores.json").read_bytes()
    report = (tmp_path / "run" / "report.html").read_bytes()
    (tmp_path / "run" / "scores.json").unlink()
    rescore(tmp_path / "run")
    assert (tmp_path / "run" / "scores.json").read_bytes() == scores
    assert (tmp_path / "run" / "report.html").read_bytes() == report


def test_scoring_an_interrupted_run_does_not_claim_completeness(tmp_path, suite):
    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "run", [suite], Interrupted(toy(), 2), OPTIONS)
    with pytest.raises(IncompleteError, match="0 judge errors, 0 engine errors and 16 missing samples"):
        rescore(tmp_path / "run")
    score = json.loads((tmp_path / "run" / "scores.json").read_text())["sums"]
    assert (score["complete"], score["missing"], score["problems"]) == (False, 16, 10)
    assert rescore(tmp_path / "run", allow_partial=True)[0].missing == 16


def test_an_extension_that_was_interrupted_leaves_no_score_of_before(tmp_path, suite):
    """scores.json of two samples must not stand beside a manifest that says four."""
    evaluate(tmp_path / "run", [suite], toy(), OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "run", [suite], Interrupted(toy(), 2), replace(OPTIONS, samples=4))
    assert not (tmp_path / "run" / "scores.json").exists()
    evaluate(tmp_path / "run", [suite], toy(), replace(OPTIONS, samples=4))
    evaluate(tmp_path / "whole", [suite], toy(), replace(OPTIONS, samples=4))
    assert result(tmp_path / "run") == result(tmp_path / "whole")


def test_only_an_evaluation_can_be_scored_again(tmp_path):
    with pytest.raises(DataError, match="is no run folder"):
        rescore(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"config": {"command": "train"}}))
    with pytest.raises(DataError, match="is a run of 'train', an evaluation was expected"):
        rescore(tmp_path)


def test_a_corrupt_record_is_named_and_nothing_is_lost(tmp_path, suite):
    evaluate(tmp_path / "run", [suite], toy(), OPTIONS)
    path = tmp_path / "run" / "samples.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[16] = lines[16][:30] + "\n"
    path.write_text("".join(lines))
    before = path.read_bytes()
    for again in (lambda: evaluate(tmp_path / "run", [suite], toy(), OPTIONS), lambda: rescore(tmp_path / "run")):
        with pytest.raises(DataError, match=r"samples\.jsonl:17: not valid JSON"):
            again()
    assert path.read_bytes() == before


def test_verdicts_are_complete_records(tmp_path, suite):
    evaluate(tmp_path / "run", [suite], toy(), OPTIONS)
    fields = {"suite", "problem_id", "sample_index", "status", "score", "extracted", "passed", "total", "detail",
              "cpu_s", "wall_s", "peak_mb"}  # fmt: skip
    assert all(
        set(row) == fields == set(Verdict.__dataclass_fields__) for row in jsonl(tmp_path / "run/verdicts.jsonl")
    )


def test_what_the_engine_failed_to_make_is_not_judged_and_is_made_again(tmp_path, suite):
    class Failing(ToyEngine):
        broken = True

        def generate(self, requests, sampling):
            made = super().generate(requests, sampling)
            return [replace(made[0], finish_reason=FinishReason.error), *made[1:]] if self.broken else made

    engine = Failing(lambda request: "\\boxed{1}")
    with pytest.raises(IncompleteError, match=r"0 judge errors, \d+ engine errors and 0 missing"):
        evaluate(tmp_path / "run", [suite], engine, EvalOptions())
    failed = [s for s in read_records(tmp_path / "run" / "samples.jsonl", Sample) if s.finish_reason == "error"]
    judged = {v.key for v in read_records(tmp_path / "run" / "verdicts.jsonl", Verdict)}
    assert failed and not {s.key for s in failed} & judged
    engine.broken = False
    [score] = evaluate(tmp_path / "run", [suite], engine, EvalOptions())
    assert score.complete and score.engine_errors == 0
    keys = [s.key for s in read_records(tmp_path / "run" / "samples.jsonl", Sample)]
    assert len(keys) == len(set(keys)) == len(suite.problems)


def test_verdicts_whose_samples_were_lost_are_made_again_and_never_pass_for_complete(tmp_path, suite):
    engine = ToyEngine(lambda request: "\\boxed{1}")
    evaluate(tmp_path / "run", [suite], engine, EvalOptions(samples=2))
    wanted = result(tmp_path / "run")
    log = tmp_path / "run" / "samples.jsonl"
    log.write_text("".join(line + "\n" for line in log.read_text().splitlines()[:3]))
    with pytest.raises(IncompleteError):
        rescore(tmp_path / "run")
    evaluate(tmp_path / "run", [suite], engine, EvalOptions(samples=2))
    assert result(tmp_path / "run") == wanted


def test_a_command_that_made_nothing_leaves_its_folder_to_the_corrected_one(tmp_path, suite):
    def refuses(request):
        raise UsageError("can't")

    with pytest.raises(UsageError, match="can't"):
        evaluate(tmp_path / "run", [suite], ToyEngine(refuses, 4), OPTIONS)
    asked = replace(suite, problems=suite.problems[:3])
    engine = ToyEngine(reply, 5, name="another")
    (score,) = evaluate(tmp_path / "run", [asked], engine, OPTIONS)
    assert score.complete
    assert [row["id"] for row in jsonl(tmp_path / "run" / "problems.jsonl")] == ["q0", "q1", "q2"]


def test_of_a_part_of_a_suite_only_its_own_errata_are_told(tmp_path, suite):
    faults = tuple(Erratum(key, "wrong_tests", "why", "left out") for key in ("q1", "q9", "gone"))
    known = replace(suite, errata=faults)
    evaluate(tmp_path / "part", [known], toy(), replace(OPTIONS, limit=3))
    evaluate(tmp_path / "whole", [known], toy(), OPTIONS)
    told = [
        json.loads((tmp_path / name / "manifest.json").read_text())["about"]["errata"] for name in ("part", "whole")
    ]
    assert [[row["id"] for row in found["sums"]] for found in told] == [["q1"], ["q1", "q9", "gone"]]
