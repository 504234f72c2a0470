"""Whether two expressions have one value at a point: at rising precision, to more bits than any term could hide in."""

from __future__ import annotations

from enum import Enum

import flint

from klearbench.judging.expressions import ballops
from klearbench.judging.expressions.balls import Evaluation, precision, to_ball
from klearbench.judging.expressions.bounds import NearPole, TooLarge, Undecided, Undefined, Work
from klearbench.judging.expressions.exact import Env
from klearbench.judging.expressions.infinite import Infinite, Value
from klearbench.judging.expressions.nodes import Node

FIRST_BITS = 128
_SETTLING_BITS = 640
_SPARE_BITS = 400
"""Agreement this far below the sum of the sizes of all values is equality."""
_MAX_BITS = 2_500_000
_UNDECIDED_STAGES = 4


class Outcome(Enum):
    """What is known about two values; DIFFERENT is proven."""

    EQUAL = "equal"
    DIFFERENT = "different"
    ONE_UNDEFINED = "one_undefined"
    UNDEFINED = "undefined"
    UNDECIDED = "undecided"
    NEAR_POLE = "near_pole"
    """One can't be told from undefined."""
    TOO_LARGE = "too_large"


class Pair:
    """Two trees that are compared at one or more points, and the work that all of it may cost."""

    def __init__(self, one: Node, other: Node, complex_: bool, work: Work, *, real: bool = False) -> None:
        self.trees = (one, other)
        self.complex = complex_
        self.real = real and not complex_
        """Whether a value that is not real counts as undefined: functions of real variables."""
        self.work = work
        self.sign = 0
        """After DIFFERENT: the sign of one - other where both are real, 0 otherwise."""

    def glance(self, env: Env) -> Outcome:
        """One look at a low precision; EQUAL means no difference was seen."""
        return self._at(env, FIRST_BITS)[0]

    def settle(self, env: Env) -> Outcome:
        """A decision by as much precision as the sizes of all values call for."""
        bits, stage = _SETTLING_BITS, 0
        while True:
            outcome, hidden, accuracy = self._at(env, bits)
            needed = hidden + _SPARE_BITS
            if outcome == Outcome.EQUAL and accuracy >= needed:
                return outcome
            if outcome not in (Outcome.EQUAL, Outcome.UNDECIDED, Outcome.NEAR_POLE):
                return outcome
            stage += outcome != Outcome.EQUAL
            if bits >= _MAX_BITS or stage > _UNDECIDED_STAGES:
                return Outcome.UNDECIDED if outcome == Outcome.EQUAL else outcome
            wanted = needed + 64 if bits < needed + 64 else 2 * bits
            bits = min(wanted, 16 * bits, _MAX_BITS)

    def _at(self, env: Env, bits: int) -> tuple[Outcome, int, int]:
        """The outcome at a precision, the bits a term may hide below, and the bits that agree."""
        with precision(bits):
            a, a_hidden = self._value(self.trees[0], env)
            b, b_hidden = self._value(self.trees[1], env)
            hidden = max(a_hidden, b_hidden)
            if isinstance(a, Outcome) or isinstance(b, Outcome):
                return _without_value(a, b), hidden, 0
            if isinstance(a, Infinite) or isinstance(b, Infinite):
                self.sign = _order_of_infinite(a, b)
                return (Outcome.EQUAL if a == b else Outcome.DIFFERENT), hidden, _MAX_BITS + hidden
            if isinstance(a, flint.fmpq) and isinstance(b, flint.fmpq):
                self.sign = (a > b) - (a < b)
                return (Outcome.DIFFERENT if self.sign else Outcome.EQUAL), hidden, _MAX_BITS + hidden
            x, y = to_ball(a), to_ball(b)
            if x.overlaps(y):
                return Outcome.EQUAL, hidden, _agreement(x, y)
            self.sign = 0
            if x.imag.is_zero() and y.imag.is_zero():
                self.sign = 1 if x.real > y.real else -1
            return Outcome.DIFFERENT, hidden, 0

    def ratio(self, env: Env, bits: int) -> flint.acb | None:
        """The quotient of both values; None where it is not found, or one may be zero."""
        with precision(bits):
            a, b = (self._value(tree, env)[0] for tree in self.trees)
            if isinstance(a, Outcome | Infinite) or isinstance(b, Outcome | Infinite):
                return None
            x, y = to_ball(a), to_ball(b)
            return None if x.contains(0) or y.contains(0) else x / y

    def _value(self, node: Node, env: Env) -> tuple[Value | Outcome, int]:
        evaluation = Evaluation(env, self.complex, self.work)
        try:
            value = evaluation.value(node)
            if self.real and isinstance(value, flint.acb) and not value.imag.contains(0):
                return Outcome.UNDEFINED, evaluation.hidden
            return value, evaluation.hidden
        except Undefined:
            return Outcome.UNDEFINED, evaluation.hidden
        except Undecided as error:
            return (Outcome.NEAR_POLE if isinstance(error, NearPole) else Outcome.UNDECIDED), evaluation.hidden
        except TooLarge:
            return Outcome.TOO_LARGE, evaluation.hidden


def _order_of_infinite(a: Value, b: Value) -> int:
    """The order of two values of which at least one is infinite; 0 where the other one is not real."""
    if any(isinstance(value, flint.acb) and not value.imag.is_zero() for value in (a, b)):
        return 0
    left, right = (value.sign if isinstance(value, Infinite) else 0 for value in (a, b))
    return int(left > right) - int(left < right)


def _without_value(a: Value | Outcome, b: Value | Outcome) -> Outcome:
    found = {value for value in (a, b) if isinstance(value, Outcome)}
    if found == {Outcome.UNDEFINED}:
        return Outcome.UNDEFINED if a == b else Outcome.ONE_UNDEFINED
    return next(
        one for one in (Outcome.NEAR_POLE, Outcome.TOO_LARGE, Outcome.UNDECIDED, Outcome.UNDEFINED) if one in found
    )


def _agreement(x: flint.acb, y: flint.acb) -> int:
    """To how many bits two overlapping balls agree: of their size, or after the point where they are small."""
    return max(ballops.magnitude(x), 0) - ballops.exponent((x - y).abs_upper())
