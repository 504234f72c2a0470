"""Limits on the work and the size of values, checked before anything is computed.

Unreadable
  Undefined   the expression has no value: 1/0, 0^0, a logarithm of 0
  TooLarge    a value or a calculation beyond the limits; the expression may well be defined
  Undecided   the precision at hand does not tell
    NearPole  it cannot be told from undefined: a division by what may be zero
"""

from __future__ import annotations

import flint

from klearbench.judging.expressions.nodes import Unreadable

MAX_BITS = 4_000_000
"""Of one exact value, numerator and denominator together."""
MAX_FACTORIAL = 20_000
"""Largest n whose factorial is computed exactly."""
MAX_TERMS = 20_000
"""Of one sum or product."""
MAX_WORK = 20_000
"""Units of about a microsecond for one evaluation of a tree."""
_STEP = 3
"""Units for one operation on short values."""
_LONG = 16_384
"""Bits from which on the cost of an operation is counted."""


class Undefined(Unreadable):
    """The expression has no value."""


class TooLarge(Unreadable):
    """A value or a calculation is beyond the limits."""


class Undecided(Unreadable):
    """The precision at hand does not tell."""


class NearPole(Undecided):
    """At the precision at hand the expression cannot be told from an undefined one."""


class Work:
    """What one evaluation may still cost."""

    __slots__ = ("left",)

    def __init__(self, units: int = MAX_WORK) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Count units of about a microsecond. Raises TooLarge when they run out."""
        self.left -= units
        if self.left < 0:
            raise TooLarge("too much work")

    def spend_on(self, *values: flint.fmpq) -> None:
        """Count one operation on exact values. Raises TooLarge when their sizes together pass the limits."""
        bits = 0
        for value in values:
            bits += value.height_bits()
        if bits > 2 * MAX_BITS:
            raise TooLarge("an exact value is too large")
        self.spend(_STEP if bits < _LONG else bits // 256)

    def power(self, base: flint.fmpq, exponent: int) -> None:
        """Count a power before it is computed. Raises TooLarge."""
        top, bottom = base.p, base.q
        if abs(top) == 1 and bottom == 1:
            return
        bits = (top.bit_length() * (abs(top) != 1) + bottom.bit_length() * (bottom != 1)) * abs(exponent)
        if bits > MAX_BITS:
            raise TooLarge("a power is too large")
        self.spend(1 if bits < _LONG else bits // (16_384 if abs(top) == 2 and bottom == 1 else 256))

    def factorial(self, n: int) -> None:
        """Count a factorial before it is computed. Raises TooLarge."""
        if n > MAX_FACTORIAL:
            raise TooLarge("a factorial is too large")
        self.spend(1 + n // 10)

    def binomial(self, upper: flint.fmpq, lower: int) -> None:
        """Count a binomial coefficient of a lower number >= 0 before it is computed. Raises TooLarge."""
        size = upper.p.bit_length() + upper.q.bit_length()
        if lower > MAX_FACTORIAL or lower * size > MAX_BITS:
            raise TooLarge("a binomial coefficient is too large")
        self.spend(1 + (lower * size // 60 if upper.q == 1 else lower * (10 + lower * size // 10_000)))
