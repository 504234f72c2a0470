"""Infinity as a value, and the operations on it that have a meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import flint

from klearbench.judging.expressions import ballops
from klearbench.judging.expressions.ballops import Finite
from klearbench.judging.expressions.bounds import Undecided, Undefined


@dataclass(frozen=True, slots=True)
class Infinite:
    """Plus or minus infinity."""

    sign: int


Value: TypeAlias = Finite | Infinite


def _sign(value: Value) -> int:
    """The sign of a real or infinite value that is not zero."""
    if isinstance(value, Infinite):
        return value.sign
    exact = isinstance(value, flint.fmpq)
    x = value if exact else ballops.real(value)
    if x > 0 or x < 0:
        return 1 if x > 0 else -1
    if exact:
        raise Undefined("infinity times zero")
    raise Undecided("the sign of a factor of infinity")


def saturation(name: str, argument: Finite) -> int:
    """How many bits below its limit a function may be that tends to one: tanh(1000) is 1 but for the 2885th bit."""
    if name not in ("tanh", "coth"):
        return 0
    exact = isinstance(argument, flint.fmpq)
    bits = (abs(argument.p) // argument.q).bit_length() if exact else ballops.magnitude(argument)
    return 3 << min(max(bits, 0), 24)


def with_infinity(name: str, parts: list[Value]) -> Value:
    """Operations on infinity that have a meaning. Raises Undefined for the others."""
    if name == "neg" and isinstance(parts[0], Infinite):
        return Infinite(-parts[0].sign)
    if name == "abs":
        return Infinite(1)
    if name == "add":
        signs = {part.sign for part in parts if isinstance(part, Infinite)}
        if len(signs) == 1:
            return Infinite(signs.pop())
    if name == "mul":
        sign = 1
        for part in parts:
            sign *= _sign(part)
        return Infinite(sign)
    if name == "div" and not isinstance(parts[1], Infinite):
        return Infinite(_sign(parts[0]) * _sign(parts[1]))
    raise Undefined(f"{name} of infinity")
