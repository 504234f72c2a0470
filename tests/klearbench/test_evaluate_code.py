"""Evaluation and curation of programs: which judge, what the manifest says, what is refused, resume."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from codefakes import ToySandbox
from tools import ToyEngine, run, write_jsonl

from klearbench.engines.base import Request
from klearbench.errors import DataError, RunConflict
from klearbench.evaluate import EvalOptions, evaluate, rescore
from klearbench.sandbox.base import SandboxError
from klearbench.suites import puzzles
from klearbench.suites.files import load_problem_file
from klearbench.types import CodeTests, ExpectedOutputs

TESTS = [{"input": f"{i}\n", "output": f"{2 * i}\n"} for i in range(4)]
ROWS = [
    {"id": "all", "problem": "Double it, all right.", "tests": TESTS},
    {"id": "half", "problem": "Double it, half right.", "tests": TESTS},
    {"id": "none", "problem": "Double it, in words.", "tests": TESTS},
    {"id": "sum", "problem": "What is 1 + 1?", "answer": "2", "rule": "integer"},
]
REPLIES = {
    "all": "```python\nprint(2 * int(input()))\n```",
    "half": "```python\nx = int(input())\nprint(2 * x if x < 2 else x)\n```",
    "none": "I would double it.",
    "sum": "\\boxed{2}",
}


def reply(request: Request) -> str:
    return REPLIES[request.place[0]]


@pytest.fixture
def suite(tmp_path):
    return load_problem_file(write_jsonl(tmp_path / "both.jsonl", ROWS), "both")


def options(**more) -> EvalOptions:
    return EvalOptions(**{"sandbox": ToySandbox(), **more})


def verdicts(folder) -> dict[str, dict]:
    rows = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    return {row["problem_id"]: row for row in rows}


def test_each_sample_goes_to_the_judge_of_its_kind(tmp_path, suite):
    (score,) = evaluate(tmp_path / "run", [suite], ToyEngine(reply, batch_size=3), options())
    found = {key: (v["status"], v["score"], v["passed"], v["total"]) for key, v in verdicts(tmp_path / "run").items()}
    assert found == {
        "all": ("correct", 1.0, 4, 4),
        "half": ("wrong_answer", 0.5, 2, 4),
        "none": ("no_answer", 0.0, 0, 4),
        "sum": ("correct", 1.0, None, None),
    }
    assert score.avg == 50.0, "half the tests is no point in a score"
    assert rescore(tmp_path / "run")[0].avg == 50.0


def test_the_manifest_names_the_code_judge_only_where_programs_are_judged(tmp_path, suite):
    evaluate(tmp_path / "both", [suite], ToyEngine(reply), options(first_failure=True))
    config = json.loads((tmp_path / "both" / "manifest.json").read_text())["config"]
    assert config["judge"]["name"] == "math"
    assert (config["code_judge"]["name"], config["code_judge"]["mode"]) == ("code", "strict")
    math = replace(suite, problems=suite.problems[3:])
    evaluate(tmp_path / "math", [math], ToyEngine(reply), options())
    assert "code_judge" not in json.loads((tmp_path / "math" / "manifest.json").read_text())["config"]


def test_another_mode_is_another_run(tmp_path, suite):
    evaluate(tmp_path / "run", [suite], ToyEngine(reply), options())
    with pytest.raises(RunConflict, match=r"code_judge\.mode"):
        evaluate(tmp_path / "run", [suite], ToyEngine(reply), options(code_mode="compat"))


def test_nothing_is_asked_of_a_sandbox_for_mathematics(tmp_path, suite):
    sandbox = ToySandbox()
    math = replace(suite, problems=suite.problems[3:])
    evaluate(tmp_path / "run", [math], ToyEngine(reply), options(sandbox=sandbox))
    assert sandbox.seen == []


def test_a_sandbox_that_breaks_is_our_fault_and_a_rerun_heals_it(tmp_path, suite):
    class Broken(ToySandbox):
        def open(self, role="submission"):
            raise SandboxError("the engine went away")

    engine = ToyEngine(reply)
    (score,) = evaluate(tmp_path / "run", [suite], engine, options(sandbox=Broken(), allow_partial=True))
    assert (score.judge_errors, score.complete, score.avg) == (2, False, 50.0)
    assert {v["score"] for v in verdicts(tmp_path / "run").values() if v["status"] == "judge_error"} == {None}
    calls = len(engine.calls)
    (healed,) = evaluate(tmp_path / "run", [suite], engine, options())
    assert (len(engine.calls), healed.complete, healed.avg) == (calls, True, 50.0)


@pytest.mark.parametrize("outputs", [(), ("0\n",)])
def test_tests_that_cannot_be_judged_are_refused_before_anything_is_sampled(tmp_path, suite, outputs):
    good = suite.answers["half"]
    assert isinstance(good, CodeTests)
    bad = {**suite.answers, "half": replace(good, expected=ExpectedOutputs("half", outputs))}
    engine = ToyEngine(reply)
    with pytest.raises(DataError, match="half"):
        evaluate(tmp_path / "run", [replace(suite, answers=bad)], engine, options())
    assert engine.calls == [] and not (tmp_path / "run").exists()


def test_the_embedded_programs_are_judged_by_their_tests(tmp_path):
    from klearbench.engines.scripted import ScriptedEngine

    suite = puzzles.load("code", "test", 12)
    never, always = ScriptedEngine(errors={"max": 0, "min": 0}), ScriptedEngine(errors={"max": 1, "min": 1})
    (right,) = evaluate(tmp_path / "right", [suite], never, options())
    (wrong,) = evaluate(tmp_path / "wrong", [suite], always, options())
    assert (right.avg, wrong.avg) == (100.0, 0.0)
    assert all(0 < v["score"] < 1 for v in verdicts(tmp_path / "wrong").values())


def test_the_command_takes_the_modes_that_make_sense():
    done = run("klearbench", "eval", "--suite", "puzzles-code", "--engine", "scripted", "--mode", "both")
    assert done.returncode == 2 and "'both' is not one of 'strict', 'compat'" in done.stderr
    help_text = run("klearbench", "eval", "--help").stdout
    assert "--sandbox" in help_text and "--first-failure" in help_text
