"""The names that functional programs, and LiveCodeBench's stdin programs, find imported.

The list is that of LiveCodeBench's import prelude, in an order that keeps the builtins: `from math import *` and
`from operator import *` would else replace `pow`, and `from io import *` `open`.
"""

from __future__ import annotations

import builtins
import re
import sys
import types
from typing import Any

RECURSION_LIMIT = 50_000

_SOURCE = """
from string import *
from re import *
from collections import *
from heapq import *
from bisect import *
from copy import *
from math import *
from random import *
from itertools import *
from functools import *
from operator import *
from io import *
from sys import *
from json import *
from typing import *
from builtins import *
import string, re, collections, heapq, bisect, copy, math, random, itertools, functools, operator, io, sys, json, typing


class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
"""


_RARE = {
    "datetime": re.compile(rb"\b(?:datetime|date|timedelta|timezone|tzinfo|MINYEAR|MAXYEAR|UTC)\b"),
    "statistics": re.compile(
        rb"statistics|mean|median|\bmode\b|multimode|stdev|variance|quantiles|NormalDist|correlation|covariance"
        rb"|linear_regression"
    ),
}
"""Modules of the prelude that take long to import and are seldom meant: only where one of their names is mentioned."""

Modules = dict[bool, types.ModuleType]
"""The module that a program becomes, without and with the preamble's names."""


def modules() -> Modules:
    """Made once in the zygote, for every submission to have a copy of its own by being forked."""
    made = {}
    for wanted in (False, True):
        made[wanted] = types.ModuleType("__main__")
        made[wanted].__dict__["__builtins__"] = builtins
    names = made[True].__dict__
    exec(compile(_SOURCE, "preamble", "exec"), names)
    names.update(stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)
    return made


def module(given: Modules, wanted: bool, source: bytes, collectable: bool) -> types.ModuleType:
    """A submission's module. `collectable`: one that nothing else keeps alive, and that the collector, told to leave
    the zygote's objects alone, will look at."""
    found = given[wanted]
    if collectable:
        found = types.ModuleType("__main__")
        found.__dict__.update(given[wanted].__dict__)
    for name, words in _RARE.items() if wanted else ():
        if words.search(source):
            _star_import(name, found.__dict__)
    return found


def _star_import(name: str, names: dict[str, Any]) -> None:
    """`import NAME` and `from NAME import *`, but for names that others of the preamble have taken."""
    made: dict[str, Any] = {}
    exec(f"from {name} import *\nimport {name}", made)
    names.update({key: value for key, value in made.items() if key == name or key not in names})
