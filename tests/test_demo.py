"""`make demo`, whole: what it prints is what the README says, and the figures lie where they should."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = r"^  (teacher|SFT|GPPO) +([0-9.]+) % +([0-9.]+) %$"
"""A line of the demo's second table: tests passed, programs right."""


@pytest.mark.slow
@pytest.mark.train
@pytest.mark.timeout(900)
def test_the_demo_sharpens_what_sft_taught_and_the_gate_agrees(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    script = ROOT / "recipes" / "puzzles" / "demo.py"
    done = subprocess.run(
        [sys.executable, str(script), "--seed", "11", "-o", str(out)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    rows = dict(re.findall(r"^  (teacher|SFT|GPPO) +([0-9.]+)   [0-9.]+ to [0-9.]+$", done.stdout, re.M))
    assert 35 <= float(rows["SFT"]) <= 60
    assert float(rows["GPPO"]) >= 90
    assert "it picks among behaviours that\nSFT taught" in done.stdout
    code = {name: (float(share), float(right)) for name, share, right in re.findall(PROGRAMS, done.stdout, re.M)}
    assert list(code) == ["teacher", "SFT", "GPPO"]
    assert all(share > right for share, right in list(code.values())[:2]), "wrong programs earn a part"
    assert code["GPPO"][0] >= code["SFT"][0] + 15 and code["GPPO"][1] >= code["SFT"][1] + 25
    assert re.search(r"puzzles avg@8: .* ok \(", done.stdout) and re.search(r": regressed \(", done.stdout)
    assert "/300 steps" in done.stderr and "/50 rollout batches" in done.stderr  # progress
    assert {p.name for p in (out / "train" / "model").iterdir()} >= {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    }
    assert (out / "report.html").stat().st_size > 10_000
    lines = [json.loads(line) for line in (out / "train" / "metrics.jsonl").read_text().splitlines()]
    assert [row["stage"] for row in lines] == ["sft"] * 300 + ["gppo"] * 50

    again = subprocess.run(
        [sys.executable, str(script), "--seed", "11", "-o", str(out)], cwd=ROOT, capture_output=True, text=True
    )
    assert again.returncode == 0
    assert dict(re.findall(r"^  (teacher|SFT|GPPO) +([0-9.]+)   [0-9.]+ to [0-9.]+$", again.stdout, re.M)) == rows
    assert "gppo: finished (50 steps)" in again.stdout
