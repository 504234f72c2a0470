"""Programs that use what the tests of a slot share (descriptors, pipes, the parents' memory) against us or each other.

Each was shown to work once: it turned its own failure into a judge error, or reached another test or submission.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from klearbench.sandbox.base import Command, Limits, RunResult, RunStatus
from klearbench.sandbox.local import LocalSandbox
from klearbench.sandbox.wire import StreamSlot

HONEST = "print(sum(map(int, input().split())))"
SHORT = Limits(cpu_s=1.0, wall_s=4.0)


@pytest.fixture(scope="module", params=["namespaces", "landlock"])
def slot(request: pytest.FixtureRequest) -> Iterator[StreamSlot]:
    with LocalSandbox(tier=request.param) as box:
        yield box.open()


def run(slot: StreamSlot, code: str, *inputs: bytes, **fields: object) -> list[RunResult]:
    return list(slot.run(Command(code, limits=SHORT, **fields), inputs or (b"",)))  # type: ignore[arg-type]


def works(slot: StreamSlot) -> bool:
    """Whether the next submission is undisturbed."""
    results = run(slot, HONEST, b"1 2\n", b"3 4\n")
    return [(r.status, r.stdout) for r in results] == [(RunStatus.exited, b"3\n"), (RunStatus.exited, b"7\n")]


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_program_that_reads_its_own_output_breaks_nothing(slot: StreamSlot, name: str) -> None:
    number = {"stdout": 1, "stderr": 2}[name]
    code = (
        f"import os\ntry:\n    r = os.open('/dev/{name}', os.O_RDONLY | os.O_NONBLOCK)\n"
        "except OSError:\n    print('refused')\nelse:\n"
        f"    while True:\n        os.write({number}, b'x')\n        os.read(r, 1)"
    )
    [result] = run(slot, code)
    # Without a file system of its own the pipe can be opened for reading; then it may only hurt the program itself.
    assert result.status is RunStatus.exited
    assert result.stdout == b"refused\n" or "landlock" in slot.id
    assert works(slot)


def test_warnings_of_the_compiler_block_nobody(slot: StreamSlot) -> None:
    began = time.monotonic()
    results = run(slot, "0 is 0\n" * 3000 + HONEST, b"1 2\n", b"3 4\n", b"5 6\n")
    assert [r.stdout for r in results] == [b"3\n", b"7\n", b"11\n"]
    assert time.monotonic() - began < 20
    assert works(slot)


def test_a_function_that_writes_to_dev_stdout_reaches_nobody(slot: StreamSlot) -> None:
    code = (
        "def f(n):\n    try:\n        out = open('/dev/stdout', 'w')\n    except OSError:\n        return n\n"
        "    out.write('JUNK\\n' * n)\n    out.close()\n    return n"
    )
    results = run(slot, code, b"1", b"40000", mode="functional", fn_name="f")
    assert [(r.status, r.value) for r in results] == [(RunStatus.exited, b"1"), (RunStatus.exited, b"40000")]
    assert works(slot)


@pytest.mark.parametrize(
    "attempt",
    [
        "fcntl.flock(0, fcntl.LOCK_EX)",
        "fcntl.lockf(0, fcntl.LOCK_SH)",
        "fcntl.fcntl(0, 37, bytes(32))",
        "fcntl.fcntl(1, 1031, 4096)",
        "fcntl.fcntl(2, 1031, 1 << 20)",
        "fcntl.fcntl(0, 1036, bytes(8))",
        "fcntl.fcntl(1, 8, 1)",
        "fcntl.fcntl(1, 10, 9)",
        "fcntl.fcntl(0, 1024, 1)",
    ],
)
def test_nothing_can_be_left_on_a_shared_descriptor(slot: StreamSlot, attempt: str) -> None:
    code = f"import fcntl\ntry:\n    {attempt}\nexcept OSError:\n    print('refused')\nelse:\n    print('done')"
    for preface in ("", "import threading\n"):  # under the one filter and under the other
        [result] = run(slot, preface + code)
        assert result.stdout == b"refused\n"


def test_memory_holds_nothing_of_other_tests(slot: StreamSlot) -> None:
    """The program looks through its own heap, as far as its objects tell where that is."""
    code = (
        "import re\nmark = re.compile(rb'MK\\d-MK\\d-')\nword = input()\n"
        "if word == 'look':\n"
        "    seen, places = 0, sorted({id(object()) >> 20} | {id(x) >> 20 for x in [[], (1, 2), {}, word]})\n"
        "    for place in places:\n"
        "        for start in range((place - 1) << 20, (place + 2) << 20, 4096):\n"
        "            buffer = ctypes.create_string_buffer(4096)\n"
        "            if readable(start):\n"
        "                ctypes.memmove(buffer, start, 4096)\n"
        "                seen += len(mark.findall(buffer.raw))\n"
        "    print('seen', seen)\n"
        "else:\n    print(('MK%s-' % word) * 40)\n"
    )
    readable = (
        "import os\n_r, _w = os.pipe()\nos.set_blocking(_r, False)\n"
        "import ctypes\n_libc = ctypes.CDLL(None)\n"
        "def readable(at):\n"
        "    if _libc.write(_w, ctypes.c_void_p(at), 1) != 1:\n        return False\n"
        "    os.read(_r, 1)\n    return True\n"
    )
    results = run(slot, readable + code, b"1\n", b"2\n", b"look\n", b"3\n", b"look\n")
    assert [r.status for r in results] == [RunStatus.exited] * 5, results[2].stderr
    assert results[0].stdout.startswith(b"MK1-MK1-")
    # It finds nothing but what its own source makes: no mark with a digit is ever written there.
    assert [results[2].stdout, results[4].stdout] == [b"seen 0\n", b"seen 0\n"]


def test_a_process_group_is_out_of_reach(slot: StreamSlot) -> None:
    for call in ("os.kill(0, 9)", "os.killpg(0, 9)", "os.killpg(os.getpgrp(), 9)", "os.kill(-1, 9)"):
        results = run(slot, f"import os\ntry:\n    {call}\nexcept OSError:\n    pass\n" + HONEST, b"1 2\n", b"3 4\n")
        assert all(r.status in (RunStatus.exited, RunStatus.signalled) for r in results)
    assert works(slot)


def test_much_output_under_a_small_memory_limit_is_told_as_it_is(slot: StreamSlot) -> None:
    limits = Limits(cpu_s=5.0, wall_s=20.0, memory_mb=48)
    code = "import os\nb = b'x' * 65536\nfor _ in range(480):\n    os.write(1, b)"
    [result] = slot.run(Command(code, limits=limits), [b""])
    assert (result.status, len(result.stdout)) == (RunStatus.exited, 480 * 65536)
    assert works(slot)


@pytest.mark.parametrize("code", ["1 << 70", "-(1 << 70)", "300", "-1", "True"])
def test_exit_codes_are_those_of_the_interpreter(slot: StreamSlot, code: str) -> None:
    source = f"import sys\nsys.exit({code})"
    [result] = run(slot, source)
    assert result.exit_code == subprocess.run([sys.executable, "-c", source], check=False).returncode
