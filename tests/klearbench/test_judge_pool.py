"""Worker processes: killed when they hang, replaced when they die, never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from klearbench.judging import judge as judge_module
from klearbench.judging.judge import MathJudge
from klearbench.judging.pool import Pool
from klearbench.types import Answer, FinishReason, Sample, Status

HANG = {"op": "math-verify", "gold": "7", "answer": "$9^{9^{9^{9}}}$"}
EASY = {"op": "strict", "gold": "2\\sqrt{2}", "answer": "\\sqrt{8}"}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def only_pid(pool: Pool) -> int:
    [worker] = [w for w in pool._idle.queue if w is not None]
    return worker.pid


def test_a_hang_costs_one_worker_and_the_next_check_works() -> None:
    with Pool(1, time_limit_s=1.0) as pool:
        assert pool.run(EASY).value["equal"] is True
        first = only_pid(pool)
        reply = pool.run(HANG)
        assert (reply.value, reply.error) == (None, "timeout")
        assert not alive(first)
        assert pool.run(EASY).value["equal"] is True
        second = only_pid(pool)
        assert second != first
    assert not alive(second)


def test_workers_start_only_when_needed() -> None:
    with Pool(3) as pool:
        assert all(worker is None for worker in pool._idle.queue)
        pool.run(EASY)
        assert sum(worker is not None for worker in pool._idle.queue) == 1


def test_a_worker_that_died_is_replaced_once() -> None:
    with Pool(1) as pool:
        pool.run(EASY)
        os.kill(only_pid(pool), signal.SIGKILL)
        assert pool.run(EASY).value["equal"] is True


def test_two_deaths_are_a_judge_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with MathJudge() as judge:
        monkeypatch.setattr(judge, "_request", lambda *key: {"no": "operation"})
        text = "\\boxed{\\int_0^1 2x dx}"  # needs a worker
        row = (Sample("s", "p", 0, 0, text, 1, 1, FinishReason.stop), Answer("p", "1"))
        [verdict] = judge.judge([row])
        assert (verdict.status, verdict.score) == (Status.judge_error, None)
        assert "died" in verdict.detail
        monkeypatch.undo()
        assert judge.judge([row])[0].status is Status.correct


def test_a_timeout_is_a_wrong_answer_unless_the_reference_hangs_alone() -> None:
    def row(gold: str, text: str) -> tuple[Sample, Answer]:
        return Sample("s", "p", 0, 0, text, 1, 1, FinishReason.stop), Answer("p", gold)

    with MathJudge(mode="math-verify", time_limit_s=1.0) as judge:
        [wrong] = judge.judge([row("7", "\\boxed{9^{9^{9^{9}}}}")])
        [ours] = judge.judge([row("9^{9^{9^{9}}}", "\\boxed{7}")])
    assert (wrong.status, ours.status) == (Status.wrong_answer, Status.judge_error)
    assert "within 1 s" in wrong.detail and "reference alone" in ours.detail


def test_many_threads_share_a_pool() -> None:
    equal: list[bool] = []
    with Pool(2) as pool:
        threads = [threading.Thread(target=lambda: equal.append(pool.run(EASY).value["equal"])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert equal == [True] * 8


def test_replies_keep_the_order_of_the_requests() -> None:
    requests = [
        {"op": "strict", "gold": f"{i}\\sqrt{{2}}", "answer": f"\\sqrt{{{2 * i * i if i % 3 else 5}}}"}
        for i in range(1, 13)
    ]
    with Pool(2) as pool:
        got = [reply.value["equal"] for reply in pool.run_many(requests)]
    assert got == [i % 3 != 0 for i in range(1, 13)]


def test_no_worker_outlives_a_killed_parent(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    program = (
        "import pathlib, sys, threading, time\n"
        "from klearbench.judging.pool import Pool\n"
        "pool = Pool(1, time_limit_s=1.0)\n"
        f"pool.run({EASY!r})\n"
        "[worker] = [w for w in pool._idle.queue if w]\n"
        f"threading.Thread(target=pool.run, args=({HANG!r},), daemon=True).start()\n"
        "time.sleep(0.3)\n"
        f"pathlib.Path({str(note)!r}).write_text(str(worker.pid))\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    pid = int(note.read_text())
    parent.kill()
    parent.wait()
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)


def test_importing_the_judge_loads_no_sympy() -> None:
    code = (
        f"import sys, {judge_module.__name__}; print(any(m in sys.modules for m in ('sympy', 'math_verify', 'torch')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
