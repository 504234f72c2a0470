"""Rewards from verdicts: soft and hard, our faults dropped, equal rollouts judged once."""

from __future__ import annotations

import pytest

from klearbench.judging.rewards import REWARDS, judge_rollouts
from klearbench.types import CodeTests, ExpectedOutputs, FinishReason, Sample, Status, Verdict
from klearbench.types import TestInputs as Given
from klearrl.config import RlStage

TESTS = CodeTests(Given("p", "stdio", ("1", "2", "3", "4")), ExpectedOutputs("p", ("1", "2", "3", "4")))


class Judge:
    """A completion is the number of tests it passes, "broken" our own fault."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def judge(self, items):
        self.seen += [sample.completion for sample, _ in items]
        return [self._one(sample) for sample, _ in items]

    def _one(self, sample):
        if sample.completion == "broken":
            return Verdict(*sample.key, Status.judge_error, None)
        passed = int(sample.completion)
        status = Status.correct if passed == 4 else Status.wrong_answer
        return Verdict(*sample.key, status, passed / 4, passed=passed, total=4)


def samples(*completions: str, finish: FinishReason = FinishReason.stop, problem: str = "p") -> list[Sample]:
    return [Sample("rl", problem, i, 0, text, 1, 1, finish) for i, text in enumerate(completions)]


def rewards(items, kind):
    return [value for value, _ in judge_rollouts(items, {"p": TESTS, "q": TESTS}, Judge(), kind)]


def test_soft_is_the_share_of_tests_passed_and_hard_all_or_nothing():
    texts = ("0", "1", "3", "4", "broken")
    assert rewards(samples(*texts), "soft") == [0.0, 0.25, 0.75, 1.0, None]
    assert rewards(samples(*texts), "hard") == [0.0, 0.0, 0.0, 1.0, None]


@pytest.mark.parametrize("kind", REWARDS)
def test_a_cut_off_rollout_earns_nothing(kind):
    assert rewards(samples("3", "4", "broken", finish=FinishReason.length), kind) == [0.0, 0.0, None]


def test_equal_rollouts_of_a_prompt_are_judged_once_and_keep_their_places():
    judge = Judge()
    items = samples("1", "4", "1", "1", "4") + samples("1", problem="q") + samples("1", finish=FinishReason.length)
    found = judge_rollouts(items, {"p": TESTS, "q": TESTS}, judge)
    assert judge.seen == ["1", "4", "1", "1"]
    assert [value for value, _ in found] == [0.25, 1.0, 0.25, 0.25, 1.0, 0.25, 0.0]
    assert [v.key for _, v in found] == [s.key for s in items]


def test_the_recipe_says_soft_unless_told():
    stage = {"name": "rl", "steps": 1, "prompts": 8, "optimizer": {"lr": 1e-4}}
    assert RlStage.model_validate(stage).reward == "soft"
    assert RlStage.model_validate(stage | {"reward": "hard"}).reward == "hard"
    with pytest.raises(ValueError, match="reward"):
        RlStage.model_validate(stage | {"reward": "half"})
