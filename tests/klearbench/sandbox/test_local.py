"""The local sandbox runs a program as a plain `python3 solution.py` would: streams, its beginning, its end."""

from __future__ import annotations

import signal

import pytest
from localbox import Box, library_is_open, plain

from klearbench.sandbox.base import Limits, RunStatus

ENDS = {
    "falls off the end": "print(1)",
    "exit 0": "print(1); exit()",
    "quit 3": "print(1); quit(3)",
    "sys.exit with a text": "import sys; print(1); sys.exit('no way')",
    "sys.exit None": "import sys; sys.exit(None)",
    "sys.exit 300": "import sys; sys.exit(300)",
    "sys.exit -1": "import sys; sys.exit(-1)",
    "sys.exit True": "import sys; sys.exit(True)",
    "SystemExit in a function": "def f(): raise SystemExit(5)\ntry: f()\nfinally: print('bye')",
    "os._exit loses what is not flushed": "import os; print('lost'); os._exit(4)",
    "an exception": "print(1)\nraise ValueError('x')",
    "a hook of its own": "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__)\n1 / 0",
    "an exception that can't be shown": "class E(Exception):\n    def __str__(self): return 1 / 0\nraise E",
    "a base exception": "class E(BaseException): pass\nraise E",
    "unflushed after a write": "import sys; sys.stdout.write('no newline')",
    "atexit": "import atexit\natexit.register(print, 'first')\natexit.register(print, 'second')\nprint('main')",
    "atexit after a failure": "import atexit\natexit.register(print, 'still')\n1 / 0",
    "atexit that fails": "import atexit\natexit.register(lambda: 1 / 0)\natexit.register(print, 'a')\nprint(1)",
    "atexit that exits": "import atexit, os\natexit.register(lambda: os._exit(7))\nprint(1, flush=True)",
    "__del__ at the end": "class A:\n    def __del__(self): print('gone')\na = A()\nprint('main')",
    "__del__ in a cycle": "class A:\n    def __del__(self): print('gone')\na = A(); a.me = a\nprint('main')",
    "__del__ of two": "class A:\n    def __init__(s, n): s.n = n\n    def __del__(s): print(s.n)\n_x = A(1)\ny = A(2)",
    "a finalizer": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\nprint('main')",
    "a generator's finally": (
        "def g():\n    try: yield 1\n    finally: print('closed')\n"
        "x = g(); next(x); print('main')"
    ),
    "a second text layer": "import io, sys\nout = io.TextIOWrapper(sys.stdout.buffer)\nout.write('two layers')",
    "a bytes layer": "import sys\nsys.stdout.buffer.write(b'bytes')",
    "an unflushed file on 1": "f = open(1, 'w', closefd=False)\nf.write('unflushed')",
    "an unflushed copy of 1": "import os\nf = os.fdopen(os.dup(1), 'w')\nf.write('unflushed')\nprint('main')",
    "stdout replaced": "import io, sys\nsys.stdout = io.StringIO()\nprint('lost')",
    "stdout replaced and written at the end": (
        "import io, sys\nreal, sys.stdout = sys.stdout, io.StringIO()\nprint(1)\nreal.write(sys.stdout.getvalue() * 2)"
    ),
    "stdout None": "import sys\nsys.stdout = None\nprint('lost')",
    "stdout closed": "import sys\nprint(1)\nsys.stdout.close()",
    "descriptor 1 closed": "import os\nprint(1)\nos.close(1)",
    "a thread that is joined at the end": (
        "import threading, time\ndef f():\n    time.sleep(0.1)\n    print('thread')\n"
        "threading.Thread(target=f).start()\nprint('main')"
    ),
    "a daemon thread that is not": (
        "import threading, time\ndef f():\n    time.sleep(30)\n    print('thread')\n"
        "threading.Thread(target=f, daemon=True).start()\nprint('main')"
    ),
    "a thread that fails": "import threading\nthreading.Thread(target=lambda: 1 / 0).start()\nprint('main')",
    "a deep recursion in a thread": (
        "import sys, threading\nsys.setrecursionlimit(1 << 20)\nthreading.stack_size(1 << 26)\n"
        "def f(n): return n and 1 + f(n - 1)\nt = threading.Thread(target=lambda: print(f(50000)))\nt.start(); t.join()"
    ),
    "a pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(3) as p: print(list(p.map(lambda x: x * x, range(5))))"
    ),
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 3\nprint(asyncio.run(f()))",
}  # fmt: skip

BEGINNINGS = {
    "depth": "n = 0\ndef f():\n    global n\n    n += 1\n    f()\ntry: f()\nexcept RecursionError: print(n)",
    "depth within a function": (
        "def main():\n    def f(k):\n        try: return f(k + 1)\n        except RecursionError: return k\n"
        "    print(f(0))\nmain()"
    ),
    "depth of a comparison": "a = []\nfor _ in range(2000): a = [a]\ntry: print(a == [a])\n"
    "except RecursionError: print('no')",
    "too many digits": "print(len(str(10 ** 5000)))",
    "its name": "print(__name__, __doc__, __package__)\nif __name__ == '__main__': print('guarded')",
    "arguments": "import sys; print(len(sys.argv), sys.argv[0][-11:], __file__[-11:])",
    "main is importable": "import __main__\nx = 5\nprint(__main__.x)",
    "globals": "x = 3\nprint(globals()['x'], 'Counter' in globals(), 'math' in globals())",
    "annotations": "x: int = 3\nprint(__annotations__)",
    "a pickled class": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__name__)",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: 'int' = 2\nprint(P(1))",
    "future": "from __future__ import annotations\ndef f(x: Nope) -> Nope: return x\nprint(f(2))",
    "exec and eval": "exec('y = 4')\nprint(eval('y + 1'))\nexec(open(__file__).read().split('#')[1]) # print('again')",
    "a set's order": "print(set('sandbox'), hash('a') == hash('a'))",
    "encodings": "import sys; print(sys.stdin.encoding, sys.stdout.encoding, sys.stderr.encoding, ascii('é'))",
    "a docstring": '"""The text."""\nprint(__doc__)',
}

READS = {
    "input": "print(input(), input())",
    "input with a prompt": "x = input('name? ')\nprint(x)",
    "iteration": "import sys\nprint([len(line) for line in sys.stdin])",
    "readline then read": "import sys\nprint([sys.stdin.readline(), sys.stdin.read(), sys.stdin.read()])",
    "readlines": "import sys\nprint(sys.stdin.readlines(), sys.stdin.isatty(), sys.stdin.fileno())",
    "buffer": "import sys\nprint(sys.stdin.buffer.readline(), sys.stdin.buffer.read())",
    "open 0": "print(open(0).read().split())",
    "os.read": "import os\nprint(os.read(0, 5), os.read(0, 100), os.read(0, 5))",
    "size": "import os, stat\ns = os.fstat(0)\nprint(s.st_size, stat.S_ISREG(s.st_mode))",
    "fast reader": "import io, os\nbuf = io.BytesIO(os.read(0, os.fstat(0).st_size))\n"
    "print(buf.readline(), buf.read())",
    "map": "import mmap\nm = mmap.mmap(0, 0, access=mmap.ACCESS_READ)\nprint(m[:], len(m))",
    "seek": "import sys\na = sys.stdin.read(); sys.stdin.seek(0)\nprint(a == sys.stdin.read(), sys.stdin.tell())",
    "fileinput": "import fileinput\nprint([x.strip() for x in fileinput.input()])",
    "past the end": "try:\n    while True: print(input())\nexcept EOFError: print('end')",
    "select": "import select, sys\nprint(len(select.select([sys.stdin], [], [], 0)[0]))",
    "stdin replaced": "import io, os, sys\nsys.stdin = io.StringIO(os.read(0, 99).decode())\nprint(input())",
}
LATE = ("a pool", "asyncio", "a pickled class", "fileinput")
"""They import modules that the warm interpreter has not loaded yet."""
WORDS = "one two\nthree\r\n\n4 é"


def same_as_plain(box: Box, tmp_path, name: str, code: str, data: str = "") -> None:
    if name in LATE and box.tier == "landlock" and not library_is_open():
        pytest.skip("this Python lies in a folder that the sandbox's user can't enter")
    result = box.run(code, data)
    assert result.status is RunStatus.exited, result
    assert (result.stdout.decode(), result.exit_code) == plain(tmp_path, code, data), result.stderr.decode()


@pytest.mark.parametrize("name", ENDS)
def test_a_program_ends_as_under_plain_python(box: Box, tmp_path, name: str) -> None:
    same_as_plain(box, tmp_path, name, ENDS[name])


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_program_finds_what_plain_python_gives(box: Box, tmp_path, name: str) -> None:
    same_as_plain(box, tmp_path, name, BEGINNINGS[name])


@pytest.mark.parametrize("name", READS)
def test_standard_input_is_a_file_as_under_plain_python(box: Box, tmp_path, name: str) -> None:
    same_as_plain(box, tmp_path, name, READS[name], WORDS)


def test_streams_can_be_opened_by_name_where_the_sandbox_has_folders(box: Box) -> None:
    if box.tier == "landlock":
        pytest.skip("without a file system of its own a program has its streams as descriptors alone")
    code = "s = open('/dev/stdin').read()\nwith open('/dev/stdout', 'w') as f: f.write(s.upper())"
    assert box.say(code, "abc") == "ABC"
    assert box.say("print(open('/dev/stdin', 'rb').read() == b'q' * 200000)", b"q" * 200_000) == "True\n"


def test_a_large_input_arrives_whole(box: Box) -> None:
    data = b"12345\n" * 1_000_000
    code = "import sys, os\nprint(os.fstat(0).st_size)\nd = sys.stdin.buffer.read()\nprint(len(d), d.count(b'\\n'))"
    assert box.say(code, data) == "6000000\n6000000 1000000\n"


def test_standard_input_is_read_only(box: Box) -> None:
    code = (
        "import os\n"
        "for act in (lambda: os.write(0, b'x'), lambda: os.ftruncate(0, 0)):\n"
        "    try: act(); print('written')\n"
        "    except OSError: print('refused')\n"
        "print(input())"
    )
    assert [r.stdout for r in box.runs(code, "one", "two")] == [b"refused\nrefused\none\n", b"refused\nrefused\ntwo\n"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGALRM, signal.SIGINT])
def test_a_program_that_kills_itself_is_signalled(box: Box, number: signal.Signals) -> None:
    how = "signal.alarm(1); time.sleep(5)" if number is signal.SIGALRM else f"os.kill(os.getpid(), {int(number)})"
    # Much memory in use: it is not for lack of it that the program dies.
    result = box.run(f"import os, signal, time\nx = b'1' * (200 << 20)\nprint('before', flush=True)\n{how}\nprint(1)")
    assert (result.status, result.signal, result.exit_code) == (RunStatus.signalled, number, None)
    assert result.stdout == b"before\n"


@pytest.mark.parametrize("code", ["import os; os.abort()", "import ctypes; ctypes.string_at(0)"])
def test_an_abort_and_a_wild_pointer_are_signals(box: Box, code: str) -> None:
    result = box.run(code)
    assert (result.status, result.signal) == (RunStatus.signalled, 6 if "abort" in code else 11)


def test_a_handler_of_the_program_is_called(box: Box) -> None:
    code = "import os, signal\nsignal.signal(15, lambda *a: print('got', a[0]))\nos.kill(os.getpid(), 15)\nprint('on')"
    assert box.say(code) == "got 15\non\n"


def test_the_end_of_what_is_written_to_stderr_is_kept(box: Box) -> None:
    result = box.run("import sys\nfor i in range(100000): print('line', i, file=sys.stderr)\nsys.exit(3)")
    assert (result.status, result.exit_code) == (RunStatus.exited, 3)
    assert len(result.stderr) == 4096 and result.stderr.endswith(b"line 99998\nline 99999\n")


def test_a_traceback_names_the_program_and_nothing_of_ours(box: Box) -> None:
    tail = box.run("def f(x):\n    return 1 / x\n\nf(0)").stderr.decode()
    assert tail.splitlines()[0] == "Traceback (most recent call last):"
    assert tail.count("File ") == tail.count('solution.py"') == 2
    assert tail.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_every_test_is_a_fresh_process(box: Box) -> None:
    code = (
        "import sys, math, builtins\n"
        "print([hasattr(x, 'mark') for x in (math, builtins)], 'mark' in sys.modules, 'mark' in globals())\n"
        "math.mark = builtins.mark = sys.modules['mark'] = mark = 1\n"
        "sys.path.append('x'); sys.setrecursionlimit(5000)\n"
        "math.sqrt = print = None"
    )  # fmt: skip
    out = [r.stdout for r in box.runs(code, "", "", "")]
    assert out == [b"[False, False] False False\n"] * 3
    assert box.runs(code, "")[0].stdout == out[0]


def test_random_numbers_differ_from_test_to_test(box: Box) -> None:
    assert len({r.stdout for r in box.runs("import random; print(random.random())", *[b""] * 4)}) == 4
    assert {r.stdout for r in box.runs("import random; random.seed(5); print(random.random())", "", "")} == {
        b"0.6229016948897019\n"
    }


def test_flags_set_on_the_streams_do_not_reach_the_next_test(box: Box) -> None:
    code = (
        "import fcntl, os\n"
        "print([fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK for fd in (0, 1, 2)], os.lseek(0, 0, 1))\n"
        "for fd in (0, 1, 2): os.set_blocking(fd, False)\n"
        "os.lseek(0, 2, 0)"
    )  # fmt: skip
    first, second = box.runs(code, "abc", "abc")
    assert first.stdout == second.stdout == b"[0, 0, 0] 0\n"
    # A pipe that does not block would lose what does not fit.
    [result] = box.runs("print('x' * 3_000_000)", "")
    assert (result.status, len(result.stdout)) == (RunStatus.exited, 3_000_001)


def test_a_run_that_is_given_up_leaves_a_slot_that_works(box: Box) -> None:
    from klearbench.sandbox.base import Command

    runs = box.slot.run(Command("print(input())", limits=Limits()), [b"1", b"2", b"3"])
    assert next(runs).stdout == b"1\n"
    runs.close()  # type: ignore[attr-defined]
    assert box.say("print(input())", "next") == "next\n"
    assert list(box.slot.run(Command("print(1)"), [])) == []
    assert box.say("print(2)") == "2\n"


def test_a_result_tells_its_slot_and_what_was_used(box: Box) -> None:
    code = (
        "import time\nt = time.process_time()\nx = b'1' * (100 << 20)\n"
        "while time.process_time() < t + 0.3: pass\ntime.sleep(0.3)"
    )
    result = box.run(code)
    assert result.slot == box.slot.id and result.slot.endswith(f" {box.tier}")
    assert 0.3 <= result.cpu_s <= result.wall_s - 0.3  # it sleeps for so long
    assert 100 <= result.peak_mb < 160
