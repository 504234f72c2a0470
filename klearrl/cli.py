"""klearrl's command line: parse, call, print. Everything heavy is imported inside the command that needs it."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import click

from klearbench.clitools import run_cli
from klearrl import __version__

_PATH = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="klearrl")
@click.option("--debug", is_flag=True, help="Show the traceback of an error (anywhere on the line).")
def cli(debug: bool) -> None:
    """Train reasoning models on klearbench data: SFT, then GPPO, on DeepSpeed.

    Exit codes: 0 ok, 1 stopped by the recipe's gate, 2 usage or bad input, 3 incomplete, 70 our own crash,
    130 Ctrl-C, 143 SIGTERM.
    An interrupted command is finished by running it again.
    """


@cli.command()
@click.argument("recipe", type=_PATH)
@click.option("-o", "--out", type=_PATH, required=True, help="Run folder.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a recipe key; repeatable.")
@click.option("--dry-run", is_flag=True, help="Print the resolved recipe and train nothing.")
def train(recipe: Path, out: Path, overrides: tuple[str, ...], dry_run: bool) -> None:
    """Run the stages of a recipe. The same command resumes; more steps of the last stage extend.

    \b
    Examples:
      klearrl train recipes/puzzles/train.yaml -o runs/puzzles --set data=runs/data
      torchrun --nproc_per_node 2 -m klearrl.cli train recipes/puzzles/train.yaml -o runs/two-ranks
    """
    from klearbench.config import dump_recipe
    from klearrl.config import load_train_recipe

    resolved = load_train_recipe(recipe, overrides)  # before torch is imported: a typo is told at once
    if dry_run:
        click.echo(dump_recipe(resolved), nl=False)
        return
    from klearrl.train import train as run_training

    run_training(resolved, out, click.echo)


@cli.command()
@click.argument("checkpoint", type=_PATH)
@click.option("-o", "--out", type=_PATH, required=True, help="Model folder to make.")
def export(checkpoint: Path, out: Path) -> None:
    """Make a plain transformers folder from a checkpoint.

    \b
    Example:
      klearrl export runs/puzzles/stages/gppo/checkpoints/best -o models/puzzles
    """
    from klearrl.checkpoint import export as run_export

    run_export(checkpoint, out)
    click.echo(f"model: {out}")


def main() -> NoReturn:
    """The console script."""
    run_cli(cli, "klearrl")


if __name__ == "__main__":
    main()
