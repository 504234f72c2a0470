"""`klearbench eval --engine openai` against a server that fails: what is kept, what is asked again, how it ends."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("httpx")

from faultserver import ANYTIME, FaultServer
from tools import complaint, jsonl, run, start

from klearbench.engines.base import sample_seed
from klearbench.suites import puzzles

LIMIT, SAMPLES = 12, 3
ALL = LIMIT * SAMPLES


def solved(call) -> dict[str, str]:
    """A model that solves every puzzle, and says so at some length."""
    question = call.body["messages"][-1]["content"]
    return {"reasoning": f"I know {question}", "content": f"It is \\boxed{{{puzzles.solve(question)}}}"}


def words(server: FaultServer, out: Path, **options: object) -> list[object]:
    arguments = [w for k, v in ({"timeout_s": 2, "retries": 3} | options).items() for w in ("--engine-arg", f"{k}={v}")]
    return [
        "eval", "--suite", "puzzles", "--engine", "openai", "--model", "m", "--base-url", server.url, "--limit", LIMIT,
        "--samples", SAMPLES, "--concurrency", 4, "-o", out, *arguments,
    ]  # fmt: skip


def places(out: Path) -> Counter[tuple[str, int, int]]:
    return Counter((s["problem_id"], s["sample_index"], s["seed"]) for s in jsonl(out / "samples.jsonl"))


def assert_whole(out: Path) -> None:
    """Every sample once, with its own seed, and right."""
    found = places(out)
    assert len(found) == ALL and set(found.values()) == {1}
    assert all(seed == sample_seed(0, jsonl(out / "samples.jsonl")[0]["suite"], p, i) for p, i, seed in found)
    assert [v["status"] for v in jsonl(out / "verdicts.jsonl")] == ["correct"] * ALL
    assert not [row for row in jsonl(out / "samples.jsonl") if row["finish_reason"] == "error"]


def test_a_run_through_a_storm_is_a_whole_run(tmp_path):
    faults = iter([*ANYTIME, "429:0.1", "429", "503:0.1"])
    plan = lambda call: next(faults, "ok") if call.attempt == 1 else "ok"  # noqa: E731
    with FaultServer(plan, reply=solved) as server:
        done = run("klearbench", *words(server, tmp_path / "r"), OPENAI_API_KEY="sk-top-secret")
        assert done.returncode == 0, done.stderr
        assert len(server.calls) >= ALL + 20
        assert {call.headers["Authorization"] for call in server.calls} == {"Bearer sk-top-secret"}
    assert_whole(tmp_path / "r")
    log = (tmp_path / "r" / "log.txt").read_text()
    assert "retry 1 of 3 in " in log and f"{ALL} requests in " in log and "0 given up" in log
    assert "note: " in done.stderr and "Traceback" not in done.stderr
    kept = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"top-secret" not in kept and "top-secret" not in done.stdout + done.stderr
    sample = jsonl(tmp_path / "r" / "samples.jsonl")[0]
    assert sample["completion"].startswith("<think>\nI know ") and sample["completion_tokens"] == 5


def test_a_server_that_goes_down_ends_with_3_and_the_same_command_finishes_what_is_missing(tmp_path):
    out = tmp_path / "r"
    with FaultServer(reply=solved) as server:

        def plan(call):
            if len(server.calls) == 15:
                server.down()
            return "ok" if len(server.calls) < 15 else "close"

        server.plan = plan
        line = complaint(run("klearbench", *words(server, out)), 3)
        assert "is down (" in line and "rerun the same command" in line
        kept = places(out)
        assert 5 <= len(kept) <= 15 + 4 and set(kept.values()) == {1}
        assert not (out / "scores.json").exists()
        server.calls.clear()
        line = complaint(run("klearbench", *words(server, out)), 3)
        assert "no answer from" in line and places(out) == kept
        server.plan = lambda call: "ok"
        server.up()
        done = run("klearbench", *words(server, out))
        assert done.returncode == 0, done.stderr
        asked = Counter(call.seed for call in server.calls)
        assert set(asked.values()) == {1}
        assert set(asked) == {s["seed"] for s in jsonl(out / "samples.jsonl")} - {seed for _, _, seed in kept}
        assert_whole(out)
        server.calls.clear()
        assert run("klearbench", *words(server, out)).returncode == 0
        assert server.calls == [], "a finished run asks nothing"


def test_samples_that_fail_for_good_make_a_run_incomplete_and_are_made_by_the_next_call(tmp_path):
    out = tmp_path / "r"
    broken: list[int] = []

    def plan(call):
        if len(broken) < 2 and call.seed not in broken:
            broken.append(call.seed)
        return "500" if call.seed in broken else "ok"

    with FaultServer(plan, reply=solved) as server:
        line = complaint(run("klearbench", *words(server, out, retries=1)), 3)
        assert "2 engine errors" in line
        assert "engine error: " in (out / "log.txt").read_text()
        server.plan = lambda call: "ok"
        server.calls.clear()
        assert run("klearbench", *words(server, out, retries=1)).returncode == 0
        assert sorted(call.seed for call in server.calls) == sorted(broken)
    assert_whole(out)


def test_a_killed_run_is_finished_by_the_same_command(tmp_path):
    out = tmp_path / "r"
    with FaultServer(reply=solved) as server:
        for kill in ("engine.call:5:kill", "half.samples.jsonl:9:kill"):
            assert run("klearbench", *words(server, out), fault=kill).returncode == -signal.SIGKILL, kill
        assert run("klearbench", *words(server, out)).returncode == 0
        assert len(server.calls) <= ALL + 2 * 5, "a kill costs what ran at that time, and the sample at hand"
    assert_whole(out)


def test_ctrl_c_ends_a_run_that_waits_for_a_server_at_once(tmp_path):
    with FaultServer(lambda call: "hang:300" if len(server.calls) > 3 else "ok", reply=solved) as server:
        process = start("klearbench", *words(server, tmp_path / "r", timeout_s=3000))
        deadline = time.monotonic() + 60
        while len(server.calls) < 7 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        begun = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert time.monotonic() - begun < 20 and "Traceback" not in err
    assert len(places(tmp_path / "r")) == 3


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--model", "m"], "engine 'openai' needs --base-url"),
        (["--model", "m", "--base-url", "URL", "--engine-arg", "retry=3"], "did you mean 'retries'"),
        (["--model", "m", "--base-url", "ROOT"], "--base-url URL is one"),
        (["--model", "m", "--base-url", "URL", "--max-tokens", 9999], "lower --max-tokens"),
    ],
)
def test_wrong_input_is_refused_in_one_line(arguments, part, tmp_path):
    with FaultServer(model={"max_model_len": 4096}) as server:
        names = {"URL": server.url, "ROOT": server.url.removesuffix("/v1")}
        filled = [names.get(word, word) if isinstance(word, str) else word for word in arguments]
        done = run("klearbench", "eval", "--suite", "puzzles", "--engine", "openai", "-o", tmp_path / "r", *filled)
        assert part.replace("URL", server.url) in complaint(done)


def test_another_model_behind_the_same_address_is_another_run(tmp_path):
    with FaultServer(reply=solved, model={"root": "one"}) as server:
        assert run("klearbench", *words(server, tmp_path / "r")).returncode == 0
        assert run("klearbench", *words(server, tmp_path / "r", timeout_s=9, stream="true")).returncode == 0
        server.model = server.model | {"root": "other"}
        assert "root" in complaint(run("klearbench", *words(server, tmp_path / "r")))
        manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["config"]["engine"]["server"] == {"id": "m", "root": "one"}
