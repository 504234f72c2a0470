"""Kills at the moments where a resume is hardest; then the same command: the same result, that of a real command.

Commands that import torch are forked from one process that has; the undisturbed ones and the scripted ones are real.

The work done after each kill is counted from log.txt: what was missing, plus at most the batch that was interrupted.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests import tools, warm
from tests.tools import ROOT, complaint, jsonl, result, work

pytestmark = [pytest.mark.slow, pytest.mark.train]

SETTINGS = {
    "stages.sft.steps": 60, "stages.sft.batch_size": 16, "stages.sft.optimizer.warmup_steps": 5,
    "stages.sft.eval_every": 30, "stages.gppo.steps": 3, "stages.gppo.prompts": 4, "stages.gppo.group_size": 4,
    "stages.gppo.sample_prompts": 8, "stages.gppo.mini_batches": 2, "stages.gppo.rollout_batch_size": 16,
    "evaluation.samples": 2, "evaluation.limit": 8, "evaluation.batch_size": 4, "tensorboard": False,
}  # fmt: skip
SFT_STEPS, RL_UPDATES, EVALS = 60, 6, ("sft-30", "sft-60", "gppo-3")


@dataclass(frozen=True)
class Undisturbed:
    data: Path
    train: Path
    """The run folder of `klearrl train`."""
    eval: Path
    """The run folder of `klearbench eval` of its model."""
    scripted: Path
    """The same of the scripted teacher."""


def train_words(data: Path, out: Path) -> list[object]:
    sets = [word for key, value in {"data": data, **SETTINGS}.items() for word in ("--set", f"{key}={value}")]
    return ["klearrl", "train", ROOT / "recipes/puzzles/train.yaml", "-o", out, *sets]


def eval_words(model: Path, out: Path) -> list[object]:
    """The scripted teacher costs a tenth of a model's start, so most moments are tried with it."""
    engine = ["--engine", "scripted"] if model.name == "scripted" else ["--model", model]
    return [
        "klearbench", "eval", "--suite", "puzzles", *engine, "--limit", 30, "--samples", 2,
        "--max-tokens", 26, "--temperature", 1, "--batch-size", 8, "-o", out,
    ]  # fmt: skip


EVAL_CALLS = 8  # 30 problems in batches of 8 make 4, for each of 2 samples


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> Undisturbed:
    base = tmp_path_factory.mktemp("undisturbed")
    found = Undisturbed(base / "data", base / "train", base / "eval", base / "scripted")
    recipe = ROOT / "recipes/puzzles/curate.yaml"
    tools.ok("klearbench", "curate", recipe, "-o", found.data, "--set", "sources.0.count=300")
    tools.ok(*train_words(found.data, found.train))
    tools.ok(*eval_words(found.train / "model", found.eval))
    tools.ok(*eval_words(found.scripted, found.scripted))
    return found


def by(words: list[object]) -> ModuleType:
    """What starts a command: really, or forked where it would import torch."""
    return tools if "scripted" in words else warm


def killed(words: list[object], fault: str) -> None:
    done = by(words).run(*words, fault=fault)
    assert done.returncode == -signal.SIGKILL, f"{fault}: {done.returncode} {done.stderr}"


def logs(train: Path) -> list[Path]:
    return [train / "log.txt", *(train / "evals" / name / "log.txt" for name in EVALS)]


def metrics(train: Path) -> list[dict]:
    return [{k: v for k, v in row.items() if not k.endswith("seconds")} for row in jsonl(train / "metrics.jsonl")]


def assert_same_training(train: Path, wanted: Path) -> None:
    assert metrics(train) == metrics(wanted)
    for weights in ("model", "stages/sft/model", "stages/gppo/model"):
        name = f"{weights}/model.safetensors"
        assert (train / name).read_bytes() == (wanted / name).read_bytes(), name
    for name in EVALS:
        assert result(train / "evals" / name) == result(wanted / "evals" / name), name
    assert [p for p in train.rglob("*") if ".tmp" in p.name or p.name == ".lock"] == []


def totals(train: Path) -> tuple[int, int]:
    """Optimizer steps and engine calls of all processes together."""
    counts = [c for log in logs(train) for c in work(log).values()]
    return sum(c["optimizer step"] for c in counts), sum(c["engine call"] for c in counts)


def assert_little_was_done_twice(train: Path, wanted: Path, kills: int) -> None:
    """Each kill costs one batch at most: an engine call, or the two updates of a rollout batch."""
    steps, calls = totals(train)
    right_steps, right_calls = totals(wanted)
    assert right_steps == SFT_STEPS + RL_UPDATES
    assert right_steps <= steps <= right_steps + 2 * kills
    assert right_calls <= calls <= right_calls + kills


TRAIN_CHAINS = {
    "sft": ["optimizer.step:20:kill", "checkpoint.write:5:kill", "engine.call:3:kill", "append.verdicts.jsonl:6:kill"],
    "rl": ["half.metrics.jsonl:40:kill", "rollout.call:2:kill", "optimizer.step:2:kill", "write_atomic:9:kill"],
}
"""Each chain kills one run again and again; counts are those of the resumed process."""


def kill_again_and_again(data: Path, out: Path, faults: list[str]) -> Path:
    for fault in faults:
        killed(train_words(data, out), fault)
    warm.ok(*train_words(data, out))
    return out


@pytest.mark.timeout(900)
def test_training_killed_at_eight_moments_ends_with_the_same_weights(undisturbed, tmp_path):
    with ThreadPoolExecutor(2) as threads:
        runs = threads.map(
            lambda item: kill_again_and_again(undisturbed.data, tmp_path / item[0], item[1]), TRAIN_CHAINS.items()
        )
        for out, faults in zip(runs, TRAIN_CHAINS.values(), strict=True):
            assert_same_training(out, undisturbed.train)
            assert_little_was_done_twice(out, undisturbed.train, len(faults))


def test_a_finished_training_does_nothing_when_asked_again(undisturbed):
    before = totals(undisturbed.train)
    assert "finished" in warm.ok(*train_words(undisturbed.data, undisturbed.train))
    assert totals(undisturbed.train) == before


EVAL_FAULTS = {
    "sampling": "engine.call:4:kill",
    "judging": "judge.batch:2:kill",
    "a verdict": "append.verdicts.jsonl:20:kill",
    "half a sample": "half.samples.jsonl:13:kill",
    "half a verdict": "half.verdicts.jsonl:60:kill",
    "the scores": "write_atomic:2:kill",
    "the report": "write_atomic:3:kill",
}


def whole_batches(out: Path) -> int:
    """How many of the 8 batches (8, 8, 8 and 6 problems of each sample) are on disk, half lines left out."""
    lines = (out / "samples.jsonl").read_bytes().splitlines(keepends=True) if (out / "samples.jsonl").exists() else []
    whole = sum(line.endswith(b"\n") for line in lines)
    return 4 * (whole // 30) + whole % 30 // 8


def check_eval(words: list[object], out: Path, wanted: Path, fault: str) -> None:
    killed(words, fault)
    first, whole = set(work(out / "log.txt")), whole_batches(out)
    by(words).ok(*words)
    after = {pid: counts for pid, counts in work(out / "log.txt").items() if pid not in first}
    assert sum(counts["engine call"] for counts in after.values()) == EVAL_CALLS - whole, fault
    assert result(out) == result(wanted), fault


@pytest.mark.parametrize("name", EVAL_FAULTS)
def test_evaluation_killed_ends_with_the_same_files(undisturbed, tmp_path, name):
    out = tmp_path / "run"
    check_eval(eval_words(undisturbed.scripted, out), out, undisturbed.scripted, EVAL_FAULTS[name])


@pytest.mark.parametrize("name", ["sampling", "half a sample"])
def test_evaluation_of_a_model_killed_ends_with_the_same_files(undisturbed, tmp_path, name):
    out = tmp_path / "run"
    check_eval(eval_words(undisturbed.train / "model", out), out, undisturbed.eval, EVAL_FAULTS[name])


def kill_at_random(words: list[object], delays: random.Random, longest: float) -> int:
    """Kill after random times until the command ends by itself; returns how often it was killed."""
    for kills in range(4):
        process = by(words).start(*words)
        try:
            process.communicate(timeout=delays.uniform(0.5, longest))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            continue
        assert process.returncode == 0
        return kills
    by(words).ok(*words)
    return 4


def test_random_kills_of_training_and_evaluation(undisturbed, tmp_path):
    train, scored = tmp_path / "train", tmp_path / "eval"
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(kill_at_random, train_words(undisturbed.data, train), random.Random(1), 8.0)
        words = eval_words(undisturbed.train / "model", scored)
        two = threads.submit(kill_at_random, words, random.Random(2), 2.0)
        assert one.result() + two.result() > 0
    assert_same_training(train, undisturbed.train)
    assert_little_was_done_twice(train, undisturbed.train, one.result())
    assert result(scored) == result(undisturbed.eval)


@pytest.mark.parametrize(("action", "code"), [("term", 143), ("int", 130)])
def test_a_signal_saves_says_one_line_and_is_resumable(undisturbed, tmp_path, action, code):
    words = eval_words(undisturbed.scripted, tmp_path / "run")
    said = complaint(by(words).run(*words, fault=f"engine.call:4:{action}"), code)
    assert "the same command goes on from here" in said
    assert not (tmp_path / "run" / ".lock").exists()
    assert len(jsonl(tmp_path / "run" / "samples.jsonl")) == 24  # three batches of 8
    by(words).ok(*words)
    assert result(tmp_path / "run") == result(undisturbed.scripted)


@pytest.mark.parametrize(("action", "code"), [("term", 143)])
def test_a_signal_in_training_is_resumable(undisturbed, tmp_path, action, code):
    words = train_words(undisturbed.data, tmp_path / "run")
    assert "the same command goes on" in complaint(by(words).run(*words, fault=f"optimizer.step:61:{action}"), code)
    by(words).ok(*words)
    assert_same_training(tmp_path / "run", undisturbed.train)
    assert_little_was_done_twice(tmp_path / "run", undisturbed.train, 1)


def test_a_second_process_is_refused_by_the_first_ones_pid(undisturbed, tmp_path):
    words = eval_words(undisturbed.train / "model", tmp_path / "run")
    first = by(words).start(*words)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "run" / "samples.jsonl").exists():
            assert time.monotonic() < deadline and first.poll() is None
            time.sleep(0.05)
        first.send_signal(signal.SIGSTOP)
        kept = (tmp_path / "run" / "samples.jsonl").read_bytes()
        said = complaint(by(words).run(*words))
        assert f"in use by process {first.pid}" in said
        assert (tmp_path / "run" / "samples.jsonl").read_bytes() == kept
    finally:
        first.send_signal(signal.SIGCONT)
        first.communicate(timeout=60)
    assert first.returncode == 0
    assert result(tmp_path / "run") == result(undisturbed.eval)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path, leave: int) -> Path:
    """Fill a file system up to `leave` bytes."""
    free = shutil.disk_usage(folder).free
    (folder / "ballast").write_bytes(b"x" * (free - leave))
    return folder / "ballast"


def test_a_full_disk_in_evaluation(undisturbed, small_disk):
    ballast = fill(small_disk, 16 * 1024)
    words = eval_words(undisturbed.train / "model", small_disk / "run")
    said = complaint(by(words).run(*words))
    assert "no space left on the disk" in said and "rerun the same command" in said
    assert all(isinstance(row, dict) for row in jsonl(small_disk / "run" / "samples.jsonl"))
    ballast.unlink()
    by(words).ok(*words)
    assert result(small_disk / "run") == result(undisturbed.eval)


def test_a_full_disk_in_training(undisturbed, small_disk):
    subprocess.run(["mount", "-o", "remount,size=24m", small_disk], check=True)
    ballast = fill(small_disk, 5 * 1024 * 1024)
    words = train_words(undisturbed.data, small_disk / "run")
    said = complaint(by(words).run(*words))
    assert "no space left on the disk" in said
    assert json.loads((small_disk / "run" / "manifest.json").read_text())["config"]["command"] == "train"
    ballast.unlink()
    by(words).ok(*words)
    assert_same_training(small_disk / "run", undisturbed.train)
