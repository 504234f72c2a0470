"""The hostile programs: none earns what it should not, breaks the judge, or leaves anything behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from codecorpus import judged_attacks, read_rows

from klearbench.sandbox.docker import SLOT_LABEL
from klearbench.sandbox.image import connect

pytestmark = [pytest.mark.shared, pytest.mark.slow]

LONGEST_S = 0.3
"""Time limit of attacks that burn time until they are stopped: the corpus allows them up to 6 s."""


def test_no_attack_succeeds_in_the_local_sandbox(shared: Path) -> None:
    rows = read_rows(shared, "attacks_dev.jsonl")
    assert len(rows) > 70
    assert judged_attacks(rows, "local", 12, tier="namespaces", longest_s=LONGEST_S) == []


@pytest.mark.docker
def test_no_attack_succeeds_in_docker(shared: Path, docker_host: str) -> None:
    assert judged_attacks(read_rows(shared, "attacks_dev.jsonl"), "docker", 4, longest_s=LONGEST_S) == []
    client = connect()
    try:
        filters = {"label": SLOT_LABEL}
        assert client.containers.list(all=True, filters=filters, ignore_removed=True) == []
    finally:
        client.close()
