"""Assert statements as functional tests: `assert f([1, 2], 3) == 5` becomes the input `[1, 2]` and `3`, the output `5`.

HumanEval and MBPP keep their tests as Python source that calls the submission and compares in one process. Here the
source is only read, in our process, by the syntax tree: nothing of it is compiled or run, and the expected values stay
with the judge. What is understood: asserts on one call of the function (`==`, `is`, `not f(..)`, `abs(f(..) - v) < t`),
assignments and loops of plain values, arithmetic, comprehensions, a few built-in functions, `random.randint` (from a
fixed seed). An argument that is no JSON value is written as a Python literal. Not covered: results that are no JSON
value (a tuple is one, as a list), classes, and any other statement.
"""

from __future__ import annotations

import ast
import operator
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeGuard

from klearbench.suites.cases import Case, NotExpressible

_STEPS = 100_000
_MAX_POWER, _MAX_REPEAT = 64, 10_000
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (abs, float, int, len, list, max, min, range, round, set, sorted, str, sum, tuple)
}
_TOLERANT = ("abs", "math.fabs", "fabs")
_UNWRAPPED = ("tuple", "list", "int")
"""Functions around the call that change nothing of the value that the judge would mind."""


def function_called(source: str) -> ast.Call:
    """The call that the first assert of a module tests: the first one of a function that is not built in, else (a
    function may bear such a name) the first one. Raises NotExpressible.
    """
    calls = [
        node
        for statement in _parse(source).body
        if isinstance(statement, ast.Assert)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    if not calls:
        raise NotExpressible("no assert calls a function")
    return next((call for call in calls if ast.unparse(call.func) not in _FUNCTIONS), calls[0])


def read_asserts(source: str, function: str, *, within: str | None = None, also: Sequence[str] = ()) -> list[Case]:
    """The cases of some asserts, in their order.

    Args:
        source: the tests' source.
        function: the name that the tested function is called by.
        within: the function whose body holds the asserts; None: the module.
        also: other names of the tested function; what only compares it with itself is no test.

    Raises:
        NotExpressible: see the module.
    """
    body: Sequence[ast.stmt] = _parse(source).body
    if within is not None:
        bodies = [node.body for node in body if isinstance(node, ast.FunctionDef) and node.name == within]
        if not bodies:
            raise NotExpressible(f"no function {within!r}")
        body = bodies[0]
    reader = _Reader({function, *also})
    try:
        cases = list(reader.run(body))
    except (ArithmeticError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise NotExpressible(f"a test can't be worked out ({error})") from None
    if not cases:
        raise NotExpressible("no assert tests the function")
    return cases


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NotExpressible(f"the tests are no Python ({error})") from None


class _Reader:
    """Works statements out. `names` are the tested function's."""

    def __init__(self, names: set[str]) -> None:
        self._tested = names
        self._values: dict[str, Any] = {}
        self._steps = 0
        self._random = random.Random(0)

    def run(self, body: Iterable[ast.stmt]) -> Iterator[Case]:
        for statement in body:
            if isinstance(statement, ast.Assert):
                yield from self._assert(statement.test)
            elif isinstance(statement, ast.Assign):
                self._bind(statement.targets[0], self._value(statement.value))
            elif isinstance(statement, ast.For) and not statement.orelse:
                for value in self._value(statement.iter):
                    self._bind(statement.target, value)
                    yield from self.run(statement.body)
            elif not isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass) and not _idle(statement):
                raise NotExpressible(f"its tests hold a statement other than an assert ({type(statement).__name__})")

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._values[target.id] = value
        elif isinstance(target, ast.Tuple):
            for inner, part in zip(target.elts, value, strict=True):
                self._bind(inner, part)
        else:
            raise NotExpressible("its tests change an object")

    def _assert(self, test: ast.expr) -> Iterator[Case]:
        if isinstance(test, ast.Constant):
            if not test.value:
                raise NotExpressible("an assert can never hold")
            return
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield self._case(test.operand, False)
            return
        if not isinstance(test, ast.Compare):
            yield self._case(test, True)
            return
        (comparison,), (right,) = test.ops, test.comparators
        if isinstance(comparison, ast.Eq | ast.Is):
            if not self._same_call(test.left, right):
                yield self._case(test.left, self._value(_unwrapped(right)))
        elif isinstance(comparison, ast.Lt | ast.LtE):
            yield self._near(test.left, float(self._value(right)))
        else:
            raise NotExpressible(f"an assert compares in another way ({type(comparison).__name__})")

    def _case(self, call: ast.expr, expected: Any, tolerance: float | None = None) -> Case:
        call = _unwrapped(call)
        if not self._is_tested(call) or call.keywords:
            raise NotExpressible("an assert is no plain comparison of a call with a value")
        return Case(tuple(self._value(argument) for argument in call.args), expected, tolerance)

    def _near(self, distance: ast.expr, tolerance: float) -> Case:
        """`abs(f(..) - value) < tolerance`."""
        if isinstance(distance, ast.Call) and ast.unparse(distance.func) in _TOLERANT:
            (inside,) = distance.args
            if isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Sub):
                return self._case(inside.left, self._value(inside.right), tolerance)
        raise NotExpressible("an assert bounds something other than the distance of a call and a value")

    def _is_tested(self, node: ast.expr) -> TypeGuard[ast.Call]:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._tested

    def _same_call(self, left: ast.expr, right: ast.expr) -> bool:
        left, right = _unwrapped(left), _unwrapped(right)
        return self._is_tested(left) and self._is_tested(right) and _dump(left.args) == _dump(right.args)

    def _value(self, node: ast.expr) -> Any:
        self._steps += 1
        if self._steps > _STEPS:
            raise NotExpressible("its tests take too long to work out")
        read = _READERS.get(type(node))
        if read is None:
            raise NotExpressible(f"a value can't be worked out ({type(node).__name__})")
        return read(self, node)

    def _name(self, node: ast.Name) -> Any:
        if node.id not in self._values:
            raise NotExpressible("a value is of a type or name that is not known here")
        return self._values[node.id]

    def _binary(self, node: ast.BinOp) -> Any:
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(node.op, ast.Pow) and abs(right) > _MAX_POWER:
            raise NotExpressible("a power is too large")
        if isinstance(node.op, ast.Mult) and any(
            isinstance(a, Sequence) and b > _MAX_REPEAT for a, b in ((left, right), (right, left))
        ):
            raise NotExpressible("a repetition is too long")
        return _OPERATORS[type(node.op)](left, right)

    def _compare(self, node: ast.Compare) -> bool:
        values = [self._value(part) for part in (node.left, *node.comparators)]
        return all(_OPERATORS[type(op)](a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False))

    def _call(self, node: ast.Call) -> Any:
        name = ast.unparse(node.func)
        arguments = [self._value(argument) for argument in node.args]
        if name in ("random.randint", "randint"):
            return self._random.randint(*arguments)
        if name not in _FUNCTIONS or node.keywords:
            raise NotExpressible("a value is made by a call")
        if name == "range" and len(range(*arguments)) > _STEPS:
            raise NotExpressible("a range is too long")
        return _FUNCTIONS[name](*arguments)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        (each,) = node.generators
        made = []
        for value in self._value(each.iter):
            self._bind(each.target, value)
            if all(self._value(condition) for condition in each.ifs):
                made.append(self._value(node.elt))
        return made


def _items(make: Callable[[list[Any]], Any]) -> Callable[[_Reader, Any], Any]:
    return lambda reader, node: make([reader._value(item) for item in node.elts])


_READERS: dict[type[ast.AST], Callable[[_Reader, Any], Any]] = {
    ast.Constant: lambda _, node: node.value,
    ast.List: _items(list),
    ast.Tuple: _items(tuple),
    ast.Set: _items(set),
    ast.Dict: lambda reader, node: {
        reader._value(key): reader._value(value) for key, value in zip(node.keys, node.values, strict=True)
    },
    ast.UnaryOp: lambda reader, node: _UNARY[type(node.op)](reader._value(node.operand)),
    ast.BoolOp: lambda reader, node: (all if isinstance(node.op, ast.And) else any)(map(reader._value, node.values)),
    ast.Name: _Reader._name,
    ast.BinOp: _Reader._binary,
    ast.Compare: _Reader._compare,
    ast.Call: _Reader._call,
    ast.ListComp: _Reader._comprehension,
    ast.GeneratorExp: _Reader._comprehension,
}
"""How each kind of expression is worked out."""


def _idle(statement: ast.stmt) -> bool:
    """A name or a constant alone, such as a stray `print`."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Name | ast.Constant)


def _unwrapped(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and ast.unparse(node.func) in _UNWRAPPED and len(node.args) == 1:
        node = node.args[0]
    return node


def _dump(nodes: Sequence[ast.expr]) -> list[str]:
    return [ast.dump(node) for node in nodes]
