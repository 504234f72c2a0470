"""Where the rows of benchmarks that are not ours to ship are looked for: a folder of files, else the hub."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klearbench.errors import DataError, KlearError, UsageError
from klearbench.store import content_hash, read_rows
from klearbench.suites.base import HubSource
from klearbench.suites.hub import hub_file, hub_rows, rows_hash

NumberedRow = tuple[int, Mapping[str, Any]]
"""A row and its line (from 1)."""


@dataclass(frozen=True, slots=True)
class Source:
    """Rows, where they come from (for messages), and the hash of all of them; `hub`: they aren't from a file."""

    where: object
    rows: tuple[NumberedRow, ...]
    content_hash: str
    hub: bool = False


def data_dir_or_env(data_dir: Path | None) -> Path | None:
    """`--data-dir`, else KLEARBENCH_DATA, else None."""
    if data_dir is not None:
        return data_dir
    env = os.environ.get("KLEARBENCH_DATA")
    return Path(env) if env else None


def find_source(suite: str, file: str, hub: HubSource, data_dir: Path | None) -> Source:
    """The rows of a suite: its file in the data directory, else the hub's, in the format of the file.

    Raises:
        UsageError: there is no data directory, and the hub can't be read.
        DataError: the file is corrupt, or absent and the hub can't be read.
    """
    path = find_file(file, data_dir)
    if path is not None:
        return Source(path, tuple(read_rows(path)), content_hash(path))
    try:
        return hub_source(hub)
    except KlearError as error:
        raise absent(suite, file, hub, data_dir, error) from None


def find_file(file: str, data_dir: Path | None) -> Path | None:
    """A file of the data directory, None if there is no such file."""
    folder = data_dir_or_env(data_dir)
    return folder / file if folder is not None and (folder / file).is_file() else None


def hub_source(hub: HubSource) -> Source:
    """A suite's rows from the hub. Raises DataError, UsageError."""
    rows = hub_rows(hub.dataset, hub.config, hub.split)
    return Source(hub, tuple(_renamed(hub, rows)), rows_hash(rows), hub=True)


def _renamed(hub: HubSource, rows: list[dict[str, Any]]) -> Iterator[NumberedRow]:
    for number, row in enumerate(rows):
        try:
            yield number + 1, hub.row(number, row)
        except KeyError as error:
            raise DataError(hub, f"has no column {error}; it has {', '.join(row)}", number + 1) from None


def hub_files(suite: str, hub: HubSource, file: str, data_dir: Path | None) -> list[Path]:
    """The files that a suite is read from, downloaded once. Raises as `find_source`."""
    try:
        return [hub_file(hub.dataset, name) for name in hub.files]
    except KlearError as error:
        raise absent(suite, file, hub, data_dir, error) from None


def absent(suite: str, file: str, hub: HubSource, data_dir: Path | None, why: KlearError) -> KlearError:
    """One line for a suite whose rows are nowhere: both places, and both remedies."""
    folder = data_dir_or_env(data_dir)
    remedy = f"put it there, or let it be fetched once from the hub's {hub}"
    if folder is None:
        named = f"name its folder by --data-dir DIR or KLEARBENCH_DATA=DIR, or let it be fetched once from {hub}"
        return UsageError(f"suite {suite!r} needs {file}: {named} ({why})")
    return DataError(
        folder / file, f"no such file; suite {suite!r} reads it (--data-dir or KLEARBENCH_DATA): {remedy} ({why})"
    )
