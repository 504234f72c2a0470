"""The dataset's card and funnel, generated from the recipe and the counts: no time and no machine stands in them."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import yaml

from klearbench.curation.assemble import data_file
from klearbench.curation.recipe import Recipe
from klearbench.curation.tables import COLUMNS, SCHEMAS

_FORMATS = {
    "sft": "`sft` holds `messages`, the chat format that TRL, Axolotl and LLaMA-Factory read as it is.",
    "rl": "`rl` holds one problem a row, with its reference answer and rule, or its tests, for the judge.",
}

_LIMITS = {
    "keep": "Wrong responses are in it on purpose, whatever the problem's difficulty: `status` tells them apart.",
    "drop": "Only responses judged correct are in it: hard problems are rarer than in the source.",
    "drop_on_easy": "Wrong responses to hard problems are in it on purpose; those to easy ones were dropped.",
}


_JUDGING = {
    "math": "- A verdict says whether the final answer is right; a right answer can follow from wrong steps.",
    "code": "- A verdict says which tests a program passes; one that passes them all can fail on other inputs.",
}


def _template(name: str) -> Template:
    return Template(resources.files("klearbench.curation").joinpath(name).read_text(encoding="utf-8"))


def _table(rows: Sequence[Sequence[Any]]) -> str:
    return "\n".join("| " + " | ".join(f"{c:,}" if isinstance(c, int) else str(c) for c in row) + " |" for row in rows)


def render_card(recipe: Recipe, counts: Mapping[str, Any], content: str) -> str:
    """The README.md of a dataset. Its YAML header makes `datasets.load_dataset(DIR)` open the first output.

    `content`, the hash of the data files, stands in the header: `datasets` keys its cache by path and header alone, so
    without it a dataset that was made anew in the same folder would be read from the cache, with the old rows.
    """
    names = [output.name for output in recipe.outputs]
    usage = [f'{name} = load_dataset("DIR", "{name}")' for name in names]
    usage[0] = f'{names[0]} = load_dataset("DIR")'
    statuses = [f"{status} {count:,}" for status, count in counts["responses"]["statuses"].items()]
    return _template("card_template.md").substitute(
        name=recipe.name,
        licence=recipe.licence,
        configs=yaml.safe_dump(_configs(recipe, counts, content), sort_keys=False).rstrip(),
        about=recipe.about or "A dataset for training reasoning models.",
        usage="\n".join(usage),
        formats="\n".join(_FORMATS[name] for name in names),
        outputs=_outputs(counts),
        steps=_table(list(_steps(recipe, counts))),
        statuses=", ".join(statuses) or "none",
        rates=_table(list(counts["pass_rates"].items())),
        rejected=_table(list(_rejected(counts)) or [("-", "nothing", 0)]),
        columns="\n\n".join(_columns(name) for name in names),
        judging="\n".join(_JUDGING[kind] for kind in counts["kinds"]),
        limits=_LIMITS[recipe.verify.wrong],
        recipe=yaml.safe_dump(recipe.run_config(), sort_keys=False, allow_unicode=True).rstrip(),
    )


def _configs(recipe: Recipe, counts: Mapping[str, Any], content: str) -> list[dict[str, Any]]:
    configs: list[dict[str, Any]] = []
    for number, output in enumerate(recipe.outputs):
        kept = counts["outputs"][output.name]["kept"]
        files = [
            {"split": split, "path": data_file(output.name, split)}
            for split, rows in kept.items()
            if rows or split == "train"
        ]
        default = {"default": True} if number == 0 else {}
        about = {"description": f"content {content[:16]}"}
        configs.append({"config_name": output.name, **default, **about, "data_files": files})
    return configs


def _outputs(counts: Mapping[str, Any]) -> str:
    rows = [
        (f"`{name}`", c["kept"]["train"], c["kept"].get("validation", 0), sum(c["rejected"].values()), c["rows"])
        for name, c in counts["outputs"].items()
    ]
    return "| configuration | train | validation | dropped | together |\n|---|---|---|---|---|\n" + _table(rows)


def _steps(recipe: Recipe, counts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    problems, teacher = counts["problems"], recipe.teacher
    against = ", ".join(recipe.decontaminate.against) or "nothing"
    yield "problems", f"{problems['read']:,} read, {problems['kept']:,} kept after dedup and decontamination"
    rules = recipe.decontaminate
    how = f"exact: {rules.exact}, n-gram: {rules.ngram}, containment: {rules.containment}, common: {rules.common}"
    yield "decontamination", f"against {against}; {how}"
    settings = f"T {teacher.temperature}, top_p {teacher.top_p}, top_k {teacher.top_k}, {teacher.max_tokens:,} tokens"
    yield "teacher", f"{teacher.label}, {teacher.samples} responses a problem; {settings}; seed {recipe.seed}"
    modes = {"math": recipe.verify.mode, "code": recipe.verify.code_mode}
    judges = ", ".join(f"{kind}, {modes[kind]}" for kind in counts["kinds"])
    yield "judge", f"{judges}; wrong responses: {recipe.verify.wrong}"
    yield "filters", ", ".join(f"{f.name} {dict(f.params) or ''}".strip() for f in recipe.filters) or "none"


def _rejected(counts: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for reason, count in counts["problems"]["rejected"].items():
        yield "problems", reason, count
    for name, output in counts["outputs"].items():
        for reason, count in output["rejected"].items():
            yield f"`{name}`", reason, count


def _columns(output: str) -> str:
    rows = [(f"`{f.name}`", f.type if "list" not in str(f.type) else "chat", COLUMNS[f.name]) for f in SCHEMAS[output]]
    return f"`{output}`:\n\n| column | type | meaning |\n|---|---|---|\n" + _table(rows)


def render_funnel(recipe: Recipe, counts: Mapping[str, Any]) -> str:
    """A self-contained page that shows how many rows went on and why the others didn't."""
    problems = counts["problems"]
    sections = [_section("Problems", problems["read"], problems["rejected"], {"kept": problems["kept"]})]
    for name, output in counts["outputs"].items():
        unit = "responses" if name == "sft" else "problems"
        sections.append(_section(f"{name}: {unit}", output["rows"], output["rejected"], output["kept"]))
    rates = {f"pass rate {rate}": count for rate, count in counts["pass_rates"].items()}
    sections.append(_section("Difficulty: problems by pass rate", problems["kept"], {}, rates))
    return _template("funnel_template.html").substitute(name=html.escape(recipe.name), sections="\n".join(sections))


def _section(title: str, total: int, dropped: Mapping[str, int], kept: Mapping[str, int]) -> str:
    lines = [_bar("all", total, total, "")]
    lines += [_bar(reason, count, total, "dropped") for reason, count in dropped.items()]
    lines += [_bar(name, count, total, "") for name, count in kept.items()]
    return f"<h2>{html.escape(title)}</h2>\n<table>\n" + "\n".join(lines) + "\n</table>"


def _bar(label: str, count: int, total: int, kind: str) -> str:
    width = 100 * count / total if total else 0
    return (
        f'<tr class="{kind}"><td class="label">{html.escape(label)}</td><td class="count">{count:,}</td>'
        f'<td><div class="bar" style="width:{width:.2f}%"></div></td></tr>'
    )
