"""Samples of both kinds in one list: each goes to its judge, and the code judge starts only when it is needed."""

from __future__ import annotations

from klearbench.judging.code import CodeJudge
from klearbench.judging.judge import MathJudge
from klearbench.judging.judges import Judges
from klearbench.types import Answer, Status
from tests.klearbench.judging.fake_sandbox import FakeSandbox, broken, double, doubling, plus_one, sample


def boxed(answer: str, index: int) -> tuple[object, Answer]:
    return sample(f"so \\boxed{{{answer}}}", index, "m", raw=True), Answer("m", "7")


def test_each_sample_goes_to_its_judge_and_the_order_is_kept() -> None:
    box = FakeSandbox({"double": double, "plus_one": plus_one, "broken": broken})
    items = [
        boxed("7", 0),
        (sample("plus_one", 1), doubling()),
        (sample("broken", 2), doubling()),
        boxed("8", 3),
        (sample("double", 4), doubling()),
    ]
    with Judges(MathJudge(), CodeJudge(sandbox=box)) as judges:
        verdicts = judges.judge(items)  # type: ignore[arg-type]
    assert [(v.sample_index, v.status) for v in verdicts] == [
        (0, Status.correct),
        (1, Status.wrong_answer),
        (2, Status.judge_error),
        (3, Status.wrong_answer),
        (4, Status.correct),
    ]
    assert verdicts[2].score is None
    assert box.open_slots == set()


def test_the_code_judge_is_made_with_the_first_code_sample_and_once() -> None:
    made: list[CodeJudge] = []

    def make() -> CodeJudge:
        made.append(CodeJudge(sandbox=FakeSandbox({"double": double})))
        return made[-1]

    with Judges(MathJudge(), make) as judges:
        assert judges.judge([]) == []
        assert [v.status for v in judges.judge([boxed("7", 0)])] == [Status.correct]  # type: ignore[list-item]
        assert made == []
        for index in range(2):
            assert [v.status for v in judges.judge([(sample("double", index), doubling())])] == [Status.correct]
        assert len(made) == 1 and judges.code is made[0]
