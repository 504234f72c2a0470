"""Where a completion's thinking ends: the tags of several model families, and the tokens that end a chat turn."""

from __future__ import annotations

import re

_NAMES = (
    "think(?:ing)?|thoughts?|reasoning|reason|reflection|scratchpad|analysis|seed:think|begin_of_thought|end_of_thought"
)
THINKING_TAG = re.compile(
    rf"<\s?(/?)\s?(?:{_NAMES})\s?>|\[(/?)(?:THINK|THINKING|REASONING)\]|◁(/?)think▷"
    r"|<\|(begin|end)_of_thought\|>|<\|(/?)(?:think|thinking)\|>|(<\|channel>thought)|(<channel\|>)",
    re.IGNORECASE,
)
TURN_END = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end_of_turn|end|return|eos|user|observation)\|>|</s>|<eos>|<end_of_turn>"
    r"|<turn\|>|<｜end▁of▁sentence｜>|<\|im_start\|>\s?(?:user|system)|<start_of_turn>user|<\|start_header_id\|>user|\[INST\]"
    r"|\n\s?(?:Human|User|### ?Instruction|### ?Human|### ?User):"
)
FINAL_CHANNEL = re.compile(r"<\|channel\|>\s?final\b[^<]{0,40}<\|message\|>")


def closes(tag: str) -> bool:
    """Whether a text that `THINKING_TAG` matched ends the thinking (else it begins it)."""
    return "/" in tag[:4] or "end_of" in tag or tag.lower().startswith("<|end_of") or tag == "<channel|>"
