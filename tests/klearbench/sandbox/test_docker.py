"""The Docker sandbox: how its containers are shut in, and that nothing of it outlives a judge, an engine or a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from dockerd import BASE, Engine
from tools import environment

from klearbench.sandbox.base import Command, Limits, RunStatus, SandboxError, SandboxUnavailable
from klearbench.sandbox.docker import SLOT_LABEL, DockerSandbox
from klearbench.sandbox.image import CONTENT_LABEL, DEFAULT_IMAGE, build_image, connect, content_hash, image_problem
from klearbench.sandbox.values import decode

pytestmark = [pytest.mark.docker, pytest.mark.slow]

ENDLESS = Command("while True: pass", limits=Limits(cpu_s=50, wall_s=50))


@pytest.fixture
def client(docker_host):
    client = connect()
    yield client
    client.close()


@pytest.fixture
def sandbox(docker_host) -> Iterator[DockerSandbox]:
    with DockerSandbox() as sandbox:
        yield sandbox


def ours(client) -> set[str]:
    return {c.id for c in client.containers.list(all=True, filters={"label": SLOT_LABEL}, ignore_removed=True)}


def until(holds: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def container_of(client, slot):
    return client.containers.get(slot.id.removeprefix("docker:").split()[0])


def error_while_running(slot, disturb: Callable[[], object]) -> str:
    """What the slot says when something happens to it in the middle of a run."""
    timer = threading.Timer(0.7, disturb)
    timer.start()
    with pytest.raises(SandboxError) as caught:
        next(slot.run(ENDLESS, [b""]))
    timer.join()
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_the_image_was_built_without_a_network_and_names_its_sources(client):
    assert image_problem(client) is None
    image = client.images.get(DEFAULT_IMAGE)
    assert image.labels[CONTENT_LABEL] == content_hash()
    assert image.attrs["Config"]["Entrypoint"][:4] == ["python3", "-s", "-P", "-S"]


def test_an_image_of_other_sources_is_refused_with_the_remedy(client, monkeypatch):
    monkeypatch.setattr("klearbench.sandbox.image.content_hash", lambda: "other")
    with pytest.raises(SandboxUnavailable, match=r"other sources \(remedy: klearbench doctor --fix\)"):
        DockerSandbox()


def test_an_absent_image_comes_with_its_remedy(docker_host):
    with pytest.raises(SandboxUnavailable, match=r"no image absent:1 \(remedy: build it on klearbench-sandbox:"):
        DockerSandbox("absent:1")


def test_a_build_that_fails_says_why(client):
    """Without an environment, pip would have to fetch the packages; our base image has no pip."""
    with pytest.raises(SandboxUnavailable, match=r"^the image never:1 could not be built: .*returned a non-zero code"):
        build_image(client, "never:1", base=BASE, network_mode="none")


def test_no_engine_comes_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    with pytest.raises(SandboxUnavailable, match=r"no Docker engine answers at unix://.*/none \(remedy: start"):
        DockerSandbox()


def test_the_container_is_shut_in_as_the_threat_model_says(client, sandbox):
    found = container_of(client, sandbox.open()).attrs
    host = found["HostConfig"]
    memory = (4096 + 512) << 20
    expected = {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "Memory": memory,
        "MemorySwap": memory,
        "PidsLimit": 640,
        "NanoCpus": 10**9,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "IpcMode": "none",
        "LogConfig": {"Type": "none", "Config": {}},
        "AutoRemove": True,
        "Privileged": False,
        "Binds": None,
        "Devices": None,
        "PortBindings": None,
        "PidMode": "",
    }
    assert {name: host[name] for name in expected} == expected
    assert sorted(name.removeprefix("CAP_") for name in host["CapAdd"]) == ["KILL", "SETGID", "SETUID"]
    assert set(host["Tmpfs"]) == {"/work", "/box", "/dev/mqueue"}
    assert {"size=4m", "nr_inodes=256", "mode=1777", "nosuid", "nodev"} <= set(host["Tmpfs"]["/work"].split(","))
    assert {"mode=755", "nosuid", "nodev"} <= set(host["Tmpfs"]["/box"].split(","))
    assert "ro" in host["Tmpfs"]["/dev/mqueue"].split(",")
    assert [m for m in found["Mounts"] if m["Type"] != "tmpfs"] == []
    assert (found["Config"]["StdinOnce"], found["Config"]["Tty"], found["Config"]["Hostname"]) == (
        True,
        False,
        "sandbox",
    )


WRITE = """
import os
found = []
for folder, _, _ in os.walk("/"):
    if folder.startswith("/proc"):
        continue
    try:
        open(folder + "/left-by-a-test", "w").close()
        found.append(folder)
    except OSError:
        pass
print(found, os.getuid() != 0, sorted(os.listdir("/sys/class/net")))
"""


def test_a_program_can_write_to_its_own_folder_alone_and_sees_no_network(sandbox):
    [result] = sandbox.open().run(Command(WRITE), [b""])
    assert result.stdout == b"['/work'] True ['lo']\n", result


def test_nothing_written_reaches_the_next_test(sandbox):
    code = "import os\nprint(os.listdir('.'))\nopen('left', 'w').write('x')\nos.makedirs('a/b/c')\n"
    slot = sandbox.open()
    assert [r.stdout for r in slot.run(Command(code), [b"", b""])] == [b"[]\n"] * 2
    assert [r.stdout for r in slot.run(Command(code), [b""])] == [b"[]\n"]


def test_a_program_reads_its_input_and_prints(sandbox):
    command = Command("print('hello', sum(map(int, input().split())))")
    results = list(sandbox.open().run(command, [b"1 2\n", b"30 4\n", b"x\n"]))
    assert [r.stdout for r in results] == [b"hello 3\n", b"hello 34\n", b""]
    assert [(r.status, r.exit_code) for r in results] == [
        (RunStatus.exited, 0),
        (RunStatus.exited, 0),
        (RunStatus.exited, 1),
    ]
    assert b"ValueError" in results[2].stderr
    assert all(0 < r.cpu_s < 5 and 0 < r.peak_mb < 500 for r in results)


def test_a_function_is_called(sandbox):
    command = Command("class Solution:\n    def f(self, a, b):\n        return [a, b * 2]", "functional", "f")
    results = list(sandbox.open().run(command, [b'1\n"x"', b"[1]\n2"]))
    assert [decode(r.value) for r in results] == [[1, "xx"], [[1], 4]]


def test_the_packages_that_solutions_import_are_there(sandbox):
    code = "import numpy, sortedcontainers, bitarray, gmpy2, more_itertools\nprint(numpy.arange(5).sum())"
    assert [r.stdout for r in sandbox.open().run(Command(code), [b""])] == [b"10\n"]


def test_the_order_of_a_set_is_the_same_in_every_slot(sandbox):
    command = Command("print({'a', 'b', 'c', 'd', 'e', 'f', 'g'})")
    assert len({next(sandbox.open().run(command, [b""])).stdout for _ in range(3)}) == 1


def test_limits_are_kept(sandbox):
    slot = sandbox.open()
    limits = Limits(cpu_s=0.5, wall_s=5, memory_mb=256, output_mb=1)
    codes = [
        "while True: pass",
        "import time\ntime.sleep(60)",
        "x = bytearray(1 << 30)",
        "while True: print('x' * 9999)",
    ]
    found = [next(slot.run(Command(code, limits=limits), [b""])).status for code in codes]
    wanted = [RunStatus.cpu_limit, RunStatus.wall_limit, RunStatus.memory_limit, RunStatus.output_limit]
    assert found == wanted


def test_a_slots_id_names_its_container_and_its_role(client, sandbox):
    slots = [sandbox.open(), sandbox.open("checker")]
    assert len({slot.id for slot in slots}) == 2
    for slot, role in zip(slots, ("submission", "checker"), strict=True):
        assert container_of(client, slot).labels[SLOT_LABEL] == role
        assert slot.id.split()[1] == role
        assert [r.slot for r in slot.run(Command("pass"), [b""])] == [slot.id]
    with pytest.raises(ValueError, match="unknown role 'judge'"):
        sandbox.open("judge")


def test_a_closed_slots_container_is_gone_and_closing_twice_is_fine(client, docker_host):
    before = ours(client)
    with DockerSandbox() as sandbox:
        slot = sandbox.open()
        assert len(ours(client) - before) == 1
        slot.close()
        slot.close()
        assert until(lambda: ours(client) == before)
        sandbox.open()
    assert until(lambda: ours(client) == before)


def test_closing_from_another_thread_breaks_a_run_off(sandbox):
    slot = sandbox.open()
    assert "was closed" in error_while_running(slot, slot.close)


def test_a_container_killed_in_the_middle_of_a_run_is_our_fault_and_named(client, sandbox):
    slot = sandbox.open()
    said = error_while_running(slot, container_of(client, slot).kill)
    assert said == f"container {slot.id[7:19]} was killed from outside (SIGKILL)"
    assert [r.stdout for r in sandbox.open().run(Command("print(1)"), [b""])] == [b"1\n"]


def test_a_container_without_memory_is_our_fault(client, sandbox):
    """Its supervisor can't hold the input: a container that was made too small, not a test beyond its limit."""
    slot = sandbox.open()
    container_of(client, slot).update(mem_limit="64m", memswap_limit="64m")
    with pytest.raises(SandboxError, match=r"killed for lack of memory|process ended with -9"):
        next(slot.run(Command("pass"), [bytes(150 << 20)]))


def test_a_larger_limit_makes_room_in_the_container(client, sandbox):
    slot = sandbox.open()
    command = Command("print(1)", limits=Limits(memory_mb=6000))
    assert [r.stdout for r in slot.run(command, [b""])] == [b"1\n"]
    assert container_of(client, slot).attrs["HostConfig"]["Memory"] == (6000 + 512) << 20


def test_slots_run_at_the_same_time(sandbox):
    """Programs in three slots sleep at the same time. On a loaded machine they start far apart: then they sleep longer,
    which would help nothing if one slot waited for another."""
    slots = [sandbox.open() for _ in range(3)]
    assert any(overlap(slots, seconds) for seconds in (1, 4, 12))


def overlap(slots, seconds: float) -> bool:
    """Whether the programs were all asleep at one moment, by the clock that containers share."""
    code = f"import time\nstart = time.time()\ntime.sleep({seconds})\nprint(input(), start, time.time())"
    command = Command(code, limits=Limits(wall_s=60))
    said: dict[int, bytes] = {}

    def work(number: int) -> None:
        [result] = slots[number].run(command, [b"%d" % number])
        said[number] = result.stdout

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(slots))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers, starts, ends = zip(*(map(float, said[n].split()) for n in range(len(slots))), strict=True)
    assert numbers == tuple(range(len(slots))), "each has its own input"
    return max(starts) < min(ends)


JUDGE = """
import sys
from klearbench.sandbox.base import Command, Limits
from klearbench.sandbox.docker import DockerSandbox
sandbox = DockerSandbox()
idle, busy = sandbox.open(), sandbox.open()
print(idle.id, busy.id, sep="\\n", flush=True)
next(busy.run(Command("while True: pass", limits=Limits(cpu_s=300, wall_s=300)), [b""]))
"""


def test_a_judge_killed_by_force_leaves_no_container(client, docker_host):
    before = ours(client)
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE], stdout=subprocess.PIPE, env=environment(DOCKER_HOST=docker_host)
    )
    assert judge.stdout is not None
    names = [judge.stdout.readline().decode()[7:19] for _ in range(2)]
    time.sleep(0.5)
    assert {i[:12] for i in ours(client) - before} == set(names)
    os.kill(judge.pid, signal.SIGKILL)
    judge.wait()
    judge.stdout.close()
    assert until(lambda: ours(client) == before)


NEVER_STARTED = "from klearbench.sandbox.docker import DockerSandbox as D; print(D()._create('checker').id)"


def test_what_a_dead_judge_never_started_is_removed_by_the_next(client, docker_host):
    """A container between its making and its start has no stdin yet whose end would stop it."""
    done = subprocess.run(
        [sys.executable, "-c", NEVER_STARTED],
        capture_output=True, text=True, check=True, env=environment(DOCKER_HOST=docker_host),
    )  # fmt: skip
    left = done.stdout.strip()
    assert left in ours(client)
    with DockerSandbox() as first:
        assert left not in ours(client)
        alive = container_of(client, first.open()).id
        with DockerSandbox():
            assert alive in ours(client)


def test_an_engine_stopped_in_the_middle_of_a_run_is_named(docker_engine: Engine, docker_host):
    sandbox = DockerSandbox()
    slot = sandbox.open()
    try:
        said = error_while_running(slot, docker_engine.stop)
        with pytest.raises(SandboxError, match="the Docker engine made no container"):
            sandbox.open()
        sandbox.close()
    finally:
        docker_engine.start()
    assert said == f"the Docker engine at {docker_host} stopped while container {slot.id[7:19]} was running"
    with DockerSandbox() as again:
        assert [r.stdout for r in again.open().run(Command("print(1)"), [b""])] == [b"1\n"]
