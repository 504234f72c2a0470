"""From a completion to the program it commits to.

Policy: the text after the last closing thinking tag counts; the last fenced block tagged as Python is the program;
without one, the last untagged block. Blocks of other languages never count, nor does a text without a fence.
A fence stands at the start of a line (its indent is taken off the code), of three or more backticks or tildes; it is
closed by as many or more of the same kind. The last fence may stay open: the code then runs to the end of the text.

Where Markdown alone goes wrong: a closing fence inside a triple-quoted string of Python is part of the string (unless
that would swallow the next block); a fence tagged as Python opens a block even where an earlier fence was left open;
a thinking tag inside a string or comment of a closed Python block is code.
Not covered: fences after a list marker or a quote mark on their own line; code without any fence.

All is linear: a megabyte of hostile text takes well under a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from klearbench.judging.pyfences import Block, find_blocks
from klearbench.judging.thinking import FINAL_CHANNEL, THINKING_TAG, TURN_END, closes

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """The program of a completion.

    `code` is None if there is none, and `detail` says why. `complete` is False when the text ends inside its fence.
    """

    code: str | None
    detail: str = ""
    complete: bool = True


def extract_code(completion: str) -> CodeBlock:
    """The program a completion commits to. Never raises; any text is allowed, lone surrogates and NUL included."""
    text = completion.removeprefix(_BOM)
    if "<|channel|>" in text:
        final = FINAL_CHANNEL.search(text)
        if final is None:
            return CodeBlock(None, "the thinking channel is unclosed", complete=False)
        text = text[final.end() :]
    tail = text[_thinking_end(text) :]
    blocks = _own_turn(tail, find_blocks(tail))
    opening = _opening_outside(tail, blocks)
    before = [block for block in blocks if opening is None or block.start < opening]
    if opening is not None and not any(_body(tail, block).strip() for block in before):
        return CodeBlock(None, "the thinking is unclosed", complete=False)
    return _choose(tail, before)


def _choose(tail: str, blocks: list[Block]) -> CodeBlock:
    for kind in ("python", ""):
        for block in reversed(blocks):
            code = _body(tail, block) if block.language == kind else ""
            if code.strip():
                return CodeBlock(code, "" if block.closed else "the last fence is not closed", complete=block.closed)
    if not blocks:
        return CodeBlock(None, "no fenced block")
    others = sorted({block.language for block in blocks} - {"python", ""})
    return CodeBlock(None, f"no Python block, only {', '.join(others[:5])}" if others else "the block is empty")


def _body(tail: str, block: Block) -> str:
    """The code of a block: without the fence's indent, with line feeds as line ends, without blank edges."""
    body = tail[block.body : block.end]
    if not block.closed:
        stop = TURN_END.search(body)
        body = body[: stop.start()] if stop else body
    body = body.replace("\r\n", "\n")
    if block.indent:
        body = re.sub(rf"^[ \t]{{1,{min(block.indent, 1000)}}}", "", body, flags=re.MULTILINE)
    return body.strip("\n").removeprefix(_BOM)


def _thinking_end(text: str) -> int:
    """Where the text that counts begins: after the last closing tag that is not code itself."""
    tags = [tag for tag in THINKING_TAG.finditer(text) if closes(tag[0])]
    sure = 0
    doubtful: list[re.Match[str]] = []
    for tag in tags:
        if _may_be_code(text, tag):
            doubtful.append(tag)
        else:
            sure, doubtful = tag.end(), []
    if not doubtful:
        return sure
    closed = [b for b in find_blocks(text[sure:]) if b.closed and b.language == "python"]
    spans = [(b.body + sure, b.end + sure) for b in closed]
    at, end = 0, sure
    for tag in doubtful:
        while at < len(spans) and spans[at][1] <= tag.start():
            at += 1
        if at == len(spans) or tag.start() < spans[at][0]:
            end = tag.end()
    return end


def _may_be_code(text: str, tag: re.Match[str]) -> bool:
    """Whether a tag stands in quotes or in a comment, as in a program that handles such tags. Looks 200 characters."""
    before = text[max(0, tag.start() - 200) : tag.start()].rpartition("\n")[2]
    after = text[tag.end() : tag.end() + 200].partition("\n")[0]
    return "#" in before or any(quote in before and quote in after for quote in "'\"")


def _own_turn(tail: str, blocks: list[Block]) -> list[Block]:
    """The blocks before the end of the assistant's turn; a token for it inside a closed block is code."""
    at = 0
    for match in TURN_END.finditer(tail):
        while at < len(blocks) and blocks[at].end <= match.start():
            at += 1
        inside = at < len(blocks) and blocks[at].closed and blocks[at].start <= match.start()
        if not inside and tail[: match.start()].strip():
            return [block for block in blocks if block.start < match.start()]
    return blocks


def _opening_outside(tail: str, blocks: list[Block]) -> int | None:
    """Where thinking begins again outside of the blocks; quoted in backticks a tag is only spoken of."""
    at = 0
    for tag in THINKING_TAG.finditer(tail):
        while at < len(blocks) and blocks[at].end <= tag.start():
            at += 1
        inside = at < len(blocks) and blocks[at].start <= tag.start()
        if not inside and not closes(tag[0]) and tail[max(0, tag.start() - 1) : tag.start()] != "`":
            return tag.start()
    return None


def lcb_extract(completion: str) -> CodeBlock:
    """The program as LiveCodeBench's own runner takes it (for `compat`): the lines between the last two lines that
    hold three backticks anywhere.

    Unlike `extract_code` it knows no thinking, no tags (a block of output after the program replaces it), no tildes
    and no indents; backticks inside the code cut it; one unclosed fence leaves no code; line ends stay as they are.
    """
    lines = completion.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    if len(fences) < 2:
        return CodeBlock(None, "fewer than two lines with three backticks", complete=False)
    code = "\n".join(lines[fences[-2] + 1 : fences[-1]])
    return CodeBlock(code) if code.strip() else CodeBlock(None, "the block is empty")
