"""Put known bugs back, one at a time, and see that the test named in each patch fails. See README.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COPIED = ("klearbench", "klearrl", "tests", "recipes", "benchmarks", "pyproject.toml")
PASSED, FAILED = 0, 1  # pytest's exit codes; others mean that nothing was tested


def named_test(patch: Path) -> str:
    """The test in a patch's first line. Raises SystemExit when there is none."""
    first = patch.read_text().splitlines()[0]
    if not first.startswith("# test: tests/"):
        raise SystemExit(f"{patch.name}: the first line must be '# test: tests/...::test_name'")
    return first.removeprefix("# test: ").strip()


def copy_tree(to: Path) -> None:
    """The working tree without what git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *COPIED]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def run(command: list[str], tree: Path) -> subprocess.CompletedProcess[str]:
    # No bytecode: a patch may keep a file's size, and its time may be equal within a second.
    env = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)


def run_tests(tests: list[str], tree: Path) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests], tree)


def verdict(patch: Path, tree: Path) -> str:
    """ "killed", or why not."""
    applied = run(["git", "apply", str(patch)], tree)
    if applied.returncode:
        return f"does not apply: {applied.stderr.strip().splitlines()[0]}"
    code = run_tests([named_test(patch)], tree).returncode
    run(["git", "apply", "-R", str(patch)], tree).check_returncode()
    if code == FAILED:
        return "killed"
    return "SURVIVED" if code == PASSED else f"not tested (pytest exit {code})"


def main() -> int:
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    patches = sorted(HERE.glob(f"{prefix}*.patch"))
    if not patches:
        raise SystemExit(f"no patch starts with {prefix!r}")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree)
        where = run([sys.executable, "-c", "import klearbench; print(klearbench.__file__)"], tree).stdout
        if not where.startswith(folder):
            raise SystemExit(f"the copy is not what Python imports ({where.strip()})")
        clean = run_tests(sorted({named_test(patch) for patch in patches}), tree)
        if clean.returncode != PASSED:
            print(clean.stdout)
            raise SystemExit("a named test fails, or is not there, without any patch")
        verdicts = {}
        for patch in patches:
            verdicts[patch] = verdict(patch, tree)
            print(f"{patch.stem:40} {verdicts[patch]}", flush=True)
    killed = sum(v == "killed" for v in verdicts.values())
    print(f"{killed} of {len(verdicts)} mutants killed")
    return 0 if killed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
