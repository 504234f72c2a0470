"""How judging a run again begins: what decides its verdicts, and whether those that are there still count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from klearbench.changes import CHANGES, SUMMARY
from klearbench.evaluate import DIFFERENCES
from klearbench.records import SAMPLES
from klearbench.run import flatten, read_manifest
from klearbench.store import write_atomic

_PACKAGES = ("klearbench", "math-verify", "latex2sympy2_extended", "sympy", "python-flint")
"""Packages that judge."""


def log_path(folder: Path, number: int) -> Path:
    """The log of a round's verdicts; rounds are counted from 1."""
    return folder / f"verdicts-{number}.jsonl"


def differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What decides verdicts and differs between two manifests, by dotted names: judges' options and versions."""
    before, after = _deciding(old), _deciding(new)
    names = sorted(before.keys() | after.keys())
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _deciding(made: Mapping[str, Any]) -> dict[str, Any]:
    config = {name: made["config"][name] for name in ("judge", "code_judge") if name in made["config"]}
    versions = {name: version for name, version in made.get("versions", {}).items() if name in _PACKAGES}
    python = {"python": made.get("machine", {}).get("python")} if "code_judge" in config else {}
    return {**flatten(config), **{f"versions.{name}": version for name, version in (versions | python).items()}}


def begin(run: Path, folder: Path, today: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Claim the folder for today's judge. Verdicts of another judge, of other references or of other samples go.

    Args:
        run: the run folder.
        folder: where its verdicts are written again; the caller holds its lock.
        today: the manifest of this call.
        say: takes the remark that all begins anew, and why.
    """
    known = (folder / "manifest.json").exists()
    why = _stale(run, read_manifest(folder), today) if known else ""
    if not known or why:
        for path in (*folder.glob("verdicts-*.jsonl"), folder / DIFFERENCES):
            path.unlink(missing_ok=True)
    if why:
        say(f"{folder} is of {why}; it begins anew")
    for name in (CHANGES, SUMMARY):  # they must not outlive the first verdict that is added
        (folder / name).unlink(missing_ok=True)
    size, hashed = _hash(run / SAMPLES)
    write_atomic(folder / "manifest.json", json.dumps({**today, "samples": [size, hashed]}, indent=1) + "\n")


def _stale(run: Path, old: Mapping[str, Any], today: Mapping[str, Any]) -> str:
    """Why verdicts that are there don't count any more; "" if they do."""
    changed = differing(old, today)
    if changed:
        return "another judge (" + ", ".join(f"{name} {was} -> {now}" for name, (was, now) in changed.items()) + ")"
    if old.get("inputs") != today["inputs"]:
        return "other references"
    size, hashed = old["samples"]
    return "" if _hash(run / SAMPLES, size) == (size, hashed) else "other samples"


def _hash(path: Path, size: int | None = None) -> tuple[int, str]:
    """The bytes of a log's whole lines, and their SHA-256; with `size`, of the lines that begin before it."""
    digest, length = hashlib.sha256(), 0
    with path.open("rb") as handle:
        for line in handle:
            if not line.endswith(b"\n") or (size is not None and length >= size):
                break
            digest.update(line)
            length += len(line)
    return length, digest.hexdigest()
