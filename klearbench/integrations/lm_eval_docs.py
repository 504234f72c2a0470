"""The documents of an lm-eval task, each scored by the task's own functions. Runs in the worker process only.

A task that writes (`generate_until`) asks for a text. A task that chooses (`multiple_choice`) asks how likely each of
its continuations is: its prompt holds, after the messages of a context, one message of the role "continuation" for each
of them, and a completion is the JSON list of `[log-likelihood, whether greedy]`. Only the lm-eval engine can do that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from klearbench.types import Problem

CONTINUATION = "continuation"
"""The role of a message that is to be weighed, not answered."""
WRITES, CHOOSES = "generate_until", "multiple_choice"


@dataclass(frozen=True, slots=True)
class Spec:
    """Which task, and how it asks.

    Attributes:
        name: a task, a group or a YAML file.
        measure: the metric and the filter that decide, "exact_match,strict-match"; "" takes the task's first.
        paths: folders with further tasks.
        chat: the prompt in chat turns; False: the one text that lm-eval sends without a chat template.
    """

    name: str
    measure: str = ""
    paths: tuple[str, ...] = ()
    chat: bool = True


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the parent process gets of a task: questions, the sampling that the task fixes, and a hash of everything."""

    name: str
    problems: tuple[Problem, ...]
    sampling: dict[str, Any]
    content_hash: str


@dataclass(frozen=True, slots=True)
class Doc:
    """A document with its task and the requests that were made of it."""

    task: Any
    measure: tuple[str, str]
    doc: Any
    requests: tuple[Any, ...]

    def score(self, completion: str) -> tuple[float, str | None, str]:
        """The deciding metric of a completion (0 or 1), what the filter left of it, and all metrics in one line.

        Raises:
            ValueError: the metric gave another number, or a task that chooses got a text.
        """
        metric, name = self.measure
        asked = [self._answered(request, given) for request, given in self._given(completion)]
        next(f for f in self.task._filters if f.name == name).apply(asked)
        left = [request.filtered_resps[name] for request in asked]
        results = self.task.process_results(self.doc, left)
        value = float(results[metric])
        if value not in (0.0, 1.0):
            raise ValueError(f"{metric} is {value:g}: only metrics of 0 or 1 can be counted; name another one after @")
        numbers = (f"{key}={float(v):g}" for key, v in results.items() if _is_number(v))
        shown = left[0] if isinstance(left[0], str) else None
        return value, shown, ", ".join(numbers)

    def _given(self, completion: str) -> list[tuple[Any, Any]]:
        if self.task.OUTPUT_TYPE == WRITES:
            return [(self.requests[0], after_thought(completion))]
        try:
            pairs = [(float(likelihood), bool(greedy)) for likelihood, greedy in json.loads(completion)]
        except (ValueError, TypeError):
            raise ValueError("no list of log-likelihoods; this task needs --engine lm-eval") from None
        return list(zip(self.requests, pairs, strict=True))

    def _answered(self, request: Any, given: Any) -> Any:
        from lm_eval.api.instance import Instance

        return Instance(request.request_type, self.doc, request.arguments, request.idx, request.metadata, resps=[given])


def after_thought(completion: str) -> str:
    """What lm-eval scores with `think_end_token=</think>`: the text after the last thought, all of it without one."""
    head, closed, tail = completion.rpartition("</think>")
    return tail.lstrip() if closed else head + tail


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, str)
