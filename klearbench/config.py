"""Recipes: YAML -> pydantic, unknown keys refused with the nearest right name, `--set a.b=c`, a resolved dump.

Importing this module, and reading any recipe, loads no torch, transformers, vllm or datasets.
"""

from __future__ import annotations

import re
import reprlib
import types as pytypes
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from klearbench.errors import ConfigError, DataError, nearest

Loc = tuple[str | int, ...]


class Section(BaseModel):
    """Base of every recipe section: frozen, unknown keys refused, the docstring under each field is its help text."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=True)


M = TypeVar("M", bound=Section)


def load_recipe(path: Path, model: type[M], overrides: Sequence[str] = ()) -> M:
    """Read, override and validate one recipe.

    Args:
        path: a YAML file whose top level is a mapping.
        model: the pydantic class that says which keys there are.
        overrides: `--set` items, "a.b=c" or "stages.0.steps=10"; the value is read as YAML.

    Raises:
        ConfigError: one line with file, line, key, allowed values.
        DataError: the file is missing or no YAML.
    """
    data, lines = read_yaml(path)
    sets = {apply_override(data, item): item for item in overrides}
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_one_line(error, model, path, lines, sets)) from None


def dump_recipe(recipe: Section) -> str:
    """The resolved recipe as YAML, every default written out: what `--dry-run` prints and the manifest keeps."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def read_yaml(path: Path) -> tuple[dict[str, Any], dict[Loc, int]]:
    """A YAML mapping, and the line (from 1) of each key in it.

    Raises:
        DataError: missing file, syntax error (with its line), duplicate key, or no mapping at the top.
    """
    lines: dict[Loc, int] = {}
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if not isinstance(node, yaml.MappingNode):
            raise DataError(path, "the top level must be a mapping (key: value)", 1)
        _note_lines(node, (), lines, path)
        return yaml.safe_load(text), lines
    except FileNotFoundError:
        raise DataError(path, "no such file") from None
    except IsADirectoryError:
        raise DataError(path, "is a folder, a YAML file was expected") from None
    except UnicodeDecodeError as error:
        raise DataError(path, f"is not UTF-8 text ({error.reason} at byte {error.start})") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise DataError(path, f"not valid YAML: {error.problem}", line) from None
    except yaml.YAMLError as error:
        raise DataError(path, f"not valid YAML: {' '.join(str(error).split())}") from None
    except (ValueError, RecursionError) as error:  # an impossible date; an alias within itself
        raise DataError(path, f"not valid YAML: {error}") from None


def _note_lines(node: yaml.Node, at: Loc, lines: dict[Loc, int], path: Path) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*at, str(key.value) if isinstance(key, yaml.ScalarNode) else "?")
            if here in lines:
                raise DataError(path, f"key {key.value!r} stands twice", key.start_mark.line + 1)
            lines[here] = key.start_mark.line + 1
            _note_lines(value, here, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*at, index)] = value.start_mark.line + 1
            _note_lines(value, (*at, index), lines, path)


def apply_override(data: dict[str, Any], item: str) -> Loc:
    """Set one "a.b=c" in place. List elements are named by their index (`stages.0.steps=10`) or by their `name`.

    Returns:
        Where the value now stands, list elements by index.

    Raises:
        ConfigError: no "=", a value that is no YAML, or a place that does not exist.
    """
    dotted, equals, text = item.partition("=")
    if not equals or not dotted:
        raise ConfigError(f"--set {item!r}: write it as key=value, for instance --set seed=1")
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        raise ConfigError(f"--set {item!r}: the value is not valid YAML") from None
    *parents, last = dotted.split(".")
    node: Any = data
    at: Loc = ()
    for part in parents:
        key = _list_index(node, part, item) if isinstance(node, list) else part
        if isinstance(node, dict) and node.get(part) is None:
            node[part] = {}
        node, at = node[key], (*at, key)
        if not isinstance(node, dict | list):
            raise ConfigError(f"--set {item!r}: {part!r} is a value, not a section")
    key = _list_index(node, last, item) if isinstance(node, list) else last
    node[key] = value
    return (*at, key)


def _list_index(node: list[Any], part: str, item: str) -> int:
    names = [e.get("name") for e in node if isinstance(e, dict)]
    if part in names:
        return names.index(part)
    if part.isdigit() and int(part) < len(node):
        return int(part)
    named = f", or a name: {', '.join(map(str, names))}" if any(names) else ""
    raise ConfigError(f"--set {item!r}: no element {part!r} (allowed: 0..{len(node) - 1}{named})")


def _one_line(
    error: ValidationError, model: type[BaseModel], path: Path, lines: dict[Loc, int], sets: dict[Loc, str]
) -> str:
    # A misspelt key comes first: the right one is then missing, which by itself would only puzzle.
    problem = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    loc = problem["loc"]
    known = lines | {place[:n]: lines.get(place[:n], 0) for place in sets for n in range(1, len(place) + 1)}
    written = _as_written(loc, known)
    line = next((n for end in range(len(written), 0, -1) if (n := known.get(written[:end]))), None)
    where = f"{path}:{line}" if line else f"{path}"
    for place, item in sets.items():
        where = f"--set {item!r}" if written[: len(place)] == place else where
    key = ".".join(map(str, written)) or "recipe"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if problem["type"] == "extra_forbidden":
        allowed = _allowed_keys(model, loc[:-1])
        return f"{where}: unknown key {key!r}{nearest(str(loc[-1]), allowed)} (allowed: {', '.join(allowed)}){more}"
    if problem["type"] == "missing":
        return f"{where}: {key!r} is missing{more}"
    message = " ".join(problem["msg"].removeprefix("Value error, ").split())
    if problem["type"] == "literal_error":
        message += nearest(str(problem["input"]), re.findall(r"'([^']*)'", problem["msg"]))
    value = "" if isinstance(problem["input"], dict | BaseModel) else f" is {reprlib.repr(problem['input'])}"
    return f"{where}: {key}{value}: {message}{more}"


def _as_written(loc: Loc, lines: dict[Loc, int]) -> Loc:
    """pydantic puts the tag of a union into the location; the file has no such key."""
    out: Loc = ()
    for i, part in enumerate(loc):
        is_tag = (*out, part) not in lines and i + 1 < len(loc) and out in lines
        if not is_tag:
            out = (*out, part)
    return out


def _allowed_keys(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys of the section at a pydantic location (model fields, list indices, union tags)."""
    here: list[Any] = [model]
    for part in loc:
        here = [inner for kind in here for inner in _inside(kind, part)]
    return [name for kind in here if _is_model(kind) for name in kind.model_fields]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _inside(kind: Any, part: str | int) -> list[Any]:
    if _is_model(kind):
        if part in kind.model_fields:
            return _members(kind.model_fields[part].annotation)
        is_its_tag = any(part in get_args(f.annotation) for f in kind.model_fields.values())
        return [kind] if is_its_tag else []
    if get_origin(kind) in (list, tuple, dict):
        return [member for argument in get_args(kind) for member in _members(argument)]
    return []


def _members(annotation: Any) -> list[Any]:
    """The alternatives of a union, or the annotation alone."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, pytypes.UnionType):
        return [member for argument in get_args(annotation) for member in _members(argument)]
    return [annotation]
