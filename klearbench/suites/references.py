"""References on their way to a judge: checked before any sample is made, then judged each by the judge of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from klearbench.integrations import TASK_RULE
from klearbench.judging.both import BothMath
from klearbench.judging.judge import MathJudge, check_golds
from klearbench.sandbox.base import Sandbox
from klearbench.suites.coderows import refuse_bad_tests
from klearbench.types import Answer, CodeTests, Reference, Sample, Verdict


class Judge(Protocol):
    """What evaluation, curation and RL need of a judge."""

    def judge(self, items: Sequence[tuple[Sample, Reference]]) -> list[Verdict]:
        """One verdict an item, in order. A failure of the judge's own is a `judge_error` verdict."""
        ...

    def close(self) -> None:
        """Break off what is being judged, and free what is held. May be called from another thread, and again."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """How is judged.

    Attributes:
        math: "strict", "math-verify", or "both": the strict verdicts, and each one that differs in `differences`.
        differences: the JSONL file for these.
        sandbox: where programs run: "local", "docker", or a sandbox, which the caller closes.
        code: "strict", or "compat": LiveCodeBench's own rules.
        first_failure: stop a program's tests at the first that fails; its score is then no share of tests passed.
        workers: judge processes, and sandbox slots, at most.
    """

    math: str = "strict"
    sandbox: str | Sandbox = "local"
    code: str = "strict"
    first_failure: bool = False
    workers: int = 1
    differences: Path | None = None


@dataclass(frozen=True, slots=True)
class OpenJudges:
    """Judges that are ready. `math` and `code` are their identities, for manifests; no code judge: None."""

    judges: Judge
    math: Mapping[str, Any]
    code: Mapping[str, Any] | None

    def judge(self, items: Sequence[tuple[Sample, Reference]]) -> list[Verdict]:
        return self.judges.judge(items)

    def close(self) -> None:
        self.judges.close()


@contextmanager
def open_judges(references: Iterable[Reference], options: JudgeOptions) -> Iterator[OpenJudges]:
    """Judges for some references; a sandbox is opened only if one of them is a program's.

    Raises:
        DataError: a reference that can't be judged, by its problem id.
        SandboxUnavailable: this machine can run no program safely.
    """
    found = list(references)
    with ExitStack() as stack:
        strict = MathJudge(mode="strict" if options.math == "both" else options.math, workers=options.workers)
        math = _math_judge(strict, options)
        stack.callback(math.close)
        check_golds((r for r in found if isinstance(r, Answer) and r.rule != TASK_RULE), strict)
        programs = [reference for reference in found if isinstance(reference, CodeTests)]
        for reference in programs:
            refuse_bad_tests(reference)
        if not programs:
            judge = cast(Judge, math)  # all that it will get are answers
            yield OpenJudges(_with_tasks(judge, found, stack), math.identity(), None)
            return
        from klearbench.judging.code import CodeJudge
        from klearbench.judging.judges import Judges

        code = stack.enter_context(
            CodeJudge(
                sandbox=options.sandbox,
                mode=options.code,
                workers=options.workers,
                first_failure=options.first_failure,
            )
        )
        code.start()
        yield OpenJudges(_with_tasks(Judges(math, code), found, stack), math.identity(), code.identity())


def _with_tasks(judge: Judge, references: Iterable[Reference], stack: ExitStack) -> Judge:
    """The judge, and before it one for the documents of lm-eval tasks if there are any."""
    if not any(isinstance(reference, Answer) and reference.rule == TASK_RULE for reference in references):
        return judge
    from klearbench.integrations.lm_eval import TaskJudge

    tasks = TaskJudge(judge)
    stack.callback(tasks.close)
    return tasks


def _math_judge(strict: MathJudge, options: JudgeOptions) -> MathJudge | BothMath:
    """The judge that `options.math` asks for; `strict` is the one whose verdicts count."""
    if options.math != "both":
        return strict
    assert options.differences is not None, "both judges need a file for their differences"
    return BothMath(strict, MathJudge(mode="math-verify", workers=options.workers), options.differences)
