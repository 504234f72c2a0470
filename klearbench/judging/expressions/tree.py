"""Small services on expression trees: free variables, replacement, arithmetic on nodes."""

from __future__ import annotations

from klearbench.judging.expressions.nodes import Big, Cases, Matrix, Node, Op, Relation, Sym


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, conditions of a piecewise function among them."""
    if isinstance(node, Op):
        return node.args
    if isinstance(node, Matrix):
        return tuple(entry for row in node.rows for entry in row)
    if isinstance(node, Cases):
        conditions = tuple(part for _, tests in node.rows for test in tests for part in test.parts)
        return (*(value for value, _ in node.rows), *conditions)
    return tuple(part for part in (node.low, node.high, node.body) if part is not None) if isinstance(node, Big) else ()


def symbols(node: Node) -> frozenset[str]:
    """The names of the free variables."""
    if isinstance(node, Sym):
        return frozenset((node.name,))
    found = frozenset[str]()
    for child in children(node):
        found |= symbols(child)
    return found - {node.var} if isinstance(node, Big) and node.low is not None else found


def replaced(node: Node, old: Node, new: Node) -> Node:
    """The tree with each occurrence of a subtree replaced, below operations only."""
    if node == old:
        return new
    return Op(node.name, tuple(replaced(arg, old, new) for arg in node.args)) if isinstance(node, Op) else node


def minus(a: Node, b: Node) -> Node:
    """a - b."""
    return Op("add", (a, Op("neg", (b,))))


def times(a: Node, b: Node) -> Node:
    """a b."""
    return Op("mul", (a, b))


def over(a: Node, b: Node) -> Node:
    """a / b."""
    return Op("div", (a, b))


def relation_symbols(relation: Relation) -> frozenset[str]:
    """The names of the free variables of all parts."""
    return frozenset[str]().union(*(symbols(part) for part in relation.parts))


def size(node: Node) -> int:
    """How many nodes a tree has."""
    return 1 + sum(size(child) for child in children(node))
