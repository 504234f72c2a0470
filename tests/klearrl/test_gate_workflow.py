"""The ready workflow's steps and the shell example, run here from a checkpoint to the exit code and the Markdown.

Nothing is played but `gh`, which would reach a server, and the installation, which is that of these tests.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

pytest.importorskip("deepspeed")

import tiny

from klearbench.scoring.baseline import baseline_hash

pytestmark = pytest.mark.train
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "recipes" / "gate" / "gate.sh"
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "checkpoint-gate.yml").read_text())
JOB = WORKFLOW["jobs"]["gate"]
FLAGS = "--temperature 1 --max-tokens 6 --batch-size 64 --chat-template plain"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint of klearrl (a few steps of SFT) and a suite of the rows it was trained on."""
    folder = tmp_path_factory.mktemp("gate")
    data = tiny.write_dataset(folder / "data")
    stage = {**tiny.SFT_STAGE, "steps": 8, "save_every": 8}
    done = tiny.klearrl(
        "train", tiny.write_recipe(folder / "recipe.yaml", tiny.recipe(data, [stage])), "-o", folder / "trained"
    )
    assert done.code == 0, done.text
    rows = [{"id": f"p{i}", "problem": tiny.question(i), "answer": str(tiny.NUMBERS[i % 3])} for i in range(12)]
    (folder / "picks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def checkpoint(place: Path) -> Path:
    return place / "trained" / "stages" / str(tiny.SFT_STAGE["name"]) / "checkpoints" / "last"


def environment(place: Path, out: Path, **more: str) -> dict[str, str]:
    """A shell's variables, with the commands of this installation first."""
    path = f"{place / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    fixed = {"PATH": path, "HOME": str(place), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    inputs = {
        "CHECKPOINT": str(checkpoint(place)), "SUITES": str(place / "picks.jsonl"), "SAMPLES": "8",
        "BASELINE": str(out / "baseline.json"), "OUT": str(out), "EVAL_FLAGS": FLAGS,
    }  # fmt: skip
    return fixed | inputs | more


def gate(place: Path, out: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The shell example as a user starts it."""
    return subprocess.run(
        [str(SCRIPT)], env=environment(place, out, **more), cwd=place, capture_output=True, text=True, timeout=300
    )


def better(path: Path, out: Path) -> Path:
    """The baseline with every sample right: counts and hash fit together."""
    body = json.loads(path.read_text())
    for score in body["scores"].values():
        for row in score["per_problem"]:
            row["right"], row["truncated"] = row["judged"], 0
    out.write_text(json.dumps({**body, "sha256": baseline_hash(body)}))
    return out


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


@pytest.fixture(scope="module")
def first(place: Path) -> Path:
    """What the example's first use leaves: a run, and the baseline that it became."""
    done = gate(place, place / "out", GITHUB_STEP_SUMMARY=str(place / "summary.md"))
    assert done.returncode == 0, done.stderr
    assert "no baseline was there" in done.stdout
    return place / "out"


def test_the_example_goes_from_a_checkpoint_to_an_exit_code(place: Path, first: Path) -> None:
    assert (first / "baseline.json").is_file()
    assert list(first.glob("model-step-*/model.safetensors")), "the checkpoint was exported"
    assert lines(first / "run" / "samples.jsonl") == 12 * 8
    told = (place / "summary.md").read_text()
    assert told.startswith("no baseline was there") and told.endswith((first / "gate" / "regress.md").read_text())
    assert "\n## Gate passed" in told
    assert (first / "report" / "report.html").is_file()
    cases = ElementTree.parse(first / "gate" / "regress.xml").getroot()
    assert (cases.get("tests"), cases.get("failures"), cases.get("errors")) == ("1", "0", "0")


def test_a_rerun_makes_nothing_twice_and_a_better_baseline_fails_it(place: Path, first: Path, tmp_path: Path) -> None:
    samples = (first / "run" / "samples.jsonl").read_bytes()
    worse = gate(place, first, BASELINE=str(better(first / "baseline.json", tmp_path / "better.json")))
    assert worse.returncode == 1, worse.stderr
    assert (first / "run" / "samples.jsonl").read_bytes() == samples
    told = json.loads((first / "gate" / "regress.json").read_text())
    assert told["status"] == "regressed" and told["tests"][0]["worst"]
    link = re.search(r"\]\(<([^>#]+)#", (first / "gate" / "regress.md").read_text())
    assert link and (first / "gate" / link[1]).is_file(), "links lead to the published report"


def test_another_temperature_than_the_baselines_is_not_comparable(place: Path, first: Path, tmp_path: Path) -> None:
    flags = FLAGS.replace("--temperature 1", "--temperature 0.5")
    other = gate(place, tmp_path / "b", BASELINE=str(first / "baseline.json"), EVAL_FLAGS=flags)
    assert other.returncode == 3 and "(sampling.temperature)" in other.stderr
    assert "sampling.temperature" in (tmp_path / "b" / "gate" / "regress.md").read_text()


def test_a_baseline_that_has_to_be_there_is_not_made(place: Path, tmp_path: Path) -> None:
    done = gate(place, tmp_path / "a", BASELINE_REQUIRED="1")
    assert done.returncode == 2 and f"no baseline {tmp_path / 'a' / 'baseline.json'}" in done.stderr
    assert not (tmp_path / "a").exists()


def test_a_missing_checkpoint_is_bad_input(place: Path, tmp_path: Path) -> None:
    nameless = gate(place, tmp_path / "a", CHECKPOINT="")
    assert nameless.returncode == 2 and "set CHECKPOINT" in nameless.stderr
    absent = gate(place, tmp_path / "b", CHECKPOINT=str(tmp_path / "absent" / "model"))
    assert absent.returncode == 2 and "Traceback" not in absent.stderr, absent.stderr


class Runner:
    """What a runner does with a job: its variables, its steps in order, outputs handed on, `if: always()`."""

    def __init__(self, place: Path, tree: Path, inputs: dict[str, str]) -> None:
        self.place, self.tree = place, tree
        given = {name: str(spec.get("default", "")) for name, spec in WORKFLOW[True]["workflow_call"]["inputs"].items()}
        self.names: dict[str, str] = {f"inputs.{name}": value for name, value in {**given, **inputs}.items()}
        self.names |= {"github.token": "token", "github.event.pull_request.number": "7"}
        self.failed: list[str] = []
        self.code = 0

    def value(self, text: Any) -> str:
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: self.names[found[1]], str(text))

    def run(self, tmp_path: Path) -> None:
        for number, step in enumerate(JOB["steps"]):
            if (
                "run" in step
                and step.get("name") != "Install"
                and (not self.failed or "always()" in step.get("if", ""))
            ):
                self._step(step, tmp_path, number)

    def _step(self, step: dict[str, Any], tmp_path: Path, number: int) -> None:
        output = tmp_path / f"output-{number}"
        output.touch()
        variables = {name: self.value(text) for name, text in {**JOB["env"], **step.get("env", {})}.items()}
        files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
        base = environment(self.place, tmp_path)
        env = {name: base[name] for name in ("PATH", "HOME", "OMP_NUM_THREADS")} | variables | files
        done = subprocess.run(["bash", "-e", "-c", step["run"]], env=env, cwd=self.tree, capture_output=True, text=True)
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.names[f"steps.{step['id']}.outputs.{name}"] = value
        if done.returncode:
            self.failed.append(step["name"])
            self.code = done.returncode


@pytest.fixture
def tree(place: Path, tmp_path: Path) -> Path:
    """A checkout that has the workflow's script, and a `gh` that notes what it was asked."""
    folder = tmp_path / "checkout"
    (folder / "recipes").mkdir(parents=True)
    (folder / "recipes" / "gate").symlink_to(SCRIPT.parent)
    (place / "bin").mkdir(exist_ok=True)
    (place / "bin" / "gh").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {place}/gh.txt\n')
    (place / "bin" / "gh").chmod(0o755)
    return folder


def test_the_workflows_steps_from_checkpoint_to_comment(place: Path, first: Path, tree: Path, tmp_path: Path) -> None:
    inputs = {"checkpoint": str(checkpoint(place)), "suites": str(place / "picks.jsonl"), "eval-flags": FLAGS,
              "baseline": str(first / "baseline.json")}  # fmt: skip
    fine = Runner(place, tree, inputs)
    fine.run(tmp_path)
    assert (fine.code, fine.failed) == (0, [])
    assert (tmp_path / "summary.md").read_text().startswith("## Gate passed")
    assert (place / "gh.txt").read_text().split() == ["pr", "comment", "7", "--body-file", "runs/gate/gate/regress.md"]
    published = next(s for s in JOB["steps"] if "upload-artifact" in s.get("uses", ""))["with"]["path"].splitlines()
    assert all((tree / path).exists() for path in map(fine.value, published))

    worse = str(better(first / "baseline.json", tmp_path / "better.json"))
    second = Runner(place, tree, {**inputs, "baseline": worse})
    second.run(tmp_path)
    assert (second.code, second.failed) == (1, ["The gate's word"])
    assert "## Regressed" in (tmp_path / "summary.md").read_text()


def test_no_input_is_part_of_a_command() -> None:
    """An input in a `run:` would be code of whoever may start the workflow."""
    assert not [step["run"] for step in JOB["steps"] if "${{" in step.get("run", "")]
    inputs = WORKFLOW[True]["workflow_call"]["inputs"]
    used = re.findall(r"inputs\.([a-z-]+)", json.dumps(JOB))
    assert set(used) == set(inputs) and WORKFLOW[True]["workflow_dispatch"]["inputs"] == inputs
    assert WORKFLOW["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert all(re.search(r"@v\d+$", step["uses"]) for step in JOB["steps"] if "uses" in step)
