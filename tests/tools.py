"""What tests of several folders share: real commands, toy engines, readers of run folders, a tiny model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from klearbench.engines.base import Generation, Request, Sampling
from klearbench.types import FinishReason

ROOT = Path(__file__).resolve().parents[1]
TIMES = ("cpu_s", "wall_s", "peak_mb")
NOTE = re.compile(r"^(note: |[\w .-]+: \d+/\d+ )")
"""A line of stderr that is progress or a note, not an error."""


def environment(fault: str = "", **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KLEAR", "MASTER_", "RANK", "WORLD_SIZE"))}
    fixed = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "DS_ACCELERATOR": "cpu", "HF_HUB_OFFLINE": "1"}
    if "HF_HOME" in more:  # a cache of its own: what another test found must not be found here
        fixed["HF_DATASETS_CACHE"] = f"{more['HF_HOME']}/datasets"
    return kept | fixed | ({"KLEAR_FAULT": fault} if fault else {}) | more


def start(program: str, *words: object, fault: str = "", cwd: Path | None = None, **env: str) -> subprocess.Popen[str]:
    """A command as a user runs it: `start("klearbench", "eval", ...)`."""
    return subprocess.Popen(
        [sys.executable, "-m", f"{program}.cli", *map(str, words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(fault, **env), cwd=cwd or ROOT,
    )  # fmt: skip


def run(program: str, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    process = start(program, *words, **options)
    try:
        out, err = process.communicate(timeout=300)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def ok(program: str, *words: object, **options: Any) -> str:
    done = run(program, *words, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def complaint(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    """The one line that a failed command says, besides progress and notes."""
    lines = [line for line in done.stderr.splitlines() if not NOTE.match(line)]
    assert (done.returncode, len(lines)) == (code, 1), done.stderr
    assert "Traceback" not in done.stderr and "Traceback" not in done.stdout
    return lines[0]


def jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def result(run: Path) -> dict[str, Any]:
    """Everything an evaluation must reproduce: the files' bytes, verdicts without their times."""
    verdicts = [{k: v for k, v in row.items() if k not in TIMES} for row in jsonl(run / "verdicts.jsonl")]
    return {
        "samples": (run / "samples.jsonl").read_bytes(),
        "verdicts": verdicts,
        "scores": (run / "scores.json").read_bytes(),
    }


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and its bytes, log.txt left out."""
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "log.txt"
    }


def work(*logs: Path) -> dict[int, Counter[str]]:
    """pid -> how many "engine call", "optimizer step" ... it logged."""
    done: dict[int, Counter[str]] = {}
    for log in logs:
        for line in log.read_text().splitlines() if log.exists() else ():
            pid, what = re.search(r"\[(\d+)\] (\w+(?: \w+)?)", line).groups()
            done.setdefault(int(pid), Counter())[what] += 1
    return done


class ToyEngine:
    """Answers with `reply(request)` and keeps every call."""

    def __init__(self, reply: Callable[[Request], str], batch_size: int = 4, name: str = "toy") -> None:
        self.reply, self.batch_size, self.name = reply, batch_size, name
        self.calls: list[list[Request]] = []
        self.closed = False

    def identity(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        self.calls.append(list(requests))
        texts = [self.reply(request) for request in requests]
        return [Generation(text, FinishReason.stop, 1, len(text.split())) for text in texts]

    def close(self) -> None:
        self.closed = True


CHAINS = ("7 max 3 min 4 min 9", "1 min 2 max 3 min 5", "0 max 9 min 6 max 2", "8 min 8 min 1 max 4")


def tiny(folder: Path, *, seed: int = 1, context: int = 64, template: bool = True, init_std: float = 0.6) -> Path:
    """A random Qwen3 of some 20,000 parameters with a word tokenizer, saved as a transformers folder."""
    from klearrl.config import NewModel
    from klearrl.model import new_model, save_model, word_tokenizer

    spec = NewModel(
        hidden_size=32, layers=2, heads=4, kv_heads=2, head_dim=8, intermediate_size=64, context=context,
        init_std=init_std,
    )  # fmt: skip
    words = [f"{chain} = ? ; ~ <think> </think> \\boxed{{ }}" for chain in CHAINS]
    tokenizer = word_tokenizer([*words, *map(str, range(10))])
    if not template:
        tokenizer.chat_template = None
    model = new_model(spec, tokenizer, seed)
    save_model(model, model.state_dict(), tokenizer, folder)
    return folder
