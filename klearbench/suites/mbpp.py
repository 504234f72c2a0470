"""MBPP (Austin et al. 2021): Python functions from one sentence. `mbpp` is all 974, `mbpp-test` its test part of 500
(ids 11 to 510; 1 to 10 are for prompts, the others for training and validation).

Row: `{"id": "MBPP/1", "source": "MBPP", "prompt": "Write a function ...", "test": "assert ...", "canonical": ...}`, or
the benchmark's own (`task_id`, `text`, `test_setup_code`, `test_list`).

The paper's prompt shows the asserts. Ours shows the call in the first of them and not its value: what a judge expects
enters no prompt. So scores are a little lower than those that are published.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from klearbench.suites.asserts import function_called, read_asserts
from klearbench.suites.base import HubSource
from klearbench.suites.functions import FENCE, Functions, Made, functional_tests


def _from_official(row: Mapping[str, Any]) -> Mapping[str, Any]:
    tests = "\n".join([str(row.get("test_setup_code") or ""), *row["test_list"]])
    return {"id": f"MBPP/{row['task_id']}", "prompt": row["text"], "test": tests}


def _make(key: str, row: Mapping[str, Any]) -> Made:
    source = str(row["test"])
    call = function_called(source)
    assert isinstance(call.func, ast.Name)
    name = call.func.id
    tests = functional_tests(key, name, read_asserts(source, name))
    task = str(row["prompt"]).strip()
    prompt = f"{task}\n\nName the function `{name}`. It will be called like this: `{ast.unparse(call)}`\n\n{FENCE}"
    return prompt, {"entry_point": name}, tests


def _number(key: str) -> int:
    number = key.removeprefix("MBPP/")
    return int(number) if number.isdecimal() else 0


def _part(name: str, about: str, split: str, count: int, numbers: range) -> Functions:
    return Functions(
        name=name,
        about=about,
        source="MBPP",
        licence="Google, CC-BY-4.0; not shipped",
        official="mbpp.jsonl",
        convert=_from_official,
        make=_make,
        hub=HubSource("google-research-datasets/mbpp", lambda _, row: _from_official(row), config="full", split=split),
        count=count,
        keep=lambda key: _number(key) in numbers,
    )


MBPP = _part("mbpp", "Python functions from one sentence", "train+test+validation+prompt", 974, range(1, 975))
MBPP_TEST = _part("mbpp-test", "the test part of mbpp", "test", 500, range(11, 511))
INFOS = (MBPP.info(), MBPP_TEST.info())
