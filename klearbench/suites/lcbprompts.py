"""How LiveCodeBench's problems are asked: in our own words, or by its own template, read from the data directory.

Both give the question, then the starter code or how input and output go, and ask for one fenced block. The template
file, `lcb_prompt.json`, holds the texts of get_generic_question_template_answer and SYSTEM_MESSAGE_GENERIC of
lcb_runner/prompts/code_generation.py (LiveCodeBench/LiveCodeBench at 28fef95), with {places} to be filled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from klearbench.errors import DataError, UsageError
from klearbench.types import Message

TEMPLATE = "lcb_prompt.json"
_PARTS = ("with_starter_code", "without_starter_code")
_TEXTS = ("system", *_PARTS, *(f"user_{part}" for part in _PARTS))
_PLACE = re.compile(r"\{(question|starter_code|with_starter_code|without_starter_code)\}")

_STDIO = (
    "Write a Python 3 program that solves the problem. It reads the input from standard input and prints the answer to "
    "standard output, nothing else."
)
_STARTER = "Solve the problem in Python 3. Complete the code below, and keep its names and parameters as they are."
_FENCE = "End with the whole program in one fenced block:\n\n```python\n# the program\n```"


def ask_in_our_words(question: str, starter_code: str) -> tuple[Message, ...]:
    """One message: the task, the question, the starter code where there is some, and the form of the answer."""
    task = f"{_STARTER}\n\n```python\n{starter_code.rstrip()}\n```" if starter_code.strip() else _STDIO
    return ({"role": "user", "content": f"{question.strip()}\n\n{task}\n\n{_FENCE}"},)


def official_prompt(folder: Path | None) -> Callable[[str, str], tuple[Message, ...]]:
    """LiveCodeBench's system and user message, made as its own runner makes them.

    Args:
        folder: the data directory.

    Raises:
        UsageError: there is no data directory.
        DataError: it holds no template, or another file under its name.
    """
    if folder is None:
        raise UsageError(
            f"the official prompt needs {TEMPLATE}: name its folder by --data-dir DIR or KLEARBENCH_DATA=DIR"
        )
    texts = _template(folder / TEMPLATE)

    def ask(question: str, starter_code: str) -> tuple[Message, ...]:
        given = {"question": question, "starter_code": starter_code, **{part: texts[part] for part in _PARTS}}
        user = texts["user_with_starter_code" if starter_code else "user_without_starter_code"]
        filled = _PLACE.sub(lambda place: given[place[1]], user)  # in one pass: a question may hold {places} too
        return ({"role": "system", "content": texts["system"]}, {"role": "user", "content": filled})

    return ask


def _template(path: Path) -> dict[str, str]:
    try:
        texts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(path, "no such file; --prompt official reads LiveCodeBench's template from it") from None
    except ValueError as error:
        raise DataError(path, f"not valid JSON ({error})") from None
    missing = [name for name in _TEXTS if not isinstance(texts, dict) or not isinstance(texts.get(name), str)]
    if missing:
        raise DataError(path, f"{missing[0]!r} is missing or no text (needed: {', '.join(_TEXTS)})")
    return {name: texts[name] for name in _TEXTS}
