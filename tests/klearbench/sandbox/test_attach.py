"""The attach channel over a toy container, and the labels that name a container's owner: no engine is needed."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading

import pytest

from klearbench.sandbox.attach import AttachedContainer
from klearbench.sandbox.base import SandboxError
from klearbench.sandbox.owner import dead, identity

ID = "0123456789abcdef"


class ToyApi:
    def __init__(self, events):
        self._events = events

    def events(self, **_):
        return ToyStream(self._events)


class ToyStream:
    def __init__(self, events):
        self._events = events

    def __iter__(self):
        yield from self._events

    def close(self):
        pass


class ToyEngine:
    """An engine that remembers these events; `gone` is one that no longer answers."""

    def __init__(self, *events, gone=False):
        self.api, self._gone = ToyApi(events), gone

    def ping(self):
        if self._gone:
            raise ConnectionRefusedError


class ToyContainer:
    id = ID
    status = "running"

    def __init__(self):
        self.inner, self._outer = socket.socketpair()
        self.removed = 0

    def attach_socket(self, params):
        assert params == {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        return self._outer

    def start(self):
        pass

    def reload(self):
        pass

    def remove(self, force):
        self.removed += 1

    def says(self, stream: int, data: bytes, cut: int = 10**9) -> None:
        framed = struct.pack(">BxxxI", stream, len(data)) + data
        for start in range(0, len(framed), cut):
            self.inner.sendall(framed[start : start + cut])


def event(action, **attributes):
    return {"Action": action, "Actor": {"Attributes": attributes}}


def channel(*events, gone=False) -> tuple[AttachedContainer, ToyContainer]:
    container = ToyContainer()
    return AttachedContainer(ToyEngine(*events, gone=gone), container), container


def why_it_ended(*events, gone=False, said=b"") -> str:
    ch, container = channel(*events, gone=gone)
    if said:
        container.says(2, said)
    container.inner.close()
    with pytest.raises(SandboxError) as caught:
        ch.recv_exact(1, 5)
    return str(caught.value)


def test_pieces_of_any_size_give_the_same_bytes_and_stderr_stays_out():
    ch, container = channel()
    container.says(1, b"abc", cut=1)
    container.says(2, b"noise", cut=3)
    container.says(1, b"defgh", cut=2)
    assert [ch.recv_exact(n, 5) for n in (2, 4, 2)] == [b"ab", b"cdef", b"gh"]


def test_what_is_sent_arrives_as_it_is():
    ch, container = channel()
    ch.send(b"\x00job\xff")
    assert container.inner.recv(99) == b"\x00job\xff"


def test_a_sender_whose_container_died_is_told(monkeypatch):
    """An engine that takes no more input, and does not hang up either."""
    monkeypatch.setattr("klearbench.sandbox.attach._LOOK_S", 0.1)
    ch, container = channel(event("die", exitCode="1"))
    container.status = "exited"
    with pytest.raises(SandboxError, match=r"^container 0123456789ab ended with exit code 1$"):
        ch.send(bytes(50 << 20))


def test_a_large_input_arrives_whole_at_a_slow_container(monkeypatch):
    monkeypatch.setattr("klearbench.sandbox.attach._LOOK_S", 0.02)
    ch, container = channel()
    container.status = "running"
    data = os.urandom(4 << 20)
    got = bytearray()

    def read() -> None:
        while len(got) < len(data):
            if len(got) < 1 << 20:
                threading.Event().wait(0.05)
            got.extend(container.inner.recv(1 << 18))

    reader = threading.Thread(target=read)
    reader.start()
    ch.send(data)
    reader.join()
    assert got == data


def test_silence_ends_with_the_container_named():
    ch, _ = channel()
    with pytest.raises(SandboxError, match=r"^container 0123456789ab gave no answer for 0 s$"):
        ch.recv_exact(1, 0.05)


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([event("die", exitCode="7")], "ended with exit code 7; it said: Traceback boom"),
        ([event("die", exitCode="137")], "was killed from outside (SIGKILL)"),
        ([event("oom"), event("die", exitCode="137")], "was killed for lack of memory"),
        (
            [event("oom"), event("die", exitCode="7")],
            "ended with exit code 7; a process in it had been killed for lack of memory; it said: Traceback boom",
        ),
        ([event("start")], "closed its stream but did not end"),
    ],
)
def test_the_engines_events_say_why_a_container_ended(events, wanted):
    assert why_it_ended(*events, said=b"Traceback\n  boom\n") == f"container 0123456789ab {wanted}"


def test_an_engine_that_no_longer_answers_is_named(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///there")
    said = why_it_ended(event("die", exitCode="137"), gone=True)
    assert said == "the Docker engine at unix:///there stopped while container 0123456789ab was running"


def test_closing_wakes_a_reader_and_removes_the_container_once():
    ch, container = channel()
    threading.Timer(0.1, ch.close).start()
    with pytest.raises(SandboxError, match="was closed"):
        ch.recv_exact(1, 30)
    ch.close()
    assert container.removed == 1
    with pytest.raises(SandboxError, match="was closed"):
        ch.send(b"x")


def test_a_container_belongs_to_us_until_we_are_dead():
    mine = identity()
    assert not dead(mine)
    assert dead(mine | {"klearbench.started": "1"}), "our pid was another's before"
    assert not dead(mine | {"klearbench.host": "elsewhere", "klearbench.started": "1"}), "its pids are not ours"
    assert not dead({}), "a container of unknown origin is left alone"


def test_the_labels_of_a_process_that_ended_are_those_of_a_dead_one():
    code = "from klearbench.sandbox.owner import identity; print(identity())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert dead(eval(done.stdout))
