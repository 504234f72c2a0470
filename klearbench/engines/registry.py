"""Every engine by name. Building one is the first moment at which its libraries are loaded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from klearbench.engines.base import Engine
from klearbench.errors import ConfigError, UsageError, unknown_name


def _scripted(**options: Any) -> Engine:
    from klearbench.engines.scripted import ScriptedEngine

    return ScriptedEngine(**options)


def _hf(**options: Any) -> Engine:
    from klearbench.engines.hf import HfEngine

    return HfEngine.load(**options)


def _replay(**options: Any) -> Engine:
    from klearbench.engines.replay import ReplayEngine

    return ReplayEngine(**options)


ENGINES: dict[str, Callable[..., Engine]] = {"scripted": _scripted, "hf": _hf, "replay": _replay}


def build_engine(name: str, options: Mapping[str, Any]) -> Engine:
    """An engine by name, built with its own options.

    Raises:
        UsageError: unknown engine, or one whose libraries are not installed.
        ConfigError: an option it doesn't have.
    """
    if name not in ENGINES:
        raise UsageError(unknown_name("engine", name, ENGINES))
    try:
        return ENGINES[name](**options)
    except ModuleNotFoundError as error:
        raise UsageError(f"engine {name!r} needs the package {error.name!r}: pip install 'klearbench[hf]'") from None
    except TypeError as error:
        if "unexpected keyword" not in str(error) or inspect.trace()[-1].function not in (
            "_scripted",
            "_hf",
            "_replay",
        ):
            raise
        raise ConfigError(f"engine {name!r}: {str(error).partition(' ')[2]}") from None
