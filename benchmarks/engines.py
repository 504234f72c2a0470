"""Tokens a second of the vLLM engine and of the transformers engine, on one small model, in turns.

    python benchmarks/engines.py [--model DIR] [--requests 256] [--max-tokens 128] [--rounds 3]

Without --model a random Qwen3 of some 1.6 million parameters is made. Both engines get the same requests, of prompts of
different lengths, and sample at temperature 1; the first round of each is not counted. On a machine with other work
only the ratio within one run says something.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from klearbench.engines.base import Request, Sampling, sample_seed


def random_model(folder: Path) -> Path:
    """A transformers folder with random weights and a word tokenizer."""
    from klearrl.config import NewModel
    from klearrl.model import new_model, save_model, word_tokenizer

    spec = NewModel(
        hidden_size=256, layers=4, heads=4, kv_heads=2, head_dim=64, intermediate_size=512, context=1024, init_std=0.02
    )
    tokenizer = word_tokenizer(["max min = ? ; ~ <think> </think> \\boxed{ }", *map(str, range(500))])
    model = new_model(spec, tokenizer, 0)
    save_model(model, model.state_dict(), tokenizer, folder)
    return folder


def requests(count: int) -> list[Request]:
    """Prompts of 8 to 130 tokens."""
    texts = ["7 max 3 min " * (1 + i % 30) + "9 = ?" for i in range(count)]
    return [Request(({"role": "user", "content": t},), sample_seed(0, i), (str(i), 0)) for i, t in enumerate(texts)]


def timed(engine: Any, asked: list[Request], sampling: Sampling) -> float:
    """Tokens sampled a second, over all requests."""
    size = engine.batch_size
    start = time.perf_counter()
    made = [g for i in range(0, len(asked), size) for g in engine.generate(asked[i : i + size], sampling)]
    return sum(g.completion_tokens for g in made) / (time.perf_counter() - start)


def main() -> None:
    """Print one line a round, and the medians with their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--batch", type=int, default=64, help="sequences at a time, of both engines")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    from klearbench.engines import hf, vllm

    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or str(random_model(Path(folder)))
        engines: dict[str, Any] = {
            "hf": hf.load_engine(model, batch_size=arguments.batch),
            "vllm": vllm.load_engine(model, max_num_seqs=arguments.batch),
        }
        asked, sampling = requests(arguments.requests), Sampling(1.0, 0.95, 0, arguments.max_tokens)
        engines["vllm"].batch_size = len(asked)  # it batches by itself
        found: dict[str, list[float]] = {name: [] for name in engines}
        for number in range(arguments.rounds + 1):
            speeds = {name: timed(engine, asked, sampling) for name, engine in engines.items()}
            print(f"round {number}: " + ", ".join(f"{n} {s:,.0f} tokens/s" for n, s in speeds.items()), flush=True)
            for name, speed in speeds.items() if number else ():
                found[name].append(speed)
        engines["vllm"].close()
    middle = {name: statistics.median(speeds) for name, speeds in found.items()}
    print(f"medians: hf {middle['hf']:,.0f}, vllm {middle['vllm']:,.0f}; ratio {middle['vllm'] / middle['hf']:.2f}")


if __name__ == "__main__":
    main()
