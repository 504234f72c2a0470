"""klearbench's command line: parse, call, print. Everything heavy is imported inside the command that needs it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import click

from klearbench import __version__, evalcli, regresscli
from klearbench.clitools import Finite, run_cli
from klearbench.errors import UsageError
from klearbench.progress import Progress

_MATH_JUDGES = click.Choice(["strict", "math-verify", "both"])
_MODES = click.Choice(["strict", "compat", "both"])
_SANDBOXES = click.Choice(["local", "docker"])
_FOLDER = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="klearbench")
@click.option("--debug", is_flag=True, help="Show the traceback of an error (anywhere on the line).")
def cli(debug: bool) -> None:
    """Evaluate reasoning models, curate their training data, gate their checkpoints.

    Exit codes: 0 ok, 1 the gate failed (regress), 2 usage or bad input, 3 not comparable or incomplete,
    70 our own crash, 130 Ctrl-C, 143 SIGTERM. An interrupted command is finished by running it again.
    """


@cli.command()
@click.option("--data-dir", type=_FOLDER, help="Where benchmark files lie (default: KLEARBENCH_DATA).")
def suites(data_dir: Path | None) -> None:
    """List the suites: problems, source, licence, and whether their data is here.

    \b
    Example:
      klearbench suites --data-dir ~/benchmarks
    """
    from klearbench.doctor import suite_lines

    for line in suite_lines(data_dir):
        click.echo(line)


@cli.command()
@click.option("--data-dir", type=_FOLDER, help="Where benchmark files lie (default: KLEARBENCH_DATA).")
@click.option("--fix", is_flag=True, help="First make what is missing of the sandboxes.")
def doctor(data_dir: Path | None, fix: bool) -> None:
    """Say what works on this machine, with a remedy for what does not.

    --fix installs the packages that submissions may import, and builds the Docker image where an engine answers.

    \b
    Example:
      klearbench doctor --data-dir ~/benchmarks
    """
    from klearbench import doctor as checks

    if fix:
        checks.fix(lambda line: click.echo(line, err=True))
    for line in checks.doctor_lines(data_dir):
        click.echo(line)


@cli.command("lm-eval-path")
def lm_eval_path() -> None:
    """Print the folder that makes our suites tasks of lm-eval.

    \b
    Examples:
      klearbench lm-eval-path
      lm_eval --model hf --model_args pretrained=MODEL --tasks klear_puzzles \\
        --include_path "$(klearbench lm-eval-path)"
    """
    from klearbench.integrations.lm_eval import task_folder

    click.echo(task_folder())


@cli.command("eval")
@evalcli.flags
@click.pass_context
def eval_command(context: click.Context, /, **given: Any) -> None:
    """Score a model: sample, judge, score, report. The same command resumes; more --samples extend.

    \b
    Examples:
      klearbench eval --suite puzzles --engine scripted --samples 8 -o runs/teacher
      klearbench eval --suite aime24 --data-dir DATA --model MODEL --samples 64 -o runs/aime24
      klearbench eval --suite lcb-v5 --engine vllm --model MODEL --preset klear-32k -o runs/lcb
    """

    def explicit(name: str) -> bool:
        return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE

    evalcli.run_eval(given, explicit)


@cli.command()
@click.argument("completions", type=_FOLDER)
@click.option("--problems", type=_FOLDER, required=True, help="JSONL: id, kind, and the answer or the tests.")
@click.option("--sandbox", default="local", show_default=True, type=_SANDBOXES, help="Where programs run.")
@click.option("--mode", default="strict", show_default=True, type=_MODES, help="Programs: our rules, LiveCodeBench's.")
@click.option(
    "--math-judge", default="strict", show_default=True, type=_MATH_JUDGES, help="Ours, or math-verify's word."
)
@click.option("--first-failure", is_flag=True, help="Stop at a program's first failing test.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Judge processes, or slots.")
@click.option("-o", "--out", type=_FOLDER, required=True, help="Verdicts (JSONL).")
def judge(completions: Path, problems: Path, out: Path, **options: Any) -> None:
    """Judge recorded completions, math and code. The same command resumes.

    'both' takes our verdicts and lists each difference in OUT.differences.jsonl.

    \b
    Example:
      klearbench judge completions.jsonl --problems problems.jsonl --workers 2 -o verdicts.jsonl
    """
    from klearbench.judging.command import run_judge

    with ExitStack() as stack:
        bars: list[Progress] = []

        def progress(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(Progress("judge", total, unit="rows")))
            bars[0].advance(done - bars[0].done)

        summary = run_judge(completions, problems, out, progress=progress, **options)
    click.echo(summary)


@cli.command()
@click.argument("run", type=_FOLDER)
@click.option("--allow-partial", is_flag=True, help="Accept judge errors or missing samples.")
@click.option("--rejudge", is_flag=True, help="Judge all samples again; list the verdicts that change.")
@click.option("--times", type=click.IntRange(1), help="With --rejudge: rounds of judging.  [default: 1]")
@click.option("--sandbox", type=_SANDBOXES, help="With --rejudge: where programs run.  [default: the run's]")
@click.option("--workers", type=click.IntRange(1), help="With --rejudge: judge processes.  [default: 1]")
@click.option("--data-dir", type=_FOLDER, help="With --rejudge: where benchmark files lie.")
@click.option("--suite", "suite_files", multiple=True, help="With --rejudge: a suite file of the run; repeatable.")
def score(run: Path, allow_partial: bool, rejudge: bool, **judging: Any) -> None:
    """Compute a run's scores and report again from its verdicts, without sampling.

    --rejudge changes nothing of the run: it judges every sample again, lists what differs in RUN/rejudge, and exits
    with 3 if anything does. The same command resumes.

    \b
    Examples:
      klearbench score runs/aime24
      klearbench score runs/aime24 --rejudge --times 3
    """
    given = {name: value for name, value in judging.items() if value}
    if rejudge:
        from klearbench.rejudge import run_rejudge

        return run_rejudge(run, given, allow_partial)
    if given:
        flag = next(iter(given)).removesuffix("_files").replace("_", "-")
        raise UsageError(f"--{flag} means nothing without --rejudge")
    from klearbench.evaluate import rescore
    from klearbench.reports.text import score_lines

    for line in score_lines(rescore(run, allow_partial=allow_partial)):
        click.echo(line)
    click.echo(f"report: {run / 'report.html'}")


@cli.command()
@click.argument("base", type=_FOLDER)
@click.argument("candidate", type=_FOLDER, required=False)
@regresscli.flags
def regress(base: Path, candidate: Path | None, **given: Any) -> int:
    """Gate a checkpoint: is CANDIDATE worse than BASE, beyond the noise? Paired by problem.

    Either is a run folder, or a file of `klearbench baseline`. Exit 0 fine, 1 regressed, 2 usage, 3 not comparable (the
    differing field is named) or not enough data.

    \b
    Examples:
      klearbench regress runs/yesterday runs/today --max-drop 1
      klearbench regress baseline.json runs/today --max-drop 1 --prove -o gate
      klearbench regress runs/today --plan 3
    """
    return regresscli.run_regress(base, candidate, given)


@cli.command()
@click.argument("run", type=_FOLDER)
@click.option("--max-judge-errors", default=0.0, show_default=True, type=Finite(0, 100), help="In percent, by suite.")
@click.option("-o", "--out", type=_FOLDER, required=True, help="The file to write.")
def baseline(run: Path, out: Path, max_judge_errors: float) -> None:
    """Store a finished run as a small file for `regress`: settings, scores, counts by problem, and their hash.

    \b
    Example:
      klearbench baseline runs/released -o baselines/released.json
    """
    regresscli.run_baseline(run, out, max_judge_errors)


@cli.command()
@click.argument("runs", type=_FOLDER, nargs=-1, required=True)
@click.option("--max-mb", type=click.IntRange(1), help="From this size long completions are files.  [default: 48]")
@click.option("-o", "--out", type=_FOLDER, required=True, help="The report: .html, .md or .json.")
def report(runs: tuple[Path, ...], out: Path, max_mb: int | None) -> None:
    """Write a report of one or several runs: HTML (one self-contained file), Markdown or JSON, by the suffix.

    \b
    Example:
      klearbench report runs/sft runs/gppo -o compare.html
    """
    from klearbench.reports.html import MAX_BYTES, write_report

    write_report(list(runs), out, max_bytes=max_mb * 1_000_000 if max_mb else MAX_BYTES)
    click.echo(f"report: {out}")


@cli.command()
@click.argument("recipe", type=_FOLDER)
@click.option("-o", "--out", type=_FOLDER, required=True, help="Dataset folder.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a recipe key; repeatable.")
@click.option("--dry-run", is_flag=True, help="Print the resolved recipe and what it would do.")
def curate(recipe: Path, out: Path, overrides: tuple[str, ...], dry_run: bool) -> None:
    """Make a dataset: distill from a teacher, verify, filter, decontaminate, dedup, write Parquet and a card.

    \b
    Example:
      klearbench curate recipes/puzzles/curate.yaml -o runs/data --set seed=1
    """
    from klearbench.curation.pipeline import curate as run_curation

    run_curation(recipe, out, overrides, dry_run=dry_run, say=click.echo)


def main() -> NoReturn:
    """The console script."""
    run_cli(cli, "klearbench")


if __name__ == "__main__":
    main()
