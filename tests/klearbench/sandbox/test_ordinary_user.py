"""The judge as an ordinary user: the machine's Python, a copy of the package, the user `nobody`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import codecorpus
import pytest

import klearbench
from klearbench.sandbox.environment import VARIABLE, ensure_environment

pytestmark = [pytest.mark.shared, pytest.mark.slow]

PYTHON = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
NOBODY = 65534
EVERY = 4
"""One labelled program of so many is judged (all of those that need packages)."""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every user can read: what the code judge imports, the packages of solutions, the corpus' runner."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; an ordinary user has the other tests")
    if not PYTHON.exists():
        pytest.skip(f"no {PYTHON}: ours may lie where no other user can read it")
    with tempfile.TemporaryDirectory(prefix="ordinary-") as name:
        folder = Path(name)
        source = Path(klearbench.__file__).parent
        for part in ("__init__.py", "errors.py", "faults.py", "types.py", "sandbox", "judging"):
            if (source / part).is_dir():
                shutil.copytree(
                    source / part, folder / "klearbench" / part, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                (folder / "klearbench").mkdir(exist_ok=True)
                shutil.copy(source / part, folder / "klearbench")
        shutil.copy(codecorpus.__file__, folder)
        shutil.copytree(ensure_environment(print), folder / "solutions")
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else path.stat().st_mode | 0o444)
        yield folder


def as_nobody(place: Path, *words: object) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(place), VARIABLE: str(place / "solutions"), "HOME": "/"}
    return subprocess.run(
        [PYTHON, "-B", "-s", *map(str, words)], user=NOBODY, group=NOBODY, extra_groups=[], env=environment, cwd="/",
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip


@pytest.mark.parametrize("tier", ["namespaces", "landlock"])
def test_the_corpora_hold_for_an_ordinary_user(shared: Path, place: Path, tier: str) -> None:
    attacks, judging = (codecorpus.read_rows(shared, f"{name}_dev.jsonl") for name in ("attacks", "judging"))
    sample = [row for i, row in enumerate(judging) if i % EVERY == 0 or row.get("needs")]
    if tier == "landlock":  # time is limited in the same way in both tiers
        attacks = [row for row in attacks if row["kind"] != "time"]
    job = {"attacks": attacks, "judging": sample, "tier": tier, "workers": 12, "longest_s": 0.3}
    path = place / f"{tier}.json"
    path.write_text(json.dumps(job))
    path.chmod(0o644)
    done = as_nobody(place, place / "codecorpus.py", path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {"user": NOBODY, "attacks": [], "judging": []}


SIGNALS = """
import os, sys
from klearbench.sandbox.base import Command, Limits
from klearbench.sandbox.local import LocalSandbox
with LocalSandbox(sys.argv[1]) as sandbox:
    slot = sandbox.open()
    for how in ("os.kill(0, 9)", "os.kill(-1, 9)", "os.kill(os.getppid(), 9)", "os.killpg(os.getpgrp(), 19)",
                "[os.kill(p, 9) for p in range(1, 40) if p != os.getpid()]"):
        for words in ("", "import threading"):
            code = f"{words}\\nimport os\\ntry: {how}\\nexcept OSError: pass\\n"
            print(how, [r.status.name for r in slot.run(Command(code, limits=Limits(wall_s=0.5)), [b"", b""])])
    [result] = slot.run(Command("print(input())"), [b"alive"])
    print(result.stdout.decode().strip(), os.geteuid())
"""


@pytest.mark.parametrize("tier", ["namespaces", "landlock"])
def test_no_signal_reaches_a_process_of_the_same_user(place: Path, tier: str) -> None:
    done = as_nobody(place, "-c", SIGNALS, tier)
    assert done.stdout.endswith(f"alive {NOBODY}\n"), done.stdout + done.stderr[-1500:]


CHANGES = """
import os, sys
from klearbench.sandbox.base import Command
from klearbench.sandbox.local import LocalSandbox
name = sys.argv[2]
open(name, "w").write("kept")
os.utime(name, (5, 5))
code = f"name = {name!r}\\nimport os\\n"
for act in ("os.chmod(name, 0o777)", "os.utime(name, (1, 1))", "os.truncate(name, 0)"):
    code += f"try: {act}; print('done')\\nexcept OSError: pass\\n"
with LocalSandbox(sys.argv[1]) as sandbox:
    [result] = sandbox.open().run(Command(code), [b""])
found = os.stat(name)
print(result.stdout.decode().split(), found.st_size, found.st_mtime, oct(found.st_mode))
"""


@pytest.mark.parametrize("tier", ["namespaces", "landlock"])
def test_a_program_changes_no_file_of_the_user(place: Path, tier: str) -> None:
    """It runs as the same user, and Landlock has no say over modes and times."""
    own = place / f"own-{tier}"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    done = as_nobody(place, "-c", CHANGES, tier, own / "file")
    assert done.stdout == "[] 4 5.0 0o100644\n", done.stdout + done.stderr[-1500:]


def test_the_best_tier_is_namespaces_and_each_tier_names_itself(place: Path) -> None:
    done = as_nobody(place, "-c", "from klearbench.sandbox.local import probe; print(probe())")
    assert done.stdout == "('namespaces', '')\n", done.stderr[-1500:]
