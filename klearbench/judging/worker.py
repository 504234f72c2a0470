"""The program of a judging worker: `python -m klearbench.judging.worker MEMORY_MB`.

Reads one JSON request a line from stdin, writes one JSON reply a line. Requests: {"op", "gold", "answer", "limit_s"}.
It compares texts; it never evaluates them as code.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any


def _strict(request: Mapping[str, Any]) -> dict[str, Any]:
    from klearbench.judging.equality import equal

    return {"equal": equal(request["gold"], request["answer"])}


def _math_verify(request: Mapping[str, Any]) -> dict[str, Any]:
    from math_verify import parse, verify

    gold = parse(f"${request['gold']}$", parsing_timeout=None)
    if not gold:
        return {"equal": None, "detail": "math-verify can't parse the reference answer"}
    answer = parse(request["answer"], parsing_timeout=None)
    shown = str(answer[-1])[:200] if answer else None
    return {"equal": bool(verify(gold, answer, timeout_seconds=None)), "extracted": shown}


def _set(request: Mapping[str, Any]) -> dict[str, Any]:
    from klearbench.judging.equality import sets_of_values_equal

    return {"equal": sets_of_values_equal(request["gold"], request["answer"])}


def _gold(request: Mapping[str, Any]) -> dict[str, Any]:
    """Read a reference alone, as the comparison named in "answer" would."""
    if request["answer"] == "math-verify":
        from math_verify import parse, verify

        verify(
            parse(f"${request['gold']}$", parsing_timeout=None),
            parse("$1$", parsing_timeout=None),
            timeout_seconds=None,
        )
    else:
        from klearbench.judging.equality import read_alone

        read_alone(request["gold"])
    return {"equal": True}


OPS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "strict": _strict,
    "set": _set,
    "math-verify": _math_verify,
    "gold": _gold,
}


_WARM_UP = ((r"\frac{\sqrt{3}}{2}+x^{2}", r"x^2+\sqrt{3}/2"), (r"(-\infty,7)", "x<7"), (r"2\pi", r"\pi+\pi"))


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """One reply. Whatever an answer's text makes the libraries raise leaves it not shown equal; where the reference
    alone raises too, the fault is ours and nothing is said of the answer."""
    start = time.process_time()
    work = OPS[request["op"]]
    try:
        reply = work(request)
    except (RecursionError, MemoryError, OverflowError) as error:
        reply = {"equal": False, "detail": f"too large to evaluate ({type(error).__name__})"}
    except Exception as error:
        reply = _unreadable(request, error)
    return {**reply, "cpu_s": time.process_time() - start}


def _unreadable(request: Mapping[str, Any], error: Exception) -> dict[str, Any]:
    mode = "math-verify" if request["op"] == "math-verify" else "strict"
    try:
        _gold({**request, "answer": mode})
    except Exception as own:
        return {"equal": None, "detail": f"the reference can't be read ({type(own).__name__})"}
    return {"equal": False, "detail": f"the answer can't be read ({type(error).__name__})"}


def main() -> None:
    """Serve requests until stdin closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # a library that prints must not corrupt the replies
    import math_verify  # noqa: F401  (the start pays for the imports, not the first check)

    from klearbench.judging.equality import equal

    for gold, answer in _WARM_UP:  # the parser's tables are built at first use
        equal(gold, answer)

    memory = int(sys.argv[1]) * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out.write('{"ready": true}\n')
    for line in sys.stdin:
        request = json.loads(line)
        # The kernel ends the process when this much CPU time is used, also inside C code, also when the parent died.
        # CPU time and not wall time: a loaded machine must not change a verdict.
        signal.setitimer(signal.ITIMER_PROF, float(request["limit_s"]))
        reply = _answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        out.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
