"""What the training tests share: a very small model, datasets made on the spot, command lines run in forked processes.

The task: "pick 2" (with more or fewer words before it) wants `\\boxed{2}`; SFT rows answer at random from 1..3, so a
model trained on them is right about one time in three: a policy with a signal after 30 steps.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before torch and datasets are imported: one thread, no network, a cache of our own.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if "HF_DATASETS_CACHE" not in os.environ:
    os.environ["HF_DATASETS_CACHE"] = tempfile.mkdtemp(prefix="klear-datasets-")
    atexit.register(shutil.rmtree, os.environ["HF_DATASETS_CACHE"], ignore_errors=True)

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from klearrl import distributed
from klearrl.config import NewModel, OptimizerConfig
from klearrl.engine import Trainer
from klearrl.model import new_model, word_tokenizer
from tests import warm
from tests.tools import environment

torch.set_num_threads(1)

SPEC = NewModel(hidden_size=16, layers=1, heads=2, kv_heads=1, head_dim=8, intermediate_size=32, context=32)
ADAMW = OptimizerConfig(lr=1e-2, weight_decay=0.1, grad_clip=0.5)
PREFIXES = ("", "please ", "now please ", "once more now please ")
NUMBERS = (1, 2, 3)
_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def question(i: int) -> str:
    return f"{PREFIXES[i // 3 % 4]}pick {NUMBERS[i % 3]}"


def answer(i: int) -> str:
    return f"<think> hm </think> \\boxed{{{NUMBERS[(i * 7 + i // 5) % 3]}}}"


SFT_ROWS = [{"messages": [*user(question(i)), {"role": "assistant", "content": answer(i)}]} for i in range(36)]
RL_ROWS = [
    {"id": f"p{i}", "prompt": user(question(i)), "kind": "math", "answer": str(NUMBERS[i % 3]), "rule": "expression"}
    for i in range(12)
]


def write_dataset(folder: Path, sft: list[dict] | None = None, rl: list[dict] | None = None, note: str = "") -> Path:
    """A dataset folder with a card, as `klearbench curate` lays it out."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    head = ["configs:"]
    for name, rows in (("sft", SFT_ROWS if sft is None else sft), ("rl", RL_ROWS if rl is None else rl)):
        pq.write_table(pa.Table.from_pylist(rows), folder / "data" / f"train-{name}.parquet")
        files = f"[{{split: train, path: data/train-{name}.parquet}}]"
        head += [f"- config_name: {name}", f"  data_files: {files}"]
    (folder / "README.md").write_text("\n".join(["---", *head, "---", note]))
    return folder


def tokenizer() -> Any:
    texts = [m["content"] for row in SFT_ROWS for m in row["messages"]]
    return word_tokenizer(texts)


def model(seed: int = 0) -> Any:
    return new_model(SPEC, tokenizer(), seed)


@functools.cache
def _policy_weights() -> dict[str, torch.Tensor]:
    from klearrl.data import tokenize_sft

    examples, _ = tokenize_sft(SFT_ROWS, tokenizer(), 32)
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for _ in range(25):
        losses = []
        for example in examples[:18]:
            labels = torch.tensor([[-100] * example.prompt_length + list(example.ids[example.prompt_length :])])
            losses.append(net(input_ids=torch.tensor([example.ids]), labels=labels).loss)
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()
    return weights(net)


def policy() -> Any:
    """A model that answers in the right form, and right one time in three."""
    net, trained = model(), _policy_weights()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(trained[name])
    return net


def trainer(net: Any, zero_stage: int = 0, bf16: bool = False, total: int = 10, adamw: Any = ADAMW) -> Trainer:
    distributed.setup()
    return Trainer(net, adamw, total_steps=total, zero_stage=zero_stage, bf16=bf16)


def weights(net: Any) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in net.named_parameters()}


def folder_weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def difference(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    """The largest absolute difference of two sets of weights of the same names."""
    assert a.keys() == b.keys()
    return max(float((a[k].double() - b[k].double()).abs().max()) for k in a)


SFT_STAGE = {
    "name": "sft", "kind": "sft", "data": {"config": "sft"}, "steps": 8, "batch_size": 8, "micro_batch_size": 4,
    "max_length": 32, "save_every": 1, "optimizer": {"lr": 1e-2, "warmup_steps": 2},
}  # fmt: skip
RL_STAGE = {
    "name": "rl", "kind": "rl", "data": {"config": "rl"}, "steps": 3, "prompts": 4, "group_size": 4,
    "mini_batches": 2, "max_tokens": 6, "rollout_batch_size": 16, "micro_batch_size": 3, "save_every": 1,
    "optimizer": {"lr": 1e-3},
}  # fmt: skip


def recipe(data: Path, stages: list[dict], **more: Any) -> dict[str, Any]:
    start: dict[str, Any] = {"model": {"new": SPEC.model_dump()}, "tensorboard": False}
    return {"name": "tiny", "seed": 5, "data": str(data), **start, "stages": stages, **more}


def write_recipe(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content, indent=1))  # JSON is YAML
    return path


@dataclass(frozen=True)
class Done:
    """How a command line ended: its exit code (-9 for a SIGKILL), and what it printed."""

    code: int
    text: str


def spawn(function: Any, arguments: tuple[Any, ...], ranks: int = 1, fault: str = "", **env: str) -> Done:
    """Call a module-level function in `ranks` fresh processes, as a launcher would start them; wait for all."""
    with tempfile.TemporaryDirectory() as place:
        port = _free_port()
        processes = []
        for rank in range(ranks):
            setting = environment(fault, **env)
            if ranks > 1:
                values = (str(rank), str(ranks), str(rank), "127.0.0.1", port)
                setting |= dict(zip(_LAUNCHER, values, strict=True))
            log = Path(place, str(rank))
            processes.append(warm.fork(function, *arguments, out=log, err=log, env=setting))
        _wait(processes)
        codes = [process.exitcode for process in processes]
        text = "".join(Path(f"{place}/{rank}").read_text() for rank in range(ranks))
    return Done(codes[0] if codes[0] else next((c for c in codes if c), 0), text)


def _wait(processes: list[Any]) -> None:
    """Until all have ended. Where one fails the others are ended too, as a launcher does: they may wait for it."""
    end = time.monotonic() + 120
    while any(p.exitcode is None for p in processes):
        assert time.monotonic() < end, "a process hangs"
        if any(p.exitcode for p in processes):
            time.sleep(1.0)
            for process in processes:
                process.kill()
        time.sleep(0.01)


def klearrl(*arguments: str | Path, ranks: int = 1, fault: str = "", **env: str) -> Done:
    """Run the command line of klearrl."""
    return spawn(warm.command, ("klearrl", [str(a) for a in arguments]), ranks, fault, **env)


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without their times."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if not k.endswith("seconds")} for row in rows]


def log_lines(run: Path, about: str) -> list[str]:
    """The lines of log.txt with a word in them, without time and pid."""
    lines = (run / "log.txt").read_text().splitlines() if (run / "log.txt").exists() else []
    return [line.partition("] ")[2] for line in lines if about in line]
