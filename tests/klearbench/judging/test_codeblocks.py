"""From a completion to its program, by the policy in the docstring of codeblocks.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klearbench.judging.codeblocks import CodeBlock, extract_code, lcb_extract
from tests.timing import assert_quick

GOOD = "n = int(input())\nprint(n)"
FENCED = f"```python\n{GOOD}\n```"
DRAFT = "```python\nprint('draft')\n```"


@pytest.mark.parametrize(
    "completion",
    [
        FENCED,
        FENCED + "\n",
        f"Text.\n\n{FENCED}\n\nMore text.",
        f"{DRAFT}\nBetter:\n{FENCED}",
        *[
            f"```{tag}\n{GOOD}\n```"
            for tag in ("py", "Python", "PYTHON3", "python3.11", "pypy3", "pypy", "py3", "python 3")
        ],
        *[f"``` {tag}\n{GOOD}\n```" for tag in ("python", " python ", "{.python}", "{python}", "python title=a.py")],
        f"```\n{GOOD}\n```",
        f"```\nprint(1)\n```\nthen\n```   \n{GOOD}\n```",
        f"~~~python\n{GOOD}\n~~~",
        f"````python\n{GOOD}\n````",
        f"````python\n{GOOD}\n``````",
        f"````markdown\nHere:\n{FENCED}\n````\n",
        f"````\nHere:\n{FENCED}\n````\n",
        f"```markdown\nHere:\n{FENCED}\n```\n",
        f"{FENCED}\nOutput:\n```text\n6\n```",
        f"{FENCED}\nOutput:\n```\n6\n```",
        f"{FENCED}\n```c++\nint main() {{}}\n```",
        f"{FENCED}\n```diff\n-a\n+b\n```\n```pycon\n>>> 1\n```",
        f"{FENCED}\n```python\n\n```\n",
        f"1. Step\n\n   ```python\n   {GOOD.replace(chr(10), chr(10) + '   ')}\n   ```",
        f"\t```python\n\t{GOOD.replace(chr(10), chr(10) + chr(9))}\n\t```",
        FENCED.replace("\n", "\r\n"),
        f"\ufeff{FENCED}",
        f"```python\n\ufeff{GOOD}\n```",
        f"```python\n\n\n{GOOD}\n\n```",
        f"```not a fence``` in a line\n{FENCED}\n```inline```",
        f"An odd fence\n```\nwithout an end\n{FENCED}",
        f"```python\nunfinished draft\n\nAgain:\n{FENCED}",
        # thinking
        f"<think>\n{DRAFT}\n</think>\n{FENCED}",
        f"{DRAFT}\n</think>\n{FENCED}",
        f"<think>```python\nodd</think>{FENCED}",
        f"<think>a</think>\nHm.\n<think>b\n{DRAFT}</think>\n{FENCED}",
        f"<think>\nno</think>\n{DRAFT}\n</think>\n{FENCED}",
        f"[THINK]{DRAFT}[/THINK]\n{FENCED}",
        f"◁think▷{DRAFT}◁/think▷\n{FENCED}",
        f"<seed:think>{DRAFT}</seed:think>\n{FENCED}",
        f"<reasoning>\n{DRAFT}\n</reasoning>\n{FENCED}",
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>{FENCED}<|return|>",
        f"The `<think>` tag is not used.\n{FENCED}",
        f"{FENCED}\n<think>Is that right?\n{DRAFT}",
        # turns that run on
        f"{FENCED}<|im_end|>\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n{DRAFT}",
        f"{FENCED}\n<|im_end|>\n{DRAFT}",
        f"{FENCED}\nHuman: and another one\n{DRAFT}",
    ],
)
def test_the_program_is_found(completion: str) -> None:
    assert extract_code(completion) == CodeBlock(GOOD)


@pytest.mark.parametrize(
    ("completion", "detail"),
    [
        ("", "no fenced block"),
        (GOOD, "no fenced block"),
        ("Use ```print(1)``` here", "no fenced block"),
        ("```python\n```", "the block is empty"),
        ("```python\n  \n\n```", "the block is empty"),
        ("```python", "the block is empty"),
        ("```c++\nint main() {}\n```\n```text\n1\n```", "no Python block, only c++, text"),
        ("```python-repl\n>>> 1\n```", "no Python block, only python-repl"),
        ("```pycon\n>>> 1\n```", "no Python block, only pycon"),
        (f"<think>\n{FENCED}\n</think>\nI give up.", "no fenced block"),
        (f"<think>\n{FENCED}\n```</think>\n", "no fenced block"),
        (f"<think>\n{FENCED}\n", "the thinking is unclosed"),
        (f"<think>done</think>\n<think>again\n{FENCED}", "the thinking is unclosed"),
        (f"<|channel|>analysis<|message|>{FENCED}", "the thinking channel is unclosed"),
    ],
)
def test_no_program(completion: str, detail: str) -> None:
    result = extract_code(completion)
    assert result.code is None
    assert result.detail == detail


@pytest.mark.parametrize(
    "code",
    [
        's = "```"\nprint(s)',
        's = """\nuse ~~~ here\n~~~\n"""\nprint(s)',
        'def f():\n    """Example:\n\n    ```\n    f()\n    ```\n    """\n    return 1',
        'def f():\n    """Example:\n\n    ```python\n    f()\n    ```\n    """\n    return 1',
        's = """\n```\nx\n```\n"""\nprint(s)',
        "s = '''\n```\nx \\''' y\n```\n'''\nprint(s)",
        '# it\'s a comment with """\nprint(1)',
        's = \'a """ b\'\nprint(s)',
        "# handles <think> text\nprint(1)",
        'print("<think>")\nprint(input().replace("</think>", ""))',
        "# strips </think>\nprint(1)",
        'print("<|im_end|>")',
        "if True:\n\tprint(1)",
        "print('\ud800')",
        "print('\x00')",
        "print('\u2028')",
    ],
)
@pytest.mark.parametrize("before", ["", "<think>hm\n```\n</think>\n", "hm</think>\n", DRAFT + "\n"])
@pytest.mark.parametrize("after", ["", "\nText.\n", "\nOutput:\n```\n1\n```\n", "\n```text\n'''\n```"])
def test_code_that_looks_like_markup_stays_whole(code: str, before: str, after: str) -> None:
    assert extract_code(f"{before}```python\n{code}\n```{after}") == CodeBlock(code)


def test_an_unbalanced_string_does_not_swallow_the_next_block() -> None:
    assert extract_code(f'```python\ns = """\n```\nFixed, """ added:\n{FENCED}') == CodeBlock(GOOD)
    assert extract_code('```python\ns = """\n```\nSee """ here') == CodeBlock('s = """')


@pytest.mark.parametrize("end", ["", "\n", "<|im_end|>", "\n<|endoftext|>"])
def test_an_open_last_fence_runs_to_the_end(end: str) -> None:
    for fence in ("```python", "```", "~~~py"):
        result = extract_code(f"{DRAFT if fence != '```' else ''}\n{fence}\n{GOOD}{end}")
        assert result == CodeBlock(GOOD, "the last fence is not closed", complete=False)
    assert not extract_code(f"````python\n{GOOD}\n```").complete


LINES = st.lists(
    st.text(st.characters(exclude_characters="\r\n`~'\"#<[◁\ufeff|")).filter(lambda s: s.strip()), min_size=1
)


@given(
    LINES, st.sampled_from(["```", "````", "~~~"]), st.sampled_from(["python", "py", ""]), st.sampled_from(["", "  "])
)
def test_code_in_a_fence_comes_back(lines: list[str], fence: str, tag: str, indent: str) -> None:
    code = "\n".join(lines)
    body = code.replace("\n", "\n" + indent)
    text = f"Some text.\n\n{indent}{fence}{tag}\n{indent}{body}\n{indent}{fence}\n\nMore."
    assert extract_code(text) == CodeBlock(code)


FENCES = ["```", "```python", "````", "~~~", "text"]
QUOTES = ['"""', "'''", "'", "#", "\\", "x=1"]
TAGS = ["<think>", "</think>", "<|channel|>", "<|im_end|>", "User:"]
ODD = ["\n", "\r\n", "\t", " ", "\ufeff", "\ud800", "\x00"]
MARKUP = st.lists(st.sampled_from([*FENCES, *QUOTES, *TAGS, *ODD]), max_size=40).map("".join)


@given(st.text() | MARKUP)
def test_any_text_is_taken(completion: str) -> None:
    for extractor in (extract_code, lcb_extract):
        result = extractor(completion)
        assert result.code is None or result.code.strip()
        assert result.code is not None or result.detail


@pytest.mark.parametrize(
    "text",
    [
        "```\n" * 250_000,
        "```python\n" * 100_000,
        "`" * 1_000_000,
        " " * 1_000_000,
        "<think>" * 140_000,
        "</think>" * 125_000,
        "```python\n" + "'</think>'\n" * 90_000,
        "```python\n'</think>'\n```\n" * 40_000,
        '```\n"""\n```\n' * 80_000,
        "```python\n'''\n```\n\"\"\"\n" * 40_000,
        '```python\n"""\n' + "```\n" * 240_000,
        '```python\n"' + "\\a" * 500_000 + "\n```\n",
        "```python\n" + '"' * 1_000_000 + "\n```\n",
        "<|im_end|>" * 100_000,
        "```\n<|im_end|>\n" * 60_000,
        (" " * 500 + "```\n") * 2000,
        "< " * 500_000,
    ],
    ids=range(17),
)
def test_a_hostile_megabyte_takes_seconds_at_most(text: str) -> None:
    assert_quick(lambda: (extract_code(text), lcb_extract(text)), 30)


@pytest.mark.parametrize(
    ("completion", "code"),
    [
        (FENCED, GOOD),
        (f"{DRAFT}\n{FENCED}\ntext", GOOD),
        (f"{FENCED}\n```text\n6\n```", "6"),
        (f"<think>{FENCED}</think> none", GOOD),
        ('```python\ns = "```"\nprint(1)\n```', "print(1)"),
        (f"```python\n{GOOD}", None),
        (GOOD, None),
        ("```python\n```", None),
        (f"~~~python\n{GOOD}\n~~~", None),
        (f"  ```\n  {GOOD}\n  ```", f"  {GOOD}"),
        ("```python\r\nprint(1)\r\n```", "print(1)\r"),
    ],
)
def test_lcb_takes_the_lines_between_the_last_two_fences(completion: str, code: str | None) -> None:
    assert lcb_extract(completion).code == code


@pytest.mark.shared
def test_extraction_rows_of_the_corpus(shared: Path) -> None:
    lines = (shared / "cases/code/judging_dev.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if "completion" in row]
    assert len(rows) >= 25
    wrong = [row["id"] for row in rows if extract_code(row["completion"]).code != row["extracted"]]
    assert wrong == []
