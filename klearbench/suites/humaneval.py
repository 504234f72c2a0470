"""HumanEval (Chen et al. 2021): 164 Python functions to be completed, judged by the asserts of `check(candidate)`.

Row: `{"id": "HumanEval/0", "source": "HumanEval", "prompt": "from typing ...", "entry_point": "has_close_elements",
"test": "def check(candidate): ...", "canonical": ...}`, or the benchmark's own (`task_id`, `canonical_solution`).

161 are expressed by their asserts as they are. Two draw random texts and encode them by a function of the prompt: here
the same is done with texts of our own. One draws polynomials and looks at the value at the root that was found: a
checker does that.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping
from typing import Any

from klearbench.suites.asserts import read_asserts
from klearbench.suites.base import HubSource
from klearbench.suites.cases import Case
from klearbench.suites.coderows import parse_code
from klearbench.suites.functions import FENCE, Functions, Made, functional_tests
from klearbench.types import CodeTests

_DRAWN = 40
_ASKED = "Complete this Python function. Keep its name and its parameters."

_ROOT = '''
import json

def check(input, expected, output):
    """Any root will do: the polynomial's value there is near 0. No root of those that are given is beyond 11."""
    if len(output) > 40:
        return False
    root = json.loads(output)
    if type(root) not in (int, float) or not abs(root) < 1000:
        return False
    return abs(sum(c * float(root) ** i for i, c in enumerate(json.loads(input)))) < 1e-4
'''


def _from_official(row: Mapping[str, Any]) -> Mapping[str, Any]:
    names = {"id": "task_id", "prompt": "prompt", "entry_point": "entry_point", "test": "test"}
    return {ours: row[theirs] for ours, theirs in names.items()}


def _rotated(text: str) -> str:
    """Groups of three letters, each group of three turned by one."""
    groups = [text[i : i + 3] for i in range(0, len(text), 3)]
    return "".join(group[1:] + group[0] if len(group) == 3 else group for group in groups)


def _shifted(text: str) -> str:
    """Each letter replaced by the fifth after it, z followed by a."""
    return text.translate(
        str.maketrans(string.ascii_lowercase, string.ascii_lowercase[5:] + string.ascii_lowercase[:5])
    )


_ENCODED: dict[str, Callable[[str], str]] = {"HumanEval/38": _rotated, "HumanEval/50": _shifted}
"""Problems that ask for the inverse of an encoding: its tests draw texts without a seed."""
_ROOTS = "HumanEval/32"


def _decoding(key: str, fn_name: str) -> CodeTests:
    draw = random.Random(key)
    texts = ["".join(draw.choices(string.ascii_lowercase, k=draw.randint(10, 20))) for _ in range(_DRAWN)]
    return functional_tests(key, fn_name, [Case((_ENCODED[key](text),), text) for text in texts])


def _polynomials(key: str, fn_name: str) -> CodeTests:
    draw = random.Random(key)
    tests = []
    for _ in range(_DRAWN):
        coefficients = [draw.randint(-10, 10) or 1 for _ in range(2 * draw.randint(1, 4))]
        tests.append({"input": str(coefficients), "output": ""})
    return parse_code(key, {"mode": "functional", "fn_name": fn_name, "tests": tests, "checker": _ROOT})


def _make(key: str, row: Mapping[str, Any]) -> Made:
    fn_name = str(row["entry_point"])
    prompt = f"{_ASKED}\n\n```python\n{str(row['prompt']).strip()}\n```\n\n{FENCE}"
    return prompt, {"entry_point": fn_name}, _tests(key, fn_name, str(row["test"]))


def _tests(key: str, fn_name: str, source: str) -> CodeTests:
    if key in _ENCODED:
        return _decoding(key, fn_name)
    if key == _ROOTS:
        return _polynomials(key, fn_name)
    return functional_tests(key, fn_name, read_asserts(source, "candidate", within="check", also=(fn_name,)))


HUMANEVAL = Functions(
    name="humaneval",
    about="Python functions from docstrings",
    source="HumanEval",
    licence="OpenAI, MIT; not shipped",
    official="HumanEval.jsonl",
    convert=_from_official,
    make=_make,
    hub=HubSource("openai/openai_humaneval", lambda _, row: _from_official(row)),
    count=164,
)
INFOS = (HUMANEVAL.info(),)
