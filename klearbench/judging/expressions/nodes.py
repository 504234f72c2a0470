"""The tree of an expression. Nothing here evaluates anything."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal


class Unreadable(Exception):
    """The text is no expression that may be evaluated: code, too large, undefined, or not understood."""


@dataclass(frozen=True, slots=True)
class Num:
    """An exact rational; decimals, repeating decimals and mixed numbers are read into it."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Const:
    """A constant."""

    name: Literal["pi", "e", "i", "infinity"]


@dataclass(frozen=True, slots=True)
class Sym:
    r"""A variable, real: `x`, `theta`, `a_1`, `x'`."""

    name: str


@dataclass(frozen=True, slots=True)
class Op:
    """An operation on expressions, by name; the names and numbers of arguments stand in `ARITY`."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Big:
    """A sum or product over an integer variable, or an integral or limit (which only sympy evaluates).

    For an integral without limits both are None; for a limit `low` is the point and `high` None.
    """

    name: Literal["sum", "product", "integral", "limit"]
    var: str
    low: Node | None
    high: Node | None
    body: Node


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of equal length."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Relation:
    r"""A chain `a < b <= c`: one mark between two parts, each of `=`, `<`, `>`, `\le`, `\ge`, `\ne`."""

    parts: tuple[Node, ...]
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cases:
    """A piecewise function: (value, conditions that must all hold); no condition at all is "otherwise"."""

    rows: tuple[tuple[Node, tuple[Relation, ...]], ...]


Node = Num | Const | Sym | Op | Big | Matrix | Cases

ARITY: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("add", "mul"), (2, None)),
    **dict.fromkeys(("neg", "abs", "floor", "ceil", "factorial", "double_factorial", "degree", "conjugate"), (1, 1)),
    **dict.fromkeys(("re", "im", "arg", "sign", "exp", "ln", "det", "transpose", "phi"), (1, 1)),
    **dict.fromkeys(("sin", "cos", "tan", "cot", "sec", "csc"), (1, 1)),
    **dict.fromkeys(("arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc"), (1, 1)),
    **dict.fromkeys(("sinh", "cosh", "tanh", "coth", "arcsinh", "arccosh", "arctanh"), (1, 1)),
    **dict.fromkeys(("div", "pow", "root", "log", "binomial", "mod"), (2, 2)),
    **dict.fromkeys(("gcd", "lcm", "max", "min"), (1, None)),
}
"""Operation -> least and greatest number of arguments (None: any).

`root` is (radicand, index), a square root has index 2; `log` is (base, argument); `degree` marks an angle in degrees;
`phi` is Euler's totient; `det` takes a Matrix.
"""
