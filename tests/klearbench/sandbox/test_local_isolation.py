"""What a program in the local sandbox can not do, see or leave behind. Every one here is hostile, and stays inside."""

from __future__ import annotations

import errno
import json
import os
import platform
import socket
import threading

import pytest
from dangerouscalls import CALLS, HARMLESS
from localbox import Box, library_is_open

from klearbench.sandbox.base import Limits, RunStatus

CALLER = """
import json, os, sys
c = __import__({module!r})
libc = c.CDLL(None, use_errno=True)
found = {{}}
for name, (number, arguments) in json.load(sys.stdin).items():
    arguments = [os.getppid() if a == -2 else a for a in arguments]
    c.set_errno(0)
    result = libc.syscall(c.c_long(number), *[c.c_long(a) for a in arguments])
    found[name] = [result, c.get_errno()]
    if name.startswith("clone") and result == 0: os._exit(0)
print(json.dumps(found), os.getpid(), flush=True)
"""


@pytest.mark.parametrize("spelling", ["'ctypes'", "'cty' 'pes'"])
def test_dangerous_system_calls_are_refused(box: Box, spelling: str) -> None:
    """Programs that mention threads or ctypes have a filter of their own, others that of the process above them: so
    the module's name is spelled in a way that we see, and in one that we don't."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("no numbers for this architecture")
    column = 0 if platform.machine() == "x86_64" else 1
    given = {name: (numbers[column], numbers[2]) for name, numbers in CALLS.items()}
    out = box.say(CALLER.replace("{module!r}", spelling).replace("{{}}", "{}"), json.dumps(given))
    found = json.loads(out[: out.rindex("}") + 1])
    assert found.keys() == CALLS.keys()
    refused = (errno.EPERM, errno.ENOSYS, errno.EAGAIN, errno.EINVAL, errno.ENOTTY)
    done = {name: reply for name, reply in found.items() if reply[0] != -1 or reply[1] not in refused}
    assert done.keys() <= HARMLESS, done
    assert box.say("print(input())", "alive") == "alive\n"


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.kill(os.getppid(), 9)",
        "import os\nos.kill(os.getppid(), 19)",
        "import os\nos.kill(-1, 9)",
        "import os\nos.kill(0, 9)",
        "import os\nos.killpg(os.getpgrp(), 9)",
        "import os\nfor p in range(2, 5000):\n    try: p != os.getpid() and os.kill(p, 9)\n    except OSError: pass",
        "import os\nfor s in range(1, 65):\n    try: os.kill(os.getppid(), s)\n    except OSError: pass",
        "import os, signal\nfor s in (1, 2, 3, 15, 17, 18): signal.signal(s, lambda *a: None)\nos.kill(-1, 15)\n"
        "os.kill(0, 15)",
        "import threading, os\nos.kill(0, 9)",
        "import threading, os\nos.kill(os.getppid(), 9)",
    ],
)
def test_signals_reach_the_program_alone(box: Box, code: str) -> None:
    before = box.slot.id
    results = box.runs(code, "", "")
    assert {r.status for r in results} <= {RunStatus.exited, RunStatus.signalled}
    assert box.say("print(input())", "alive") == "alive\n" and box.slot.id == before


@pytest.mark.parametrize(
    "code",
    [
        "import os\nfor _ in range(50): os.fork()",
        "import subprocess; subprocess.run(['/bin/true'])",
        "import os; os.system('true') and 1 / 0",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        "import os, sys; os.execv(sys.executable, ['python3'])",
        "import multiprocessing as m\np = m.get_context('fork').Process(target=print)\n"
        "p.start(); p.join(); assert p.exitcode == 0",
        "import socket; socket.socket()",
        "import socket; socket.create_connection(('127.0.0.1', 1))",
        "import os; os.setuid(0)",
        "import os; os.chroot('/')",
        "import os; os.mkfifo('/x')",
        "import os; os.nice(-5)",
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 60, 1 << 60))",
        "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (100000, 100000))",
        "open('/etc/passwd')",
        "open('/proc/self/environ')",
        "open('/sys/kernel/uevent_seqnum')",
        "open('/dev/mem')",
        "open('/x', 'w')",
        "open('/usr/lib/x', 'w')",
        "import os; open(os.__file__, 'a')",
        "open(__file__, 'a')",
        "import os; os.unlink(__file__)",
        "c = __import__('cty' 'pes').CDLL(None)\nassert c.mount(b'tmpfs', b'/run/work', b'tmpfs', 0, None) == 0",
        "c = __import__('cty' 'pes').CDLL(None)\nassert c.umount2(b'/run/work', 2) == 0",
        "c = __import__('cty' 'pes').CDLL(None)\nassert c.mount(None, b'/run/box', None, 0x20 | 0x1000, None) == 0",
        "import klearbench",
        "import pip",
        "import inside",
        "from inside import zygote",
    ],
)
def test_an_attempt_fails(box: Box, code: str) -> None:
    result = box.run(code + "\nprint('done')", limits=Limits(cpu_s=5, wall_s=20))
    assert (result.status, result.exit_code) == (RunStatus.exited, 1), result
    assert b"done" not in result.stdout
    assert box.say("print(input())", "alive") == "alive\n"


def test_more_threads_than_allowed_are_refused_and_some_are_not(box: Box) -> None:
    code = (
        "import threading\ne = threading.Event()\nn = 0\n"
        "try:\n    for n in range(5000): threading.Thread(target=e.wait).start()\n"
        "except (RuntimeError, MemoryError): pass\ne.set()\nprint(50 < n < 600)"
    )
    assert box.say(code) == "True\n"


def test_nothing_but_its_streams_is_open(box: Box) -> None:
    code = (
        "import os\nfound = []\nfor fd in range(2000):\n    try: os.fstat(fd); found.append(fd)\n"
        "    except OSError: pass\n"
    )
    assert box.say(code + "print(found)") == "[0, 1, 2]\n"
    assert box.say("import threading\n" + code + "print(found)") == "[0, 1, 2]\n"
    result = box.call(code + "def f(): return found")
    assert json.loads(result.value) == [0, 1, 2, 3]


def test_the_judges_surroundings_are_not_visible(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_JUDGE", "kb-secret")
    fresh = Box(box.tier)
    try:
        out = fresh.say("import os, sys\nprint(sorted(os.environ), os.getcwd(), sys.argv, sys.orig_argv, __file__)")
        assert "SECRET" not in out and os.getcwd() not in out
        hunt = (
            "import os\nfound = []\nfor r, d, f in os.walk('/'):\n"
            "    d[:] = [x for x in d if x not in ('usr', 'lib', 'lib64')]\n"
            "    found += [os.path.join(r, x) for x in f]\n"
            "print(len(found) < 20000, [x for x in found if 'klearbench' in x and 'solutions' not in x])"
        )
        if box.tier == "namespaces":
            assert fresh.say(hunt) == "True []\n"
    finally:
        fresh.close()


def test_a_service_of_the_judge_is_out_of_reach(box: Box) -> None:
    """A listener that serves the expected output, on the loopback device and as an abstract Unix socket."""
    if box.tier == "landlock" and not library_is_open():
        pytest.skip("this Python lies in a folder that the sandbox's user can't enter")
    name = f"\0klear-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as inet, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(name)
        unix.listen()
        port = inet.getsockname()[1]

        def serve(server: socket.socket) -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.sendall(b"expected")
                connection.close()

        for server in (inet, unix):
            threading.Thread(target=serve, args=(server,), daemon=True).start()
        code = (
            "import _socket as socket\n"  # the part that every tier can import
            "def ask(make):\n    try: return make().recv(99)\n    except OSError: return b'none'\n"
            "def inet():\n    s = socket.socket(); s.connect(('127.0.0.1', PORT)); return s\n"
            "def abstract():\n    s = socket.socket(socket.AF_UNIX); s.connect(NAME); return s\n"
            "print(ask(inet), ask(abstract))"
        )
        asked = code.replace("PORT", str(port)).replace("NAME", repr(name))
        assert box.say(asked) == "b'none' b'none'\n"
        for server in (inet, unix):
            server.shutdown(socket.SHUT_RDWR)


WRITERS = {
    "a file": "open(name, 'w').write('1')",
    "a folder": "os.mkdir(name)",
    "nested folders that nobody may enter": (
        "os.makedirs(name + '/b/c'); open(name + '/b/c/d', 'w')\nos.chmod(name + '/b', 0); os.chmod(name, 0)"
    ),
    "a link": "os.symlink('/run/box/stdin', name)",
    "a hidden file": "open(os.path.dirname(name) + '/.' + os.path.basename(name), 'w')",
    "a mode of the folder": "os.chmod('.', 0o700)",
    "many files": "[open(f'{name}{i}', 'w') for i in range(60)]",
    "a full disk": "open(name, 'wb').write(b'1' * (20 << 20))",
    "a module": "open('json.py', 'w').write('raise SystemExit'); open('math.py', 'w').write('raise SystemExit')",
    "a program that dies": "open(name, 'w'); os.kill(os.getpid(), 9)",
    "a program that is killed": "open(name, 'w')\nwhile True: pass",
}
LOOK = (
    "import os\nseen = sorted(os.listdir('.')), sorted(os.listdir('/tmp')), os.stat('.').st_mode & 0o7777\n"
    "print(seen, flush=True)\n"
)


@pytest.mark.parametrize("what", WRITERS)
def test_files_of_a_test_are_gone_in_the_next(box: Box, what: str) -> None:
    if box.tier == "landlock":
        pytest.skip("nothing can be written in this tier")
    for folder in (".", "/tmp") if what == "a file" else (".",):
        body = (
            f"name = {folder!r} + '/left'\ntry:\n    "
            + WRITERS[what].replace("\n", "\n    ")
            + "\nexcept OSError: pass\n"
        )
        results = box.runs(LOOK + body, "", "", "", limits=Limits(cpu_s=0.15, wall_s=20))
        assert [r.stdout for r in results] == [b"([], [], 1023)\n"] * 3
        assert box.say(LOOK) == "([], [], 1023)\n"


def test_nothing_can_be_written_without_a_file_system_of_its_own(box: Box) -> None:
    code = (
        "import os\nfor folder in ('.', '/tmp', '/dev/shm', '/var/tmp', '/run', '/'):\n"
        "    try: open(folder + '/left', 'w'); print('wrote', folder)\n    except OSError: pass\n"
    )
    wrote = box.say(code).split("\n")[:-1]
    assert wrote == ([] if box.tier == "landlock" else ["wrote .", "wrote /tmp", "wrote /dev/shm"])


CHANGES = """
import os
for act in (lambda: os.chmod(name, 0o4777), lambda: os.utime(name, (1, 1)), lambda: os.truncate(name, 0),
            lambda: os.unlink(name), lambda: os.rename(name, name + 'x'), lambda: os.link(name, name + 'y'),
            lambda: os.utime(os.path.dirname(name), (1, 1)), lambda: open(name, 'a').write('x')):
    try: act(); print('done')
    except OSError: pass
"""


def test_files_of_the_machine_stay_as_they_are(box: Box, tmp_path) -> None:
    """Landlock has no say over modes and times: nothing but the user or the filter keeps a program from them."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "file"
    path.write_text("kept")
    for place in (path, folder, tmp_path, tmp_path.parent, tmp_path.parent.parent):
        place.chmod(0o777 if place in (path, folder) else 0o755)
    before = [(s.st_mode, s.st_mtime_ns, s.st_ctime_ns, s.st_size) for s in (path.stat(), folder.stat())]
    for words in ("", "import threading\n"):
        assert box.say(f"{words}name = {str(path)!r}\n" + CHANGES) == ""
    assert [(s.st_mode, s.st_mtime_ns, s.st_ctime_ns, s.st_size) for s in (path.stat(), folder.stat())] == before


def test_the_place_to_write_is_small(box: Box) -> None:
    if box.tier == "landlock":
        pytest.skip("nothing can be written in this tier")
    code = (
        "import os\nn = 0\ntry:\n    with open('x', 'wb', 0) as f:\n        while True: n += f.write(b'1' * 65536)\n"
        "except OSError as e: print(e.errno, 8 << 20 <= n <= 32 << 20)\nos.unlink('x')\n"
        "try:\n    for i in range(10000): os.mkdir(str(i))\nexcept OSError as e: print(e.errno, i < 2000)"
    )
    assert box.say(code) == f"{errno.ENOSPC} True\n{errno.ENOSPC} True\n"


STATES = {
    "a lock on the open file": "import fcntl\nfcntl.flock(0, fcntl.LOCK_EX)\nfcntl.flock(1, fcntl.LOCK_EX)",
    "a lock of the open file's ranges": "import fcntl, struct\n"
    "fcntl.fcntl(0, 37, struct.pack('hhqqi4x', 0, 0, 5, 6, 0))",
    "the size of a pipe": "import fcntl\nfcntl.fcntl(1, 1031, 4096)\nfcntl.fcntl(2, 1031, 1 << 20)",
    "times": "import os\nfor fd in (0, 1, 2):\n    try: os.utime(fd, (1, 1))\n    except OSError: pass",
    "modes": "import os\nfor fd in (0, 1, 2):\n    try: os.fchmod(fd, 0o111)\n    except OSError: pass",
    "flags": "import os\nfor fd in (0, 1, 2): os.set_blocking(fd, False)",
}
STATE = """
import fcntl, os, struct, sys
def lock(name):
    try: fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    except OSError: return None
    try: return fcntl.fcntl(fd, 5, struct.pack('hhqqi4x', 1, 0, 5, 6, 0)), fcntl.flock(fd, 6)
    except OSError as e: return e.errno
stats = [(oct(os.fstat(fd).st_mode), os.fstat(fd).st_mtime == 1) for fd in (0, 1, 2)]
print([fcntl.fcntl(fd, 3) & ~0o100000 for fd in (0, 1, 2)], [fcntl.fcntl(fd, 1032) for fd in (1, 2)], stats)
print(lock('/dev/stdin'), flush=True)
"""


@pytest.mark.parametrize("what", STATES)
def test_the_streams_carry_nothing_from_one_test_to_the_next(box: Box, what: str) -> None:
    untouched = box.run(STATE, "abc").stdout
    act = "try:\n    " + STATES[what].replace("\n", "\n    ") + "\nexcept OSError: pass\n"
    assert [r.stdout for r in box.runs(STATE + act, "abc", "abc")] == [untouched, untouched]
    assert box.run(STATE, "abc").stdout == untouched
