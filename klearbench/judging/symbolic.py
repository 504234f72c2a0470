"""Single expressions: from LaTeX or plain text to sympy (with latex2sympy), and whether two of them are equal.

Runs inside a worker. Sizes are bounded before any library sees the text; values are compared at high precision, exact
where both are rational, and at sample points where there are variables.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import sympy
from latex2sympy2_extended import latex2sympy

from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN
from klearbench.judging.numbers import DOTTED_IN_TEXT, REPEATING_IN_TEXT, as_fraction_text, exact_number
from klearbench.judging.size import Unreadable, check_size

_MAX_CHARS = 2000
_DIGITS = 60
_MAX_DIGITS = 12000
_FUNCTIONS = [
    "sqrt",
    "sin",
    "cos",
    "tan",
    "cot",
    "sec",
    "csc",
    "arcsin",
    "arccos",
    "arctan",
    "arccot",
    "sinh",
    "cosh",
    "tanh",
    "ln",
    "log",
    "exp",
    "gcd",
    "lcm",
    "max",
    "min",
    "floor",
    "ceil",
    "abs",
]
_SYMBOL_WORDS = ["pi", "theta", "alpha", "beta", "gamma", "lambda", "phi", "omega", "infty"]
_NAMES = re.compile(r"(?<![\\A-Za-z])(" + "|".join((*_FUNCTIONS[1:], *_SYMBOL_WORDS)) + r")(?![A-Za-z])")
_CODE = re.compile(
    r"__|;|=>|\b(?:import|print|eval|exec|raise|lambda|def|return|quit|exit|open)\b|\\(?:def|newcommand|let|input|write|csname)"
)
_CALL = re.compile(r"(?<![\\A-Za-z])([A-Za-z]{2,})\(")


@lru_cache(maxsize=256)
def to_sympy(text: str) -> Any:
    """The sympy object of an expression (decimals exact). Raises Unreadable."""
    number = exact_number(text)
    if number is not None:
        return sympy.Rational(number.numerator, number.denominator)
    if text.startswith(r"\begin{cases}"):
        return _piecewise(text)
    latex = to_latex(text)
    check_size(latex)
    try:
        parsed = latex2sympy(latex)
        if isinstance(parsed, sympy.Expr) and not parsed.has(sympy.Sum, sympy.Product, sympy.Integral):
            parsed = parsed.subs(sympy.Symbol("i"), sympy.I)
        parsed = parsed.doit() if isinstance(parsed, sympy.Basic) and parsed.has(sympy.UnevaluatedExpr) else parsed
    except (RecursionError, MemoryError):
        raise
    except Exception as error:  # the parser raises bare Exception on what it can't read
        raise Unreadable(str(error).splitlines()[0] if str(error) else type(error).__name__) from None
    if isinstance(parsed, sympy.Basic) and any(_is_zero_to_zero(power) for power in parsed.atoms(sympy.Pow)):
        raise Unreadable("0^0 is undefined")
    return parsed


def _is_zero_to_zero(power: Any) -> bool:
    return not power.free_symbols and power.exp.doit() == 0 and power.base.doit() == 0


def _piecewise(text: str) -> Any:
    """`cases` rows as a sympy Piecewise, undefined elsewhere."""
    body = re.fullmatch(r"\\begin\{cases\}(.*)\\end\{cases\}", text, re.DOTALL)
    if body is None:
        raise Unreadable("an unfinished piecewise function")
    rows = []
    for row in re.split(r"\\\\|\\cr", body[1]):
        value, _, condition = row.strip().rstrip(",").partition("&")
        condition = re.sub(rf"{TEXT_OPEN}[^{TEXT_CLOSE}]*{TEXT_CLOSE}|\b(?:if|for|when)\b", " ", condition).strip(" ,.")
        if not condition:
            rows.append((to_sympy(value.strip(" ,")), True))
            continue
        relation = latex2sympy(to_latex(condition))
        rows.append((to_sympy(value.strip(" ,")), relation))
    return sympy.Piecewise(*rows, (sympy.nan, True))


def to_latex(text: str) -> str:
    """Plain-text notation as LaTeX, repeating and plain decimals as fractions. Raises Unreadable on code."""
    text = text.replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ")
    if len(text) > _MAX_CHARS:
        raise Unreadable("too long to evaluate")
    if _CODE.search(text):
        raise Unreadable("code, not a value")
    for call in _CALL.finditer(text):
        if call[1] not in _FUNCTIONS:
            raise Unreadable(f"a call of {call[1]!r}")
    if re.search(r"\\sqrt\s?\(", text) or re.search(r"(?<![A-Za-z\d}])%|@|#", text):
        raise Unreadable("malformed")
    text = text.replace("**", "^").replace("*", r"\cdot ")
    text = _brace_arguments(text)
    text = _NAMES.sub(lambda m: rf"\{m[1]} ", text)
    text = re.sub(r"(?<![\\A-Za-z])(?:infinity|inf|oo)(?![A-Za-z])", r"\\infty ", text)
    text = re.sub(r"(?<![\\A-Za-z])sqrt(?=\{)", r"\\sqrt", text).replace(r"\lg", r"\log_{10}")
    text = re.sub(r"(?<![\\A-Za-z])sqrt\s?(\d+|[a-z](?![a-z]))", r"\\sqrt{\1}", text)
    text = re.sub(r"\\sqrt\s?(\d)(?!\])", r"\\sqrt{\1}", text)
    text = REPEATING_IN_TEXT.sub(as_fraction_text, text)
    text = DOTTED_IN_TEXT.sub(as_fraction_text, text)
    text = re.sub(r"(\d+(?:\.\d+)?)\s?\^\s?\{?\s?\\circ\s?\}?", r"{\\frac{\\pi \\cdot \1}{180}}", text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"(?<![\d.])(\d+)\s?\\frac\s?\{?(\d+)\}?\s?\{?(\d+)\}?", _mixed, text)
    text = re.sub(r"(?<![\w.])(\d*)\.(\d+)", lambda m: rf"{{\frac{{{int(m[1] + m[2])}}}{{{10 ** len(m[2])}}}}}", text)
    text = re.sub(r"\\frac\s?(\w)\s?(\w)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\{([^{}]{1,200})\\choose(?![a-z])([^{}]{1,200})\}", r"\\binom{\1}{\2}", text)
    text = re.sub(r"\A([^\\]{1,20})\\choose(?![a-z])([^\\]{1,20})\Z", r"\\binom{\1}{\2}", text)
    text = re.sub(r"\{([^{}]{1,200})\\over(?![a-z])([^{}]{1,200})\}", r"\\frac{\1}{\2}", text)
    text = (
        re.sub(r"\A([^=]{1,200}?)\\over(?![a-z])([^=]{1,200})\Z", r"\\frac{\1}{\2}", text)
        if text.count(r"\over") == 1
        else text
    )
    text = re.sub(r"\\tan\s?\^\s?\{-1\}", r"\\arctan ", text)
    text = re.sub(r"\\(sin|cos)\s?\^\s?\{-1\}", r"\\arc\1 ", text)
    text = re.sub(r"\\arc(sin|cos|tan)\s?\(", r"\\arc\1(", text)
    return text.replace(r"\div", "/")


def _mixed(match: re.Match[str]) -> str:
    whole, top, bottom = int(match[1]), int(match[2]), int(match[3])
    return rf"{{\frac{{{whole * bottom + top}}}{{{bottom}}}}}" if 0 < top < bottom else match[0]


def _brace_arguments(text: str) -> str:
    """`sqrt(x)` and `^(x)` with braces around x."""
    for _ in range(60):
        match = re.search(r"(?<![\\A-Za-z])sqrt\s?\(|\^\s?\(", text)
        if match is None:
            break
        end = _closing(text, match.end() - 1)
        if end < 0:
            raise Unreadable("unbalanced brackets")
        head = "^{" if match[0].startswith("^") else r"\sqrt{"
        text = text[: match.start()] + head + text[match.end() : end] + "}" + text[end + 1 :]
    return text


def _closing(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return -1


def expressions_equal(one: Any, other: Any) -> bool:
    """Whether two sympy objects are the same value, or the same function of their variables."""
    if not (isinstance(one, sympy.Basic | sympy.MatrixBase) and isinstance(other, sympy.Basic | sympy.MatrixBase)):
        return False
    if isinstance(one, sympy.MatrixBase) or isinstance(other, sympy.MatrixBase):
        return _matrices_equal(one, other)
    if not (isinstance(one, sympy.Expr) and isinstance(other, sympy.Expr)):
        return False
    if any(e.has(sympy.nan, sympy.zoo) and not e.has(sympy.Piecewise) for e in (one, other)):
        return False
    if one == other:
        return True
    if one.is_Rational and other.is_Rational:
        return False
    if one.has(sympy.oo, -sympy.oo) or other.has(sympy.oo, -sympy.oo):
        return bool(one.doit() == other.doit())
    names = sorted(one.free_symbols | other.free_symbols, key=str)
    return _values_equal(one, other) if not names else _functions_equal(one, other, names)


def _matrices_equal(one: Any, other: Any) -> bool:
    if not (isinstance(one, sympy.MatrixBase) and isinstance(other, sympy.MatrixBase)) or one.shape != other.shape:
        return False
    return all(expressions_equal(a, b) for a, b in zip(one, other, strict=True))


def _values_equal(one: Any, other: Any) -> bool:
    """Two numbers: exactly where both are rational, else to so many digits that no term of either could hide."""
    one, other = _exact(one), _exact(other)
    if one.is_Rational and other.is_Rational:
        return bool(one == other)
    a, b = _number(one), _number(other)
    if a is None or b is None:
        return False
    scale = max(abs(a), abs(b))
    if scale < sympy.Float(10) ** -(_DIGITS - 20):
        return bool(sympy.simplify(one - other) == 0)
    return _agree(a, b, _DIGITS - 20) and _agree_closely(one, other)


def _agree(a: Any, b: Any, digits: int) -> bool:
    return bool(abs(a - b) <= max(abs(a), abs(b)) * sympy.Float(10, 30) ** -digits)


def _agree_closely(one: Any, other: Any) -> bool:
    digits = min(_MAX_DIGITS, 150 + _hidden_digits(one) + _hidden_digits(other))
    a, b = _number(one, 2 * digits), _number(other, 2 * digits)
    return a is not None and b is not None and _agree(a, b, digits)


def _hidden_digits(expression: Any) -> int:
    """How far below the leading digits a term of an expression can begin."""
    digits = sum(max(len(str(abs(r.p))), len(str(r.q))) for r in expression.atoms(sympy.Rational) if abs(r) != 1)
    for power in expression.atoms(sympy.Pow, sympy.exp):
        base, exponent = power.as_base_exp()
        size = sympy.N(exponent * sympy.log(sympy.Abs(base)) / sympy.log(10), 15)
        if size.is_Float and size.is_finite:
            digits += min(_MAX_DIGITS, abs(int(size)))
    return digits


def _exact(expression: Any) -> Any:
    return _real_roots(expression.doit())


def _number(expression: Any, digits: int = _DIGITS) -> Any:
    """A complex number to so many digits, or None where the expression is undefined."""
    value = sympy.N(expression, digits)
    if value.free_symbols or not value.is_number or value.has(sympy.nan, sympy.zoo, sympy.oo):
        return None
    real, imaginary = value.as_real_imag()
    return value if real.is_Float or real.is_Integer or imaginary.is_Float else None


def _real_roots(expression: Any) -> Any:
    """Odd roots of negative reals as the real root."""

    def is_odd_root(e: Any) -> bool:
        return bool(e.is_Pow and e.exp.is_Rational and e.exp.q % 2 == 1 and e.exp.q > 1 and e.base.is_extended_negative)

    return expression.replace(is_odd_root, lambda e: sympy.real_root(e.base, e.exp.q) ** e.exp.p)


def _is_real(value: Any) -> bool:
    return bool(abs(sympy.im(value)) <= abs(value) * sympy.Float(10) ** -25)


_CLOSE_POINTS = 2
_POINTS = ("7/5", "-13/7", "29/11", "3/17", "-1/3", "37/9", "11/23", "-41/13")


def _functions_equal(one: Any, other: Any, names: list[Any]) -> bool:
    """Equality at sample points where both are defined: at least three points, all of them equal."""
    agreed = 0
    real = not (one.has(sympy.I) or other.has(sympy.I))
    for shift in range(12):
        points = {name: sympy.Rational(_POINTS[(shift + 3 * i) % 8]) + i for i, name in enumerate(names)}
        if shift >= 6:
            points = {name: abs(value) for name, value in points.items()}
        left, right = _exact(one.subs(points)), _exact(other.subs(points))
        a, b = _number(left), _number(right)
        if (a is None) != (b is None) and one.has(sympy.Piecewise) | other.has(sympy.Piecewise):
            return False  # a piecewise answer must be defined on the same domain
        if a is None or b is None or (real and not (_is_real(a) and _is_real(b))):
            continue
        if left.is_Rational and right.is_Rational:
            if left != right:
                return False
        elif abs(a - b) > max(abs(a), abs(b), sympy.Float(10) ** -20) * sympy.Float(10) ** -25 or (
            agreed < _CLOSE_POINTS and max(abs(a), abs(b)) > sympy.Float(10) ** -20 and not _agree_closely(left, right)
        ):
            return False
        agreed += 1
    return agreed >= 3


def same_equation(one: Any, other: Any) -> bool:
    """Whether f = 0 and g = 0 are one equation: f/g is a non-zero constant at sample points."""
    names = sorted(one.free_symbols, key=str)
    if one.free_symbols != other.free_symbols or not names:
        return False
    one, other = (sympy.fraction(sympy.together(side))[0] for side in (one, other))
    ratio = sympy.simplify(one / other)
    return not ratio.free_symbols and bool(ratio.is_number) and ratio not in (0, sympy.zoo, sympy.nan)
