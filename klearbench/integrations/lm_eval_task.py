"""klearbench's suites as tasks of lm-eval 0.4.13: our problems and prompts, lm-eval's models, our judges.

lm-eval finds them by the YAML files of `lm_eval_tasks`; each names this class and a suite. A filter is the one place
where lm-eval hands out all completions of a task at once, so judging is a filter: `filtered_resps` of a logged sample
are our verdicts. References are loaded there too, go to the judge and nowhere else: a document is an id and a prompt.

lm-eval gives back text alone. So a completion that ran into the token limit is known as truncated where it breaks off
in its thought; one without any thought that breaks off is judged as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lm_eval.api.filter import Filter, FilterEnsemble
from lm_eval.api.instance import Instance
from lm_eval.api.metrics import mean
from lm_eval.api.task import Task
from lm_eval.config.task import TaskConfig

from klearbench import __version__
from klearbench.engines.base import Sampling
from klearbench.errors import ConfigError, unknown_name
from klearbench.suites.base import Suite
from klearbench.suites.references import JudgeOptions, open_judges
from klearbench.suites.registry import load_suite
from klearbench.types import FinishReason, Message, Sample, Status, to_row

Row = Mapping[str, Any]


def _share(pairs: Sequence[tuple[int, int]]) -> float:
    """Truncated by judged, over all documents."""
    return sum(truncated for truncated, _ in pairs) / sum(judged for _, judged in pairs)


_METRICS: dict[str, tuple[Callable[..., float], bool]] = {
    "acc": (mean, True),
    "truncated": (_share, False),
    "judge_errors": (sum, False),
}
"""Metric -> how documents are put together, and whether higher is better."""


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What `--metadata '{"klear": {...}}'` may set.

    Attributes:
        samples: k of avg@k.
        data_dir: where benchmark files lie; None: KLEARBENCH_DATA.
        prompt, errata: as of `load_suite`.
        math_judge: "strict" or "math-verify". sandbox: "local" or "docker". mode: "strict" or "compat".
        workers: judge processes.
    """

    samples: int = 1
    data_dir: str | None = None
    prompt: str = "ours"
    errata: bool = True
    math_judge: str = "strict"
    sandbox: str = "local"
    mode: str = "strict"
    workers: int = 1

    def judging(self) -> JudgeOptions:
        """How completions are judged."""
        return JudgeOptions(math=self.math_judge, sandbox=self.sandbox, code=self.mode, workers=self.workers)


def read_options(given: Mapping[str, Any]) -> TaskOptions:
    """Options from metadata. Raises ConfigError for an unknown key or a value of another type."""
    known = asdict(TaskOptions())
    for key, value in given.items():
        if key not in known:
            raise ConfigError(f"metadata klear: {unknown_name('key', key, known)}")
        wanted = str if key == "data_dir" else type(known[key])
        if type(value) is not wanted or (wanted is int and int(value) < 1):
            raise ConfigError(f"metadata klear: {key} is {value!r} (expected: {wanted.__name__}, and numbers from 1)")
    return TaskOptions(**given)


class KlearTask(Task):  # type: ignore[misc]  # lm-eval has no types
    """One suite. `config` is the YAML file's content and lm-eval's metadata."""

    VERSION = __version__
    OUTPUT_TYPE = "generate_until"

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises UsageError, DataError: as `load_suite`; ConfigError: metadata that we don't know."""
        metadata = dict(config.get("metadata") or {})
        options = read_options(metadata.get("klear") or {})
        folder = Path(options.data_dir) if options.data_dir else None
        self._suite = load_suite(config["suite"], folder, prompt=options.prompt, errata=options.errata)
        self._docs = [{"id": p.id, "prompt": [dict(m) for m in p.prompt]} for p in self._suite.problems]
        self._config = TaskConfig(
            task=config["task"],
            output_type=self.OUTPUT_TYPE,
            generation_kwargs=_generation(self._suite) | dict(config.get("generation_kwargs") or {}),
            repeats=config.get("repeats", options.samples),
            num_fewshot=0,
            metadata=metadata,
        )
        self._instances: list[Any] | None = None
        self._filters = [FilterEnsemble("klear", [lambda: JudgeFilter(self._suite, options.judging())])]

    def download(self, *_: Any, **__: Any) -> None:
        """Nothing: the suite is loaded."""

    def has_training_docs(self) -> bool:
        return False

    def has_validation_docs(self) -> bool:
        return False

    def has_test_docs(self) -> bool:
        return True

    def test_docs(self) -> list[dict[str, Any]]:
        """A document a problem: its id and its chat messages."""
        return self._docs

    def doc_to_text(self, doc: Row) -> str:
        """The prompt as our engines write it for a model without a chat template."""
        return plain_text(doc["prompt"])

    def doc_to_target(self, doc: Row) -> str:
        """Nothing: references stay with the judge."""
        return ""

    def fewshot_context(
        self,
        doc: Row,
        num_fewshot: int,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        chat_template: Callable[[list[dict[str, str]]], str] | None = None,
        **_: Any,
    ) -> str:
        """The prompt as text. A system instruction stands in place of the suite's own, as with `--system`."""
        prompt = list(doc["prompt"])
        if system_instruction is not None:
            head = [{"role": "system", "content": system_instruction}] if system_instruction else []
            prompt = [*head, *(message for message in prompt if message["role"] != "system")]
        if apply_chat_template and chat_template is not None:
            return chat_template([dict(message) for message in prompt])
        return plain_text(prompt)

    def construct_requests(self, doc: Row, ctx: str, **kwargs: Any) -> Any:
        """One request a document; lm-eval repeats it for every sample."""
        arguments = (ctx, deepcopy(self.config.generation_kwargs))
        return Instance(self.OUTPUT_TYPE, doc=dict(doc), arguments=arguments, idx=0, metadata=kwargs["metadata"])

    def process_results(self, doc: Row, results: Sequence[Sequence[Row]]) -> dict[str, Any]:
        """A document's metrics of its verdicts. Judge errors are no zeros: they are left out, and counted."""
        (rows,) = results
        judged = [row for row in rows if row["status"] != Status.judge_error]
        metrics: dict[str, Any] = {"judge_errors": len(rows) - len(judged)}
        if judged:
            metrics["acc"] = sum(row["status"] == Status.correct for row in judged) / len(judged)
            metrics["truncated"] = [sum(row["status"] == Status.truncated for row in judged), len(judged)]
        return metrics

    def aggregation(self) -> dict[str, Callable[..., float]]:
        return {name: aggregate for name, (aggregate, _) in _METRICS.items()}

    def higher_is_better(self) -> dict[str, bool]:
        return {name: higher for name, (_, higher) in _METRICS.items()}


class JudgeFilter(Filter):  # type: ignore[misc]
    """Completions in, verdicts out, for a whole task at once."""

    def __init__(self, suite: Suite, options: JudgeOptions) -> None:
        self._suite, self._options = suite, options

    def apply(self, resps: Sequence[Sequence[str]], docs: Sequence[Row]) -> list[list[Row]]:
        """A list of verdicts (as rows) a document, in the order of its completions."""
        answers = self._suite.answers
        samples = [
            _sample(self._suite.name, doc["id"], index, text)
            for doc, texts in zip(docs, resps, strict=True)
            for index, text in enumerate(texts)
        ]
        with open_judges((answers[doc["id"]] for doc in docs), self._options) as judges:
            verdicts = iter(judges.judge([(sample, answers[sample.problem_id]) for sample in samples]))
        return [[to_row(next(verdicts)) for _ in texts] for texts in resps]


def plain_text(prompt: Sequence[Message]) -> str:
    """A prompt for a model without a chat template, as `--chat-template plain` writes it."""
    return "\n\n".join(message["content"] for message in prompt) + "\n"


def _generation(suite: Suite) -> dict[str, Any]:
    """Our sampling defaults, and what the suite itself fixes, in lm-eval's words. Unnamed, top_k would be 50 or so."""
    plan = Sampling(**suite.sampling)
    sampled = {"temperature": plan.temperature, "top_p": plan.top_p, "top_k": plan.top_k} if plan.temperature else {}
    return {
        "until": list(plan.stop),
        "do_sample": plan.temperature > 0,
        "max_gen_toks": plan.max_tokens,
        **sampled,
    }


def _sample(suite: str, problem: str, index: int, text: str) -> Sample:
    return Sample(suite, problem, index, 0, text, 0, 0, FinishReason.stop)
