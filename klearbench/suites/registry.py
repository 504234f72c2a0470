"""Every suite by name."""

from __future__ import annotations

from pathlib import Path

from klearbench.errors import UsageError, unknown_name
from klearbench.suites import aime, amc, gsm8k, hmmt, humaneval, livecodebench, math500, mbpp, olympiad, puzzles
from klearbench.suites.base import PROMPTS, Asked, Suite, SuiteInfo

SUITES: dict[str, SuiteInfo] = {
    info.name: info
    for module in (puzzles, aime, hmmt, amc, math500, gsm8k, olympiad, humaneval, mbpp, livecodebench)
    for info in module.INFOS
}


def load_suite(name: str, data_dir: Path | None = None, *, prompt: str = "ours", errata: bool = True) -> Suite:
    """A suite by name, or from a .jsonl / .parquet / .yaml file.

    Args:
        name: of SUITES, a file's path, or lm_eval:TASK.
        data_dir: the folder of the benchmarks' files; None: KLEARBENCH_DATA, else the hub.
        prompt: "ours", or "official": LiveCodeBench's own template for its problems, read from the data directory.
        errata: known faults are corrected, or the problem left out; `Suite.errata` lists them.

    Raises:
        UsageError: unknown name, or neither a data directory nor the hub.
        DataError: the file is missing, corrupt or has another number of problems.
    """
    if prompt not in PROMPTS:
        raise UsageError(unknown_name("prompt", prompt, PROMPTS))
    asked = Asked(data_dir, prompt, errata)
    if name in SUITES:
        return SUITES[name].load(asked)
    if name.startswith("lm_eval:"):
        from klearbench.integrations import lm_eval

        return lm_eval.load_suite(name, asked)
    if Path(name).suffix in (".jsonl", ".parquet", ".yaml", ".yml"):
        from klearbench.suites.suitefile import load_suite_file

        return load_suite_file(Path(name), asked)
    others = "a .jsonl, .parquet or .yaml file, or lm_eval:TASK"
    raise UsageError(f"{unknown_name('suite', name, SUITES)}; or give {others}")
