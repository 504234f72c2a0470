"""The math judge: samples and reference answers in, one verdict each out.

The reference answers stay in this process and its own workers; no submission ever runs there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Self

from klearbench.errors import ConfigError, DataError, unknown_name
from klearbench.faults import fault
from klearbench.judging.dispatch import Reply
from klearbench.judging.extract import Extraction, after_thinking, extract
from klearbench.judging.math import RULES, Comparison, worker_op
from klearbench.judging.normalize import is_placeholder
from klearbench.judging.pool import Pool
from klearbench.types import Answer, FinishReason, Sample, Status, Verdict

VERSION = 3
"""Raised whenever a verdict may change; part of the identity that a run records."""

MODES = ("strict", "math-verify")
_CACHE_ENTRIES = 100_000
_CACHED_CHARS = 2_000
_SHOWN_CHARS = 1_000

Row = tuple[Sample, Answer, bool]
"""A sample, its reference, and whether the completion is a final answer to be taken as it is."""
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Judged:
    """What was found for one answer text: the comparison, the answer as shown, the worker's times in seconds.

    `nothing` is True when math-verify found nothing to compare in the text.
    """

    comparison: Comparison
    extracted: str | None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    nothing: bool = False


class MathJudge:
    """Judges math samples. Workers start when the first answer needs one; use it as a context manager.

    Args:
        mode: "strict" (extraction and comparison by the policy in docs) or "math-verify" (that library alone, on the
            text after the thinking).
        workers: processes at most.
        time_limit_s: CPU seconds for one comparison; a comparison that needs more is not shown equal. The default keeps
            every verdict within 2 s of wall time where the processor is free.
        cache: remember what was decided, by rule, reference and answer.

    Raises:
        ConfigError: an unknown mode, fewer than one worker, or no time.
    """

    def __init__(
        self, *, mode: str = "strict", workers: int = 1, time_limit_s: float = 1.5, cache: bool = True
    ) -> None:
        if mode not in MODES:
            raise ConfigError(unknown_name("math judge", mode, MODES))
        if workers < 1 or time_limit_s <= 0:
            raise ConfigError(f"workers is {workers}, time_limit_s is {time_limit_s}: both must be positive")
        self._mode = mode
        self._limit_s = time_limit_s
        self._pool = Pool(workers, time_limit_s=time_limit_s, op=mode)
        self._caching = cache
        self._cache: dict[_Key, _Judged] = {}

    def identity(self) -> Mapping[str, Any]:
        """Everything that decides a verdict, for manifests."""
        return {
            "name": "math",
            "mode": self._mode,
            "version": VERSION,
            "math_verify": metadata.version("math-verify"),
            "time_limit_s": self._limit_s,
        }

    def judge(self, items: Sequence[tuple[Sample, Answer]]) -> list[Verdict]:
        """One verdict a sample, in order. A failure of ours is a `judge_error` verdict, never an exception."""
        return self.judge_rows([(sample, answer, False) for sample, answer in items])

    def judge_rows(self, rows: Sequence[Row]) -> list[Verdict]:
        """Like `judge`, for rows of which some completions are final answers taken as they are."""
        fault("judge.batch")
        verdicts: list[Verdict | None] = [None] * len(rows)
        open_rows: dict[_Key, list[tuple[int, Extraction]]] = {}
        for index, row in enumerate(rows):
            start = time.perf_counter()
            found = self._read(row)
            judged = self._quick(row[1], found)
            if judged is not None:
                verdicts[index] = _verdict(row, found, judged, time.perf_counter() - start)
            else:
                open_rows.setdefault((row[1].rule, row[1].answer, found.text or ""), []).append((index, found))
        keys = list(open_rows)
        for key, judged in zip(keys, self._ask(keys), strict=True):
            for index, found in open_rows[key]:
                verdicts[index] = _verdict(rows[index], found, judged, 0.0)
        return [verdict for verdict in verdicts if verdict is not None]

    def compare(self, answer: Answer, text: str) -> Comparison:
        """Whether a final answer's text is right for a reference, by the reference's rule."""
        found = Extraction("answer", text)
        judged = self._quick(answer, found) or self._ask([(answer.rule, answer.answer, text)])[0]
        return judged.comparison

    def _read(self, row: Row) -> Extraction:
        """What of a completion is compared: the extracted answer, or for math-verify the text after the thinking."""
        sample, _, final = row
        if self._mode == "strict":
            return _final_answer(sample.completion) if final else extract(sample.completion)
        if final:
            return Extraction("answer", f"${sample.completion}$")
        tail, cut = after_thinking(sample.completion)
        return Extraction("truncated", None, cut) if cut else Extraction("answer", tail)

    def _quick(self, answer: Answer, found: Extraction) -> _Judged | None:
        """A verdict that needs no worker."""
        if answer.rule not in RULES:
            return _Judged(Comparison(None, unknown_name("rule", answer.rule, RULES)), found.text)
        if found.kind != "answer" or found.text is None:
            return _Judged(Comparison(False, found.detail), found.text)
        key = (answer.rule, answer.answer, found.text)
        judged = self._cache.get(key)
        if judged is None and self._mode == "strict":
            comparison = RULES[answer.rule](answer.answer, found.text)
            if comparison is not None:
                judged = _Judged(comparison, found.text)
                self._remember([key], [judged])
        return judged

    def _ask(self, keys: Sequence[_Key]) -> list[_Judged]:
        """Decide by workers, and remember."""
        replies = self._pool.run_many([self._request(*key) for key in keys])
        late = self._late_golds({key[1] for key, r in zip(keys, replies, strict=True) if r.error == "timeout"})
        judged = [self._from_reply(key, reply, late) for key, reply in zip(keys, replies, strict=True)]
        self._remember(keys, judged)
        return judged

    def _remember(self, keys: Sequence[_Key], judged: Sequence[_Judged]) -> None:
        for key, result in zip(keys, judged, strict=True) if self._caching else ():
            if result.comparison.equal is not None and len(key[2]) <= _CACHED_CHARS:
                if len(self._cache) >= _CACHE_ENTRIES:
                    self._cache.clear()
                self._cache[key] = result

    def _late_golds(self, golds: set[str]) -> set[str]:
        """Those references that can't be read in time even alone."""
        if not golds:
            return set()
        asked = sorted(golds)
        replies = self._pool.run_many([{"op": "gold", "gold": gold, "answer": self._mode} for gold in asked])
        return {gold for gold, reply in zip(asked, replies, strict=True) if reply.error}

    def _request(self, rule: str, gold: str, text: str) -> dict[str, Any]:
        op = self._mode if self._mode == "math-verify" else worker_op(rule)
        return {"op": op, "gold": gold, "answer": text}

    def _from_reply(self, key: _Key, reply: Reply, late: set[str]) -> _Judged:
        shown = key[2] if self._mode == "strict" else None
        if reply.value is not None:
            equal, detail = reply.value["equal"], str(reply.value.get("detail", ""))
            shown = reply.value.get("extracted", shown)
            comparison = Comparison(equal, detail or ("" if equal else "not equal to the reference"))
            return _Judged(comparison, shown, reply.cpu_s, reply.wall_s, nothing=shown is None)
        if reply.error != "timeout":
            comparison = Comparison(None, reply.detail)
        elif key[1] in late:
            comparison = Comparison(None, f"the reference alone can't be read within {self._limit_s:g} s")
        else:
            comparison = Comparison(False, f"not shown equal within {self._limit_s:g} s")
        return _Judged(comparison, shown, reply.cpu_s, reply.wall_s)

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _final_answer(text: str) -> Extraction:
    return (
        Extraction("no_answer", None, "empty or placeholder answer")
        if is_placeholder(text)
        else Extraction("answer", text)
    )


def _verdict(row: Row, found: Extraction, judged: _Judged, here_s: float) -> Verdict:
    sample, _, final = row
    status = _status(found, judged, sample.finish_reason if not final else FinishReason.stop)
    shown = judged.extracted
    if shown is not None and len(shown) > _SHOWN_CHARS:
        shown = f"{shown[:_SHOWN_CHARS]}... ({len(shown)} characters)"
    return Verdict(
        suite=sample.suite,
        problem_id=sample.problem_id,
        sample_index=sample.sample_index,
        status=status,
        score=None if status is Status.judge_error else float(status is Status.correct),
        extracted=shown,
        detail=judged.comparison.detail or found.detail,
        cpu_s=judged.cpu_s + here_s,
        wall_s=judged.wall_s + here_s,
    )


def _status(found: Extraction, judged: _Judged, finish: FinishReason) -> Status:
    if judged.comparison.equal is None:
        return Status.judge_error
    ran_out = finish is FinishReason.length
    if found.kind == "truncated" or (ran_out and (found.kind == "no_answer" or not found.complete)):
        return Status.truncated
    if found.kind == "no_answer":
        return Status.no_answer
    if judged.nothing:
        return Status.truncated if ran_out else Status.no_answer
    return Status.correct if judged.comparison.equal else Status.wrong_answer


def check_golds(answers: Iterable[Answer], judge: MathJudge) -> None:
    """Refuse references that can't be judged: each must be judged equal to itself.

    Raises:
        DataError: the first one that isn't, by its problem id.
    """
    for answer in answers:
        result = judge.compare(answer, answer.answer)
        if not result.equal or is_placeholder(answer.answer):
            reason = result.detail or "it stands for no answer"
            raise DataError(
                answer.problem_id, f"the reference answer {answer.answer!r} isn't equal to itself: {reason}"
            )
