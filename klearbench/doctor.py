"""What works on this machine, and the remedy for what does not."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from klearbench import __version__
from klearbench.suites.lookup import data_dir_or_env
from klearbench.suites.registry import SUITES

_EXTRAS = {
    "hf": ("torch", "transformers"),
    "train": ("deepspeed", "datasets", "tensorboard"),
    "vllm": ("vllm",),
    "lm-eval": ("lm_eval",),
    "docker": ("docker",),
}


def suite_lines(data_dir: Path | None) -> Iterator[str]:
    """One line a suite: name, problems, licence, data here or where it is looked for."""
    folder = data_dir_or_env(data_dir)
    width = max(map(len, SUITES))
    for info in SUITES.values():
        yield f"{info.name:<{width}}  {info.count:>5} problems  {_presence(info.file, folder):<36}  {info.about}" + (
            f" ({info.source}; {info.licence})"
        )


def _presence(file: str | None, folder: Path | None) -> str:
    if file is None:
        return "embedded"
    if folder is None:
        return f"absent: {file} in KLEARBENCH_DATA"
    return "present" if (folder / file).is_file() else f"absent: {folder / file}"


def doctor_lines(data_dir: Path | None) -> Iterator[str]:
    """Everything that decides what this machine can do, one line each, with the remedy of what is missing."""
    yield f"klearbench {__version__}, Python {platform.python_version()}, {os.cpu_count()} CPUs, {_memory()}"
    yield from _package_lines()
    yield _device_line()
    yield f"math judge: ok (math-verify {metadata.version('math-verify')} in killable worker processes)"
    yield "code judge: not in this version; suites with programs are refused"
    yield _docker_line()
    folder = data_dir_or_env(data_dir)
    absent = [i.name for i in SUITES.values() if i.file and not (folder and (folder / i.file).is_file())]
    yield f"data: {folder or 'no folder'}; " + (
        f"absent: {', '.join(absent)} (remedy: --data-dir DIR or KLEARBENCH_DATA=DIR)"
        if absent
        else "every suite present"
    )


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB memory"
    except (ValueError, OSError):
        return "memory unknown"


def _package_lines() -> Iterator[str]:
    for extra, modules in _EXTRAS.items():
        missing = [m for m in modules if importlib.util.find_spec(m) is None]
        if missing:
            yield f"extra {extra}: missing {', '.join(missing)} (remedy: pip install 'klearbench[{extra}]')"
        else:
            yield f"extra {extra}: ok ({', '.join(f'{m} {_version(m)}' for m in modules)})"


def _version(module: str) -> str:
    names = metadata.packages_distributions().get(module, [module])
    return metadata.version(names[0])


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


def _docker_line() -> str:
    if shutil.which("docker") is None:
        return "docker: no client (remedy: install Docker or podman)"
    if importlib.util.find_spec("docker") is None:
        return "docker: client only; the Python package is missing (remedy: pip install 'klearbench[docker]')"
    import docker

    try:
        engine = docker.from_env(timeout=5)
        version = engine.version()["Version"]
        engine.close()
    except docker.errors.DockerException:
        return "docker: no engine answers (remedy: start dockerd, or set DOCKER_HOST)"
    return f"docker: ok (engine {version})"
