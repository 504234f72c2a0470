"""Rows from the Hugging Face hub (or a local dataset folder), and single files of a dataset's repository."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from klearbench.errors import DataError, UsageError


def hub_rows(dataset: str, config: str | None, split: str, revision: str | None = None) -> list[dict[str, Any]]:
    """All rows of one split, read with `datasets.load_dataset`: from its cache where there is no network.

    Args:
        dataset: a dataset's id, or a local folder of Parquet or JSONL files.
        config: the configuration; None for the only one.
        split: the split's name.
        revision: a commit, tag or branch of the dataset's repository.

    Raises:
        UsageError: the package `datasets` is not installed.
        DataError: there is no such dataset, configuration, split or revision, or the hub can't be reached (one line).
    """
    _need("datasets")
    import datasets

    datasets.disable_progress_bars()
    try:
        found = datasets.load_dataset(dataset, config, split=split, revision=revision)
        return [dict(row) for row in found]
    except Exception as error:  # of many layers and packages; whatever it is, it is the user's to see in one line
        raise DataError(_name(dataset, config, split), f"can't be read from the hub: {_reason(error)}") from None


def hub_file(dataset: str, file: str) -> Path:
    """One file of a dataset's repository, downloaded once into the hub's cache.

    Raises:
        DataError: no such file, or the hub can't be reached (one line).
    """
    _need("huggingface_hub")
    import huggingface_hub

    try:
        return Path(huggingface_hub.hf_hub_download(dataset, file, repo_type="dataset"))
    except Exception as error:  # as above
        raise DataError(f"{dataset}/{file}", f"can't be read from the hub: {_reason(error)}") from None


class RowsHash:
    """SHA-256 over the content of rows, in their order; the order of a row's columns does not count."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, row: Mapping[str, Any]) -> None:
        self._digest.update(json.dumps(row, sort_keys=True, default=str).encode() + b"\n")

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def rows_hash(rows: Iterable[Mapping[str, Any]]) -> str:
    """The hash of some rows."""
    digest = RowsHash()
    for row in rows:
        digest.add(row)
    return digest.hexdigest()


def _need(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise UsageError(f"reading from the hub needs the package {module!r} (remedy: pip install {module})")


def _name(dataset: str, config: str | None, split: str) -> str:
    return f"{dataset} ({f'{config}, ' if config else ''}{split})"


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
