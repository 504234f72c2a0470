"""The program of one replica: a vLLM engine in a process of its own, fed over a pipe with token ids, seeds and limits.

    python -m klearbench.engines.vllm_worker FD

FD is an open socket to the parent. The first message is the plan ("engine": vLLM's own arguments, "ends": end-of-turn
tokens, "model", "name"); then `Job`s and `DROP` (forget all jobs). Back come ("ready", about the engine), then
("done", job number, Made) or ("refused", job number, one line) for each job, and ("failed", one line) before the
process ends of an error.

When the parent closes its end, or dies, this process and all that vLLM started end too.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from klearbench.engines.chat import StopTexts, first_line, load_tokenizer
from klearbench.engines.vllm_jobs import DROP, Job, Made
from klearbench.types import FinishReason

_GRACE_S = 5.0
_REASONS = {"stop": FinishReason.stop, "length": FinishReason.length}


@dataclass(slots=True)
class _Growing:
    watch: StopTexts | None
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class Pipe:
    """The worker's end: both directions have a thread, so that neither side ever waits for the other's buffer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closed = False
        threading.Thread(target=self._read, daemon=True).start()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def take(self, *, wait: bool) -> list[Any] | None:
        """All messages that have come (at least one, with `wait`); None when the parent has gone."""
        messages = [self._inbox.get()] if wait else []
        with contextlib.suppress(queue.Empty):
            while True:
                messages.append(self._inbox.get_nowait())
        return None if self._closed else messages

    def say(self, *message: Any) -> None:
        """Send a message, without waiting."""
        self._outbox.put(message)

    def finish(self) -> None:
        """Wait until everything said is on its way."""
        self._outbox.put(None)
        self._writer.join(_GRACE_S)

    def _read(self) -> None:
        try:
            while True:
                self._inbox.put(self._connection.recv())
        except (EOFError, OSError):
            self._closed = True
            self._inbox.put(None)
        time.sleep(_GRACE_S)  # the engine may be starting, or be stuck; its own processes are of our group
        os.killpg(os.getpgid(0), signal.SIGKILL)

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (message := self._outbox.get()) is not None:
                self._connection.send(message)


class Worker:
    """The jobs of one engine. Finished ones are said at once; stop texts are watched here, as in the hf engine."""

    def __init__(self, engine: Any, pipe: Pipe, ends: Sequence[int], model: str) -> None:
        self._engine, self._pipe = engine, pipe
        self._ends, self._model = list(ends), model
        self._tokenizer: Any = None
        self._growing: dict[str, _Growing] = {}

    def run(self) -> None:
        """Until the parent closes the pipe."""
        while (messages := self._pipe.take(wait=not self._growing)) is not None:
            for message in messages:
                if message == DROP:
                    self._engine.abort_request(list(self._growing))
                    self._growing.clear()
                else:
                    self._add(message)
            if self._growing:
                for output in self._engine.step():
                    self._grow(output)

    def _add(self, job: Job) -> None:
        from vllm.exceptions import VLLMValidationError

        if job.sampling.stop and self._tokenizer is None:
            self._tokenizer = load_tokenizer(self._model)
        watch = StopTexts(self._tokenizer, job.sampling.stop) if job.sampling.stop else None
        try:
            self._engine.add_request(str(job.number), {"prompt_token_ids": list(job.prompt)}, self._parameters(job))
        except VLLMValidationError as error:
            self._pipe.say("refused", job.number, first_line(error))
        else:
            self._growing[str(job.number)] = _Growing(watch)

    def _parameters(self, job: Job) -> Any:
        """End-of-turn tokens are ours alone (`ignore_eos` leaves out what vLLM would add); text is made by the parent,
        so nothing is detokenized here."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        s = job.sampling
        return SamplingParams(
            temperature=s.temperature,
            top_p=s.top_p,
            top_k=s.top_k,
            min_p=s.min_p,
            repetition_penalty=s.repetition_penalty,
            seed=job.seed,
            max_tokens=job.budget,
            stop_token_ids=self._ends,
            ignore_eos=True,
            detokenize=False,
            logprobs=0,
            flat_logprobs=True,
            output_kind=RequestOutputKind.DELTA if s.stop else RequestOutputKind.FINAL_ONLY,
        )

    def _grow(self, output: Any) -> None:
        growing = self._growing.get(output.request_id)
        if growing is None:
            return  # dropped, or ended by a stop text
        new = output.outputs[0]
        for token, logprob in zip(new.token_ids, new.logprobs.logprobs if new.logprobs else (), strict=True):
            growing.token_ids.append(token)
            growing.logprobs.append(logprob)
            if growing.watch and token not in self._ends and growing.watch.feed(token):
                self._engine.abort_request([output.request_id])
                return self._done(output.request_id, FinishReason.stop)
        if output.finished:
            reason = _REASONS.get(str(new.finish_reason), FinishReason.error)
            detail = "" if reason is not FinishReason.error else f"vLLM gave it up ({new.finish_reason})"
            self._done(output.request_id, reason, detail)
        return None

    def _done(self, number: str, reason: FinishReason, detail: str = "") -> None:
        grown = self._growing.pop(number)
        self._pipe.say("done", int(number), Made(tuple(grown.token_ids), tuple(grown.logprobs), reason, detail))


def build_engine(arguments: Mapping[str, Any], name: str) -> Any:
    """A vLLM engine from EngineArgs. The process that holds it bears vLLM's name for such a process."""
    from vllm import EngineArgs, LLMEngine
    from vllm.utils.system_utils import set_process_title

    if os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0":
        set_process_title(f"EngineCore_{name}")
    return LLMEngine.from_engine_args(EngineArgs(**arguments))


def watch_core(engine: Any, pipe: Pipe) -> None:
    """End this process when the engine core's has died: vLLM 0.32 marks that, and goes on waiting for its output."""
    resources = getattr(engine.engine_core, "resources", None)
    if resources is None:
        return  # the core is in this process

    def watch() -> None:
        while not resources.engine_dead:
            time.sleep(0.2)
        pipe.say("failed", "EngineDeadError: the process of the engine core has ended")
        pipe.finish()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> NoReturn:
    """Run until the parent has gone or the engine has died. What ends it is said in one line, and on stderr in full."""
    fd = int(sys.argv[1])
    os.set_inheritable(fd, False)  # a process of vLLM's that outlives us must not hold the pipe open
    pipe = Pipe(Connection(fd))
    (plan,) = (pipe.take(wait=True) or [None])[:1]
    if plan is None:
        os._exit(0)
    engine = None
    try:
        engine = build_engine(plan["engine"], plan["name"])
        pipe.say("ready", {"dtype": str(engine.model_config.dtype), "max_model_len": engine.model_config.max_model_len})
        watch_core(engine, pipe)
        Worker(engine, pipe, plan["ends"], plan["model"]).run()
    except Exception as error:  # whatever vLLM raises: the parent decides what becomes of the jobs
        import traceback

        traceback.print_exc()
        pipe.say("failed", f"{type(error).__name__}: {first_line(error)}")
        pipe.finish()
    sys.stderr.flush()
    if engine is not None:
        engine.engine_core.shutdown()
    os._exit(0)  # vLLM's threads and torch's take seconds to unwind


if __name__ == "__main__":
    main()
