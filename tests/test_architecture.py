"""The architecture's rules that can be read off the source or a fresh interpreter.

Rule 1: klearrl imports klearbench, never the reverse. Rule 2, its static part: engines and sandboxes don't know the
types that hold answers. Rule 4: reading a config or the help text loads nothing heavy. And: no labelled case of the
shared corpora stands in the packages, where it would turn a measure of quality into a memory test.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("klearbench", "klearrl")
HEAVY = ("torch", "transformers", "vllm", "datasets")
RECIPES = sorted(ROOT.glob("recipes/**/*.yaml"))


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, at any depth, by statement or by name in a call of importlib."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (str(a.value) for a in node.args if isinstance(a, ast.Constant))


def names(path: Path) -> Iterator[str]:
    """Every identifier of a file: names, attributes, imported names, argument names, words of quoted annotations."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")
        elif isinstance(node, ast.arg):
            yield node.arg


def strings(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_walk_sees_every_kind_of_import(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "import klearrl.a as x\ndef f():\n    from klearrl import b\n    importlib.import_module('klearrl.c')\n"
    )
    assert sorted(imported(path)) == ["klearrl", "klearrl.a", "klearrl.c"]


@pytest.mark.parametrize("path", modules("klearbench"), ids=lambda p: str(p.relative_to(ROOT)))
def test_klearbench_never_imports_klearrl(path):
    assert [name for name in imported(path) if name.split(".")[0] == "klearrl"] == []


@pytest.mark.parametrize(
    "path",
    [
        *modules("klearbench/engines", "klearbench/sandbox"),
        *(p for p in modules("klearrl/rollouts") if p.stem in ("hf", "vllm")),
    ],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_engines_and_sandboxes_know_no_answers(path):
    assert {"Answer", "ExpectedOutputs", "CodeTests", "Reference", "answers", "expected_outputs"}.isdisjoint(
        names(path)
    )
    assert [name for name in imported(path) if name.startswith("klearbench.judging")] == []


@pytest.mark.parametrize("path", modules("klearbench/sandbox"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_sandbox_imports_no_part_of_ours_that_could_hold_an_answer(path):
    ours = {name for name in imported(path) if name.split(".")[0] in PACKAGES}
    allowed = ("klearbench.sandbox", "klearbench.errors", "klearbench.faults")
    assert {name for name in ours if name != "klearbench" and not name.startswith(allowed)} == set()


@pytest.mark.parametrize("path", modules("klearbench/sandbox/inside"), ids=lambda p: p.name)
def test_what_runs_inside_a_sandbox_needs_the_standard_library_alone(path):
    others = {name.split(".")[0] for name in imported(path) if not name.startswith(".")}
    assert others <= set(sys.stdlib_module_names)


def test_a_command_has_no_field_for_an_answer():
    from dataclasses import fields

    from klearbench.sandbox.base import Command, Limits

    assert [f.name for f in fields(Command)] == ["code", "mode", "fn_name", "preamble", "wait_for_threads", "limits"]
    assert [f.name for f in fields(Limits)] == ["cpu_s", "wall_s", "memory_mb", "output_mb"]


def test_the_records_that_engines_see_have_no_field_for_an_answer():
    from dataclasses import fields

    from klearbench.engines.base import Generation, Request
    from klearbench.types import Problem, TestInputs

    held = {f.name for cls in (Problem, Request, Generation, TestInputs) for f in fields(cls)}
    assert not {name for name in held if re.search("answer|expected|output|gold|solution", name)}


def loaded_by(code: str) -> list[str]:
    """The heavy packages in sys.modules after a fresh interpreter has run the code."""
    report = f"\nimport sys\nprint([m for m in {HEAVY} if m in sys.modules], file=sys.__stderr__)"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stderr.splitlines()[-1])


LIGHT = [
    "klearbench", "klearbench.cli", "klearbench.config", "klearbench.curation.recipe",
    "klearrl", "klearrl.cli", "klearrl.config", "klearrl.schedule", "klearrl.advantages",
]  # fmt: skip


@pytest.mark.parametrize("module", LIGHT)
def test_importing_what_reads_configs_loads_nothing_heavy(module):
    assert loaded_by(f"import {module}") == []


def test_the_check_for_heavy_imports_can_fail():
    if importlib.util.find_spec("datasets") is None:
        pytest.skip("datasets is not installed")
    assert "datasets" in loaded_by("import datasets")


def reader(path: Path) -> tuple[str, str]:
    """The module and function that reads a recipe, told by its top-level keys."""
    keys = yaml.safe_load(path.read_text(encoding="utf-8")).keys()
    if "stages" in keys:
        return "klearrl.config", "load_train_recipe"
    if "sources" in keys:
        return "klearbench.curation.recipe", "load_curation"
    raise AssertionError(f"{path} is neither a training recipe (stages) nor a curation recipe (sources)")


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_recipe_is_read_without_anything_heavy(path):
    module, function = reader(path)
    code = f"from pathlib import Path\nfrom {module} import {function}\nprint({function}(Path({str(path)!r})))"
    assert loaded_by(code) == []


def cpu_seconds(*command: str) -> float:
    """User and system time of a command, the best of seven."""
    best = float("inf")
    for _ in range(7):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        best = min(best, used.ru_utime + used.ru_stime)
    return best


@pytest.mark.parametrize("module", ["klearbench.cli", "klearrl.cli"])
def test_help_costs_no_more_than_a_third_of_a_second(module):
    bare = cpu_seconds(sys.executable, "-c", "pass")
    assert cpu_seconds(sys.executable, "-m", module, "--help") - bare < 0.3


@pytest.mark.parametrize("path", modules(*PACKAGES), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_test_files_have_names_of_their_own():
    stems = [path.name for path in ROOT.glob("tests/**/test_*.py")]
    assert len(stems) == len(set(stems))


# Labelled cases. What a case is about stands in these fields; the others (kind, verdict, mode ...) hold plain words.
PAYLOAD = {"code", "completion", "extracted", "gold", "answer", "text", "statement", "input", "output", "reference"}
EQUAL_FROM = 12
"""A constant of this length or more must equal no payload: `\\frac{1}{2}` and `\\mathbb{R}` are notation."""
INSIDE_FROM = 25
"""A payload of this length or more must stand in no constant and in no other file of a package."""


def payloads(value: Any, field: str = "") -> Iterator[str]:
    if isinstance(value, str) and field in PAYLOAD:
        yield value.strip()
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from payloads(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from payloads(inner, field)


def leaks(cases: set[str], ids: set[str], constants: dict[str, str], files: dict[str, str]) -> list[str]:
    """Where a case stands in the packages.

    Args:
        cases: payloads of the corpora.
        ids: names of cases.
        constants: string constant -> the file it stands in.
        files: file -> its whole text, for what is no Python.
    """
    found = [f"{where}: {text!r} is a case" for text, where in constants.items() if text.strip() in cases]
    by_file: dict[str, list[str]] = {}
    for text, where in constants.items():
        by_file.setdefault(where, []).append(text)
    haystacks = {where: "\0".join(texts) for where, texts in by_file.items()} | files
    long = [case for case in cases if len(case) >= INSIDE_FROM]
    for where, text in haystacks.items():
        found += [f"{where}: holds {case!r}" for case in long if case in text]
        found += [f"{where}: names the case {word}" for word in set(re.findall(r"[A-Za-z0-9_-]+", text)) & ids]
    return sorted(set(found))


def shared_cases(folder: Path) -> tuple[set[str], set[str]]:
    cases, ids = set(), set()
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            cases |= {text for text in payloads(row) if len(text) >= EQUAL_FROM}
            if path.name != "benchmarks.jsonl":  # its ids are the public benchmarks' own
                ids.add(row["id"])
    return cases, ids


@pytest.mark.shared
def test_no_shared_case_stands_in_the_packages(shared):
    cases, ids = shared_cases(shared / "cases")
    assert len(cases) > 3000 and len(ids) > 2000
    constants = {text: str(path.relative_to(ROOT)) for path in modules(*PACKAGES) for text in strings(path)}
    others = [p for package in PACKAGES for p in (ROOT / package).rglob("*") if p.is_file() and p.suffix != ".py"]
    files = {str(p.relative_to(ROOT)): p.read_text(errors="replace") for p in others if "__pycache__" not in p.parts}
    assert leaks(cases, ids, constants, files) == []


def test_a_planted_case_is_found():
    case = "print(sum(map(int, input().split())))"
    constants = {
        "x = 1\n" + case + "\n": "a.py",
        "see eq-0001 there": "b.py",
        "plain words": "c.py",
        "1000000000007!": "d.py",
    }
    files = {"t.html": f"<pre>{case}</pre>", "u.md": "nothing"}
    assert leaks({case, "1000000000007!"}, {"eq-0001"}, constants, files) == [
        f"a.py: holds {case!r}",
        "b.py: names the case eq-0001",
        "d.py: '1000000000007!' is a case",
        f"t.html: holds {case!r}",
    ]
