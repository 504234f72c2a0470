"""The packages that submissions may import: made once, found again, readable by all, and replaced by the user's own."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from klearbench.errors import UsageError
from klearbench.sandbox import environment
from klearbench.sandbox.base import SandboxUnavailable
from klearbench.sandbox.environment import MARKER, PINS, ensure_environment, find_environment


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("KLEARBENCH_SOLUTIONS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def toy_pip(monkeypatch):
    """An installer that writes two files with the modes of a strict umask, and counts its calls."""
    calls = []

    def install(folder: Path) -> None:
        calls.append(folder)
        (folder / "numpy").mkdir(mode=0o700)
        (folder / "numpy" / "core.so").write_text("")
        (folder / "numpy" / "core.so").chmod(0o700)
        (folder / "numpy" / "__init__.py").write_text("")
        (folder / "numpy" / "__init__.py").chmod(0o600)

    monkeypatch.setattr(environment, "_install", install)
    return calls


def modes(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): stat.S_IMODE(p.stat().st_mode) for p in [folder, *folder.rglob("*")]}


def test_it_is_made_once_and_found_again(cache, toy_pip):
    said: list[str] = []
    assert find_environment() is None
    made = ensure_environment(said.append)
    assert made.parent == cache / "klearbench" and find_environment() == made
    assert ensure_environment(said.append) == made
    assert len(toy_pip) == 1 and len(said) == 1 and str(made) in said[0]
    assert [p.name for p in made.parent.iterdir()] == [made.name], "nothing temporary is left"


def test_every_user_can_read_it_whatever_the_umask(cache, toy_pip):
    assert modes(ensure_environment(print)) == {
        ".": 0o755,
        "numpy": 0o755,
        "numpy/core.so": 0o755,
        "numpy/__init__.py": 0o644,
        MARKER: 0o644,
    }


def test_half_an_environment_is_made_anew(cache, toy_pip):
    made = ensure_environment(print)
    (made / MARKER).unlink()
    (made / "rubbish").write_text("")
    assert find_environment() is None
    assert ensure_environment(print) == made and not (made / "rubbish").exists()


def test_other_pins_and_another_python_have_environments_of_their_own(cache, toy_pip, monkeypatch, tmp_path):
    first = ensure_environment(print)
    monkeypatch.setattr(sys.implementation, "cache_tag", "cpython-399")
    assert find_environment() is None
    other = tmp_path / "pins.txt"
    other.write_text("numpy==1.0\n")
    second = ensure_environment(print)
    monkeypatch.setattr(environment, "PINS", other)
    third = ensure_environment(print)
    assert len({first, second, third}) == 3
    assert json.loads((third / MARKER).read_text())["python"] == "cpython-399"


def test_one_that_another_process_finished_meanwhile_is_taken(cache, monkeypatch):
    def install(folder: Path) -> None:
        (folder / "mine").write_text("")
        theirs = environment._folder()
        theirs.mkdir()
        (theirs / MARKER).write_text(json.dumps(environment._identity()))

    monkeypatch.setattr(environment, "_install", install)
    made = ensure_environment(print)
    assert not (made / "mine").exists() and [p.name for p in made.parent.iterdir()] == [made.name]


def test_a_failed_install_leaves_nothing_and_says_why(cache, monkeypatch, tmp_path):
    pins = tmp_path / "pins.txt"
    pins.write_text("no-such-thing @ file:///nowhere/no_such_thing-1-py3-none-any.whl\n")
    monkeypatch.setattr(environment, "PINS", pins)
    with pytest.raises(SandboxUnavailable, match=r"^pip could not install .*pins.txt: ERROR: .*KLEARBENCH_SOLUTIONS"):
        ensure_environment(print)
    assert list((cache / "klearbench").iterdir()) == []


def test_a_cache_that_cant_be_written_comes_with_its_remedy(cache, monkeypatch):
    (cache / "klearbench").write_text("a file")
    with pytest.raises(SandboxUnavailable, match=r"remedy: XDG_CACHE_HOME=DIR, or KLEARBENCH_SOLUTIONS=DIR"):
        ensure_environment(print)


def test_a_folder_of_the_users_own_is_taken_as_it_is(cache, toy_pip, monkeypatch, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("KLEARBENCH_SOLUTIONS", str(own))
    assert find_environment() == own == ensure_environment(print)
    assert toy_pip == [] and list(own.iterdir()) == []
    monkeypatch.setenv("KLEARBENCH_SOLUTIONS", str(own / "absent"))
    with pytest.raises(UsageError, match=r"KLEARBENCH_SOLUTIONS=.*absent: no such folder"):
        find_environment()


def test_every_package_is_pinned():
    lines = [line for line in PINS.read_text().splitlines() if line and not line.startswith("#")]
    assert {line.split("==")[0] for line in lines} >= {"numpy", "sortedcontainers"}
    assert all(line.count("==") == 1 for line in lines)


@pytest.mark.slow
def test_the_real_one_can_be_imported_by_a_bare_python():
    folder = ensure_environment(print)
    code = "import sys; sys.path = [*sys.path, sys.argv[1]]; import numpy, sortedcontainers; print(numpy.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, folder],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(folder))
