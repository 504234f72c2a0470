"""Sandboxes by name. A new backend is one entry here; nothing is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from klearbench.errors import ConfigError, unknown_name
from klearbench.sandbox.base import Sandbox


def _local() -> Sandbox:
    from klearbench.sandbox.local import LocalSandbox

    return LocalSandbox()


def _docker() -> Sandbox:
    from klearbench.sandbox.docker import DockerSandbox

    return DockerSandbox()


SANDBOXES: dict[str, Callable[[], Sandbox]] = {"local": _local, "docker": _docker}
"""Name, as `--sandbox` takes it, -> what makes a sandbox."""


def build_sandbox(name: str) -> Sandbox:
    """A sandbox by its name; the caller closes it.

    Raises:
        ConfigError: there is none of this name.
        SandboxUnavailable: it can't be had on this machine (the message says why, and the remedy).
    """
    if name not in SANDBOXES:
        raise ConfigError(unknown_name("sandbox", name, SANDBOXES))
    return SANDBOXES[name]()
