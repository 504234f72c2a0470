"""The Docker backend: one hardened, long-lived container a slot, its jobs over the attached standard streams.

    DockerSandbox --open()--> container: the inside program, frames on stdin and stdout --> StreamSlot

A container ends when its judge does: its stdin is closed then, and the engine removes it. What a judge killed at a bad
moment left behind is removed by the next one. Works with every engine that speaks Docker's API (podman's service too).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from klearbench.errors import unknown_name
from klearbench.sandbox.attach import AttachedContainer
from klearbench.sandbox.base import MIB, Command, RunResult, SandboxError, SandboxUnavailable
from klearbench.sandbox.image import DEFAULT_IMAGE, connect, image_problem
from klearbench.sandbox.owner import dead, identity
from klearbench.sandbox.wire import StreamSlot, read_ready

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

SLOT_LABEL = "klearbench.slot"
"""On every container of ours; its value is the slot's role."""
_ROLES = ("submission", "checker")
_START_S = 60.0
_HEADROOM_MB = 512
"""What a container may use beyond a test's own limit: the warm interpreter, the input, files."""
_MEMORY_MB = 4096
_ULIMITS = {"nofile": 1024, "core": 0, "stack": 256 * MIB}
_TMPFS = {
    # Each test's working directory; the only place that a submission may write to.
    "/work": "rw,nosuid,nodev,noexec,size=4m,nr_inodes=256,mode=1777",
    # Source and input, written by the inside program.
    "/box": "rw,nosuid,nodev,noexec,size=256m,nr_inodes=256,mode=755",
    # Over the engine's own, where every user may leave message queues.
    "/dev/mqueue": "ro,nosuid,nodev,noexec,size=4k,nr_inodes=1,mode=555",
}


def hardening(memory_mb: int) -> dict[str, Any]:
    """The options of a slot's container that protect the machine; `memory_mb` is the largest test's limit (MiB)."""
    from docker.types import LogConfig, Ulimit

    memory = (memory_mb + _HEADROOM_MB) * MIB
    return {
        "network_mode": "none",
        "read_only": True,
        "mem_limit": memory,
        "memswap_limit": memory,
        "pids_limit": 640,  # a test may start threads, as far as the inside program lets it
        "nano_cpus": 10**9,
        "cap_drop": ["ALL"],
        # For the inside program alone, which runs each test as a user of its own and kills it.
        "cap_add": ["SETUID", "SETGID", "KILL"],
        "security_opt": ["no-new-privileges"],
        # A namespace of its own, without /dev/shm, where a test could leave something behind.
        "ipc_mode": "none",
        "log_config": LogConfig(type="none"),
        "tmpfs": _TMPFS,
        "ulimits": [Ulimit(name=name, soft=value, hard=value) for name, value in _ULIMITS.items()],
    }


class DockerSandbox:
    """Makes slots in the engine that DOCKER_HOST names.

    Args:
        image: the image that slots are made from.

    Raises:
        SandboxUnavailable: no engine, or no such image in it.
    """

    name = "docker"
    tier = "container"

    def __init__(self, image: str = DEFAULT_IMAGE) -> None:
        self.image = image
        self._client = connect()
        self._slots: list[DockerSlot] = []
        self._lock = threading.Lock()
        problem = image_problem(self._client, image)
        if problem:
            self._client.close()
            raise SandboxUnavailable(f"Docker sandbox: {problem}")
        _remove_leftovers(self._client)

    def open(self, role: str = "submission") -> DockerSlot:
        """A new container, ready to run. `role` ("submission" or "checker") is its label and part of the slot's id.

        Raises:
            ValueError: an unknown role.
            SandboxError: the engine made none, or the program inside did not start.
        """
        if role not in _ROLES:
            raise ValueError(unknown_name("role", role, _ROLES))
        from docker.errors import DockerException

        try:
            container = self._create(role)
        except (DockerException, OSError) as error:
            raise SandboxError(f"the Docker engine made no container: {_one_line(error)}") from error
        try:
            channel = AttachedContainer(self._client, container)
        except BaseException as error:
            with suppress(DockerException, OSError):
                container.remove(force=True)
            if isinstance(error, DockerException | OSError):
                raise SandboxError(f"container {container.id[:12]} did not start: {_one_line(error)}") from error
            raise
        try:
            read_ready(channel, _START_S)
        except BaseException:
            channel.close()
            raise
        slot = DockerSlot(channel, container, role)
        with self._lock:
            self._slots.append(slot)
        return slot

    def _create(self, role: str) -> Container:
        return self._client.containers.create(
            self.image,
            labels={SLOT_LABEL: role, **identity()},
            hostname="sandbox",
            stdin_open=True,  # and closed for good when we are gone
            auto_remove=True,
            stop_signal="SIGKILL",
            **hardening(_MEMORY_MB),
        )

    def close(self) -> None:
        with self._lock:
            slots, self._slots = self._slots, []
        for slot in slots:
            slot.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DockerSlot(StreamSlot):
    """A slot whose container's memory grows with the largest limit that a command asks for."""

    def __init__(self, channel: AttachedContainer, container: Container, role: str) -> None:
        super().__init__(channel, f"docker:{container.id[:12]} {role}")
        self._container = container
        self._memory_mb = _MEMORY_MB

    def run(self, command: Command, inputs: Iterable[bytes]) -> Iterator[RunResult]:
        """Run the program once an input; see `klearbench.sandbox.base.Slot.run`."""
        self._make_room(command.limits.memory_mb)
        return super().run(command, inputs)

    def _make_room(self, memory_mb: int) -> None:
        if memory_mb <= self._memory_mb:
            return
        from docker.errors import DockerException

        memory = (memory_mb + _HEADROOM_MB) * MIB
        try:
            self._container.update(mem_limit=memory, memswap_limit=memory)
        except (DockerException, OSError) as error:
            raise SandboxError(f"slot {self.id} can't have {memory_mb} MiB: {_one_line(error)}") from error
        self._memory_mb = memory_mb


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[-500:]


def _remove_leftovers(client: DockerClient) -> None:
    """Remove the containers of judges that are dead: those killed between making a container and starting it."""
    from docker.errors import APIError

    for container in client.containers.list(all=True, filters={"label": SLOT_LABEL}, ignore_removed=True):
        if dead(container.labels):
            try:
                container.remove(force=True)
            except APIError as error:
                if error.status_code not in (404, 409):  # gone, or going
                    raise SandboxError(f"container {container.id[:12]} can't be removed: {_one_line(error)}") from error
