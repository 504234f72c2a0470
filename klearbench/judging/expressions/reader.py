"""The reader's place in the tokens of an expression, and what its parts need from each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from klearbench.judging.expressions import names
from klearbench.judging.expressions.nodes import Const, Node, Num, Op, Relation, Sym, Unreadable
from klearbench.judging.expressions.tokens import Token, tokens

MAX_NESTED = 65
"""How deep brackets, exponents and functions may stand in each other."""

CLOSING = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", "lfloor": "rfloor", "lceil": "rceil"}
_STARTS = frozenset(("letter", "function", "big", "(", "[", "{", "lfloor", "lceil", "begin"))
_T = TypeVar("_T")


class Reader(ABC):
    """A cursor over tokens.

    `in_list` says that commas separate arguments, `bars` how many bars are open since the last bracket, `integrals`
    how many integrals wait for their dx there, `bound` the variables of sums, which may be called i or e, and
    `braces_end` is where the last bare group in braces ended.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = tokens(text)
        self.at = 0
        self.nested = 0
        self.in_list = False
        self.bars = 0
        self.integrals = 0
        self.braces_end = -1
        self.bound: list[str] = []
        self.lists = _bracketed_lists(self.tokens)

    @abstractmethod
    def content(self) -> Node:
        """A whole expression, up to a closing bracket or another separator."""

    @abstractmethod
    def term(self) -> Node:
        """A product, its sign included."""

    @abstractmethod
    def operand(self) -> Node:
        """One factor of a product, its powers included; a mixed number is one."""

    @abstractmethod
    def factor(self) -> Node:
        """One factor of a product, its powers included."""

    @abstractmethod
    def atom(self) -> Node:
        """One factor without powers."""

    @abstractmethod
    def postfix(self, node: Node) -> Node:
        """A factor with the powers and marks after it."""

    @abstractmethod
    def exponent(self, *, subscripts: bool = True) -> Node:
        r"""What stands after `^`. Without subscripts, `_` after a bare letter is left alone."""

    @abstractmethod
    def script(self, *, subscripts: bool = False) -> Node:
        """What stands after `_`, or a limit after `^`: a group, one signed number or letter, or a command."""

    @abstractmethod
    def relations(self) -> Relation:
        """A chain of at least one relation."""

    def nest(self) -> None:
        """Go one level deeper; the caller comes back by `nested -= 1`. Raises Unreadable past the bound."""
        self.nested += 1
        if self.nested > MAX_NESTED:
            raise Unreadable("too deeply nested")

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def kind(self) -> str:
        return self.tokens[self.at].kind

    def kind_after(self, steps: int) -> str:
        """The kind of a token further on; "stop" past the end."""
        at = self.at + steps
        return self.tokens[at].kind if at < len(self.tokens) else "stop"

    def take(self) -> Token:
        token = self.tokens[self.at]
        if token.kind != "stop":
            self.at += 1
        return token

    def accept(self, kind: str) -> bool:
        """Whether the next token is of this kind, which is then taken."""
        if self.tokens[self.at].kind != kind:
            return False
        self.at += 1
        return True

    def expect(self, kind: str) -> None:
        if not self.accept(kind):
            raise self.unexpected()

    def unexpected(self) -> Unreadable:
        token = self.token
        return Unreadable("an unfinished expression" if token.kind == "stop" else f"{token.text!r} at {token.start}")

    def adjacent(self) -> bool:
        """Whether the next token follows the one before it without a space."""
        return self.at > 0 and self.tokens[self.at - 1].end == self.token.start

    def apart(self, read: Callable[[], _T]) -> _T:
        """What `read` finds inside brackets, where bars and integrals outside them do not count."""
        saved = self.in_list, self.bars, self.integrals
        self.in_list, self.bars, self.integrals = False, 0, 0
        found = read()
        self.in_list, self.bars, self.integrals = saved
        return found

    def group(self) -> Node:
        """The expression in the brackets that begin here."""
        close = CLOSING[self.take().kind]
        saved = self.in_list, self.bars, self.integrals
        self.in_list, self.bars, self.integrals = False, 0, 0
        node = self.content()
        self.in_list, self.bars, self.integrals = saved
        self.expect(close)
        return node

    def arguments(self) -> tuple[Node, ...]:
        """The expressions between commas in the brackets that begin here."""
        close = CLOSING[self.take().kind]
        found = self.apart(self._separated)
        self.expect(close)
        return found

    def _separated(self) -> tuple[Node, ...]:
        self.in_list = True
        found = [self.content()]
        while self.accept(","):
            found.append(self.content())
        return tuple(found)

    def signs(self) -> bool:
        """Whether the signs that begin here, any number of them, make a minus."""
        negative = False
        while self.kind in ("+", "-"):
            negative ^= self.take().kind == "-"
        return negative

    def continues(self) -> bool:
        """Whether a factor begins here that is multiplied without a sign between.

        A number may stand after a closing bracket, or as a base or factorial (`n2^n`, `1!4!`): `x2`, `2 3` and
        `\\pi 2` are not read, and neither is `1{2}`, which looks like 12. Raises Unreadable.
        """
        kind = self.kind
        inner = self.kind_after(1) if kind == "{" else kind
        if inner == "number" and (self.tokens[self.at - 1].kind == "number" or self.at - 1 == self.braces_end):
            raise Unreadable("a number without a sign before it")
        if kind == "|":
            return self.bars == 0
        if kind == "number":
            before, after = self.tokens[self.at - 1].kind, self.kind_after(1)
            factor = (before == "letter" and after == "^") or (before == "!" and after in ("!", "^"))
            if not factor and before not in (")", "]", "}", "|", "end"):
                raise Unreadable("a number without a sign before it")
            return True
        return kind in _STARTS and not self.at_differential()

    def at_differential(self) -> bool:
        """Whether the dx of an open integral stands here."""
        return self.integrals > 0 and self.token.text == "d" and self.kind_after(1) == "letter"


def negated(node: Node) -> Node:
    """The node with a minus before it, folded into a number."""
    return Num(-node.value) if isinstance(node, Num) else Op("neg", (node,))


def product(factors: list[Node]) -> Node:
    return factors[0] if len(factors) == 1 else Op("mul", tuple(factors))


def letter(name: str, bound: list[str]) -> Node:
    """A constant, or a variable where the name is none or is bound by a sum."""
    if name in names.CONSTANTS and name not in bound:
        return Const(name)  # type: ignore[arg-type]
    return Sym(name)


def is_plain_integer(token: Token) -> bool:
    return token.kind == "number" and token.text.isdigit()


def integer_value(node: Node) -> Fraction | None:
    return node.value if isinstance(node, Num) and node.value.denominator == 1 else None


def _bracketed_lists(found: list[Token]) -> frozenset[int]:
    """Where round brackets begin that hold a comma of their own."""
    lists, opened = set(), []
    for at, token in enumerate(found):
        if token.kind in CLOSING:
            opened.append(at)
        elif token.kind in CLOSING.values() and opened:
            opened.pop()
        elif token.kind == "," and opened:
            lists.add(opened[-1])
    return frozenset(at for at in lists if found[at].kind == "(")
