"""Recipes of training: what is refused, in one line with a place, and the dry run."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tiny
import yaml
from click.testing import CliRunner

from klearbench.errors import ConfigError
from klearrl.cli import cli
from klearrl.config import RlStage, SftStage, load_train_recipe

pytestmark = pytest.mark.train

GOOD = """\
name: tiny
data: data
model: {new: {hidden_size: 16}}
stages:
  - name: sft
    kind: sft
    steps: 4
    optimizer: {lr: 1.0e-3}
  - name: rl
    kind: rl
    steps: 2
    prompts: 8
    mini_batches: 4
    optimizer: {lr: 1.0e-4}
"""


def load(tmp_path, text=GOOD, *overrides):
    path = tmp_path / "r.yaml"
    path.write_text(text)
    return load_train_recipe(path, overrides)


def test_defaults_are_the_report_s(tmp_path):
    recipe = load(tmp_path)
    sft, rl = recipe.stages
    assert isinstance(sft, SftStage) and isinstance(rl, RlStage)
    assert (rl.loss.kind, rl.loss.clip_low, rl.loss.clip_high, rl.loss.lm_coef) == ("gppo", 0.2, 0.28, 0.1)
    assert (rl.temperature, rl.group_size, rl.optimizer.grad_clip) == (1.0, 8, 1.0)
    assert recipe.dataset_path(rl) == "data"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    steps: 4\n", "    step: 4\n", r"r.yaml:\d+: .*stages.0.step"),
        ("kind: rl", "kind: rll", r"r.yaml:\d+: .*rll"),
        ("mini_batches: 4", "mini_batches: 3", r"mini_batches \(3\) must divide prompts \(8\)"),
        ("name: rl", "name: sft", "stage names must differ"),
        ("data: data\n", "", "stage 'sft' has no data"),
        ("{new: {hidden_size: 16}}", "{}", "exactly one of path and new"),
        ("{new: {hidden_size: 16}}", "{path: a, new: {}}", "exactly one of path and new"),
        ("lr: 1.0e-4", "lr: -1", r"r.yaml:14: stages.1.optimizer.lr is -1"),
        ("steps: 2", "steps: 2\n    temperature: 0", r"r.yaml:12: stages.1.temperature is 0"),
        ("steps: 2", "steps: 2\n    group_size: 1", r"r.yaml:12: stages.1.group_size is 1"),
        ("steps: 2", "steps: 2\n    loss: {kind: gpo}", r"r.yaml:12: stages.1.loss.kind is 'gpo'.*gppo"),
        ("name: tiny", "name: tiny\ndeepspeed: {zero_stage: 4}", r"r.yaml:2: deepspeed.zero_stage is 4"),
    ],
)
def test_bad_values_are_one_line_with_a_place(tmp_path, old, new, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "bad", "message"),
    [
        (8, "    optimizer: {lr: 1, warm_steps: 3}", "unknown key 'stages.0.optimizer.warm_steps'; did you mean"),
        (12, "    promts: 8", "unknown key 'stages.1.promts'; did you mean 'prompts'?"),
        (3, "modle: {new: {}}", "unknown key 'modle'; did you mean 'model'?"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_named_with_the_nearest_and_exit_code_2(tmp_path, line, bad, message):
    lines = GOOD.splitlines()
    lines[line - 1] = bad
    (tmp_path / "r.yaml").write_text("\n".join(lines))
    done = tiny.klearrl("train", tmp_path / "r.yaml", "-o", tmp_path / "run")
    assert done.code == 2 and len(done.text.splitlines()) == 1
    assert f"r.yaml:{line}: {message}" in done.text
    assert not (tmp_path / "run").exists()


def test_the_dry_run_prints_a_recipe_that_parses_again_and_trains_nothing(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(GOOD)
    arguments = ["train", str(path), "-o", str(tmp_path / "run"), "--dry-run", "--set", "stages.rl.group_size=6"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0
    (tmp_path / "again.yaml").write_text(done.output)
    again = load_train_recipe(tmp_path / "again.yaml")
    assert again == load(tmp_path, GOOD, "stages.rl.group_size=6")
    assert yaml.safe_load(done.output)["stages"][1]["group_size"] == 6
    assert not (tmp_path / "run").exists()


def test_the_dry_run_loads_no_torch(tmp_path):
    (tmp_path / "r.yaml").write_text(GOOD)
    code = (
        "import sys; from klearrl.cli import cli;"
        f"cli(['train', {str(tmp_path / 'r.yaml')!r}, '-o', 'x', '--dry-run'], standalone_mode=False);"
        "assert not {'torch', 'transformers', 'datasets', 'deepspeed'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
