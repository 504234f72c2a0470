"""Run folders: locks of live and dead owners, changed configurations, raised limits."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from klearbench.errors import DataError, RunConflict
from klearbench.run import Lock, Run, flatten, read_manifest

CONFIG = {"samples": 8, "limit": None, "suites": ["aime24"], "sampling": {"temperature": 0.6}}
INPUTS = {"aime24": "abc"}
EXTENDS = ("samples", "limit", "stages.*.steps")


def made(path):
    """A run in which something was made: from then on its configuration is fixed."""
    (path / "samples.jsonl").write_text("{}\n")


def open_run(path, config=CONFIG, inputs=INPUTS, **options):
    return Run(path, config, inputs, EXTENDS, **options)


def stat_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def owner(pid: int, **change) -> str:
    started = stat_of(pid)[19] if Path(f"/proc/{pid}").exists() else "12345"
    return json.dumps({"pid": pid, "host": socket.gethostname(), "started": started} | change)


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_live_owner_is_respected(tmp_path, child):
    (tmp_path / ".lock").write_text(owner(child.pid))
    with pytest.raises(RunConflict) as caught:
        Lock(tmp_path / ".lock")
    assert f"is in use by process {child.pid} on {socket.gethostname()}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert json.loads((tmp_path / ".lock").read_text())["pid"] == child.pid


def test_a_dead_owner_is_taken_over(tmp_path):
    (tmp_path / ".lock").write_text(owner(dead_pid()))
    Lock(tmp_path / ".lock")
    assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()


def test_a_zombie_is_dead(tmp_path, child):
    (tmp_path / ".lock").write_text(owner(child.pid))
    child.kill()
    while stat_of(child.pid)[0] != "Z":
        pass
    lock = Lock(tmp_path / ".lock")
    assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()
    lock.release()


def test_a_reused_pid_is_not_the_owner(tmp_path, child):
    (tmp_path / ".lock").write_text(owner(child.pid, started="1"))
    Lock(tmp_path / ".lock").release()
    assert not (tmp_path / ".lock").exists()


def test_the_lock_of_another_host_is_respected(tmp_path):
    (tmp_path / ".lock").write_text(owner(dead_pid(), host="elsewhere"))
    with pytest.raises(RunConflict, match=r"on elsewhere; .*\(if that host is gone for good, delete .*\.lock\)"):
        Lock(tmp_path / ".lock")


@pytest.mark.parametrize("text", ["", '{"pid": 12', "[]", '{"host": "h"}', "\x00\x00"])
def test_a_half_written_lock_is_taken_over(tmp_path, text):
    (tmp_path / ".lock").write_text(text)
    lock = Lock(tmp_path / ".lock")
    assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()
    lock.release()


def test_of_many_that_wait_for_a_lock_one_gets_it(tmp_path):
    code = (
        "import sys, pathlib, klearbench.run as r\nfrom klearbench.errors import RunConflict\ninput()\n"
        "try:\n    r.Lock(pathlib.Path(sys.argv[1])); print('got', flush=True)\n"
        "except RunConflict:\n    print('refused', flush=True)\ninput()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / ".lock")]
    waiting = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in waiting:
        process.stdin.write("\n")
        process.stdin.flush()
    said = sorted(process.stdout.readline().strip() for process in waiting)
    for process in waiting:
        process.communicate("\n")
    assert said == ["got", "refused", "refused", "refused"]


def test_a_lock_that_its_owner_deletes_while_we_wait_is_taken_anew(tmp_path):
    import fcntl

    path = tmp_path / ".lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    waiter = threading.Thread(target=Lock, args=(path,))
    waiter.start()
    waiter.join(0.2)
    assert waiter.is_alive()
    path.unlink()
    os.close(fd)
    waiter.join(10)
    assert json.loads(path.read_text())["pid"] == os.getpid()


def test_a_run_is_released_at_the_end_and_after_an_error(tmp_path):
    with open_run(tmp_path / "run") as run, pytest.raises(RunConflict):
        open_run(run.path)
    with pytest.raises(RuntimeError), open_run(tmp_path / "run"):
        raise RuntimeError("lost")
    with open_run(tmp_path / "run"):
        pass
    assert "stopped: RuntimeError: lost" in (tmp_path / "run" / "log.txt").read_text()


def test_a_kill_leaves_a_run_that_the_same_command_opens(tmp_path):
    code = (
        "import sys, os, pathlib, klearbench.run as r\n"
        "r.Run(pathlib.Path(sys.argv[1]), {'a': 1}, {})\nos.kill(os.getpid(), 9)"
    )
    for fault in ("", "write_atomic:1:kill"):
        env = os.environ | {"KLEAR_FAULT": fault}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], env=env)
        assert (tmp_path / "run" / ".lock").exists()
        with Run(tmp_path / "run", {"a": 1}, {}):
            assert read_manifest(tmp_path / "run")["config"] == {"a": 1}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sampling": {"temperature": 0.7}}, "sampling.temperature = 0.6, this command has 0.7"),
        ({"suites": ["aime25"]}, "suites.0 = 'aime24', this command has 'aime25'"),
        ({"suites": ["aime24", "aime25"]}, "suites.1 = None, this command has 'aime25'"),
        ({"extra": 1}, "extra = None, this command has 1"),
        ({"samples": 4}, "samples = 8, this command has 4"),
        ({"samples": "9"}, "samples = 8, this command has '9'"),
        ({"limit": 30}, "limit = None, this command has 30"),
    ],
)
def test_a_changed_field_is_refused_by_name_and_nothing_is_lost(tmp_path, change, named):
    with open_run(tmp_path / "run"):
        made(tmp_path / "run")
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(RunConflict) as caught:
        open_run(tmp_path / "run", CONFIG | change)
    assert named in str(caught.value) and "or another -o" in str(caught.value)
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before
    assert not (tmp_path / "run" / ".lock").exists()


def test_a_changed_input_is_refused_by_name(tmp_path):
    with open_run(tmp_path / "run"):
        made(tmp_path / "run")
    with pytest.raises(RunConflict, match=r"inputs\.aime24 = 'abc', this command has 'abd'"):
        open_run(tmp_path / "run", CONFIG, {"aime24": "abd"})


def test_raised_limits_extend_the_run(tmp_path):
    config = CONFIG | {"limit": 10, "stages": [{"steps": 5, "lr": 1.0}]}
    with open_run(tmp_path / "run", config) as run:
        made(run.path)
        created = run.manifest["created"]
    raised = config | {"samples": 16, "limit": 20, "stages": [{"steps": 6, "lr": 1.0}]}
    with open_run(tmp_path / "run", raised) as run:
        assert run.manifest["created"] == created
    with open_run(tmp_path / "run", raised | {"limit": None}):
        pass
    assert read_manifest(tmp_path / "run")["config"] == raised | {"limit": None}
    with pytest.raises(RunConflict, match=r"stages\.0\.lr = 1\.0"):
        open_run(tmp_path / "run", raised | {"limit": None, "stages": [{"steps": 6, "lr": 2.0}]})


def test_remarks_may_change(tmp_path):
    with open_run(tmp_path / "run", about={"model": "here"}):
        pass
    with open_run(tmp_path / "run", about={"model": "there"}):
        pass
    assert read_manifest(tmp_path / "run")["about"] == {"model": "there"}


def test_the_manifest_says_what_made_the_run(tmp_path):
    with open_run(tmp_path / "run") as run:
        manifest = run.manifest
    assert manifest["config"] == CONFIG and manifest["inputs"] == INPUTS
    assert "klearbench" in manifest["versions"] and "pyarrow" in manifest["versions"]
    assert manifest["machine"]["cpus"] == os.cpu_count()
    assert json.loads((tmp_path / "run" / "manifest.json").read_text()) == manifest


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunConflict, match=r"is not empty and is no run \(it holds 'thesis.tex'\)"):
        open_run(tmp_path)
    with pytest.raises(RunConflict, match="is a file; -o needs a folder"):
        open_run(tmp_path / "thesis.tex")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not a readable manifest"), ("[]", "no 'config'"), ("\0", "not a")]
)
def test_a_corrupt_manifest_is_named(tmp_path, text, message):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=rf"manifest.json: .*{message}"):
        read_manifest(tmp_path)


def test_a_folder_without_a_manifest_is_no_run(tmp_path):
    with pytest.raises(DataError, match=r"is no run folder \(it has no manifest.json\)"):
        read_manifest(tmp_path / "absent")


def test_flatten():
    assert flatten({"a": {"b": [1, {"c": None}]}, "d": {}, "e": []}) == {"a.b.0": 1, "a.b.1.c": None, "d": {}, "e": []}


def test_a_run_in_which_nothing_was_made_takes_another_configuration(tmp_path):
    with pytest.raises(KeyError), open_run(tmp_path / "run") as run:
        run.log("the input is refused only now")
        raise KeyError
    with open_run(tmp_path / "run", CONFIG | {"extra": 1}, {}) as run:
        made(run.path)
    assert read_manifest(tmp_path / "run")["config"] == CONFIG | {"extra": 1}
    with pytest.raises(RunConflict, match="extra = 1, this command has None"):
        open_run(tmp_path / "run", CONFIG, {})


def test_another_command_is_named_first(tmp_path):
    with open_run(tmp_path / "run", {"command": "train", "a": 1}):
        made(tmp_path / "run")
    with pytest.raises(RunConflict, match="command = 'train', this command has 'eval'"):
        open_run(tmp_path / "run", {"command": "eval", "a": 2})


def test_inputs_that_were_absent_are_named(tmp_path):
    with open_run(tmp_path / "run", inputs={}):
        made(tmp_path / "run")
    with pytest.raises(RunConflict, match=r"inputs\.data = None, this command has 'abc'"):
        open_run(tmp_path / "run", inputs={"data": "abc"})
