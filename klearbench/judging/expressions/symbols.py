"""Numbers, variables with their subscripts and primes, and what is written with such scripts."""

from __future__ import annotations

from klearbench.judging.expressions.nodes import Node, Num, Op, Sym, Unreadable
from klearbench.judging.expressions.reader import Reader, integer_value, is_plain_integer, letter
from klearbench.judging.expressions.tokens import decimal

_COMBINATIONS = "C"


def number(reader: Reader, *, grouped: bool) -> Node:
    """The number that stands here, with its thousands separators where these may stand."""
    token = reader.take()
    if token.node is not None:
        return token.node
    digits = token.text
    if grouped and digits.isdigit() and len(digits) <= 3 and digits[0] != "0":
        while reader.kind == "," and reader.adjacent() and reader.kind_after(1) == "number" and "." not in digits:
            group = reader.tokens[reader.at + 1]
            if group.start != reader.token.end or len(group.text.partition(".")[0]) != 3:
                break
            digits += group.text
            reader.at += 2
    return Num(decimal(digits))


def bare(reader: Reader) -> Node:
    """The letter that stands here, without scripts."""
    return letter(reader.take().text, reader.bound)


def symbol(reader: Reader) -> Node:
    """The variable or constant that stands here, or what its scripts or brackets make of it."""
    token = reader.take()
    name = token.text
    if reader.kind == "(":
        if name == _COMBINATIONS and reader.at in reader.lists:
            return _binomial(reader)
        if name == "phi" and _is_integer_in_brackets(reader):
            return Op("phi", (reader.group(),))
    primes = _primes(reader)
    if reader.kind == "_":
        start = reader.at
        name = _with_subscript(reader, name)
        if token.text == _COMBINATIONS and reader.kind == "^" and not primes:
            after, reader.at = reader.at, start
            chosen = _combination_of(reader)
            if chosen is not None:
                return chosen
            reader.at = after
        primes += _primes(reader)
    if name == token.text and not primes:
        return letter(name, reader.bound)
    if token.text == "infinity":
        raise Unreadable("infinity with a script")
    return Sym(name + primes)


def _binomial(reader: Reader) -> Node:
    arguments = reader.arguments()
    if len(arguments) != 2:
        raise Unreadable("a binomial coefficient takes two numbers")
    return Op("binomial", arguments)


def _is_integer_in_brackets(reader: Reader) -> bool:
    return is_plain_integer(reader.tokens[reader.at + 1]) and reader.kind_after(2) == ")"


def _primes(reader: Reader) -> str:
    r"""The primes that stand here, as `'` or `^\prime`."""
    found = ""
    while True:
        if reader.accept("'"):
            found += "'"
        elif reader.kind == "^" and reader.kind_after(1) == "prime":
            reader.at += 2
            found += "'"
        elif reader.kind == "^" and reader.kind_after(1) == "{" and reader.kind_after(2) == "prime":
            reader.at += 2
            while reader.accept("prime"):
                found += "'"
            reader.expect("}")
        else:
            return found


def _with_subscript(reader: Reader, name: str) -> str:
    """The name with the subscript that stands here; `a_{1}` is spelled `a_1`, and `a_\\alpha` is `a_{alpha}`."""
    reader.expect("_")
    if not reader.accept("{"):
        token = reader.take()
        if token.kind not in ("letter", "function", "word") and not is_plain_integer(token):
            raise Unreadable("a subscript that is no name")
        return _subscripted(name, token.text)
    parts: list[str] = []
    depth = 1
    while True:
        token = reader.take()
        depth += (token.kind == "{") - (token.kind == "}")
        if token.kind == "stop":
            raise Unreadable("unbalanced brackets")
        if depth == 0:
            break
        if token.kind == "number" and token.node is not None:
            raise Unreadable("a subscript that is no name")
        if token.kind not in ("{", "}"):
            parts.append(token.text)
    if not parts:
        raise Unreadable("an empty subscript")
    return _subscripted(name, "".join(parts))


def _subscripted(name: str, subscript: str) -> str:
    return f"{name}_{subscript}" if len(subscript) == 1 or subscript.isdigit() else f"{name}_{{{subscript}}}"


def _combination_of(reader: Reader) -> Node | None:
    """`C_5^2` as a binomial coefficient; None where it can only be the square of a variable C_1."""
    top = lower_script(reader)
    reader.expect("^")
    return _chosen(top, reader.script())


def _chosen(top: Node, bottom: Node) -> Node | None:
    n, k = integer_value(top), integer_value(bottom)
    return None if n is not None and k is not None and not 0 <= k <= n else Op("binomial", (top, bottom))


def lower_script(reader: Reader) -> Node:
    """The expression after `_`."""
    reader.expect("_")
    return reader.script()


def combination(reader: Reader) -> Node:
    """`_5C_2` or `^5C_2`: a binomial coefficient whose first number stands before the C."""
    reader.take()
    top = reader.script()
    if reader.take().text != _COMBINATIONS:
        raise Unreadable("a script before its letter")
    return Op("binomial", (top, lower_script(reader)))


def subscript_after_power(reader: Reader, name: str, exponent: Node) -> Node:
    """`C^2_5` or `x^2_1`: the subscript belongs to the letter before the power."""
    if name == _COMBINATIONS:
        start = reader.at
        chosen = _chosen(lower_script(reader), exponent)
        if chosen is not None:
            return chosen
        reader.at = start
    return Op("pow", (Sym(_with_subscript(reader, name)), exponent))
