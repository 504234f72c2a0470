"""Reading a run's records without their texts, and whole ones one at a time."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from klearbench.errors import DataError
from klearbench.records import light_samples, light_verdicts, read_problems, settle, whole_records, write_problems
from klearbench.store import JsonlWriter, keep_lines
from klearbench.types import FinishReason, Kind, Problem, Sample, Status, Verdict, to_row


def sample(index: int, reason: str = "stop") -> Sample:
    return Sample("s", "p", index, 7, f"text {index}", 1, 2, FinishReason(reason), (1, 2), (-0.5, -0.25))


def verdict(index: int, status: str = "correct", **more) -> Verdict:
    score = None if status == "judge_error" else float(status == "correct")
    return Verdict("s", "p", index, Status(status), score, **{"extracted": str(index), "detail": "said", **more})


def write(run, samples, verdicts) -> None:
    with JsonlWriter(run / "samples.jsonl") as log:
        log.append(*map(to_row, samples))
    with JsonlWriter(run / "verdicts.jsonl") as log:
        log.append(*map(to_row, verdicts))


def test_light_records_have_no_texts(tmp_path):
    write(tmp_path, [sample(0)], [verdict(0), verdict(1, passed=1, total=2, extracted="program")])
    (light,) = light_samples(tmp_path)
    assert light == replace(sample(0), completion="", token_ids=None, logprobs=None)
    math, code = light_verdicts(tmp_path)
    assert (math.extracted, math.detail, code.extracted) == ("0", "", None)


def test_a_long_answer_keeps_its_vote(tmp_path):
    answers = ["1" * 300, "1" * 300, "2" * 300]
    write(tmp_path, [], [verdict(i, extracted=text) for i, text in enumerate(answers)])
    first, second, third = (v.extracted for v in light_verdicts(tmp_path))
    assert first == second != third and len(first) < 100


def test_whole_records_are_paired_by_key_and_in_the_samples_order(tmp_path):
    write(tmp_path, [sample(2), sample(0), sample(1)], [verdict(0), verdict(2)])
    assert list(whole_records(tmp_path)) == [(sample(2), verdict(2)), (sample(0), verdict(0)), (sample(1), None)]


def test_half_and_blank_lines_do_not_shift_verdicts(tmp_path):
    write(tmp_path, [sample(0), sample(1)], [verdict(0)])
    path = tmp_path / "verdicts.jsonl"
    path.write_bytes(b"\n" + path.read_bytes() + b"\n" + json.dumps(to_row(verdict(1))).encode() + b"\n" + b'{"half')
    assert [v for _, v in whole_records(tmp_path)] == [verdict(0), verdict(1)]


def test_a_corrupt_verdict_is_named(tmp_path):
    write(tmp_path, [sample(0)], [verdict(0)])
    with (tmp_path / "verdicts.jsonl").open("a") as handle:
        handle.write("{}\n")
    with pytest.raises(DataError, match=r"verdicts\.jsonl:2"):
        list(whole_records(tmp_path))


def test_settling_takes_back_failures_and_orphans(tmp_path):
    write(
        tmp_path,
        [sample(0), sample(1, "error"), sample(2)],
        [verdict(0), verdict(2, "judge_error"), verdict(5)],
    )
    settle(tmp_path)
    assert [s.sample_index for s in light_samples(tmp_path)] == [0, 2]
    assert [v.sample_index for v in light_verdicts(tmp_path)] == [0]
    before = (tmp_path / "samples.jsonl").stat().st_ino
    settle(tmp_path)
    assert (tmp_path / "samples.jsonl").stat().st_ino == before, "a settled run is not written again"


def test_keep_lines_counts_whole_rows_alone(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n\n{"a":2}\n{"a":3}\n{"a"')
    keep_lines(path, [True, False, True])
    assert path.read_bytes() == b'{"a":1}\n{"a":3}\n'
    assert list(tmp_path.iterdir()) == [path]


def test_problems_are_written_once_and_a_changed_one_again(tmp_path):
    problem = Problem(
        "a",
        "s",
        Kind.math,
        ({"role": "user", "content": "1?"},),
        meta={"level": float("nan"), "year": 1, "label": "7", "extra_info": {"answer": "7"}},
    )
    write_problems(tmp_path, [problem])
    write_problems(tmp_path, [problem])
    assert len((tmp_path / "problems.jsonl").read_text().splitlines()) == 1
    changed = replace(problem, prompt=({"role": "user", "content": "2?"},))
    write_problems(tmp_path, [problem, changed])
    assert read_problems(tmp_path)["s", "a"].prompt == ({"role": "user", "content": "2?"},)
    assert read_problems(tmp_path)["s", "a"].meta == {"level": None, "year": 1}, (
        "columns of any other name may hold an answer"
    )
