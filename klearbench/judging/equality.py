"""Whether a final answer is right for a reference answer, by the policy of docs/judging (strict rules).

The reference decides the kind. Runs inside a worker: it may be slow or hang, and is then killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

import sympy

from klearbench.judging.forms import Form, parse, strip_parens
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN, canonical, canonical_reference, is_placeholder
from klearbench.judging.numbers import exact_number
from klearbench.judging.relations import equations_equal, is_setlike, sets_equal
from klearbench.judging.size import Unreadable
from klearbench.judging.special import CHOICE_AND_VALUE, family, special_equal
from klearbench.judging.symbolic import expressions_equal, to_sympy
from klearbench.judging.units import split_quantity
from klearbench.judging.values import APPROX, squash, values_equal
from klearbench.judging.wording import read_text, without_label

_MAX_DEPTH = 6
_MAX_MEMBERS = 200
_MAX_SIGNS = 4
_COMPONENT = r"(?:[A-Za-z]|\\[a-z]{2,8})(?:_?\{?\w{1,3}\}?)?"
_BUILDER = re.compile(r"\\\{\s*[A-Za-z]\s*(?:\\in\s?\\mathbb\s?\{?R\}?)?\s*[|:](.*)\\\}", re.DOTALL)
_NAME = re.compile(
    r"(?:[A-Za-z]|[A-Za-z]{3,12}|\\[A-Za-z]{2,12}|\(\\?[A-Za-z]+\s?(?:,\s?\\?[A-Za-z]+\s?)+\))(?:_\{?\w{1,8}\}?)?'*(?:\s?\([^()=]{0,40}\))?"
)


def equal(gold: str, answer: str) -> bool:
    """Whether `answer` is right for `gold`. Texts are compared, never run."""
    if len(answer) > 20000 or is_placeholder(answer):
        return False
    g, a = canonical_reference(gold), canonical(answer)
    if squash(g) == squash(a):
        return True
    return _equal(g, a, 0)


def sets_of_values_equal(gold: str, answer: str) -> bool:
    """The rule "set": the members of both, order free."""
    if len(answer) > 20000 or is_placeholder(answer):
        return False
    return _members_equal(canonical(gold), canonical(answer), 0)


def read_alone(gold: str) -> None:
    """Read a reference as a comparison would; text that is no expression is fine."""
    for member in members(canonical(gold)):
        try:
            to_sympy(split_quantity(strip_parens(member)).value)
        except Unreadable:
            continue


def _equal(gold: str, answer: str, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        return False
    if squash(gold) == squash(answer):
        return True
    choice = re.fullmatch(CHOICE_AND_VALUE, re.sub(f"[{TEXT_OPEN}{TEXT_CLOSE}]", "", gold).strip())
    if choice is not None and _equal(choice[2], answer, depth + 1):
        return True
    gold, answer = _BUILDER.sub(r"\1", gold.strip()), _BUILDER.sub(r"\1", without_label(answer))
    special = special_equal(gold, answer)
    if special is not None:
        return special
    if re.fullmatch(r"-?\d+\.\d+", gold):  # a decimal may itself be a rounding
        answer = re.sub(rf"\A{TEXT_OPEN}?approximately\s?{TEXT_CLOSE}?\s?(?=-?\d)", "", answer, flags=re.IGNORECASE)
    answer = read_text(answer)
    periodic = family(gold)
    if periodic is not None and periodic[1]:
        return _families_equal(periodic, family(answer))
    if APPROX.search(answer) and not APPROX.search(gold):
        answer = _before_rounding(answer)
    gold_form, answer_form = parse(gold), parse(answer)
    return _by_form(gold_form, answer_form, gold, answer, depth)


def _before_rounding(answer: str) -> str:
    """The exact value before "≈ rounding"; the whole text where there is none, or it is the rougher of the two."""
    exact, *rounded = (part.strip() for part in APPROX.split(answer))
    x, y = exact_number(exact), exact_number(rounded[0])
    rough = (
        x is not None
        and y is not None
        and x != y
        and re.fullmatch(r"-?[\d.,]+", exact)
        and len(exact) <= len(rounded[0])
    )
    return answer if not exact or rough else exact


def _families_equal(gold: tuple[str, str], answer: tuple[str, str] | None) -> bool:
    """Two families of solutions, the integer parameter renamed, shifted by one or negated."""
    if answer is None:
        return False
    name = answer[1] or next(iter(sorted(_letters(answer[0]) - {"x"})), "")
    if not name:
        return False
    want, have = to_sympy(gold[0]), to_sympy(answer[0])
    old, new = sympy.Symbol(gold[1]), sympy.Symbol(name)
    return any(
        expressions_equal(want, have.subs(new, move)) for move in (old, -old, old + 1, old - 1, 1 - old, -1 - old)
    )


def _by_form(g: Form, a: Form, gold: str, answer: str, depth: int) -> bool:
    if g.kind == "relation" and set(g.marks) == {"="} and not _is_equation(g):
        if a.kind == "relation" and _other_name(g.parts[0], a.parts[0]):
            return False
        return _equal(g.parts[-1], answer, depth + 1)
    if is_setlike(g) or (g.kind == "tuple" and len(g.parts) == 2 and is_setlike(a) and a.kind != "set"):
        return sets_equal(gold, answer)
    if g.kind == "relation":
        return _relation_equal(g, a, gold, answer, depth)
    if g.kind in ("list", "set") or _has_plus_minus(gold):
        return _members_equal(gold, answer, depth)
    if g.kind == "tuple":
        parts = _components(a, answer)
        return len(parts) == len(g.parts) and all(_equal(x, y, depth + 1) for x, y in zip(g.parts, parts, strict=True))
    if _has_plus_minus(answer) or a.kind in ("list", "set", "tuple", "interval", "union"):
        return False
    if a.kind == "relation":
        value = _last_member(a)
        return value is not None and _equal(gold, value, depth + 1)
    return values_equal(gold, answer)


def _is_equation(form: Form) -> bool:
    """Whether a gold with "=" relates variables, rather than naming a value."""
    if len(form.parts) != 2 or not _NAME.fullmatch(form.parts[0]):
        return True
    return len(_letters(form.parts[1])) > 0 and not form.parts[0].endswith(")") and "_" not in form.parts[0]


def _other_name(gold: str, answer: str) -> bool:
    """Whether two assignments name two different single letters."""
    return all(re.fullmatch(r"[A-Za-z]", name) for name in (gold, answer)) and gold.lower() != answer.lower()


def _letters(text: str) -> set[str]:
    text = re.sub(rf"{TEXT_OPEN}[^{TEXT_CLOSE}]*{TEXT_CLOSE}|\\[A-Za-z]+", " ", text)
    return set(re.findall(r"[A-Za-z]", text)) - {"e", "i"}


def _relation_equal(g: Form, a: Form, gold: str, answer: str, depth: int) -> bool:
    if set(g.marks) != {"="}:
        return sets_equal(gold, answer)
    if a.kind == "relation" and set(a.marks) == {"="}:
        return equations_equal(g, a)
    left_is_name = bool(_NAME.fullmatch(g.parts[0]))
    return a.kind == "value" and len(g.parts) == 2 and left_is_name and _equal(g.parts[1], answer, depth + 1)


def _last_member(form: Form) -> str | None:
    """The value that a chain `name = ... = value` ends with; None when it is no such chain or its members disagree."""
    if set(form.marks) - {"=", r"\in", r"\equiv"}:
        return None
    head, *rest = form.parts
    if not rest or any(not part for part in rest) or re.fullmatch(r"-?\d+\s?\*?\s?[A-Za-z]", head):
        return None
    if len(form.parts) == 2 and re.fullmatch(r"[A-Za-z]", rest[0]) and not _letters(head):
        return head
    if len(form.parts) > 1 and re.search(r"\d\s?\\ldots$", rest[-1]):
        rest = rest[:-1] or [head]
    values = [part for part in (head, *rest) if part and _is_number_like(part)]
    for value in values[:-1]:
        if not values_equal(value, values[-1]):
            return None
    return rest[-1]


def _is_number_like(text: str) -> bool:
    """A member of a chain that can be checked: a number without variables, limits or trailing dots."""
    if _letters(text) or re.search(r"\\(?:lim|ldots|angle|overline|triangle)", text):
        return False
    return re.search(r"\d|\\pi|\\infty", text) is not None


def _has_plus_minus(text: str) -> bool:
    return r"\pm" in text or r"\mp" in text


def members(text: str) -> list[str]:
    """The members of an answer that may be a list, a set, a union of sets or a plus-minus; names are left out."""
    form = parse(text)
    if form.kind in ("list", "set"):
        found = [m for part in form.parts for m in members(part)]
    elif form.kind == "union" and all(parse(p).kind == "set" for p in form.parts):
        found = list(dict.fromkeys(m for part in form.parts for m in members(part)))
    elif form.kind == "relation" and set(form.marks) <= {"=", r"\in"} and _NAME.fullmatch(form.parts[0]):
        found = members(form.parts[-1])
    elif _has_plus_minus(text) and form.kind in ("value", "tuple"):
        found = _both_signs(text)
    else:
        found = [text.strip()]
    return found


def _both_signs(text: str) -> list[str]:
    r"""The texts that \pm stands for: every choice of signs, or two where \mp ties them together."""
    signs = re.findall(r"\\(?:pm|mp)(?![A-Za-z])", text)
    if len(signs) > _MAX_SIGNS:
        return [text]
    tied = r"\mp" in signs
    choices = [[+1] * len(signs), [-1] * len(signs)] if tied else product((+1, -1), repeat=len(signs))
    return [_with_signs(text, choice) for choice in choices]


def _with_signs(text: str, choice: Iterable[int]) -> str:
    chosen = iter(choice)
    return re.sub(
        r"\\(pm|mp)(?![A-Za-z])", lambda m: "+" if (next(chosen) > 0) == (m[1] == "pm") else "-", text
    ).strip()


def _members_equal(gold: str, answer: str, depth: int) -> bool:
    """One-to-one matching, order free; repeated members count once; members with names of their own count by name."""
    named = named_values(parse(gold))
    if named is not None:
        return _named_equal(named, answer, depth)
    want, have = members(gold), members(answer)
    if len(want) != len(have) or len(want) == len(_distinct(want)):
        want, have = _distinct(want), _distinct(have)
    ordered = parse(answer).kind in ("tuple", "interval") and not _has_plus_minus(answer)
    if len(want) != len(have) or len(want) > _MAX_MEMBERS or ordered:
        return False
    if any("\\ldots" in m for m in (*want, *have)):
        return len(want) == len(have) and all(_equal(x, y, depth + 1) for x, y in zip(want, have, strict=True))
    for member in want:
        match = next((other for other in have if _equal(member, other, depth + 1)), None)
        if match is None:
            return False
        have.remove(match)
    return True


def named_values(form: Form) -> dict[str, str] | None:
    """The values of a list `x = 3, y = 4` by name; None when it is anything else, or a name stands twice."""
    if form.kind != "list":
        return None
    sides = [parse(part) for part in form.parts]
    if not all(s.marks == ("=",) and re.fullmatch(_COMPONENT, s.parts[0]) and s.parts[1] for s in sides):
        return None
    named = {side.parts[0]: side.parts[1] for side in sides}
    return named if len(named) == len(sides) else None


def _named_equal(gold: dict[str, str], answer: str, depth: int) -> bool:
    """Named components against named ones, or against a pair or an ordered listing in the order of the names."""
    form = parse(answer)
    have = named_values(form)
    if have is None:
        values = _components(form, answer) if form.kind != "set" else []
        if len(values) != len(gold) or any("=" in value for value in values):
            return False
        have = dict(zip(sorted(gold), values, strict=True))
    return have.keys() == gold.keys() and all(_equal(value, have[name], depth + 1) for name, value in gold.items())


def _distinct(texts: list[str]) -> list[str]:
    return list({squash(t): t for t in texts}.values())


def _components(form: Form, answer: str) -> list[str]:
    """The components of a pair, named ones in the order of their names, brackets optional."""
    if form.kind == "relation" and set(form.marks) == {"="} and len(form.parts) == 2:
        return _components(parse(form.parts[1]), form.parts[1])
    if form.kind == "tuple":
        return list(form.parts)
    if form.kind == "list":
        named = named_values(form)
        return list(form.parts) if named is None else [named[name] for name in sorted(named)]
    return [answer]
