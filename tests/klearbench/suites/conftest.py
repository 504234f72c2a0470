"""No test of this folder asks the real hub, nor reads a data directory that the environment names."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("KLEARBENCH_DATA", raising=False)
    for module in ("huggingface_hub.constants", "datasets.config"):  # they look at the environment once, when imported
        if module in sys.modules:
            monkeypatch.setattr(f"{module}.HF_HUB_OFFLINE", True)
