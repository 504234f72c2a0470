"""The local sandbox's limits, programs that do not compile, and functional mode."""

from __future__ import annotations

import json
import time

import pytest
from localbox import Box

from klearbench.sandbox.base import Limits, RunResult, RunStatus
from klearbench.sandbox.values import Opaque, decode

SMALL = Limits(cpu_s=10, wall_s=60, memory_mb=512)


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "x = 3 ** 1_000_000\nfor _ in range(10): y = x * x * x * x",
        "import threading\nfor _ in range(3): threading.Thread(target=lambda: [0 for x in iter(int, 1)]).start()",
        "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, lambda *a: None)\n"
        "    except (OSError, ValueError): pass\nwhile True: pass",
    ],
)  # fmt: skip
def test_cpu_time_is_limited(box: Box, code: str) -> None:
    result = box.run(code, limits=Limits(cpu_s=0.2, wall_s=60))
    assert result.status is RunStatus.cpu_limit, result
    assert 0.2 <= result.cpu_s < 3


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "import signal; signal.pause()",
        "class A:\n    def __del__(self): import time; time.sleep(60)\na = A()\nprint(1, flush=True)",
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
        "import atexit, time; atexit.register(time.sleep, 60)",
    ],
)
def test_wall_time_is_limited(box: Box, code: str) -> None:
    started = time.monotonic()
    result = box.run(code, limits=Limits(cpu_s=10, wall_s=0.3))
    assert result.status is RunStatus.wall_limit, result
    assert 0.3 <= result.wall_s < 15 and time.monotonic() - started < 20 and result.cpu_s < 0.3


@pytest.mark.parametrize(
    "code",
    [
        "x = b'1' * (600 << 20)",
        "x = []\nwhile True: x.append('spam' * 1000 + str(len(x)))",
        "def f():\n    x = [0] * 10 ** 9\nf()",
        "import zlib\nd = zlib.decompressobj()\nx = [bytearray(1 << 24) for _ in range(64)]",
    ],
)
def test_memory_is_limited(box: Box, code: str) -> None:
    result = box.run(code, limits=SMALL)
    assert result.status is RunStatus.memory_limit, result
    assert result.peak_mb < 640


def test_a_program_that_copes_with_too_little_memory_goes_on(box: Box) -> None:
    assert box.say("try: x = b'1' * (600 << 20)\nexcept MemoryError: print('coped')", limits=SMALL) == "coped\n"
    assert box.say("x = b'1' * (400 << 20)\nprint(len(x))", limits=SMALL) == f"{400 << 20}\n"


def test_threads_with_large_stacks_fit_into_a_small_limit(box: Box) -> None:
    code = (
        "import sys, threading\nsys.setrecursionlimit(1 << 20)\nthreading.stack_size(256 << 20)\n"
        "def f(n): return n and 1 + f(n - 1)\nt = threading.Thread(target=lambda: print(f(20000)))\nt.start(); t.join()"
    )
    assert box.say(code, limits=SMALL) == "20000\n"


def test_a_recursion_deeper_than_the_stack_is_the_programs_end_and_a_deep_one_works(box: Box) -> None:
    deep = "import sys\nsys.setrecursionlimit(1 << 30)\n"
    assert box.say(deep + "def f(n): return n and 1 + f(n - 1)\nprint(f(100000))") == "100000\n"
    result = box.run(deep + "import json\njson.loads('[' * 4_000_000)")
    assert (result.status, result.signal) == (RunStatus.signalled, 11)
    assert box.say("print(1)") == "1\n"


@pytest.mark.parametrize(
    "code",
    [
        "while True: print('x' * 1000)",
        "import os\nwhile True: os.write(1, b'x' * 100000)",
        "print('x' * (3 << 20))",
    ],
)
def test_output_is_limited_and_its_beginning_kept(box: Box, code: str) -> None:
    result = box.run(code, limits=Limits(cpu_s=10, wall_s=60, output_mb=2))
    assert result.status is RunStatus.output_limit, result
    assert 0 < len(result.stdout) <= 2 << 20 and set(result.stdout) <= set(b"x\n")
    assert box.say("print(len('x' * (1 << 20)))") == "1048576\n"


def test_output_just_within_the_limit_passes(box: Box) -> None:
    result = box.run("print('x' * ((2 << 20) - 1))", limits=Limits(output_mb=2))
    assert (result.status, len(result.stdout)) == (RunStatus.exited, 2 << 20)


def test_a_flood_on_stderr_takes_no_memory_of_ours_and_is_no_fault(box: Box) -> None:
    result = box.run("import os\nfor _ in range(100): os.write(2, b'e' * 100000)\nprint('ok')")
    assert (result.status, result.stdout, len(result.stderr)) == (RunStatus.exited, b"ok\n", 4096)


def test_the_limits_of_one_submission_do_not_bind_the_next(box: Box) -> None:
    box.run("print(1)", limits=Limits(cpu_s=0.2, wall_s=1, memory_mb=64, output_mb=1))
    code = "import time\nx = b'1' * (300 << 20)\nwhile time.process_time() < 0.4: pass\nprint('y' * (2 << 20))"
    assert len(box.say(code)) == (2 << 20) + 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print(1", "SyntaxError"),
        ("if 1:\nprint(1)", "IndentationError"),
        ("x = 1\0", "null byte"),
        ("x = '\ud800'", "SyntaxError"),
        ("# -*- coding: nonsense -*-\nprint(1)", "unknown encoding"),
        ("(" * 100_000, "too many nested parentheses"),
        ("-" * 200_000 + "1", "Error"),
        ("x = " + "+".join(["1"] * 50_000), "Error"),
        ("x" + ".a" * 50_000, "Error"),
        ("return 1", "outside function"),
        ("x = " + "9" * 5000, "SyntaxError"),
        ("from __future__ import nonsense", "not defined"),
        ("import math\nfrom __future__ import annotations", "beginning of the file"),
        ("\tif 1:\n        x", "IndentationError"),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_a_program_that_does_not_compile(box: Box, code: str, said: str) -> None:
    for result in box.runs(code, "", ""):
        assert result.status is RunStatus.compile_error, result
        assert said in result.stderr.decode("utf-8", "replace") or result.signal == 11
        assert result.stdout == b""
    assert box.say("print(1)") == "1\n"


def test_a_compiler_that_needs_too_much_is_the_programs_fault(box: Box) -> None:
    limits = Limits(cpu_s=0.3, wall_s=20, memory_mb=128)
    result = box.run("x = (" + "1," * 2_000_000 + ")", limits=limits)
    assert result.status in (RunStatus.compile_error, RunStatus.cpu_limit, RunStatus.memory_limit), result
    assert box.run("x = 1 << (1 << 40)", limits=limits).status in (RunStatus.compile_error, RunStatus.memory_limit)
    assert box.say("print(1)") == "1\n"


@pytest.mark.parametrize(
    ("code", "out"),
    [
        ("\ufeffprint('bom')", "bom\n"),
        ("# -*- coding: utf-8 -*-\nprint('é')", "é\n"),
        ("#!/usr/bin/python3\n# coding: latin-1\nprint(len('é'))", "2\n"),
        ("if 1:\r\n    print('crlf')\r\n", "crlf\n"),
        ("if 1:\r    print('cr')\r", "cr\n"),
        ("print('''a\r\nb'''.count(chr(13)))", "0\n"),
        ("print(1)\x0c\nprint(2)", "1\n2\n"),
        ("print(__debug__)", "True\n"),
        ("print(1)  # no newline at the end", "1\n"),
        ("", ""),
    ],
)
def test_sources_in_every_shape_run(box: Box, code: str, out: str) -> None:
    assert box.say(code) == out


def value(result: RunResult) -> object:
    assert (result.status, result.exit_code) == (RunStatus.exited, 0), result
    return decode(result.value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(1, [2, (3,)], {})", (1, [2, (3,)], {})),
        ("Counter('aab')", {"a": 2, "b": 1}),
        ("defaultdict(list, {'k': [1]})", {"k": [1]}),
        ("2 ** 100", 2**100),
        ("float('inf')", float("inf")),
        ("'\\ud800é\\0'", "\ud800é\0"),
        ("namedtuple('P', 'x y')(1, 2)", (1, 2)),
        ("type('I', (int,), {'__eq__': lambda s, o: True, '__repr__': lambda s: '9'})(3)", 3),
        ("type('S', (str,), {'__eq__': lambda s, o: True})('s')", "s"),
        ("type('L', (list,), {'__iter__': lambda s: iter([9])})([1])", [1]),
        ("None", None),
    ],
)
def test_a_value_comes_back_as_plain_data(box: Box, expression: str, expected: object) -> None:
    found = value(box.call(f"class Solution:\n    def f(self): return {expression}"))
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    "expression", ["deque([1])", "{1, 2}", "(x for x in [1])", "object()", "b'1'", "1j", "range(3)"]
)
def test_other_objects_are_opaque(box: Box, expression: str) -> None:
    assert isinstance(value(box.call(f"def f(): return {expression}")), Opaque)


def test_a_numpy_scalar_is_its_number_and_an_array_is_not(box: Box) -> None:
    code = "import numpy as np\ndef f(x): return [np.int64(x), np.float64(0.5), np.bool_(True), np.arange(2)]"
    *scalars, array = value(box.call(code, "7", limits=SMALL))  # type: ignore[misc]
    assert scalars == [7, 0.5, True] and [type(x) for x in scalars] == [int, float, bool]
    assert isinstance(array, Opaque)


def test_numpy_works_under_half_a_gigabyte(box: Box) -> None:
    code = (
        "import numpy as np\na = np.arange(10_000.0).reshape(100, 100)\n"
        "print(int((a.T @ a)[0, 0]), np.linalg.det(np.eye(9)))"
    )
    assert box.say(code, limits=SMALL) == "3283500000 1.0\n"


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    a = []\n    a.append(a)\n    return a",
        "def f():\n    a = {}\n    a[1] = a\n    return a",
        "def f():\n    x = []\n    for _ in range(100000): x = [x]\n    return x",
        "def f(): raise SystemExit(0)",
        "def f(): 1 / 0",
        "import sys\nsys.exit(0)\ndef f(): return 1",
        "def g(): return 1",
        "class Solution:\n    pass",
        "def f(x): return 1",
    ],
)
def test_a_call_that_gives_no_value(box: Box, code: str) -> None:
    result = box.call(code)
    assert (result.status in (RunStatus.exited, RunStatus.signalled)) and result.value == b"", result


def test_the_names_of_the_preamble_are_there(box: Box) -> None:
    code = (
        "def f(head: Optional[ListNode], t: List[int]) -> Dict[str, int]:\n"
        "    assert pow(2, 3, 5) == 3 and open('/dev/null') and ListNode(1).next is None and TreeNode().val == 0\n"
        "    return [gcd(4, 6), heappop([1]), bisect_left([1, 3], 2), accumulate([1, 2]) is not None, inf > 1,\n"
        "            reduce(lambda a, b: a + b, t), sys.getrecursionlimit(), ascii_lowercase[:2],\n"
        "            lru_cache(None)(len)('ab'), __name__ != '__main__', str(timedelta(0))]"
    )  # fmt: skip
    assert value(box.call(code, "null\n[1, 2]")) == [2, 1, 1, True, True, 3, 50000, "ab", 2, True, "0:00:00"]


def test_names_of_the_preamble_are_absent_from_plain_programs_and_there_on_demand(box: Box) -> None:
    assert b"NameError" in box.run("print(gcd(4, 6))").stderr
    assert box.say("print(gcd(4, 6), stdin.read())", "abc", preamble="lcb") == "2 abc\n"


def test_each_line_is_an_argument_and_output_is_ignored(box: Box) -> None:
    code = (
        "import sys\nseen = []\ndef f(*a):\n    print('noise'); print('noise', file=sys.stderr)\n"
        "    seen.append(a)\n    return [list(x) for x in seen]"
    )
    runs = box.runs(code, '1\n"two"\n\n[3, null]\n', json.dumps({"a": True}), mode="functional", fn_name="f")
    assert [value(r) for r in runs] == [[[1, "two", [3, None]]], [[{"a": True}]]]
    assert [r.stdout for r in runs] == [b"", b""]


def test_a_value_over_the_output_limit(box: Box) -> None:
    limits = Limits(cpu_s=10, wall_s=60, output_mb=1)
    assert box.call("def f(): return 'x' * (2 << 20)", limits=limits).status is RunStatus.output_limit
    assert value(box.call("def f(): return 'x' * (1 << 19)", limits=limits)) == "x" * (1 << 19)
