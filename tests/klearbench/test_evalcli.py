"""`klearbench eval`: presets, flags that override them, options of engines."""

from __future__ import annotations

import json

import pytest
from tools import complaint, ok, run, write_jsonl

from klearbench.presets import PRESETS

PUZZLES = ("klearbench", "eval", "--suite", "puzzles", "--engine", "scripted", "--limit", 2)


def config(folder) -> dict:
    return json.loads((folder / "manifest.json").read_text())["config"]


def test_every_sampling_control_is_recorded(tmp_path):
    flags = ("--temperature", 0.7, "--top-p", 0.9, "--top-k", 5, "--min-p", 0.1, "--repetition-penalty", 1.1)
    more = ("--max-tokens", 99, "--stop", "END", "--stop", "\n\n", "--system", "Be brief.", "--no-errata", "--seed", 3)
    ok(*PUZZLES, *flags, *more, "-o", tmp_path)
    found = config(tmp_path)
    assert found["sampling"] == {
        "temperature": 0.7, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1,
        "max_tokens": 99, "stop": ["END", "\n\n"],
    }  # fmt: skip
    assert (found["system"], found["errata"], found["seed"], found["prompt"]) == ("Be brief.", False, 3, "ours")


@pytest.mark.parametrize(("name", "max_tokens", "top_k"), [("klear-32k", 32768, 0), ("klear-script", 32768, 20)])
def test_a_preset_sets_what_its_figures_were_measured_with(tmp_path, name, max_tokens, top_k):
    ok(*PUZZLES, "--preset", name, "-o", tmp_path)
    found = config(tmp_path)
    assert (found["sampling"]["max_tokens"], found["sampling"]["top_k"]) == (max_tokens, top_k)
    assert (found["sampling"]["temperature"], found["sampling"]["top_p"], found["prompt"]) == (0.6, 0.95, "official")
    assert json.loads((tmp_path / "manifest.json").read_text())["about"]["preset"] == name


def test_a_flag_overrides_a_preset_even_with_the_flags_own_default(tmp_path):
    ok(*PUZZLES, "--preset", "klear-script", "--top-k", 0, "--max-tokens", 10, "--samples", 2, "-o", tmp_path)
    found = config(tmp_path)
    assert found["sampling"]["top_k"] == 0 and found["sampling"]["max_tokens"] == 10
    assert found["sampling"]["repetition_penalty"] == 1.05
    assert found["samples"] == 2


def test_a_preset_that_stretches_says_so_where_the_engine_cannot(tmp_path):
    done = run(*PUZZLES, "--preset", "klear-64k", "-o", tmp_path)
    assert done.returncode == 0
    assert "note: --rope-scaling yarn:2.5 of the preset is not ours to set" in done.stderr
    said = complaint(run(*PUZZLES, "--rope-scaling", "yarn:2.5", "-o", tmp_path / "other"))
    assert "rope_scaling" in said


@pytest.mark.shared
def test_a_preset_gives_each_suite_its_own_k(tmp_path, shared):
    from klearbench.suites.registry import load_suite

    first = load_suite("aime24", shared / "data").problems[0].id
    puzzle = load_suite("puzzles").problems[0].id
    rows = [{"problem_id": first, "sample_index": i, "completion": "\\boxed{1}"} for i in range(64)]
    rows.append({"problem_id": puzzle, "sample_index": 0, "completion": "\\boxed{1}"})
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    suites = ("--suite", "aime24", "--suite", "puzzles", "--limit", 1, "--data-dir", shared / "data")
    ok(
        "klearbench",
        "eval",
        *suites,
        "--engine",
        "replay",
        "--model",
        path,
        "--preset",
        "klear-32k",
        "-o",
        tmp_path / "r",
    )
    assert config(tmp_path / "r")["samples"] == {"aime24": 64, "puzzles": 1}


def test_engine_arguments_are_read_as_numbers_or_text_and_checked(tmp_path):
    ok(*PUZZLES, "--engine-arg", 'errors={"max": 0}', "--engine-arg", "batch_size=1", "-o", tmp_path)
    assert config(tmp_path)["engine"]["errors"]["max"] == 0
    for text, says in (("errors", "write it as key=value"), ("warmth=1", "unknown option 'warmth'")):
        assert says in complaint(run(*PUZZLES, "--engine-arg", text, "-o", tmp_path / "x"))


def test_an_unknown_preset_is_named_with_those_there_are(tmp_path):
    said = complaint(run(*PUZZLES, "--preset", "klear-32", "-o", tmp_path / "x"))
    assert all(name in said for name in PRESETS) and "did you mean 'klear-32k'" in said
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--stop", ""), "an empty text ends every completion"),
        (("--engine-arg", "batch_size=0"), "batch_size is 0 (int is expected)"),
        (("--engine-arg", "batch_size=x"), "batch_size is 'x' (int is expected)"),
        (("--engine-arg", "errors=5"), "errors is 5"),
        (("--batch-size", 4, "--engine-arg", "batch-size=3"), "batch_size is given twice"),
    ],
)
def test_values_that_no_engine_can_take_are_refused_in_one_line(tmp_path, words, says):
    assert says in complaint(run(*PUZZLES, *words, "-o", tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_a_report_is_never_written_over_a_runs_own_file(tmp_path):
    ok(*PUZZLES, "-o", tmp_path / "run")
    kept = (tmp_path / "run/manifest.json").read_bytes()
    said = complaint(run("klearbench", "report", tmp_path / "run", "-o", tmp_path / "run/manifest.json"))
    assert "a run's own file" in said
    assert (tmp_path / "run/manifest.json").read_bytes() == kept


@pytest.mark.parametrize(
    "spoiled", [{"config": 5}, {"about": []}, {"inputs": 5}, {"about": {"problems": {"puzzles": 5}}}]
)
@pytest.mark.parametrize("command", ["score", "report"])
def test_a_manifest_of_another_shape_is_one_line(tmp_path, spoiled, command):
    ok(*PUZZLES, "-o", tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | spoiled))
    words = ("-o", tmp_path / "x.html") if command == "report" else ()
    assert "manifest.json" in complaint(run("klearbench", command, tmp_path, *words))
