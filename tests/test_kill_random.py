"""Twenty kills at random moments for each engine that is deterministic for a fixed plan of batches.

Each run is killed again and again, sometimes with the last line of a log cut in half, and the same call goes on until
it ends. Its files must be those of an undisturbed run, and no kill may cost more than the batch that it struck.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tools import result, tiny, work, write_jsonl

from klearbench.engines.base import Engine, Generation, Request, Sampling
from klearbench.engines.replay import ReplayEngine
from klearbench.engines.scripted import ScriptedEngine
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.suites import puzzles
from klearbench.suites.base import Suite

pytestmark = [pytest.mark.slow, pytest.mark.train]

KILLS, SAMPLES, PROBLEMS, BATCH = 20, 3, 20, 4
CALLS = SAMPLES * PROBLEMS // BATCH
OPTIONS = EvalOptions(samples=SAMPLES, sampling=Sampling(1.0, 1.0, 0, 24))


class Slow:
    """An engine that takes a while: with an instant one, every kill would strike before the first call or after all."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.batch_size = engine, engine.batch_size

    def identity(self) -> Mapping[str, Any]:
        return self.engine.identity()

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        time.sleep(0.02)
        return self.engine.generate(requests, sampling)

    def close(self) -> None:
        self.engine.close()


def recorded(folder: Path, suite: Suite) -> Engine:
    rows = [
        {"problem_id": p.id, "sample_index": i, "completion": f"It is \\boxed{{{(n + i) % 10}}}"}
        for n, p in enumerate(suite.problems)
        for i in range(SAMPLES)
    ]
    return ReplayEngine(str(write_jsonl(folder / "recorded.jsonl", rows)), batch_size=BATCH)


def hf(folder: Path, suite: Suite) -> Engine:
    import torch

    from klearbench.engines.hf import load_engine

    torch.set_num_threads(1)  # a forked process has no other threads
    return load_engine(str(tiny(folder / "model")), batch_size=BATCH, dtype="float32")


ENGINES: dict[str, Callable[[Path, Suite], Engine]] = {
    "scripted": lambda folder, suite: ScriptedEngine(batch_size=BATCH),
    "replay": recorded,
    "hf": hf,
}


def in_child(call: Callable[[], object], limit_s: float) -> tuple[bool, float]:
    """Run in a forked process that is killed after `limit_s` seconds: whether it was, and how long it ran."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        try:
            call()
            os._exit(0)
        except BaseException:
            os._exit(1)
    while time.monotonic() - start < limit_s:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return False, time.monotonic() - start
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True, limit_s


def cut_in_half(path: Path, rng: random.Random) -> None:
    """What a kill in the middle of a write leaves: a part of the last line."""
    raw = path.read_bytes() if path.exists() else b""
    if raw.endswith(b"\n"):
        last = raw.rindex(b"\n", 0, -1) + 1 if b"\n" in raw[:-1] else 0
        path.write_bytes(raw[: rng.randrange(last, len(raw))])


def lasting(run: Path) -> dict[str, Any]:
    """All files of a run without what tells times."""
    manifest = json.loads((run / "manifest.json").read_text())
    report = (run / "report.html").read_text()
    return {
        **result(run),
        "problems": (run / "problems.jsonl").read_bytes(),
        "manifest": {key: value for key, value in manifest.items() if key != "created"},
        "table": re.findall(r"<table>.*?</table>", report, re.DOTALL),
    }


@pytest.mark.parametrize("name", ENGINES)
def test_twenty_kills_leave_the_files_of_an_undisturbed_run(tmp_path, name):
    loaded = puzzles.load()
    suite = replace(loaded, problems=loaded.problems[:PROBLEMS])
    engine = Slow(ENGINES[name](tmp_path, suite))
    killed, whole_s = in_child(lambda: evaluate(tmp_path / "whole" / "run", [suite], engine, OPTIONS), 120.0)
    assert not killed
    wanted, rng = lasting(tmp_path / "whole" / "run"), random.Random(name)
    kills = runs = all_cuts = 0
    while kills < KILLS:
        out = tmp_path / str(runs) / "run"
        runs += 1
        here = cuts = 0
        while in_child(lambda out=out: evaluate(out, [suite], engine, OPTIONS), rng.uniform(0.05, 0.8) * whole_s)[0]:
            here += 1
            if rng.random() < 0.5:
                cut_in_half(out / rng.choice(["samples.jsonl", "verdicts.jsonl"]), rng)
                cuts += 1
        kills += here
        all_cuts += cuts
        assert lasting(out) == wanted
        calls = sum(counts["engine call"] for counts in work(out / "log.txt").values())
        # A cut takes a finished sample back, so that its batch is made again, as the one that a kill strikes is.
        assert CALLS <= calls <= CALLS + here + cuts, (calls, here, cuts)
    assert runs > 1 and all_cuts > 0
