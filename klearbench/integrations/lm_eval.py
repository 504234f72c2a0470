"""lm-eval tasks as suites: `--suite lm_eval:NAME`. Loads nothing of lm-eval itself; see `lm_eval_worker`.

The reference of a problem is an Answer of the rule "lm-eval" that only says where the document stands: which worker
holds it, and its number there.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from klearbench.errors import UsageError
from klearbench.integrations import TASK_RULE
from klearbench.integrations.lm_eval_docs import CONTINUATION, Spec
from klearbench.integrations.lm_eval_worker import Scored, TaskWorker
from klearbench.suites.base import Asked, Suite
from klearbench.suites.references import Judge
from klearbench.types import Answer, FinishReason, Reference, Sample, Status, Verdict

PREFIX = "lm_eval:"
PATH_VARIABLE = "KLEARBENCH_LM_EVAL_PATH"
_WORKERS: dict[str, TaskWorker] = {}
"""The workers of this process, by the text of what they hold."""


def task_folder() -> Path:
    """The folder that makes our suites tasks of lm-eval: `lm_eval --include_path`."""
    return Path(__file__).parent / "lm_eval_tasks"


def load_suite(name: str, asked: Asked) -> Suite:
    """An lm-eval task or group as a suite: "lm_eval:NAME", or "lm_eval:NAME@METRIC,FILTER".

    Args:
        name: a task of lm-eval, one of KLEARBENCH_LM_EVAL_PATH or the data directory, or a YAML file.
        asked: "ours" asks in chat turns, as lm-eval's --apply_chat_template; "official" in one text, as without it.

    Raises:
        UsageError: lm-eval is not installed; no such task, or one that can't be run in our way.
    """
    if importlib.util.find_spec("lm_eval") is None:
        raise UsageError(f"suite {name!r} needs the package lm-eval: pip install 'klearbench[lm-eval]'")
    task, _, measure = name.removeprefix(PREFIX).partition("@")
    folders = [*os.environ.get(PATH_VARIABLE, "").split(os.pathsep), str(asked.data_dir or "")]
    spec = Spec(task, measure, tuple(folder for folder in folders if folder), chat=asked.prompt == "ours")
    worker = _WORKERS.setdefault(repr(spec), TaskWorker(spec))
    loaded = worker.load()
    answers: dict[str, Reference] = {
        problem.id: Answer(problem.id, f"{number} {spec!r}", TASK_RULE)
        for number, problem in enumerate(loaded.problems)
    }
    return Suite(loaded.name, loaded.problems, answers, loaded.content_hash, sampling=loaded.sampling)


class TaskJudge:
    """Judges samples of lm-eval tasks by the tasks themselves, and leaves all others to another judge."""

    def __init__(self, others: Judge) -> None:
        self._others = others
        self._closed = False

    def judge(self, items: Sequence[tuple[Sample, Reference]]) -> list[Verdict]:
        """One verdict a sample, in order. A task that fails is a `judge_error` verdict, never an exception."""
        others = iter(self._others.judge([item for item in items if not is_task(item[1])]))
        return [
            self._verdict(sample, reference) if isinstance(reference, Answer) and is_task(reference) else next(others)
            for sample, reference in items
        ]

    def close(self) -> None:
        """End the workers, and the other judge."""
        self._closed = True
        for worker in _WORKERS.values():
            worker.close()
        self._others.close()

    def _verdict(self, sample: Sample, reference: Answer) -> Verdict:
        number, _, spec = reference.answer.partition(" ")
        gone: Scored = (None, None, "the judge is closed")
        score, shown, detail = gone if self._closed else _WORKERS[spec].score(int(number), sample.completion)
        return Verdict(
            suite=sample.suite,
            problem_id=sample.problem_id,
            sample_index=sample.sample_index,
            status=_status(score, sample.finish_reason),
            score=score,
            extracted=shown,
            detail=detail,
        )


def is_task(reference: Reference) -> bool:
    """Whether a reference is the document of an lm-eval task."""
    return isinstance(reference, Answer) and reference.rule == TASK_RULE


def refuse_choices(suites: Sequence[Suite], engine: object) -> None:
    """Refuse tasks that choose for engines that can't weigh continuations.

    Raises:
        UsageError: the first such suite.
    """
    for suite in suites:
        if not getattr(engine, "weighs", False) and any(
            message["role"] == CONTINUATION for problem in suite.problems for message in problem.prompt
        ):
            raise UsageError(
                f"suite {suite.name!r} chooses between given continuations by their likelihood, which this engine"
                " can't tell; use --engine lm-eval"
            )


def _status(score: float | None, finish: FinishReason) -> Status:
    """lm-eval scores a truncated text as it is, and so it counts here; only a wrong one is called truncated."""
    if score is None:
        return Status.judge_error
    if score == 1.0:
        return Status.correct
    return Status.truncated if finish is FinishReason.length else Status.wrong_answer
