"""docs/evaluation.md and docs/peers.md: their commands exist and print what they say, their figures can be worked out
again, and what they say of lm-eval stands in the package that is installed here."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from tools import ROOT, environment, run

from klearbench.cli import cli
from klearbench.presets import PRESETS
from klearbench.scoring.metrics import pass_at_k
from klearbench.suites.registry import SUITES

PAGE = (ROOT / "docs" / "evaluation.md").read_text()
PEERS = (ROOT / "docs" / "peers.md").read_text()
COMMANDS: dict[str, click.Command] = dict(cli.commands)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def flags(command: click.Command) -> set[str]:
    return {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}


def session() -> list[tuple[list[str], int, list[str]]]:
    """The example session: a command's words, the exit code, and what is printed of its output."""
    steps = re.findall(r"^\$ klearbench (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks("console")), re.M)
    found = []
    for command, printed in steps:
        words, _, note = command.partition("#")
        code = re.search(r"exit code (\d+)", note)
        found.append((shlex.split(words), int(code.group(1)) if code else 0, printed.splitlines()))
    return found


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    assert len(session()) == 4
    for words, code, printed in session():
        done = run("klearbench", *words, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        said = (done.stdout + done.stderr).splitlines()
        assert printed and [line for line in printed if line not in said] == []


def test_every_command_of_the_pages_takes_the_flags_that_stand_there() -> None:
    lines = re.findall(r"^(?:    |\$ )klearbench (\w+) (.*)$", PAGE, re.M)
    lines += re.findall(r"`klearbench (\w+)([^`]*)`", PAGE + PEERS)
    assert len(lines) > 12
    for name, rest in lines:
        used = {word for word in shlex.split(rest, comments=True) if word.startswith("-")}
        assert used <= flags(COMMANDS[name]), (name, rest)


def test_every_option_in_the_text_is_one_of_ours() -> None:
    named = set(re.findall(r"`(--[\w-]+)", PAGE))
    assert {"--allow-partial", "--prompt", "--no-errata", "--thinking"} <= named
    assert named <= {flag for command in COMMANDS.values() for flag in flags(command)}


def test_the_program_prints_the_table_of_intervals() -> None:
    (program,), (printed,) = blocks("python"), blocks("text")
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr


def test_the_text_around_the_table_agrees_with_it() -> None:
    """At 30 x 64 and mean p (1 - p) = .175 by hand: 1.96 sqrt(.175 / 1920) = .0187, and sqrt 2 of it for two runs."""
    ((these, like_these),) = re.findall(r"^ *30 x 64 +1920 +(\S+) +(\S+)", PAGE, re.M)
    assert float(these) == pytest.approx(100 * 1.96 * (0.175 / 1920) ** 0.5, abs=0.06)
    (two_runs,) = re.findall(r"at 30 x 64, about ±([\d.]+)", PAGE)
    assert float(two_runs) == pytest.approx(1.87 * 2**0.5, abs=0.06)
    (thirty,) = re.findall(r"thirty problems stay near ±(\d+)", PAGE)
    assert int(thirty) == round(float(like_these))


def test_the_example_of_pass_at_k_is_worked_out_rightly() -> None:
    (numbers,) = re.findall(r"solved in 16 of 64 samples counts ([\d.]+) in avg@64, ([\d.]+) in pass@8", PAGE)
    assert numbers == ("25.0", f"{100 * pass_at_k(64, 16, 8):.1f}")


def test_suites_and_presets_of_the_pages_exist() -> None:
    dated = PAGE.partition("## Contamination")[2].partition("\n- ")[0]
    suites = set(re.findall(r"`([a-z0-9-]+)`", dated)) | set(re.findall(r"--suite (\S+)", PAGE))
    assert "aime24" in suites and suites <= set(SUITES)
    assert set(re.findall(r"^\| `(klear-[\w]+)` \|", PAGE, re.M)) == set(PRESETS)


def test_the_table_of_presets_has_their_settings() -> None:
    for name, preset in PRESETS.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", PAGE, re.M)
        assert f"{preset.flags['max_tokens']:,}" in row and preset.flags["prompt"] in row
        assert preset.flags.get("rope_scaling", "") in row
        assert not preset.flags["top_k"] or f"top-k {preset.flags['top_k']}" in row
    assert {PRESETS["klear-32k"].samples[suite] for suite in ("aime24", "hmmt25")} == {64}
    assert {PRESETS["klear-32k"].samples[suite] for suite in ("lcb-v5", "lcb-v6")} == {8}


def test_links_lead_to_pages_that_are_there() -> None:
    for text in (PAGE, PEERS):
        for target in re.findall(r"\]\(([\w./-]+)\)", text):
            assert (ROOT / "docs" / target).is_file(), target


@pytest.fixture(scope="module")
def lm_eval() -> Path:
    """The installed package's folder, which is read and not imported."""
    spec = find_spec("lm_eval")
    if spec is None or spec.origin is None:
        pytest.skip("lm-eval is not installed (pip install 'klearbench[lm-eval]')")
    return Path(spec.origin).parent


def test_what_is_said_of_lm_eval_stands_in_its_source(lm_eval: Path) -> None:
    assert f"| lm-eval | {metadata.version('lm_eval')}," in PEERS
    files = list(lm_eval.rglob("*.py"))
    assert len(files) > 300 and not [file for file in files if "finish_reason" in file.read_text()]
    assert "when we are doing non-greedy generation, don't use the cache" in (lm_eval / "api/model.py").read_text()
    server = (lm_eval / "models/api_models.py").read_text()
    assert "max_retries: int = 3" in server and "seed: int = 1234" in server and "reraise=True" in server
    task = (lm_eval / "tasks/aime/aime24.yaml").read_text()
    assert 'until:\n    - "Question:"' in task and "do_sample: false" in task and "max_gen_toks: 32768" in task


def test_tasks_that_lm_eval_is_said_to_lack_are_not_in_its_folder(lm_eval: Path) -> None:
    folders = {folder.name for folder in (lm_eval / "tasks").iterdir()}
    assert {"aime", "gsm8k", "humaneval", "mbpp"} <= folders
    assert not [name for name in folders if re.search(r"hmmt|livecode|lcb|olymp|^amc", name)]
