"""Every engine by name. Building one is the first moment at which its libraries are loaded."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, cast, get_type_hints

from klearbench.engines.base import Engine
from klearbench.errors import ConfigError, UsageError, unknown_name
from klearbench.types import fits

ENGINES: dict[str, str] = {
    "hf": "klearbench.engines.hf:load_engine",
    "vllm": "klearbench.engines.vllm:load_engine",
    "openai": "klearbench.engines.openai:load_engine",
    "lm-eval": "klearbench.integrations.lm_eval_engine:load_engine",
    "scripted": "klearbench.engines.scripted:ScriptedEngine",
    "replay": "klearbench.engines.replay:ReplayEngine",
}
"""Name -> "module:function that builds it", imported only when it is asked for."""


def build_engine(name: str, options: Mapping[str, Any]) -> Engine:
    """An engine by name, built with its own options.

    Raises:
        UsageError: unknown engine, or one whose libraries are not installed.
        ConfigError: an option that it doesn't have.
    """
    if name not in ENGINES:
        raise UsageError(unknown_name("engine", name, ENGINES))
    module, _, attribute = ENGINES[name].partition(":")
    try:
        build = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        extra = name if name in ("vllm", "openai", "lm-eval") else "hf"
        raise UsageError(
            f"engine {name!r} needs the package {error.name!r}: pip install 'klearbench[{extra}]'"
        ) from None
    parameters = inspect.signature(build).parameters
    for option in options:
        if option not in parameters:
            raise ConfigError(f"engine {name!r}: {unknown_name('option', option, parameters)}")
    _check_types(name, build, options)
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in options:
            raise UsageError(f"engine {name!r} needs --{parameter.name.replace('_', '-')}")
    return cast(Engine, build(**options))


def _check_types(engine: str, build: Any, options: Mapping[str, Any]) -> None:
    """Refuse a value of another type than the builder's annotation, and a batch of nothing."""
    hints = get_type_hints(build.__init__ if inspect.isclass(build) else build)
    for option, value in options.items():
        hint = hints[option]
        if not fits(hint)(value) or (option == "batch_size" and value < 1):
            wanted = (hint.__name__ if isinstance(hint, type) else str(hint)).replace("typing.", "")
            raise ConfigError(f"engine {engine!r}: {option} is {value!r} ({wanted} is expected)")
