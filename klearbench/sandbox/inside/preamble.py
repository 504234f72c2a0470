"""The names that functional programs, and LiveCodeBench's stdin programs, find imported.

The list is that of LiveCodeBench's import prelude, in an order that keeps the builtins: `from math import *` and
`from operator import *` would else replace `pow`, and `from io import *` `open`.
"""

from __future__ import annotations

from typing import Any

RECURSION_LIMIT = 50_000

_SOURCE = """
from string import *
from re import *
from datetime import *
from collections import *
from heapq import *
from bisect import *
from copy import *
from math import *
from random import *
from statistics import *
from itertools import *
from functools import *
from operator import *
from io import *
from sys import *
from json import *
from typing import *
from builtins import *
import string, re, datetime, collections, heapq, bisect, copy, math, random, statistics, itertools, functools
import operator, io, sys, json, typing, array, cmath, decimal, fractions, queue, time


class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
"""


def names() -> dict[str, Any]:
    """The names, made once in the zygote."""
    found: dict[str, Any] = {"__name__": "solution"}
    exec(compile(_SOURCE, "preamble", "exec"), found)
    return {name: value for name, value in found.items() if not name.startswith("__")}
