"""The command line: exit codes, help with examples, what is printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import click
import pytest
from tools import ROOT, complaint, environment, jsonl, ok, run, tiny, write_jsonl

from klearbench import __version__
from klearbench.cli import cli
from klearrl.cli import cli as klearrl_cli

COMMANDS = [("klearbench", name) for name in cli.commands] + [("klearrl", name) for name in klearrl_cli.commands]
PUZZLES = ("klearbench", "eval", "--suite", "puzzles", "--engine", "scripted", "--limit", "10")


def help_text(group: click.Group, program: str, name: str) -> str:
    command = group.commands[name]
    return command.get_help(click.Context(command, info_name=f"{program} {name}"))


@pytest.mark.parametrize(("program", "name"), COMMANDS)
def test_every_command_has_a_help_text_with_an_example(program, name):
    text = help_text(cli if program == "klearbench" else klearrl_cli, program, name)
    assert "Example" in text
    examples = [line for line in text.splitlines() if line.startswith(("    ", "      ")) and f"{program}" in line]
    assert any(f"{program}" in line and name in line for line in examples), text


@pytest.mark.parametrize(("program", "name"), COMMANDS)
def test_the_examples_of_the_help_texts_are_valid_commands(program, name):
    """Every option of an example exists, and every required one is there."""
    group = cli if program == "klearbench" else klearrl_cli
    lines = [line.split() for line in help_text(group, program, name).splitlines()]
    examples = [words[2:] for words in lines if words[:2] == [program, name]]
    assert examples
    for words in examples:
        context = click.Context(group.commands[name], info_name=name)
        assert group.commands[name].parse_args(context, list(words)) == []  # no word is left over


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["eval", "--help"], ["regress", "-h"], ["--version"]])
def test_help_exits_0_and_loads_no_torch(words):
    code = (
        f"import sys; sys.argv = ['klearbench', *{words!r}]\n"
        "from klearbench.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert not {'torch', 'transformers', 'pyarrow', 'sympy', 'pydantic'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    assert ("Usage" in done.stdout) or (__version__ in done.stdout)


def test_the_group_help_names_every_command_and_every_exit_code():
    text = ok("klearbench", "--help")
    assert all(f"  {name} " in text for name in cli.commands)
    assert all(f" {code} " in f" {' '.join(text.split())} " for code in (0, 1, 2, 3, 70, 130, 143))


def test_no_command_at_all_shows_the_help_and_is_a_usage_error():
    done = run("klearbench")
    assert done.returncode == 2 and "Usage: klearbench" in done.stdout


def test_an_evaluation_prints_a_table_and_the_reports_path(tmp_path):
    text = ok(*PUZZLES, "--samples", "4", "-o", tmp_path / "run")
    score = json.loads((tmp_path / "run/scores.json").read_text())["puzzles"]
    row = next(line for line in text.splitlines() if line.startswith("| puzzles"))
    low, high = score["interval"]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "puzzles", f"{score['avg']:.1f}", "4", f"{low:.1f} to {high:.1f}", "0.0 %", "0",
    ]  # fmt: skip
    assert text.splitlines()[-1] == f"report: {tmp_path / 'run' / 'report.html'}"
    assert ok("klearbench", "score", tmp_path / "run") == text


def test_a_run_without_o_goes_to_a_folder_of_its_name(tmp_path):
    assert f"report: {'runs/scripted-puzzles/report.html'}" in ok(*PUZZLES, cwd=tmp_path, **package_path())
    assert (tmp_path / "runs/scripted-puzzles/scores.json").exists()


def package_path() -> dict[str, str]:
    import klearbench

    return {"PYTHONPATH": str(__import__("pathlib").Path(klearbench.__file__).parents[1])}


def test_the_gate_exits_0_1_2_and_3(tmp_path):
    good = write_jsonl(
        tmp_path / "good.jsonl",
        [{"problem_id": f"q{i}", "sample_index": j, "completion": "\\boxed{1}"} for i in range(40) for j in (0, 1)],
    )
    bad = write_jsonl(tmp_path / "bad.jsonl", [row | {"completion": "\\boxed{2}"} for row in jsonl(good)])
    suite = write_jsonl(tmp_path / "ones.jsonl", [{"id": f"q{i}", "problem": "One?", "answer": "1"} for i in range(40)])
    for name, file in (("good", good), ("bad", bad)):
        ok("klearbench", "eval", "--suite", suite, "--engine", "replay", "--model", file, "--samples", 2,
           "-o", tmp_path / name)  # fmt: skip
    assert run("klearbench", "regress", tmp_path / "bad", tmp_path / "good").returncode == 0
    assert run("klearbench", "regress", tmp_path / "good", tmp_path / "bad").returncode == 1
    assert run("klearbench", "regress", tmp_path / "good", tmp_path / "nothing").returncode == 2
    ok(*PUZZLES, "-o", tmp_path / "other")
    assert run("klearbench", "regress", tmp_path / "good", tmp_path / "other").returncode == 3


def test_an_incomplete_run_exits_3_unless_it_is_allowed(tmp_path):
    words = (*PUZZLES, "--batch-size", "4", "-o", tmp_path / "run")
    assert run(*words, fault="engine.call:2:kill").returncode == -9
    said = complaint(run("klearbench", "score", tmp_path / "run"), 3)
    missing = int(re.search(r"0 judge errors, 0 engine errors and (\d+) missing samples", said)[1])
    assert 6 <= missing <= 10, "six were not made, and of four the kill may have come before the verdicts"
    assert "incomplete" in ok("klearbench", "score", tmp_path / "run", "--allow-partial")
    ok(*words)
    ok("klearbench", "score", tmp_path / "run")


@pytest.mark.parametrize(("action", "code"), [("int", 130), ("term", 143)])
def test_signals_have_their_codes(tmp_path, action, code):
    words = (*PUZZLES, "--batch-size", "4", "-o", tmp_path / "run")
    said = complaint(run(*words, fault=f"engine.call:2:{action}"), code)
    assert "the same command goes on from here" in said
    assert not (tmp_path / "run/.lock").exists()
    ok(*words)


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{sys.executable} -m klearbench.cli suites | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, env=environment()
    )
    assert done.stderr == "" and "puzzles" in done.stdout
    assert done.returncode == 0


@pytest.mark.train
def test_a_model_is_evaluated_with_the_given_options(tmp_path):
    model = tiny(tmp_path / "model")
    ok("klearbench", "eval", "--suite", "puzzles", "--model", model, "--limit", 3, "--samples", 2, "--max-tokens", 5,
       "--temperature", 0.7, "--top-p", 0.8, "--top-k", 9, "--seed", 4, "--dtype", "float32", "--batch-size", 2,
       "--rope-scaling", "yarn:2", "-o", tmp_path / "run")  # fmt: skip
    config = json.loads((tmp_path / "run/manifest.json").read_text())["config"]
    asked = {"temperature": 0.7, "top_p": 0.8, "top_k": 9, "max_tokens": 5}
    assert config["sampling"] == {**asked, "min_p": 0.0, "repetition_penalty": 1.0, "stop": []}
    assert (config["samples"], config["limit"], config["seed"]) == (2, 3, 4)
    engine = config["engine"]
    assert (engine["dtype"], engine["batch_size"], engine["rope_scaling"]) == ("float32", 2, "yarn:2")
    assert all(row["completion_tokens"] <= 5 for row in jsonl(tmp_path / "run/samples.jsonl"))


def test_a_package_of_an_extra_that_is_absent_is_named_with_its_remedy(tmp_path):
    code = "import sys; sys.modules['torch'] = None; sys.argv = sys.argv[1:];from klearrl.cli import main; main()"
    recipe = ROOT / "recipes/puzzles/train.yaml"
    done = subprocess.run(
        [sys.executable, "-c", code, "klearrl", "train", str(recipe), "-o", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert (done.returncode, done.stderr) == (
        2,
        "klearrl: this needs the package torch: pip install 'klearbench[train]'\n",
    )
