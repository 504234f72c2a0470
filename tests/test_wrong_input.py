"""Wrong input, as a user gives it to the real commands: one clear line, exit 2, nothing written, nothing lost.

Where several commands import torch the first one is real, and the others are forked from a process that has.
"""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests import warm
from tests.tools import ROOT, complaint, jsonl, ok, run, snapshot, tiny, write_jsonl

PUZZLES = ("eval", "--suite", "puzzles", "--engine", "scripted", "--limit", "5")


def refused(*words: object, says: str, by=run, **options) -> str:
    said = complaint(by(*words, **options))
    assert says in said, said
    return said


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["eval", "--suite", "amie24"], "unknown suite 'amie24'; did you mean 'aime24'?"),
        (["eval", "--suite", "absent.jsonl"], "absent.jsonl: no such file"),
        (["eval", "--suite", "puzzles", "--engine", "scriptd"], "unknown engine 'scriptd'; did you mean 'scripted'?"),
        (["eval", "--suite", "puzzles", "--engine", "replay"], "engine 'replay' needs --model"),
        (["eval", "--suite", "puzzles", "--engine", "replay", "--model", "no.jsonl"], "no.jsonl: no such file"),
        (["eval", "--suite", "puzzles", "--engine", "scripted", "--dtype", "float32"], "unknown option 'dtype'"),
        (["eval", "--suite", "puzzles", "--engin", "scripted"], "No such option"),
        (["eval", "--engine", "scripted"], "Missing option '--suite'"),
        (["eval", "--suite", "puzzles", "--samples", "0"], "--samples"),
        (["eval", "--suite", "puzzles", "--samples", "many"], "--samples"),
        (["eval", "--suite", "puzzles", "--temperature", "-1"], "--temperature"),
        (["eval", "--suite", "puzzles", "--top-p", "0"], "--top-p"),
        (["eval", "--suite", "puzzles", "--math-judge", "lax"], "--math-judge"),
        (["evil"], "No such command 'evil'"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)
def test_a_wrong_evaluation_command(tmp_path, out, words, says):
    wants_out = words[0] == "eval"
    refused("klearbench", *words, *(["-o", out] if wants_out else []), says=says, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["klearbench", "score", "absent"], "absent: is no run folder"),
        (["klearbench", "report", "absent", "-o", "r.html"], "absent: is no run folder"),
        (["klearbench", "regress", "absent", "absent"], "absent: is no run folder"),
        (["klearbench", "curate", "absent.yaml", "-o", "data"], "absent.yaml: no such file"),
        (["klearbench", "judge", "absent.jsonl", "--problems", "none.jsonl", "-o", "v.jsonl"], "no such file"),
        (["klearrl", "train", "absent.yaml", "-o", "run"], "absent.yaml: no such file"),
        (["klearrl", "train", "absent.yaml"], "Missing option '-o'"),
        (["klearrl", "export", "absent", "-o", "model"], "absent: is no checkpoint"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
@pytest.mark.train
def test_what_is_not_there(tmp_path, words, says):
    refused(*words, says=says, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_code_of_a_missing_benchmark_file_says_where_it_is_looked_for(tmp_path, out):
    words = ("klearbench", "eval", "--suite", "aime24", "--engine", "scripted", "-o", out)
    refused(*words, says="suite 'aime24' needs aime24.jsonl: name its folder by --data-dir DIR or KLEARBENCH_DATA")
    refused(*words, "--data-dir", tmp_path, says="aime24.jsonl: no such file")
    assert not out.exists()


def suite_file(folder, corrupt: bool = False):
    rows = [{"id": f"q{i}", "problem": f"{i % 10} max 3 = ?", "answer": str(max(i % 10, 3))} for i in range(30)]
    path = write_jsonl(folder / "mine.jsonl", rows)
    return spoil(path) if corrupt else path


def spoil(path):
    """Cut line 17 in two."""
    lines = path.read_text().splitlines()
    lines[16] = lines[16][: len(lines[16]) // 2]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_corrupt_line_17_of_a_suite(tmp_path, out):
    path = suite_file(tmp_path, corrupt=True)
    refused("klearbench", "eval", "--suite", path, "--engine", "scripted", "-o", out, says=f"{path}:17: not valid JSON")
    assert not out.exists()


@pytest.mark.parametrize("spoilt", ["completions", "problems"])
def test_a_corrupt_line_17_of_what_is_judged(tmp_path, out, spoilt):
    problems = write_jsonl(
        tmp_path / "problems.jsonl", [{"id": f"q{i}", "kind": "math", "answer": str(i)} for i in range(30)]
    )
    completions = write_jsonl(
        tmp_path / "completions.jsonl",
        [{"problem_id": f"q{i}", "sample_index": 0, "completion": f"\\boxed{{{i}}}"} for i in range(30)],
    )
    spoil(tmp_path / f"{spoilt}.jsonl")
    refused(
        "klearbench", "judge", completions, "--problems", problems, "-o", out,
        says=f"{spoilt}.jsonl:17: not valid JSON",
    )  # fmt: skip
    assert not out.exists()


PROGRAM = {"problem_id": "d", "sample_index": 0, "code": "print(2 * int(input()))"}
DOUBLE = {"id": "d", "kind": "code", "tests": [{"input": "2", "output": "4"}]}


def programs(folder, problem=DOUBLE, **row) -> tuple[object, ...]:
    """The words of a `judge` command for one program, without its output."""
    completions = write_jsonl(folder / "completions.jsonl", [PROGRAM | row])
    return ("klearbench", "judge", completions, "--problems", write_jsonl(folder / "problems.jsonl", [problem]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tests": None}, "problems.jsonl:1: problem 'd': tests are missing"),
        ({"tests": []}, "it has no test, so that no program could fail it"),
        ({"tests": [{"input": "2"}]}, "test 1: output is missing"),
        ({"checker": "tokenz"}, "unknown checker 'tokenz'; did you mean 'tokens'?"),
        ({"checker": "floats:2"}, "the tolerance '2' of the checker 'floats' is no number from 0 to 1"),
        ({"checker": "def chek(a, b, c):\n    return True"}, "defines no function check(input, expected, output)"),
        ({"mode": "stdin"}, "unknown mode 'stdin'; did you mean 'stdio'?"),
        ({"mode": "functional"}, "mode 'functional' needs a function's name"),
        ({"time_limit_s": 0}, "time_limit_s is 0, a positive number was expected"),
        ({"test": []}, "unknown key 'test'; did you mean 'tests'?"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_code_problem_that_cannot_be_judged(tmp_path, out, change, says):
    refused(*programs(tmp_path, DOUBLE | change), "-o", out, says=says)
    assert {path.name for path in tmp_path.iterdir()} == {"completions.jsonl", "problems.jsonl"}


def test_a_program_that_is_given_twice_or_not_at_all_and_options_that_do_not_exist(tmp_path, out):
    words = programs(tmp_path, completion="x")
    refused(*words, "-o", out, says="exactly one of completion, code, answer is needed, found completion, code")
    words = programs(tmp_path)
    refused(*words, "--mode", "strikt", "-o", out, says="'strikt' is not one of 'strict'")
    refused(*words, "--sandbox", "dokcer", "-o", out, says="'dokcer' is not one of 'local', 'docker'")
    answer = write_jsonl(tmp_path / "answer.jsonl", [{"problem_id": "d", "sample_index": 0, "answer": "4"}])
    refused(*words[:2], answer, *words[3:], "-o", out, says='"answer" row for a code problem; give "completion"')
    assert {path.name for path in tmp_path.iterdir()} == {"completions.jsonl", "problems.jsonl", "answer.jsonl"}


def evaluated_programs(folder) -> tuple[object, ...]:
    """The words of an `eval` command for one recorded program, without its output."""
    suite = write_jsonl(folder / "suite.jsonl", [{"id": "d", "problem": "Double it.", "tests": DOUBLE["tests"]}])
    recorded = write_jsonl(folder / "recorded.jsonl", [PROGRAM | {"completion": "```\nprint(4)\n```"}])
    return ("klearbench", "eval", "--suite", suite, "--engine", "replay", "--model", recorded, "--samples", 1)


@pytest.mark.parametrize("command", ["judge", "eval"])
def test_a_sandbox_that_is_not_there_is_told_before_anything_is_made(tmp_path, out, command):
    words = programs(tmp_path) if command == "judge" else evaluated_programs(tmp_path)
    package = tmp_path / "without" / "docker"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError")
    before = snapshot(tmp_path)
    for env, says in (
        ({"PYTHONPATH": str(package.parent)}, "no Python package docker (remedy: pip install 'klearbench[docker]')"),
        ({"DOCKER_HOST": f"unix://{tmp_path}/none"}, "/none (remedy: start dockerd or podman's service, or set DOCKER"),
    ):
        refused(*words, "--sandbox", "docker", "-o", out, says=says, PYTHONDONTWRITEBYTECODE="1", **env)
    says = "/none: no such folder (remedy: name one, or unset it)"
    refused(*words, "-o", out, says=says, KLEARBENCH_SOLUTIONS=f"{tmp_path}/none")
    assert snapshot(tmp_path) == before
    ok(*words, "-o", out)


@pytest.mark.parametrize("name", ["samples", "verdicts"])
def test_a_corrupt_line_17_of_a_run_loses_nothing(tmp_path, out, name):
    words = ("klearbench", "eval", "--suite", suite_file(tmp_path), "--engine", "scripted", "-o", out)
    ok(*words)
    spoil(out / f"{name}.jsonl")
    before = snapshot(out)
    for again in (words, ("klearbench", "score", out)):
        refused(*again, says=f"{name}.jsonl:17: not valid JSON")
        assert snapshot(out) == before
    assert len((out / f"{name}.jsonl").read_text().splitlines()) == 30


def test_a_corrupt_manifest(tmp_path, out):
    ok("klearbench", *PUZZLES, "-o", out)
    (out / "manifest.json").write_text("{")
    before = snapshot(out)
    refused("klearbench", *PUZZLES, "-o", out, says="manifest.json: not a readable manifest")
    refused("klearbench", "score", out, says="manifest.json: not a readable manifest")
    assert snapshot(out) == before


def test_an_existing_run_with_another_configuration(out):
    ok("klearbench", *PUZZLES, "-o", out)
    before = snapshot(out)
    refused(
        "klearbench", *PUZZLES, "--temperature", 1, "-o", out, says="sampling.temperature = 0.6, this command has 1"
    )
    refused("klearbench", *PUZZLES[:-1], 4, "-o", out, says="limit = 5, this command has 4; use the same limit")
    assert snapshot(out) == before
    ok("klearbench", *PUZZLES, "-o", out)


def test_an_output_that_is_a_file_or_somebody_elses_folder(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    refused("klearbench", *PUZZLES, "-o", file, says="notes.txt is a file; -o needs a folder")
    refused("klearbench", *PUZZLES, "-o", tmp_path, says="is not empty and is no run (it holds 'notes.txt')")
    recipe = ROOT / "recipes/puzzles/curate.yaml"
    refused("klearbench", "curate", recipe, "-o", file, "--set", "sources.0.count=5", says="-o needs a folder")
    ok("klearbench", *PUZZLES, "-o", tmp_path / "run")
    refused("klearbench", "report", tmp_path / "run", "-o", tmp_path, says=str(tmp_path))
    refused("klearbench", "report", tmp_path / "run", "-o", file / "r.html", says=str(file))
    refused("klearbench", *PUZZLES, "-o", file / "run", says=str(file))
    assert file.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "run"]


def recipe_with(folder, name: str, old: str, new: str):
    text = (ROOT / "recipes/puzzles" / name).read_text()
    assert old in text
    path = folder / name
    path.write_text(text.replace(old, new, 1))
    return path, next(n for n, line in enumerate(path.read_text().splitlines(), 1) if new.splitlines()[0] in line)


@pytest.mark.parametrize(
    ("program", "command", "old", "new", "says"),
    [
        ("klearbench", "curate", "teacher:", "teecher:", "did you mean 'teacher'?"),
        ("klearbench", "curate", "  samples: 2", "  sampels: 2", "did you mean 'samples'?"),
        ("klearbench", "curate", "  samples: 2", "  samples: two", "teacher.samples is 'two'"),
        ("klearrl", "train", "    batch_size: 64", "    batchsize: 64", "did you mean 'batch_size'?"),
        ("klearrl", "train", "kind: gppo, clip_low", "kind: gpop, clip_low", "'gppo'"),
        ("klearrl", "train", "    mini_batches: 4", "    mini_batches: 5", "must divide prompts"),
        ("klearrl", "train", "stages:", "stages: [", "not valid YAML"),
    ],
    ids=lambda value: value.strip()[:20],
)
def test_a_bad_key_of_a_recipe(tmp_path, out, program, command, old, new, says):
    path, line = recipe_with(tmp_path, f"{command}.yaml", old, new)
    said = refused(program, command, path, "-o", out, says=says)
    if "not valid YAML" not in says and "divide" not in says:
        assert f"{path.name}:{line}: " in said
    assert not out.exists()


@pytest.mark.parametrize(("program", "command"), [("klearbench", "curate"), ("klearrl", "train")])
def test_a_bad_override(out, program, command):
    recipe = ROOT / "recipes/puzzles" / f"{command}.yaml"
    refused(program, command, recipe, "-o", out, "--set", "sede=1", says="did you mean 'seed'?")
    refused(program, command, recipe, "-o", out, "--set", "seed", says="write it as key=value")
    assert not out.exists()


@pytest.mark.train
def test_training_data_that_is_not_there(tmp_path, out):
    recipe = ROOT / "recipes/puzzles/train.yaml"
    says = "no such dataset folder; make it by `klearbench curate`"
    refused("klearrl", "train", recipe, "-o", out, "--set", f"data={tmp_path / 'none'}", says=says)
    out.mkdir(exist_ok=True)
    (out / "notes.txt").write_text("mine")
    says = "notes.txt" if not (out / "manifest.json").exists() else str(out)
    refused("klearrl", "train", recipe, "-o", out, says=says, by=warm.run)
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.train
def test_a_model_folder_that_lacks_something(tmp_path, out):
    model = tiny(tmp_path / "model")
    words = ("klearbench", "eval", "--suite", "puzzles", "--limit", 2, "--max-tokens", 4, "-o", out)
    bare = shutil.copytree(model, tmp_path / "bare")
    (bare / "tokenizer.json").unlink()
    refused(*words, "--model", bare, says="has no tokenizer (tokenizer.json)")
    hollow = shutil.copytree(model, tmp_path / "hollow")
    (hollow / "model.safetensors").unlink()
    refused(*words, "--model", hollow, says="no model can be loaded", by=warm.run)
    refused(*words, "--model", tmp_path / "nowhere", says="nowhere", by=warm.run)
    refused(*words, says="engine 'hf' needs --model", by=warm.run)
    refused(*words, "--model", model, "--rope-scaling", "yarn", says="write yarn:FACTOR", by=warm.run)
    assert not out.exists()


@pytest.mark.train
def test_a_model_without_a_chat_template_works_with_a_note(tmp_path, out):
    model = tiny(tmp_path / "model", template=False)
    words = ("klearbench", "eval", "--suite", "puzzles", "--limit", 2, "--max-tokens", 4, "--model", model)
    done = run(*words, "-o", out)
    assert done.returncode == 0
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert notes == ["note: the tokenizer has no chat template; prompts are plain text (--chat-template plain)"]
    assert json.loads((out / "manifest.json").read_text())["config"]["engine"]["chat_template"] == "plain"
    quiet = warm.run(*words, "--chat-template", "plain", "-o", out)
    assert quiet.returncode == 0 and "note: " not in quiet.stderr


def test_a_full_disk_says_one_line_and_loses_nothing(tmp_path, out):
    """Without a small file system: the operating system's answer comes from a fault point."""
    words = ("klearbench", *PUZZLES, "--batch-size", 2, "-o", out)
    for fault, samples in (("half.samples.jsonl:3:enospc", (2,)), ("append.verdicts.jsonl:1:enospc", (4, 5)),
                           ("write_atomic:2:enospc", (5,))):  # fmt: skip
        said = complaint(run(*words, fault=fault))
        assert "no space left on the disk" in said and "rerun the same command" in said
        assert len(jsonl(out / "samples.jsonl")) in samples, "judging may lag a batch behind"
    ok(*words)
    ok("klearbench", *PUZZLES, "--batch-size", 2, "-o", tmp_path / "whole")
    assert (out / "scores.json").read_bytes() == (tmp_path / "whole" / "scores.json").read_bytes()


def test_a_file_system_that_is_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        words = ("klearbench", "eval", "--suite", "puzzles", "--engine", "scripted", "--samples", 4)
        said = complaint(run(*words, "-o", disk / "run"))
        assert "no space left on the disk" in said
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        ok(*words, "-o", disk / "run")
        ok(*words, "-o", tmp_path / "whole")
        assert (disk / "run/scores.json").read_bytes() == (tmp_path / "whole/scores.json").read_bytes()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_debug_shows_where(tmp_path, out):
    for words in (["--debug", "eval", "--suite", "amie24"], ["eval", "--suite", "amie24", "--debug"]):
        done = run("klearbench", *words, "-o", out)
        assert done.returncode == 2
        assert "Traceback" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("klearbench: unknown suite 'amie24'")


def test_our_own_crash_is_70_and_one_line(out):
    said = complaint(run("klearbench", *PUZZLES, "-o", out, fault="engine.call:1:raise"), 70)
    assert said == (
        "klearbench: our own fault, please report it: RuntimeError: fault point engine.call (--debug shows where)"
    )
    done = run("klearbench", "--debug", *PUZZLES, "-o", out, fault="engine.call:1:raise")
    assert done.returncode == 70 and "Traceback" in done.stderr
    assert not (out / ".lock").exists()
    ok("klearbench", *PUZZLES, "-o", out)
