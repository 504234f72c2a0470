"""Fixtures and rules for all tests.

With CI=true a test that is skipped although it bears one of the markers docker, vllm, browser or shared is a failure:
where the whole suite has to run, a missing tool must not look like a pass. So is a whole module that skips itself,
because its markers can't be read.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

# Started in the background by a shell, we would ignore Ctrl-C, and so would every command that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Before anything imports torch: spinning OpenMP threads cost 10x on few cores, and DeepSpeed would look for a GPU.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("DS_ACCELERATOR", "cpu")

pytest_plugins = ["pytester", "dockerd"]

ROOT = Path(__file__).resolve().parents[1]
REQUIRED_IN_CI = ("docker", "vllm", "browser", "shared")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data and cases: KLEARBENCH_SHARED, or `shared` beside the repository."""
    named = os.environ.get("KLEARBENCH_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    if not (folder / "cases").is_dir():
        pytest.skip(f"no shared data in {folder} (KLEARBENCH_SHARED names another folder)")
    return folder


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


def _fail(report: pytest.TestReport | pytest.CollectReport, why: str) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{why}, and CI=true: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    marks = [name for name in REQUIRED_IN_CI if item.get_closest_marker(name)]
    if report.skipped and not hasattr(report, "wasxfail") and marks and _in_ci():
        _fail(report, f"a test with the marker {marks[0]!r} was skipped")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.outcome == "skipped" and _in_ci():
        _fail(report, "a whole module was skipped")
    return report
