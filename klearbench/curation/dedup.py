"""Exact copies, after normalising: the first one stays. Sixteen bytes of memory a text."""

from __future__ import annotations

import hashlib

from klearbench.curation.decontaminate import normalise


class Seen:
    """The texts that came before, as 128-bit hashes."""

    def __init__(self) -> None:
        self._hashes: dict[bytes, str] = {}

    def first(self, name: str, *parts: str) -> str | None:
        """The name under which the same parts came before; None, and they are remembered, when they are new."""
        text = "\0".join(normalise(part) for part in parts)
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in self._hashes:
            return self._hashes[key]
        self._hashes[key] = name
        return None
