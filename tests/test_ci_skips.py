"""The rule of conftest.py: with CI=true a skipped docker, vllm, browser or shared test is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")

MARKED = """
import pytest

@pytest.mark.{marker}
def test_needs_a_tool():
    pytest.skip("the tool is missing")
"""

CASES = {
    "skip in the body": MARKED,
    "skipif": """
import pytest

@pytest.mark.{marker}
@pytest.mark.skipif(True, reason="the tool is missing")
def test_needs_a_tool():
    pass
""",
    "skip in a fixture, marker on the module": """
import pytest

pytestmark = pytest.mark.{marker}

@pytest.fixture
def tool():
    pytest.skip("the tool is missing")

def test_needs_a_tool(tool):
    pass
""",
}


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they would be imported anew in each inner run


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> tuple[pytest.RunResult, dict[str, int]]:
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makeini("[pytest]\nmarkers = docker\n vllm\n browser\n shared\n slow\n")
    pytester.makepyfile(source)
    result = pytester.runpytest_inprocess("-rs", "-p", "no:cacheprovider", *arguments)
    return result, result.parseoutcomes()


@pytest.mark.parametrize(
    ("marker", "case"), list(zip(["docker", "vllm", "browser", "shared"], [*CASES, "skipif"], strict=True))
)
def test_a_marked_skip_fails_in_ci(pytester, monkeypatch, marker, case):
    monkeypatch.setenv("CI", "true")
    result, outcomes = run(pytester, CASES[case].format(marker=marker))
    assert result.ret == 1
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 1
    result.stdout.fnmatch_lines([f"*marker '{marker}' was skipped, and CI=true: *the tool is missing*"])


@pytest.mark.parametrize("ci", [None, "", "false"])
def test_without_ci_it_stays_a_skip(pytester, monkeypatch, ci):
    if ci is None:
        monkeypatch.delenv("CI", raising=False)
    else:
        monkeypatch.setenv("CI", ci)
    result, outcomes = run(pytester, MARKED.format(marker="docker"))
    assert (result.ret, outcomes) == (0, {"skipped": 1})


def test_an_unmarked_skip_stays_a_skip_in_ci(pytester, monkeypatch):
    monkeypatch.setenv("CI", "true")
    result, outcomes = run(pytester, MARKED.format(marker="slow"))
    assert (result.ret, outcomes) == (0, {"skipped": 1})


def test_an_expected_failure_is_no_skip(pytester, monkeypatch):
    monkeypatch.setenv("CI", "true")
    source = MARKED.format(marker="docker").replace('pytest.skip("the tool is missing")', 'pytest.xfail("known")')
    result, outcomes = run(pytester, source)
    assert (result.ret, outcomes) == (0, {"xfailed": 1})


def test_a_module_that_skips_itself_fails_in_ci(pytester, monkeypatch):
    source = "import pytest\npytest.importorskip('no_such_package_anywhere')\ndef test_x(): pass\n"
    monkeypatch.delenv("CI", raising=False)
    assert run(pytester, source)[1] == {"skipped": 1}
    monkeypatch.setenv("CI", "true")
    assert run(pytester, source)[1] == {"errors": 1}


def test_absent_shared_data_skips_with_a_reason_and_fails_in_ci(pytester, monkeypatch):
    source = "import pytest\n@pytest.mark.shared\ndef test_rows(shared): pass\n"
    monkeypatch.setenv("KLEARBENCH_SHARED", str(pytester.path / "nowhere"))
    monkeypatch.delenv("CI", raising=False)
    result, outcomes = run(pytester, source)
    assert outcomes == {"skipped": 1}
    result.stdout.fnmatch_lines(["*no shared data in *nowhere*"])
    monkeypatch.setenv("CI", "true")
    assert run(pytester, source)[1] == {"errors": 1}
