"""Every suite by name."""

from __future__ import annotations

from pathlib import Path

from klearbench.errors import UsageError, unknown_name
from klearbench.suites import aime, gsm8k, hmmt, math500, puzzles
from klearbench.suites.base import Suite, SuiteInfo
from klearbench.suites.files import load_suite_file

SUITES: dict[str, SuiteInfo] = {
    info.name: info for module in (puzzles, aime, hmmt, math500, gsm8k) for info in module.INFOS
}


def load_suite(name: str, data_dir: Path | None = None) -> Suite:
    """A suite by name, or from a .jsonl / .parquet / .yaml file.

    Raises:
        UsageError: unknown name, or no data directory.
        DataError: the file is missing, corrupt or has another number of problems.
    """
    if name in SUITES:
        return SUITES[name].load(data_dir)
    if Path(name).suffix in (".jsonl", ".parquet", ".yaml", ".yml"):
        return load_suite_file(Path(name))
    raise UsageError(unknown_name("suite", name, SUITES) + "; or give a .jsonl, .parquet or .yaml file")
