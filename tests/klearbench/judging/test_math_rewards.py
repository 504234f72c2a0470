"""The reward API: mixed batches, our faults as None, and the signature that TRL's trainers call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from klearbench.errors import ConfigError, DataError
from klearbench.judging.judge import MathJudge
from klearbench.judging.pool import Pool
from klearbench.judging.rewards import judge_rollouts, reward_function
from klearbench.types import Answer, CodeTests, FinishReason, Reference, Sample, Status, Verdict

INTEGRAL = "\\int_0^1 2x dx"
"""An answer that needs a worker."""


@pytest.fixture
def judge() -> Iterator[MathJudge]:
    with MathJudge() as made:
        yield made


class BothKinds:
    """The math judge, and for programs one that counts the tests named in the completion."""

    def __init__(self, math: MathJudge) -> None:
        self.math = math

    def judge(self, items: list[tuple[Sample, Reference]]) -> list[Verdict]:
        return [self._one(sample, reference) for sample, reference in items]

    def _one(self, sample: Sample, reference: Reference) -> Verdict:
        if isinstance(reference, Answer):
            return self.math.judge([(sample, reference)])[0]
        assert isinstance(reference, CodeTests)
        share = int(sample.completion) / len(reference.inputs.inputs)
        return Verdict(*sample.key, Status.correct if share == 1 else Status.wrong_answer, share)


def rollout(text: str, problem: str = "p", index: int = 0, finish: FinishReason = FinishReason.stop) -> Sample:
    return Sample("rl", problem, index, 0, text, 1, 1, finish)


def test_verdicts_and_rewards_come_in_order(judge: MathJudge) -> None:
    texts = ("\\boxed{4}", "\\boxed{5}", "\\boxed{4}", "no answer", f"\\boxed{{{INTEGRAL}+3}}")
    found = judge_rollouts([rollout(t, index=i) for i, t in enumerate(texts)], {"p": Answer("p", "4")}, judge)
    assert [value for value, _ in found] == [1.0, 0.0, 1.0, 0.0, 1.0]
    assert [v.sample_index for _, v in found] == [0, 1, 2, 3, 4]
    assert [v.status for _, v in found][3] is Status.no_answer


def test_what_ran_into_the_limit_earns_nothing_or_is_left_out(judge: MathJudge) -> None:
    samples = [rollout("\\boxed{4}", finish=FinishReason.length), rollout("\\boxed{4}", index=1)]
    references = {"p": Answer("p", "4")}
    assert [r for r, _ in judge_rollouts(samples, references, judge)] == [0.0, 1.0]
    assert [r for r, _ in judge_rollouts(samples, references, judge, drop_truncated=True)] == [None, 1.0]


def test_a_worker_that_dies_gives_none_and_takes_no_other_row_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEAR_FAULT", "judge.compare:=77:kill")
    texts = [f"\\boxed{{{INTEGRAL}}}", f"\\boxed{{{INTEGRAL}+77}}", "\\boxed{3}", f"\\boxed{{{INTEGRAL}+0}}"]
    with MathJudge() as judge:
        found = judge_rollouts([rollout(t, index=i) for i, t in enumerate(texts)], {"p": Answer("p", "1")}, judge)
    assert [value for value, _ in found] == [1.0, None, 0.0, 1.0]
    assert found[1][1].status is Status.judge_error and "died" in found[1][1].detail


def test_no_worker_can_be_started(monkeypatch: pytest.MonkeyPatch, judge: MathJudge) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    found = judge_rollouts([rollout(f"\\boxed{{{INTEGRAL}}}"), rollout("\\boxed{1}", index=1)],
                           {"p": Answer("p", "1")}, judge)  # fmt: skip
    assert [value for value, _ in found] == [None, 1.0]


@pytest.mark.parametrize("answer", [Answer("p", ""), Answer("p", "1000", "integer_0_999"), Answer("p", "1", "odd")])
def test_a_reference_that_cannot_be_read_gives_none(judge: MathJudge, answer: Answer) -> None:
    [(value, verdict)] = judge_rollouts([rollout("\\boxed{1}")], {"p": answer}, judge)
    assert value is None and verdict.status is Status.judge_error and verdict.score is None


def test_the_adapter_has_trls_signature(judge: MathJudge) -> None:
    turns = [{"role": "assistant", "content": "so \\boxed{\\frac{1}{2}}"}]
    rewards = reward_function(judge)(
        prompts=["a", "b", "c"],
        completions=["\\boxed{7}", turns, "\\boxed{9}"],
        completion_ids=[[1], [1, 2], [3]],
        answer=["7", "0.5", 8],
        trainer_state=None,
    )
    assert rewards == [1.0, 1.0, 0.0]


def test_the_adapter_knows_the_limit_rules_and_programs(judge: MathJudge) -> None:
    tests = {"tests": [{"input": "1", "output": "1"}, {"input": "2", "output": "2"}]}
    columns: Mapping[str, Any] = {
        "completion_ids": [[1], [1, 2, 3], [1], [1]],
        "gold": ["1,2", "5", tests, ""],
        "rule": ["set", "integer", "expression", "expression"],
    }
    completions = ["\\boxed{2,1}", "\\boxed{5}", "1", "\\boxed{1}"]
    both = BothKinds(judge)
    call = reward_function(both, reference="gold", max_tokens=3)
    assert call(prompts=completions, completions=completions, **columns) == [1.0, 0.0, 0.5, None]
    call = reward_function(both, reference="gold", max_tokens=3, kind="hard", drop_truncated=True)
    assert call(prompts=completions, completions=completions, **columns) == [1.0, None, 0.0, None]


def test_what_cannot_be_used_is_named(judge: MathJudge) -> None:
    with pytest.raises(ConfigError, match="rule"):
        reward_function(judge, rule="expresion")
    with pytest.raises(ConfigError, match="kind"):
        reward_function(judge, kind="half")
    call = reward_function(judge)
    with pytest.raises(DataError, match="no column 'answer'"):
        call(["a"], ["b"], gold=["c"])
    with pytest.raises(DataError, match="row 0"):
        call(["a"], ["b"], answer=[{"tests": []}])
    with pytest.raises(DataError, match=r"row 0.*None"):
        call(["a"], ["b"], answer=[None])


def test_after_close_nothing_is_judged_and_nothing_hangs() -> None:
    pool = Pool(1)
    pool.close()
    reply = pool.run({"op": "strict", "gold": "1", "answer": "2"})
    assert (reply.value, reply.error) == (None, "died")
