"""Answers that are no expressions: text, option letters, clock times, ratios, numerals in a base, congruences."""

from __future__ import annotations

import re
from collections.abc import Callable

from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN
from klearbench.judging.numbers import exact_number

CHOICE_AND_VALUE = r"\(([A-J])\)\s*(\S.*)"
_T = f"[{TEXT_OPEN}{TEXT_CLOSE}]"
_LETTER = re.compile(r"\(?\s?([A-J])\s?\)?")
_CHOICE = re.compile(
    r"(?i:option|choice|answer)?\s?(?:\(\s?([A-Ja-j])\s?\)\s?(?:[.:]\s?)?(.*)|([A-Ja-j])(?:\s?[.):]\s?|\s[-=]\s|\s?\Z)(.*))",
    re.DOTALL,
)
_CONFIRMED = re.compile(
    r"\sis\s(?:the\s)?(?:correct|right|answer)(?:\s(?:answer|option|choice|one))?[.!]?\Z", re.IGNORECASE
)
_OPTION_DENIED = re.compile(
    r"\W*(?:(?:is|are|was|isn't|aren't|wasn't|can't|cannot|can|could|does|doesn't|do|fails?|seems?|looks?|should|must"
    r"|would|may|might|has|and|or|nor|not)\b(?!\s(?:the\s)?(?:correct|right|answer)\b)"
    r"(?!\senough|\sdetermin|\spossible to)"
    r"|(?:wrong|incorrect|impossible|excluded|eliminated|ruled out|no)\W*\Z)",
    re.IGNORECASE,
)
_TIME = re.compile(r"(\d{1,2})\s?:\s?(\d{2})(?:\s?:\s?(\d{2}))?\s?(a\.?\s?m\.?|p\.?\s?m\.?)?", re.IGNORECASE)
_BASE = re.compile(r"([0-9A-F]{1,200})\s?_\s?\{?\s?(\d{1,2}|[a-z]{3,12})\s?\}?", re.IGNORECASE)
_TEN = r"_\s?\{?\s?(?:10|ten)\s?\}?\)?\Z"
_BASE_WORDS = {
    **{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10},
    **{"eleven": 11, "twelve": 12, "sixteen": 16, "binary": 2, "octal": 8, "hex": 16},
}
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER_WORDS = {
    **{word: i for i, word in enumerate(_ONES)},
    **{ten: 10 * i for i, ten in enumerate(_TENS, start=2)},
    **{
        f"{ten}-{one}": 10 * i + j for i, ten in enumerate(_TENS, start=2) for j, one in enumerate(_ONES[1:10], start=1)
    },
}
_MODULUS = re.compile(
    r"(?:[A-Za-z]\s?(?:\\equiv|=)\s?)?(-?\d{1,60})\s?\(?\s?(?:\\pmod|\\bmod|\\mod|mod)\s?\{?\s?\(?(\d{1,60})\)?\s?\}?\s?\)?"
)
_NEGATED = re.compile(
    r"""\b(?:not|no|never|least|most|more|less|fewer|than|over|under|above|below|between|neither|nor|cannot|or|either|maybe|up|almost
    |nearly|roughly|about|around|approximately|probably|perhaps|possibly|likely|wrong|incorrect|false|fails?|if|unless
    |except|but|without|rather|instead|until|minus|plus|times|hardly|exceeds?|bound|bounded|impossible)\b|n't""",
    re.IGNORECASE | re.VERBOSE,
)
_PART_OF = re.compile(
    r"(?<!\btotal)(?<!\banswer)(?<!\bvalue)(?<!\bresult)(?<!\bcount)(?<!\bsum)(?<!\barea)(?<!\bspeed)(?<!\blength)"
    r"(?<!\bvolume)(?<!\bcost)(?<!\bprice)(?<!\bprofit)(?<!\bheight)(?<!\bradius)(?<!\bprobability)(?<!\bperimeter)"
    r"\sof\s[-$]?\s?[\d\\]"
)
"""A number that something else is taken of ("the square root of 12")."""
_SHORT_TEXT = frozenset(
    {"yes", "no", "odd", "even", "all", "none", "true", "false", "one", "two", "six", "ten", "nan", "tie"}
)
_CJK = "\u3400-\u9fff\u3040-\u30ff\uac00-\ud7a3"


def plain(text: str) -> str:
    """Bare lower-case words."""
    text = re.sub(rf"{_T}|\\text\w*|[{{}}$\"“”`*]", " ", text)
    return re.sub(r"\s+", " ", text).strip(" .!").lower()


def special_equal(gold: str, answer: str) -> bool | None:
    """True or False when the reference is of a special kind, None when it is a number or an expression."""
    for check in _CHECKS:
        verdict = check(gold, answer)
        if verdict is not None:
            return verdict
    return None


def _option(gold: str, answer: str) -> bool | None:
    bare = re.sub(_T, "", gold).strip()
    alone = _LETTER.fullmatch(bare)
    with_value = re.fullmatch(CHOICE_AND_VALUE, bare)
    if alone is None and with_value is None:
        return None
    want = alone[1] if alone is not None else (with_value or [""])[1]
    said = _CHOICE.fullmatch(_CONFIRMED.sub("", re.sub(_T, " ", answer).strip()))
    if said is None:
        return False if alone is not None else None
    rest = said[2] or said[4] or ""
    if _OPTION_DENIED.match(rest):
        return False
    if re.match(r"\W*(?:or|and|/|,)\W*\(?[A-J]\b", rest, re.IGNORECASE) or re.match(r"[A-J]\b", rest.strip()):
        return False
    return (said[1] or said[3]).upper() == want


def _clock(text: str) -> re.Match[str] | None:
    """A clock time; a full hour may leave its minutes out where it says a.m. or p.m."""
    text = re.sub(_T, " ", text).replace("  ", " ").strip()
    return _TIME.fullmatch(re.sub(r"\A(\d{1,2})(?=\s?[ap]\.?\s?m\.?\Z)", r"\1:00", text, flags=re.IGNORECASE))


def _time(gold: str, answer: str) -> bool | None:
    g = _clock(gold)
    if g is None or (len(g[1]) == 1 and not g[4] and int(g[2]) > 59) or int(g[1]) > 24:
        return None
    a = _clock(answer)
    if a is None:
        return False
    half = [(m[4] or "").replace(".", "").replace(" ", "").lower() for m in (g, a)]
    if half[0] and half[1] and half[0] != half[1]:
        return False
    return [int(x or 0) for x in g.group(1, 2, 3)] == [int(x or 0) for x in a.group(1, 2, 3)]


def _ratio(gold: str, answer: str) -> bool | None:
    if ":" not in gold or re.search(r"\\\{|[|]", gold):
        return None
    g, a = ([exact_number(p.strip()) for p in re.split(r":|\bto\b", re.sub(_T, " ", t))] for t in (gold, answer))
    if any(v is None for v in g):
        return re.sub(r"\s", "", gold) == re.sub(r"\s", "", answer)
    want = [v for v in g if v is not None]
    if len(a) == 1 and a[0] is not None and len(want) == 2 and want[1] != 0:
        return a[0] == want[0] / want[1]
    have = [v for v in a if v is not None]
    if len(have) != len(a) or len(have) != len(want):
        return False
    return all(x * have[0] == y * want[0] for x, y in zip(want, have, strict=True)) and have[0] * want[0] != 0


def _base(gold: str, answer: str) -> bool | None:
    g, a = _numeral(gold), _numeral(answer)
    if g is None:
        value = exact_number(gold)  # a plain number is in base ten, and so is its answer
        return (
            None
            if value is None or a is None or "_" not in answer
            else value == a[0] and re.search(_TEN, answer) is not None
        )
    if a is not None:
        return a[0] == g[0]
    bare = re.sub(rf"{_T}|\s", "", answer)
    if re.fullmatch(r"[0-9A-Fa-f]+", bare):
        same_digits = bare.lstrip("0").upper() == g[1].lstrip("0").upper()
        return same_digits or (bare.isdigit() and len(bare) < 100 and int(bare) == g[0])
    return False


def _numeral(text: str) -> tuple[int, str] | None:
    match = _BASE.fullmatch(re.sub(r"^\((\w+)\)", r"\1", re.sub(_T, "", text).strip()))
    if match is None:
        return None
    base = int(match[2]) if match[2].isdigit() else _BASE_WORDS.get(match[2].lower(), 0)
    if not 2 <= base <= 36:
        return None
    try:
        return int(match[1], base), match[1]
    except ValueError:
        return None


_PERIODIC = re.compile(
    rf"(?:[A-Za-z]\s?=\s?)?(?P<terms>[^,;]{{1,200}}?)(?:\s?[,;(]\s?{_T}?\s?(?:where|for|with)?\s?{_T}?\s?(?P<name>[a-z])\s?(?:\\in\s?\\mathbb\s?\{{?Z\}}?|{_T}?\s?(?:is\s)?(?:an|any)?\s?integer\s?{_T}?)\s?\)?)?"
)


def family(text: str) -> tuple[str, str] | None:
    """A family of solutions with an integer parameter: its expression and the parameter's name ("" when not said)."""
    match = _PERIODIC.fullmatch(text.strip())
    return None if match is None else (match["terms"].strip(), match["name"] or "")


def _congruence(gold: str, answer: str) -> bool | None:
    g = _MODULUS.fullmatch(re.sub(_T, "", gold).strip())
    if g is None:
        return None
    a = _MODULUS.fullmatch(re.sub(_T, "", answer).strip())
    if a is None:
        return False
    return int(g[2]) == int(a[2]) and int(g[2]) > 0 and (int(g[1]) - int(a[1])) % int(g[2]) == 0


def is_text(text: str) -> bool:
    """Whether a reference is words: no number, no formula, and no product of one-letter variables."""
    bare = plain(text)
    if re.search(rf"[{_CJK}]", bare) and not re.search(r"[\d\\]", bare):
        return True
    if not bare or re.search(r"[\d\\=<>^_+*/|()\[\]]", bare):
        return re.fullmatch(r"[a-z]{3,}\s\d{1,2}(?:st|nd|rd|th)?", bare) is not None
    if bare in ("infinity", "pi", "e", "i"):
        return False
    letters = bare.replace(" ", "").replace(",", "")
    marked = TEXT_OPEN in text or bare in _SHORT_TEXT
    return letters.isalpha() and "," not in bare and (len(letters) > 3 or (marked and len(letters) > 1))


_SYNONYMS = {
    **dict.fromkeys(("undefined", "does not exist", "dne", "doesn't exist", "no limit"), "undefined"),
    **dict.fromkeys(
        ("all real numbers", "all reals", "\\mathbb r", "(-\\infty ,\\infty )", "(-\\infty , \\infty )"), "reals"
    ),
    **dict.fromkeys(
        ("no solution", "no solutions", "none", "\\emptyset", "no real solutions", "empty set", "\\ \\"), "empty"
    ),
}


def _text(gold: str, answer: str) -> bool | None:
    if not is_text(gold):
        return None
    g, a = plain(gold), plain(answer)
    if _SYNONYMS.get(g, g) == _SYNONYMS.get(a, a):
        return True
    if _SYNONYMS.get(g) in ("reals", "empty"):
        return None
    if g in _NUMBER_WORDS:
        return exact_number(a) == _NUMBER_WORDS[g] or a == g
    g, a = (re.sub(r"^(?:the|a|an)\s", "", t) for t in (g, a))
    if g == a or (len(g) > 3 and (g + "s" == a or a + "s" == g)):
        return True
    first = re.match(r"(yes|no|true|false)\b[\s,.]*(.*)", a)
    if g in ("yes", "no", "true", "false"):
        if first is not None:
            return first[1] == g and not re.search(
                r"\b(?:yes|no|true|false|not|maybe|or)\b" if g in ("yes", "true") else r"\byes\b|\bor\b", first[2]
            )
        return False
    g, a = (re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", t) for t in (g, a))
    last = re.fullmatch(r"(.*)\b(?:is|are|was|be)\s(?:an?\s|the\s)?(.+)", a)
    if last is not None and last[2] == g and not _NEGATED.search(last[1]):
        return True
    sentence = re.sub(r"\b(?:it|he|she|they|the|answer|is|was|a|an|person|winner|on|this|means)\b", " ", a)
    return re.sub(r"\s+", " ", sentence).strip(" ,") == g


def without_label(answer: str) -> str:
    """Without "answer:", "the final answer is" or the like in front."""
    lead = rf"^(?:{_T}|\s)*(?:the\s)?(?:final\s)?answer\s?(?:is|:|=)\s?"
    answer = re.sub(lead, TEXT_OPEN if answer.startswith(TEXT_OPEN) else "", answer, flags=re.IGNORECASE)
    answer = answer.replace(TEXT_OPEN + TEXT_CLOSE, "")
    answer = re.sub(rf"^{TEXT_OPEN}([^{TEXT_OPEN}{TEXT_CLOSE}]*){TEXT_CLOSE}$", r"\1", answer).strip()
    answer = re.sub(rf"^[{_CJK}\s]{{0,20}}?(?:是|为|為|等于|共有|有|:|=)\s?(?=[^{_CJK}])", "", answer)
    return re.sub(r"^(?:minus|negative)\s(?=\d)", "-", answer)


def read_text(answer: str) -> str:
    """The value in a short sentence around one value; the text unchanged when there is no such sentence."""
    answer = re.sub(rf"^(?:{_T}|\s)*(?:exactly|only|simply|just)\b(?:{_T}|\s)*", "", answer, flags=re.IGNORECASE)
    bare = plain(answer)
    if bare in _NUMBER_WORDS:
        return str(_NUMBER_WORDS[bare])
    if len(answer) > 300 or _NEGATED.search(bare) or _PART_OF.search(bare):
        return answer
    lead = re.match(
        rf"{TEXT_OPEN}[^{TEXT_CLOSE}]*\b(?:is|are|equals|has|have|was|of|at|=|be)\s*:?\s*{TEXT_CLOSE}\s*(?=\S)", answer
    )
    if lead is not None:
        return answer[lead.end() :]
    flat = re.sub(r"\s+", " ", re.sub(_T, " ", answer)).strip()
    match = re.fullmatch(
        r"(?:[A-Za-z][A-Za-z',-]*\s){1,12}?(?:(?:is|are|equals|be|has|have|was|gets?|needs?|makes?)\s)?(-?\$?\d\S*(?:\s[A-Za-z][\w.^/-]*){0,3})",
        flat,
    )
    return match[1] if match is not None and len(flat.split()) > 2 else answer


_CHECKS: tuple[Callable[[str, str], bool | None], ...] = (_option, _time, _ratio, _base, _congruence, _text)
