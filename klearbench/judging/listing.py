"""The members of an answer that may be a list, a set, a plus-minus or a union of sets, and names given to values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from klearbench.judging.forms import Form, parse
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN

_MAX_SIGNS = 4
_NAMED = re.compile(rf"\A{TEXT_OPEN}?\s?[A-Za-z]{{2,20}}\s?{TEXT_CLOSE}?\s?:\s?{TEXT_CLOSE}?\s?(?=\S)")
_COMPONENT = r"(?:[A-Za-z]|\\[a-z]{2,8})(?:_?\{?\w{1,3}\}?)?|\\angle\s?[A-Z][A-Z0-9_{} ]{1,16}"
NAME = re.compile(
    r"(?:[A-Za-z]|[A-Za-z]{3,12}|\\[A-Za-z]{2,12}|\(\\?[A-Za-z]+\s?(?:,\s?\\?[A-Za-z]+\s?)+\))(?:_\{?\\?\w{1,8}\s?\}?)?'*(?:\s?\([^()=]{0,40}\))?"
)


def has_plus_minus(text: str) -> bool:
    return r"\pm" in text or r"\mp" in text


def members(text: str) -> list[str]:
    """The members of an answer that may be a list, a set, a union of sets or a plus-minus; names are left out."""
    form = parse(text)
    if form.kind in ("list", "set"):
        found = [m for part in form.parts for m in ([part] if _is_set(part) else members(_NAMED.sub("", part)))]
    elif form.kind == "union" and all(parse(p).kind == "set" for p in form.parts):
        found = list(dict.fromkeys(m for part in form.parts for m in members(part)))
    elif form.kind == "relation" and set(form.marks) <= {"=", r"\in"} and _is_plain_name(form.parts[0]):
        found = members(form.parts[-1])
    elif has_plus_minus(text) and form.kind in ("value", "tuple"):
        found = both_signs(text)
    else:
        found = [text.strip()]
    return found


def _is_plain_name(text: str) -> bool:
    """Whether a name says no more than its value: `x`, `(x, y)`, but not `f(x)`, since `f'(x)` would be another."""
    return NAME.fullmatch(text) is not None and not re.match(r"[A-Za-z]'*\s?\(", text)


def _is_set(text: str) -> bool:
    return text.startswith(r"\{") and parse(text).kind == "set"


def both_signs(text: str) -> list[str]:
    r"""The texts that \pm stands for: every choice of signs, or two where \mp ties them together."""
    signs = re.findall(r"\\(?:pm|mp)(?![A-Za-z])", text)
    if not signs or len(signs) > _MAX_SIGNS:
        return [text]
    tied = r"\mp" in signs
    choices = [[+1] * len(signs), [-1] * len(signs)] if tied else product((+1, -1), repeat=len(signs))
    return [_with_signs(text, choice) for choice in choices]


def _with_signs(text: str, choice: Iterable[int]) -> str:
    chosen = iter(choice)
    return re.sub(
        r"\\(pm|mp)(?![A-Za-z])", lambda m: "+" if (next(chosen) > 0) == (m[1] == "pm") else "-", text
    ).strip()


def named_values(form: Form) -> dict[str, str] | None:
    """The values of a list `x = 3, y = 4` by name; None when it is anything else, or a name stands twice."""
    if form.kind != "list":
        return None
    sides = [parse(part) for part in form.parts]
    if not all(s.marks == ("=",) and re.fullmatch(_COMPONENT, s.parts[0]) and s.parts[1] for s in sides):
        return None
    named = {re.sub(r"[\s{}]", "", side.parts[0]): side.parts[1] for side in sides}
    return named if len(named) == len(sides) else None
