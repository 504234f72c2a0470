"""lm-eval tasks found, readied as lm-eval readies them, and turned into questions. Runs in the worker process only."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from klearbench.errors import DataError, KlearError, UsageError, nearest, unknown_name
from klearbench.integrations.lm_eval_docs import CHOOSES, CONTINUATION, WRITES, Doc, Loaded, Spec
from klearbench.store import text_hash
from klearbench.types import Kind, Message, Problem

FEWSHOT_SEED = 1234
"""lm-eval's own default, so that the same examples are drawn."""
_MAX_TOKENS = 256
"""lm-eval's own default."""
_PASSED_ON = ("top_p", "top_k", "min_p", "repetition_penalty")
_DECIDING = ("process_results", "metric_list", "filter_list", "doc_to_target", "doc_to_choice")
"""Keys of a task's configuration that decide a score and show neither in its prompts nor in its documents."""


def load(spec: Spec) -> tuple[Loaded, list[Doc]]:
    """The questions of a task or of all tasks of a group, and their documents in the same order.

    Raises:
        UsageError: no such task, or one that can't be run in our way (one line says why).
        DataError: lm-eval can't load it.
    """
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    try:
        name, tasks = _tasks(spec)
        samplings = [_prepare(task) for task in tasks]
        for task, sampling in zip(tasks, samplings, strict=True):
            if sampling != samplings[0]:
                raise UsageError(
                    f"lm_eval:{name}: its tasks sample differently ({tasks[0].task_name}: {samplings[0]},"
                    f" {task.task_name}: {sampling}); give them one by one: {', '.join(t.task_name for t in tasks)}"
                )
        docs = [doc for task in tasks for doc in _docs(task, spec)]
        problems = tuple(_problem(name, len(tasks) > 1, doc) for doc in docs)
        return Loaded(name, problems, samplings[0], _hash(tasks, docs, problems)), docs
    except KlearError:
        raise
    except Exception as error:  # a task is anyone's code and data
        raise DataError(f"lm_eval:{spec.name}", f"lm-eval can't load it ({_line(error)})") from None


def _tasks(spec: Spec) -> tuple[str, list[Any]]:
    """The suite's name and the tasks. Reading the index of lm-eval's own tasks takes a while: only if it must be."""
    from lm_eval.tasks import TaskManager
    from lm_eval.tasks._index import TaskIndex

    if Path(spec.name).suffix in (".yaml", ".yml") and not Path(spec.name).is_file():
        raise DataError(spec.name, "no such file")
    paths: list[str | Path] = list(spec.paths)
    manager = TaskManager(include_path=paths, include_defaults=False)
    entry = manager.task_index.get(spec.name) or TaskIndex.entry_from_path(Path(spec.name))
    if entry is None or not _within(entry, manager.task_index):
        manager = TaskManager(include_path=paths)
        entry = entry or manager.task_index.get(spec.name)
    if entry is None:
        near = nearest(spec.name, manager.all_tasks)
        raise UsageError(
            f"lm_eval:{spec.name} is no task, group or YAML file{near} (`lm-eval ls tasks` lists them; folders of your"
            " own: KLEARBENCH_LM_EVAL_PATH or --data-dir)"
        )
    tasks = list(manager.load([spec.name])["tasks"].values())
    name = entry.name if len(tasks) != 1 else tasks[0].task_name
    return f"lm_eval:{name}" + (f"@{spec.measure}" if spec.measure else ""), tasks


def _within(entry: Any, index: Mapping[str, Any]) -> bool:
    """Whether all tasks of an entry are in an index."""
    members = (entry.cfg or {}).get("task") if entry.kind.name == "GROUP" else None
    if not isinstance(members, list):
        return bool(entry.kind.name != "GROUP")
    names = [member if isinstance(member, str) else member.get("task", member.get("group")) for member in members]
    return all(name in index and _within(index[name], index) for name in names)


def _prepare(task: Any) -> dict[str, Any]:
    """Ready a task as lm-eval does, and give the sampling that it fixes. Raises UsageError for what can't be run."""
    name = f"lm_eval:{task.task_name}"
    if getattr(task, "UNSAFE_CODE", False):
        raise UsageError(
            f"{name} runs what the model wrote, outside any sandbox; use our suites humaneval, mbpp, lcb-v6"
        )
    if getattr(task, "MULTIMODAL", False):
        raise UsageError(f"{name} has pictures or sounds; only text can be asked here")
    if task.OUTPUT_TYPE not in (WRITES, CHOOSES):
        raise UsageError(
            f"{name} is of the type {task.OUTPUT_TYPE}: what it weighs is the answer itself, which no engine may see"
            f" here (allowed: {WRITES}, {CHOOSES}); run it by lm_eval itself"
        )
    if task.get_config("num_fewshot") is None:
        task.set_config(key="num_fewshot", value=0)
    task.set_fewshot_seed(seed=FEWSHOT_SEED)
    return _sampling(name, task.get_config("generation_kwargs") or {}) if task.OUTPUT_TYPE == WRITES else {}


def _sampling(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """lm-eval's generation settings as fields of our Sampling."""
    from lm_eval.models.utils import normalize_gen_kwargs

    plan = dict(normalize_gen_kwargs(given, _MAX_TOKENS))
    if plan.pop("num_beams", 1) != 1:
        raise UsageError(f"{name} wants beam search; engines here sample")
    sampled = plan.pop("do_sample")
    found = {
        "temperature": float(plan.pop("temperature", 1.0)) if sampled else 0.0,
        "max_tokens": plan.pop("max_gen_toks"),
        "stop": tuple(text for text in plan.pop("until") if text),
        "top_p": 1.0,
    }
    for key in plan:
        if key not in _PASSED_ON:
            raise UsageError(f"{name}: generation_kwargs {unknown_name('key', key, _PASSED_ON)}")
    return found | (plan if sampled else {})


def _docs(task: Any, spec: Spec) -> list[Doc]:
    """All documents in lm-eval's order: its few-shot examples are drawn one document after the other."""
    measure = _measure(task, spec)
    return [Doc(task, measure, doc, _requests(task, doc, index, spec)) for index, doc in task.doc_iterator()]


def _measure(task: Any, spec: Spec) -> tuple[str, str]:
    """The metric and the filter that decide a document: those asked for, or the task's first.

    Raises:
        UsageError: the task has no such metric or filter, or none that scores documents one by one.
    """
    from lm_eval.api.metrics import mean, nanmean

    name = f"lm_eval:{task.task_name}"
    higher = task.higher_is_better()
    metrics = [key for key, how in task.aggregation().items() if how in (mean, nanmean) and higher.get(key, True)]
    if not metrics:
        raise UsageError(
            f"{name} has no metric that is a mean over its documents and better when higher (it has"
            f" {', '.join(task.aggregation())}); run it by lm_eval itself"
        )
    filters = [f.name for f in task._filters]
    metric, _, which = spec.measure.partition(",")
    if metric and metric not in metrics:
        raise UsageError(f"{name}: {unknown_name('metric', metric, metrics)}")
    if which and which not in filters:
        raise UsageError(f"{name}: {unknown_name('filter', which, filters)}")
    return metric or metrics[0], which or filters[0]


def _requests(task: Any, doc: Any, index: int, spec: Spec) -> tuple[Any, ...]:
    """What lm-eval asks of a document, made by the task as `build_all_requests` has it made."""
    prefix = task.doc_to_prefix(doc)
    if prefix and spec.chat:
        raise UsageError(
            f"lm_eval:{task.task_name} begins the answer itself ({prefix!r}), which chat turns can't; with"
            " --prompt official the prompt is one text that ends so"
        )
    context = task.fewshot_context(
        doc,
        num_fewshot=task.get_config("num_fewshot"),
        system_instruction=None,
        apply_chat_template=spec.chat,
        fewshot_as_multiturn=spec.chat,
        chat_template=_turns if spec.chat else None,
        gen_prefix=prefix,
    )
    made = task.construct_requests(
        doc=doc,
        ctx=context,
        metadata=(task.task_name, index, 1),
        apply_chat_template=spec.chat,
        chat_template=_turns if spec.chat else None,
    )
    return tuple(made) if isinstance(made, list) else (made,)


def _turns(messages: list[dict[str, str]], add_generation_prompt: bool = True) -> list[dict[str, str]]:
    """The chat template that leaves the messages as they are: each engine has its own."""
    return messages


def _problem(suite: str, grouped: bool, doc: Doc) -> Problem:
    task, index, _ = doc.requests[0].metadata
    key, meta = (f"{task}/{index}", {"subject": task}) if grouped else (str(index), {})
    return Problem(key, suite, Kind.math, _prompt(doc), f"lm-eval {task}", None, meta)


def _prompt(doc: Doc) -> tuple[Message, ...]:
    """The messages of the one request of a task that writes; of one that chooses, each context and what follows it."""
    prompt: list[Message] = []
    before: Any = None
    for request in doc.requests:
        context, *more = request.args
        if context != before:
            turns = context if isinstance(context, list) else [{"role": "user", "content": context}]
            prompt += [{"role": turn["role"], "content": turn["content"]} for turn in turns]
            before = context
        if request.request_type != WRITES:
            prompt.append({"role": CONTINUATION, "content": more[0]})
    return tuple(prompt)


def _hash(tasks: Sequence[Any], docs: Sequence[Doc], problems: Sequence[Problem]) -> str:
    """Of everything that decides a score: prompts, documents, how they are scored, and lm-eval's version."""
    rules = [{key: rule for key, rule in task.dump_config().items() if key in _DECIDING} for task in tasks]
    rows = [[problem.prompt, doc.doc, doc.measure] for problem, doc in zip(problems, docs, strict=True)]
    dumped = json.dumps([metadata.version("lm-eval"), rules, rows], default=str, sort_keys=True)
    return text_hash(re.sub(r" at 0x[0-9a-f]+", "", dumped))


def _line(error: BaseException) -> str:
    """An exception's first cause in one line: what wraps it says less."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
