"""Finding benchmark problems in the data: exact copies, and shared word n-grams (arXiv 2508.07629 uses 9-grams).

Covered: copies that were re-wrapped, re-cased, re-punctuated, spread over other Unicode forms, or embedded in a longer
text. Short benchmark problems (fewer words than the n-gram) are looked for whole, operators included.
Not covered: paraphrases, translations, other names or numbers in the same problem.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_SYMBOL = re.compile(r"[^\W\d_]+|\d+|[-+*/^=<>|!%]")
_OPERATORS = str.maketrans({"−": "-", "×": "*", "·": "*", "⋅": "*", "÷": "/", "≤": "<=", "≥": ">=", "≠": "!="})
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹]+")
_SHORTEST = 5
"""Benchmark problems of fewer words and operators than this are matched exactly only: `1 + 1` stands everywhere."""


@dataclass(frozen=True, slots=True)
class Match:
    """Which benchmark problem was found, and how: "exact", "ngram" or "short"."""

    suite: str
    problem_id: str
    how: str

    def __str__(self) -> str:
        return f"{self.how} copy of {self.suite}/{self.problem_id}"


def normalise(text: str) -> str:
    """One form for texts that differ in line breaks, spaces, case, invisible characters and Unicode composition."""
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFC", text)).casefold().split())


def words(text: str) -> list[str]:
    """The letters and the digits of a text as separate lower-case words; punctuation and mark-up are left out."""
    return _WORD.findall(_flat(text))


def symbols(text: str) -> list[str]:
    """The words of a text and its operators."""
    return _SYMBOL.findall(_flat(text))


def _flat(text: str) -> str:
    plain = _SUPERSCRIPT.sub(r"^\g<0>", _INVISIBLE.sub("", text).translate(_OPERATORS))
    return unicodedata.normalize("NFKC", plain).casefold()


def _grams(tokens: Sequence[str], size: int) -> Iterator[str]:
    return (" ".join(tokens[i : i + size]) for i in range(len(tokens) - size + 1))


class Index:
    """The benchmark problems, ready to be looked for.

    Args:
        items: (suite, problem id, text) of each benchmark problem.
        ngram: words in a row that count as a copy; 0 switches n-grams off.
        exact: also look for whole texts, equal after `normalise`.
        containment: share (0..1) of a problem's n-grams that must be found; 0 is the report's rule: any one.
        common: n-grams that stand in this many different benchmark problems or more are phrasing, not content, and
            are left out; 0 keeps all of them (the report's rule).
    """

    def __init__(
        self,
        items: Iterable[tuple[str, str, str]],
        ngram: int = 9,
        exact: bool = True,
        containment: float = 0.0,
        common: int = 0,
    ) -> None:
        self.ngram, self.containment = ngram, containment
        self._names: list[tuple[str, str]] = []
        self._exact: dict[str, int] = {}
        self._short: dict[int, dict[str, int]] = defaultdict(dict)
        self._owners: dict[str, tuple[int, ...]] = {}
        self._sizes: list[int] = []
        seen: set[str] = set()
        for suite, problem_id, text in items:
            if (key := normalise(text)) in seen:
                continue
            seen.add(key)
            self._names.append((suite, problem_id))
            self._add(len(self._names) - 1, key, text, exact)
        if common:
            self._owners = {gram: owners for gram, owners in self._owners.items() if len(owners) < common}
        for owners in self._owners.values():
            for number in owners:
                self._sizes[number] += 1

    def _add(self, number: int, key: str, text: str, exact: bool) -> None:
        self._sizes.append(0)
        if exact:
            self._exact[key] = number
        if not self.ngram:
            return
        tokens = words(text)
        for gram in set(_grams(tokens, self.ngram)):
            self._owners[gram] = (*self._owners.get(gram, ()), number)
        found = symbols(text)
        if len(tokens) < self.ngram and len(found) >= _SHORTEST:
            self._short[len(found)].setdefault(" ".join(found), number)

    def find(self, text: str) -> Match | None:
        """The first benchmark problem found in a text, or None."""
        number = self._exact.get(normalise(text))
        if number is not None:
            return Match(*self._names[number], "exact")
        number = self._find_ngram(words(text))
        if number is not None:
            return Match(*self._names[number], "ngram")
        number = self._find_short(symbols(text)) if self._short else None
        return None if number is None else Match(*self._names[number], "short")

    def _find_ngram(self, tokens: Sequence[str]) -> int | None:
        if not self._owners:
            return None
        found: dict[int, set[str]] = defaultdict(set)
        for gram in _grams(tokens, self.ngram):
            for number in self._owners.get(gram, ()):
                found[number].add(gram)
                if len(found[number]) >= self.containment * self._sizes[number]:
                    return number
        return None

    def _find_short(self, symbols: Sequence[str]) -> int | None:
        for size, items in self._short.items():
            for gram in _grams(symbols, size):
                if gram in items:
                    return items[gram]
        return None
