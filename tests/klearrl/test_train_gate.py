"""The gate that a recipe asks for after every evaluation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import tiny

from klearbench.errors import ConfigError
from klearbench.scoring.measures import METRICS
from klearrl.config import GateMetric, load_train_recipe

pytestmark = pytest.mark.train

EVALUATION = {"suites": ["puzzles"], "samples": 2, "limit": 6, "max_tokens": 4, "temperature": 1.0}
STAGE = {**tiny.SFT_STAGE, "steps": 6, "eval_every": 2, "save_every": 4}
STOP = "evaluation.gate.on_regression=stop"
WARN = "evaluation.gate.on_regression=warn"


def train(folder, *options, stage=STAGE, gate=None, **kwargs):
    """A run with evaluations at steps 2, 4 and 6."""
    data = folder / "data"
    if not data.exists():
        tiny.write_dataset(data)
    evaluation = {**EVALUATION, **({"gate": gate} if gate else {})}
    recipe = tiny.write_recipe(folder / "recipe.yaml", tiny.recipe(data, [stage], evaluation=evaluation))
    sets = [part for option in options for part in ("--set", option)]
    return tiny.klearrl("train", recipe, "-o", folder / "run", *sets, **kwargs)


def gate_of(folder: Path, step: int) -> dict:
    return json.loads((folder / "run" / "evals" / f"sft-{step}" / "gate" / "regress.json").read_text())


def steps_trained(folder: Path) -> list[str]:
    return [line.split()[-1] for line in tiny.log_lines(folder / "run", "optimizer step")]


def best_baseline(folder: Path, run: Path) -> Path:
    """A baseline of the same suite and sampling in which every sample is right: any tiny model is far below it."""
    from klearbench.scoring.baseline import baseline_hash, write_baseline

    write_baseline(run, folder / "baseline.json")
    body = json.loads((folder / "baseline.json").read_text())
    for row in body["scores"]["puzzles"]["per_problem"]:
        row["right"] = row["judged"]
    body["scores"]["puzzles"]["avg"] = 100.0
    body["sha256"] = baseline_hash(body)
    (folder / "baseline.json").write_text(json.dumps(body))
    return folder / "baseline.json"


@pytest.fixture(scope="module")
def warned(tmp_path_factory):
    """A finished run whose gate asks for the previous evaluation, and warns."""
    folder = tmp_path_factory.mktemp("warned")
    done = train(folder, gate={"against": "previous", "metrics": ["avg@k", "truncated"], "max_drop": 5})
    assert done.code == 0, done.text
    return folder, done


@pytest.fixture(scope="module")
def baseline(warned, tmp_path_factory):
    return best_baseline(tmp_path_factory.mktemp("baseline"), warned[0] / "run" / "evals" / "sft-2")


def test_every_evaluation_is_compared_with_the_one_before_it(warned):
    folder, done = warned
    assert not (folder / "run" / "evals" / "sft-2" / "gate").exists(), "the first has none before it"
    for step in (4, 6):
        gate = folder / "run" / "evals" / f"sft-{step}" / "gate"
        assert sorted(p.name for p in gate.iterdir()) == ["regress.json", "regress.md", "regress.xml"]
        assert gate_of(folder, step)["base"]["step"] == step - 2
        assert gate_of(folder, step)["candidate"]["step"] == step
        assert gate_of(folder, step)["options"]["max_drop"] == {"": 5.0}
        assert "](<../report.html" in (gate / "regress.md").read_text()
    said = [line for line in done.text.splitlines() if line.startswith("gate: ")]
    assert len([line for line in said if "against step" in line and "allowed drop 5" in line]) == 4, "a line a test"
    assert set(said) <= set(tiny.log_lines(folder / "run", "gate: "))


def test_what_is_evaluated_is_saved(warned):
    """The best may be any of them, and the gate may stop at any: save_every is 4, and step 2 was evaluated."""
    folder, _ = warned
    checkpoints = folder / "run" / "stages" / "sft" / "checkpoints"
    best = json.loads((checkpoints / "best.json").read_text())
    assert [row["step"] for row in best["checkpoints"]] == [2, 4, 6]
    assert os.readlink(checkpoints / "best") == f"step-{best['step']}"
    assert best["rule"] == "shown" and best["confidence"] == 0.95
    assert {row["step"]: row["beside_best"] for row in best["checkpoints"]}[best["step"]] == "best"


def test_the_gate_is_recorded_and_decides_nothing_about_the_run(warned):
    folder, _ = warned
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert manifest["about"]["evaluation"]["gate"]["metrics"] == ["avg@k", "truncated"]
    assert not {"gate", "best"} & set(manifest["config"]["evaluation"])


def test_stop_ends_with_exit_1_and_the_same_command_stops_again_at_once(baseline, tmp_path):
    gate = {"against": str(baseline), "on_regression": "stop"}
    first = train(tmp_path, gate=gate)
    assert first.code == 1, first.text
    line = first.text.splitlines()[-1]
    assert "gate: sft step 2 against" in line and "100.0 -> " in line and "regressed" in line
    assert line.endswith("--set evaluation.gate.on_regression=warn") and "Traceback" not in first.text
    assert gate_of(tmp_path, 2)["status"] == "regressed"
    assert (tmp_path / "run" / "stages" / "sft" / "checkpoints" / "step-2" / "state.json").exists()
    assert steps_trained(tmp_path) == ["1", "2"]
    samples = (tmp_path / "run" / "evals" / "sft-2" / "samples.jsonl").stat().st_mtime_ns

    again = train(tmp_path, gate=gate)
    assert (again.code, again.text.splitlines()) == (1, [line]), "no model is loaded, nothing else is said"
    assert steps_trained(tmp_path) == ["1", "2"]
    assert (tmp_path / "run" / "evals" / "sft-2" / "samples.jsonl").stat().st_mtime_ns == samples

    on = train(tmp_path, WARN, gate=gate)
    assert on.code == 0, on.text
    assert steps_trained(tmp_path) == ["1", "2", "3", "4", "5", "6"]
    assert (tmp_path / "run" / "model").exists()
    asked = [line.split()[3] for line in on.text.splitlines() if line.startswith("gate: ") and "puzzles avg@2" in line]
    assert asked == ["2", "4", "6"], "once more at 2"

    back = train(tmp_path, gate=gate)
    assert back.code == 1 and "gate: sft step 6" in back.text, "a finished stage is asked about as well"


def test_a_gate_may_be_taken_away_and_the_result_is_that_of_no_gate(baseline, warned, tmp_path):
    assert train(tmp_path, gate={"against": str(baseline), "on_regression": "stop"}).code == 1
    assert train(tmp_path).code == 0
    wanted, got = (tiny.folder_weights(f / "run" / "model") for f in (warned[0], tmp_path))
    assert tiny.difference(wanted, got) == 0.0
    places = [f / "run" / "stages" / "sft" / "checkpoints" / "best.json" for f in (warned[0], tmp_path)]
    assert json.loads(places[0].read_text()) == json.loads(places[1].read_text())


def test_two_ranks_stop_together(baseline, tmp_path):
    gate = {"against": str(baseline), "on_regression": "stop"}
    for _ in range(2):
        done = train(tmp_path, gate=gate, ranks=2)
        assert done.code == 1 and "gate: sft step 2 against" in done.text
        assert "Traceback" not in done.text
    assert train(tmp_path, gate={**gate, "on_regression": "warn"}, ranks=2).code == 0


def test_a_gate_that_cannot_decide_does_not_pass_under_stop(warned, tmp_path):
    """A baseline of 3 samples a problem, where the run takes 2."""
    from klearbench.scoring.baseline import baseline_hash, write_baseline

    path = tmp_path / "baseline.json"
    write_baseline(warned[0] / "run" / "evals" / "sft-2", path)
    body = json.loads(path.read_text())
    body["manifest"]["config"]["samples"] = 3
    path.write_text(json.dumps({**body, "sha256": baseline_hash(body)}))
    stage = {**STAGE, "steps": 2}
    done = train(tmp_path, stage=stage, gate={"against": str(path), "on_regression": "stop"})
    assert done.code == 3 and "the gate can't decide (samples)" in done.text.splitlines()[-1]
    done = train(tmp_path, WARN, stage=stage, gate={"against": str(path), "on_regression": "stop"})
    assert done.code == 0 and "not comparable (samples)" in done.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("metrics=[pass@k]", "evaluation.gate.metrics.0 is 'pass@k': Input should be 'avg@k', 'truncated'"),
        ("metrics=[length, length]", "metrics: name at least one, and each once"),
        ("metrics=[]", "metrics: name at least one, and each once"),
        ("max_drop=100", "Input should be less than 100"),
        ("max_drop={puzzles: -1}", "Input should be greater than or equal to 0"),
        ("max_drop=.nan", "Input should be"),
        ("confidence=0.5", "evaluation.gate.confidence is 0.5: Input should be greater than 0.5"),
        ("on_regression=halt", "Input should be 'warn' or 'stop'"),
        ("again=previous", "unknown key 'evaluation.gate.again'; did you mean 'against'?"),
    ],
)
def test_a_gate_that_makes_no_sense_is_one_line_at_once(tmp_path, change, message):
    recipe = tiny.recipe(tmp_path, [STAGE], evaluation=EVALUATION)
    path = tiny.write_recipe(tmp_path / "r.yaml", recipe)
    with pytest.raises(ConfigError) as caught:
        load_train_recipe(path, [f"evaluation.gate.{change}"])
    assert message in str(caught.value) and "\n" not in str(caught.value) and "more)" not in str(caught.value)


def test_a_gate_without_suites_is_refused(tmp_path):
    path = tiny.write_recipe(tmp_path / "r.yaml", tiny.recipe(tmp_path, [STAGE]))
    with pytest.raises(ConfigError, match="a gate needs suites"):
        load_train_recipe(path, ["evaluation.gate.against=first"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("against=previus", "unknown evaluation 'previus'; did you mean 'previous'?"),
        ("max_drop={puzzels: 1}", "unknown suite or metric 'puzzels'; did you mean 'puzzles'?"),
        ("against=DATA", "is no run folder"),
    ],
)
def test_what_a_gate_names_is_looked_up_before_training(tmp_path, change, message):
    done = train(tmp_path, f"evaluation.gate.{change.replace('DATA', str(tmp_path / 'data'))}")
    assert done.code == 2 and message in done.text and len(done.text.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_the_recipes_metrics_are_the_gates(tmp_path):
    assert set(get_args(GateMetric)) == set(METRICS)


def test_a_recipe_with_a_gate_loads_no_torch(tmp_path):
    path = tiny.write_recipe(
        tmp_path / "r.yaml", tiny.recipe(tmp_path, [STAGE], evaluation={**EVALUATION, "gate": {"max_drop": 1}})
    )
    code = (
        "import sys, pathlib; from klearrl.config import load_train_recipe;"
        f"load_train_recipe(pathlib.Path({str(path)!r}));"
        "print([m for m in ('torch', 'transformers', 'datasets', 'vllm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert done.stdout.strip() == "[]"
