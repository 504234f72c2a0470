"""Code problems as rows of a file: the one place where such a row is read, checked and written.

    {"id": "double", "mode": "stdio", "tests": [{"input": "2\\n", "output": "4\\n"}], "time_limit_s": 2}
    {"id": "add", "mode": "functional", "fn_name": "add", "tests": [{"input": "1\\n2", "output": "3"}]}

Suite files, the judge's problem files and RL datasets share this format. A fault that would make every program pass, or
fail, is refused when the row is read: a problem without tests can't be told from one that any program solves.
"""

from __future__ import annotations

import ast
import json
import keyword
import math
from collections.abc import Mapping
from typing import Any

from klearbench.errors import ConfigError, DataError, nearest, unknown_name
from klearbench.types import CodeTests, ExpectedOutputs, TestInputs

CODE_KEYS = ("mode", "fn_name", "tests", "time_limit_s", "memory_limit_mb", "preamble", "checker")
"""The keys of a row that decide how a program is judged. `id`, `kind` and the prompt's are the caller's."""
CODE_MODES = ("stdio", "functional")
PREAMBLES = ("lcb",)
_TEST_KEYS = ("input", "output")


def read_code_row(path: object, line: int | None, row: Mapping[str, Any]) -> CodeTests:
    """The tests of one row. A key that is null counts as absent; keys other than `id` and CODE_KEYS are not looked at.

    Args:
        path: the file, for messages.
        line: the row's line, for messages.
        row: `id`, `tests`, and as wanted `mode` ("stdio" if absent), `fn_name`, `time_limit_s` (CPU seconds a test, 6),
            `memory_limit_mb` (MiB, 4096), `preamble` ("lcb"), `checker` (a trusted checker's name, or a program).

    Raises:
        DataError: a value is missing, of another type or not allowed; the problem has no test; a test lacks its input
            or its output.
    """
    key = row.get("id")
    if not isinstance(key, str | int) or isinstance(key, bool) or key == "":
        raise DataError(path, f"id is {key!r}, a string was expected", line)
    try:
        return parse_code(str(key), {k: v for k, v in row.items() if k in CODE_KEYS and v is not None})
    except ValueError as error:
        raise DataError(path, f"problem {str(key)!r}: {error}", line) from None


def parse_code(key: str, row: Mapping[str, Any]) -> CodeTests:
    """Like `read_code_row` for a problem that stands in no file. Raises ValueError: one line without the problem's id.

    `row` holds keys of CODE_KEYS alone, none of them null.
    """
    mode = row.get("mode", "stdio")
    if mode not in CODE_MODES:
        raise ValueError(unknown_name("mode", str(mode), CODE_MODES))
    preamble = row.get("preamble")
    if preamble is not None and preamble not in PREAMBLES:
        raise ValueError(unknown_name("preamble", str(preamble), PREAMBLES))
    pairs = _pairs(row.get("tests"))
    checker = _checker(row.get("checker"))
    if mode == "functional":
        _refuse_no_json(pairs, outputs=checker is None)
    inputs = TestInputs(
        problem_id=key,
        mode=mode,
        inputs=tuple(i for i, _ in pairs),
        fn_name=_fn_name(mode, row.get("fn_name")),
        preamble=preamble,
        time_limit_s=float(_positive("time_limit_s", row.get("time_limit_s", 6.0), (int, float))),
        memory_limit_mb=_positive("memory_limit_mb", row.get("memory_limit_mb", 4096), (int,)),
    )
    return CodeTests(inputs, ExpectedOutputs(key, tuple(o for _, o in pairs), checker))


def _pairs(tests: Any) -> list[tuple[str, str]]:
    if tests is None:
        raise ValueError('tests are missing (a list of {"input": .., "output": ..})')
    if not isinstance(tests, list | tuple):
        raise ValueError(f"tests is {type(tests).__name__}, a list was expected")
    if not tests:
        raise ValueError("it has no test, so that no program could fail it")
    for number, test in enumerate(tests, start=1):
        if not isinstance(test, Mapping):
            raise ValueError(f'test {number} is {type(test).__name__}, {{"input": .., "output": ..}} was expected')
        for name in test:
            if name not in _TEST_KEYS:
                raise ValueError(f"test {number}: unknown key {name!r}{nearest(str(name), _TEST_KEYS)}")
        for name in _TEST_KEYS:
            if not isinstance(test.get(name), str):
                found = "missing" if name not in test else f"{type(test[name]).__name__}, a string was expected"
                raise ValueError(f"test {number}: {name} is {found}")
    return [(test["input"], test["output"]) for test in tests]


def _fn_name(mode: str, name: Any) -> str | None:
    if mode == "stdio":
        if name is not None:
            raise ValueError(f"fn_name is {name!r}, but the mode is 'stdio' (mode 'functional' calls a function)")
        return None
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"fn_name is {name!r}; mode 'functional' needs a function's name")
    return name


def _positive(name: str, value: Any, kinds: tuple[type, ...]) -> Any:
    right = isinstance(value, kinds) and not isinstance(value, bool)
    if not right or not 0 < value < math.inf:
        wanted = "number" if float in kinds else "whole number"
        raise ValueError(f"{name} is {value!r}, a positive {wanted} was expected")
    return value


def _checker(checker: Any) -> str | None:
    if checker is None:
        return None
    if not isinstance(checker, str):
        raise ValueError(f"checker is {checker!r} (a trusted checker's name, or a program)")
    from klearbench.judging.checkers import validate_checker

    try:
        validate_checker(checker)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return checker


def _refuse_no_json(pairs: list[tuple[str, str]], *, outputs: bool) -> None:
    """Functional tests are JSON, an argument also a Python literal after "=": what is none could be given to no one."""
    for number, (given, expected) in enumerate(pairs, start=1):
        lines = [("input", text) for text in given.rstrip("\n").split("\n")] if given.strip() else []
        if outputs:
            lines.append(("output", expected))
        for name, text in lines:
            try:
                if name == "input" and text.startswith("="):
                    ast.literal_eval(text[1:])
                    continue
                json.loads(text, parse_int=str)  # as text: there is no limit on the digits of an integer
            except RecursionError:  # deeply nested is JSON all the same
                continue
            except (ValueError, SyntaxError) as error:
                raise ValueError(f"test {number}: its {name} holds no JSON value ({error})") from None


def code_row(tests: CodeTests) -> dict[str, Any]:
    """CODE_KEYS and values of a reference, without what is null: `read_code_row` reads it back as it was."""
    given, expected = tests.inputs, tests.expected
    row = {
        "mode": given.mode,
        "fn_name": given.fn_name,
        "tests": [{"input": i, "output": o} for i, o in zip(given.inputs, expected.outputs, strict=True)],
        "time_limit_s": given.time_limit_s,
        "memory_limit_mb": given.memory_limit_mb,
        "preamble": given.preamble,
        "checker": expected.checker,
    }
    return {name: value for name, value in row.items() if value is not None}


def refuse_bad_tests(tests: CodeTests) -> None:
    """Refuse a reference that can't be judged, wherever it was made: the counterpart of the math golds' check.

    Raises:
        DataError: by its problem id.
    """
    given, expected = tests.inputs, tests.expected
    key = given.problem_id
    if len(given.inputs) != len(expected.outputs):
        counts = f"{len(given.inputs)} inputs and {len(expected.outputs)} expected outputs"
        raise DataError(key, f"problem {key!r}: it has {counts}")
    try:
        parse_code(key, code_row(tests))
    except ValueError as error:
        raise DataError(key, f"problem {key!r}: {error}") from None


__all__ = ["CODE_KEYS", "CODE_MODES", "PREAMBLES", "code_row", "parse_code", "read_code_row", "refuse_bad_tests"]
