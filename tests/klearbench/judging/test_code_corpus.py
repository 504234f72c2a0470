"""The labelled programs: every verdict is the label's, in both backends."""

from __future__ import annotations

from pathlib import Path

import pytest
from codecorpus import judge_rows, judging_faults, read_rows

pytestmark = [pytest.mark.shared, pytest.mark.slow]

DECISIONS = {
    "lcb_shared", "lcb", "block_defining_entry", "lcb_last_block", "strict_json_type", "lcb_exact", "sequence_ok",
    "lcb_line", "leetcode_inplace", "token_stream", "line_exact", "run_as_main", "strict_token", "float_tol_1e-5",
}  # fmt: skip
"""The other rules that rows of the corpus name: docs/code-judging.md says of each why ours is another."""


def test_every_labelled_program_has_its_verdict(shared: Path) -> None:
    """Rows with `alt` rest on a decision: the label's rule is ours, not the other one."""
    rows = read_rows(shared, "judging_dev.jsonl")
    assert len(rows) > 150 and {rule for row in rows for rule in row.get("alt", ())} <= DECISIONS
    assert judging_faults(rows, judge_rows(rows, "local", 4)) == []


@pytest.mark.docker
def test_every_labelled_program_has_its_verdict_in_docker(shared: Path, docker_host: str) -> None:
    rows = read_rows(shared, "judging_dev.jsonl")
    verdicts = judge_rows(rows, "docker", 4)
    assert judging_faults(rows, verdicts) == []
    ran = [v["detail"] for v in verdicts if v["status"] not in ("no_answer", "truncated")]
    assert ran and all("[docker submission]" in detail for detail in ran)
