"""Matrices and piecewise functions."""

from __future__ import annotations

from klearbench.judging.expressions.nodes import Cases, Matrix, Node, Op, Relation, Unreadable
from klearbench.judging.expressions.reader import Reader

_MATRICES = frozenset(("matrix", "pmatrix", "bmatrix", "vmatrix", "smallmatrix", "array"))
_IF = frozenset(("if", "for", "when", "where"))
_OTHERWISE = frozenset(("otherwise", "else", "elsewhere"))


def environment(reader: Reader) -> Node:
    """The environment that begins here."""
    name = reader.take().text
    if name not in _MATRICES and name != "cases":
        raise Unreadable(f"the environment {name!r}")
    reader.nest()
    node = reader.apart(lambda: Cases(_case_rows(reader)) if name == "cases" else Matrix(_matrix_rows(reader)))
    reader.nested -= 1
    if reader.kind != "end" or reader.token.text != name:
        raise Unreadable(f"an unfinished {name!r}")
    reader.at += 1
    return Op("det", (node,)) if name == "vmatrix" else node


def _matrix_rows(reader: Reader) -> tuple[tuple[Node, ...], ...]:
    rows = []
    while reader.kind != "end":
        row = [reader.content()]
        while reader.accept("&"):
            row.append(reader.content())
        rows.append(tuple(row))
        if not reader.accept("row"):
            break
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise Unreadable("a matrix without equal rows")
    return tuple(rows)


def _case_rows(reader: Reader) -> tuple[tuple[Node, tuple[Relation, ...]], ...]:
    rows: list[tuple[Node, tuple[Relation, ...]]] = []
    while reader.kind != "end":
        value = reader.content()
        reader.accept(",")
        if reader.accept("&"):
            reader.accept(",")
        rows.extend((value, conditions) for conditions in _alternatives(reader))
        if not reader.accept("row"):
            break
    if not rows:
        raise Unreadable("a piecewise function without rows")
    return tuple(rows)


def _alternatives(reader: Reader) -> list[tuple[Relation, ...]]:
    """The conditions of a row; those joined by "or" make a row each."""
    _skip(reader, _IF)
    if _skip(reader, _OTHERWISE):
        return [()]
    if reader.kind in ("row", "end"):
        return [()]
    found = []
    while True:
        found.append(_conditions(reader))
        if not _skip(reader, frozenset(("or",))):
            return found


def _conditions(reader: Reader) -> tuple[Relation, ...]:
    """Relations that must all hold, joined by commas or "and"."""
    found = []
    while True:
        _skip(reader, _IF)
        found.append(reader.relations())
        joined = reader.accept(",")
        joined |= _skip(reader, frozenset(("and",)))
        if not joined or reader.kind in ("row", "end"):
            return tuple(found)


def _skip(reader: Reader, words: frozenset[str]) -> bool:
    """Whether one of these words stands here, which is then passed over."""
    if reader.kind != "word" or reader.token.text.lower() not in words:
        return False
    reader.take()
    return True
