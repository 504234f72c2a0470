"""The program of a judging worker: `python -m klearbench.judging.worker MEMORY_MB OP`.

It loads what the operation OP needs, then forks a server, which reads batches of requests from stdin, one JSON line
each: `{"limit_s", "requests": [{"op", "gold", "answer"}, ...]}`, and writes one JSON line a request. When a request
runs out of its CPU time the kernel ends the server; the next one is forked in milliseconds, since nothing has to be
loaded again, and the line `{"pid", "timeout": true}` says so: the rest of that batch is lost. When a server ends in
any other way, so does the worker. It compares texts; it never evaluates them as code.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn

from klearbench.faults import fault


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
        fault("judge.compare", request["answer"])
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


@cache
def warm_up(op: str) -> None:
    """Load what an operation needs: neither the first check nor a server that follows a hang pays for it."""
    for gold, answer in _WARM_UP:  # parsers build their tables at first use
        OPS[op]({"gold": gold, "answer": answer if op != "math-verify" else f"${answer}$"})


def _serve(out: int, memory_mb: int) -> None:
    """Answer batches until stdin closes."""
    memory = memory_mb * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for line in os.fdopen(0, "rb", closefd=False):
        batch = json.loads(line)
        for request in batch["requests"]:
            if request.get("op") == "math-verify":
                warm_up("math-verify")  # in a pool that was not told: its import must not count as the answer's time
            # The kernel ends the process when this much CPU time is used, also inside C code, also when the parent
            # died. CPU time and not wall time: a loaded machine must not change a verdict.
            signal.setitimer(signal.ITIMER_PROF, float(batch["limit_s"]))
            reply = _answer(request)
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.write(out, json.dumps(reply).encode() + b"\n")  # short: a reply fits a pipe's atomic write


class _Servers:
    """One server after another; SIGTERM ends the one there is, and this process."""

    def __init__(self, out: int, memory_mb: int) -> None:
        self._out, self._memory_mb, self._pid = out, memory_mb, 0
        signal.signal(signal.SIGTERM, self._end)

    def run(self) -> NoReturn:
        timeout = False
        while True:
            self._fork()
            os.write(self._out, json.dumps({"pid": self._pid, "timeout": timeout}).encode() + b"\n")
            status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            self._pid, timeout = 0, status == -signal.SIGPROF
            if not timeout:
                os._exit(status if status >= 0 else 128 - status)

    def _fork(self) -> None:
        """Fork a server. This process has one thread and the signal waits, so nothing can be left half done."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        self._pid = os.fork()
        if self._pid == 0:
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
                _serve(self._out, self._memory_mb)
                os._exit(0)
            finally:
                os._exit(1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def _end(self, *_: object) -> NoReturn:
        with suppress(ProcessLookupError, ChildProcessError):
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
        os._exit(0)


def main() -> None:
    """Load, then serve until stdin closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.dup(1)
    os.dup2(2, 1)  # a library that prints must not corrupt the replies
    warm_up(sys.argv[2])
    gc.collect()
    gc.freeze()  # what is loaded stays shared with the servers
    _Servers(out, int(sys.argv[1])).run()


if __name__ == "__main__":
    main()
