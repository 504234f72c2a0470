"""Enclosures of values by balls of complex numbers, exact rationals where the operations stay rational.

A logarithm of a negative number, and an inverse function outside of its real domain, is defined only where complex
numbers appear: i, Re, Im, arg or a conjugate. An even root of a negative number is imaginary everywhere, an odd one is
real. arccot has values between 0 and pi.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction

import flint

from klearbench.judging.expressions import ballops
from klearbench.judging.expressions.angles import pi_multiple, trigonometric
from klearbench.judging.expressions.ballops import Finite
from klearbench.judging.expressions.bounds import NearPole, TooLarge, Undecided, Undefined, Work
from klearbench.judging.expressions.exact import Env, bounds_of, rational, special
from klearbench.judging.expressions.exactops import apply, as_rational
from klearbench.judging.expressions.infinite import Infinite, Value, saturation, with_infinity
from klearbench.judging.expressions.nodes import Big, Cases, Const, Matrix, Node, Num, Op, Relation, Sym, Unreadable
from klearbench.judging.expressions.tree import children

_TWO = Num(Fraction(2))
_LOCK = threading.RLock()
_MAX_MATRIX = 12
_STEP = 4  # units of work for one operation, whatever it is
_CACHED_BITS = 4000
"""Up to this precision flint keeps the constants."""
_LIKE_ARGUMENTS = frozenset(("add", "mul", "div", "neg", "abs", "conjugate", "max", "min"))
"""Operations whose value is of no other size than the sizes of the arguments together."""
_GROWING = frozenset(("pow", "exp", "factorial", "binomial", "sinh", "cosh", "mul"))
"""Operations that have no poles, but may pass the largest value."""
_FLAT = frozenset(("sin", "cos", "sec", "csc", "cosh"))
_SPECIAL = frozenset(("pow", "ln", "log"))
_COMPLEX = frozenset(("re", "im", "arg", "conjugate"))


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at a precision. flint's precision belongs to the whole process, so only one thread at a time may."""
    with _LOCK:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = before


def ball(node: Node, bits: int, point: Mapping[str, Fraction] | None = None) -> flint.acb | None:
    """A rigorous enclosure at a precision; None where the value is undefined, infinite or not found.

    `point` gives the values of the variables. Raises Unreadable for a variable without value, or too much work.
    """
    env = {name: as_rational(value) for name, value in (point or {}).items()}
    with precision(bits):
        try:
            found = Evaluation(env, is_complex(node)).value(node)
        except (Undefined, Undecided):
            return None
        return None if isinstance(found, Infinite) else to_ball(found)


def to_ball(value: flint.fmpq | flint.acb) -> flint.acb:
    """A finite value as a ball."""
    return value if isinstance(value, flint.acb) else flint.acb(value)


def is_complex(*nodes: Node) -> bool:
    """Whether complex numbers appear."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Op):
            if node.name in _COMPLEX or (node.name == "root" and _is_imaginary(node)):
                return True
            waiting += node.args
        elif isinstance(node, Const):
            if node.name == "i":
                return True
        elif not isinstance(node, Num | Sym):
            waiting += children(node)
    return False


def _is_imaginary(node: Op) -> bool:
    """Whether a root is written of a negative number, as in a complex constant."""
    radicand = node.args[0]
    if node.args[1] != _TWO:
        return False
    if isinstance(radicand, Op) and radicand.name == "neg":
        radicand = radicand.args[0]
        return isinstance(radicand, Num) and radicand.value > 0
    return isinstance(radicand, Num) and radicand.value < 0


class Evaluation:
    """Evaluates trees at one point, at the precision that is set in flint.

    Every method raises Undefined, Undecided (more bits may help) or TooLarge.
    """

    __slots__ = ("bits", "complex", "constants", "env", "hidden", "work")

    def __init__(self, env: Env, complex_: bool, work: Work | None = None) -> None:
        self.env = env
        self.complex = complex_
        self.work = work or Work()
        self.bits = flint.ctx.prec
        self.constants: dict[str, Value] = {}
        self.hidden = 0
        """How many bits below the leading ones a term may begin: the sizes of all values but sums and products."""

    def value(self, node: Node) -> Value:
        """The value of a tree."""
        if isinstance(node, Num):
            return self._met(as_rational(node.value))
        if isinstance(node, Op):
            return self._operation(node)
        if isinstance(node, Const):
            return self._constant(node.name)
        if isinstance(node, Sym):
            if node.name not in self.env:
                raise Unreadable(f"the variable {node.name} has no value")
            return self.env[node.name]
        if isinstance(node, Big):
            return self._big(node)
        if isinstance(node, Cases):
            return self._cases(node)
        raise Undefined("a matrix is no number")

    def _constant(self, name: str) -> Value:
        if name not in self.constants:
            self.work.spend(1 + (self.bits // 40 if self.bits > _CACHED_BITS else 0))
            self.constants[name] = _constant(name)
        return self.constants[name]

    def _operation(self, node: Op) -> Value:
        self.work.spend(_STEP)
        if node.name == "det":
            return self._determinant(node.args[0])
        if node.name in ballops.TRIGONOMETRIC:
            at_multiple = self._trigonometric(node)
            if at_multiple is not None:
                return at_multiple
        before = self.hidden
        parts = [self.value(arg) for arg in node.args]
        if node.name in _FLAT:  # cos(x) differs from 1 by x^2 / 2
            self.hidden += self.hidden - before
        balls = infinite = 0
        for part in parts:
            balls += isinstance(part, flint.acb)
            infinite += isinstance(part, Infinite)
        found: Value | None = None
        if not balls and not infinite:
            found = self._exact(node.name, parts)
        elif node.name in _SPECIAL:
            exact = [part if isinstance(part, flint.fmpq) else None for part in parts]
            found = special(node, exact, self.env, self.work)
        if found is None:
            if infinite:
                return with_infinity(node.name, parts)
            found = self._by_balls(node.name, parts)
        return found if node.name in _LIKE_ARGUMENTS else self._met(found)

    def _by_balls(self, name: str, parts: list[Finite]) -> Finite:
        self.work.spend(ballops.cost(name, self.bits))
        found = ballops.apply(name, parts, self.complex)
        self.hidden += saturation(name, parts[0])
        if isinstance(found, flint.acb) and not found.is_finite():
            if name in _GROWING:
                raise TooLarge("a value is too large")
            raise NearPole(f"{name} near a pole")
        return found

    def _exact(self, name: str, parts: list[flint.fmpq]) -> flint.fmpq | None:
        try:
            return apply(name, parts, self.work)
        except TooLarge:
            return None

    def _met(self, value: flint.fmpq | flint.acb) -> flint.fmpq | flint.acb:
        if isinstance(value, flint.fmpq):
            self.hidden += value.p.bit_length() + value.q.bit_length()
        else:
            self.hidden += abs(ballops.magnitude(value))
        return value

    def _trigonometric(self, node: Op) -> Value | None:
        turn = pi_multiple(node.args[0], lambda part: rational(part, self.env, self.work))
        if turn is None:
            return None
        self.work.spend(ballops.cost(node.name, self.bits))
        exact = trigonometric(node.name, turn)
        return self._met(ballops.at_turn(node.name, turn) if exact is None else exact)

    def _big(self, node: Big) -> Value:
        if node.name not in ("sum", "product") or node.low is None or node.high is None:
            raise Undecided("a limit or an integral is not evaluated by balls")
        low, high = self.value(node.low), self.value(node.high)
        if isinstance(low, Infinite) or isinstance(high, Infinite):
            raise Undecided("an infinite sum is not evaluated by balls")
        if not isinstance(low, flint.fmpq) or not isinstance(high, flint.fmpq):
            raise Undecided("a sum with limits that are no plain numbers")
        exact = self._exact_sum(node)
        if exact is not None:
            return self._met(exact)
        outer = self.env
        inner = dict(outer)
        found: Value = flint.fmpq(0 if node.name == "sum" else 1)
        name = "add" if node.name == "sum" else "mul"
        try:
            self.env = inner
            for k in bounds_of(low, high):
                inner[node.var] = flint.fmpq(k)
                found = self._combined(name, found, self.value(node.body))
        finally:
            self.env = outer
        return found

    def _exact_sum(self, node: Big) -> flint.fmpq | None:
        """The sum as a rational number, for half of the work that is left; None when it is none or takes more."""
        work = Work(self.work.left // 2)
        try:
            return rational(node, self.env, work)
        except TooLarge:
            return None
        finally:
            self.work.left -= self.work.left // 2 - max(work.left, 0)

    def _combined(self, name: str, one: Value, other: Value) -> Value:
        if isinstance(one, Infinite) or isinstance(other, Infinite):
            raise Undefined("infinity as a term")
        if isinstance(one, flint.fmpq) and isinstance(other, flint.fmpq) and one.q.bit_length() < self.bits:
            return apply(name, [one, other], self.work)
        self.work.spend(1 + self.bits // 300)
        return ballops.apply(name, [one, other], self.complex)

    def _determinant(self, node: Node) -> Value:
        if not isinstance(node, Matrix) or len(node.rows) != len(node.rows[0]):
            raise Undefined("the determinant of no square matrix")
        size = len(node.rows)
        if size > _MAX_MATRIX:
            raise TooLarge("a matrix is too large")
        entries = [self.value(entry) for row in node.rows for entry in row]
        if any(isinstance(entry, Infinite) for entry in entries):
            raise Undefined("infinity in a matrix")
        self.work.spend(size**3 * (1 + self.bits // 300))
        if all(isinstance(entry, flint.fmpq) for entry in entries):
            return self._met(flint.fmpq_mat(size, size, entries).det())
        return self._met(flint.acb_mat(size, size, [to_ball(entry) for entry in entries]).det())

    def _cases(self, node: Cases) -> Value:
        for value, conditions in node.rows:
            if all(self.holds(condition) for condition in conditions):
                return self.value(value)
        raise Undefined("no row of a piecewise function applies")

    def holds(self, relation: Relation) -> bool:
        """Whether a chain of relations holds."""
        parts = relation.parts
        return all(
            self._holds(left, mark, right) for left, mark, right in zip(parts, relation.marks, parts[1:], strict=False)
        )

    def _holds(self, left: Node, mark: str, right: Node) -> bool:
        found = 0 if left == right else self.compared(self.value(left), self.value(right))
        return _MARKS[mark](found)

    def compared(self, one: Value, other: Value) -> int:
        """-1, 0 or 1 for real or infinite values. Raises Undefined for others."""
        if isinstance(one, Infinite) or isinstance(other, Infinite):
            left, right = (v.sign if isinstance(v, Infinite) else 0 for v in (one, other))
            return (left > right) - (left < right)
        if isinstance(one, flint.fmpq) and isinstance(other, flint.fmpq):
            return int(one > other) - int(one < other)
        x, y = ballops.real(to_ball(one)), ballops.real(to_ball(other))
        if x < y:
            return -1
        if x > y:
            return 1
        raise Undecided("two values are too close")


_MARKS: dict[str, Callable[[int], bool]] = {
    **{"<": lambda sign: sign < 0, ">": lambda sign: sign > 0, "=": lambda sign: sign == 0},
    **{r"\le": lambda sign: sign <= 0, r"\ge": lambda sign: sign >= 0, r"\ne": lambda sign: sign != 0},
}


def _constant(name: str) -> Value:
    if name == "pi":
        return flint.acb.pi()
    if name == "e":
        return flint.acb(flint.arb.const_e())
    return flint.acb(0, 1) if name == "i" else Infinite(1)
