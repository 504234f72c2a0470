"""Our own cost beside the plain library's, as ratios of CPU seconds in one run: `make bench`.

CPU seconds, since wall time on a shared machine measures the others as well. Each figure is the best of a few tries.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ["OMP_NUM_THREADS"] = "1"


def main() -> None:
    """Print one line a figure."""
    import code_judging
    import harness_overhead
    import math_judging

    for bench in (start_up, sampling, sft_step):
        print(bench(), flush=True)
    math_judging.main()
    code_judging.main([])
    harness_overhead.main()


def best(work: Callable[[], Any], tries: int = 3) -> float:
    """The least CPU seconds of a few tries in this process."""
    times = []
    for _ in range(tries):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def start_up() -> str:
    """`klearbench --help` over a bare interpreter."""
    program = str(Path(sys.executable).parent / "klearbench")
    ours, bare = child_cpu([program, "--help"]), child_cpu([sys.executable, "-c", "pass"])
    return f"start-up: klearbench --help {ours:.3f} CPU s, python -c pass {bare:.3f}, over it {ours - bare:.3f}"


def child_cpu(command: list[str]) -> float:
    """The least CPU seconds of seven runs of a command."""
    times = []
    for _ in range(7):
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(times)


def tiny() -> tuple[Any, Any]:
    """The demo's model with random weights, and its tokenizer."""
    from klearrl.config import NewModel
    from klearrl.model import new_model, word_tokenizer

    words = "<think> </think> \\boxed{ } = ~ ; ? max min 0 1 2 3 4 5 6 7 8 9"
    tokenizer = word_tokenizer([words])
    return new_model(NewModel(), tokenizer, 0), tokenizer


def sampling() -> str:
    """256 seeded samples of 26 tokens through our engine, beside generate() with do_sample."""
    import torch

    from klearbench.engines.base import Request, Sampling
    from klearbench.engines.hf import HfEngine

    model, tokenizer = tiny()
    engine = HfEngine(model, tokenizer, {}, batch_size=256)
    prompt = ({"role": "user", "content": "7 max 3 min 4 min 9 = ?"},)
    requests = [Request(prompt, seed) for seed in range(256)]
    ids = torch.tensor([engine.render(prompt)] * 256)

    def peer() -> None:
        with torch.inference_mode():
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=26, do_sample=True)

    ours = best(lambda: engine.generate(requests, Sampling(1.0, 1.0, 0, 26)))
    plain = best(peer)
    return f"sampling, 256 x 26 tokens: ours {ours:.2f} CPU s, generate() {plain:.2f}, ratio {ours / plain:.2f}"


def sft_step(steps: int = 10) -> str:
    """An SFT step of 64 sequences in our loop's parts on DeepSpeed, beside the same step in plain torch."""
    import torch

    from klearrl import distributed
    from klearrl.config import OptimizerConfig
    from klearrl.data import SftExample
    from klearrl.engine import Trainer
    from klearrl.losses import lm_loss, token_logprobs
    from klearrl.sft import collate

    distributed.setup()
    model, _ = tiny()
    plain, _ = tiny()
    examples = [SftExample(tuple(range(4, 22)) * 2, 13) for _ in range(64)]
    ids, attention, labels = collate(examples, 0, torch.device("cpu"))
    trainer = Trainer(model, OptimizerConfig(lr=1e-3), total_steps=steps, zero_stage=0, bf16=False)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-3)

    def ours() -> None:
        for step in range(steps):
            logits = trainer(input_ids=ids, attention_mask=attention, use_cache=False).logits
            logp = token_logprobs(logits[:, :-1], labels[:, 1:])
            trainer.step(iter([lm_loss(logp, labels[:, 1:] >= 0)]), step)

    def peer() -> None:
        for _ in range(steps):
            logits = plain(input_ids=ids, attention_mask=attention, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
            optimizer.step()

    fast, slow = best(ours) / steps, best(peer) / steps
    return f"SFT step, 64 x 36 tokens: ours {fast:.3f} CPU s, plain torch {slow:.3f}, ratio {fast / slow:.2f}"


if __name__ == "__main__":
    main()
