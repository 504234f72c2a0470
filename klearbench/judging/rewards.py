"""Rewards for RL: a batch of completions and references in, math and code mixed; rewards and verdicts out.

A judge's own fault gives None: "leave this rollout out", never 0. Trainers other than klearrl call `reward_function`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from klearbench.errors import ConfigError, DataError, unknown_name
from klearbench.judging.math import RULES
from klearbench.suites.coderows import CODE_KEYS, parse_code
from klearbench.suites.references import Judge
from klearbench.types import Answer, FinishReason, Reference, Sample, Verdict, reward


def hard_reward(verdict: Verdict, finish_reason: FinishReason) -> float | None:
    """Like `reward`, without partial credit: only the whole score counts."""
    value = reward(verdict, finish_reason)
    return None if value is None else float(value == 1.0)


REWARDS = {"soft": reward, "hard": hard_reward}


def judge_rollouts(
    samples: Sequence[Sample],
    references: Mapping[str, Reference],
    judge: Judge,
    kind: str = "soft",
    *,
    drop_truncated: bool = False,
) -> list[tuple[float | None, Verdict]]:
    """The reward (0..1, or None) and the verdict of each rollout, in order.

    Rollouts of one prompt that are equal to the letter are judged once: a sharpened policy writes few different ones.

    Args:
        samples: the rollouts.
        references: answer or tests by problem id.
        judge: of the kinds that occur.
        kind: "soft" (a program earns the share of tests it passes) or "hard" (1 for all of them, else 0).
        drop_truncated: None instead of 0 for a rollout that ran into the token limit.
    """
    keys = [(s.problem_id, s.completion, s.finish_reason) for s in samples]
    firsts = dict(zip(reversed(keys), reversed(samples), strict=True))
    order = list(dict.fromkeys(keys))
    found = judge.judge([(firsts[key], references[firsts[key].problem_id]) for key in order])
    by_key = dict(zip(order, found, strict=True))
    verdicts = [replace(by_key[key], sample_index=s.sample_index) for key, s in zip(keys, samples, strict=True)]
    left_out = [drop_truncated and s.finish_reason is FinishReason.length for s in samples]
    return [
        (None if out else REWARDS[kind](v, s.finish_reason), v)
        for s, v, out in zip(samples, verdicts, left_out, strict=True)
    ]


def reward_function(
    judge: Judge,
    *,
    reference: str = "answer",
    rule: str = "expression",
    kind: str = "soft",
    max_tokens: int | None = None,
    drop_truncated: bool = False,
) -> Callable[..., list[float | None]]:
    """A function of the signature that TRL's trainers call: `f(prompts, completions, **columns)`, one reward a row.

    Args:
        judge: stays open as long as the function is used.
        reference: the dataset's column with the reference: a final answer, or a mapping with the `tests` of a program
            (a row of `suites.coderows`).
        rule: how answers are compared; a column `rule` has precedence.
        kind: "soft" or "hard", as for `judge_rollouts`.
        max_tokens: the trainer's limit; a row of `completion_ids` of that length ran into it. None: none is known to.
        drop_truncated: None instead of 0 for what ran into the limit.

    Raises:
        ConfigError: an unknown rule or kind. The function raises DataError for a row that has no usable reference.
    """
    if rule not in RULES or kind not in REWARDS:
        raise ConfigError(unknown_name(*(("kind", kind, REWARDS) if rule in RULES else ("rule", rule, RULES))))

    def rewards(prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        del prompts  # a judge looks at answers alone
        if reference not in columns:
            raise DataError("dataset", f"no column {reference!r} (it has {', '.join(sorted(columns))})")
        count = len(completions)
        rules = columns.get("rule") or [rule] * count
        ids = columns.get("completion_ids") or [()] * count
        given = zip(columns[reference], rules, strict=True)
        references = {str(i): _reference(str(i), *row) for i, row in enumerate(given)}
        samples = [
            Sample("rl", str(i), 0, 0, _text(completion), 0, len(tokens), _finish(len(tokens), max_tokens))
            for i, (completion, tokens) in enumerate(zip(completions, ids, strict=True))
        ]
        judged = judge_rollouts(samples, references, judge, kind, drop_truncated=drop_truncated)
        return [value for value, _ in judged]

    return rewards


def _text(completion: Any) -> str:
    """A completion as plain text: TRL gives a string, or the list of the turns that were generated."""
    return completion if isinstance(completion, str) else str(completion[-1]["content"])


def _finish(tokens: int, limit: int | None) -> FinishReason:
    return FinishReason.length if limit is not None and tokens >= limit else FinishReason.stop


def _reference(key: str, given: Any, rule: str) -> Reference:
    if isinstance(given, Mapping):
        try:
            return parse_code(key, {k: v for k, v in given.items() if k in CODE_KEYS and v is not None})
        except ValueError as error:
            raise DataError("dataset", f"row {key}: {error}") from None
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise DataError("dataset", f"row {key}: the reference is {given!r}, an answer or tests were expected")
    return Answer(key, str(given), rule)
