"""Fixtures and rules for all tests.

With CI=true a test that is skipped although it bears one of the markers docker, vllm, browser or shared is a failure:
where the whole suite has to run, a missing tool must not look like a pass. So is a whole module that skips itself,
because its markers can't be read.

With `-n` (pytest-xdist) a file's tests stay in one process, and so do all files of one unit. Tests with the marker
`alone` are left to a run of their own, as `make test` does it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Hypothesis would fail an example that takes 0.2 s of the clock, as any does on a machine that is busy for a moment.
settings.register_profile("unhurried", settings(), deadline=None)
settings.load_profile("unhurried")
# Started in the background by a shell, we would ignore Ctrl-C, and so would every command that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Before anything imports torch: spinning OpenMP threads cost 10x on few cores, and DeepSpeed would look for a GPU.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("DS_ACCELERATOR", "cpu")
# A file that is missing must never mean a try over the network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

pytest_plugins = ["pytester", "dockerd", "vllmtools"]

ROOT = Path(__file__).resolve().parents[1]
REQUIRED_IN_CI = ("docker", "vllm", "browser", "shared")

UNITS = {
    "sandbox": ("test_attacks", "test_code_corpus", "test_docker", "test_doctor", "test_ordinary_user"),
    "vllm": ("vllm",),
}
"""Unit -> parts of the names of the files that one process has to run, one after the other: `sandbox` has one Docker
engine, and its attacks leave marks that are looked for all over the machine; `vllm` has one engine."""
FIRST = (
    *("vllm", "test_demo.py", "sandbox", "test_kill.py", "test_wrong_input.py", "test_functions.py"),
    *("test_lm_eval_suite.py", "test_kill_random.py", "test_code_load.py", "test_cli.py"),
)
"""Units that take half a minute and more, the longest first: started last, one of them would run while the other cores
have nothing left to do."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Chromium of the module's own."""
    from browser import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


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


def _unit(nodeid: str) -> str:
    file = nodeid.partition("::")[0].rpartition("/")[2]
    return next((unit for unit, parts in UNITS.items() if any(part in file for part in parts)), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {unit: place for place, unit in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(_unit(item.nodeid), len(places)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _unit(nodeid)

    config.option.loadscopereorder = False  # not by the number of tests, but in the order given above
    return Units(config, log)


def _encodable(data: Any) -> Any:
    if isinstance(data, dict):
        return {_encodable(key): _encodable(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(map(_encodable, data))
    return data.encode("utf-8", "backslashreplace").decode() if isinstance(data, str) else data


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """A failure that quotes half a surrogate pair would end the whole run where reports go from process to process."""
    return _encodable((yield))
