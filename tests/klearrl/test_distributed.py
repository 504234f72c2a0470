"""One process without a launcher: no port, and nothing that a child would take for a launcher's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.train

CODE = """
import os
from klearrl import distributed
distributed.setup()
distributed.setup()
assert (distributed.rank(), distributed.world_size(), distributed.is_main()) == (0, 1, True)
assert distributed.gather(7) == [7] and distributed.total({"a": 2.0}) == {"a": 2.0}
print(sorted({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} & set(os.environ)))
"""


def test_one_process_leaves_no_launchers_variables_for_its_children():
    clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=clean)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
