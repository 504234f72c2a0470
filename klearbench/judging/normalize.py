"""Text clean-up that extraction and comparison share: invisible characters, look-alikes, wrappers.

Every function is linear in the length of its text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from klearbench.judging.latexargs import brace_arguments, matching_brace

TEXT_OPEN, TEXT_CLOSE = "\ue000", "\ue001"
"""Private marks around what stood in \\text{...}: words there are units or prose, never variables."""
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
    "|\x1b\\[[0-9;?]{0,16}[A-Za-z]|[\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_SIGNS = {
    **dict.fromkeys("\u2212\u2012\u2013\u2014\ufe63", "-"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2005\u2007\u2009\u202f\u3000", " "),
    **{"×": r"\times ", "÷": r"\div ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "∗": "*"},
    **{"π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "±": r"\pm "},
    **{"⩽": r"\le ", "⩾": r"\ge ", "≡": r"\equiv ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset "},
    **{"°": r"^\circ ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}"},
    **{"ℂ": r"\mathbb{C}", "…": r"\ldots ", "⋯": r"\ldots ", "∖": r"\setminus ", "√": r"\sqrt", "∛": r"\sqrt[3]"},
    **{"⟨": "(", "⟩": ")", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil "},
    **{"θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "λ": r"\lambda ", "φ": r"\phi ", "ω": r"\omega "},
    **{"，": ",", "、": ",", "。": ".", "：": ":", "；": ";", "∶": ":", "⁄": "/", "∕": "/", "（": "(", "）": ")"},
    **{"″": "''", "′": "'", "’": "'", "∣": "|", "∨": r"\text{ or }", "∧": r"\text{ and }"},
}
_TABLE: dict[int, str | int] = {**_FULL_WIDTH, **{ord(k): v for k, v in _SIGNS.items()}}
_VULGAR = {
    **{"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5"},
    **{"⅙": "1/6", "⅚": "5/6", "⅐": "1/7", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅑": "1/9", "⅒": "1/10"},
}
_TABLE |= {ord(k): rf"\frac{{{v[:-2]}}}{{{v[-1]}}}" if v != "1/10" else r"\frac{1}{10}" for k, v in _VULGAR.items()}
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SUBSCRIPT = str.maketrans("₀₁₂₃₄₅₆₇₈₉ₙ", "0123456789n")

_SPACING = re.compile(
    r"(?<!\\)\\[,;:!> ]|\\(?:quad|qquad|thinspace|enspace|hfill|displaystyle|textstyle|limits|nolimits)(?![A-Za-z])|~"
)
_THIN = r"(?:\{,\}(?:\\!)?|,\\!|\\!,?|\\,(?:\\!)?|\{\\,\})\s?"
_GROUPED = re.compile(rf"(?<![\d.,!])\d{{1,3}}(?:{_THIN}\d{{3}}(?!\d))+")
_GROUPING = re.compile(r"(?<=\d)(?:\{?,\}?\s?\\!|\\!\s?\{?,\}?|\{?\\,\}?(?:\\!)?|\\!)\s?(?=\d{3}(?!\d))")
_SIZING = re.compile(r"\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])\s*(\.(?=\s|$|\\|\|))?")
_STYLE = re.compile(r"\\(?:bf|rm|it|sf|tt|bfseries|boldmath|large|Large|huge|normalsize|small)(?![A-Za-z])\s*")
_WRAPPER = re.compile(r"\\(?:mathbf|boldsymbol|bm|mathit|mathsf|mathcal|ensuremath|underline|boxed|fbox|emph)\s*\{")
_PIECES = re.compile(r"(?:\$(?:[^$\\]|\\[^$])+\$(?:[\s,;.]|\band\b|\bor\b|[和或])*){2,}", re.IGNORECASE)
"""Formulas in dollar signs of their own, joined to a list."""
_MAX_BOXES = 10
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_COLOUR = re.compile(r"\\(?:textcolor|colorbox|color)\s*(?:\[[A-Za-z]{1,9}\])?\s*\{[^{}\\]{1,30}\}\s*")
_DISPLAY = re.compile(
    r"\\(?:begin|end)\s?\{(?:align|aligned|equation|gather|gathered|split|displaymath|math|center)\*?\}"
)
_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt|normal|up|sc)?|mathrm|mbox|hbox|operatorname\*?|mathop)\s*\{")
_UNION = re.compile(r"(?<=[)\]}])\s?U\s?(?=[(\[{\\])")
_UNION_SET = re.compile(r"\\cup\s*\{([^{}\\]{1,80})\}")
_RING = re.compile(rf"(?<=\d)\s?\^\s?(?:\{{\s?{TEXT_OPEN}?o{TEXT_CLOSE}?\s?\}}|o(?![a-z]))")
_INFINITY = re.compile(r"(?<![\\A-Za-z])(?:(positive|negative|plus|minus)\s)?infinity(?![A-Za-z])", re.IGNORECASE)
_SYNONYM = re.compile(
    r"\\(dfrac|tfrac|cfrac|dbinom|tbinom|leqslant|geqslant|leq|geq|neq|degree|lt|gt|lbrace|rbrace|lvert|rvert|vert|mid|dots|cdots|dotsc"
    r"|varnothing|colon|infin|infty|R|iff|lor|land|wedge|vee|bigcup|smallsetminus|backslash|emptyset|lbrack|rbrack|langle|rangle|surd|imath)(?![A-Za-z])"
)
_SYNONYMS = {
    **{"dfrac": r"\frac", "tfrac": r"\frac", "cfrac": r"\frac", "dbinom": r"\binom", "tbinom": r"\binom"},
    **{"leqslant": r"\le ", "geqslant": r"\ge ", "leq": r"\le ", "geq": r"\ge ", "neq": r"\ne ", "degree": r"^\circ "},
    **{"lt": "<", "gt": ">", "lbrace": r"\{", "rbrace": r"\}", "lvert": "|", "rvert": "|", "vert": "|", "mid": "|"},
    **{"dots": r"\ldots ", "cdots": r"\ldots ", "dotsc": r"\ldots ", "varnothing": r"\emptyset ", "colon": ":"},
    **{"infin": r"\infty ", "infty": r"\infty ", "R": r"\mathbb{R}", "iff": r"\Leftrightarrow ", "bigcup": r"\cup "},
    **{"lor": r"\text{ or }", "vee": r"\text{ or }", "land": r"\text{ and }", "wedge": r"\text{ and }"},
    **{"smallsetminus": r"\setminus ", "backslash": r"\setminus ", "emptyset": r"\emptyset "},
    **{"lbrack": "[", "rbrack": "]", "langle": "(", "rangle": ")", "surd": r"\sqrt ", "imath": "i "},
}

_DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("`", "`"))


def visible(text: str) -> str:
    """The text without invisible and control characters or terminal colours."""
    return text if text.isascii() and text.isprintable() else _INVISIBLE.sub("", text)


def unwrap_delimiters(text: str) -> str:
    """The text without outer white space, math delimiters, Markdown emphasis and a final full stop."""
    before = None
    while before != text:
        before = text
        text = text.strip()
        if text.endswith((".", "。", "．")) and not text.endswith(".."):
            text = text[:-1].rstrip()
        if text.startswith("*") or text.endswith("*"):
            text = text.strip("*").strip()
        for start, end in _DELIMITERS:
            inner = text[len(start) : -len(end)]
            if (
                len(text) >= len(start) + len(end)
                and text.startswith(start)
                and text.endswith(end)
                and end not in inner
            ):
                text = inner
    return text


def _open_groups(text: str, pattern: re.Pattern[str], left: str, right: str) -> str:
    """Replace `\\cmd{inner}` by left + inner + right, inner groups too. At most 60 groups: more is no answer."""
    for _ in range(60):
        match = pattern.search(text)
        if match is None:
            return text
        end = matching_brace(text, match.end() - 1)
        if end < 0:
            return text
        text = f"{text[: match.start()]}{left}{text[match.end() : end]}{right}{text[end + 1 :]}"
    return text


def _unboxed(text: str) -> str:
    """The content of a box that holds the whole text."""
    for _ in range(_MAX_BOXES):
        match = _BOX.match(text)
        if match is None or matching_brace(text, match.end() - 1) != len(text) - 1:
            break
        text = unwrap_delimiters(text[match.end() : -1])
    return text


@lru_cache(maxsize=1024)
def canonical(text: str) -> str:
    """An answer in one spelling: ASCII signs, LaTeX synonyms folded, wrappers opened, spaces single.

    What stood in \\text{...} comes back between TEXT_OPEN and TEXT_CLOSE.
    """
    text = visible(text)
    if not text.isascii():
        text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+", lambda m: "^{" + m[0].translate(_SUPERSCRIPT) + "}", text)
        text = re.sub("[₀₁₂₃₄₅₆₇₈₉ₙ]+", lambda m: "_{" + m[0].translate(_SUBSCRIPT) + "}", text)
        text = re.sub(r"√\s?(\d+)", r"\\sqrt{\1}", text)
        text = text.translate(_TABLE)
    text = _unboxed(unwrap_delimiters(text))
    if text.startswith("~"):
        text = r"\approx " + text.lstrip("~")
    if text.count("$") > 1 and _PIECES.fullmatch(text):
        text = text.replace("$", " ")
    if "\\" in text:
        text = _COLOUR.sub("", text)
        if _DISPLAY.search(text):
            text = re.sub(r"\\\\|&", " ", _DISPLAY.sub(" ", text))
        text = _open_groups(text, _WRAPPER, "{", "}")
        text = _STYLE.sub("", text)
        text = _GROUPED.sub(lambda m: re.sub(r"\D", "", m[0]), text)
        text = _GROUPING.sub(",", text)
        text = _SYNONYM.sub(lambda m: _SYNONYMS[m[1]], text)
        text = _SIZING.sub("", text)
        text = _SPACING.sub(" ", text)
        text = _open_groups(text, _TEXT, TEXT_OPEN, TEXT_CLOSE)
        text = brace_arguments(text)
        text = text.replace("\\$", "$").replace("\\%", "%").replace("\\(", " ").replace("\\)", " ").replace("\\&", "&")
    text = text.replace("+/-", r"\pm ")
    text = _UNION.sub(r"\\cup ", text)
    if r"\cup" in text:
        text = _UNION_SET.sub(r"\\cup \\{\1\\}", text)
    text = _RING.sub(r"^\\circ ", text)
    if "nfinity" in text:
        text = _INFINITY.sub(
            lambda m: ("-" if (m[1] or "").lower() in ("negative", "minus") else "") + r"\infty ", text
        )
    text = text.replace("{,}", ",").replace("{:}", ":").replace("$", " $ " if text.count("$") > 1 else "$")
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"(?:\\\s?)+\Z|,\s?\Z", "", text)
    while (m := re.fullmatch(rf"\{{(.*)\}}|{TEXT_OPEN}([^{TEXT_OPEN}{TEXT_CLOSE}]*){TEXT_CLOSE}", text)) is not None:
        if m[1] is not None and (matching_brace(text, 0) != len(text) - 1 or _has_top_comma(m[1])):
            break
        text = unwrap_delimiters(m[1] if m[1] is not None else m[2])
    return unwrap_delimiters(re.sub(rf"{TEXT_OPEN}\s*\.?\s*{TEXT_CLOSE}", " ", text))


_WHOLLY_TEXT = re.compile(r"\s*\\(?:text(?:bf|it|rm|sf)?|mathrm|mbox|operatorname)\s*\{\s*([A-Za-z]{2,12})\s*\}[\s.]*")


def canonical_reference(text: str) -> str:
    r"""Like `canonical`, but a short word marked as text (`\text{red}`) stays marked: it is no product r e d."""
    spelled = canonical(text)
    return f"{TEXT_OPEN}{spelled}{TEXT_CLOSE}" if _WHOLLY_TEXT.fullmatch(text) and spelled.isalpha() else spelled


def _has_top_comma(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char in "{([") - (char in "})]")
        if char == "," and depth == 0:
            return True
    return False


@lru_cache(maxsize=1024)
def words(text: str) -> str:
    """The bare words of an answer, lower case, for comparing text and spotting placeholders."""
    text = canonical(text).replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ")
    text = re.sub(r"[{}$*\"'`“”]|\\text\w*", " ", text)
    return re.sub(r"\s+", " ", text).strip(" .!:").lower()


_PLACEHOLDERS = frozenset(
    {"", "?", "??", "???", "...", "..", "\\ldots", "\\ldots.", "answer", "your answer", "the answer", "final answer"}
    | {"your final answer", "the final answer", "answer here", "your answer here", "insert answer here", "\\square"}
    | {
        "final answer here",
        "[answer]",
        "<answer>",
        "[your answer]",
        "<your answer>",
        "_",
        "__",
        "___",
        "____",
        "-",
        "\\_",
        "\\box",
    }
    | {"\\cdot", "\\quad", "\\phantom", "\\dots", "tbd", "placeholder", "\\#", "#", "答案", "你的答案"}
)


def is_placeholder(text: str) -> bool:
    """Whether a box's content stands for "the answer goes here" and is none."""
    return len(text) < 60 and words(text) in _PLACEHOLDERS
