"""Operations on exact rational values; None where the result is not plainly rational.

By convention: binomial(n, k) is 0 for k < 0 and n (n-1) ... (n-k+1) / k! for any rational n; an odd root of a negative
number is the real one, also in x^{p/q} with odd q; a mod b is a - b floor(a/b).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import log

import flint

from klearbench.judging.expressions.bounds import TooLarge, Undefined, Work

Q = flint.fmpq
_ZERO, _ONE = Q(0), Q(1)
_MAX_INDEX = 10_000


def as_rational(value: Fraction) -> flint.fmpq:
    """A fraction as a number of flint."""
    return Q(value.numerator, value.denominator) if value.denominator != 1 else Q(value.numerator)


def apply(name: str, parts: list[flint.fmpq], work: Work) -> flint.fmpq | None:
    """An operation on exact values; None when the result is not plainly rational."""
    work.spend_on(*parts)
    return _OPERATIONS[name](parts, work) if name in _OPERATIONS else None


def total(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    return sum(parts[1:], parts[0])


def product(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    found = parts[0]
    for part in parts[1:]:
        work.spend_on(found, part)
        found *= part
    return found


def _quotient(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    if parts[1] == 0:
        raise Undefined("division by zero")
    return parts[0] / parts[1]


def power(parts: list[flint.fmpq], work: Work) -> flint.fmpq | None:
    base, exponent = parts
    if exponent == 0 and base == 0:
        raise Undefined("0 to the power 0")
    if base == 0:
        if exponent < 0:
            raise Undefined("division by zero")
        return _ZERO
    index = int(exponent.q)
    if index == 1:
        times = int(exponent.p)
        if abs(base.p) == 1 and base.q == 1:
            return base if times % 2 else _ONE
        work.power(base, times)
        return base**times
    root = _root_of(base, index)
    if root is None:
        return None
    return power([root, Q(exponent.p)], work)


def _root(parts: list[flint.fmpq], work: Work) -> flint.fmpq | None:
    if parts[1] == 0:
        raise Undefined("a root of index 0")
    return power([parts[0], 1 / parts[1]], work)


def _root_of(value: flint.fmpq, index: int) -> flint.fmpq | None:
    """The rational root of a non-zero number; None when there is none, or it is not real."""
    if value < 0 and index % 2 == 0:
        return None
    top, bottom = abs(value.p), value.q
    if index > _MAX_INDEX:
        return _ONE * (1 if value > 0 else -1) if top == 1 and bottom == 1 else None
    tops, bottoms = top.root(index), bottom.root(index)
    if tops**index != top or bottoms**index != bottom:
        return None
    return Q(tops if value > 0 else -tops, bottoms)


def _log(parts: list[flint.fmpq], work: Work) -> flint.fmpq | None:
    base, value = parts
    if base in (0, 1) or value == 0:
        raise Undefined("a logarithm of 0, or to the base 0 or 1")
    if base < 0 or value < 0:
        return None
    if value == 1:
        return _ZERO
    estimate = _log_size(value) / _log_size(base)
    near = Fraction(estimate).limit_denominator(64) if abs(estimate) < 1e9 else None
    if near is None or abs(float(near) - estimate) > 1e-9 * max(1, abs(estimate)) or near == 0:
        return None
    work.power(base, near.numerator)
    work.power(value, near.denominator)
    return as_rational(near) if base**near.numerator == value**near.denominator else None


def _log_size(value: flint.fmpq) -> float:
    """The natural logarithm of a positive number, close enough to guess a quotient of two."""
    return log(int(value.p)) - log(int(value.q))


def _ln(parts: list[flint.fmpq], work: Work) -> flint.fmpq | None:
    if parts[0] == 0:
        raise Undefined("the logarithm of 0")
    return _ZERO if parts[0] == 1 else None


def _factorial(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    if parts[0].q != 1 or parts[0] < 0:
        raise Undefined("a factorial of no natural number")
    n = int(parts[0].p)
    work.factorial(n)
    return Q(flint.fmpz.fac_ui(n))


def _double_factorial(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    if parts[0].q != 1 or parts[0] < -1:
        raise Undefined("a double factorial of no natural number")
    n = int(parts[0].p)
    if n <= 0:
        return _ONE
    work.factorial(n)
    half = n // 2
    if n % 2 == 0:
        return Q(flint.fmpz.fac_ui(half) * flint.fmpz(2) ** half)
    return Q(flint.fmpz.fac_ui(n) / (flint.fmpz.fac_ui(half) * flint.fmpz(2) ** half))


def _binomial(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    upper, lower = parts
    if lower.q != 1:
        raise Undefined("a binomial coefficient of no whole number")
    if lower < 0:
        return _ZERO
    if upper.q == 1 and upper >= 0:
        if lower > upper:
            return _ZERO
        lower = min(lower, upper - lower)
    k = int(lower.p)
    work.binomial(upper, k)
    if 0 <= upper < 2**62 and upper.q == 1:
        return Q(flint.fmpz.bin_uiui(int(upper.p), k))
    if upper.q == 1:
        return Q((upper.p - k + 1).rising(k), flint.fmpz.fac_ui(k))
    found = _ONE
    for i in range(k):
        found = found * (upper - i) / (i + 1)
    return found


def _integers(parts: list[flint.fmpq]) -> list[flint.fmpz]:
    if any(part.q != 1 for part in parts):
        raise Undefined("a divisor of no whole number")
    return [part.p for part in parts]


def _gcd(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    found = flint.fmpz(0)
    for part in _integers(parts):
        found = found.gcd(part)
    return Q(abs(found))


def _lcm(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    found = flint.fmpz(1)
    for part in _integers(parts):
        work.spend_on(Q(found), Q(part))
        found = found.lcm(part) if part else flint.fmpz(0)
    return Q(abs(found))


def _mod(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    value, modulus = parts
    if modulus == 0:
        raise Undefined("a remainder of a division by zero")
    return value - modulus * Q((value / modulus).floor())


def _phi(parts: list[flint.fmpq], work: Work) -> flint.fmpq:
    if parts[0].q != 1 or parts[0] < 1:
        raise Undefined("the totient of no natural number")
    if parts[0] >= 2**64:
        raise TooLarge("a number is too large to factor")
    work.spend(100)
    return Q(parts[0].p.euler_phi())


def _fixed(value: int, at: int) -> Callable[[list[flint.fmpq], Work], flint.fmpq | None]:
    """A function that has one rational value worth knowing."""
    return lambda parts, work: Q(value) if parts[0] == at else None


def _pole(parts: list[flint.fmpq], work: Work) -> None:
    if parts[0] == 0:
        raise Undefined("a function at its pole")


def _arcsec(parts: list[flint.fmpq], work: Work) -> flint.fmpq | None:
    _pole(parts, work)
    return _ZERO if parts[0] == 1 else None


_OPERATIONS: dict[str, Callable[[list[flint.fmpq], Work], flint.fmpq | None]] = {
    **{"add": total, "mul": product, "div": _quotient, "pow": power, "root": _root, "log": _log, "ln": _ln},
    **{"factorial": _factorial, "double_factorial": _double_factorial, "binomial": _binomial, "gcd": _gcd},
    **{"lcm": _lcm, "mod": _mod, "phi": _phi},
    "neg": lambda parts, work: -parts[0],
    "abs": lambda parts, work: abs(parts[0]),
    "floor": lambda parts, work: Q(parts[0].floor()),
    "ceil": lambda parts, work: Q(parts[0].ceil()),
    "sign": lambda parts, work: Q((parts[0] > 0) - (parts[0] < 0)),
    "max": lambda parts, work: max(parts),
    "min": lambda parts, work: min(parts),
    "conjugate": lambda parts, work: parts[0],
    "re": lambda parts, work: parts[0],
    "im": lambda parts, work: _ZERO,
    **{name: _fixed(0, 0) for name in ("sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh")},
    **{name: _fixed(1, 0) for name in ("cos", "sec", "cosh", "exp")},
    **{name: _fixed(0, 1) for name in ("arccos", "arccosh")},
    "degree": _fixed(0, 0),
    **dict.fromkeys(("cot", "csc", "coth", "arccsc"), _pole),
    "arcsec": _arcsec,
}
