"""The part of a completion that counts: the first assistant turn, after its thinking.

Known are the thinking tags of several model families, channels, and the tokens that end a chat turn. All is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from klearbench.judging.normalize import visible

_NAMES = (
    "think(?:ing)?|thoughts?|inner_thoughts?|reasoning|reason|reflection|scratchpad|analysis|seed:think"
    "|begin_of_thought|end_of_thought"
)
THINKING_TAG = re.compile(
    rf"<\s?(/?)\s?(?:{_NAMES})(?:\s[^<>]{{0,40}})?>|\[(/?)(?:THINK|THINKING|REASONING)\]|◁(/?)think▷"
    r"|<\|(begin|end)_of_thought\|>|<\|(START|END)_THINKING\|>|<\|(/?)(?:think|thinking)\|>"
    r"|(<\|channel>thought)|(<channel\|>)",
    re.IGNORECASE,
)
_TAG_BEGINS = re.compile(r"[<\[◁]")
_TOKENS = (
    "im_end|eot_id|eom_id|endoftext|end_of_text|end_of_turn|END_OF_TURN_TOKEN|END_RESPONSE|end|return|eos|user"
    "|observation"
)
TURN_END = re.compile(
    rf"<\|(?:{_TOKENS})\|>|</s>|<eos>|<end_of_turn>|<turn\|>|<｜end▁of▁sentence｜>|<｜User｜>"
    r"|<\|im_start\|>\s?(?:user|system)|<start_of_turn>user|<\|start_header_id\|>user|<\|start_of_role\|>user|\[INST\]"
    r"|\n\s?(?:Human|User|### ?Instruction|### ?Human|### ?User):"
)
FINAL_CHANNEL = re.compile(r"<\|channel\|>\s?final\b[^<]{0,40}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>")

_BARE_CHANNEL = re.compile(r"\s{0,9}analysis(?=[A-Z]|\n)")
_BARE_FINAL = "assistantfinal"
_ASSISTANT = re.compile(
    r"<\|im_start\|>\s?assistant\s?|<start_of_turn>model\s?|<\|start_header_id\|>assistant<\|end_header_id\|>\s?"
    r"|<\|assistant\|>\s?|<｜Assistant｜>|\[/INST\]"
)
_TEXT_BEGINS = re.compile(r"(?:\s|<s>|<bos>|<\|begin_of_text\|>|<｜begin▁of▁sentence｜>){0,9}")
_CHAT_BEGINS = (
    "<|im_start|>",
    "<start_of_turn>",
    "<|start_header_id|>",
    "<|user|>",
    "<|system|>",
    "[INST]",
    "<｜User｜>",
)
_CUT_TAG = re.compile(r"(?:</(?!s\Z)[a-z:]{0,12}|\[/[a-z]{0,8}|◁/[a-z]{0,5})\Z", re.IGNORECASE)
_TAG_NAMES = ("think", "thinking", "thought", "reasoning", "analysis", "seed:think")
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code) != "｜"}  # a token of some chats has it


def closes(tag: str) -> bool:
    """Whether a text that `THINKING_TAG` matched ends the thinking (else it begins it)."""
    return "/" in tag[:4] or "end_" in tag[:6].lower() or tag == "<channel|>"


def after_thinking(completion: str) -> tuple[str, str]:
    """The text that counts, and why it was cut ("" if it was not).

    It is the part of the first assistant turn after the last closing thinking tag, without invisible characters and
    with full-width signs as ASCII. A turn that ends inside its thinking has none.
    """
    text = visible(completion)
    if not text.isascii():
        text = text.translate(_WIDE)
    if "<|channel|>" in text:
        final = FINAL_CHANNEL.search(text)
        if final is None:
            ended = "<|end|>" in text or "<|return|>" in text
            return "", "" if ended else "the thinking channel is unclosed"
        text = text[final.end() :]
    elif _BARE_CHANNEL.match(text) is not None and _BARE_FINAL in text:  # decoded without the special tokens
        text = text.partition(_BARE_FINAL)[2]
    else:
        text = _own_turn(text)
    return _visible_part(text)


def _visible_part(text: str) -> tuple[str, str]:
    """What is neither thinking nor another turn, and why it was cut; the text begins with the assistant's turn."""
    tags = [tag for tag in _tags(text) if closes(tag[0]) or not _spoken_of(text, tag)]
    end = _turn_end(text, tags)
    start, is_open = 0, False
    for tag in tags:
        if tag.start() >= end:
            break
        is_open = not closes(tag[0])
        start = start if is_open else tag.end()
    if is_open:
        return "", "the thinking is unclosed"
    tail = text[start:end]
    cut = _CUT_TAG.search(tail, max(0, len(tail) - 16))
    if cut is not None and start == 0 and any(name.startswith(cut[0][2:].lower()) for name in _TAG_NAMES):
        return "", "the thinking is unclosed (its closing tag is cut)"
    return tail, ""


def _tags(text: str) -> Iterator[re.Match[str]]:
    """The tags in their order; looking for their first characters alone is many times quicker."""
    at = 0
    for lead in _TAG_BEGINS.finditer(text):
        tag = THINKING_TAG.match(text, lead.start()) if lead.start() >= at else None
        if tag is not None:
            at = tag.end()
            yield tag


def _spoken_of(text: str, tag: re.Match[str]) -> bool:
    """Whether a tag stands in backticks: the text speaks of it."""
    return text[max(0, tag.start() - 1) : tag.start()] == "`" and text[tag.end() : tag.end() + 1] == "`"


def _turn_end(text: str, tags: list[re.Match[str]]) -> int:
    """Where the turn ends. A token always ends it; a line "User:" does not where it stands inside the thinking."""
    at, thinking = 0, bool(tags) and closes(tags[0][0])
    for end in TURN_END.finditer(text):
        while at < len(tags) and tags[at].start() < end.start():
            thinking = not closes(tags[at][0])
            at += 1
        if not thinking or not end[0].startswith("\n"):
            return end.start()
    return len(text)


def _own_turn(text: str) -> str:
    """Without an echoed prompt: what follows the first assistant header, if the text begins with a chat header."""
    begins = _TEXT_BEGINS.match(text)
    start = begins.end() if begins is not None else 0
    header = _ASSISTANT.search(text, start)
    if header is None or not (header.start() == start or text.startswith(_CHAT_BEGINS, start)):
        return text[start:] if text.startswith(_CHAT_BEGINS, start) else text
    return text[header.end() :]
