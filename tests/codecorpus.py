"""The shared corpora of labelled programs and attacks, judged by any sandbox; and what may not be left behind.

Also a program: an ordinary user's Python runs it, with nothing but the standard library and a copy of klearbench.

    python codecorpus.py JOB.json    judges what the job says; prints verdicts and traces as JSON
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from klearbench.judging.code import CodeJudge
from klearbench.sandbox.docker import DockerSandbox
from klearbench.sandbox.local import LocalSandbox
from klearbench.types import CodeTests, ExpectedOutputs, FinishReason, Sample, TestInputs

Row = dict[str, Any]
_STATUS = {"passed": "correct", "no_code": "no_answer"}
_PLACES = ("/tmp", "/dev/shm", "/var/tmp", "/run")
_PR_SET_CHILD_SUBREAPER = 36


def read_rows(shared: Path, name: str) -> list[Row]:
    return [json.loads(line) for line in (shared / "cases/code" / name).read_text().splitlines()]


def _tests(row: Row, longest_s: float | None) -> CodeTests:
    problem, limits = row["problem"], row.get("limits", {})
    limit_s = limits.get("time_s", 6.0)
    # Also where it has a memory limit: `bomb-zip` packs its zeros for longer than its six seconds.
    if longest_s is not None and row.get("max_passed") == 0:
        limit_s = min(limit_s, longest_s)
    given = tuple(test["input"] for test in problem["tests"])
    inputs = TestInputs(
        row["id"], problem["mode"], given, problem.get("fn_name"), problem.get("preamble"), limit_s,
        limits.get("memory_mb", 4096),
    )  # fmt: skip
    outputs = tuple(test["output"] for test in problem["tests"])
    return CodeTests(inputs, ExpectedOutputs(row["id"], outputs, problem.get("checker")))


def judge_rows(
    rows: Sequence[Row], sandbox: str, workers: int, *, tier: str | None = None, longest_s: float | None = None
) -> list[Row]:
    """A verdict a row: `status`, `passed`, `total`, `detail`. `longest_s` shortens the time limits of attacks that
    only burn time until then."""
    items = []
    for row in rows:
        text = row["completion"] if "completion" in row else row["code"]
        sample = Sample("corpus", row["id"], 0, 0, text, 0, 0, FinishReason.stop)
        items.append((sample, _tests(row, longest_s), "completion" not in row))
    box = DockerSandbox() if sandbox == "docker" else LocalSandbox(tier)
    with box, CodeJudge(sandbox=box, workers=workers) as judge:
        found = [judged.verdict for judged in judge.stream_rows(items)]
    names = ("problem_id", "passed", "total", "detail")
    return [{"status": str(v.status), **{name: getattr(v, name) for name in names}} for v in found]


def judging_faults(rows: Sequence[Row], verdicts: Sequence[Row]) -> list[str]:
    """The rows whose verdict is not the label's."""
    faults = []
    for row, found in zip(rows, verdicts, strict=True):
        right = _STATUS.get(row["verdict"], row["verdict"])
        allowed = {_STATUS.get(name, name) for name in (row["verdict"], *row.get("accept", ()))}
        counts = found["status"] != right or (found["passed"], found["total"]) == (row["passed"], row["total"])
        if found["status"] not in allowed or not counts:
            faults.append(f"{row['id']}: {right} {row['passed']}/{row['total']}, got {_short(found)}")
    return faults


def attack_faults(rows: Sequence[Row], verdicts: Sequence[Row]) -> list[str]:
    """The attacks that earned too much or too little, or broke the judge."""
    faults = []
    for row, found in zip(rows, verdicts, strict=True):
        wanted = {_STATUS.get(name, name) for name in (row.get("expect_verdict"),) if name}
        good = found["status"] != "judge_error" and row["min_passed"] <= found["passed"] <= row["max_passed"]
        if not good or (wanted and found["status"] not in wanted):
            faults.append(f"{row['id']}: {row['min_passed']}..{row['max_passed']} {wanted or ''}, got {_short(found)}")
    return faults


def _short(found: Row) -> str:
    return f"{found['status']} {found['passed']}/{found['total']}: {found['detail'][:200]}"


@contextmanager
def surroundings(rows: Sequence[Row]) -> Iterator[None]:
    """What rows ask of the tester: variables in the judge's environment, a listener that serves expected outputs."""
    variables = {name: value for row in rows for name, value in row.get("tester_env", {}).items()}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    servers = [_serve(row) for row in rows if row.get("tester_listener")]
    try:
        yield
    finally:
        for server in servers:
            server.close()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _serve(row: Row) -> Any:
    """Serve a row's expected outputs at the address it names: a port, "host:port", a path, or "@name"."""
    import socket

    where = row["tester_listener"]
    where = where.get("address", where.get("port", where.get("path"))) if isinstance(where, dict) else where
    text = str(where).removeprefix("tcp://").removeprefix("unix:")
    host, _, port = text.rpartition(":")
    if port.isdecimal():
        server = socket.create_server((host or "127.0.0.1", int(port)))
    else:
        server = socket.socket(socket.AF_UNIX)
        server.bind(text.replace("@", "\0", 1) if text.startswith("@") else text)
        server.listen()
    answer = json.dumps([test["output"] for test in row["problem"]["tests"]]).encode()

    def answer_all() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    connection.sendall(answer)

    threading.Thread(target=answer_all, daemon=True).start()
    return server


class Footprint:
    """What this process and the machine hold: taken before and after a judge's life, the two must be equal.

    `adopt`: orphans of ours become our children meanwhile, and are counted (so would a container engine's be).
    """

    def __init__(self, *, adopt: bool) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)
        self._started = time.time()
        self._before = self._look()

    @staticmethod
    def _look() -> dict[str, Any]:
        children = sorted(
            c for task in Path("/proc/self/task").iterdir() for c in (task / "children").read_text().split()
        )
        links = []
        for fd in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                links.append(os.readlink(f"/proc/self/fd/{fd}"))
        kept = sorted(link.split(":")[0] for link in links if not link.startswith("/proc/"))
        shared = [line.split()[:2] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
        return {"children": children, "open": kept, "threads": threading.active_count(), "shared memory": shared}

    def changes(self) -> list[str]:
        """What is not as it was."""
        now = self._look()
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        return [f"{key}: {self._before[key]} became {now[key]}" for key in now if now[key] != self._before[key]]

    def leftovers(self, rows: Sequence[Row]) -> list[str]:
        """What rows say must be absent, and is not."""
        files = [path for place in (*_PLACES, os.getcwd()) for path in _marked(Path(place))]
        lines = [cmdline(pid) for pid in os.listdir("/proc") if pid.isdigit()]
        keys = [int(line.split()[0]) & 0xFFFFFFFF for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
        found = [f"file {path}" for path in files]
        for row in rows:
            found += [
                f"{row['id']}: {row['marker_file']}" for _ in "x" if Path(row.get("marker_file", "/none/")).exists()
            ]
            for name in ("marker_process", "leftover"):
                found += [f"{row['id']}: process {line!r}" for line in lines if row.get(name) and row[name] in line]
            if "marker_ipc" in row and int(row["marker_ipc"], 16) in keys:
                found.append(f"{row['id']}: shared memory {row['marker_ipc']}")
        found += [f"process {line!r}" for line in lines if "kbmark_" in line]
        return found + self._damaged()

    def _damaged(self) -> list[str]:
        """Files of Python's own library that an attack has changed."""
        library = Path(sysconfig.get_paths()["stdlib"])
        recent = (p for p in library.rglob("*.pyc") if p.stat().st_mtime >= self._started)
        return [f"changed {path}" for path in recent if b"kbmark_" in path.read_bytes()]


def _marked(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        yield from (Path(root, name) for name in (*folders, *names) if name.startswith("kbmark"))


def cmdline(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def judged_attacks(rows: Sequence[Row], sandbox: str, workers: int, **options: Any) -> list[str]:
    """Every fault of a run over attacks: verdicts, what was left behind, what changed in this process."""
    footprint = Footprint(adopt=sandbox == "local")
    with surroundings(rows):
        verdicts = judge_rows(rows, sandbox, workers, **options)
    return attack_faults(rows, verdicts) + footprint.leftovers(rows) + footprint.changes()


def main(job: Row) -> None:
    """Judge a job of attacks and labelled programs; print the faults of each as JSON."""
    attacks = judged_attacks(job["attacks"], "local", job["workers"], tier=job["tier"], longest_s=job["longest_s"])
    verdicts = judge_rows(job["judging"], "local", job["workers"], tier=job["tier"])
    print(json.dumps({"user": os.geteuid(), "attacks": attacks, "judging": judging_faults(job["judging"], verdicts)}))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
