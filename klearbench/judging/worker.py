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


OPS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"strict": _strict, "math-verify": _math_verify}


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """One reply. What a text does to the libraries (recursion, memory, overflow) leaves it not shown equal."""
    start = time.process_time()
    try:
        reply = OPS[request["op"]](request)
    except (RecursionError, MemoryError, OverflowError) as error:
        reply = {"equal": False, "detail": f"too large to evaluate ({type(error).__name__})"}
    return {**reply, "cpu_s": time.process_time() - start}


def main() -> None:
    """Serve requests until stdin closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # a library that prints must not corrupt the replies
    import math_verify  # noqa: F401  (the start pays for the imports, not the first check)

    import klearbench.judging.equality  # noqa: F401

    memory = int(sys.argv[1]) * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out.write('{"ready": true}\n')
    for line in sys.stdin:
        request = json.loads(line)
        # The parent kills us at limit_s. This timer, whose default action ends the process, is for a parent that died.
        signal.setitimer(signal.ITIMER_REAL, 2 * float(request["limit_s"]) + 1)
        reply = _answer(request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        out.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
