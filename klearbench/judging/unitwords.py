"""Which words after a number may be its unit. Anything that could change the value, or deny it, may not."""

from __future__ import annotations

import re

_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety once twice thrice half"
    " halves third thirds"
)
_SCALES = (
    "hundred hundreds thousand thousands million millions billion billions trillion trillions quadrillion dozen"
    " dozens score k mn bn lakh crore gross googol mod modulo modulus base bases squared cubed factorial power"
    " powers exponent choose over divided multiplied plus minus less root log sin cos tan ratio versus vs through"
    " thru to by from"
)
_DENIALS = (
    "not no never neither nor none cannot without wrong incorrect false invalid impossible untrue mistaken"
    " mistake error true unclear unknown undefined but however except unless if then else"
    " otherwise and or either although though because since so thus therefore hence instead rather when where"
    " while until"
)
_HEDGES = (
    "maybe perhaps possibly probably likely unlikely presumably roughly about around approximately approx nearly"
    " almost circa guess or so ish least most minimum maximum up down upper lower bound bounds exactly only than"
    " above below under beyond greater smaller larger bigger fewer something anything nothing somewhat plausible"
    " doubtful excluded rejected infinity pi"
)
_VERBS = (
    "is isn't isnt are aren't was were be been being am has have had does do did done doesn't don't can can't"
    " could may might must shall should will would won't works work worked fails fail failed equals equal exceeds"
    " exceed means mean gives give holds hold satisfies satisfy follows follow remains seems seem appears appear"
    " becomes become needs need lacks contradicts contradict violates violate differs differ applies apply counts"
    " divides divide suffices makes make looks sounds feels goes comes gets yields implies proves shows wins loses"
    " breaks ends starts stays leads says thinks knows depends varies produces satisfied excludes includes"
    " requires results turns vanishes diverges converges exists occurs happens misses overshoots undershoots"
)
_OTHERS = (
    "lies lie overcounts undercounts miscounts overestimates underestimates ignores omits"
    " the this that these those it its they he she we you i which who what as at on with for"
)
_REFUSED = frozenset(" ".join((_NUMBERS, _SCALES, _DENIALS, _HEDGES, _VERBS, _OTHERS)).split())
_NO_PLURAL = frozenset(
    {"yes", "always", "sometimes", "besides", "afterwards", "us", "ours", "theirs", "hers", "its", "plus", "ones"}
)
_COUNTER_WORDS = (
    "people persons person children child men man women woman feet foot mice geese teeth fish sheep deer oxen dice data"
    " way apple cup piece point student ball car book coin game page pair pairs set team item ticket box money cash"
    " change candy fruit fruits homework laundry luggage water milk flour sugar vertices indices radii matrices integer"
    " pence baht yen rupees won pesos ruble rubles kroner cattle staff offspring"
)
_COUNTERS = frozenset(_COUNTER_WORDS.split())
_AFTER = re.compile(
    r"\s(?:in\s(?:total|all)|total|altogether|overall|combined|each|left|later|ago|remaining|long|wide|tall|high|deep|old|away"
    r"|apart"
    r"|(?:of|in)\s(?:length|area|volume|time|height|width|weight|money))\Z"
)
_FRACTION = re.compile(r"(?:\w+th|first|second|third|quarter)s?")
_TH_NOUNS = (
    "month months path paths length lengths depth depths width widths birth births cloth cloths tooth moth moths myth"
    " myths math maths mouth mouths booth booths bath baths youth youths seconds second quarters quarter strength"
)
_NOT_FRACTION = frozenset(_TH_NOUNS.split())
_LETTERS = re.compile(r"[a-z]+(?:['’-][a-z]+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{1,4}")
_CJK_REFUSED = re.compile(
    r"分之|以[上下内外]|左右|上下|[万萬亿億千百十兆不非错錯無无没未约約多余几半或至到减加乘除负負之の]|만|억|천|백|아니|이상|이하|미만|초과|약"
)


def is_unit(text: str, known: frozenset[str], *, reference: bool = False) -> bool:
    """Whether words after a number are a unit or a count noun.

    Args:
        text: the words in lower case, single spaces; powers and "/" allowed.
        known: the words of the table of units.
        reference: the text belongs to a reference answer: a noun in the singular is taken too.
    """
    text = re.sub(r"\A\((.*)\)\Z", r"\1", text.strip()).strip()
    text = re.sub(r"\^\s?\{?\s?-?\d\s?\}?|\\cdot|\*", " ", text)
    if _CJK.fullmatch(text):
        return text in known or not _CJK_REFUSED.search(text)
    text = _AFTER.sub("", f" {text}").strip() or "total"
    text = re.sub(r"(?<=\w) (?:squared|cubed)\b", "", text)
    text = re.sub(r"\b(?:square|sq|cubic|cu) (?=\w)", "", text)
    groups = [g.strip() for g in re.split(r"/|\bper\b", text)]
    if len(groups) > 1 and not groups[0]:
        groups = groups[1:]
    return bool(groups) and all(_is_group(group, known, reference or i > 0) for i, group in enumerate(groups))


def _is_group(text: str, known: frozenset[str], singular: bool) -> bool:
    """One side of a "per": a few words whose head is a known unit or a plural noun."""
    words = text.split()
    if not words or len(words) > 5:
        return False
    if all(word in known for word in words):
        return len(words) < 3 or "in" not in words
    if len(words) == 3 and words[1] in ("a", "an") and words[0] in known and words[2] in known:
        return True
    if not all(_LETTERS.fullmatch(word) for word in words):
        return False
    head, of, rest = text.partition(" of ")
    rest = re.sub(r"\A(?:the|each|an?)\s", "", rest)
    if of and (not rest or not re.search(r"[a-z]{2}", rest) or head in ("percent", "times")):
        return False
    heads = head.split()
    if any(_refused(word) for word in (*heads, *rest.split())) or "in" in words or {"a", "an", "the"} & set(heads):
        return False
    if "times" in words:
        return len(words) == 1
    return _is_noun(heads[-1], known) or (singular and len(heads[-1]) > 1)


def _refused(word: str) -> bool:
    if word in _REFUSED or word in _NO_PLURAL or any(part in _REFUSED for part in re.split(r"['’-]", word)):
        return True
    if "n't" in word or (word.endswith("ly") and word not in ("family", "assembly", "butterfly")):
        return True
    return _FRACTION.fullmatch(word) is not None and word not in _NOT_FRACTION


def _is_noun(word: str, known: frozenset[str]) -> bool:
    if word in known or word in _COUNTERS or word in ("total", "altogether", "units", "unit"):
        return True
    return word.endswith("s") and not word.endswith(("ss", "ous", "'s", "is")) and len(word) > 2
