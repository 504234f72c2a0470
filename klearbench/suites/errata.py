"""Known faults of the benchmarks, and what is done about each. No text of a problem stands here: ids and hashes.

    wrong_tests        the tests themselves are wrong             the problem is left out
    interactive        the program would have to talk to a judge  the problem is left out
    multiple_answers   several outputs are right, one is stored   judged by a checker of ours, or left out
    wrong_answer       copies with a wrong reference circulate    such a copy is corrected
    wrong_statement    copies with a misprint circulate           listed: we can't know what the copy's text should be
    not_expressible    tests that can't be told apart from the submission's process (HumanEval, MBPP): left out

LiveCodeBench's table is its own (ERRATA.md at 28fef95; LeetCode problems by their slug).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from klearbench.suites.base import Erratum, Suite
from klearbench.types import Answer, Problem

LCB: dict[str, tuple[str, ...]] = {
    "multiple_answers": (
        "abc311_c",
        "abc326_d",
        "abc327_b",
        "abc333_e",
        "abc343_e",
        "abc362_c",
        "find-words-containing-character",
        "find-the-peaks",
        "generate-binary-strings-without-adjacent-zeros",
        "arc185_c",
        "abc343_a",
    ),
    "interactive": ("abc337_e", "abc355_e"),
    "wrong_tests": ("abc350_c", "apply-operations-to-make-string-empty", "most-frequent-ids", "arc189_a"),
}
"""Kind -> question ids or slugs."""

_WHY = {
    "multiple_answers": "several outputs are right, and the tests hold one of them",
    "interactive": "the program would have to talk to a judge",
    "wrong_tests": "its tests are wrong",
}
LEFT_OUT, BY_CHECKER, CORRECTED, LISTED = "left out", "judged by a checker", "corrected", "listed"


@dataclass(frozen=True, slots=True)
class KnownCopy:
    """A problem of which faulty copies circulate, recognised in any copy by its words.

    Attributes:
        suite: where it stands.
        label: its usual name.
        words: hashes of three consecutive words each, some of the checked copy's.
        statement: hash of the checked copy's text without its spacing; None: the text is not looked at.
        answers: a faulty copy's answer -> the right one.
    """

    suite: str
    label: str
    words: frozenset[str]
    statement: str | None = None
    answers: Mapping[str, str] | None = None


COPIES = (
    KnownCopy(
        "aime24",
        "AIME 2024 I #12",
        frozenset(("4827e0e2", "55914210", "72566fa1", "8d96b300", "996913d3", "dfbd7b58", "e675fca9")),
        answers={"384": "385"},
    ),
    KnownCopy(
        "aime25",
        "AIME 2025 I #14",
        frozenset(
            ("0a474904", "0c1b194d", "12298f39", "14132301", "30ae0567", "317fd9f5", "33167595", "35ce15ec", "38241f04")
        ),
        "122057a622b3b044",
    ),
    KnownCopy(
        "aime25",
        "AIME 2025 II #15",
        frozenset(
            ("02cfbe9f", "03860975", "0d56b764", "254832bb", "32191038", "3589e1ba", "40aa5b61", "4f53a17e", "510b1084")
        ),
        "3bc374dff4b73145",
    ),
)


def check_copy(suite: Suite, *, applied: bool) -> Suite:
    """A suite of mathematics with its faulty references corrected and misprints listed (`applied`: else as it is)."""
    for known in COPIES if applied else ():
        if known.suite == suite.name:
            problem = max(suite.problems, key=lambda p: len(known.words & _word_hashes(_text(p))))
            if 2 * len(known.words & _word_hashes(_text(problem))) >= len(known.words):
                suite = _checked(suite, problem, known)
    return suite


def _checked(suite: Suite, problem: Problem, known: KnownCopy) -> Suite:
    answer = suite.answers[problem.id]
    if known.answers is not None and isinstance(answer, Answer) and answer.answer.strip() in known.answers:
        right = known.answers[answer.answer.strip()]
        why = f"the copy has a wrong answer for {known.label}"
        return replace(
            suite,
            answers={**suite.answers, problem.id: replace(answer, answer=right)},
            errata=(*suite.errata, Erratum(problem.id, "wrong_answer", why, CORRECTED)),
        )
    if known.statement is not None and statement_hash(_text(problem)) != known.statement:
        why = f"the statement differs from the checked copy of {known.label}, of which misprints circulate"
        return replace(suite, errata=(*suite.errata, Erratum(problem.id, "wrong_statement", why, LISTED)))
    return suite


def statement_hash(text: str) -> str:
    """A hash of a statement that spacing and the ways to set a formula don't change."""
    plain = re.sub(r"\\(?:left|right|displaystyle|begin|end|[,;:!\s(\[\])])", "", text)
    plain = re.sub(r"\\[dt]frac", r"\\frac", plain)
    return hashlib.sha256(re.sub(r"[\s${}.,]", "", plain).lower().encode()).hexdigest()[:16]


def _word_hashes(text: str) -> set[str]:
    words = re.findall(r"[a-z]{3,}", re.sub(r"\\[A-Za-z]+", " ", text).lower())
    return {hashlib.sha256(" ".join(words[i : i + 3]).encode()).hexdigest()[:8] for i in range(len(words) - 2)}


def _text(problem: Problem) -> str:
    return problem.prompt[-1]["content"]


def lcb_erratum(row: Mapping[str, Any], checkers: Mapping[str, str]) -> Erratum | None:
    """The fault of one of LiveCodeBench's problems, None if none is known.

    Args:
        row: in LiveCodeBench's format; a problem goes by its id, or by its title as a slug.
        checkers: question id -> the checker that judges it in spite of its fault.
    """
    key = str(row["question_id"])
    names = {key, re.sub(r"[^a-z0-9]+", "-", str(row.get("question_title", "")).lower()).strip("-")}
    for kind, ids in LCB.items():
        if names & set(ids):
            return Erratum(key, kind, _WHY[kind], BY_CHECKER if key in checkers else LEFT_OUT)
    return None
