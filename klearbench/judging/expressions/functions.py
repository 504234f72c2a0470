"""Functions with and without brackets, roots, fractions, and sums, integrals and limits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from klearbench.judging.expressions import names, symbols
from klearbench.judging.expressions.nodes import Big, Const, Matrix, Node, Num, Op, Sym, Unreadable
from klearbench.judging.expressions.reader import Reader, is_plain_integer, negated, product

_TEN = Num(Fraction(10))
_INTO_ARGUMENT = frozenset(("frac", "sqrt", "cbrt", "binom"))


def apply(reader: Reader) -> Node:
    """The function that stands here with its arguments."""
    token = reader.take()
    name = token.text
    if name == "frac":
        return _fraction(reader)
    if name == "binom":
        return Op("binomial", (_tex_argument(reader), _tex_argument(reader)))
    if name in ("sqrt", "cbrt"):
        return _root(reader, Num(Fraction(3 if name == "cbrt" else 2)), plain=reader.text[token.start] != "\\")
    if name == "overline":
        return _conjugate(_tex_argument(reader))
    if name in names.LISTED:
        if reader.kind not in ("(", "[", "{", r"\{"):
            raise Unreadable(f"{name} without brackets")
        return Op(name, reader.arguments())
    if name in names.BRACKETED:
        if reader.kind not in ("(", "["):
            raise Unreadable(f"{name} without brackets")
        return Op(name, (reader.group(),))
    if name == "log" and is_plain_integer(reader.token) and reader.adjacent() and reader.kind_after(1) == "(":
        raise Unreadable("a call of a name with digits")
    return _named(reader, name)


def _named(reader: Reader, name: str) -> Node:
    r"""A function whose brackets may be left out, with what may stand before its argument: `\log_2 8`, `\sin^2 x`."""
    base: Node | None = None
    power: Node | None = None
    while reader.kind in ("_", "^"):
        if reader.kind == "_" and name == "log" and base is None:
            base = _base(reader)
        elif reader.accept("^") and power is None:
            power = reader.exponent(subscripts=False)
        else:
            raise Unreadable(f"a script of {name}")
    if power == Num(Fraction(-1)):
        if name not in names.INVERSE:
            raise Unreadable(f"an inverse of {name}")
        name, power = names.INVERSE[name], None
    argument = _argument(reader, name)
    if name == "det" and not isinstance(argument, Matrix):
        raise Unreadable("the determinant of no matrix")
    node = Op("log", (base or _TEN, argument)) if name in ("log", "lg") else Op(name, (argument,))
    return node if power is None else Op("pow", (node, power))


def _base(reader: Reader) -> Node:
    r"""The base of a logarithm. `\log_28` is log of 8 to base 2, but `\log_10 x` has base 10."""
    digits = reader.tokens[reader.at + 1] if reader.kind_after(1) != "stop" else reader.token
    if is_plain_integer(digits) and len(digits.text) > 1:
        reader.at += 1
        if reader.kind_after(1) in ("letter", "function", "number", "(", "[", "{", "|"):
            return symbols.number(reader, grouped=False)
        return _first_digit(reader)
    return symbols.lower_script(reader)


def _argument(reader: Reader, name: str) -> Node:
    """What a function applies to: a bracket, or the product up to a sign, a function or a bracket after a letter."""
    if reader.kind in ("(", "["):
        return reader.group()
    if reader.kind == "{":
        return reader.postfix(reader.group())
    negative = reader.signs()
    factors = [reader.operand()]
    while _continues(reader, factors):
        factors.append(reader.operand())
    argument = product(factors)
    if name in names.TRIG and factors[-1] == Const("pi") and reader.kind == "/" and reader.kind_after(1) == "number":
        reader.at += 1
        argument = Op("div", (argument, reader.factor()))
    return negated(argument) if negative else argument


def _continues(reader: Reader, factors: list[Node]) -> bool:
    kind = reader.kind
    if kind in ("big", "begin", "|") or (kind == "function" and reader.token.text not in _INTO_ARGUMENT):
        return False
    if kind in ("(", "[") and not all(isinstance(f, Num) or f == Const("pi") for f in factors):
        return False
    if isinstance(factors[0], Op) and factors[0].name in names.SIMPLE:
        return False
    return reader.continues()


def _fraction(reader: Reader) -> Node:
    top, bottom = _tex_argument(reader), _tex_argument(reader)
    d = Sym("d")
    if isinstance(bottom, Op) and bottom.name == "mul" and bottom.args[0] == d:
        over = top.args[0] if isinstance(top, Op) and top.name in ("mul", "pow") else top
        if over == d:
            raise Unreadable("a derivative")
    return Op("div", (top, bottom))


def _tex_argument(reader: Reader) -> Node:
    """One argument of a command: a group, one digit, one letter, or a command with its own arguments."""
    if reader.kind == "{":
        return reader.group()
    if is_plain_integer(reader.token):
        return _first_digit(reader)
    if reader.kind == "letter":
        return symbols.bare(reader)
    if reader.kind == "function" and reader.token.text in _INTO_ARGUMENT:
        return _nested(reader)
    raise reader.unexpected()


def _nested(reader: Reader) -> Node:
    r"""A command as an argument, `\sqrt\sqrt2`: it has no brackets that would count as nesting."""
    reader.nest()
    node = reader.atom()
    reader.nested -= 1
    return node


def _first_digit(reader: Reader) -> Node:
    """The first digit of the number that stands here; the others stay."""
    token = reader.token
    if len(token.text) == 1:
        reader.at += 1
    else:
        reader.tokens[reader.at] = replace(token, text=token.text[1:], start=token.start + 1)
    return Num(Fraction(int(token.text[0])))


def _root(reader: Reader, index: Node, *, plain: bool) -> Node:
    r"""A root; a round bracket holds all of the radicand, after the command too."""
    if reader.kind == "[":
        index = reader.group()
    if reader.kind == "(":
        return Op("root", (reader.group(), index))
    if plain and reader.kind == "number":
        return Op("root", (symbols.number(reader, grouped=not reader.in_list), index))
    if plain and reader.kind == "letter":
        return Op("root", (symbols.symbol(reader), index))
    return Op("root", (_tex_argument(reader), index))


def _conjugate(node: Node) -> Node:
    """A bar over a variable or a complex expression; over digits or letters side by side it may be a numeral."""
    letters = node.args if isinstance(node, Op) and node.name == "mul" else (node,)
    bare = all(isinstance(part, Num | Sym | Const) for part in letters)
    if bare and not isinstance(node, Sym) and Const("i") not in letters:
        raise Unreadable("a bar over digits or letters")
    return Op("conjugate", (node,))


def big(reader: Reader) -> Node:
    """A sum, product, integral or limit with all of the term after it."""
    name = reader.take().text
    if name == "integral":
        return _integral(reader)
    if name == "limit":
        variable, low = _bound_variable(reader, "->")
        return Big("limit", variable, low, None, _body(reader, variable))
    high: Node | None = None
    if reader.accept("^"):
        high = _limit(reader)
    variable, low = _bound_variable(reader, "mark")
    if high is None:
        reader.expect("^")
        high = _limit(reader)
    return Big("sum" if name == "sum" else "product", variable, low, high, _body(reader, variable))


def _body(reader: Reader, variable: str) -> Node:
    reader.bound.append(variable)
    reader.nest()
    body = reader.term()
    reader.nested -= 1
    reader.bound.pop()
    return body


def _bound_variable(reader: Reader, mark: str) -> tuple[str, Node]:
    r"""`_{k=1}` or `_{x\to0}`: the variable and where it begins."""
    reader.expect("_")
    reader.expect("{")
    name = reader.token
    if name.kind != "letter":
        raise reader.unexpected()
    variable = symbols.symbol(reader)
    sign = reader.take()
    if sign.kind != mark or (mark == "mark" and sign.text != "="):
        raise Unreadable("a range that is not from a start to an end")
    low = reader.apart(reader.content)
    reader.expect("}")
    return variable.name if isinstance(variable, Sym | Const) else name.text, low


def _limit(reader: Reader) -> Node:
    """A limit of a sum or integral; several digits without braces are unclear."""
    if is_plain_integer(reader.token) and len(reader.token.text) > 1:
        raise Unreadable("several digits as a limit without braces")
    return reader.script()


def _integral(reader: Reader) -> Node:
    low: Node | None = None
    high: Node | None = None
    for _ in range(2):
        if low is None and reader.accept("_"):
            low = _limit(reader)
        elif high is None and reader.accept("^"):
            high = _limit(reader)
    if (low is None) != (high is None):
        raise Unreadable("an integral with one limit")
    reader.integrals += 1
    reader.nest()
    body: Node = Num(Fraction(1)) if reader.at_differential() else reader.content()
    if not reader.at_differential():
        raise Unreadable("an integral without its variable")
    reader.integrals -= 1
    reader.nested -= 1
    reader.at += 1
    return Big("integral", reader.take().text, low, high, body)
