"""Descriptions of sets of numbers, in signs or in words, read to `NumberSet`.

Read: intervals (also ]2,5[), finite sets, unions, intersections, differences, set builders, memberships, inequalities
in one variable with "and" and "or", lists of them, and named sets such as R, Z^+ or "all real numbers except 0".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from klearbench.judging.expressions.nodes import Node, Num, Relation, Sym, Unreadable
from klearbench.judging.expressions.numbersets import NUMBERS, NumberSet, real
from klearbench.judging.expressions.parser import parse_expression
from klearbench.judging.expressions.realsets import EMPTY, interval, singletons
from klearbench.judging.expressions.roots import ZERO
from klearbench.judging.expressions.solve import ray, solutions
from klearbench.judging.expressions.tree import relation_symbols, symbols
from klearbench.judging.forms import Form, bracketed, parse, split_top
from klearbench.judging.listing import both_signs
from klearbench.judging.setwords import in_signs

_MAX_DEPTH = 8
_MAX_LENGTH = 600
_CUT = "\ue002"
_NAME = r"\\?[A-Za-z]{1,8}(?:_\{?\w{1,3}\}?)?|[A-Za-z]\s?\(\s?[A-Za-z]\s?\)"
_BUILDER = re.compile(rf"\\\{{\s?(?P<name>{_NAME})\s?(?:\\in(?![A-Za-z])(?P<base>[^|:]{{1,80}}))?[|:](?P<rest>.+)\\\}}")
_MEMBER = re.compile(rf"(?P<name>{_NAME})\s?\\(?P<mark>in|notin|not\s?\\in)(?![A-Za-z])(?P<rest>.+)")
_FUNCTION = re.compile(r"[A-Za-z]\s?\(\s?[A-Za-z]\s?\)")
_ORDER = re.compile(r"\\(?:le|ge|ne|in|notin)(?![A-Za-z])|[<>=]")
_EMPTY_SIGN = re.compile(r"\\(?:emptyset|phi|varnothing)|\\\{\s?\\\}|[Øø∅]")
_NUMBER_SET = re.compile(
    r"(?:\\(?:mathbb|mathbf|Bbb)\s?\{?\s?)?(?P<letter>[RZQNC])\s?\}?"
    r"(?P<marks>(?:\s?[\^_]\s?(?:\{[^{}]{1,12}\}|\\[a-z]{1,8}|[^\s\\{}])){0,2})"
)
_HALVES = {
    **dict.fromkeys(("+", ">0", "+*", "*+"), ">"),
    **dict.fromkeys(("-", "<0", "-*", "*-"), "<"),
    **dict.fromkeys((r"\ge0", ">=0", "0+", "+0"), r"\ge"),
    **dict.fromkeys((r"\le0", "<=0", "0-", "-0"), r"\le"),
    **dict.fromkeys(("*", r"\ne0"), r"\ne"),
}
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DIFFERENCE = re.compile(r"\\setminus(?![A-Za-z])|(?<=[})\]RZQNC])\s?[-/]\s?(?=\\\{|\\mathbb)")
_OR, _AND = (re.compile(rf"\b{word}\b", re.IGNORECASE) for word in ("or", "and"))
_BRACKET = re.compile(r"\\sqrt\s?\[[^\[\]]*\]|([\[\](),;])")


_Combine = Callable[[NumberSet, NumberSet], NumberSet]
_UNION: _Combine = NumberSet.__or__
_INTERSECTION: _Combine = NumberSet.__and__
_SIGNS: tuple[tuple[re.Pattern[str], str, _Combine], ...] = (
    (_DIFFERENCE, r"\setminus ", NumberSet.__sub__),
    (re.compile(r"\\cup(?![A-Za-z])"), r"\cup ", _UNION),
    (re.compile(r"\\cap(?![A-Za-z])"), r"\cap ", _INTERSECTION),
)
"""The loosest first."""


class Several(Unreadable):
    """A relation of several variables: no set of numbers."""


def value_of(text: str) -> Node:
    """The tree of one side or end point."""
    return parse_expression(text.strip().removeprefix("+"))


def is_number_set(text: str) -> bool:
    r"""Whether a text is a sign for a set of numbers: `\mathbb{R}^+`, `\emptyset`; a bare letter R is none."""
    return _EMPTY_SIGN.fullmatch(text.strip()) is not None or (
        text.lstrip().startswith("\\") and _NUMBER_SET.fullmatch(text.strip()) is not None
    )


def is_set_builder(inside: str) -> bool:
    r"""Whether the text between \{ and \} starts as a set builder does."""
    return re.match(rf"\s?(?:{_NAME})\s?(?:\\in(?![A-Za-z])[^|:]{{1,80}})?[|:]", inside) is not None


def is_difference(text: str) -> bool:
    r"""Whether a text is one set without another: `\mathbb{R} \setminus \{0\}`."""
    return _cut(_DIFFERENCE, r"\setminus ", text) is not None


class SetReader:
    """Text to set; remembers the variables it met, those that a set builder binds left out.

    Args:
        first_natural: what N starts with, 0 or 1.
    """

    def __init__(self, first_natural: int = 1) -> None:
        self.names: set[str] = set()
        self.first_natural = first_natural
        self.met_naturals = False

    def read(self, text: str) -> NumberSet:
        """The set that a text describes. Raises Unreadable where it describes none, or one that is not solved."""
        if len(text) > _MAX_LENGTH:
            raise Unreadable("too long for a set")
        return self._read(_without_iso(in_signs(text)), 0)

    def _read(self, text: str, depth: int) -> NumberSet:
        text = text.strip(" ,.")
        if depth > _MAX_DEPTH or not text:
            raise Unreadable("no set")
        named = self._named(text)
        if named is not None:
            return named
        if text[0] + text[-1] == "()" and bracketed(text) and len(split_top(text[1:-1], ",;")) == 1:
            return self._read(text[1:-1], depth + 1)
        built = _BUILDER.fullmatch(text)
        if built is not None and bracketed(text):
            return self._built(built, depth)
        for read in (self._alternatives, self._joint, self._listed, self._membership, self._combined):
            found = read(text, depth)
            if found is not None:
                return found
        return self._form(parse(text))

    def _named(self, text: str) -> NumberSet | None:
        if _EMPTY_SIGN.fullmatch(text):
            return real(EMPTY)
        match = _NUMBER_SET.fullmatch(text)
        if match is None:
            return None
        marks = re.sub(r"\\(?:ast|times)", "*", re.sub(r"[\s{}^_]", "", match["marks"]))
        letter = match["letter"]
        if letter == "N":
            self.met_naturals = True
            first = {"": self.first_natural, "*": 1, "+": 1, ">0": 1, "0": 0, r"\ge0": 0}.get(marks)
            if first is None:
                raise Unreadable("no known set")
            return NUMBERS["Z"] & real(ray(r"\ge", Num(Fraction(first))))
        if marks and marks not in _HALVES:
            raise Unreadable("no known set")
        return NUMBERS[letter] & real(ray(_HALVES[marks], ZERO)) if marks else NUMBERS[letter]

    def _built(self, built: re.Match[str], depth: int) -> NumberSet:
        """A set builder; its variable is bound, and no name."""
        outer, self.names = self.names, set()
        found = self._read(built["rest"], depth + 1)
        name = _name(built["name"])
        free, self.names = self.names - {name}, outer
        if free:
            raise Several("a set builder with another variable")
        return found & self._read(built["base"], depth + 1) if built["base"] else found

    def _alternatives(self, text: str, depth: int) -> NumberSet | None:
        parts = _cut(_OR, " or ", text)
        return None if parts is None else reduce(_UNION, [self._read(part, depth + 1) for part in parts])

    def _joint(self, text: str, depth: int) -> NumberSet | None:
        """ "x > 2 and x < 5"; intervals that are joined by "and" and have nothing in common are listed."""
        parts = completed(_cut(_AND, " and ", text) or [])
        if not parts:
            return None
        sets = [self._read(part, depth + 1) for part in parts]
        common = reduce(_INTERSECTION, sets)
        listed = common.is_empty() and not any(_is_relation(part) for part in parts)
        return reduce(_UNION, sets) if listed else common

    def _listed(self, text: str, depth: int) -> NumberSet | None:
        """ "x > 0, x < 1" is "and", "x < 0, x > 1" can only be "or"; intervals are listed."""
        parts = completed([part.strip() for part in split_top(text, ",;") if part.strip()])
        if len(parts) < 2:
            return None
        if not all(_is_relation(part) or parse(part).kind in ("interval", "union") for part in parts):
            joined = _THOUSANDS.sub("", text)
            return self._read(joined, depth + 1) if joined != text else None
        sets = [self._read(part, depth + 1) for part in parts]
        outs = [s for s, part in zip(sets, parts, strict=True) if r"\ne" in part and not re.search("[<>=]", part)]
        rest = [s for s in sets if s not in outs]
        if not rest:
            return reduce(_INTERSECTION, outs)
        common = reduce(_INTERSECTION, rest)
        if not any(_is_relation(part) for part in parts) or (
            common.is_empty() and re.search(r"\\in(?![A-Za-z])", text) is None
        ):
            common = reduce(_UNION, rest)
        return reduce(_INTERSECTION, outs, common)

    def _membership(self, text: str, depth: int) -> NumberSet | None:
        match = _MEMBER.fullmatch(text)
        if match is None:
            return None
        self.names.add(_name(match["name"]))
        found = self._read(match["rest"], depth + 1)
        return found if match["mark"] == "in" else NUMBERS["R"] - found

    def _combined(self, text: str, depth: int) -> NumberSet | None:
        for pattern, sign, combine in _SIGNS:
            parts = _cut(pattern, sign, text)
            if parts is not None:
                return reduce(combine, [self._read(part, depth + 1) for part in parts])
        return None

    def _form(self, form: Form) -> NumberSet:
        if form.kind == "set":
            return real(singletons(value_of(text) for part in form.parts for text in both_signs(part)))
        if form.kind in ("interval", "tuple") and len(form.parts) == 2:
            low, high = (value_of(part) for part in form.parts)
            if symbols(low) or symbols(high):
                raise Several("an interval with a variable in it")
            return real(interval(low, high, form.marks[0] == "(", form.marks[1] == ")"))
        if form.kind != "relation":
            raise Unreadable("no set")
        signed = both_signs(_CUT.join(form.parts))
        return reduce(_UNION, [self._relation(text.split(_CUT), form.marks) for text in signed])

    def _relation(self, parts: list[str], marks: tuple[str, ...]) -> NumberSet:
        nodes = tuple(Sym(_name(part)) if _FUNCTION.fullmatch(part) else value_of(part) for part in parts)
        relation = Relation(nodes, marks)
        names = relation_symbols(relation)
        self.names |= names
        if len(names) > 1:
            raise Several("a relation of several variables")
        if not names:
            raise Unreadable("a relation without a variable")
        return real(solutions(relation, next(iter(names))))


def _name(text: str) -> str:
    if _FUNCTION.fullmatch(text):
        return re.sub(r"\s", "", text)
    node = parse_expression(text)
    if not isinstance(node, Sym):
        raise Unreadable("no name of a variable")
    return node.name


def _cut(pattern: re.Pattern[str], sign: str, text: str) -> list[str] | None:
    """The parts between separators outside all brackets, None where there is no separator.

    A separator inside brackets comes back spelled as `sign`.
    """
    if pattern.search(text) is None:
        return None
    parts = [part.replace(_CUT, sign).strip(" ,") for part in split_top(pattern.sub(_CUT, text), _CUT)]
    return parts if len(parts) > 1 and all(parts) else None


def _is_relation(text: str) -> bool:
    return not text.startswith(r"\{") and _ORDER.search(text) is not None


def completed(parts: list[str]) -> list[str]:
    r"""The parts of `x \ne 0, 1` as `x \ne 0` and `x \ne 1`; others as they are."""
    found = []
    head = ""
    for part in parts:
        named = re.match(rf"(?:{_NAME})\s?(?:\\ne(?![A-Za-z])|=)", part)
        head = named[0] if named is not None else head if _ORDER.search(part) is None else ""
        plain = named is None and head and part[:1] not in "([" and not part.startswith(r"\{")
        found.append(f"{head} {part}" if plain else part)
    return found


def _without_iso(text: str) -> str:
    """Intervals such as ]2,5[ with the brackets that are usual.

    A square bracket closes an interval where a comma stands before it inside the bracket around it, else it opens one.
    """
    if "[" not in text and "]" not in text:
        return text
    chars = list(text)
    commas: list[bool] = []
    for match in _BRACKET.finditer(text):
        char, at = match[1], match.start()
        if char in (",", ";") and commas:
            commas[-1] = True
        elif char in ("[", "]"):
            opens = not (commas and commas[-1])
            chars[at] = ("[" if char == "[" else "(") if opens else (")" if char == "[" else "]")
            commas = [*commas, False] if opens else commas[:-1]
        elif char == "(":
            commas.append(False)
        elif char == ")":
            commas = commas[:-1]
    return "".join(chars)
