"""A private Docker engine for the tests, with our image in it: started as root, ended with the session.

The engine has its own socket, data and state in a temporary folder, no bridge and no firewall rules. No registry is
needed: the base image is made from the machine's own Python, and the packages that submissions may import come from
the local sandbox's environment.
"""

from __future__ import annotations

import ctypes
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

BASE = "klear-test-base:local"
_PYTHON = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
"""The machine's own Python, of the running version: only so do the packages of the environment fit."""
_LEFT_OUT = ("test", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo")
_FLAGS = [
    "--iptables=false", "--ip6tables=false", "--bridge=none", "--exec-opt", "native.cgroupdriver=cgroupfs",
    "--oom-score-adjust=0", "--default-ulimit", "nofile=1024:4096", "--shutdown-timeout", "5",
]  # fmt: skip
_USERS = {
    "etc/passwd": "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}
_DOCKERFILE = 'FROM scratch\nADD rootfs.tar /\nENV PATH=/usr/local/bin:/usr/bin:/bin\nCMD ["python3"]\n'


class Engine:
    """One dockerd. `host` is what DOCKER_HOST takes; it can be stopped and started again on the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = f"unix://{folder / 'sock'}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["dockerd", "-H", self.host, "--data-root", self.folder / "data", "--exec-root", self.folder / "exec"]
        command += ["-p", self.folder / "pid", "--storage-driver", "overlay2", *_FLAGS]
        libc = ctypes.CDLL(None)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=lambda: libc.prctl(1, signal.SIGTERM),  # it ends with us, however we end
            )  # fmt: skip
        deadline = time.monotonic() + 30
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError("dockerd did not start:\n" + (self.folder / "log").read_text()[-2000:])
            time.sleep(0.1)

    def _answers(self) -> bool:
        import docker

        try:
            with_timeout = docker.DockerClient(base_url=self.host, timeout=5)
            with_timeout.ping()
            with_timeout.close()
        except (docker.errors.DockerException, OSError):
            return False
        return True

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        for mount in self._mounts():  # none, unless it was killed
            subprocess.run(["umount", "--lazy", mount], check=False)

    def _mounts(self) -> list[str]:
        found = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return [path for path in reversed(found) if path.startswith(f"{self.folder}/")]


def _libraries(binaries: list[Path]) -> Iterator[Path]:
    """Every shared library that these need, by ldd."""
    done = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False)
    yield from sorted({Path(found) for found in re.findall(r"(/\S+\.so\S*) \(0x", done.stdout)})


def _rootfs(environment: Path) -> bytes:
    """A file system with the machine's Python and what the packages of the environment link to, as a tar archive."""
    library = Path("/usr/lib") / _PYTHON.name

    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if Path(entry.name).name in _LEFT_OUT else entry

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, mode in (("tmp", 0o1777), ("proc", 0o755), ("sys", 0o755), ("dev", 0o755), ("usr/bin", 0o755)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        links = [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"), ("usr/bin/python3", _PYTHON.name)]
        for name, target in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        for name, text in _USERS.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
        tar.add(library, f"usr/lib/{_PYTHON.name}", filter=kept)
        programs = [_PYTHON, *map(Path, ("/bin/sh", "/bin/mkdir", "/bin/chmod"))]
        for program in programs:
            tar.add(program.resolve(), f"usr/bin/{program.name}")
        binaries = [*programs, *library.glob("lib-dynload/*.so"), *environment.rglob("*.so*")]
        for path in _libraries(binaries):
            if path.is_relative_to("/lib") or path.is_relative_to("/lib64") or path.is_relative_to("/usr/lib"):
                tar.add(path.resolve(), "usr/" + str(path).removeprefix("/usr").lstrip("/"))
    return buffer.getvalue()


def _build_images(host: str, environment: Path) -> None:
    import docker

    from klearbench.sandbox.image import build_image

    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, content in (("Dockerfile", _DOCKERFILE.encode()), ("rootfs.tar", _rootfs(environment))):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    context.seek(0)
    client = docker.DockerClient(base_url=host)
    try:
        client.images.build(fileobj=context, custom_context=True, tag=BASE, network_mode="none", rm=True)
        build_image(client, base=BASE, environment=environment, network_mode="none")
    finally:
        client.close()


def _missing() -> str | None:
    if os.geteuid() != 0:
        return "a private dockerd needs root"
    if shutil.which("dockerd") is None:
        return "no dockerd (remedy: apt-get install docker.io)"
    if not _PYTHON.exists():
        return f"no {_PYTHON} to make a base image from"
    try:
        import docker  # noqa: F401
    except ImportError:
        return "no Python package docker (remedy: pip install 'klearbench[docker]')"
    return None


@pytest.fixture(scope="session")
def docker_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A running engine that holds our image. A test that stops it starts it again."""
    reason = _missing()
    if reason:
        pytest.skip(reason)
    from klearbench.sandbox.environment import ensure_environment

    engine = Engine(tmp_path_factory.mktemp("dockerd"))
    try:
        engine.start()
        _build_images(engine.host, ensure_environment(print))
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(engine.folder, ignore_errors=True)


@pytest.fixture
def docker_host(docker_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """The private engine's address, as DOCKER_HOST has it during the test."""
    monkeypatch.setenv("DOCKER_HOST", docker_engine.host)
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    return docker_engine.host
