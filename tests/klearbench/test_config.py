"""Recipes: every refusal is one line with file, line, key and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
import yaml
from pydantic import Field, field_validator

from klearbench.config import Section, dump_recipe, load_recipe
from klearbench.errors import ConfigError, DataError


class Rope(Section):
    factor: float = 1.0


class Model(Section):
    name: str
    rope: Rope | None = None


class Sft(Section):
    kind: Literal["sft"] = "sft"
    name: str = "sft"
    steps: int = Field(gt=0)

    @field_validator("steps")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("an even number\nis needed")
        return value


class Gppo(Section):
    kind: Literal["gppo"] = "gppo"
    name: str = "gppo"
    steps: int
    clip_low: float = 0.2


class Recipe(Section):
    seed: int = 0
    model: Model
    stages: tuple[Annotated[Sft | Gppo, Field(discriminator="kind")], ...] = ()


GOOD = """\
seed: 1
model:
  name: tiny
stages:
  - kind: sft
    steps: 10
  - kind: gppo
    name: rl
    steps: 5
"""


@pytest.fixture
def write(tmp_path):
    def writer(text: str | bytes) -> Path:
        path = tmp_path / "recipe.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return writer


def refused(path: Path, *sets: str, error: type[Exception] = ConfigError) -> str:
    with pytest.raises(error) as caught:
        load_recipe(path, Recipe, sets)
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(str(path), "recipe.yaml")


def test_a_recipe_is_read_and_its_dump_holds_every_default(write):
    recipe = load_recipe(write(GOOD), Recipe)
    assert (recipe.seed, recipe.model.name, [s.steps for s in recipe.stages]) == (1, "tiny", [10, 5])
    assert yaml.safe_load(dump_recipe(recipe))["stages"][1] == {
        "kind": "gppo", "name": "rl", "steps": 5, "clip_low": 0.2,
    }  # fmt: skip
    assert load_recipe(write(dump_recipe(recipe)), Recipe) == recipe


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed", "sede", "recipe.yaml:1: unknown key 'sede'; did you mean 'seed'? (allowed: seed, model, stages)"),
        ("  name: t", "  nam: t", "recipe.yaml:3: unknown key 'model.nam'; did you mean 'name'? (allowed: name, rope)"
         " (and 1 more)"),
        ("name: rl", "clip_lo: 1", "recipe.yaml:8: unknown key 'stages.1.clip_lo'; did you mean 'clip_low'?"
         " (allowed: kind, name, steps, clip_low)"),
        ("kind: gppo", "kind: ppo", "recipe.yaml:7: stages.1: Input tag 'ppo' found"),
        ("    steps: 5\n", "", "recipe.yaml:7: 'stages.1.steps' is missing"),
        ("steps: 5", "steps: many", "recipe.yaml:9: stages.1.steps is 'many': Input should be a valid integer"),
        ("steps: 10", "steps: 0", "recipe.yaml:6: stages.0.steps is 0: Input should be greater than 0"),
        ("steps: 10", "steps: 9", "recipe.yaml:6: stages.0.steps is 9: an even number is needed"),
        ("seed: 1", "seed: 1.5", "recipe.yaml:1: seed is 1.5: "),
        ("seed: 1\n", "1: 2\n", "recipe.yaml: 1 is 1: Keys should be strings"),
        ("name: tiny", "name: tiny\n  rope: {factr: 2}", "recipe.yaml:4: unknown key 'model.rope.factr';"
         " did you mean 'factor'? (allowed: factor)"),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value_is_named_with_its_line(write, old, new, message):
    assert GOOD.count(old) == 1
    assert refused(write(GOOD.replace(old, new))).startswith(message)


def test_an_unknown_kind_names_the_allowed_ones(write):
    assert "'sft', 'gppo'" in refused(write(GOOD.replace("kind: gppo", "kind: ppo")))


def test_a_missing_section_is_named(write):
    assert refused(write("seed: 1\n")) == "recipe.yaml: 'model' is missing"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1\nseed: 2\n", "recipe.yaml:2: key 'seed' stands twice"),
        ("model:\n  name: a\n  name: b\n", "recipe.yaml:3: key 'name' stands twice"),
        ("seed: [1\nmodel: 2", "recipe.yaml:2: not valid YAML: "),
        ("- 1\n", "recipe.yaml:1: the top level must be a mapping"),
        ("", "recipe.yaml:1: the top level must be a mapping"),
        ("seed: 2024-13-45\n", "recipe.yaml: not valid YAML: month must be in 1..12"),
        ("? {a: 1}\n: 2\n", "recipe.yaml:1: not valid YAML: found unhashable key"),
        ("a: &x [*x]\n", "recipe.yaml: not valid YAML: "),
        ("a: 1\n---\nb: 2\n", "recipe.yaml:2: not valid YAML: but found another document"),
        ("a: !!python/object:os.system x\n", "recipe.yaml:1: not valid YAML: could not determine a constructor"),
        (b"seed: \xff\n", "recipe.yaml: is not UTF-8 text"),
        ("a: \x00\n", "recipe.yaml: not valid YAML: "),
    ],
)
def test_what_is_no_yaml_mapping_is_refused(write, text, message):
    assert refused(write(text), error=DataError).startswith(message)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(DataError, match=r"absent.yaml: no such file"):
        load_recipe(tmp_path / "absent.yaml", Recipe)
    with pytest.raises(DataError, match="is a folder, a YAML file was expected"):
        load_recipe(tmp_path, Recipe)


def test_set_reaches_sections_list_elements_and_names(write):
    sets = ("seed=7", "model.rope.factor=2.5", "stages.0.steps=20", "stages.rl.steps=6", "model.name=a=b")
    recipe = load_recipe(write(GOOD), Recipe, sets)
    assert (recipe.seed, recipe.model.rope.factor, recipe.model.name) == (7, 2.5, "a=b")
    assert [s.steps for s in recipe.stages] == [20, 6]
    assert load_recipe(write(GOOD), Recipe, ["stages=[]", "seed=2", "seed=3"]).stages == ()
    assert load_recipe(write(GOOD), Recipe, ["model={name: other}"]).model.name == "other"
    assert load_recipe(write(GOOD), Recipe, ["stages.1={kind: sft, steps: 2}"]).stages[1] == Sft(steps=2)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("seed", "--set 'seed': write it as key=value, for instance --set seed=1"),
        ("=1", "--set '=1': write it as key=value"),
        ("seed=[1", "--set 'seed=[1': the value is not valid YAML"),
        ("seed=2024-13-45", "--set 'seed=2024-13-45': the value is not valid YAML"),
        ("seed.x=1", "--set 'seed.x=1': 'seed' is a value, not a section"),
        ("stages.2.steps=1", "--set 'stages.2.steps=1': no element '2' (allowed: 0..1"),
        ("stages.gppo.steps=1", "--set 'stages.gppo.steps=1': no element 'gppo'"),
        ("stages.x=1", "--set 'stages.x=1': no element 'x'"),
        ("sede=1", "--set 'sede=1': unknown key 'sede'; did you mean 'seed'? (allowed: seed, model, stages)"),
        ("model.nme=x", "--set 'model.nme=x': unknown key 'model.nme'; did you mean 'name'? (allowed: name, rope)"),
        ("stages.rl.steps=x", "--set 'stages.rl.steps=x': stages.1.steps is 'x': "),
        ("stages.0.steps=9", "--set 'stages.0.steps=9': stages.0.steps is 9: an even number is needed"),
        ("model.rope.factor=x", "--set 'model.rope.factor=x': model.rope.factor is 'x': "),
        ("model.rope.a=1", "--set 'model.rope.a=1': unknown key 'model.rope.a' (allowed: factor)"),
    ],
)
def test_a_bad_set_is_named(write, item, message):
    assert refused(write(GOOD), item).startswith(message)


def test_a_recipe_is_frozen(write):
    recipe = load_recipe(write(GOOD), Recipe)
    with pytest.raises(ValueError, match="frozen"):
        recipe.seed = 2
