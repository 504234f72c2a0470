"""Suites from the hub: each named one read from a hub of our own, in the columns that the real datasets have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fakehub import dataset, lines, serve
from lcbfiles import PARTS, release_rows
from tools import ROOT, complaint, environment, run

from klearbench.suites.registry import SUITES

pytest.importorskip("datasets")
pytestmark = pytest.mark.slow


def aime24(number: int) -> dict:
    place = f"2024_AIME_{'I' if number < 15 else 'II'}_Problems/Problem_{number % 15 + 1}"
    return {"id": 60 + number, "problem": f"Find {number}.", "solution": "...", "answer": f"{number:03d}",
            "url": f"https://example.org/wiki/{place}", "year": "2024"}  # fmt: skip


def by_index(number: int) -> dict:
    return {"problem_idx": number + 1, "problem": f"Find {number}.", "answer": number, "problem_type": ["Algebra"]}


def olympiad(number: int) -> dict:
    return {"id": 1000 + number, "question": f"Find {number}.", "solution": ["..."], "final_answer": ["1", "2"],
            "answer_type": "Numerical", "is_multiple_answer": True, "subfield": "Algebra", "context": None}  # fmt: skip


def math500(number: int) -> dict:
    return {"problem": f"Find {number}.", "solution": "...", "answer": r"\frac{1}{2}", "subject": "Algebra", "level": 3,
            "unique_id": f"test/algebra/{number}.json"}  # fmt: skip


def humaneval(number: int) -> dict:
    name = {32: "find_zero", 38: "decode_cyclic", 50: "decode_shift"}.get(number, "f")
    return {"task_id": f"HumanEval/{number}", "prompt": f"def {name}(x): ...", "canonical_solution": "    return 1",
            "test": "def check(candidate):\n    assert candidate(1) == 1\n", "entry_point": name}  # fmt: skip


def mbpp(number: int) -> dict:
    return {"task_id": number, "text": "Write it.", "code": "def f(): ...", "test_list": ["assert f(1) == 1"],
            "test_setup_code": "", "challenge_test_list": []}  # fmt: skip


def gsm8k(number: int) -> dict:
    return {"question": f"Find {number}.", "answer": f"It is <<1+1=2>>{number}.\n#### 1,{number:03d}"}


ROWS = {
    "aime24": map(aime24, range(30)),
    "aime25": map(by_index, range(30)),
    "aime26": map(by_index, range(30)),
    "hmmt25": map(by_index, range(30)),
    "amc23": ({"id": n, "question": f"Find {n}.", "answer": n + 0.0, "url": "https://example.org"} for n in range(40)),
    "math500": map(math500, range(500)),
    "gsm8k": map(gsm8k, range(1319)),
    "olympiad": map(olympiad, range(674)),
    "humaneval": map(humaneval, range(164)),
    "mbpp": map(mbpp, range(1, 975)),
}
"""Suite -> rows as its dataset has them."""
HAND = {
    "aime24": ("aime24-II-15", "029"),
    "aime25": ("aime25-II-15", "29"),
    "aime26": ("aime26-30", "29"),
    "hmmt25": ("hmmt25-30", "29"),
    "amc23": ("amc23-39", "39"),
    "math500": ("math500-499", r"\frac{1}{2}"),
    "gsm8k": ("gsm8k-test-1318", "1,1318"),
    "olympiad": ("olympiadbench-1673", "1,2"),
}
"""Suite -> the last problem's id and reference, worked out by hand from the rows above."""

SCRIPT = """
import json, sys
from klearbench.suites.registry import load_suite
for name in sys.argv[1:]:
    suite = load_suite(name)
    last = suite.problems[-1]
    answer = suite.answers[last.id]
    print(json.dumps([name, len(suite.problems), len(suite.errata), last.id, getattr(answer, "answer", None),
                      suite.content_hash, [sorted(p.meta) for p in suite.problems][0], last.date]))
"""


def hub_files() -> dict:
    files = {}
    for name, rows in ROWS.items():
        hub = SUITES[name].hub
        files[hub.dataset] = dataset(hub.config or "default", hub.split, rows)
    release = release_rows()
    starts = [sum(PARTS[:i]) for i in range(7)]
    files["livecodebench/code_generation_lite"] = {
        name: lines(release[start:end])
        for name, start, end in zip(SUITES["lcb-v6"].hub.files, starts, starts[1:], strict=False)
    }
    return files


def load(home: Path, endpoint: str, *names: str, **env: str) -> dict:
    """What SCRIPT says of suites, in a fresh process that knows no data directory."""
    words = [sys.executable, "-c", SCRIPT, *names]
    settings = environment(HF_HOME=str(home), HF_ENDPOINT=endpoint, **({"HF_HUB_OFFLINE": "0"} | env))
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=settings, timeout=300)
    assert done.returncode == 0, done.stderr
    return {row[0]: row[1:] for row in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def fetched(tmp_path_factory):
    """Every named suite, read from the hub; then from its cache alone."""
    home, names = tmp_path_factory.mktemp("hub"), [*ROWS, "lcb-v5", "lcb-v6"]
    with serve(hub_files()) as endpoint:
        first = load(home, endpoint, *names)
    return first, load(home, "http://127.0.0.1:9", *names, HF_HUB_OFFLINE="1")


def test_every_suite_with_a_hub_source_is_tried_here():
    assert {name for name, info in SUITES.items() if info.hub} == {*ROWS, "mbpp-test", "lcb-v5", "lcb-v6"}


def test_every_suite_comes_whole_from_the_hub(fetched):
    first, _ = fetched
    counts = {name: row[0] for name, row in first.items()}
    assert counts == {name: SUITES[name].count for name in first} | {"olympiad": 674}
    for name, (key, answer) in HAND.items():
        assert first[name][2:4] == [key, answer], name
    assert first["olympiad"][5] == ["answer_type", "is_multiple_answer", "subfield"]
    assert first["math500"][5] == ["difficulty", "subject", "unique_id"]
    assert first["lcb-v6"][6] == "2025-05-01"


def test_without_a_network_the_cache_gives_the_same_suites(fetched):
    first, again = fetched
    assert first == again


def test_without_a_cache_either_it_is_one_line_with_both_remedies(tmp_path):
    words = ("eval", "--suite", "gsm8k", "--engine", "scripted", "--model", "scripted", "-o", tmp_path / "run")
    line = complaint(run("klearbench", *words, HF_HOME=str(tmp_path)))
    assert "suite 'gsm8k' needs gsm8k_test.jsonl: name its folder by --data-dir DIR or KLEARBENCH_DATA=DIR" in line
    assert "openai/gsm8k (main, split test)" in line
    line = complaint(run("klearbench", *words, "--data-dir", tmp_path, HF_HOME=str(tmp_path)))
    assert f"{tmp_path / 'gsm8k_test.jsonl'}: no such file" in line and "openai/gsm8k (main, split test)" in line


def test_a_hub_that_fails_is_one_line(tmp_path):
    with serve({"openai/gsm8k": dataset("main", "test", [{"frage": "1+1?", "answer": "#### 2"}])}) as endpoint:
        env = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": endpoint}
        for name, message in (
            ("gsm8k", "openai/gsm8k (main, split test):1: has no column 'question'; it has frage, answer"),
            ("math500", "HuggingFaceH4/MATH-500 (test): can't be read from the hub: "),
        ):
            words = ("eval", "--suite", name, "--engine", "scripted", "--model", "scripted", "-o", tmp_path / "run")
            assert message in complaint(run("klearbench", *words, **env))


def test_a_yaml_reads_any_dataset_of_the_hub_with_its_revision(tmp_path):
    rows = [{"q": f"{n}+1?", "a": f"so it is #### {n + 1}", "level": n % 2} for n in range(6)]
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nhub: some/sums\nconfig: main\nsplit: validation\nrevision: v1\n"
        'fields: {problem: q, answer: a}\nanswer_after: "####"\nnumbered: true\nwhere: {level: 1}\nrule: integer\n'
        "count: 3\n"
    )
    with serve({"some/sums": dataset("main", "validation", rows)}) as endpoint:
        found = load(tmp_path, endpoint, str(tmp_path / "mine.yaml"))
    (row,) = found.values()
    assert row[:4] == [3, 0, "5", "6"]
