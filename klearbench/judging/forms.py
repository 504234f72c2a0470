"""The outer form of an answer: a list, a set, a pair, an interval, a relation or a single value.

Works on the spelling of `normalize.canonical`; evaluates nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN
from klearbench.judging.numbers import exact_number
from klearbench.judging.units import split_quantity

FormKind = Literal["value", "list", "set", "tuple", "interval", "union", "relation"]

_OPEN, _CLOSE = "([{", ")]}"
_AND_OR = re.compile(
    rf"{TEXT_OPEN}?\s*,?\s*\b(?:and|or)\b\s*,?\s*{TEXT_CLOSE}?|{TEXT_OPEN}?\s*[和或与及]\s*{TEXT_CLOSE}?", re.IGNORECASE
)
_ISO_INTERVAL = re.compile(r"([\[\]])([^\[\]();]+[,;][^\[\]();]+)([\[\]])")
_LOOSE_COMMA = re.compile(r"(?<!\d),(?!\s)|,(?!\s|\d{3}(?!\d))|\d{4},\d|(?<![\d,])0\d*,\d")
_NAMED_ENVIRONMENT = re.compile(r"([^=<>\\,;]{1,40})=\s?(\\begin\{.*\\end\{[a-z]+\})", re.DOTALL)
_RELATION = re.compile(r"\\(?:le|ge|ne|in|equiv)(?![A-Za-z])|<=|>=|!=|[=<>]")
_SPELLING = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne"}


@dataclass(frozen=True, slots=True)
class Form:
    """`parts` are the texts of the members (sides of a relation), `marks` the relation signs or the two brackets."""

    kind: FormKind
    parts: tuple[str, ...]
    marks: tuple[str, ...] = ()


def split_top(text: str, separators: str) -> list[str]:
    """Split at separators outside all brackets (half-open intervals count as brackets)."""
    parts, depth, at = [], 0, 0
    i = 0
    while i < len(text):
        char = text[i]
        if char == "\\" and i + 1 < len(text):
            depth += (text[i + 1] == "{") - (text[i + 1] == "}")
            i += 2
            continue
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth = max(0, depth - 1)
        elif depth == 0 and char in separators:
            parts.append(text[at:i])
            at = i + 1
        i += 1
    return [*parts, text[at:]]


def bracketed(text: str) -> bool:
    """Whether the first bracket closes at the very end (mixed brackets allowed, as in [a, b))."""
    depth, i = 0, 0
    while i < len(text):
        char = text[i]
        if char == "\\" and i + 1 < len(text):
            depth += (text[i + 1] == "{") - (text[i + 1] == "}")
            i += 1
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        i += 1
        if depth == 0:
            return i >= len(text)
    return False


def split_list(text: str) -> list[str]:
    """The members of a list; a number with thousands separators is one member."""
    if exact_number(text) is not None or exact_number(split_quantity(text).value) is not None:
        return [text]
    text = _AND_OR.sub(" ; ", text)
    by_semicolon = [p for p in split_top(text, ";") if p.strip()]
    if len(by_semicolon) > 1:
        return [m for part in by_semicolon for m in split_list(part.strip(" ,"))]
    if re.search(r"\d,\d{3}(?!\d)", text) and re.search(r",\s", text) and not _LOOSE_COMMA.search(text):
        text = re.sub(r"(?<=\d),(?=\d)", "", text)  # `1,350, 2,400`: the space tells which commas part members
    return [p.strip() for p in split_top(text, ",;") if p.strip()]


@lru_cache(maxsize=1024)
def parse(text: str) -> Form:
    """The outer form of an answer."""
    text = strip_parens(text.strip())
    if text.startswith(r"\begin{"):
        return Form("value", (text,))
    named = _NAMED_ENVIRONMENT.fullmatch(text)
    if named is not None:
        return Form("relation", (named[1].strip(), named[2]), ("=",))
    if r"\cup" in text and len(parts := _split_command(text, r"\cup")) > 1:
        return Form("union", tuple(parts))
    iso = _ISO_INTERVAL.fullmatch(text)
    if iso is not None and (iso[1] == "]" or iso[3] == "["):
        limits = tuple(e.strip() for e in split_top(iso[2], ",;"))
        return Form("interval", limits, ("(" if iso[1] == "]" else "[", ")" if iso[3] == "[" else "]"))
    members = split_list(text)
    if len(members) > 1:
        return Form("list", tuple(members))
    if text.startswith(r"\{") and text.endswith(r"\}") and bracketed(text):
        return Form("set", tuple(_in_brackets(text[2:-2])))
    if text.startswith("{") and text.endswith("}") and bracketed(text) and len(_in_brackets(text[1:-1])) > 1:
        return Form("set", tuple(_in_brackets(text[1:-1])))
    if text[:1] in "([" and text[-1:] in ")]" and text and bracketed(text) and not _grouped_number(text[1:-1]):
        ends = [p.strip() for p in split_top(text[1:-1], ",;")]
        if len(ends) > 1:
            is_interval = len(ends) == 2 and (text[0] == "[" or text[-1] == "]" or any("\\infty" in e for e in ends))
            return Form("interval" if is_interval else "tuple", tuple(ends), (text[0], text[-1]))
    sides = _relation_sides(text)
    return sides if sides is not None else Form("value", (text,))


def _in_brackets(text: str) -> list[str]:
    """The members of a set: its commas part members, except in `1,000`."""
    members = split_list(text)
    plain = len(members) == 1 and re.fullmatch(r"\s*-?\d+(?:,-?\d+)+\s*", text) is not None
    return [part.strip() for part in text.split(",")] if plain and not _grouped_number(text.strip()) else members


def _grouped_number(text: str) -> bool:
    """Whether the commas in a bracket stand between groups of digits: only `(1,000)` can't be a pair of numbers."""
    return "," not in text or re.fullmatch(r"-?\d{1,3}(?:,\d{3})*,0\d\d(?:,\d{3})*", text) is not None


def strip_parens(text: str) -> str:
    """Without redundant outer round brackets (as many as there are) around a single value."""
    start, end = 0, len(text)
    while start < end and text[start] == "(" and text[end - 1] == ")":
        start, end = start + 1, end - 1
    while start > 0:
        inner = text[start:end].strip()
        if len(split_top(inner, ",;")) == 1 and bracketed(f"({inner})"):
            return inner
        start, end = start - 1, end + 1
    return text


def _split_command(text: str, command: str) -> list[str]:
    marked = re.sub(rf"{re.escape(command)}(?![A-Za-z])", "\ue002", text)
    return [p.strip() for p in split_top(marked, "\ue002")]


def _relation_sides(text: str) -> Form | None:
    marks, parts, at = [], [], 0
    depth = 0
    i = 0
    while i < len(text):
        match = _RELATION.match(text, i) if depth == 0 else None
        if match is not None:
            parts.append(text[at:i].strip())
            marks.append(_SPELLING.get(match[0], match[0]))
            i = at = match.end()
            continue
        depth += (text[i] in _OPEN) - (text[i] in _CLOSE)
        i += 1
    if not marks:
        return None
    return Form("relation", (*parts, text[at:].strip()), tuple(marks))
