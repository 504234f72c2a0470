"""Whole runs: rerun, extend, refuse; stages that follow one another; evaluation of checkpoints."""

from __future__ import annotations

import json
import os

import pytest
import tiny
from transformers import AutoModelForCausalLM, AutoTokenizer

pytestmark = pytest.mark.train


def two_stages(folder, *, sft=None, rl=None, data=None):
    data = data or tiny.write_dataset(folder / "data")
    stages = [{**tiny.SFT_STAGE, **(sft or {})}, {**tiny.RL_STAGE, "steps": 2, **(rl or {})}]
    return tiny.write_recipe(folder / "recipe.yaml", tiny.recipe(data, stages))


def train(folder, *options, **kwargs):
    return tiny.klearrl("train", folder / "recipe.yaml", "-o", folder / "run", *options, **kwargs)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 30 SFT steps and 2 rollout batches."""
    folder = tmp_path_factory.mktemp("finished")
    two_stages(folder, sft={"steps": 30})
    done = train(folder)
    assert done.code == 0, done.text
    return folder


def test_a_run_leaves_what_the_architecture_names(finished):
    run = finished / "run"
    names = {p.name for p in run.iterdir()}
    assert names == {"manifest.json", "metrics.jsonl", "log.txt", "stages", "model"}
    assert sorted(p.name for p in (run / "stages" / "rl" / "rollouts").iterdir()) == [
        "step-00001.parquet",
        "step-00002.parquet",
    ]
    assert os.readlink(run / "stages" / "sft" / "checkpoints" / "last") == "step-30"
    assert [r["step"] for r in tiny.metrics(run) if r["stage"] == "rl"] == [1, 2]
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["config"]["stages"][0]["steps"] == 30 and manifest["versions"]["torch"]
    model = AutoModelForCausalLM.from_pretrained(run / "model")
    assert AutoTokenizer.from_pretrained(run / "model").eos_token_id == model.generation_config.eos_token_id
    last, shown = (tiny.folder_weights(p) for p in (run / "stages" / "rl" / "model", run / "model"))
    assert tiny.difference(last, shown) == 0.0


def test_a_rerun_of_a_finished_run_does_nothing(finished):
    run = finished / "run"
    before = {
        p: p.stat().st_mtime_ns for p in run.rglob("*") if p.is_file() and p.name not in ("manifest.json", ".lock")
    }
    done = train(finished)
    assert done.code == 0
    assert done.text.splitlines()[:2] == ["sft: finished (30 steps)", "rl: finished (2 steps)"]
    after = {
        p: p.stat().st_mtime_ns for p in run.rglob("*") if p.is_file() and p.name not in ("manifest.json", ".lock")
    }
    assert after == before


def test_more_steps_of_the_last_stage_extend(finished, tmp_path):
    """Two and two more rollout batches end with the weights of four (the schedule is constant)."""
    two_stages(tmp_path, sft={"steps": 5})
    assert train(tmp_path).code == 0
    seen = len(tiny.log_lines(tmp_path / "run", "optimizer step"))
    done = train(tmp_path, "--set", "stages.rl.steps=4")
    assert done.code == 0 and "sft: finished" in done.text
    made = tiny.log_lines(tmp_path / "run", "optimizer step")[seen:]
    assert made and all(line.split()[3].partition(".")[0] in ("3", "4") for line in made)
    straight = tmp_path / "straight"
    straight.mkdir()
    two_stages(straight, sft={"steps": 5}, rl={"steps": 4}, data=tmp_path / "data")
    assert train(straight).code == 0
    wanted, got = (tiny.folder_weights(f / "run" / "model") for f in (straight, tmp_path))
    assert tiny.difference(wanted, got) == 0.0
    assert tiny.metrics(straight / "run") == tiny.metrics(tmp_path / "run")


def test_a_kill_between_the_last_checkpoint_and_the_model_of_an_extension(tmp_path):
    """The folder of the shorter training must not pass for the result of the longer one."""
    one_stage(tmp_path)
    assert train(tmp_path).code == 0
    longer = ("--set", "stages.sft.steps=6")
    assert train(tmp_path, *longer, fault="model.write:1:kill").code == -9
    assert train(tmp_path, *longer).code == 0
    shown = tiny.folder_weights(tmp_path / "run" / "model")
    done = tiny.klearrl(
        "export", tmp_path / "run" / "stages" / "sft" / "checkpoints" / "step-6", "-o", tmp_path / "out"
    )
    assert done.code == 0
    assert tiny.difference(shown, tiny.folder_weights(tmp_path / "out")) == 0.0


def one_stage(folder, **changes):
    data = tiny.write_dataset(folder / "data")
    stage = {**tiny.SFT_STAGE, "steps": 4, **changes}
    return tiny.write_recipe(folder / "recipe.yaml", tiny.recipe(data, [stage]))


def test_more_steps_of_an_earlier_stage_are_refused_and_harm_nothing(finished):
    done = train(finished, "--set", "stages.sft.steps=40")
    assert done.code == 2
    assert (
        "stage 'sft' stands at 30 steps and 'rl' was trained from it; more steps of 'sft' need another -o" in done.text
    )
    again = train(finished)
    assert again.code == 0 and "rl: finished" in again.text, "the run is as usable as before"


def test_an_earlier_stage_is_refused_once_the_later_one_has_sampled(tmp_path):
    """The later stage has rollouts and no checkpoint: they are of a model that more steps would replace."""
    two_stages(tmp_path)
    assert train(tmp_path, fault="optimizer.step:9:kill").code == -9
    assert list((tmp_path / "run" / "stages" / "rl" / "rollouts").glob("*.parquet"))
    done = train(tmp_path, "--set", "stages.sft.steps=12")
    assert done.code == 2 and "more steps of 'sft' need another -o" in done.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("seed=6", "was made with seed = 5, this command has 6; use the same seed, or another -o"),
        ("stages.rl.loss.kind=cispo", "stages.1.loss.kind = 'gppo', this command has 'cispo'"),
        ("stages.rl.steps=1", "stages.1.steps = 2, this command has 1"),
        ("deepspeed.zero_stage=2", "deepspeed.zero_stage = 0, this command has 2"),
    ],
)
def test_another_field_is_refused_by_name(finished, change, message):
    done = train(finished, "--set", change)
    assert done.code == 2 and message in done.text and len(done.text.splitlines()) == 1


def test_changed_data_are_refused(tmp_path):
    one_stage(tmp_path)
    assert train(tmp_path).code == 0
    tiny.write_dataset(tmp_path / "data", sft=tiny.SFT_ROWS[:30])
    done = train(tmp_path)
    assert done.code == 2 and "inputs.data:" in done.text


def test_a_second_process_on_the_run_is_refused(tmp_path):
    from klearbench.run import Lock

    one_stage(tmp_path)
    lock = Lock(tmp_path / "run" / ".lock")
    try:
        done = train(tmp_path)
    finally:
        lock.release()
    assert done.code == 2 and "is in use by process" in done.text


def test_a_full_disk_is_exit_2_and_the_older_checkpoint_goes_on(tmp_path):
    one_stage(tmp_path)
    done = train(tmp_path, fault="checkpoint.write:3:enospc")
    assert done.code == 2 and "no space left on the disk" in done.text.splitlines()[-1]
    assert os.readlink(tmp_path / "run" / "stages" / "sft" / "checkpoints" / "last") == "step-2"
    assert train(tmp_path).code == 0
    assert len(tiny.log_lines(tmp_path / "run", "optimizer step")) == 5


def test_a_run_starts_from_a_model_folder(finished, tmp_path):
    data = tiny.write_dataset(tmp_path / "data")
    start = {"path": str(finished / "run" / "stages" / "sft" / "model")}
    tiny.write_recipe(tmp_path / "recipe.yaml", tiny.recipe(data, [{**tiny.RL_STAGE, "steps": 2}], model=start))
    assert train(tmp_path).code == 0
    wanted, got = (tiny.folder_weights(f / "run" / "model") for f in (finished, tmp_path))
    assert tiny.difference(wanted, got) == 0.0, "the second stage of a run is that stage alone on the first's model"


EVALUATION = {"suites": ["puzzles"], "samples": 1, "limit": 6, "max_tokens": 4, "temperature": 1.0}


def test_checkpoints_are_evaluated_and_the_best_is_marked(tmp_path):
    data = tiny.write_dataset(tmp_path / "data")
    stage = {**tiny.SFT_STAGE, "steps": 4, "eval_every": 2, "keep_last": 1}
    evaluation = {**EVALUATION, "best": "highest"}
    tiny.write_recipe(tmp_path / "recipe.yaml", tiny.recipe(data, [stage], evaluation=evaluation))
    done = train(tmp_path)
    assert done.code == 0, done.text
    assert sorted(p.name for p in (tmp_path / "run" / "evals").iterdir()) == ["sft-2", "sft-4"]
    checkpoints = tmp_path / "run" / "stages" / "sft" / "checkpoints"
    files = {step: tmp_path / "run" / "evals" / f"sft-{step}" / "scores.json" for step in (2, 4)}
    scores = {step: json.loads(file.read_text())["puzzles"]["avg"] for step, file in files.items()}
    best = 4 if scores[4] > scores[2] else 2
    assert os.readlink(checkpoints / "best") == f"step-{best}"
    assert {p.name for p in checkpoints.glob("step-*")} == {f"step-{best}", "step-4"}, "the last, and the best"


def test_an_evaluation_that_was_interrupted_is_finished(tmp_path):
    data = tiny.write_dataset(tmp_path / "data")
    stage = {**tiny.SFT_STAGE, "steps": 4, "eval_every": 2}
    tiny.write_recipe(tmp_path / "recipe.yaml", tiny.recipe(data, [stage], evaluation=EVALUATION))
    assert train(tmp_path, fault="append.samples.jsonl:3:kill").code == -9
    assert not (tmp_path / "run" / "evals" / "sft-2" / "scores.json").exists()
    assert train(tmp_path).code == 0
    assert (tmp_path / "run" / "evals" / "sft-2" / "scores.json").exists(), "the one that the kill broke off, too"
    assert (tmp_path / "run" / "evals" / "sft-4" / "scores.json").exists()
    assert len(tiny.log_lines(tmp_path / "run", "optimizer step")) == 4
