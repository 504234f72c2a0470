"""Explicit final answers without a box: answer tags, `#### X`, a labelled last line, a closing sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from klearbench.judging.normalize import is_placeholder, unwrap_delimiters, words

_WINDOW = 1200
"""How many characters at the end are read; a commitment stands at the end of its text."""

_LABEL = (
    r"(?:a|ans|answer|final answer|the answer|the final answer|my answer|correct answer|final result|result|solution"
    r"|final solution|答案|最终答案|答|答え|解答|정답|답|ответ|окончательный ответ|réponse"
    r"|réponse finale|la réponse finale|respuesta|respuesta final"
    r"|antwort|endergebnis|risposta|resposta|resposta final)"
)
_MARK = r"[\s*_#>`✅☑✓✔➡→•\-–—()\[\]️]"
_LABELLED = re.compile(rf"{_MARK}{{0,12}}\b{_LABEL}{_MARK}{{0,6}}[:：=][\s*_`]{{0,6}}(.*)", re.IGNORECASE)
_CJK_LABELLED = re.compile(rf"{_MARK}{{0,12}}(?:最终)?(?:答案|答え|정답|答){_MARK}{{0,4}}[:：是为は은]\s?(.*)")
_LABEL_LINE = re.compile(rf"{_MARK}{{0,12}}{_LABEL}{_MARK}{{0,6}}[:：]?{_MARK}{{0,6}}", re.IGNORECASE)
_HASHES = re.compile(r"^[ \t]{0,3}####[ \t]{1,4}(\S.{0,300})$", re.MULTILINE)
_ANSWER_TAG = re.compile(r"<answer>((?:(?!</?answer>).){0,600})</answer>", re.IGNORECASE | re.DOTALL)
_SENTENCE = re.compile(
    r"\b(?:the|our|my|final|correct)\s(?:final\s|correct\s)?answer\s"
    r"(?:is|equals|must be|should be|will be|would be|comes out to|=)"
    r"(?:\s(?:therefore|thus|then|indeed|simply|just|exactly))?\s?:?\s?(.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_CJK_SENTENCE = re.compile(r"(?:答案|答え|정답)\s?(?:就是|应该是|应为|是|为|為|は|은|는)\s?[:：]?\s?(.*)\Z", re.DOTALL)
_STOP = re.compile(r"(?<!\d)[.!?。！？](?=\s|\Z)|(?<=\d)[.!?](?=\s|\Z)|。|\n")
_SEVERAL = re.compile(r"\b(?:or|either)\b|或", re.IGNORECASE)
_NO_VALUE = re.compile(
    r"\b(?:not|unclear|unknown|hard|difficult|below|above|follows|that|given|obtained|found|in|wrong|right|correct|still|yet"
    r"|i|we|you|it|this|likely|probably|maybe|somewhere|between|impossible to|unable|cannot|can't)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[0-9０-９\\½-¾π∞√∅]|\A\W{0,4}[A-Za-z]\W{0,4}\Z")


@dataclass(frozen=True, slots=True)
class Commitment:
    """An unboxed answer: its text, where it stood, whether it offers several values, whether it is surely whole."""

    text: str
    how: str
    several: bool
    complete: bool


def committed(tail: str) -> Commitment | None:
    """The answer that the end of a text commits to, or None."""
    window = tail[-_WINDOW:]
    tags = _ANSWER_TAG.findall(window)
    if tags:
        return _accept(tags[-1], "answer tag", True)
    stripped = window.rstrip()
    ended = stripped != window
    lines = [line for line in stripped.split("\n") if line.strip(" \t*_-#`")]
    if not lines:
        return None
    last = lines[-1].strip()
    complete = ended or last.endswith((".", "*", "$", "。", "%", ")", "`", "!", "]", "}"))
    match = _LABELLED.fullmatch(last) or _CJK_LABELLED.fullmatch(last)
    if match is not None:
        return _accept(match[1], "labelled line", complete)
    for line in reversed(lines[-3:-1]):  # a label, then at most one remark after it
        match = _LABELLED.fullmatch(line.strip())
        if match is not None and _is_remark(last) and match[1].strip():
            return _accept(match[1], "labelled line", True)
    hashes = _HASHES.findall(window)
    if hashes and _VALUE.search(hashes[-1]) and hashes[-1].strip() in (last[4:].strip(), lines[-1].strip("# \t")):
        return _accept(hashes[-1], "#### line", complete)
    if len(lines) > 1 and _LABEL_LINE.fullmatch(lines[-2].strip()) and len(last) < 200:
        return _accept(last, "line after a label", complete)
    return _sentence(" \n".join(lines[-2:]), ended)


def _sentence(text: str, ended: bool) -> Commitment | None:
    """A closing sentence "the answer is X", with at most a short remark after it."""
    start = None
    for cue in re.finditer(r"answer\s|答案|答え|정답", text, re.IGNORECASE):
        start = cue.start()
    if start is None:
        return None
    lead = text[max(0, start - 24) : start]
    match = _SENTENCE.search(text, max(0, start - 24)) or _CJK_SENTENCE.search(text, start)
    if match is None or re.search(r"\b(?:not|isn't|whether|if|until|before)\b", lead, re.IGNORECASE):
        return None
    stop = _STOP.search(match[1])
    value = match[1] if stop is None else match[1][: stop.start()]
    rest = "" if stop is None else match[1][stop.end() :]
    if rest.strip() and not _is_remark(rest):
        return None
    value = value.strip().removesuffix("です").removesuffix("입니다")
    if not _VALUE.search(value) and (_NO_VALUE.search(value) or len(value.split()) > 3):
        return None
    if re.match(r"\W{0,3}(?:not|between|at least|at most|greater|less|more than)\b", value, re.IGNORECASE):
        return None
    return _accept(value, "closing sentence", ended or stop is not None)


def _is_remark(text: str) -> bool:
    """A short closing remark without any number in it."""
    return len(text) < 120 and not re.search(r"\d", text)


def _bare_value(text: str) -> str:
    """Without "the final answer is" before the value and a remark after it ("I hope it is correct")."""
    text = re.sub(
        r"\A\W{0,4}(?:the\s)?(?:final\s|correct\s)?answer\s(?:is|=)\s?:?", "", text.strip(), flags=re.IGNORECASE
    )
    stop = re.search(r"[.!](?:\*{1,2})?\s(?=[A-Z(])", text)
    if stop is not None and _is_remark(text[stop.end() :]):
        text = text[: stop.start()]
    text = re.sub(r",?\s(?:I (?:think|believe|guess|hope)|right|indeed)\s?\??\Z", "", text.rstrip(" .!"))
    return unwrap_delimiters(text.strip().strip("*_ "))


def _accept(text: str, how: str, complete: bool) -> Commitment | None:
    text = _bare_value(text)
    if not text or len(text) > 300 or is_placeholder(text):
        return None
    several = _SEVERAL.search(text) is not None and len(re.findall(r"\d+", text)) != 1
    return Commitment(text, how, several and bool(re.search(r"\d", words(text))), complete)
