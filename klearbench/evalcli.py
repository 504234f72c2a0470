"""`klearbench eval`: its flags, presets, and what it prints."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from klearbench.clitools import Finite
from klearbench.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
_FOLDER = click.Path(path_type=Path)
_ENGINE_FLAGS = (
    *("model", "rope_scaling", "chat_template", "thinking", "batch_size", "dtype"),
    *("base_url", "concurrency", "tensor_parallel", "data_parallel"),
)
"""Flags that are options of an engine; each engine refuses those that it hasn't."""
_STRETCHES = ("hf", "vllm")
"""Engines that can stretch a model's context."""

_FLAGS: Sequence[Callable[[F], F]] = (
    click.option(
        "--suite", "suite_names", multiple=True, required=True, help="Suite, suite file or lm_eval:TASK; repeatable."
    ),
    click.option("--model", help="Model folder or hub name, a server's model, or completions (replay)."),
    click.option(
        "--engine",
        "engine_name",
        default="hf",
        show_default=True,
        help="hf, vllm, openai, lm-eval, replay or scripted.",
    ),
    click.option("--preset", help="klear-32k, klear-64k or klear-script: a published figure's settings."),
    click.option("--samples", type=click.IntRange(1), help="Samples a problem: k of avg@k.  [default: 1]"),
    click.option("--temperature", default=0.6, show_default=True, type=Finite(0), help="0 is greedy."),
    click.option("--top-p", default=0.95, show_default=True, type=Finite(0, 1, min_open=True), help="1 is off."),
    click.option("--top-k", default=0, show_default=True, type=click.IntRange(0), help="0 is off."),
    click.option("--min-p", default=0.0, show_default=True, type=Finite(0, 1), help="0 is off."),
    click.option(
        "--repetition-penalty", default=1.0, show_default=True, type=Finite(0, min_open=True), help="1 is off."
    ),
    click.option("--max-tokens", default=32768, show_default=True, type=click.IntRange(1), help="New tokens a sample."),
    click.option("--stop", multiple=True, help="A text that ends a completion; repeatable."),
    click.option(
        "--seed", default=0, show_default=True, help="Every sample's own seed is a hash of this and its place."
    ),
    click.option("--limit", type=click.IntRange(1), help="Only the first N problems of each suite."),
    click.option(
        "--prompt",
        default="ours",
        show_default=True,
        type=click.Choice(["ours", "official"]),
        help="Of programs: our words, or LiveCodeBench's.",
    ),
    click.option("--system", help="System prompt in place of a suite's own; '' for none."),
    click.option("--errata/--no-errata", default=True, show_default=True, help="Known faults of benchmarks: apply."),
    click.option("--thinking/--no-thinking", default=None, help="Thinking on or off, where the chat template can."),
    click.option("--chat-template", help="'plain' or a Jinja file, 'raw' (lm-eval); default: the model's own."),
    click.option("--rope-scaling", help="Stretch the context, as yarn:2.5."),
    click.option("--dtype", help="auto, float32, bfloat16 or float16."),
    click.option("--batch-size", type=click.IntRange(1), help="Sequences an engine call (hf)."),
    click.option("--tensor-parallel", type=click.IntRange(1), help="GPUs a model (vllm)."),
    click.option("--data-parallel", type=click.IntRange(1), help="Models side by side (vllm)."),
    click.option("--base-url", help="A server's address, as http://localhost:8000/v1 (openai)."),
    click.option("--concurrency", type=click.IntRange(1), help="Requests at a time (openai)."),
    click.option(
        "--engine-arg",
        "engine_args",
        multiple=True,
        metavar="KEY=VALUE",
        help="Any other option of the engine; repeatable.",
    ),
    click.option(
        "--math-judge",
        default="strict",
        show_default=True,
        type=click.Choice(["strict", "math-verify", "both"]),
        help="Ours, or math-verify's word.",
    ),
    click.option(
        "--sandbox",
        default="local",
        show_default=True,
        type=click.Choice(["local", "docker"]),
        help="Where programs run.",
    ),
    click.option(
        "--mode",
        default="strict",
        show_default=True,
        type=click.Choice(["strict", "compat"]),
        help="Rules for programs, ours or LCB's.",
    ),
    click.option("--first-failure", is_flag=True, help="Stop a program's tests at the first that fails."),
    click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Judge processes."),
    click.option("--data-dir", type=_FOLDER, help="Where benchmark files lie (default: KLEARBENCH_DATA)."),
    click.option("--allow-partial", is_flag=True, help="Accept a run with judge errors or missing samples."),
    click.option("-o", "--out", type=_FOLDER, help="Run folder (default: runs/MODEL-SUITES)."),
)


def flags(command: F) -> F:
    """All flags of `klearbench eval`."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


def run_eval(given: Mapping[str, Any], explicit: Callable[[str], bool]) -> None:
    """Score a model as the flags say.

    Args:
        given: the flags' values by the names of their parameters.
        explicit: whether a flag stood on the command line; those override a preset.

    Raises:
        UsageError, DataError, ConfigError: bad input; EngineDown, IncompleteError: as `evaluate`.
    """
    from klearbench.engines.registry import build_engine
    from klearbench.evaluate import DIFFERENCES, evaluate
    from klearbench.judging.both import count_differences
    from klearbench.reports.text import score_lines
    from klearbench.run import read_manifest
    from klearbench.suites.registry import load_suite

    values, by_suite = _with_preset(given, explicit)
    loaded = [
        load_suite(name, values["data_dir"], prompt=values["prompt"], errata=values["errata"])
        for name in dict.fromkeys(values["suite_names"])
    ]
    options = _options(values, {suite.name: by_suite.get(suite.name, 1) for suite in loaded})
    logging.getLogger("klearbench").addHandler(_Terminal(logging.WARNING))
    engine = build_engine(values["engine_name"], _engine_options(values))
    folder = values["out"] or Path("runs") / _run_name(
        values["model"] or values["engine_name"], [s.name for s in loaded]
    )
    about = {"model": values["model"], "engine": values["engine_name"], "preset": values["preset"]}
    try:
        if getattr(engine, "no_template", False):
            note = "the tokenizer has no chat template; prompts are plain text (--chat-template plain)"
            click.echo(f"note: {note}", err=True)
        scores = evaluate(folder, loaded, engine, options, about)
    finally:
        engine.close()
    for line in score_lines(scores):
        click.echo(line)
    differing = count_differences(folder / DIFFERENCES)
    if differing is not None:
        click.echo(f"the two math judges differ in {differing} samples: {folder / DIFFERENCES}")
    for name, errata in read_manifest(folder)["about"]["errata"].items():
        click.echo(f"{name}: errata for {len(errata)} problems, listed in the report (--no-errata leaves them out)")
    click.echo(f"report: {folder / 'report.html'}")


def _with_preset(given: Mapping[str, Any], explicit: Callable[[str], bool]) -> tuple[dict[str, Any], Mapping[str, int]]:
    """The flags with a preset's values where no flag was given, and its samples by suite."""
    values, by_suite = dict(given), {}
    if values["preset"] is not None:
        from klearbench.presets import preset

        found = preset(values["preset"])
        values |= {name: value for name, value in found.flags.items() if not explicit(name)}
        by_suite = dict(found.samples)
        if values["engine_name"] not in _STRETCHES and not explicit("rope_scaling") and values["rope_scaling"]:
            note = f"--rope-scaling {values['rope_scaling']} of the preset is not ours to set with this engine"
            click.echo(f"note: {note}: see that the model is served so", err=True)
            values["rope_scaling"] = None
    return values, by_suite


def _options(values: Mapping[str, Any], by_suite: Mapping[str, int]) -> Any:
    from klearbench.engines.base import Sampling
    from klearbench.evaluate import EvalOptions

    if "" in values["stop"]:
        raise UsageError("--stop '': an empty text ends every completion before it begins")
    return EvalOptions(
        samples=values["samples"] or by_suite,
        limit=values["limit"],
        seed=values["seed"],
        sampling=Sampling(
            values["temperature"],
            values["top_p"],
            values["top_k"],
            values["max_tokens"],
            values["min_p"],
            values["repetition_penalty"],
            tuple(values["stop"]),
        ),
        prompt=values["prompt"],
        system=values["system"],
        errata=values["errata"],
        math_judge=values["math_judge"],
        judge_workers=values["workers"],
        sandbox=values["sandbox"],
        code_mode=values["mode"],
        first_failure=values["first_failure"],
        allow_partial=values["allow_partial"],
    )


def _engine_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that are an engine's, and what `--engine-arg` adds: numbers, true, false, null and JSON are read so."""
    options = {name: values[name] for name in _ENGINE_FLAGS if values[name] is not None}
    for text in values["engine_args"]:
        name, equals, value = text.partition("=")
        name = name.replace("-", "_")
        if not equals or not name:
            raise UsageError(f"--engine-arg {text!r}: write it as key=value, for instance --engine-arg timeout_s=60")
        if name in options:
            raise UsageError(f"--engine-arg {text!r}: {name} is given twice, the other time by a flag of its own")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


class _Terminal(logging.Handler):
    """What engines warn of, as a note on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"note: {record.getMessage()}", err=True)


def _run_name(model: str, suite_names: list[str]) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join([Path(model).name, *suite_names]))
