"""What the tests of reports share: run folders made by hand, and a reader of the page that runs no script."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from klearbench.records import write_problems
from klearbench.scoring.metrics import score_suite
from klearbench.store import JsonlWriter
from klearbench.types import FinishReason, Kind, Problem, Sample, Status, Verdict, to_row

ROWS = [
    ("a", 0, "correct", "so 7", "7"),
    ("a", 1, "truncated", "and then and then", None),
    ("b", 0, "wrong_answer", "so 8", "8"),
    ("b", 1, "no_answer", "hm", None),
]
SAMPLING = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "max_tokens": 32768, "repetition_penalty": 1.05}


def records(rows: Sequence[tuple], suite: str = "puzzles") -> tuple[list[Sample], list[Verdict]]:
    """(problem, index, status, completion, extracted[, more fields of the verdict]) as records; a truncated one ran
    into the limit; a status of `engine_error` is a sample that was not made, `none` one that was not judged."""
    samples, verdicts = [], []
    for problem, index, status, completion, extracted, *more in rows:
        finish = {"truncated": FinishReason.length, "engine_error": FinishReason.error}.get(status, FinishReason.stop)
        samples.append(Sample(suite, problem, index, 0, completion, 3, len(completion.split()), finish))
        if status not in ("engine_error", "none"):
            score = None if status == "judge_error" else float(status == "correct")
            fields = {"detail": f"why {status}", **(more[0] if more else {})}
            verdicts.append(Verdict(suite, problem, index, Status(status), score, extracted, **fields))
    return samples, verdicts


def write_eval(
    path: Path,
    rows: Sequence[tuple] | Mapping[str, Sequence[tuple]],
    k: int = 2,
    problems: Sequence[Problem] = (),
    about: Mapping[str, Any] | None = None,
    scored: bool = True,
    **config: Any,
) -> Path:
    """A run folder of `klearbench eval`; `rows` of the suite `puzzles`, or by suite."""
    suites = rows if isinstance(rows, Mapping) else {"puzzles": rows}
    path.mkdir(parents=True)
    whole = {
        "command": "eval", "suites": list(suites), "samples": k, "limit": None, "seed": 3, "sampling": SAMPLING,
        "prompt": "ours", "system": None, "errata": True, "engine": {"name": "hf"},
        "judge": {"name": "math", "mode": "strict"},
    } | config  # fmt: skip
    remarks = {"model": f"{path.name}-model", **(about or {})}
    (path / "manifest.json").write_text(json.dumps({"format": 1, "config": whole, "inputs": {}, "about": remarks}))
    scores = {}
    with JsonlWriter(path / "samples.jsonl") as sample_log, JsonlWriter(path / "verdicts.jsonl") as verdict_log:
        for suite, found in suites.items():
            samples, verdicts = records(found, suite)
            sample_log.append(*map(to_row, samples))
            verdict_log.append(*map(to_row, verdicts))
            ids = list(dict.fromkeys(row[0] for row in found))
            scores[suite] = asdict(score_suite(suite, samples, verdicts, ids, k))
    write_problems(path, problems)
    if scored:
        (path / "scores.json").write_text(json.dumps(scores))
    return path


def problem(id: str, suite: str = "puzzles", text: str = "What is it?", kind: str = "math", **more: Any) -> Problem:
    return Problem(id, suite, Kind(kind), ({"role": "user", "content": text},), **more)


class Page(HTMLParser):
    """The elements, attributes and texts of a page, and what its elements of data hold."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.raw = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.packed: dict[str, str] = {}
        self.text = ""
        self._inside: tuple[str, str] = ("", "")
        self.feed(self.raw)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = (tag, dict(attrs).get("id") or "")
        if self._inside == ("script", ""):
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ("", "")

    def handle_data(self, data: str) -> None:
        tag, name = self._inside
        if tag == "script" and name:
            self.packed[name] = self.packed.get(name, "") + data
        elif tag == "script":
            self.scripts[-1] += data
        elif tag != "style":
            self.text += data

    def having(self, tag: str, name: str = "") -> list[dict[str, str | None]]:
        return [attrs for found, attrs in self.elements if found == tag and (not name or attrs.get("class") == name)]

    def unpacked(self, name: str) -> str:
        return zlib.decompress(base64.b64decode(self.packed[name])).decode()

    def data(self, name: str = "rows") -> Any:
        return json.loads(self.unpacked(name))

    def samples(self) -> list[dict[str, Any]]:
        """The viewer's samples in its order: numbers, names in place of numbers, and texts."""
        head = self.data()
        columns = head["columns"]
        found = []
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            row |= self.data(f"texts{row['piece']}")[row["place"]]
            suite, number = row["suite"], head["prompts"][row["run"]][row["suite"]][row["problem"]]
            row["asked"] = number
            row |= {"run": head["runs"][row["run"]], "suite": head["suites"][suite], "end": head["ends"][row["end"]]}
            found.append({**row, "problem": head["problems"][suite][row["problem"]]})
        return found

    def everything(self) -> str:
        """The page and all that is packed into it."""
        return self.raw + "".join(map(self.unpacked, self.packed))

    def table(self, title: str) -> list[list[str]]:
        """The cells of the first table after a title, head first."""
        found = re.search(f">{re.escape(title)}</(h|summary)", self.raw)
        assert found, f"no title {title!r}"
        part = self.raw[found.end() :]
        part = part[part.index("<table") : part.index("</table>")]
        rows = re.findall(r"<tr>(.*?)</tr>", part, re.DOTALL)
        return [[re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]
