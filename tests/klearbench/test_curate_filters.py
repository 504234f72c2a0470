from __future__ import annotations

import pytest

from klearbench.curation.filters import FILTERS, Trace, build_filter, keep_wrong
from klearbench.types import FinishReason, Kind, Problem, Sample, Status


def trace(
    completion: str = "a b c",
    *,
    tokens: int = 3,
    finish: FinishReason = FinishReason.stop,
    status: Status | None = Status.correct,
    rate: float | None = 1.0,
    prompt: str = "12345",
) -> Trace:
    problem = Problem("p", "s", Kind.math, ({"role": "user", "content": prompt},))
    sample = Sample("s", "p", 0, 1, completion, 5, tokens, finish)
    return Trace(problem, sample, status, None, rate)


@pytest.mark.parametrize(
    ("name", "params", "given", "expected"),
    [
        ("finished", {}, trace(), (True, "")),
        ("finished", {}, trace(finish=FinishReason.length), (False, "not_finished")),
        ("completion_tokens", {"max": 3}, trace(tokens=3), (True, "")),
        ("completion_tokens", {"max": 3}, trace(tokens=4), (False, "completion_tokens_high")),
        ("completion_tokens", {"min": 3}, trace(tokens=2), (False, "completion_tokens_low")),
        ("completion_tokens", {}, trace(tokens=0), (False, "completion_tokens_low")),
        ("prompt_chars", {"max": 5}, trace(prompt="12345"), (True, "")),
        ("prompt_chars", {"max": 4}, trace(prompt="12345"), (False, "prompt_chars_high")),
        ("prompt_chars", {"min": 6}, trace(prompt="12345"), (False, "prompt_chars_low")),
        ("pass_rate", {"min": 0.25}, trace(rate=0.25), (True, "")),
        ("pass_rate", {"min": 0.3}, trace(rate=0.25), (False, "pass_rate_low")),
        ("pass_rate", {"max": 0.9}, trace(rate=1.0), (False, "pass_rate_high")),
        ("pass_rate", {}, trace(rate=None), (False, "pass_rate_unknown")),
        ("status", {"allowed": ["correct", "wrong_answer"]}, trace(status=Status.wrong_answer), (True, "")),
        ("status", {"allowed": ["correct"]}, trace(status=Status.no_answer), (False, "status_no_answer")),
        ("without", {"phrases": ["As an AI"]}, trace("Hm, as an ai model"), (False, "phrase")),
        ("without", {"phrases": ["As an AI"]}, trace("as a human"), (True, "")),
        # 6 words, 5 pairs: (a b) three times and (b a) twice, so 2 + 1 = 3 of 5 are repeats
        ("repetition", {"ngram": 2, "max_share": 0.6}, trace("a b a b a b"), (True, "")),
        ("repetition", {"ngram": 2, "max_share": 0.59}, trace("a b a b a b"), (False, "repetition")),
        ("repetition", {"ngram": 20}, trace("short"), (True, "")),
    ],
)
def test_each_filter_says_keep_or_the_reason(name, params, given, expected):
    assert build_filter(name, params)(given) == expected


def test_every_filter_has_a_case_above():
    cases = {mark.args[1][i][0] for mark in test_each_filter_says_keep_or_the_reason.pytestmark for i in range(20)}
    assert cases == set(FILTERS)


@pytest.mark.parametrize(
    ("policy", "status", "rate", "expected"),
    [
        ("keep", Status.wrong_answer, 1.0, (True, "")),
        ("drop", Status.correct, 0.1, (True, "")),
        ("drop", Status.wrong_answer, 0.1, (False, "wrong")),
        ("drop", Status.truncated, 0.1, (False, "wrong")),
        ("drop_on_easy", Status.wrong_answer, 0.75, (False, "wrong_on_easy")),
        ("drop_on_easy", Status.wrong_answer, 0.5, (True, "")),
        ("drop_on_easy", Status.correct, 0.75, (True, "")),
    ],
)
def test_wrong_traces_follow_the_policy_by_difficulty(policy, status, rate, expected):
    assert keep_wrong(policy, 0.5)(trace(status=status, rate=rate)) == expected


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("finishd", {}, "unknown filter 'finishd'; did you mean 'finished'?"),
        ("completion_tokens", {"maxx": 3}, "filter 'completion_tokens', parameter 'maxx'"),
        ("completion_tokens", {"max": "many"}, "parameter 'max': Input should be a valid integer"),
        ("status", {"allowed": ["right"]}, "parameter 'allowed.0'"),
        ("without", {}, "parameter 'phrases'"),
    ],
)
def test_a_wrong_filter_is_refused_in_one_line(name, params, message):
    with pytest.raises(ValueError) as error:
        build_filter(name, params)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
