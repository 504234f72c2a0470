"""An expression's text as tokens, in time linear in its length."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

import flint

from klearbench.judging.expressions import names
from klearbench.judging.expressions.nodes import Node, Num, Op, Unreadable
from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN

MAX_EXPONENT = 100_000
"""The largest exponent of e-notation that is multiplied out, all those of one text together."""

_MAX_LOOSE_LETTERS = 4

_TOKEN = re.compile(
    rf"""
    (?P<row>\\\\(?:\s?\[\s?-?\d{{1,3}}(?:\.\d{{1,3}})?\s?(?:pt|em|ex|mm|cm)\s?\])?)
  | (?P<space>\s+|~|\\[,;:!>\s]|\\(?:left|right|limits|nolimits|hline|displaystyle|textstyle)(?![A-Za-z]))
  | (?P<number>\d+(?:\.\d*)?|\.\d+|\.(?=\\(?:overline|bar|dot)(?![A-Za-z])))
  | (?P<array>\\begin\s?\{{array\}}\s?(?:\[[tbc]\])?\s?\{{[lcr|\s]{{0,40}}\}})
  | (?P<environment>\\(?:begin|end)\s?\{{[A-Za-z]{{1,12}}\}})
  | (?P<command>\\[A-Za-z]+)
  | (?P<letters>[A-Za-z]+)
  | (?P<mark><=|>=|!=|[=<>])
  | (?P<text>[{TEXT_OPEN}{TEXT_CLOSE}])
  | (?P<prose>[$.])
  | (?P<sign>\*\*|->|!!|\\[{{}}]|[-+*/^_!()\[\]{{}}|,&'])
    """,
    re.VERBOSE,
)
_EXPONENT = re.compile(r"[eE]([+-]?\d+)(?![.\d])")
_BARRED = re.compile(r"\\(?:overline|bar)\s?(?:\{\s?(\d{1,60})\s?\}|(\d))")
_DOT = r"\\dot\s?(?:\{\s?(\d)\s?\}|(\d))"
_DOTTED = re.compile(rf"{_DOT}(?:\s?(\d{{0,60}}){_DOT})?")
_ROUND = re.compile(r"\((\d{1,60})\)")
_LETTER_APART = re.compile(r"\s+[A-Za-z]")
_PIECE = re.compile(
    "|".join(
        sorted(
            (
                name
                for name in (*names.PLAIN_FUNCTIONS, *names.PLAIN_LETTERS)
                if name not in (*names.LISTED, *names.BRACKETED, "inf", "oo", "infinity", "mu", "nu", "eta", "arg")
            ),
            key=lambda name: (-len(name), name),
        )
    )
    + "|[A-Za-z]"
)


@dataclass(slots=True)
class Token:
    """A piece of text from `start` to `end`.

    `kind` is "number", "letter" (a variable or constant), "function", "big", "mark" (a relation), "word", "begin",
    "end", "stop", or the sign itself. `text` is the name in its canonical spelling; for a number its digits, which are
    empty where the notation is not a plain decimal and `node` holds the value.
    """

    kind: str
    text: str
    start: int
    end: int
    node: Node | None = None


def tokens(text: str) -> list[Token]:
    """The tokens of a text, with a "stop" at the end. Raises Unreadable on what can't be part of an expression."""
    return _Tokenizer(text).all()


class _Tokenizer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.in_text = False
        self.exponents_left = MAX_EXPONENT
        self.found: list[Token] = []

    def all(self) -> list[Token]:
        at, length = 0, len(self.text)
        while at < length:
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise Unreadable(f"the sign {self.text[at]!r}")
            kind, start, at = match.lastgroup or "", at, match.end()
            if kind == "sign":
                self.found.append(Token("^" if match[0] == "**" else match[0], match[0], start, at))
            elif kind == "number":
                token = self.number(match)
                at = token.end
                self.found.append(token)
            elif kind == "letters":
                self.letters(match[0], start)
            elif kind == "command":
                self.command(match)
            elif kind == "text":
                self.in_text = match[0] == TEXT_OPEN
            elif kind == "prose":
                if not self.in_text:
                    raise Unreadable(f"the sign {match[0]!r}")
            elif kind != "space":
                self.found.append(_other(kind, match))
        self.found.append(Token("stop", "", length, length))
        return self.found

    def number(self, match: re.Match[str]) -> Token:
        """A number with what belongs to its notation: a repeating part, or an exponent."""
        digits, at = match[0], match.end()
        if "." in digits:
            for pattern in (_BARRED, _DOTTED, _ROUND):
                repeating = pattern.match(self.text, at)
                if repeating is not None:
                    cycle = "".join(filter(None, repeating.groups()))
                    return Token("number", "", match.start(), repeating.end(), Num(_repeating(digits, cycle)))
        if digits == ".":
            raise Unreadable("a decimal point without digits")
        exponent = _EXPONENT.match(self.text, at)
        if exponent is None or _is_euler(digits, exponent[0]):
            return Token("number", digits, match.start(), at)
        return Token("number", "", match.start(), exponent.end(), self.scaled(digits, int(exponent[1])))

    def scaled(self, digits: str, exponent: int) -> Node:
        """A number in e-notation; past the bound its power of ten is not multiplied out."""
        self.exponents_left -= abs(exponent)
        if self.exponents_left < 0:
            return Op("mul", (Num(decimal(digits)), Op("pow", (Num(Fraction(10)), Num(Fraction(exponent))))))
        whole, _, part = digits.partition(".")
        shift = exponent - len(part)
        if shift >= 0:
            return Num(Fraction(int(whole + part) * _power_of_ten(shift)))
        return Num(Fraction(int(whole + part), _power_of_ten(-shift)))

    def command(self, match: re.Match[str]) -> None:
        name, start, end = match[0][1:], match.start(), match.end()
        for kind, table in _COMMANDS:
            if name in table:
                self.found.append(Token(kind or table[name], table[name], start, end))
                return
        if not name.startswith("sqrt"):
            raise Unreadable(f"the command {name[:30]!r}")
        # a root sign before a letter loses the space between them when the text is brought to one spelling
        self.found.append(Token("function", "sqrt", start, start + 5))
        self.letters(name[4:], start + 5)

    def letters(self, run: str, start: int) -> None:
        """A run of letters: one name, a word, or names and letters side by side."""
        end = start + len(run)
        if len(run) == 1:
            self.found.append(Token("letter", run, start, end))
            return
        is_subscript = len(run) > _MAX_LOOSE_LETTERS and self.text.endswith("_{", 0, start)
        prose = self.in_text or is_subscript
        functions = names.TEXT_FUNCTIONS if prose else names.PLAIN_FUNCTIONS
        if run in functions:
            self.found.append(Token("function", functions[run], start, end))
        elif run in names.PLAIN_LETTERS:
            if run == "lambda" and _LETTER_APART.match(self.text, end):
                raise Unreadable("code, not a value")
            self.found.append(Token("letter", names.PLAIN_LETTERS[run], start, end))
        elif run == "mod":
            self.found.append(Token("mod", run, start, end))
        elif run in names.CODE_WORDS:
            raise Unreadable("code, not a value")
        elif prose or run.lower() in names.WORDS:
            self.found.append(Token("word", run, start, end))
        else:
            self.product(run, start)

    def product(self, run: str, start: int) -> None:
        """Names and single letters side by side; at most four single letters, longer runs are words."""
        pieces = [(match[0], start + match.start(), start + match.end()) for match in _PIECE.finditer(run)]
        if sum(len(piece) == 1 for piece, _, _ in pieces) > _MAX_LOOSE_LETTERS:
            raise Unreadable(f"the word {run[:30]!r}")
        called = self.text.startswith("(", start + len(run))
        if called and pieces[-1][0] not in names.PLAIN_FUNCTIONS:
            raise Unreadable(f"a call of {run!r}")
        for piece, at, end in pieces:
            if piece in names.PLAIN_FUNCTIONS:
                self.found.append(Token("function", names.PLAIN_FUNCTIONS[piece], at, end))
            else:
                self.found.append(Token("letter", names.PLAIN_LETTERS.get(piece, piece), at, end))


_COMMANDS: tuple[tuple[str, dict[str, str]], ...] = (
    *(("function", names.COMMAND_FUNCTIONS), ("letter", names.COMMAND_LETTERS), ("", names.COMMAND_SIGNS)),
    *(("mark", names.COMMAND_MARKS), ("big", names.BIGS)),
)


def _other(kind: str, match: re.Match[str]) -> Token:
    text, start, end = match[0], match.start(), match.end()
    if kind == "row":
        return Token("row", "row", start, end)
    if kind == "mark":
        return Token("mark", names.PLAIN_MARKS[text], start, end)
    if kind == "array":
        return Token("begin", "array", start, end)
    return Token(text[1:].partition("{")[0].strip(), text[text.index("{") + 1 : -1], start, end)


def _power_of_ten(exponent: int) -> int:
    return int(flint.fmpz(10) ** exponent)  # fifteen times as fast as Python's power where it has 100,000 digits


def decimal(digits: str) -> Fraction:
    """The value of digits with at most one decimal point, `.5` and `5.` too."""
    if digits.isdigit():
        return Fraction(int(digits))
    whole, _, part = digits.partition(".")
    return Fraction(int(whole + part), 10 ** len(part))


def _repeating(digits: str, cycle: str) -> Fraction:
    """The value of `0.1` with 6 repeating after it: 0.1666..."""
    whole, _, part = digits.partition(".")
    scale = 10 ** len(part)
    return Fraction(int((whole + part) or "0"), scale) + Fraction(int(cycle), (10 ** len(cycle) - 1) * scale)


def _is_euler(digits: str, exponent: str) -> bool:
    """Whether `2e-3` means 2e - 3: a whole number above 1, and one digit after a sign. 1e-3 and 2.5e-3 do not."""
    return (
        exponent[0] == "e" and not exponent[1].isdigit() and len(exponent) == 3 and "." not in digits and digits != "1"
    )
