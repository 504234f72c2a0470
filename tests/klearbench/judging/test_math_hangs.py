"""Comparisons that hang or run long: what they cost, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks.judge_hangs import MARK, faults, measure
from klearbench.judging.dispatch import Reply
from klearbench.judging.judge import MathJudge
from klearbench.judging.math import RULES
from klearbench.judging.pool import Pool
from klearbench.types import Answer, FinishReason, Sample, Status

PLAIN = {"op": "strict", "gold": "2\\sqrt{2}", "answer": "\\sqrt{8}"}
HANG = {**PLAIN, "answer": MARK}


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEAR_FAULT", f"judge.compare:={MARK}:hang")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def ready(pool: Pool) -> list[int]:
    """Processes that compare. A worker that is still starting has the pid 0: a signal to that is one to ourselves, to
    pytest and to whoever started it in the same group."""
    return [worker.pid for worker in pool._idle.queue if worker is not None and worker.pid]


def test_hangs_cost_their_own_time_and_no_more() -> None:
    """The time limit is CPU time; on a loaded machine a hang takes longer, so each counts with what it did take."""
    hangs, workers, tries = 5, 2, []
    for _ in range(4):
        plain, hanging, replies = measure(rows=300, hangs=hangs, limit_s=0.3, workers=workers)
        assert faults(replies, hangs) == 0
        waited = sum(reply.wall_s for reply in replies if reply.error == "timeout") + 0.3  # 5 hangs: one worker has 3
        tries.append((hanging, plain * 1.2 + waited / workers + 0.1))
        if tries[-1][0] <= tries[-1][1]:
            return
    raise AssertionError(tries)


def test_a_hang_loses_its_own_row_alone(hanging: None) -> None:
    rows = [HANG if i in (0, 7, 8, 39) else PLAIN for i in range(40)]
    for size in (1, 2):
        with Pool(size, time_limit_s=0.2) as pool:
            replies = pool.run_many(rows)
        assert [i for i, reply in enumerate(replies) if reply.value is None] == [0, 7, 8, 39]
        assert {reply.error for reply in replies} == {"", "timeout"}
        assert all(reply.value["equal"] is True for reply in replies if reply.value)


def test_hangs_are_ended_from_a_thread_too(hanging: None) -> None:
    found: list[Reply] = []
    with Pool(1, time_limit_s=0.2) as pool:
        thread = threading.Thread(target=lambda: found.extend(pool.run_many([HANG, PLAIN, HANG])))
        thread.start()
        thread.join(60)
    assert [reply.error for reply in found] == ["timeout", "", "timeout"]


def test_a_hang_is_a_wrong_answer_and_the_rows_beside_it_keep_their_verdicts(
    hanging: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULES, "expression", lambda gold, answer: None)  # everything goes to a worker
    texts = ["\\sqrt{8}", MARK, "\\sqrt{8}", "3", MARK, "2\\sqrt{2}"]
    rows = [
        (Sample("s", "p", i, 0, f"\\boxed{{{text}}}", 1, 1, FinishReason.stop), Answer("p", "2\\sqrt{2}"))
        for i, text in enumerate(texts)
    ]
    with MathJudge(time_limit_s=0.3) as judge:
        verdicts = judge.judge(rows)
    right = ["\\sqrt{8}", "2\\sqrt{2}"]
    assert [v.status for v in verdicts] == [Status.correct if t in right else Status.wrong_answer for t in texts]
    assert "not shown equal within 0.3 s" in verdicts[1].detail


def test_close_ends_what_is_at_work(hanging: None) -> None:
    found: list[Reply] = []
    pool = Pool(2, time_limit_s=30.0)
    pool.run_many([PLAIN] * 4)
    pids = ready(pool)
    assert pids
    thread = threading.Thread(target=lambda: found.extend(pool.run_many([HANG] * 4)))
    thread.start()
    time.sleep(0.5)
    start = time.monotonic()
    pool.close()
    thread.join(20)
    assert time.monotonic() - start < 15
    assert [reply.error for reply in found] == ["died"] * 4
    assert "closed" in found[0].detail
    assert not any(map(alive, pids))


def test_a_second_caller_gets_its_turn() -> None:
    with Pool(1) as pool:
        pool.run(PLAIN)
        started, ended = threading.Event(), []

        def many() -> None:
            started.set()
            pool.run_many([PLAIN] * 5_000)
            ended.append("many")

        thread = threading.Thread(target=many)
        thread.start()
        started.wait()
        pool.run(PLAIN)
        ended.append("one")
        thread.join()
    assert ended == ["one", "many"]


@pytest.mark.parametrize("end", ["interrupt", "exit"])
def test_no_worker_is_left_after(tmp_path: Path, hanging: None, end: str) -> None:
    """Ctrl-C in the midst of a hang, or a program that ends without closing its pool."""
    note = tmp_path / "pids"
    work = f"pool.run_many([{HANG!r}] * 4)" if end == "interrupt" else ""
    program = (
        "import pathlib\n"
        "from klearbench.judging.pool import Pool\n"
        "pool = Pool(2, time_limit_s=20.0)\n"
        f"pool.run_many([{PLAIN!r}] * 4)\n"
        "workers = [w for w in pool._idle.queue if w]\n"
        f"pathlib.Path({str(note)!r}).write_text(' '.join(f'{{w.pid}} {{w._process.pid}}' for w in workers))\n"
        f"{work}\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    pids = [int(pid) for pid in note.read_text().split()]
    assert pids
    if end == "interrupt":
        time.sleep(0.5)
        parent.send_signal(signal.SIGINT)
    parent.wait(60)
    deadline = time.monotonic() + 10  # left alone, a hang would take its 20 s
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in pids if alive(pid)] == []


def test_a_server_that_is_killed_in_the_midst_of_a_batch_costs_nothing() -> None:
    rows = [{**PLAIN, "answer": f"\\sqrt{{{8 + i}}}"} for i in range(400)]
    with Pool(2) as pool:
        pool.run_many(rows[:8])
        [pid, *_] = ready(pool)
        timer = threading.Timer(0.01, os.kill, (pid, signal.SIGKILL))
        timer.start()
        replies = pool.run_many(rows)
        timer.join()
    assert [reply.value is not None and reply.value["equal"] for reply in replies] == [i == 0 for i in range(400)]
