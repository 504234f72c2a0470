"""Operations on finite values of which at least one is a ball, or whose result is no plain rational number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import flint
from flint import acb, arb, fmpq

from klearbench.judging.expressions.bounds import NearPole, TooLarge, Undecided, Undefined

Finite: TypeAlias = fmpq | acb

TRIGONOMETRIC = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))
_CHEAP = frozenset(("add", "mul", "neg", "div", "abs", "conjugate", "re", "im", "max", "min", "sign", "floor", "ceil"))
_MAX_PRODUCT = 1000
"""Factors of a binomial coefficient whose upper number is no rational."""
_NOTHING = -(10**9)


def cost(name: str, bits: int) -> int:
    """Units of about a microsecond for one operation at a precision."""
    if name in _CHEAP:
        return 1 + bits // 300
    return 1 + bits // 150 if name == "root" else 1 + bits // 200 + bits * bits // 250_000


def apply(name: str, parts: list[Finite], complex_: bool) -> Finite:
    """The value of an operation; it may be a ball that is not finite. Raises Undefined, Undecided or TooLarge."""
    if name in _SIMPLE:
        return _SIMPLE[name](_ball(parts[0]))
    if name in _REAL_DOMAIN:
        return _on_domain(name, _ball(parts[0]), complex_)
    if name == "ln":
        return _ln(_ball(parts[0]), complex_)
    if name == "log":
        return _ln(_ball(parts[1]), complex_) / _non_zero(_ln(_ball(parts[0]), complex_))
    if name == "pow":
        return _power(parts[0], parts[1], complex_)
    if name == "root":
        return _root(parts[0], parts[1], complex_)
    if name in _SEVERAL:
        return _SEVERAL[name](parts)
    raise Undefined(f"{name} of such numbers")


def _ball(value: Finite) -> acb:
    return value if isinstance(value, acb) else acb(value)


def magnitude(value: acb) -> int:
    """The binary logarithm of the modulus, rounded; 0 for a ball that contains 0."""
    if value.contains(0):
        return 0
    return exponent(value.abs_upper())


def exponent(value: arb) -> int:
    """The binary logarithm of a positive midpoint, rounded up; far below all others for 0."""
    if value.is_zero():
        return _NOTHING
    mantissa, power = value.man_exp()
    return int(power) + int(mantissa.bit_length())


def real(value: acb) -> arb:
    """The real number that a ball encloses. Raises Undefined where it is not real, Undecided where that is open."""
    if value.imag.is_zero():
        return value.real
    if value.imag.contains(0):
        raise Undecided("a value may be complex")
    raise Undefined("a complex number in the place of a real one")


def _non_zero(value: acb) -> acb:
    if value.is_zero():
        raise Undefined("division by zero")
    if value.contains(0):
        raise NearPole("division by what may be zero")
    return value


def at_turn(name: str, turn: fmpq) -> acb:
    """A trigonometric function of an angle `turn` pi."""
    sine, cosine = arb.sin_cos_pi_fmpq(turn)
    if name == "sin":
        return acb(sine)
    if name == "cos":
        return acb(cosine)
    if name in ("tan", "sec"):
        return acb((sine if name == "tan" else arb(1)) / cosine)
    return acb((cosine if name == "cot" else arb(1)) / sine)


def _inverse(value: acb) -> acb:
    return 1 / _non_zero(value)


def _sign(z: acb) -> Finite:
    x = real(z)
    if x > 0 or x < 0:
        return fmpq(1 if x > 0 else -1)
    raise Undecided("the sign of what may be zero")


def _whole(value: arb) -> fmpq:
    found = value.unique_fmpz()
    if found is None:
        raise Undecided("a number near a whole number to be rounded")
    return fmpq(found)


def _arg(z: acb) -> acb:
    return acb(_non_zero(z).arg())


def _arccot(z: acb) -> acb:
    return acb.pi() / 2 - z.atan()


_SIMPLE: dict[str, Callable[[acb], Finite]] = {
    **{"neg": lambda z: -z, "abs": lambda z: acb(abs(z)), "conjugate": lambda z: z.conjugate()},
    **{"re": lambda z: acb(z.real), "im": lambda z: acb(z.imag), "arg": _arg, "sign": _sign},
    **{"floor": lambda z: _whole(real(z).floor()), "ceil": lambda z: _whole(real(z).ceil())},
    **{"degree": lambda z: z * acb.pi() / 180, "exp": lambda z: z.exp(), "sin": lambda z: z.sin()},
    **{"cos": lambda z: z.cos(), "tan": lambda z: z.tan(), "cot": lambda z: z.cot(), "sec": lambda z: z.sec()},
    **{"csc": lambda z: z.csc(), "sinh": lambda z: z.sinh(), "cosh": lambda z: z.cosh(), "tanh": lambda z: z.tanh()},
    **{"coth": lambda z: _inverse(z.tanh()), "arctan": lambda z: z.atan(), "arcsinh": lambda z: z.asinh()},
    "arccot": _arccot,
}


def _outside_unit(x: arb) -> bool:
    return bool(x > 1) or bool(x < -1)


_REAL_DOMAIN: dict[str, tuple[Callable[[arb], bool], Callable[[acb], acb]]] = {
    "arcsin": (_outside_unit, lambda z: z.asin()),
    "arccos": (_outside_unit, lambda z: z.acos()),
    "arcsec": (lambda x: not _outside_unit(x), lambda z: _inverse(z).acos()),
    "arccsc": (lambda x: not _outside_unit(x), lambda z: _inverse(z).asin()),
    "arccosh": (lambda x: bool(x < 1), lambda z: z.acosh()),
    "arctanh": (_outside_unit, lambda z: z.atanh()),
}
"""Function -> (whether a real number is outside of the real domain, the function)."""


def _on_domain(name: str, z: acb, complex_: bool) -> acb:
    outside, function = _REAL_DOMAIN[name]
    if complex_ or not z.imag.is_zero():
        return function(z)
    if name in ("arcsec", "arccsc"):
        if bool(abs(z.real) < 1):
            raise Undefined(f"{name} outside of its domain")
    elif outside(z.real):
        raise Undefined(f"{name} outside of its domain")
    return acb(function(z).real)  # a ball over the end of the domain has an imaginary part that is not meant


def _ln(z: acb, complex_: bool) -> acb:
    if z.is_zero():
        raise Undefined("the logarithm of 0")
    if z.contains(0):
        raise NearPole("the logarithm of what may be 0")
    if not complex_ and z.imag.is_zero() and bool(z.real < 0):
        raise Undefined("the logarithm of a negative number")
    return z.log()


def _root(radicand: Finite, index: Finite, complex_: bool) -> Finite:
    if isinstance(index, fmpq):
        if index == 0:
            raise Undefined("a root of index 0")
        return _rational_power(_ball(radicand), 1 / index)
    return _power(radicand, 1 / _non_zero(index), complex_)


def _power(base: Finite, exponent: Finite, complex_: bool) -> Finite:
    z = _ball(base)
    if isinstance(exponent, fmpq):
        return _rational_power(z, exponent)
    if z.is_zero():
        if exponent.imag.is_zero() and bool(exponent.real > 0):
            return fmpq(0)
        raise Undefined("a power of 0")
    if z.contains(0):
        raise Undecided("a power of what may be 0")
    if not complex_ and z.imag.is_zero() and bool(z.real < 0):
        raise Undefined("a real power of a negative number")
    return (exponent * z.log()).exp()


def _rational_power(z: acb, exponent: fmpq) -> acb:
    """A ball to a rational power: odd roots of negative numbers are real, even ones have a positive imaginary part."""
    top, index = exponent.p, exponent.q
    if top < 0:
        return _inverse(_rational_power(z, -exponent))
    if top == 0:
        _non_zero(z)
        return acb(1)
    if index == 1:
        return z**top
    if index == 2:
        return z.sqrt() ** top
    if not z.imag.is_zero() or (index % 2 == 0 and not bool(z.real >= 0)):
        if z.contains(0):
            raise Undecided("a root of what may be 0")
        return (acb(fmpq(1, index)) * z.log()).exp() ** top
    return acb(_real_root(z.real, index)) ** top


def _real_root(x: arb, index: flint.fmpz) -> arb:
    if x < 0:
        return -_real_root(-x, index)
    if x > 0:
        return x.root(index) if index < 1000 else (x.log() / index).exp()
    widest = arb(x.abs_upper())
    if widest.is_zero():
        return arb(0)
    return arb(0, (widest.log() / index).exp().abs_upper())


def _sum(parts: list[Finite]) -> Finite:
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found


def _product(parts: list[Finite]) -> Finite:
    found = parts[0]
    for part in parts[1:]:
        found = found * part
    return found


def _quotient(parts: list[Finite]) -> Finite:
    if isinstance(parts[1], fmpq):
        if parts[1] == 0:
            raise Undefined("division by zero")
        return _ball(parts[0]) / parts[1]
    return parts[0] / _non_zero(parts[1])


def _extreme(parts: list[Finite], largest: bool) -> acb:
    found, *others = (real(_ball(part)) for part in parts)
    for other in others:
        found = found.max(other) if largest else found.min(other)
    return acb(found)


def _mod(parts: list[Finite]) -> acb:
    value, modulus = _ball(parts[0]), _non_zero(_ball(parts[1]))
    return value - modulus * _whole(real(value / modulus).floor())


def _factorial(parts: list[Finite]) -> acb:
    if isinstance(parts[0], fmpq):
        return acb(parts[0] + 1).gamma()
    raise _not_whole(parts[0])


def _not_whole(z: acb) -> Undecided | Undefined:
    return Undecided("what may be no whole number") if z.contains_integer() else Undefined("no whole number")


def _binomial(parts: list[Finite]) -> Finite:
    upper, lower = parts
    if isinstance(lower, acb):
        raise _not_whole(lower)
    if lower.q != 1:
        raise Undefined("a binomial coefficient of no whole number")
    if lower <= _MAX_PRODUCT:
        found: Finite = fmpq(1 if lower >= 0 else 0)
        for i in range(int(lower.p)):
            found = found * (_ball(upper) - i) / (i + 1)
        return found
    if isinstance(upper, acb) or upper.q != 1 or upper < lower:
        raise TooLarge("a binomial coefficient is too large")
    return acb(upper + 1).gamma() / (acb(lower + 1).gamma() * acb(upper - lower + 1).gamma())


def _whole_only(parts: list[Finite]) -> Finite:
    for part in parts:
        if isinstance(part, acb):
            raise _not_whole(part)
    raise TooLarge("numbers are too large for such an operation")


_SEVERAL: dict[str, Callable[[list[Finite]], Finite]] = {
    **{"add": _sum, "mul": _product, "div": _quotient, "mod": _mod},
    **{"max": lambda parts: _extreme(parts, True), "min": lambda parts: _extreme(parts, False)},
    **{"factorial": _factorial, "binomial": _binomial},
    **dict.fromkeys(("double_factorial", "gcd", "lcm", "phi"), _whole_only),
}
