"""Where the files of benchmarks that are not ours to ship are looked for."""

from __future__ import annotations

import os
from pathlib import Path

from klearbench.errors import DataError, UsageError


def data_dir_or_env(data_dir: Path | None) -> Path | None:
    """`--data-dir`, else KLEARBENCH_DATA, else None."""
    if data_dir is not None:
        return data_dir
    env = os.environ.get("KLEARBENCH_DATA")
    return Path(env) if env else None


def data_file(suite: str, file: str, data_dir: Path | None) -> Path:
    """The path of a suite's file. Raises UsageError without a data directory, DataError when the file is absent."""
    folder = data_dir_or_env(data_dir)
    if folder is None:
        raise UsageError(f"suite {suite!r} needs {file}: name its folder by --data-dir DIR or KLEARBENCH_DATA=DIR")
    path = folder / file
    if not path.is_file():
        raise DataError(path, f"no such file; suite {suite!r} reads it (its folder: --data-dir or KLEARBENCH_DATA)")
    return path
