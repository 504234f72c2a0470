"""Answers in words: references that are words, number words, and short sentences around one value."""

from __future__ import annotations

import re

from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN
from klearbench.judging.numbers import exact_number

_T = f"[{TEXT_OPEN}{TEXT_CLOSE}]"
CJK = "\u3400-\u9fff\u3040-\u30ff\uac00-\ud7a3"
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
_NEGATED = re.compile(
    r"""\b(?:not|no|never|least|most|more|less|fewer|than|over|under|above|below|between|neither|nor|cannot|or|either|maybe|up|almost
    |could|may|might|nearly|roughly|about|around|approximately|probably|perhaps|possibly|likely|wrong|incorrect|false|fails?|if|unless
    |except|but|without|rather|instead|until|minus|plus|times|hardly|exceeds?|bound|bounded|impossible)\b|n't""",
    re.IGNORECASE | re.VERBOSE,
)
_WHOLE = (
    "total answer value result count sum area speed length volume cost price profit height radius probability perimeter"
)
_PART_OF = re.compile("".join(rf"(?<!\b{word})" for word in _WHOLE.split()) + r"\sof\s[-$]?\s?[\d\\]")
"""A number that something else is taken of ("the square root of 12")."""
_SHORT_TEXT = frozenset(
    {"yes", "no", "odd", "even", "all", "none", "true", "false", "one", "two", "six", "ten", "nan", "tie", "dne"}
)
_SYNONYMS = {
    **dict.fromkeys(("undefined", "does not exist", "dne", "doesn't exist", "no limit"), "undefined"),
    **dict.fromkeys(
        ("all real numbers", "all reals", "\\mathbb r", "(-\\infty ,\\infty )", "(-\\infty , \\infty )"), "reals"
    ),
    **dict.fromkeys(
        ("no solution", "no solutions", "none", "\\emptyset", "no real solutions", "empty set", "\\ \\"), "empty"
    ),
    **dict.fromkeys(("infinitely many", "infinite", "infinitely many solutions"), "infinitely many"),
}
_CJK_LEAD = re.compile(
    rf"^(?:(?![不非没無无否勿未])[{CJK}\s]){{0,20}}?(?:是|为|為|等于|共有|总共|一共|共|有|は|은|는|:|=)\s?(?=[^{CJK}])"
)
_CJK_END = re.compile(r"(?<=[\d})])\s?(?:です|である|だ|입니다|이다)\Z")
_MONTHS = "january february march april may june july august september october november december"
_DATE = re.compile(
    rf"(?:(\d{{1,2}})\s(?:of\s)?({_MONTHS.replace(' ', '|')})|({_MONTHS.replace(' ', '|')})\s(\d{{1,2}}))(,? \d{{4}})?"
)
_STATED = re.compile(r"(?:[A-Za-z][A-Za-z']*\s){1,10}(?:is|are|equals|equal to)\s:?\s?(?=[-$(\\\d]|[A-Za-z]\s?[(=])")
"""A sentence that ends in its value: "the ratio equals" and a formula."""
_LITTLE_WORDS = re.compile(
    r"\b(?:it|he|she|they|the|answer|is|was|are|a|an|person|winner|on|this|that|means|we|get|so)\b"
)
_VERDICTS = ("yes", "no", "true", "false")
_VERDICT = re.compile(
    r"(?:(?:so|thus|therefore|hence|the|it|this|that|answer|statement|claim|is|was),?\s)*(?P<word>yes|no|true|false)"
    r"(?P<rest>(?:[,;:!—-]|\s-|\.\s(?!\d)|\s(?=(?:it|this|that|there|they|he|she|we|the|because|since|as)\b)).*)?"
)


def plain(text: str) -> str:
    """Bare lower-case words."""
    text = re.sub(rf"{_T}|\\text\w*|[{{}}$\"“”`*]", " ", text)
    return re.sub(r"\s+", " ", text).strip(" .!").lower()


def is_text(text: str) -> bool:
    """Whether a reference is words: no number, no formula, and no product of one-letter variables."""
    bare = plain(text)
    if re.search(rf"[{CJK}]", bare) and not re.search(r"[\d\\]", bare):
        return True
    if not bare or re.search(r"[\d\\=<>^_+*/|()\[\]]", bare):
        return _DATE.fullmatch(_no_ordinals(bare)) is not None
    if bare in ("infinity", "pi", "e", "i"):
        return False
    letters = re.sub(r"[ ,'’-]", "", bare)
    marked = TEXT_OPEN in text or bare in _SHORT_TEXT
    return letters.isalpha() and "," not in bare and (len(letters) > 3 or (marked and len(letters) > 1))


def text_equal(gold: str, answer: str) -> bool | None:
    """Whether an answer says the words of a reference; None where the reference is no text."""
    if not is_text(gold):
        return None
    g, a = plain(gold), plain(answer)
    if _SYNONYMS.get(g, g) == _SYNONYMS.get(a, a):
        return True
    if _SYNONYMS.get(g) in ("reals", "empty"):
        return None
    if g in _NUMBER_WORDS:
        return exact_number(a) == _NUMBER_WORDS[g] or a == g
    if g in _VERDICTS:
        return _verdict_equal(g, a)
    g, a = _plain_words(g), _plain_words(re.sub(r"\A\([a-j]\)\s(?=\S)", "", a))
    return _same_words(g, a) or _sentence_says(g, a)


def _verdict_equal(gold: str, answer: str) -> bool:
    """Yes and no, true and false: the first word says it, and what follows neither takes it back nor limits it."""
    said = _VERDICT.fullmatch(answer)
    if said is None or said["word"] != gold:
        return False
    doubt = r"\b(?:yes|true|or|if|only|but|unless|when|except|maybe)\b"
    return not re.search(doubt if gold in ("no", "false") else doubt + r"|\b(?:no|false|not)\b", said["rest"] or "")


def _same_words(gold: str, answer: str) -> bool:
    return gold == answer or (len(gold) > 3 and answer in (gold + "s", gold.removesuffix("s")))


def _sentence_says(gold: str, answer: str) -> bool:
    last = re.fullmatch(r"(.*)\b(?:is|are|was|be)\s(?:an?\s|the\s|facing\s|heading\s)?(.+)", answer)
    if last is not None and _same_words(gold, last[2]) and not _NEGATED.search(last[1]):
        return True
    return _same_words(gold, re.sub(r"\s+", " ", _LITTLE_WORDS.sub(" ", answer)).strip(" ,"))


def _plain_words(text: str) -> str:
    """Without articles in front, ordinal endings and hyphens; dates and names joined by "and" in one order."""
    text = re.sub(r"^(?:the|a|an|on|by)\s", "", _no_ordinals(text).replace("-", " "))
    date = _DATE.fullmatch(text)
    if date is not None:
        return f"{date[2] or date[3]} {int(date[1] or date[4])}{(date[5] or '').replace(',', '')}"
    names = re.split(r"\s?,\s?(?:and\s)?|\sand\s", text)
    return " and ".join(sorted(names)) if len(names) > 1 and all(names) else text


def _no_ordinals(text: str) -> str:
    return re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", text)


def without_label(answer: str) -> str:
    """Without "answer:", "the final answer is" or the like in front."""
    lead = rf"^(?:{_T}|\s)*(?:the\s)?(?:final\s)?answer\s?(?:is|:|=)\s?"
    answer = re.sub(lead, TEXT_OPEN if answer.startswith(TEXT_OPEN) else "", answer, flags=re.IGNORECASE)
    answer = answer.replace(TEXT_OPEN + TEXT_CLOSE, "")
    answer = re.sub(rf"^{TEXT_OPEN}([^{TEXT_OPEN}{TEXT_CLOSE}]*){TEXT_CLOSE}$", r"\1", answer).strip()
    answer = _CJK_END.sub("", _CJK_LEAD.sub("", answer))
    return re.sub(r"^(?:minus|negative)\s(?=\d)", "-", answer)


def read_text(answer: str) -> str:
    """The value in a short sentence around one value; the text unchanged when there is no such sentence."""
    answer = re.sub(rf"^(?:{_T}|\s)*(?:exactly|only|simply|just)\b(?:{_T}|\s)*", "", answer, flags=re.IGNORECASE)
    bare = plain(answer)
    if bare in _NUMBER_WORDS:
        return str(_NUMBER_WORDS[bare])
    if len(answer) > 300 or _NEGATED.search(bare) or _PART_OF.search(bare):
        return answer
    flat = re.sub(r"\s+", " ", re.sub(_T, " ", answer)).strip()
    stated = _STATED.match(flat)
    if stated is not None:
        return flat[stated.end() :]
    lead = re.match(
        rf"{TEXT_OPEN}[^{TEXT_CLOSE}]*\b(?:is|are|equals|has|have|was|of|at|=|be)\s*:?\s*{TEXT_CLOSE}\s*(?=\S)", answer
    )
    if lead is not None:
        return answer[lead.end() :]
    match = re.fullmatch(
        r"(?:[A-Za-z][A-Za-z',-]*\s){1,12}?(?:(?:is|are|equals|be|has|have|was|gets?|needs?|makes?)\s)?(-?\$?\d\S*(?:\s[A-Za-z][\w.^/-]*){0,3})",
        flat,
    )
    return match[1] if match is not None and len(flat.split()) > 2 else answer
