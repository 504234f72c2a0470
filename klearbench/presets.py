"""Named settings of `klearbench eval`: what a published figure was measured with. A flag beside a preset overrides it.

Source: the Klear-Reasoner report (arXiv 2508.07629), evaluation section: temperature 0.6, top_p 0.95, avg@64 on AIME
and HMMT, avg@8 on LiveCodeBench with its own prompt; 32K tokens, or 64K with YaRN 2.5. Its released script samples with
top_k 20 and a repetition penalty of 1.05 besides, which is a preset of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from klearbench.errors import UsageError, unknown_name

_SAMPLES = {
    **dict.fromkeys(("aime24", "aime25", "aime26", "hmmt25", "amc23"), 64),
    **dict.fromkeys(("lcb-v5", "lcb-v6"), 8),
}


@dataclass(frozen=True, slots=True)
class Preset:
    """Flags with their values, by the names of their parameters, and k by suite (1 where the source has none)."""

    about: str
    flags: Mapping[str, Any]
    samples: Mapping[str, int] = field(default_factory=lambda: _SAMPLES)


_KLEAR: dict[str, Any] = {"temperature": 0.6, "top_p": 0.95, "top_k": 0, "prompt": "official"}

PRESETS: dict[str, Preset] = {
    "klear-32k": Preset("the report's figures at 32K tokens", {**_KLEAR, "max_tokens": 32768}),
    "klear-64k": Preset(
        "the report's figures at 64K tokens, YaRN 2.5", {**_KLEAR, "max_tokens": 65536, "rope_scaling": "yarn:2.5"}
    ),
    "klear-script": Preset(
        "the released script: as klear-32k, with top_k 20 and repetition penalty 1.05",
        {**_KLEAR, "max_tokens": 32768, "top_k": 20, "repetition_penalty": 1.05},
    ),
}


def preset(name: str) -> Preset:
    """A preset by name. Raises UsageError for an unknown one."""
    if name not in PRESETS:
        raise UsageError(unknown_name("preset", name, PRESETS))
    return PRESETS[name]
