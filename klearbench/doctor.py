"""What works on this machine, and the remedy for what does not."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from klearbench import __version__
from klearbench.errors import UsageError
from klearbench.sandbox.base import SandboxUnavailable
from klearbench.suites.base import SuiteInfo
from klearbench.suites.lookup import data_dir_or_env
from klearbench.suites.registry import SUITES

FIX = "klearbench doctor --fix"
_USERNS = "user namespaces, as sysctl user.max_user_namespaces=10000 allows them, or --sandbox docker"
_EXTRAS = {
    "hf": ("torch", "transformers"),
    "train": ("deepspeed", "datasets", "tensorboard"),
    "vllm": ("vllm",),
    "lm-eval": ("lm_eval",),
    "docker": ("docker",),
}


def suite_lines(data_dir: Path | None) -> Iterator[str]:
    """One line a suite: name, problems, licence, data here, or where it was looked for and how to get it."""
    folder = data_dir_or_env(data_dir)
    width = max(map(len, SUITES))
    for info in SUITES.values():
        presence = _presence(info, folder)
        remedy = f"; get {info.file} (--data-dir), or once from the hub: {info.hub}" if "absent" in presence else ""
        yield f"{info.name:<{width}}  {info.count:>5} problems  {presence:<36}  {info.about}" + (
            f" ({info.source}; {info.licence}){remedy}"
        )


def _presence(info: SuiteInfo, folder: Path | None) -> str:
    if info.file is None:
        return "embedded"
    if folder is None:
        return f"absent: {info.file} in KLEARBENCH_DATA"
    return "present" if info.in_folder(folder) else f"absent: {folder / info.file}"


def doctor_lines(data_dir: Path | None) -> Iterator[str]:
    """Everything that decides what this machine can do, one line each, with the remedy of what is missing."""
    yield f"klearbench {__version__}, Python {platform.python_version()}, {os.cpu_count()} CPUs, {_memory()}"
    yield from _package_lines()
    yield _device_line()
    yield f"math judge: ok (math-verify {metadata.version('math-verify')} in killable worker processes)"
    yield _local_line()
    yield _environment_line()
    yield _docker_line()
    folder = data_dir_or_env(data_dir)
    absent = [i.name for i in SUITES.values() if i.file and not (folder and i.in_folder(folder))]
    yield f"data: {folder or 'no folder'}; " + (
        f"absent: {', '.join(absent)} (remedy: --data-dir DIR or KLEARBENCH_DATA=DIR; klearbench suites says how to get"
        " each)"
        if absent
        else "every suite present"
    )


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB memory"
    except (ValueError, OSError):
        return "memory unknown"


def _package_lines() -> Iterator[str]:
    owners = metadata.packages_distributions()  # it reads the metadata of every package here: once
    for extra, modules in _EXTRAS.items():
        missing = [m for m in modules if importlib.util.find_spec(m) is None]
        if missing:
            yield f"extra {extra}: missing {', '.join(missing)} (remedy: pip install 'klearbench[{extra}]')"
        else:
            found = (f"{m} {metadata.version(owners.get(m, [m])[0])}" for m in modules)
            yield f"extra {extra}: ok ({', '.join(found)})"


def _device_line() -> str:
    if importlib.util.find_spec("torch") is None:
        return "devices: unknown without torch (remedy: pip install 'klearbench[hf]')"
    try:
        import torch
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())
        return f"devices: unknown, torch can't be imported: {reason} (remedy: pip install --force-reinstall torch)"
    if torch.cuda.is_available():
        return "devices: " + ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
    return f"devices: CPU only, {torch.get_num_threads()} threads (training and evaluation work, slowly)"


def _local_line() -> str:
    from klearbench.sandbox.local import TIERS, probe

    tier, reason = probe()
    if tier == TIERS[0]:
        return f"code judge: ok, local sandbox by {tier}"
    return (
        f"code judge: {f'local sandbox by {tier} only' if tier else 'no local sandbox'} ({reason}; remedy: {_USERNS})"
    )


def _environment_line() -> str:
    from klearbench.sandbox.environment import find_environment

    try:
        folder = find_environment()
    except UsageError as error:
        return f"packages of submissions: {error}"
    if folder is None:
        return f"packages of submissions: absent, local programs can't import numpy (remedy: {FIX})"
    return f"packages of submissions: ok ({folder})"


def _docker_line() -> str:
    if importlib.util.find_spec("docker") is None:
        if shutil.which("docker") is None:
            return "docker: no client (remedy: install Docker or podman)"
        return "docker: client only; the Python package is missing (remedy: pip install 'klearbench[docker]')"
    from klearbench.sandbox.image import DEFAULT_IMAGE, connect, image_problem

    try:
        engine = connect(timeout_s=5)
    except SandboxUnavailable as error:
        if shutil.which("docker") is None and not os.environ.get("DOCKER_HOST"):
            return "docker: no client (remedy: install Docker or podman)"
        return f"docker: {error}"
    try:
        version = engine.version()["Version"]
        return f"docker: engine {version}, {image_problem(engine) or f'ok (image {DEFAULT_IMAGE})'}"
    finally:
        engine.close()


def fix(say: Callable[[str], None]) -> None:
    """Make what can be made: the packages that submissions may import, and, where an engine answers, our image.

    Raises:
        SandboxUnavailable: one of them could not be made, and why.
    """
    from klearbench.sandbox.environment import ensure_environment
    from klearbench.sandbox.image import DEFAULT_IMAGE, build_image, connect, image_problem

    ensure_environment(say)
    if importlib.util.find_spec("docker") is None:
        return
    try:
        engine = connect(timeout_s=5)
    except SandboxUnavailable:
        return  # Docker is an option; the lines that follow say what is missing
    engine.close()
    engine = connect()
    try:
        if image_problem(engine):
            say(f"building the image {DEFAULT_IMAGE}")
            build_image(engine)
    finally:
        engine.close()
