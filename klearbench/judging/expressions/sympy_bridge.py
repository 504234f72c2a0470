"""Integrals, limits and infinite sums, which only sympy evaluates. It may be slow: a worker that is killed runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klearbench.judging.expressions.bounds import TooLarge, Undefined, Work
from klearbench.judging.expressions.exact import rational
from klearbench.judging.expressions.nodes import Big, Const, Node, Num, Op, Sym, Unreadable
from klearbench.judging.expressions.samples import natural_names, points, spread
from klearbench.judging.expressions.shape import shape
from klearbench.judging.expressions.tree import children, symbols

_INCOMPARABLE = (TypeError, ValueError, AttributeError, NotImplementedError, ArithmeticError, KeyError, IndexError)
"""sympy's ways of saying that it can't evaluate something."""
_DIGITS = 50
_ENOUGH = 4
_MOST = 6


def needed(*nodes: Node) -> bool:
    """Whether trees have a part that only sympy evaluates."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Op):
            waiting += node.args
        elif isinstance(node, Big) and (node.name in ("integral", "limit") or _is_infinite(node.low, node.high)):
            return True
        elif not isinstance(node, Num | Sym | Const):
            waiting += children(node)
    return False


def _is_infinite(*limits: Node | None) -> bool:
    return any(limit in (Const("infinity"), Op("neg", (Const("infinity"),))) for limit in limits)


def equal(gold: Node, answer: Node) -> bool:
    """Whether two expressions are equal, as sympy evaluates them. Raises Unreadable where it doesn't."""
    if any(_has_antiderivative(tree) for tree in (gold, answer)):
        if shape(gold) == shape(answer):
            return True
        raise Unreadable("an integral without limits")
    try:
        one, other = _evaluated(gold), _evaluated(answer)
    except Undefined:
        return False
    if any(_is_undefined(value) for value in (one, other)):
        return False
    if one == other:
        return True
    names = sorted(symbols(gold) | symbols(answer))
    if not names:
        return _agree(one, other) is True
    agreed = 0
    for point in points(names, natural_names(gold) | natural_names(answer), spread(gold, answer)):
        env = {_symbol(name): _rational(value.p, value.q) for name, value in point.items()}
        found = _agree(one.subs(env), other.subs(env))
        if found is False:
            return False
        agreed += found is True
        if agreed == _MOST:
            break
    return agreed >= _ENOUGH


def _has_antiderivative(node: Node) -> bool:
    if isinstance(node, Big) and node.name == "integral" and node.low is None:
        return True
    return any(_has_antiderivative(child) for child in children(node))


def _evaluated(node: Node) -> Any:
    import sympy

    try:
        found = _converted(node)
        found = found.doit()
    except _INCOMPARABLE as error:
        raise Unreadable(f"sympy: {type(error).__name__}") from None
    if found.has(sympy.Limit) or found.has(sympy.AccumBounds):
        raise Unreadable("a limit that sympy does not find")
    return found


def _is_undefined(value: Any) -> bool:
    import sympy

    return bool(value.has(sympy.nan, sympy.zoo))


def _agree(one: Any, other: Any) -> bool | None:
    """Whether two constants agree to 50 digits; None where one is undefined or not found."""
    import sympy

    if one.is_infinite or other.is_infinite:
        return bool(one == other)
    try:
        a, b = (sympy.N(side, _DIGITS + 20) for side in (one, other))
    except _INCOMPARABLE:
        return None
    unfinished = (sympy.nan, sympy.zoo, sympy.oo, sympy.Integral, sympy.Sum, sympy.Product)
    if any(not side.is_number or side.has(*unfinished) for side in (a, b)):
        return None
    scale = max(abs(a), abs(b), sympy.Float(1))
    return bool(abs(a - b) <= scale * sympy.Float(10) ** -_DIGITS)


def _symbol(name: str) -> Any:
    import sympy

    return sympy.Symbol(name, real=True)


def _rational(top: Any, bottom: Any) -> Any:
    import sympy

    return sympy.Rational(int(top), int(bottom))


def _converted(node: Node) -> Any:
    """The tree as a sympy object. Raises Unreadable for what is too large or has no counterpart."""
    import sympy

    if isinstance(node, Sym):
        return _symbol(node.name)
    if isinstance(node, Const):
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "infinity": sympy.oo}[node.name]
    if isinstance(node, Num | Op) and not symbols(node) and not needed(node):
        value = rational(node, {}, Work())
        if value is not None:
            return _rational(value.p, value.q)
    if isinstance(node, Op):
        return _operation(node.name, [_converted(arg) for arg in node.args])
    if isinstance(node, Big):
        return _big(node)
    raise Unreadable("a matrix or a piecewise function in an integral")


def _big(node: Big) -> Any:
    import sympy

    variable = sympy.Symbol(node.var, real=True) if node.name != "sum" else sympy.Symbol(node.var, integer=True)
    body = _converted(node.body).subs(_symbol(node.var), variable)
    low = _converted(node.low) if node.low is not None else None
    if node.name == "limit":
        return sympy.limit(body, variable, low, "+-" if low not in (sympy.oo, -sympy.oo) else "-")
    high = _converted(node.high) if node.high is not None else None
    return {"sum": sympy.Sum, "product": sympy.Product, "integral": sympy.Integral}[node.name](
        body, (variable, low, high)
    )


def _operation(name: str, args: list[Any]) -> Any:
    import sympy

    table: dict[str, Callable[..., Any]] = {
        **{"add": sympy.Add, "mul": sympy.Mul, "neg": lambda x: -x, "div": lambda x, y: x / y, "abs": sympy.Abs},
        **{"pow": _power, "root": lambda x, n: _power(x, 1 / n), "log": lambda b, x: sympy.log(x) / sympy.log(b)},
        **{"ln": sympy.log, "exp": sympy.exp, "floor": sympy.floor, "ceil": sympy.ceiling, "sign": sympy.sign},
        **{"factorial": sympy.factorial, "binomial": sympy.binomial, "degree": lambda x: x * sympy.pi / 180},
        **{"max": sympy.Max, "min": sympy.Min, "re": sympy.re, "im": sympy.im, "arg": sympy.arg, "mod": sympy.Mod},
        **{"conjugate": sympy.conjugate, "arcsin": sympy.asin, "arccos": sympy.acos, "arctan": sympy.atan},
        **{"arcsinh": sympy.asinh, "arccosh": sympy.acosh, "arctanh": sympy.atanh, "coth": sympy.coth},
        **{"arccot": lambda x: sympy.pi / 2 - sympy.atan(x), "arcsec": sympy.asec, "arccsc": sympy.acsc},
        **{name: getattr(sympy, name) for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
    }
    if name not in table:
        raise Unreadable(f"{name} in an integral or limit")
    return table[name](*args)


def _power(base: Any, exponent: Any) -> Any:
    if base.is_Rational and exponent.is_Rational and abs(exponent) > 10_000:
        raise TooLarge("a power is too large")
    if base == 0 and exponent.is_number and not exponent.is_positive:
        raise Undefined("a power of zero")
    if base.is_Rational and base < 0 and exponent.is_Rational and exponent.q % 2 == 1:
        return (-1) ** (exponent.p % 2) * (-base) ** exponent
    return base**exponent
