"""`klearbench score --rejudge`: kills, runs that grow, other judges, and what is refused."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from rejudge_tools import MATH, again, edit, edit_first, make, right_if_even, sums
from tools import ToyEngine, jsonl, run

from klearbench.cli import cli
from klearbench.errors import DataError, IncompleteError, RunConflict, UsageError
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.judging import judge as math_judge
from klearbench.rejudge import rejudge
from klearbench.run import Lock
from klearbench.suites.registry import load_suite


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make(tmp_path)


@pytest.mark.parametrize("point", ["append", "half"])
def test_what_a_kill_left_is_finished_and_nothing_else_is_judged(made: Path, tmp_path: Path, point: str) -> None:
    edit(made, edit_first(status="wrong_answer", score=0.0))
    words = ("score", made, "--rejudge", "--times", 2, "--suite", tmp_path / "sums.jsonl")
    done = run("klearbench", *words, fault=f"{point}.verdicts-2.jsonl:5:kill")
    assert done.returncode == -signal.SIGKILL
    half = (made / "rejudge" / "verdicts-2.jsonl").read_bytes()
    assert half.count(b"\n") == 4 and half.endswith(b"\n") is (point == "append")
    assert not (made / "rejudge" / "summary.json").exists()
    found = again(made, times=2)
    assert found.judged == 8, "4 of 24 verdicts of the second round were there, and all 12 of the first"
    assert [str(change) for change in found.changes] == ["sums q0 sample 0: wrong_answer -> correct (2 of 2)"]
    logs = [jsonl(made / "rejudge" / f"verdicts-{number}.jsonl") for number in (1, 2)]
    keys = [[(row["problem_id"], row["sample_index"]) for row in log] for log in logs]
    assert keys[0] == keys[1] and len(set(keys[0])) == 12
    assert again(made, times=2).judged == 0


def test_of_an_extended_run_only_what_is_new_is_judged(made: Path, tmp_path: Path) -> None:
    assert again(made).judged == 12
    evaluate(made, [sums(tmp_path)], ToyEngine(right_if_even), EvalOptions(samples=3))
    found = again(made)
    assert (found.samples, found.judged, found.changes) == ({"sums": 18}, 6, [])
    more = again(made, times=3)
    assert (more.judged, more.scores) == (36, {"sums": (50.0, (50.0, 50.0, 50.0))})


def test_samples_that_were_made_anew_are_judged_anew(made: Path, tmp_path: Path) -> None:
    again(made)
    for name in ("samples.jsonl", "verdicts.jsonl"):
        (made / name).unlink()
    evaluate(made, [sums(tmp_path)], ToyEngine(lambda request: "So \\boxed{99}"), EvalOptions(samples=2))
    remarks: list[str] = []
    found = again(made, say=remarks.append)
    assert (found.judged, found.changes, found.scores) == (12, [], {"sums": (0.0, (0.0,))})
    assert remarks == [f"{made / 'rejudge'} is of other samples; it begins anew"]


def test_another_judge_is_named_and_judges_anew(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version, remarks = math_judge.VERSION, list[str]()
    again(made)
    edit(made, edit_first(status="wrong_answer", score=0.0))
    monkeypatch.setattr(math_judge, "VERSION", version + 1)
    found = again(made, say=remarks.append)
    assert (found.judged, found.differs) == (12, {"judge.version": (version, version + 1)})
    assert remarks == [
        f"{made / 'rejudge'} is of another judge (judge.version {version} -> {version + 1}); it begins anew"
    ]
    assert f"another judge (judge.version {version} -> {version + 1})" in found.lines[-1]
    summary = json.loads((made / "rejudge" / "summary.json").read_text())
    assert summary["same_judge"] is False
    assert summary["judge_differs"] == {"judge.version": {"before": version, "after": version + 1}}
    with pytest.raises(IncompleteError):
        found.refuse_changes()


def test_another_version_of_a_package_that_judges_is_another_judge(made: Path) -> None:
    path = made / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["versions"] |= {"sympy": "0.1", "pandas": "0.1"}
    manifest["machine"]["python"] = "2.7"
    path.write_text(json.dumps(manifest))
    assert [(name, was) for name, (was, _) in again(made).differs.items()] == [("versions.sympy", "0.1")]


def test_a_suite_with_other_references_is_refused_by_its_hash(made: Path, tmp_path: Path) -> None:
    theirs = sums(tmp_path).content_hash[:16]
    ours = sums(tmp_path, [{**row, "answer": "5"} for row in MATH]).content_hash[:16]
    with pytest.raises(DataError, match=f"'sums' is not the run's.* {ours}, the run's {theirs}"):
        again(made)
    assert not (made / "rejudge").exists()


def test_only_the_problems_that_were_asked_need_a_good_reference(tmp_path: Path) -> None:
    rows = [*MATH[:2], {"id": "bad", "problem": "?", "answer": "x)", "rule": "integer"}]
    evaluate(tmp_path / "run", [sums(tmp_path, rows)], ToyEngine(right_if_even), EvalOptions(limit=2))
    assert again(tmp_path / "run").samples == {"sums": 2}


def test_suites_of_the_table_are_found_by_their_names(tmp_path: Path) -> None:
    from klearbench.engines.scripted import ScriptedEngine

    evaluate(tmp_path / "run", [load_suite("puzzles")], ScriptedEngine(), EvalOptions(limit=5))
    assert rejudge(tmp_path / "run").samples == {"puzzles": 5}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ((), "'sums' came from a file; name the file with --suite FILE"),
        (("puzzles",), r"--suite puzzles: the suite 'puzzles' is none of the run's \(sums\)"),
        (("sums.jsonl", "./sums.jsonl"), "--suite ./sums.jsonl: the suite 'sums' is given twice"),
        (("absent.jsonl",), "absent.jsonl: no such file"),
    ],
)
def test_a_suite_that_is_not_found_is_named(
    made: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(made.parent)
    with pytest.raises(UsageError, match=says):
        rejudge(made, suite_files=files)


def test_a_run_that_someone_writes_and_a_folder_that_someone_judges_are_refused(made: Path, tmp_path: Path) -> None:
    for held in (made, made / "rejudge"):
        lock = Lock(held / ".lock")
        with pytest.raises(RunConflict, match=f"{held} is in use by process"):
            again(made)
        lock.release()
    assert again(made).judged == 12


def test_what_is_no_evaluation_is_refused(made: Path, tmp_path: Path) -> None:
    again(made)
    with pytest.raises(DataError, match="rejudge: is no run of `klearbench eval`"):
        rejudge(made / "rejudge")
    (made / "samples.jsonl").unlink()
    with pytest.raises(DataError, match="holds no verdict that could change"):
        again(made)
    edit_manifest = made / "manifest.json"
    manifest = json.loads(edit_manifest.read_text())
    del manifest["config"]["judge"]
    edit_manifest.write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="does not say how the run was judged"):
        again(made)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--times", "1"], "--times means nothing without --rejudge"),
        (["--sandbox", "local"], "--sandbox means nothing without --rejudge"),
        (["--workers", "2"], "--workers means nothing without --rejudge"),
        (["--data-dir", "."], "--data-dir means nothing without --rejudge"),
        (["--suite", "a.jsonl"], "--suite means nothing without --rejudge"),
        (["--rejudge", "--allow-partial"], "--allow-partial means nothing with --rejudge"),
    ],
)
def test_flags_that_would_be_ignored_are_refused(tmp_path: Path, words: list[str], says: str) -> None:
    error = CliRunner().invoke(cli, ["score", str(tmp_path), *words]).exception
    assert isinstance(error, UsageError) and str(error).startswith(says)
