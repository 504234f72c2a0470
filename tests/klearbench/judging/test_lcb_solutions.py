"""Real programs with LiveCodeBench's own verdicts: what it accepted is accepted, and each difference has a known cause.

Its hidden tests are not here, so a program it failed may pass; and what a thread prints that the program does not wait
for is a race in compat, as it was officially.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.code_differences import CAUSES, HIDDEN, THREADS, TOLERANCE, Compared, compare, document
from klearbench.types import Status

pytestmark = [pytest.mark.slow, pytest.mark.shared]


@pytest.fixture(scope="module")
def found(shared: Path) -> list[Compared]:
    return compare(shared / "data")


def test_there_are_enough_programs_of_both_kinds(found: list[Compared]) -> None:
    assert sum(one.official for one in found) >= 100
    assert sum(not one.official for one in found) >= 100


def test_every_officially_accepted_program_is_accepted(found: list[Compared]) -> None:
    assert [one for one in found if one.official and not one.accepted] == []


def test_every_agreeing_row_agrees_except_where_our_rule_is_another(found: list[Compared]) -> None:
    """`agree` compares two judges that lose a thread's output and compare decimals digit by digit."""
    others = [one for one in found if one.agree and one.accepted is not one.official]
    assert all(one.accepted and one.cause in (TOLERANCE, THREADS) for one in others), others
    assert sum(one.agree for one in found) >= 40 * len(others)


def test_every_difference_has_a_cause(found: list[Compared]) -> None:
    assert [one for one in found if one.differs and one.cause not in CAUSES] == []


def test_compat_says_what_the_official_judge_said_wherever_that_is_no_race(found: list[Compared]) -> None:
    for one in found:
        if not one.races or one.cause == TOLERANCE:
            assert (one.compat is Status.correct) is one.official or one.cause == HIDDEN, one


def test_a_judge_error_occurs_nowhere(found: list[Compared]) -> None:
    assert all(Status.judge_error not in (one.strict, one.compat) for one in found)


def test_the_page_lists_each_difference_once_and_no_program(found: list[Compared]) -> None:
    page = document(found)
    listed = [one for one in found if one.differs]
    assert len(listed) == len({one.row() for one in listed}) == sum(page.count(one.row()) for one in listed)
    assert "import" not in page and "```" not in page


def test_an_unknown_difference_is_not_given_a_cause() -> None:
    one = Compared("q", "m", Status.correct, Status.runtime_error, True, True, False, False, "exit code (test 1)")
    assert one.differs and one.cause not in CAUSES
    same = Compared("q", "m", Status.wrong_answer, Status.wrong_answer, False, True, False, False, "")
    assert not same.differs
