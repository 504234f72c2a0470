"""The Docker sandbox's image: its name, its build from this folder, and whether an engine has it."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from klearbench import __version__
from klearbench.sandbox.base import SandboxUnavailable
from klearbench.sandbox.environment import PINS

if TYPE_CHECKING:
    from docker import DockerClient

DEFAULT_IMAGE = f"klearbench-sandbox:{__version__}"
CONTENT_LABEL = "klearbench.content"
"""An image's label with the hash of what it was built from."""
BASE_VARIABLE = "KLEARBENCH_SANDBOX_BASE"
"""Names another base image than the Dockerfile's."""
_FOLDER = Path(__file__).parent


def connect(timeout_s: int = 60) -> DockerClient:
    """The engine that DOCKER_HOST names (default: the machine's own); no answer may take longer than `timeout_s`.

    Raises:
        SandboxUnavailable: the Python package is missing, or no engine answers.
    """
    try:
        import docker
    except ImportError as error:
        raise SandboxUnavailable("no Python package docker (remedy: pip install 'klearbench[docker]')") from error
    try:
        return docker.from_env(timeout=timeout_s)
    except (docker.errors.DockerException, OSError) as error:
        where = os.environ.get("DOCKER_HOST", "its default address")
        raise SandboxUnavailable(
            f"no Docker engine answers at {where} (remedy: start dockerd or podman's service, or set DOCKER_HOST)"
        ) from error


def image_problem(client: DockerClient, name: str = DEFAULT_IMAGE) -> str | None:
    """Why the engine's image can't be used, with the remedy; None when it can."""
    import docker

    try:
        labels = client.images.get(name).labels
    except docker.errors.ImageNotFound:
        return f"no image {name} (remedy: {_remedy(name)})"
    except (docker.errors.DockerException, OSError) as error:
        return f"the engine failed: {' '.join(str(error).split())}"
    # Images built by hand have no such label, and are taken at their name.
    if labels.get(CONTENT_LABEL, content_hash()) != content_hash():
        return f"the image {name} was built from other sources (remedy: {_remedy(name)})"
    return None


def _remedy(name: str) -> str:
    return "klearbench doctor --fix" if name == DEFAULT_IMAGE else f"build it on {DEFAULT_IMAGE}"


def build_image(
    client: DockerClient,
    name: str = DEFAULT_IMAGE,
    *,
    base: str | None = None,
    environment: Path | None = None,
    network_mode: str | None = None,
) -> None:
    """Build the image in the engine.

    Args:
        base: the base image (default: KLEARBENCH_SANDBOX_BASE, else the Dockerfile's pinned one).
        environment: a ready environment for the base image's Python (see `environment.py`), so that no package is
            fetched; the build then works with `network_mode="none"`.

    Raises:
        SandboxUnavailable: the build failed; the message ends with the engine's reason.
    """
    import docker

    base = base or os.environ.get(BASE_VARIABLE)
    try:
        client.images.build(
            fileobj=_context(environment),
            custom_context=True,
            tag=name,
            rm=True,
            forcerm=True,
            buildargs={"BASE": base} if base else {},
            labels={CONTENT_LABEL: content_hash()},
            network_mode=network_mode,
        )
    except (docker.errors.DockerException, OSError) as error:
        reason = " ".join(str(error).split())[-500:]
        raise SandboxUnavailable(
            f"the image {name} could not be built: {reason} (remedy: {BASE_VARIABLE}=IMAGE for another base image; "
            "sandbox_images/README.md tells how to build without a network)"
        ) from error


def content_hash() -> str:
    """The hash of everything that goes into the image, the base image and the packages' bytes apart."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(f"{path.relative_to(_FOLDER)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    yield _FOLDER / "Dockerfile"
    yield PINS
    yield from sorted((_FOLDER / "inside").glob("*.py"))


def _context(environment: Path | None) -> io.BytesIO:
    """The build context as a tar archive, the same as `docker build klearbench/sandbox` sends."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in _sources():
            tar.add(path.resolve(), str(path.relative_to(_FOLDER)), filter=_roots)
        if environment is not None:
            tar.add(environment, "environment", filter=_roots)
    buffer.seek(0)
    return buffer


def _roots(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Owned by root and readable by all, whoever checked the sources out."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
