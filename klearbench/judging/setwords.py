"""Words for sets and inequalities ("all real numbers except 0", "x is at least 3"), rewritten in signs."""

from __future__ import annotations

import re

from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN

_EMPTY = re.compile(
    r"(?:there (?:is|are|exists?) )?(?:no|zero) (?:real )?(?:solutions?|roots?|values?|such (?:numbers?|values?|\w))"
    r"(?: of \w| for \w| exists?| in (?:the )?reals?)?"
    r"|none|no such \w|(?:the )?(?:empty|null) set|it has no (?:real )?solutions?|空集|无(?:实数)?解",
    re.IGNORECASE,
)
_SIGN_OF = {
    **{"positive": ">0", "negative": "<0", "nonnegative": r"\ge0", "nonpositive": r"\le0", "nonzero": r"\ne0", "": ""},
    **{"正": ">0", "负": "<0", "非负": r"\ge0", "非零": r"\ne0"},
}
_KIND_OF = {"real": "R", "rational": "Q", "integer": "Z", "complex": "C", "natural": "N", "whole": "N"}
_NOUN = re.compile(
    r"(?:(?:true|holds|valid) )?(?:for )?(?:(?:the )?set of )?(?:(?:all|any|every|each|an?|the) ){0,3}"
    r"(?:of the )?(?:values? of )?"
    r"(?:(?P<sign>positive|negative|non-?\s?negative|non-?\s?positive|non-?\s?zero) )?"
    r"(?:(?P<kind>real|rational|integer|complex|natural|whole)(?P<plural>s)?\b(?: (?:numbers?|values?)\b)?"
    r"|(?P<bare>numbers?)\b)(?: (?:values? )?(?:of |for )?[a-z](?![a-z]))?",
    re.IGNORECASE,
)
_ALL_X = re.compile(r"(?:for )?(?:all|any|every) (?:values? (?:of|for) )?[a-z](?![a-z])", re.IGNORECASE)
_CHINESE_REALS = re.compile(r"(?:全体|所有|一切|任意|任何)?(正|负|非负|非零)?实数")
_SUBJECT = re.compile(
    r"\\?[A-Za-z]{1,6}\s?(?:is|are|can be|may be|could be|must be|can take|=|:|\\in)\s?(?:on |in )?(?=\\mathbb)"
)
_PHRASES = (
    (
        r"(?:greater|more|larger|bigger) than or equal to|greater or equal to|at least"
        r"|(?:no|not) (?:less|smaller|fewer) than",
        r"\ge",
    ),
    (
        r"(?:less|smaller|fewer) than or equal to|less or equal to|at most|(?:no|not) (?:more|greater|larger) than",
        r"\le",
    ),
    (r"(?:strictly )?(?:greater|more|larger|bigger) than", ">"),
    (r"(?:strictly )?(?:less|smaller|fewer) than", "<"),
    (r"(?:not|isn't|never) (?:be )?equal to|does not equal|(?:can|may|must|should) ?not (?:be|equal)|is not", r"\ne"),
)
_ORDERS = tuple(
    (re.compile(rf"(?:\b(?:is|are|be|that are|which are)\s)?(?:\b(?:{words})\b)", re.IGNORECASE), rf" {sign} ")
    for words, sign in _PHRASES
)
_EXCEPT = re.compile(
    r",?\s?\b(?:except(?:ing)?(?: for)?|other than|excluding|apart from|but not|not including|without)\b"
    r"(?: (?:at|when|where|that|if))?(?: the)?(?: (?:numbers?|values?|points?))?|,?\s?除了?",
    re.IGNORECASE,
)
_SUCH_THAT = re.compile(r",?\s?\b(?:such that|so that|for which|satisfying|where|with)\b:?", re.IGNORECASE)
_MARK = r"<|>|\\(?:le|ge|ne)(?![A-Za-z])"


def flat(text: str) -> str:
    """The text with its words unmarked and spaces single."""
    return re.sub(rf"[\s{TEXT_OPEN}{TEXT_CLOSE}]+", " ", text).strip()


def plain(text: str) -> str:
    """The text with its words unmarked, in lower case, spaces single, without a final stop."""
    return flat(text).strip(" .").lower()


def in_signs(text: str) -> str:
    """A description of a set with what is said in words said in signs; other words stay as they are."""
    text = flat(text)
    if _EMPTY.fullmatch(plain(text)):
        return r"\emptyset"
    if not re.search(r"(?<![\\A-Za-z])[A-Za-z]{2}|[\u4e00-\u9fff]", text):
        return text
    text = re.sub(
        r"^(?:the )?(?:solution(?: set)?|answer|domain|range|interval|set)(?: is| of)?\s(?=\S)", "", text, flags=re.I
    )
    text = text.replace("或", " or ").replace("且", " and ")
    for pattern, sign in _ORDERS:
        text = pattern.sub(lambda _, sign=sign: sign, text)  # type: ignore[misc]
    text = _CHINESE_REALS.sub(lambda m: _letter("R", m[1] or ""), text)
    text = _ALL_X.sub(_letter("R", "").replace("\\", "\\\\"), _NOUN.sub(_noun, text), count=1)
    text = _SUBJECT.sub("", text, count=1)
    text = _without_exceptions(_SUCH_THAT.sub(" and ", text))
    return re.sub(r"\s+", " ", _with_bound_variable(text)).strip()


def _noun(match: re.Match[str]) -> str:
    sign = re.sub(r"[\s-]", "", match["sign"] or "").lower()
    if match["bare"] is not None and not sign and not re.match(r"(?:all|any|every)\b", match[0], re.IGNORECASE):
        return match[0]
    return _letter(_KIND_OF.get((match["kind"] or "real").lower(), "R"), sign)


def _letter(kind: str, sign: str) -> str:
    return rf"\mathbb{{{kind}}}" + (f"_{{{_SIGN_OF[sign]}}}" if sign else "")


def _with_bound_variable(text: str) -> str:
    r"""`\mathbb{R} > 3` for "real numbers greater than 3", and `x > 2 and < 5`, with the variable put in."""
    after = re.fullmatch(rf"(\\mathbb\{{[A-Z]\}}(?:_\{{[^{{}}]*\}})?)\s*((?:{_MARK}).*)", text)
    if after is not None:
        return rf"{after[1]} \cap \{{x : {_repeated('x', 'x ' + after[2])}\}}"
    name = re.match(r"\\?[A-Za-z]{1,8}(?![A-Za-z])", text)
    return text if name is None else _repeated(name[0], text)


def _repeated(name: str, text: str) -> str:
    return re.sub(rf"\b(and|or)\s*(?={_MARK})", lambda m: f"{m[1]} {name} ", text)


def _without_exceptions(text: str) -> str:
    r"""`A except x = 0 and 1` as `A \setminus \{0, 1\}`."""
    parts = _EXCEPT.split(text, maxsplit=1)
    if len(parts) == 1:
        return text
    kept, left_out = (part.strip(" ,:") for part in parts)
    if not re.match(r"\\\{|\[|\(|\\mathbb", left_out):
        values = re.split(r"\s?(?:,|;|\band\b|\bor\b)\s?", left_out)
        values = [re.sub(r"^[A-Za-z]\s?=\s?", "", value) for value in values if value]
        left_out = rf"\{{{', '.join(values)}\}}"
    return rf"{kept or _letter('R', '')} \setminus {left_out}"
