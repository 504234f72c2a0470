"""What the end of a stream leaves behind: nothing, whatever its calls were doing."""

from __future__ import annotations

import asyncio
import gc
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

httpx = pytest.importorskip("httpx")
anyio = pytest.importorskip("anyio")

from klearbench.engines.openai import _Background  # noqa: E402


def test_a_call_that_is_given_up_while_it_connects_leaves_no_warning() -> None:
    """A connection is tried in a task of its own; here the stream ends just before that task's first step."""
    calls: Any = SimpleNamespace(client=httpx.AsyncClient())
    given_up = []

    async def connecting() -> None:
        try:
            async with anyio.create_task_group() as group:
                background._ended.set()
                group.start_soon(asyncio.sleep, 60)
                await anyio.sleep_forever()
        except asyncio.CancelledError:
            given_up.append(True)
            raise

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with _Background(calls) as background:
            future = background.start(connecting())
        gc.collect()
    assert future.cancelled() and given_up == [True]
    assert not [str(warning.message) for warning in caught if "never awaited" in str(warning.message)]
