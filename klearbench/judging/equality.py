"""Whether a final answer is right for a reference answer, by the policy of docs/judging (strict rules).

The reference decides the kind. Of short texts the cost is bounded; others belong into a worker that can be killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from klearbench.judging.families import Family, families_equal, family, unnamed_family
from klearbench.judging.forms import Form, parse
from klearbench.judging.listing import NAME, has_plus_minus, members, named_values
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN, canonical, canonical_reference, is_placeholder
from klearbench.judging.numbers import exact_number
from klearbench.judging.relations import equations_equal, is_setlike, sets_equal
from klearbench.judging.special import CHOICE_AND_VALUE, special_equal
from klearbench.judging.values import APPROX, squash, values_equal
from klearbench.judging.wording import read_text, without_label

_MAX_DEPTH = 6
_MAX_MEMBERS = 200
_DEFINITION = re.compile(r"([A-Za-z])\s?\(\s?([A-Za-z])\s?\)")
_FOR_ALL = re.compile(
    rf"[\s,;]{{0,8}}{TEXT_OPEN}?\s?\b(?:for|where)\s(?:all|every|any|each)\b[^=]{{0,60}}\Z"
    r"|\s\(\s?[a-z]\s?\\in[^()=]{0,40}\)\Z|[\s,;]{0,8}\\forall(?![A-Za-z]).{0,60}\Z"
)
_EQUATION_SIDE = re.compile(r"\d[^-+]*[-+]|[-+][^-+]*\d")
_FUNCTION_NAME = re.compile(r"[A-Za-z](?:_\{?\w{1,8}\}?)?\s?\(\s?[A-Za-z](?:\s?,\s?[A-Za-z])*\s?\)")
_ASKED = re.compile(
    r"\\(?:sin|cos|tan|cot|sec|csc|lim|angle|overline|triangle|sum|int|prod|det|deg|arg|max|min)(?![A-Za-z])|\|[zwA-Z]\|"
)
_MATRIX = re.compile(r"\\begin\{[bp]?matrix\}(.*)\\end\{[bp]?matrix\}", re.DOTALL)
_TRANSPOSED = re.compile(r"(?<=[)\]])\s?\^\s?\{?\s?(?:T|\\top|\\intercal)\s?\}?\Z")
_NESTED_LIST = re.compile(r"\[\s?\[[^\[\]]*\](?:\s?,\s?\[[^\[\]]*\])*\s?\]")
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+")
_BUILDER = re.compile(r"\\\{\s*[A-Za-z]\s*(?:\\in\s?\\mathbb\s?\{?R\}?)?\s*[|:](.*)\\\}", re.DOTALL)


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
        values_equal(member, member)


def _equal(gold: str, answer: str, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        return False
    if squash(gold) == squash(answer):
        return True
    choice = re.fullmatch(CHOICE_AND_VALUE, re.sub(f"[{TEXT_OPEN}{TEXT_CLOSE}]", "", gold).strip())
    if choice is not None and _equal(choice[2], answer, depth + 1):
        return True
    if _BUILDER.fullmatch(answer.strip()) and parse(gold).kind in ("set", "list") and family(gold) is None:
        return sets_equal(gold, answer)
    if gold.startswith(r"\begin{"):
        answer = _as_matrix(_TRANSPOSED.sub("", answer))
    gold, answer = _BUILDER.sub(r"\1", gold.strip()), _BUILDER.sub(r"\1", without_label(answer))
    special = special_equal(gold, answer)
    if special is not None:
        return special
    if re.fullmatch(r"-?\d+\.\d+", gold):  # a decimal may itself be a rounding
        answer = re.sub(rf"\A{TEXT_OPEN}?approximately\s?{TEXT_CLOSE}?\s?(?=-?\d)", "", answer, flags=re.IGNORECASE)
    answer = read_text(answer if _FOR_ALL.search(gold) else _FOR_ALL.sub("", answer))
    periodic, said = family(gold), family(answer)
    if periodic is not None:
        return families_equal(periodic, said or unnamed_family(answer))
    if said is not None and len(names := _letters(gold) - {"x"}) == 1:
        return families_equal(Family(unnamed_family(gold).terms, names.pop()), said)
    if APPROX.search(answer) and not APPROX.search(gold):
        answer = _before_rounding(answer)
    gold_form, answer_form = parse(gold), parse(answer)
    return _by_form(gold_form, answer_form, gold, answer, depth)


def _before_rounding(answer: str) -> str:
    """The exact value before "≈ rounding"; the whole text where there is none, or it is the rougher of the two."""
    exact, *rounded = (part.strip() for part in APPROX.split(answer))
    if any(parse(part).kind != parse(exact).kind or has_plus_minus(part) for part in rounded):
        return answer
    x, y = exact_number(exact), exact_number(rounded[0])
    rough = (
        x is not None
        and y is not None
        and x != y
        and re.fullmatch(r"-?[\d.,]+", exact)
        and len(exact) <= len(rounded[0])
    )
    return answer if not exact or rough else exact


def _by_form(g: Form, a: Form, gold: str, answer: str, depth: int) -> bool:
    if g.kind == "relation" and set(g.marks) == {"="} and not _is_equation(g):
        definition = _DEFINITION.fullmatch(g.parts[0])
        if definition is not None and a.kind == "relation":
            body = _body(a, definition[1], definition[2])
            return body is not None and _equal(g.parts[-1], body, depth + 1)
        if a.kind == "relation" and _other_name(g.parts[0], a.parts[0]):
            return False
        return _equal(g.parts[-1], answer, depth + 1)
    if is_setlike(g) or (g.kind == "tuple" and len(g.parts) == 2 and is_setlike(a) and a.kind != "set"):
        return sets_equal(gold, answer)
    if g.kind == "relation":
        return _relation_equal(g, a, gold, answer, depth)
    if g.kind in ("list", "set") or has_plus_minus(gold):
        return _members_equal(gold, answer, depth) or (is_setlike(a) and sets_equal(gold, answer))
    if g.kind == "tuple" or (a.kind == "tuple" and _vector(gold)):
        want, have = _components(g, gold), _components(a, answer)
        return len(want) == len(have) and all(_equal(x, y, depth + 1) for x, y in zip(want, have, strict=True))
    if a.kind == "list" and all(_equal(gold, part, depth + 1) for part in a.parts):
        return True  # one value in several spellings
    if has_plus_minus(answer) or a.kind in ("list", "set", "tuple", "interval", "union"):
        return False
    if a.kind == "relation":
        value = _last_member(a)
        return value is not None and _equal(gold, value, depth + 1)
    return values_equal(gold, answer)


def _is_equation(form: Form) -> bool:
    """Whether a gold with "=" relates variables, rather than naming a value."""
    if len(form.parts) != 2 or not NAME.fullmatch(form.parts[0]):
        return True
    return len(_letters(form.parts[1])) > 0 and not form.parts[0].endswith(")") and "_" not in form.parts[0]


def _body(answer: Form, function: str, variable: str) -> str | None:
    """What an answer says a function is, in the reference's variable; None where it defines something else."""
    head, body = answer.parts[0], answer.parts[-1]
    if set(answer.marks) - {"=", r"\equiv"}:
        return None
    said = _DEFINITION.fullmatch(head)
    if said is None:
        return body if re.fullmatch(rf"[yY]|{function}", head) else None
    if said[1] != function:
        return None
    return re.sub(rf"(?<![A-Za-z\\]){said[2]}(?![A-Za-z])", variable, body) if said[2] != variable else body


def _other_name(gold: str, answer: str) -> bool:
    """Whether an answer names another letter than the reference does, or something made of that letter, like |x|."""
    if not re.fullmatch(r"[A-Za-z]", gold) or gold.lower() == answer.lower():
        return False
    return re.fullmatch(r"[A-Za-z]", answer) is not None or (gold in _letters(answer) and _letters(answer) == {gold})


def _letters(text: str) -> set[str]:
    text = re.sub(rf"{TEXT_OPEN}[^{TEXT_CLOSE}]*{TEXT_CLOSE}|\\[A-Za-z]+", " ", text)
    return set(re.findall(r"[A-Za-z]", text)) - {"e", "i"}


def _relation_equal(g: Form, a: Form, gold: str, answer: str, depth: int) -> bool:
    if set(g.marks) != {"="}:
        return sets_equal(gold, answer)
    if a.kind == "relation" and set(a.marks) == {"="}:
        return equations_equal(g, a)
    left_is_name = bool(NAME.fullmatch(g.parts[0]))
    return a.kind == "value" and len(g.parts) == 2 and left_is_name and _equal(g.parts[1], answer, depth + 1)


def _last_member(form: Form) -> str | None:
    """The value that a chain `name = ... = value` ends with; None when it is no such chain or its members disagree."""
    if set(form.marks) - {"=", r"\in", r"\equiv"}:
        return None
    head, *rest = form.parts
    if not rest or any(not part for part in rest) or (re.fullmatch(r"[A-Za-z]", head) and head in _letters(rest[-1])):
        return None
    if not _is_name(head, rest[-1]):
        return None
    if rest == ["0"] and _letters(head) and _EQUATION_SIDE.search(head) and not NAME.fullmatch(head):
        return None  # an equation like 2x - y + 1 = 0, not a value
    if len(form.parts) == 2 and re.fullmatch(r"[A-Za-z]", rest[0]) and not _letters(head):
        return head
    if len(form.parts) > 1 and re.search(r"\d\s?\\ldots$", rest[-1]):
        rest = rest[:-1] or [head]
    values = [part for part in (head, *rest) if part and _is_number_like(part)]
    for value in values[:-1]:
        if not values_equal(value, values[-1]):
            return None
    return rest[-1]


def _is_name(head: str, value: str) -> bool:
    """Whether the left side of an answer may be what was asked for, rather than something done to an unknown.

    A name, a function at a place, a sine, a modulus, or anything of no or several letters (`m+n`, `AB`); not `x^2`,
    `-x`, `x+1` or `1/x`. Where the value is a function, `f(x)` is meant, not `f(x+1)` or `2f(x)`.
    """
    head = re.sub(rf"{TEXT_OPEN}[^{TEXT_CLOSE}]*{TEXT_CLOSE}", "", head).strip()
    letters = _letters(head)
    if _letters(value) and "(" in head and r"\lim" not in head:
        return _FUNCTION_NAME.fullmatch(head) is not None
    return len(letters) != 1 or NAME.fullmatch(head) is not None or _ASKED.match(head) is not None


def _is_number_like(text: str) -> bool:
    """A member of a chain that can be checked: a number without variables, limits or trailing dots."""
    if _letters(text) or re.search(r"\\(?:lim|ldots|angle|overline|triangle)", text):
        return False
    return re.search(r"\d|\\pi|\\infty", text) is not None


def _members_equal(gold: str, answer: str, depth: int) -> bool:
    """One-to-one matching, order free; repeated members count once; members with names of their own count by name."""
    named = named_values(parse(gold))
    if named is not None:
        return _named_equal(named, answer, depth)
    want, have = members(gold), members(answer)
    if len(have) == 1 < len(want) and _GROUPED.fullmatch(answer.strip()):
        have = answer.split(",")  # the reference decides: "1,100" answers a list of two
    if len(want) != len(have) or len(want) == len(_distinct(want)):
        want, have = _distinct(want), _distinct(have)
    ordered = parse(answer).kind in ("tuple", "interval") and not has_plus_minus(answer)
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


def _named_equal(gold: dict[str, str], answer: str, depth: int) -> bool:
    """Named components against named ones, or against a pair or an ordered listing in the order of the names."""
    form = parse(answer)
    have = named_values(form)
    if have is None:
        values = _components(form, answer) if form.kind != "set" else []
        if len(values) != len(gold) or any("=" in value for value in values):
            return False
        have = dict(zip(_in_order(gold), values, strict=True))
    return have.keys() == gold.keys() and all(_equal(value, have[name], depth + 1) for name, value in gold.items())


def _distinct(texts: list[str]) -> list[str]:
    return list({squash(t): t for t in texts}.values())


def _components(form: Form, answer: str) -> list[str]:
    """The components of a pair, named ones in the order of their names, brackets optional."""
    if form.kind == "relation" and set(form.marks) == {"="} and len(form.parts) == 2:
        parts = _components(parse(form.parts[1]), form.parts[1])
        names = re.findall(r"\\?[A-Za-z]+", form.parts[0]) if form.parts[0].startswith("(") else []
        named = dict(zip(names, parts, strict=True)) if len(names) == len(parts) == len(set(names)) else None
        return parts if named is None else [named[name] for name in _in_order(names)]
    if form.kind == "tuple":
        return list(form.parts)
    if form.kind == "list":
        named = named_values(form)
        return list(form.parts) if named is None else [named[name] for name in _in_order(named)]
    return _vector(answer) or [answer]


def _in_order(names: Iterable[str]) -> list[str]:
    """Names of components in the order of a pair: neighbours in the alphabet by it (y, x), others as listed (n, k)."""
    listed, ordered = list(names), sorted(names)
    neighbours = all(len(a) == len(b) == 1 and ord(b) - ord(a) == 1 for a, b in pairwise(ordered))
    return ordered if neighbours else listed


def _as_matrix(text: str) -> str:
    """`[[1, 2], [3, 4]]` as a matrix; any other text as it is."""
    if not _NESTED_LIST.fullmatch(text.strip()):
        return text
    rows = re.findall(r"\[([^\[\]]*)\]", text)
    return r"\begin{pmatrix}" + r"\\".join(row.replace(",", "&") for row in rows) + r"\end{pmatrix}"


def _vector(text: str) -> list[str]:
    """The entries of a matrix of one row or one column; none of any other text."""
    match = _MATRIX.fullmatch(text.strip())
    rows = [row for row in re.split(r"\\\\|\\cr", match[1]) if row.strip()] if match is not None else []
    entries = rows if len(rows) > 1 else "".join(rows).split("&")
    return [] if any("&" in entry for entry in entries) or len(entries) < 2 else [entry.strip() for entry in entries]
