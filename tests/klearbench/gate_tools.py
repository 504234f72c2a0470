"""What the tests of the gate share: run folders with counts as wanted, and the command line in this process."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from klearbench import clitools
from klearbench.cli import cli
from klearbench.scoring.gate import GateOptions, SuiteGate, SuitePair, decide
from klearbench.scoring.groups import ProblemScore
from klearbench.scoring.metrics import samples_of, score_suite
from klearbench.scoring.uncertainty import Count
from klearbench.store import JsonlWriter
from klearbench.types import FinishReason, Sample, Status, Verdict, to_row

SAMPLING = {"temperature": 0.6, "top_p": 0.95, "max_tokens": 64}
GOOD = {"puzzles": {f"p{i}": 7 for i in range(20)}}
BAD = {"puzzles": {f"p{i}": 7 if i else 0 for i in range(19)} | {"p19": 0}}


def write_run(
    path: Path,
    rights: Mapping[str, Mapping[str, int]],
    k: int | Mapping[str, int] = 8,
    *,
    wrong: str = "wrong_answer",
    **config: Any,
) -> Path:
    """A finished run folder: suite -> problem -> how many of k samples are right; the others are `wrong`."""
    path.mkdir(parents=True)
    ks = {suite: samples_of(k, suite) for suite in rights}
    config = {
        "command": "eval", "suites": list(rights), "samples": k, "limit": None, "seed": 0,
        "sampling": SAMPLING, "prompt": "ours", "engine": {"name": "scripted", "model_hash": path.name},
        "judge": {"name": "math", "mode": "strict", "version": 1}, **config,
    }  # fmt: skip
    manifest = {"format": 1, "config": config, "inputs": {f"suite:{name}": "aa" for name in rights}}
    (path / "manifest.json").write_text(json.dumps(manifest))
    places = [(s, p, i, i < right) for s, rows in rights.items() for p, right in rows.items() for i in range(ks[s])]
    samples = [Sample(s, p, i, i, "text", 5, 9, FinishReason.stop) for s, p, i, _ in places]
    verdicts = [
        Verdict(s, p, i, Status.correct, 1.0)
        if ok
        else Verdict(s, p, i, Status(wrong), None if "error" in wrong else 0.0)
        for s, p, i, ok in places
    ]
    for name, rows in (("samples", samples), ("verdicts", verdicts)):
        with JsonlWriter(path / f"{name}.jsonl") as log:
            log.append(*map(to_row, rows))
    scores = {s: asdict(score_suite(s, samples, verdicts, list(rows), ks[s])) for s, rows in rights.items()}
    (path / "scores.json").write_text(json.dumps(scores))
    return path


class Done(NamedTuple):
    """What a command did: its exit code, and the lines it printed."""

    code: int
    out: list[str]
    err: list[str]


def klearbench(*words: object) -> Done:
    """A command as a user types it, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = clitools._run(cli, "klearbench", list(map(str, words)), False)
    return Done(code, out.getvalue().splitlines(), err.getvalue().splitlines())


def regress_json(base: Path, candidate: Path, *words: object) -> tuple[Done, dict[str, Any]]:
    """`klearbench regress` with all its files; the command's end and regress.json. All three files must be there."""
    folder = candidate.parent / f"{base.name}-{candidate.name}-gate"
    done = klearbench("regress", base, candidate, "-o", folder, *words)
    assert sorted(path.name for path in folder.iterdir()) == ["regress.json", "regress.md", "regress.xml"]
    loaded: dict[str, Any] = json.loads((folder / "regress.json").read_text())
    assert loaded["exit_code"] == done.code
    return done, loaded


def refused(base: Path, candidate: Path, *words: object) -> dict[str, Any]:
    """As `regress_json`, of what can't be compared: exit 3, one line with the field, and the same in the file."""
    done, loaded = regress_json(base, candidate, *words)
    assert (done.code, loaded["status"], loaded["tests"]) == (3, "not_comparable", []), (done, loaded)
    assert len(done.err) == 1 and f"not comparable ({loaded['field']}): {loaded['reason']}" in done.err[0], done
    return loaded


def row(name: str, right: int, judged: int, **more: int) -> ProblemScore:
    """A problem's counts."""
    return ProblemScore(name, right, judged, more.pop("truncated", 0), **more)


def rows(rights: Sequence[int], k: int) -> list[ProblemScore]:
    """Problems p0, p1, ... of k samples each."""
    return [row(f"p{i}", right, k) for i, right in enumerate(rights)]


def counts(rights: Sequence[int], k: int) -> list[Count]:
    return [Count(right, k) for right in rights]


def one(base: Sequence[ProblemScore], candidate: Sequence[ProblemScore], **options: Any) -> SuiteGate:
    """The gate's word on one suite `s` and one metric."""
    listing = options.pop("listing", True)
    greedy, k = options.pop("greedy", False), options.pop("k", max((r.judged for r in base), default=1))
    (found,) = decide([SuitePair("s", k, base, candidate, greedy)], GateOptions(**options), listing=listing)
    return found
