"""The rule of conftest.py for `-n`: what belongs together runs in one process, and long units begin first."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CONFTEST = TESTS / "conftest.py"
REPORT = """
import os, pathlib

def test_one():
    with open({log!r}, "a") as log:
        log.write(pathlib.Path(__file__).name + " " + os.environ.get("PYTEST_XDIST_WORKER", "") + "\\n")

test_two = test_three = test_one
"""
FILES = ("test_a", "test_attacks", "test_b", "test_docker", "test_engine_vllm", "test_kill", "test_vllm_more")


@pytest.fixture(autouse=True)
def _plugins_beside_conftest(monkeypatch):
    # The repository first: beside conftest.py, tests/klearbench would pass for the package.
    monkeypatch.setenv("PYTHONPATH", f"{TESTS.parent}{os.pathsep}{TESTS}", prepend=os.pathsep)


def ran(pytester: pytest.Pytester, *arguments: str) -> list[tuple[str, str]]:
    """(file, process) of every test, in the order in which they ran."""
    log = pytester.path / "log"
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(**{name: REPORT.format(log=str(log)) for name in FILES})
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)
    result.assert_outcomes(passed=3 * len(FILES))
    return [(file, process) for file, _, process in (line.partition(" ") for line in log.read_text().splitlines())]


def test_a_file_and_a_unit_stay_in_one_process(pytester):
    pytest.importorskip("xdist")
    processes: dict[str, set[str]] = {}
    for file, process in ran(pytester, "-n", "2"):
        processes.setdefault(file, set()).add(process)
    assert all(len(found) == 1 for found in processes.values()), processes
    assert set.union(*processes.values()) == {"gw0", "gw1"}
    assert processes["test_attacks.py"] == processes["test_docker.py"]
    assert processes["test_engine_vllm.py"] == processes["test_vllm_more.py"]


def test_a_failure_that_quotes_half_a_surrogate_pair_is_a_failure_and_no_more(pytester):
    pytest.importorskip("xdist")
    pytester.makeconftest(CONFTEST.read_text())
    failing = "def test_text(): raise ValueError('caf\\xe9 \\ud800')\n"
    pytester.makepyfile(test_a=failing, test_b="def test_more(): pass\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", "2")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["E *ValueError: caf\xe9 \\ud800"])


def test_in_one_process_long_units_come_first_and_the_rest_keeps_its_order(pytester):
    order = list(dict.fromkeys(file for file, _ in ran(pytester)))
    names = ("engine_vllm", "vllm_more", "attacks", "docker", "kill", "a", "b")
    assert order == [f"test_{name}.py" for name in names]


def test_every_name_in_the_lists_is_that_of_a_file():
    """After a file is renamed, its unit would be torn apart without a word."""
    units, first = (runpy.run_path(str(CONFTEST))[name] for name in ("UNITS", "FIRST"))
    files = [path.name for path in TESTS.rglob("test_*.py")]
    parts = [part for parts in units.values() for part in parts]
    parts += [name for name in first if name not in units]
    assert [part for part in parts if not any(part in file for file in files)] == []
