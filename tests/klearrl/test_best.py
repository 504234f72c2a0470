"""Which checkpoint is the best: evaluations made by hand, with scores whose noise is known."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from klearbench.scoring.groups import ProblemScore
from klearbench.scoring.metrics import SuiteScore
from klearrl.best import best_step
from klearrl.config import load_train_recipe
from klearrl.context import Context
from klearrl.gating import conclude

pytestmark = pytest.mark.train

K = 16


def score(suite: str, rights: Sequence[int]) -> SuiteScore:
    """A suite's score: problems of K samples, so many of each right."""
    rows = [
        ProblemScore(f"p{i}", judged=K, right=right, truncated=0, sampled=K, tokens=K, tokens_squared=K)
        for i, right in enumerate(rights)
    ]
    judged = K * len(rows)
    return SuiteScore(
        suite=suite, k=K, problems=len(rows), avg=100 * sum(rights) / judged, interval=None, interval_problems=None,
        pass_at_k=None, maj_at_k=None, counts={}, judged=judged, truncated_share=0.0, judge_errors=0, engine_errors=0,
        missing=0, complete=True, at_limit=0, limit_but_right=0, tokens=None, per_problem=tuple(rows),
    )  # fmt: skip


def half(more: int) -> list[int]:
    """Ten problems with 8 of 16 right and so many more: the change's standard error from 0 more is about 5.6 points."""
    return [8 + more] * 10


class Evaluated:
    """A stage of a run made by hand: evaluations, and checkpoints that are dropped as in training."""

    def __init__(self, path: Path, best: str = "shown") -> None:
        path.mkdir(parents=True, exist_ok=True)
        stage, plan = {**tiny.SFT_STAGE, "keep_last": 1}, {"suites": ["puzzles"], "best": best}
        recipe = tiny.recipe(path, [stage], evaluation=plan)
        self.recipe = load_train_recipe(tiny.write_recipe(path / "r.yaml", recipe))
        self.path, self.said = path, []

    def add(self, step: int, **suites: Sequence[int]) -> None:
        """An evaluation, with its checkpoint, as a loop makes them."""
        self.evaluate(step, **suites)
        checkpoint = self.path / "stages" / "sft" / "checkpoints" / f"step-{step}"
        checkpoint.mkdir(parents=True)
        (checkpoint / "state.json").write_text("{}")
        self.conclude(step, *suites)

    def evaluate(self, step: int, **suites: Sequence[int]) -> None:
        folder = self.path / "evals" / f"sft-{step}"
        folder.mkdir(parents=True)
        rows = {name: asdict(score(name, rights)) for name, rights in suites.items()}
        (folder / "scores.json").write_text(json.dumps(rows))
        (folder / "report.html").write_text("")

    def conclude(self, step: int, *suites: str) -> None:
        named = tuple(SimpleNamespace(name=name) for name in suites)
        context = Context(self.recipe, self.path, None, None, named, self.said.append)  # type: ignore[arg-type]
        conclude(context, self.recipe.stages[0], step)

    @property
    def best(self) -> int:
        return int(os.readlink(self.path / "stages" / "sft" / "checkpoints" / "best").removeprefix("step-"))

    @property
    def file(self) -> dict:
        return json.loads((self.path / "stages" / "sft" / "checkpoints" / "best.json").read_text())

    def standings(self) -> list[str]:
        return [row["beside_best"] for row in self.file["checkpoints"]]


def test_noise_moves_no_title_and_a_tie_keeps_the_earlier(tmp_path):
    run = Evaluated(tmp_path)
    for step, rights in ((2, half(0)), (4, half(0)), (6, [8, 9] * 5)):  # 6: 3 points more, about half an error
        run.add(step, puzzles=rights)
        assert run.best == 2
    assert [row["mean"] for row in run.file["checkpoints"]] == [50.0, 50.0, 53.125]
    assert run.standings() == ["best", "indistinguishable", "indistinguishable"]


def test_an_improvement_that_is_shown_moves_the_title(tmp_path):
    run = Evaluated(tmp_path)
    for step, more, best in ((2, 0, 2), (4, 4, 4), (6, -2, 4)):
        run.add(step, puzzles=half(more))
        assert run.best == best
    assert run.standings() == ["worse", "best", "worse"]


def test_better_in_one_suite_and_worse_in_another_moves_nothing(tmp_path):
    run = Evaluated(tmp_path)
    run.add(2, a=half(0), b=half(0))
    run.add(4, a=half(6), b=half(-4))
    assert run.best == 2 and run.standings() == ["best", "mixed"]
    run.add(6, a=half(6), b=half(0))
    assert run.best == 6 and run.standings() == ["worse", "worse", "best"]


def test_small_steps_add_up(tmp_path):
    """Each is indistinguishable from the one before it; the third is shown to be better than the holder."""
    run = Evaluated(tmp_path)
    for step, more, best in ((2, 0, 2), (4, 1, 2), (6, 3, 6)):
        run.add(step, puzzles=half(more))
        assert run.best == best


def test_the_highest_mean_is_best_where_the_recipe_says_so(tmp_path):
    run = Evaluated(tmp_path, best="highest")
    for step, rights, best in ((2, half(0), 2), (4, [8, 9] * 5, 4), (6, [9, 8] * 5, 4)):
        run.add(step, puzzles=rights)
        assert run.best == best, "the earlier one on a tie"
    assert run.file["rule"] == "highest" and run.standings() == ["indistinguishable", "best", "indistinguishable"]


def test_the_confidence_decides_the_title():
    """12.5 points more, 2.2 standard errors, is shown at 95 % and not at 99.9 %."""
    scores = {2: {"a": score("a", half(0))}, 4: {"a": score("a", half(2))}}
    assert best_step(scores, [2, 4], "shown", 0.95) == 4
    assert best_step(scores, [2, 4], "shown", 0.999) == 2


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=2, max_size=7), st.integers(1, 3))
def test_the_best_is_the_same_however_often_the_run_was_interrupted(changes, keep_last):
    """Step by step, with checkpoints dropped on the way, or all evaluations at once."""
    scores = {step: {"a": score("a", half(more))} for step, more in enumerate(changes, start=1)}
    best, kept = None, []
    for step in scores:
        until = {other: scores[other] for other in scores if other <= step}
        kept = [other for other in (*kept, step) if other > step - keep_last or other == best]
        best = best_step(until, kept, "shown", 0.95)
        assert best in kept
    assert best == best_step(scores, list(scores), "shown", 0.95)


def test_a_title_that_was_dropped_falls_to_what_is_left(tmp_path):
    """After a change of rule: by `highest` 4 was kept and 2 dropped; `shown` would have 2."""
    run = Evaluated(tmp_path, best="highest")
    run.add(2, a=half(0))
    run.add(4, a=[8, 9] * 5)
    assert run.best == 4
    other = Evaluated(tmp_path, best="shown")
    other.conclude(4, "a")
    assert other.best == 4 and other.file["rule"] == "shown"


def test_a_kill_between_the_scores_and_the_title_is_made_good(tmp_path):
    straight, killed = Evaluated(tmp_path / "straight"), Evaluated(tmp_path / "killed")
    for run in (straight, killed):
        run.add(2, a=half(0))
    straight.add(4, a=half(5))
    killed.evaluate(4, a=half(5))
    checkpoint = killed.path / "stages" / "sft" / "checkpoints" / "step-4"
    checkpoint.mkdir()
    (checkpoint / "state.json").write_text("{}")
    assert killed.best == 2
    killed.conclude(4, "a")
    assert killed.best == straight.best == 4 and killed.file == straight.file
