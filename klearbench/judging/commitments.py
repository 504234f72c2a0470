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
_LABELLED = re.compile(rf"{_MARK}{{0,12}}(?<![A-Za-z]){_LABEL}{_MARK}{{0,6}}[:：=][\s*_`]{{0,6}}(.*)", re.IGNORECASE)
_CJK_LABELLED = re.compile(rf"{_MARK}{{0,12}}(?:最终)?(?:答案|答え|정답|答){_MARK}{{0,4}}[:：是为は은]\s?(.*)")
_LABEL_LINE = re.compile(rf"{_MARK}{{0,12}}{_LABEL}{_MARK}{{0,6}}[:：]?{_MARK}{{0,6}}", re.IGNORECASE)
_HASHES = re.compile(r"^[ \t]{0,3}####[ \t]{0,4}([^\s#].{0,300})$", re.MULTILINE)
_ANSWER_TAG = re.compile(r"<answer>((?:(?!</?answer>).){0,600})</answer>", re.IGNORECASE | re.DOTALL)
_SENTENCE = re.compile(
    r"\b(?:the|our|my|final|correct)\s(?:final\s|correct\s)?answer\s"
    r"(?:(?:is|equals|must be|should be|will be|would be|comes out to)(?![A-Za-z'’])|=)"
    r"(?:\s(?:therefore|thus|then|indeed|simply|just|exactly))?\s?:?\s?",
    re.IGNORECASE,
)
_CJK_SENTENCE = re.compile(r"(?:答案|答え|정답)\s?(?:就是|应该是|应为|是|为|為|は|은|는)\s?[:：]?\s?")
_STOP = re.compile(r"(?<!\d)[.!?。！？](?=\s|\Z)|(?<=\d)[.!?](?=\s|\Z)|。|\n")
_SEVERAL = re.compile(r"\b(?:or|either)\b|或", re.IGNORECASE)
_NOT_STATED = re.compile(
    r"\W{0,3}(?:not|between|at least|at most|greater|less|more than|probably|perhaps|maybe|possibly|likely|n['’]t)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?:,?\s(?:since|because|rather than|instead of)|,\s(?:and )?not)\b.*\Z", re.IGNORECASE | re.DOTALL
)
_CHECK = re.compile(
    r"\W{0,4}(?:let me |let's |let us |to |we |i |a |as a )?(?:quick(?:ly)? )?"
    r"(?:double[- ]?check|check|verif|confirm|indeed)",
    re.IGNORECASE,
)
_SECOND_THOUGHT = re.compile(
    r"\b(?:wait|wrong|incorrect|mistake|actually|hmm+|oops|sorry|error|redo|re-?check|recomput\w*|correction|hold on"
    r"|instead|scratch that)\b|更正|不对",
    re.IGNORECASE,
)
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
    complete = ended or _closed(last)
    match = _LABELLED.fullmatch(last) or _CJK_LABELLED.fullmatch(last)
    if match is not None:
        return _unless_other(lines[:-1], _accept(match[1], "labelled line", complete))
    for line in reversed(lines[-3:-1]):  # a label, then at most one remark after it
        match = _LABELLED.fullmatch(line.strip())
        if match is not None and _is_remark(last) and match[1].strip():
            return _accept(match[1], "labelled line", True)
    hashes = _HASHES.findall(window)
    if hashes and _VALUE.search(hashes[-1]) and hashes[-1].strip() in (last[4:].strip(), lines[-1].strip("# \t")):
        return _accept(hashes[-1], "#### line", complete)
    if len(lines) > 1 and _LABEL_LINE.fullmatch(lines[-2].strip()) and len(last) < 200:
        return _accept(last, "line after a label", complete)
    return _sentence(" \n".join(lines[-3:]), ended)


def _unless_other(before: list[str], last: Commitment | None) -> Commitment | None:
    """The last labelled line, a hedge when the line right before it is labelled too and has another value."""
    match = _LABELLED.fullmatch(before[-1].strip()) if before and last is not None else None
    other = _bare_value(match[1]) if match is not None else ""
    if last is None or not other or words(other) == words(last.text) or not _VALUE.search(other):
        return last
    return Commitment(f"{other} | {last.text}", "labelled lines", True, last.complete)


def _sentence(text: str, ended: bool) -> Commitment | None:
    """A closing sentence "the answer is X", with at most a short remark or a check after it.

    An earlier such sentence with another value makes a hedge, unless a second thought stands between the two.
    """
    found = list(_SENTENCE.finditer(text)) or list(_CJK_SENTENCE.finditer(text))
    if not found:
        return None
    match = found[-1]
    value, rest = _stated(text, match.end())
    if value is None or (rest.strip() and not _is_remark(rest) and not _is_check(rest)):
        return None
    if not _states_value(text, match.start(), value):
        return None
    complete = ended or rest != "" or _STOP.search(text, match.end()) is not None or _closed(value)
    commitment = _accept(value, "closing sentence", complete)
    for earlier in reversed(found[:-1]):
        other, _ = _stated(text, earlier.end())
        if other is None or not _states_value(text, earlier.start(), other):
            continue
        if commitment is None or _SECOND_THOUGHT.search(text, earlier.end(), match.start()):
            break
        if words(_bare_value(other)) != words(commitment.text):
            return Commitment(f"{_bare_value(other)} | {commitment.text}", "closing sentences", True, complete)
    return commitment


def _stated(text: str, at: int) -> tuple[str | None, str]:
    """What a sentence states from `at` on, and the text after it."""
    stop = _STOP.search(text, at)
    value = text[at:] if stop is None else text[at : stop.start()]
    return _endings(value) or None, "" if stop is None else text[stop.end() :]


def _states_value(text: str, start: int, value: str) -> bool:
    """Whether "the answer is" with what follows it states a value: no denial, condition, bound or guess."""
    lead = re.split(r"[.!?\n]", text[max(0, start - 24) : start])[-1]
    if re.search(r"\b(?:not|isn['’]t|whether|if|until|before)\b", lead, re.IGNORECASE):
        return False
    if not _VALUE.search(value) and (_NO_VALUE.search(value) or len(value.split()) > 3):
        return False
    return _NOT_STATED.match(value) is None


def _closed(text: str) -> bool:
    """Whether an answer ends in a closing mark, so that no digit can follow."""
    text = text.rstrip()
    if text.endswith("$"):
        return text.count("$") % 2 == 0
    return text.endswith((".", "*", "。", "%", ")", "`", "!", "]", "}"))


def _is_remark(text: str) -> bool:
    """A short closing remark without any number or second thought in it."""
    return len(text) < 120 and not re.search(r"\d", text) and not _SECOND_THOUGHT.search(text)


def _is_check(text: str) -> bool:
    """A short check of the answer that finds nothing wrong."""
    doubts = re.search(r"\b(?:not|no|but|however|fails?|answer|different|n't)\b|≠|\\ne", text, re.IGNORECASE)
    return len(text) < 300 and _CHECK.match(text) is not None and not doubts and not _SECOND_THOUGHT.search(text)


def _endings(text: str) -> str:
    """Without the copula that closes a Japanese or Korean sentence."""
    return re.sub(r"\s?(?:です|である|だ|입니다|이다)\Z", "", text.strip().rstrip("。."))


def _bare_value(text: str) -> str:
    """Without "the final answer is" before the value and a remark after it ("I hope it is correct")."""
    text = re.sub(
        r"\A\W{0,4}(?:the\s)?(?:final\s|correct\s)?answer\s(?:is|=)\s?:?", "", text.strip(), flags=re.IGNORECASE
    )
    stop = re.search(r"[.!](?:\*{1,2})?\s(?=[A-Z(])", text)
    if stop is not None and _is_remark(text[stop.end() :]):
        text = text[: stop.start()]
    text = _endings(_REASON.sub("", text))
    text = re.sub(r",?\s(?:I (?:think|believe|guess|hope)|right|indeed)\s?\??\Z", "", text.rstrip(" .!"))
    return unwrap_delimiters(text.strip().strip("*_ "))


def _accept(text: str, how: str, complete: bool) -> Commitment | None:
    text = _bare_value(text)
    if not text or len(text) > 300 or is_placeholder(text):
        return None
    several = _SEVERAL.search(text) is not None and len(re.findall(r"\d+", text)) != 1
    return Commitment(text, how, several and bool(re.search(r"\d", words(text))), complete)
