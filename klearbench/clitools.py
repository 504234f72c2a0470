"""What both command lines share: exit codes, one-line errors, signals. Loads click alone."""

from __future__ import annotations

import errno
import math
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Any, NoReturn

import click

from klearbench.errors import EXIT_CRASH, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, KlearError, Terminated
from klearbench.store import disk_full

_PATHS = (PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)
_PATH_ERRORS = (errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)
"""What a path of the user's can be: the system's own words are clear enough."""


_EXTRAS = {"torch": "hf", "transformers": "hf", "accelerate": "hf"} | dict.fromkeys(
    ("deepspeed", "datasets", "tensorboard", "tokenizers", "safetensors", "huggingface_hub", "pandas"), "train"
)
"""Package -> the extra that brings it: the core works without them."""


class Finite(click.FloatRange):
    """A range that NaN and infinity are not in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is no finite number.", param, ctx)
        return number


def run_cli(group: click.Group, name: str) -> NoReturn:
    """Run a click group with the exit codes of the contract, and exit.

    `--debug`, anywhere on the command line, shows the traceback of an error.
    """
    # Before torch is imported: spinning OpenMP threads cost 10x where several processes share few cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    signal.signal(signal.SIGTERM, _terminate)
    arguments = [a for a in sys.argv[1:] if a != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    sys.exit(_run(group, name, arguments, debug))


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise Terminated("stopped by SIGTERM; the same command goes on from here")


def _run(group: click.Group, name: str, arguments: list[str], debug: bool) -> int:
    try:
        with group.make_context(name, arguments) as context:  # group.main() would say an empty line after Ctrl-C
            result = group.invoke(context)
        return result if isinstance(result, int) else EXIT_OK
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return EXIT_USAGE
    except click.ClickException as error:
        where = f" (see '{error.ctx.command_path} --help')" if isinstance(error, click.UsageError) and error.ctx else ""
        return _fail(name, f"{_flat(error.format_message())}{where}", EXIT_USAGE, debug)
    except (click.Abort, KeyboardInterrupt):
        return _fail(name, "interrupted; the same command goes on from here", EXIT_INTERRUPTED, debug)
    except KlearError as error:
        return _fail(name, _flat(str(error)), error.exit_code, debug)
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except OSError as error:
        full = disk_full(error, error.filename or "the disk")
        if full is not None:
            return _fail(name, str(full), full.exit_code, debug)
        if error.filename and (isinstance(error, _PATHS) or error.errno in _PATH_ERRORS):
            return _fail(name, f"{error.filename2 or error.filename}: {error.strerror}", EXIT_USAGE, debug)
        return _crash(name, error, debug)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            return _crash(name, error, debug)
        extra = "train" if name == "klearrl" else extra
        remedy = f"this needs the package {error.name}: pip install 'klearbench[{extra}]'"
        return _fail(name, remedy, EXIT_USAGE, debug)
    except Exception as error:
        return _crash(name, error, debug)


def _crash(name: str, error: Exception, debug: bool) -> int:
    text = f"our own fault, please report it: {type(error).__name__}: {_flat(str(error))}"
    return _fail(name, text if debug else f"{text} (--debug shows where)", EXIT_CRASH, debug)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _fail(name: str, message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    click.echo(f"{name}: {message}", err=True)
    return code
