"""One judge for samples of both kinds: it routes each to the math judge or the code judge, by its reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from klearbench.judging.both import BothMath
from klearbench.judging.code import CodeJudge
from klearbench.judging.judge import MathJudge
from klearbench.types import CodeTests, Reference, Sample, Verdict


class Judges:
    """A math judge and a code judge; use it as a context manager, it closes both.

    Args:
        math: judges samples whose reference is an answer.
        code: judges those whose reference is tests, or makes the judge that does: it is called with the first of them,
            so that nothing starts for math alone.
    """

    def __init__(self, math: MathJudge | BothMath, code: CodeJudge | Callable[[], CodeJudge]) -> None:
        self.math = math
        self._code = code
        self._started: CodeJudge | None = code if isinstance(code, CodeJudge) else None

    @property
    def code(self) -> CodeJudge:
        """The code judge; made now if it was not yet."""
        if self._started is None:
            assert not isinstance(self._code, CodeJudge)
            self._started = self._code()
        return self._started

    def judge(self, items: Sequence[tuple[Sample, Reference]]) -> list[Verdict]:
        """One verdict a sample, in order. A failure of ours is a `judge_error` verdict, never an exception.

        Raises:
            SandboxUnavailable: this machine has no such sandbox.
        """
        code, math, is_code = [], [], []
        for sample, reference in items:
            is_code.append(isinstance(reference, CodeTests))
            if isinstance(reference, CodeTests):
                code.append((sample, reference))
            else:
                math.append((sample, reference))
        of_code = iter(self.code.judge(code) if code else ())
        of_math = iter(self.math.judge(math) if math else ())
        return [next(of_code if here else of_math) for here in is_code]

    def close(self) -> None:
        """End both."""
        self.math.close()
        if self._started is not None:
            self._started.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
