r"""Expressions and relations from text: a precedence parser by hand, linear in the text's length.

The readings where notation is ambiguous:

- Quotients and products without a sign bind alike, from left to right: `1/2x` is (1/2)x, `a/bc` is (a/b)c.
- A function without brackets takes the product after it, up to a sign, another function or a bracket after a letter:
  `\sin 2x\cos x` is sin(2x) cos(x), `\ln 2/2` is ln(2)/2; only `\sin\pi/4` is sin(pi/4), for it would be zero.
- A whole number before a fraction of positive integers is a mixed number, and unreadable unless the fraction is proper.
- `2^10` is 2^{10}, though TeX would typeset one digit; `x^2y` is x^2 times y. `2^3!` is unreadable.
- `0.1(6)` is a repeating decimal, `2e-3` is 2e - 3, but `1e-3`, `2.5e-3` and `2e3` are in e-notation.
- `5+3 \bmod 4` is unreadable; `2\cdot5 \bmod 3` and `-7 \bmod 5` take all that stands to the left.
"""

from __future__ import annotations

import re
from fractions import Fraction

from klearbench.judging.expressions import environments, functions, symbols
from klearbench.judging.expressions.nodes import Big, Cases, Matrix, Node, Num, Op, Relation, Sym, Unreadable
from klearbench.judging.expressions.reader import Reader, is_plain_integer, negated, product

MAX_CHARS = 2000
MAX_INTEGER_DIGITS = 20_000
MAX_HEIGHT = 100
"""The height of a tree, so that those who walk it may do so by recursion."""

_INTEGER = re.compile(r"\s*([+-]?)\s?(\d+)\s*")
_CHUNK = 4000


def parse_expression(text: str) -> Node:
    """The tree of an expression in the spelling of `normalize.canonical`. Raises Unreadable."""
    integer = _INTEGER.fullmatch(text)
    if integer is not None and len(integer[2]) <= MAX_INTEGER_DIGITS:
        value = _integer(integer[2])
        return Num(Fraction(-value if integer[1] == "-" else value))
    reader = _opened(text)
    node = reader.content()
    reader.expect("stop")
    _check_height(node)
    return node


def parse_relation(text: str) -> Relation:
    """The chain of relations that a text states, such as `0 < x \\le 1`. Raises Unreadable."""
    reader = _opened(text)
    relation = reader.relations()
    reader.expect("stop")
    for part in relation.parts:
        _check_height(part)
    return relation


def _opened(text: str) -> _Parser:
    if len(text) > MAX_CHARS:
        raise Unreadable("too long to evaluate")
    return _Parser(text)


def _integer(digits: str) -> int:
    """The value of decimal digits, more than `int` takes at once."""
    value = 0
    for at in range(0, len(digits), _CHUNK):
        chunk = digits[at : at + _CHUNK]
        value = value * 10 ** len(chunk) + int(chunk)
    return value


class _Parser(Reader):
    def content(self) -> Node:
        node = self.expression()
        if self.kind in ("over", "choose"):
            name = "div" if self.take().kind == "over" else "binomial"
            return Op(name, (node, self.expression()))
        return node

    def relations(self) -> Relation:
        parts, marks = [self.content()], []
        while self.kind == "mark":
            marks.append(self.take().text)
            parts.append(self.content())
        if not marks:
            raise Unreadable("no relation")
        return Relation(tuple(parts), tuple(marks))

    def expression(self) -> Node:
        """A sum."""
        terms = [self.term()]
        while self.kind in ("+", "-"):
            terms.append(self.term())
        if len(terms) == 1:
            return terms[0]
        if any(isinstance(term, Op) and term.name == "mod" for term in terms):
            raise Unreadable("a remainder beside a sum")
        return Op("add", tuple(terms))

    def term(self) -> Node:
        negative = self.signs()
        factors = [self.operand()]
        while True:
            kind = self.kind
            if kind == "*":
                self.at += 1
                factors.append(self.signed_operand())
            elif kind in ("/", "mod"):
                self.at += 1
                left, name = product(factors), "mod" if kind == "mod" else "div"
                if kind == "mod" and negative:
                    left, negative = negated(left), False
                factors = [Op(name, (left, self.signed_operand()))]
            elif self.continues():
                factors.append(self.operand())
            else:
                break
        return negated(product(factors)) if negative else product(factors)

    def signed_operand(self) -> Node:
        return negated(self.operand()) if self.signs() else self.operand()

    def operand(self) -> Node:
        start = self.at
        node = self.factor()
        if not isinstance(node, Num) or not is_plain_integer(self.tokens[start]):
            return node
        if any(token.kind not in ("number", ",") for token in self.tokens[start : self.at]):
            return node
        part, end = self._fraction_after()
        if part is None:
            return node
        if not 0 < part < 1:
            raise Unreadable("an improper fraction after a whole number")
        self.at = end
        if self.kind in ("!", "!!") or (self.kind == "^" and not self._at_degree()):
            raise Unreadable("a power of a mixed number")
        return self.postfix(Num(node.value + part))

    def _fraction_after(self) -> tuple[Fraction | None, int]:
        """The fraction of plain positive integers that stands here, and where it ends."""
        pattern, at = [], self.at
        for token in self.tokens[at : at + 7]:
            pattern.append("n" if is_plain_integer(token) else "f" if token.text == "frac" else token.kind)
        shape = " ".join(pattern)
        if shape.startswith("n / n") and not self.adjacent():
            top, bottom, length = self.tokens[at].text, self.tokens[at + 2].text, 3
        elif shape.startswith("f { n } { n }"):
            top, bottom, length = self.tokens[at + 2].text, self.tokens[at + 5].text, 7
        elif shape.startswith("f n") and re.fullmatch(r"\d\d", self.tokens[at + 1].text):
            top, bottom, length = self.tokens[at + 1].text[0], self.tokens[at + 1].text[1], 2
        else:
            return None, at
        if int(bottom) == 0:
            raise Unreadable("division by zero")
        return Fraction(int(top), int(bottom)), at + length

    def factor(self) -> Node:
        self.nest()
        node = self.postfix(self.atom())
        self.nested -= 1
        return node

    def postfix(self, node: Node) -> Node:
        last = ""
        while True:
            kind = self.kind
            if kind == "^":
                if self._at_degree():
                    self.at += 4 if self.kind_after(1) == "{" else 2
                    node, last = Op("degree", (node,)), "degree"
                else:
                    node, last = self._power(node), "power"
            elif kind in ("!", "!!"):
                if last:
                    raise Unreadable("a factorial after a power or a factorial")
                self.at += 1
                node, last = Op("factorial" if kind == "!" else "double_factorial", (node,)), "factorial"
            else:
                return node

    def _at_degree(self) -> bool:
        return self.kind_after(1) == "circ" or (
            self.kind_after(1) == "{" and self.kind_after(2) == "circ" and self.kind_after(3) == "}"
        )

    def _power(self, base: Node) -> Node:
        before = self.tokens[self.at - 1]
        self.expect("^")
        bare = isinstance(base, Sym) and before.kind == "letter" and base.name == before.text
        if isinstance(base, Matrix):
            transposed = self._transposed(base)
            if transposed is not None:
                return transposed
        exponent = self.exponent(subscripts=not bare)
        self.braces_end = -1  # 2^{25}26! is a product
        if bare and self.kind == "_":
            return symbols.subscript_after_power(self, before.text, exponent)
        return Op("pow", (base, exponent))

    def _transposed(self, base: Node) -> Node | None:
        braces = self.kind == "{"
        token = self.tokens[self.at + braces] if self.kind != "stop" else self.token
        if token.kind != "top" and token.text != "T":
            return None
        self.at += 1 + braces
        if braces:
            self.expect("}")
        return Op("transpose", (base,))

    def exponent(self, *, subscripts: bool = True) -> Node:
        negative = self.signs()
        node = self.script(subscripts=subscripts)
        if self.kind == "^" and not self._at_degree():
            self.at += 1
            self.nest()
            node = Op("pow", (node, self.exponent(subscripts=subscripts)))
            self.nested -= 1
        return negated(node) if negative else node

    def script(self, *, subscripts: bool = False) -> Node:
        negative = self.signs()
        self.nest()
        if self.kind == "letter" and not subscripts:
            node = symbols.bare(self)
        elif self.kind == "number":
            node = symbols.number(self, grouped=False)
        else:
            node = self.atom()
        self.nested -= 1
        return negated(node) if negative else node

    def atom(self) -> Node:
        kind = self.kind
        if kind == "number":
            return symbols.number(self, grouped=not self.in_list)
        if kind == "letter":
            return symbols.symbol(self)
        if kind == "function":
            return functions.apply(self)
        if kind == "{" and self.kind_after(1) == "}":
            self.at += 2
            return symbols.combination(self)
        if kind == "{":
            node = self.group()
            self.braces_end = self.at - 1
            return node
        if kind in ("(", "["):
            return self.group()
        if kind in ("lfloor", "lceil"):
            return Op("floor" if kind == "lfloor" else "ceil", (self.group(),))
        if kind == "|":
            return self._between_bars()
        if kind in ("_", "^"):
            return symbols.combination(self)
        if kind == "begin":
            return environments.environment(self)
        if kind == "big":
            return functions.big(self)
        raise self.unexpected()

    def _between_bars(self) -> Node:
        """An absolute value, or the determinant of a matrix written with bars."""
        self.at += 1
        self.bars += 1
        node = self.content()
        self.expect("|")
        self.bars -= 1
        return Op("det" if isinstance(node, Matrix) else "abs", (node,))


def _check_height(node: Node) -> None:
    level: list[Node] = [node]
    for _ in range(MAX_HEIGHT):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise Unreadable("too deeply nested")


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Op):
        return node.args
    if isinstance(node, Matrix):
        return tuple(cell for row in node.rows for cell in row)
    if isinstance(node, Cases):
        return tuple(
            part
            for value, conditions in node.rows
            for part in (value, *(side for condition in conditions for side in condition.parts))
        )
    if isinstance(node, Big):
        return tuple(part for part in (node.low, node.high, node.body) if part is not None)
    return ()
