"""How an evaluation's samples are made: by a fixed plan of batches, or as one stream.

Batches (`hf`, `replay`, `scripted`): sample 0 of every problem, cut into batches of the engine's size, then sample 1,
and so on. A batch that was interrupted is redone whole, because floating-point results depend on what else is in the
batch; so a resumed run ends with the same bytes as an undisturbed one. Only what was missing of it is given on.

Stream (`vllm`, `openai`): the engine gets all that is missing, in the same order, and gives back first what is finished
first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from klearbench.engines.base import (
    Engine,
    Generation,
    Request,
    Sampling,
    StreamingEngine,
    as_sample,
    sample_seed,
)
from klearbench.faults import fault
from klearbench.suites.base import Suite
from klearbench.types import FinishReason, Problem, Sample

Planned = tuple[Problem, int]
"""A problem and a sample index."""
Place = tuple[str, int]
"""(problem id, sample index)."""
Made = list[tuple[Request, Generation]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be made of one suite: `samples` of each problem, each seeded by a hash of `seed` and its place."""

    suite: Suite
    samples: int
    seed: int
    sampling: Sampling

    def planned(self) -> Iterator[Planned]:
        """Everything, in the order of the plan: all problems once, then again."""
        for index in range(self.samples):
            for problem in self.suite.problems:
                yield problem, index

    def request(self, problem: Problem, index: int) -> Request:
        seed = sample_seed(self.seed, self.suite.name, problem.id, index)
        return Request(problem.prompt, seed, (problem.id, index))


def plan_batches(suite: Suite, samples: int, size: int) -> Iterator[list[Planned]]:
    """The fixed plan: batches never mix sample indices, so that raising `samples` adds batches and changes none."""
    for index in range(samples):
        for start in range(0, len(suite.problems), size):
            yield [(problem, index) for problem in suite.problems[start : start + size]]


def missing_samples(plan: Plan, engine: Engine, have: set[Place], say: Callable[[str], None]) -> Iterator[list[Sample]]:
    """The samples of a plan that are not in `have`, as they are finished, a few at a time.

    Args:
        plan: what is asked.
        engine: the sampler.
        have: the places of the samples that are there.
        say: takes a line for the log: every engine call, every sample that the engine failed to make.
    """
    make = _stream if isinstance(engine, StreamingEngine) else _batches
    with closing(make(plan, engine, have, say)) as made:
        for finished in made:
            for request, generation in finished:
                if generation.finish_reason is FinishReason.error:
                    problem, index = request.place
                    say(f"engine error: {plan.suite.name} {problem} sample {index}: {generation.detail}")
            yield [as_sample(plan.suite.name, request, generation) for request, generation in finished]


def _batches(plan: Plan, engine: Engine, have: set[Place], say: Callable[[str], None]) -> Generator[Made, None, None]:
    for number, batch in enumerate(plan_batches(plan.suite, plan.samples, engine.batch_size), start=1):
        missing = {(problem.id, index) for problem, index in batch} - have
        if not missing:
            continue
        say(f"engine call: {plan.suite.name} batch {number}, {len(batch)} samples, {len(missing)} of them missing")
        fault("engine.call")
        requests = [plan.request(*planned) for planned in batch]
        generations = engine.generate(requests, plan.sampling)
        yield [(r, g) for r, g in zip(requests, generations, strict=True) if r.place in missing]


def _stream(plan: Plan, engine: Engine, have: set[Place], say: Callable[[str], None]) -> Generator[Made, None, None]:
    assert isinstance(engine, StreamingEngine)
    missing = sum((problem.id, index) not in have for problem, index in plan.planned())
    if not missing:
        return
    say(f"engine call: {plan.suite.name} stream, {missing} samples")
    requests = (plan.request(*p) for p in plan.planned() if (p[0].id, p[1]) not in have)
    with closing(engine.stream(requests, plan.sampling)) as stream:
        for finished in stream:
            fault("engine.call")
            yield [finished]


def with_system(suite: Suite, system: str | None) -> tuple[Problem, ...]:
    """The problems of a suite with the user's system prompt in place of their own; None leaves them, "" leaves none."""
    if system is None:
        return suite.problems
    head = ({"role": "system", "content": system},) if system else ()
    return tuple(
        replace(problem, prompt=(*head, *(m for m in problem.prompt if m["role"] != "system")))
        for problem in suite.problems
    )
