"""Rule 2 for programs: an expected output enters no prompt, no engine and no sandbox in which a submission runs.

Every expected output is a number that no program can know. A toy sandbox remembers all that enters its slots.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from codefakes import ToySandbox
from test_canary import FIRST, MARK, assert_saw_nothing, echo, leaks
from tools import ToyEngine, write_jsonl

from klearbench.engines.base import Request, Sampling, as_sample
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.suites.files import load_problem_file
from klearbench.suites.references import JudgeOptions, open_judges

CHECK = "def check(input, expected, output):\n    return output.split() == expected.split()\n"


def rows() -> list[dict]:
    """Four problems of three tests; the third one has a checker program."""
    return [
        {
            "id": f"c{i}", "problem": f"Write program {i}.", "mode": "functional", "fn_name": "f",
            "tests": [{"input": str(10 * i + j), "output": str(FIRST + j)} for j in range(3)],
            **({"checker": CHECK} if i == 2 else {}),
        }
        for i in range(4)
    ]  # fmt: skip


def program(request: Request) -> str:
    """A model that tells all it was told, and writes a program that returns all it is given."""
    return f"{echo(request)}\n```python\ndef f(x):\n    return x\n```"


def entered(sandbox: ToySandbox, role: str) -> str:
    return repr([(command, given) for where, command, given in sandbox.seen if where == role])


def assert_submissions_saw_nothing(sandbox: ToySandbox) -> None:
    """The inputs came, so it is the right place to look; the mark came to the checker alone."""
    shown = entered(sandbox, "submission")
    assert "def f(x)" in shown and "b'31'" in shown
    assert MARK not in shown
    assert MARK in entered(sandbox, "checker")


def test_evaluation(tmp_path):
    suite = load_problem_file(write_jsonl(tmp_path / "code.jsonl", rows()), "code")
    assert MARK not in repr([asdict(problem) for problem in suite.problems])
    engine, sandbox = ToyEngine(program, batch_size=3), ToySandbox()
    (score,) = evaluate(tmp_path / "run", [suite], engine, EvalOptions(samples=2, sandbox=sandbox))
    assert score.complete and score.avg == 0.0
    assert_saw_nothing(engine)
    assert_submissions_saw_nothing(sandbox)
    assert "Write program 3" in (tmp_path / "run" / "samples.jsonl").read_text(), "the engine echoes its prompt"
    assert leaks(tmp_path / "run") == ["report.html", "verdicts.jsonl"], "a verdict may say what was expected"


RECIPE = """
name: secrets
sources: [{file: secrets.jsonl, name: secrets, licence: mit}]
teacher: {engine: scripted, max_tokens: 64}
verify: {wrong: keep}
outputs: [{name: sft}, {name: rl}]
"""


def test_distillation(tmp_path, monkeypatch):
    """The tests stand in the RL rows, which a trainer's judge needs, and in the judge's own log."""
    from klearbench.curation import pipeline

    write_jsonl(tmp_path / "secrets.jsonl", rows())
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    engine, sandbox = ToyEngine(program, batch_size=3), ToySandbox()
    monkeypatch.setattr(pipeline, "build_engine", lambda name, options: engine)
    monkeypatch.setattr(pipeline, "JudgeOptions", lambda *_, **__: JudgeOptions(sandbox=sandbox))
    pipeline.curate(tmp_path / "recipe.yaml", tmp_path / "data", say=lambda _: None)
    assert_saw_nothing(engine)
    assert_submissions_saw_nothing(sandbox)
    found = leaks(tmp_path / "data", "verdicts.jsonl")
    assert found and all("rl" in Path(name).name and name.endswith(".parquet") for name in found), found


@pytest.mark.train
def test_rewards():
    from klearbench.judging.rewards import judge_rollouts
    from klearrl.data import split_rl_rows

    table = [
        {"id": row.pop("id"), "prompt": [{"role": "user", "content": row.pop("problem")}], "kind": "code", "tests": row}
        for row in rows()
    ]
    prompts, references = split_rl_rows(iter(table))
    assert MARK not in repr(prompts)
    engine, sandbox = ToyEngine(program), ToySandbox()
    requests = [Request(p.prompt, 0, (p.id, 0)) for p in prompts]
    made = engine.generate(requests, Sampling())
    samples = [as_sample("rl", r, g) for r, g in zip(requests, made, strict=True)]
    with open_judges(references.values(), JudgeOptions(sandbox=sandbox)) as judge:
        rewards = [value for value, _ in judge_rollouts(samples, references, judge)]
    assert rewards == [0.0] * 4
    assert_saw_nothing(engine)
    assert_submissions_saw_nothing(sandbox)
