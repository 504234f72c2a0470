from __future__ import annotations

import random
import re
import signal
import time
from pathlib import Path

import pytest

from klearbench.store import content_hash
from tests.warm import Forked

RECIPE = """
name: resume
sources: [{suite: puzzles, kind: chains, split: train, count: 300, seed: 1}]
teacher: {engine: scripted, options: {batch_size: 64}, samples: 2, max_tokens: 64}
verify: {wrong: keep}
validation_share: 0.1
outputs: [{name: sft}, {name: rl}]
"""
BATCHES = 10  # 300 problems in batches of 64 make 5, for each of 2 samples


def curate_in(recipe: str, out: str) -> None:
    from klearbench.curation.pipeline import curate

    curate(Path(recipe), Path(out))


def start(recipe: Path, out: Path, fault: str = "") -> Forked:
    return Forked(curate_in, str(recipe), str(out), fault=fault)


def finish(recipe: Path, out: Path, fault: str = "") -> int | None:
    process = start(recipe, out, fault)
    _, errors = process.communicate(120)
    assert process.returncode in (0, -signal.SIGKILL, 1), errors
    return process.returncode


def result(out: Path) -> dict[str, str]:
    """Hash of every file that the recipe alone decides."""
    files = [*(out / "data").iterdir(), *(out / "rejected").iterdir(), out / "README.md", out / "funnel.html"]
    return {str(p.relative_to(out)): content_hash(p) for p in files}


def engine_calls(out: Path) -> int:
    return len(re.findall("engine call batch", (out / "log.txt").read_text()))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE)
    assert finish(recipe, folder / "whole") == 0
    assert engine_calls(folder / "whole") == BATCHES
    return recipe, result(folder / "whole")


@pytest.mark.parametrize(
    ("fault", "done"),
    [
        ("distill.batch:4:kill", 3),
        ("half.samples.jsonl:70:kill", 1),
        ("verify.batch:2:kill", BATCHES),
        ("half.verdicts.jsonl:40:kill", BATCHES),
        ("parquet.write:2:kill", BATCHES),
        ("curate.publish:3:kill", BATCHES),
        ("write_atomic:4:kill", BATCHES),  # README.md, after the manifest, engine.json and judge.json
        ("write_atomic:6:kill", BATCHES),  # the manifest that says all is done
        ("append.samples.jsonl:100:enospc", 1),
        ("parquet.write:1:enospc", BATCHES),
    ],
)
def test_the_same_command_finishes_what_was_interrupted(whole, tmp_path, fault, done):
    recipe, expected = whole
    out = tmp_path / "out"
    assert finish(recipe, out, fault) != 0
    before = engine_calls(out)
    assert finish(recipe, out) == 0
    assert result(out) == expected
    assert engine_calls(out) - before == BATCHES - done
    assert not (out / "work" / "new").exists()


@pytest.mark.slow
def test_kills_at_any_moment_change_nothing(whole, tmp_path):
    recipe, expected = whole
    rng = random.Random(5)
    out = tmp_path / "out"
    for _ in range(5):
        process = start(recipe, out)
        time.sleep(rng.uniform(0.1, 0.8))
        process.kill()
        process.communicate()
    assert finish(recipe, out) == 0
    assert result(out) == expected
