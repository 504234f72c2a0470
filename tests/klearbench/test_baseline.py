"""Baselines: the same gate as with the run folder, and no byte of them can change unseen."""

from __future__ import annotations

import hashlib
import json

import pytest
from gate_tools import BAD, GOOD, klearbench, refused, regress_json, write_run

from klearbench import faults
from klearbench.scoring.baseline import baseline_hash


@pytest.fixture
def stored(tmp_path):
    """A run, its baseline, and the hash that the command printed."""
    run, file = write_run(tmp_path / "base", GOOD), tmp_path / "stored" / "base.json"
    done = klearbench("baseline", run, "-o", file)
    assert (done.code, done.err) == (0, [])
    head, _, printed = done.out[0].rstrip(")").partition(" (sha256 ")
    assert head == f"baseline: {file}"
    return run, file, printed


@pytest.mark.parametrize("metric", ["avg@k", "truncated", "length", "judge-errors"])
@pytest.mark.parametrize("rights", [GOOD, BAD], ids=["good", "bad"])
def test_a_baseline_stands_for_its_run_on_either_side(stored, tmp_path, metric, rights):
    run, file, printed = stored
    other = write_run(tmp_path / "other", rights, wrong="truncated", seed=3)
    by_run, by_file = (regress_json(base, other, "--metric", metric) for base in (run, file))
    assert by_run[0].code == by_file[0].code
    assert by_run[0].out == by_file[0].out
    assert by_run[1]["tests"] == by_file[1]["tests"]
    assert (by_run[1]["base"]["baseline_sha256"], by_file[1]["base"]["baseline_sha256"]) == (None, printed)
    back = [json.loads("\n".join(klearbench("regress", other, base, "--json").out)) for base in (run, file)]
    assert back[0]["tests"] == back[1]["tests"]


def test_what_is_refused_of_a_run_is_refused_of_its_baseline(stored, tmp_path):
    run, file, _ = stored
    fewer = write_run(tmp_path / "fewer", {"puzzles": {f"p{i}": 7 for i in range(19)}})
    judge = write_run(tmp_path / "judge", GOOD, judge={"name": "math", "mode": "strict", "version": 2})
    for other, field in ((fewer, "problems"), (judge, "judge.version")):
        assert [refused(base, other)["field"] for base in (run, file)] == [field] * 2


def test_the_hash_is_that_of_the_content_as_canonical_json(stored):
    _, file, printed = stored
    body = json.loads(file.read_text())
    assert body.pop("sha256") == printed
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    assert hashlib.sha256(canonical).hexdigest() == printed
    assert body["kind"] == "klearbench baseline"


def test_no_byte_can_change_unseen(stored, tmp_path):
    _, file, _ = stored
    other, raw = write_run(tmp_path / "other", GOOD), file.read_bytes()
    places = range(0, len(raw) - 1, max(1, len(raw) // 60))
    for place in places:
        changed = bytearray(raw)
        changed[place] ^= 1
        file.write_bytes(changed)
        found = refused(file, other)
        assert (found["field"], str(file) in found["reason"]) == ("base.json", True), raw[place - 20 : place + 20]
    file.write_bytes(raw)
    assert klearbench("regress", file, other).code == 0


def test_an_edit_by_hand_is_told_with_both_hashes(stored, tmp_path):
    _, file, printed = stored
    body = json.loads(file.read_text())
    body["scores"]["puzzles"]["per_problem"][3]["right"] = 8
    file.write_text(json.dumps(body))
    found = refused(file, write_run(tmp_path / "other", GOOD))
    assert "was changed since it was written" in found["reason"]
    assert printed[:12] in found["reason"] and baseline_hash(body)[:12] in found["reason"]


def test_layout_is_free_as_long_as_the_content_is_the_same(stored, tmp_path):
    _, file, printed = stored
    file.write_text(json.dumps(json.loads(file.read_text()), sort_keys=True))
    done, loaded = regress_json(file, write_run(tmp_path / "other", GOOD))
    assert (done.code, loaded["base"]["baseline_sha256"]) == (0, printed)


@pytest.mark.parametrize(
    "place, value",
    [
        (("manifest", "config", "suites"), []),
        (("manifest", "config", "samples"), None),
        (("manifest", "config", "engine"), "x"),
        (("manifest", "inputs"), 3),
        (("manifest", "about"), [1]),
        (("manifest",), "x"),
        (("scores",), {}),
        (("scores", "puzzles", "k"), 0),
        (("scores", "puzzles", "missing"), "none"),
        (("scores", "puzzles", "interval"), []),
        (("scores", "puzzles", "per_problem"), [{"problem_id": "p0"}]),
        (("scores", "puzzles", "per_problem", 0, "judged"), 3),
        (("scores", "puzzles", "per_problem", 0, "right"), "7"),
    ],
)
def test_a_baseline_of_another_program_with_a_valid_hash_is_no_crash(stored, tmp_path, place, value):
    _, file, _ = stored
    body = json.loads(file.read_text())
    inner = body
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    body["sha256"] = baseline_hash(body)
    file.write_text(json.dumps(body))
    found = refused(file, write_run(tmp_path / "other", GOOD))
    assert found["field"] == "base.json" and "is no baseline that can be read" in found["reason"]
    assert klearbench("regress", file, "--plan", 3).code == 3


@pytest.mark.parametrize("fault", ["scores", "missing", "judge_errors"])
def test_no_baseline_is_made_of_a_run_that_may_not_be_trusted(tmp_path, fault):
    run = write_run(tmp_path / "run", GOOD, wrong="judge_error" if fault == "judge_errors" else "wrong_answer")
    if fault == "scores":
        (run / "scores.json").unlink()
    if fault == "missing":
        raw = (run / "verdicts.jsonl").read_bytes()
        (run / "verdicts.jsonl").write_bytes(raw[: len(raw) // 2])
    file = tmp_path / "base.json"
    file.write_text("the old one")
    done = klearbench("baseline", run, "-o", file)
    assert (done.code, len(done.err), file.read_text()) == (3, 1, "the old one")
    assert f"no baseline of it ({fault}): " in done.err[0]
    if fault == "judge_errors":  # 20 of 160 samples
        assert klearbench("baseline", run, "-o", file, "--max-judge-errors", 12.5).code == 0
        assert refused(file, run)["field"] == "judge_errors", "the gate has its own bound"


def test_a_baseline_is_replaced_whole_and_leaves_nothing_beside_it(stored, tmp_path, monkeypatch):
    run, file, _ = stored
    old = file.read_bytes()
    monkeypatch.setitem(faults._PLAN, "write_atomic", (faults._SEEN["write_atomic"] + 1, "enospc"))
    done = klearbench("baseline", write_run(tmp_path / "new", BAD), "-o", file)
    assert (done.code, len(done.err), file.read_bytes() == old) == (2, 1, True)
    assert [path.name for path in file.parent.iterdir()] == ["base.json"]
    assert klearbench("baseline", run, "-o", file).code == 0
    assert file.read_bytes() == old, "the same run gives the same bytes"


def test_a_baseline_can_not_be_made_of_what_is_no_run_or_written_over_a_folder(tmp_path):
    run = write_run(tmp_path / "run", GOOD)
    for words in ((tmp_path / "nowhere", "-o", tmp_path / "x.json"), (run, "-o", tmp_path), (run,)):
        done = klearbench("baseline", *words)
        assert (done.code, len(done.err)) == (2, 1)


def test_a_baseline_is_small_and_holds_no_text(tmp_path):
    run = write_run(tmp_path / "run", {"lcb": {f"problem-{i:04}": i % 9 for i in range(279)}})
    file = tmp_path / "base.json"
    assert klearbench("baseline", run, "-o", file).code == 0
    assert file.stat().st_size < 60_000
    assert '"text"' not in file.read_text(), "no completion"
