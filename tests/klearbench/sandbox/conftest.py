"""Fixtures of the local sandbox's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from localbox import Box

from klearbench.sandbox.base import SandboxError


@pytest.fixture(scope="module", params=["namespaces", "landlock"])
def box(request: pytest.FixtureRequest) -> Iterator[Box]:
    """A slot of each tier that this machine has."""
    try:
        box = Box(request.param)
    except SandboxError as error:
        pytest.skip(f"no tier {request.param} here: {str(error).splitlines()[-1]}")
    yield box
    box.close()
