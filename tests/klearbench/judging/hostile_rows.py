"""Answers made to cost time or memory: towers, factorials, nesting, sums, digits, lists, matrices, regex bombs."""

from __future__ import annotations

from collections.abc import Iterator

SIZE = 20_000
"""Characters of the long ones: as many as an answer may have."""


def _nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


def _filled(piece: str, end: str = "") -> str:
    return piece * ((SIZE - len(end)) // len(piece)) + end


TOWERS = {
    "tower of nines": "9^{9^{9^{9}}}",
    "tower in plain text": "9**9**9**9**9",
    "deep tower": _nested("2^{", "2", "}", 3_000),
    "tower of fractions": "(1+10^{-9})^{10^{12}}",
    "power of a power": "((2^{999})^{999})^{999}",
    "tiny exponent": "10^{-10^{12}}",
    "huge root": "\\sqrt[10^{9}]{2}",
    "root of a huge number": "\\sqrt{10^{10^{9}}+1}",
    "complex power": "(1+i)^{10^{15}}",
    "power of a sum": "(x+y+z+1)^{5000}",
    "symbolic tower": "x^{x^{x^{x^{x^{x}}}}}",
    "symbolic exponent": "2^{10^{8}x}",
}
FACTORIALS = {
    "factorial": "1000000000!",
    "factorial of a power": "(10^{50})!",
    "iterated factorial": "9!!!!!!",
    "nested factorial": "(((9!)!)!)!",
    "many marks": "3" + "!" * 2_000,
    "binomial": "\\binom{10^{12}}{10^{11}}",
    "quotient of factorials": "\\frac{100000000!}{99999999!}",
}
NESTS = {
    "roots": _nested("\\sqrt{", "2", "}", 2_000),
    "fractions": _nested("\\frac{1}{1+", "x", "}", 1_500),
    "round brackets": _nested("(", "5", ")", 9_000),
    "unclosed brackets": "(" * SIZE,
    "unopened braces": "}" * SIZE,
    "square brackets": _nested("[", "5", "]", 9_000),
    "mixed brackets": _nested("\\left(\\{", "1", "\\}\\right)", 900),
    "absolute bars": _nested("|", "5", "|", 9_000),
    "signs": "-" * 19_999 + "5",
    "plus-minus": "\\pm 1 " * 3_000,
    "sines": _nested("\\sin(", "1", ")", 2_000),
    "logarithms": _nested("\\log_{", "2", "}3", 1_500),
    "texts": _nested("\\text{", "5", "}", 2_500),
    "boxes": _nested("\\boxed{", "5", "}", 2_000),
    "continued radicals": _nested("\\sqrt{2+", "2", "}", 60),
    "denominators": _nested("\\frac{1}{", "3", "}", 2_000),
}
SUMS = {
    "sum of roots": "+".join(f"\\sqrt{{{i}}}" for i in range(2, 1_800)),
    "sum of fractions": "+".join(f"\\frac{{1}}{{{i}}}" for i in range(1, 1_500)),
    "sum of powers": "+".join(f"x^{{{i}}}" for i in range(1, 2_500)),
    "product of sums": "".join(f"(x+{i})" for i in range(1, 2_500)),
    "product in many names": "".join(f"({a}+{b})" for a in "abcdfghjkm" for b in "npqrstuvwz"),
    "summation sign": "\\sum_{k=1}^{10^{9}} \\frac{1}{k^{2}}",
    "integral": "\\int_0^{\\infty} \\frac{\\sin(x^{x})}{x^{x}} dx",
    "product sign": "\\prod_{k=1}^{10^{9}} (1+x^{k})",
    "limit": "\\lim_{n\\to\\infty} (1+\\frac{1}{n})^{n^{n}}",
    "almost zero": "(\\sqrt{10^{40}+1}-10^{20})^{9}",
    "cancelling": "(1+10^{-900})-1",
}
LONG = {
    "digits": "7" * SIZE,
    "decimals": "0." + "3" * (SIZE - 2),
    "groups": _filled("123,", "456"),
    "spaced digits": _filled("1 "),
    "repeating": "0.\\overline{" + "142857" * 3_000 + "}",
    "list": ",".join(map(str, range(3_500))),
    "set": "\\{" + ",".join(map(str, range(3_500))) + "\\}",
    "set of roots": "\\{" + ",".join(f"\\sqrt{{{i}}}" for i in range(1_500)) + "\\}",
    "pairs": ",".join(f"({i},{i})" for i in range(1_700)),
    "union": "\\cup".join(f"({i},{i + 1})" for i in range(1_200)),
    "matrix": "\\begin{pmatrix}" + "\\\\".join("&".join("1" * 60) for _ in range(120)) + "\\end{pmatrix}",
    "deep matrix": _nested("\\begin{pmatrix}", "1", "\\end{pmatrix}", 600),
    "determinant": "\\det\\begin{pmatrix}" + "\\\\".join("&".join("xyzwabcd") for _ in range(8)) + "\\end{pmatrix}",
    "chain of equations": "x=" * 9_000 + "5",
    "chain of inequalities": "1<" + "x<" * 9_000 + "5",
    "words": _filled("and "),
    "or": _filled("x=1 or "),
    "names": "x_{1}" * 4_000,
}
BOMBS = {
    "backslashes": "\\" * SIZE,
    "spaces": "5" + " " * (SIZE - 2) + "x",
    "commas": "," * SIZE,
    "dollars": "$" * SIZE,
    "percents": "5" + "\\%" * 9_000,
    "degrees": "5" + "^\\circ" * 3_000,
    "carets": "^" * SIZE,
    "underscores": "_" * SIZE,
    "colons": "1:" * 9_999,
    "dots": "1." * 9_999,
    "stars": "*" * SIZE,
    "primes": "f" + "'" * (SIZE - 1),
    "letters": "a" * SIZE,
    "units": "5" + " cm" * 6_000,
    "powers of units": "5 m" + "^{2}" * 4_900,
    "spacing commands": "\\," * 9_999 + "5",
    "left and right": "\\left\\right" * 1_800,
    "text commands": "\\text{a}" * 2_400,
    "open texts": "\\text{" * 3_300,
    "mixed numbers": "1 \\frac12 " * 1_900,
    "percent of text": _filled("a b "),
    "zero width": "5" + "​" * 9_999 + "6",
    "Chinese": "答案" * 9_999,
    "newlines": "\n" * SIZE,
    "minus signs and spaces": "- " * 9_999,
    "equal signs": "=" * SIZE,
    "greek": "\\alpha" * 3_300,
    "ellipses": "\\ldots" * 3_300,
    "minutes": "12:34 " * 3_300,
    "brackets in turn": "()" * 9_999,
    "braces in turn": "{}" * 9_999,
    "half open": "(1,2]" * 3_999,
    "number words": "one hundred " * 1_600,
    "circled answers": "\\boxed{5}" * 2_200,
    "exponents of ten": "1e9" * 6_600,
    "bases": "101_{2}" * 2_800,
}
GOLDS = ("5", "\\frac{\\sqrt{3}}{2}", "x^{2}+1", "\\{1,2,3\\}", "(0,1]", "3 \\text{ cm}", "x=2y", "\\text{yes}")
"""References of several kinds: each opens another path."""


def rows() -> Iterator[tuple[str, str, str]]:
    """(name, reference, answer): each text as an answer to two references, the short ones as their own reference."""
    texts = {**TOWERS, **FACTORIALS, **NESTS, **SUMS, **LONG, **BOMBS}
    for number, (name, text) in enumerate(texts.items()):
        for step in (0, 3):
            gold = GOLDS[(number + step) % len(GOLDS)]
            yield f"{name} for {gold}", gold, text
        if len(text) <= 1_000:
            yield f"{name} for itself plus 1", f"{text}+1", text
