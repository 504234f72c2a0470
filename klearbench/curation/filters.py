"""Filters over judged responses: each says (keep, reason). A dropped row is kept with its reason in `rejected/`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError, validate_call

from klearbench.errors import unknown_name
from klearbench.types import FinishReason, Problem, Sample, Status

Decision = tuple[bool, str]
"""(keep, reason); the reason of a kept row is empty."""

KEEP: Decision = (True, "")


@dataclass(frozen=True, slots=True)
class Trace:
    """One response with all that is known of it.

    `status` is None for a response that an engine's failure kept from being judged; `score` and `pass_rate` are in
    0..1, None where nothing could be judged.
    """

    problem: Problem
    sample: Sample
    status: Status | None
    score: float | None
    pass_rate: float | None


Filter = Callable[[Trace], Decision]


def finished() -> Filter:
    """Keeps responses that the model ended itself: no text cut off by the token limit."""
    return lambda t: KEEP if t.sample.finish_reason is FinishReason.stop else (False, "not_finished")


def completion_tokens(min: int = 1, max: int | None = None) -> Filter:
    """Keeps responses of `min` to `max` tokens, both included."""
    return lambda t: _within(t.sample.completion_tokens, min, max, "completion_tokens")


def prompt_chars(min: int = 1, max: int | None = None) -> Filter:
    """Keeps responses to prompts of `min` to `max` characters, both included."""
    return lambda t: _within(sum(len(m["content"]) for m in t.problem.prompt), min, max, "prompt_chars")


def pass_rate(min: float = 0.0, max: float = 1.0) -> Filter:
    """Keeps responses to problems whose pass rate lies in `min`..`max`, both included."""
    return lambda t: (
        (False, "pass_rate_unknown") if t.pass_rate is None else _within(t.pass_rate, min, max, "pass_rate")
    )


def status(allowed: tuple[Status, ...]) -> Filter:
    """Keeps responses that were judged as one of `allowed`."""
    return lambda t: KEEP if t.status in allowed else (False, f"status_{t.status}")


def without(phrases: tuple[str, ...]) -> Filter:
    """Drops responses that contain one of the phrases, in any case."""
    folded = [phrase.casefold() for phrase in phrases]

    def decide(trace: Trace) -> Decision:
        text = trace.sample.completion.casefold()
        return (False, "phrase") if any(phrase in text for phrase in folded) else KEEP

    return decide


def repetition(ngram: int = 20, max_share: float = 0.3) -> Filter:
    """Drops responses that go round in circles: more than `max_share` (0..1) of their word n-grams are repeats."""

    def decide(trace: Trace) -> Decision:
        tokens = trace.sample.completion.split()
        grams = Counter(tuple(tokens[i : i + ngram]) for i in range(len(tokens) - ngram + 1))
        repeats = sum(count - 1 for count in grams.values())
        return (False, "repetition") if repeats > max_share * max(1, grams.total()) else KEEP

    return decide


def _within(value: float, low: float, high: float | None, what: str) -> Decision:
    if value < low:
        return False, f"{what}_low"
    return (False, f"{what}_high") if high is not None and value > high else KEEP


FILTERS: dict[str, Callable[..., Filter]] = {
    f.__name__: f for f in (finished, completion_tokens, prompt_chars, pass_rate, status, without, repetition)
}


def build_filter(name: str, params: Mapping[str, Any]) -> Filter:
    """A filter by name.

    Raises:
        ValueError: an unknown filter or parameter, or a value of the wrong type (one line).
    """
    if name not in FILTERS:
        raise ValueError(unknown_name("filter", name, FILTERS))
    try:
        built: Filter = validate_call(FILTERS[name])(**params)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"filter {name!r}, parameter {where!r}: {first['msg']}") from None
    return built


def keep_wrong(policy: str, easy_above: float) -> Filter:
    """What becomes of traces that aren't correct: "keep", "drop", or "drop_on_easy" (pass rate above `easy_above`)."""

    def decide(trace: Trace) -> Decision:
        if trace.status is Status.correct or policy == "keep":
            return KEEP
        if policy == "drop":
            return False, "wrong"
        easy = trace.pass_rate is not None and trace.pass_rate > easy_above
        return (False, "wrong_on_easy") if easy else KEEP

    return decide
