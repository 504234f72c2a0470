"""Explicit final answers without a box: answer tags, `#### X`, a labelled last line, a closing sentence.

Only the end of a text is read. What it commits to stands last, with a short remark or a check after it at most; an
earlier commitment to another value makes a hedge, unless a second thought stands between the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from klearbench.judging.boxes import is_empty
from klearbench.judging.choice import same_value, withdrawn
from klearbench.judging.normalize import unwrap_delimiters, words

_WINDOW = 1200
"""How many characters at the end are read."""
_MAX_ANSWER = 300

_LABEL = (
    r"(?:a|ans|(?:(?:(?:so |thus,? |hence,? |therefore,? )?(?:the|my|our))\s)?(?:final\s|correct\s)?answer"
    r"|final result|result|solution|final solution|答案|最终答案|最終答案|答|答え|解答|정답|최종 답|최종 정답|답"
    r"|ответ|окончательный ответ|відповідь|(?:la )?réponse(?: finale)?|respuesta(?: final)?"
    r"|(?:endgültige )?antwort|endergebnis|risposta(?: finale)?|resposta(?: final)?|antwoord|svar|odpowiedź|odpověď"
    r"|cevap|jawaban|đáp án|đáp số|الجواب|الإجابة|उत्तर)"
)
_MARK = r"[\s*_#>`✅☑✓✔➡→•\-–—()\[\]️]"
_LABELLED = re.compile(rf"{_MARK}{{0,12}}(?<![A-Za-z]){_LABEL}{_MARK}{{0,6}}[:=][\s*_`]{{0,6}}(.*)", re.IGNORECASE)
_DASHED = re.compile(rf"{_MARK}{{0,6}}(?:final\s)?answer[*_]{{0,3}}\s[-–—]\s[\s*_`]{{0,6}}(.*)", re.IGNORECASE)
_CJK_LABELLED = re.compile(rf"{_MARK}{{0,12}}(?:最终|最終|故)?(?:答案|答え|정답|답){_MARK}{{0,4}}[:是为為は은]\s?(.*)")
_CJK_OPTION = re.compile(r".{0,60}故?选(?:择)?\s?:?\s?([A-J])\s?[。.]?")
_LABEL_LINE = re.compile(rf"{_MARK}{{0,12}}{_LABEL}{_MARK}{{0,6}}:?{_MARK}{{0,6}}", re.IGNORECASE)
_HASHES = re.compile(r"[ \t]{0,3}####[ \t]{0,4}([^\s#].{0,300})")
_HASH_VALUE = re.compile(
    r"(?!\d{1,2}[.)]\s{1,4}[A-Za-z])[\s$*\\(\[]{0,6}(?:[-+]?\d|\\[a-z{]|[A-Za-z]\)?\W{0,3}\Z|[a-z]\s?=)"
)
_ANSWER_TAG = re.compile(
    r"<(final_)?answer>((?:(?!</?(?:final_)?answer>).){0,600})(?:</(?:final_)?answer>|\Z)", re.IGNORECASE | re.DOTALL
)
_SENTENCE = re.compile(
    r"\b(?:the|our|my|final|correct)\s(?:final\s|correct\s)?(?:answer|option|choice)\s(?:to\s[^.!?\n]{1,60}?\s)?"
    r"(?:(?:is|equals|must be|should be|will be|would be|comes out to)(?![A-Za-z'’])|=)"
    r"(?:\s(?:therefore|thus|then|indeed|simply|just|exactly))?\s?:?\s{0,6}"
    r"|\b(?:la réponse(?: finale)?(?: correcte)? est|die (?:endgültige |richtige )?antwort (?:ist|lautet)"
    r"|la respuesta(?: final)?(?: correcta)? es|a resposta(?: final)?(?: correta)? é|la risposta(?: finale)? è"
    r"|ответ (?:равен|—|это))\s{0,2}:?\s{0,6}",
    re.IGNORECASE,
)
_CJK_SENTENCE = re.compile(r"(?:答案|答え|정답|(?<![가-힣])답)\s?(?:就是|应该是|应为|是|为|為|は|은|는)\s?:?\s?")
_STOP = re.compile(r"(?<!\d)[.!?。](?=\s|\Z)|(?<=\d)[.!?](?=\s|\Z)|。|\n")
_SEVERAL = re.compile(r"\b(?:or|either|oder|ou)\b|或|または|또는|или", re.IGNORECASE)
_NOT_STATED = re.compile(
    r"\W{0,3}(?:not|between|at least|at most|greater|less|more than|probably|perhaps|maybe|possibly|likely|n['’]t)\b",
    re.IGNORECASE,
)
_NO_STATEMENT = re.compile(
    r"\b(?:not|isn['’]t|whether|if|until|before|maybe|perhaps|possibly|probably|suppose|is|was)\b", re.IGNORECASE
)
_UNDECIDED = re.compile(
    r"\W{0,4}(?:i (?:do not|don['’]t|cannot|can['’]t|could not|couldn['’]t|am not|am unable)|not sure)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?:,?\s\(?(?:since|because|rather than|instead of)|,\s(?:and )?not)\b.*\Z", re.IGNORECASE | re.DOTALL
)
_CHECK = re.compile(
    r"\W{0,4}(?:let me |let's |let us |to |we |i |a |as a )?(?:quick(?:ly)? )?"
    r"(?:double[- ]?check|check|verif|confirm|indeed)",
    re.IGNORECASE,
)
_DOUBTS = re.compile(r"\b(?:not|no|but|however|fails?|answer|different|n't)\b|≠|\\ne", re.IGNORECASE)
_CONFIDENCE = re.compile(r"\W{0,6}confidence\b[^\n]{0,40}", re.IGNORECASE)
_SECOND_THOUGHT = re.compile(
    r"\b(?:wait|wrong|incorrect|mistake|actually|hmm+|oops|sorry|error|redo|re-?check|recomput\w*|correction|hold on"
    r"|instead|scratch that)\b|更正|不对",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[0-9\\½-¾π∞√∅]|\A\W{0,4}[A-Za-z]\W{0,4}\Z")
_PROSE = re.compile(
    r"\W{0,4}(?!(?:sqrt|pi|log|ln|sin|cos|tan|exp|all|every|exactly|either|both|none|no|yes)\b)[A-Za-z]{2,}"
)
_NO_VALUE = re.compile(
    r"\b(?:not|unclear|unknown|hard|difficult|below|above|follows|that|given|obtained|found|in|on|at|wrong|right"
    r"|correct|still|yet|i|we|you|it|this|likely|probably|maybe|somewhere|between|impossible to|unable|cannot|can't)\b",
    re.IGNORECASE,
)
_END_MARK = re.compile(r"[\s$]*(?:\\(?:square|blacksquare|qed)|[∎□■✓✔✅☑�])[\s$]*\Z")


@dataclass(frozen=True, slots=True)
class Commitment:
    """An unboxed answer: its text, where it stood, whether it offers several values, whether it is surely whole."""

    text: str
    how: str
    several: bool
    complete: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """A stated value, where its statement starts and where its value ends in the window."""

    text: str
    how: str
    start: int
    end: int


def committed(tail: str) -> Commitment | None:
    """The answer that the end of a text commits to, or None."""
    window = tail[-_WINDOW:]
    places = sorted(_places(window), key=lambda place: (place.end, -place.start))
    if not places:
        return None
    last = places[-1]
    rest = window[last.end :]
    if withdrawn(window, last.end) or not _only_a_remark(rest):
        return None
    whole = rest != "" or _closed(last.text)
    commitment = _accept(last.text, last.how, whole)
    if commitment is None:
        return None
    for earlier in reversed(places[:-1]):
        other = _bare_value(earlier.text)
        if earlier.end > last.start or same_value(other, commitment.text) or is_empty(other):
            continue
        between = window[earlier.end : last.start]
        if _SECOND_THOUGHT.search(between) or withdrawn(window, earlier.end):
            break
        return Commitment(f"{other} | {commitment.text}", f"{earlier.how}, then {last.how}", True, whole)
    return commitment


def _places(window: str) -> Iterator[_Place]:
    """Every statement of a value in a window."""
    yield from _tags(window)
    yield from _lines(window)
    yield from _sentences(window)


def _tags(window: str) -> Iterator[_Place]:
    for tag in _ANSWER_TAG.finditer(window):
        inner = tag[2].strip()
        stated = list(_lines(inner + "\n")) + list(_sentences(inner)) if inner else []
        text = max(stated, key=lambda place: place.end).text if stated else inner
        yield _Place(text, "answer tag", tag.start(), tag.end() if tag[0].endswith(">") else tag.end(2))


def _lines(window: str) -> Iterator[_Place]:
    """Labelled lines, lines after a label that stands alone, and `#### X`."""
    at, label = 0, -1
    for line in window.split("\n"):
        start, end, bare = at, at + len(line.rstrip()), line.strip()
        at += len(line) + 1
        if not bare.strip(" \t*_-#`$[]\\"):
            continue
        hashes = _HASHES.fullmatch(line.rstrip())
        if label >= 0 and len(bare) < 200:
            yield _Place(hashes[1] if hashes is not None else bare, "line after a label", label, end)
        label = -1
        if _LABEL_LINE.fullmatch(bare) is not None:
            label = start
        elif (text := _labelled(bare)) is not None:
            yield _Place(text, "labelled line", start, end)
        elif hashes is not None and _HASH_VALUE.match(hashes[1]):
            yield _Place(hashes[1], "#### line", start, end)


def _labelled(line: str) -> str | None:
    """The value of a line `<label>: X`, or None."""
    for pattern in (_LABELLED, _DASHED, _CJK_LABELLED, _CJK_OPTION):
        match = pattern.fullmatch(line)
        if match is not None and match[1].strip():
            return match[1]
    return None


def _sentences(window: str) -> Iterator[_Place]:
    """Sentences "the answer is X"."""
    for pattern in (_SENTENCE, _CJK_SENTENCE):
        for match in pattern.finditer(window):
            stop = _STOP.search(window, match.end())
            end = len(window.rstrip()) if stop is None else stop.start()
            value = window[match.end() : end]
            asked = stop is not None and stop[0] == "?"
            if value.strip() and not asked and _states_value(window, match.start(), value):
                yield _Place(value, "closing sentence", match.start(), max(end, match.end()))


def _states_value(window: str, start: int, value: str) -> bool:
    """Whether "the answer is" with what follows it states a value: no denial, condition, bound, guess or prose."""
    lead = re.split(r"[.!?\n]", window[max(0, start - 24) : start])[-1]
    if _NO_STATEMENT.search(lead) or _NOT_STATED.match(value):
        return False
    if _PROSE.match(value):
        return len(value.split()) <= 3 and not _NO_VALUE.search(value)
    return _VALUE.search(value) is not None or (len(value.split()) <= 3 and not _NO_VALUE.search(value))


def _closed(text: str) -> bool:
    """Whether an answer ends in a closing mark, so that no digit can follow."""
    text = text.rstrip()
    if text.endswith("$"):
        return text.count("$") % 2 == 0
    return text.endswith((".", "*", "。", "%", ")", "`", "!", "]", "}"))


def _only_a_remark(rest: str) -> bool:
    """Whether what follows a commitment leaves it standing: nothing, a short remark, or a check."""
    rest = rest.strip(" \t\n\r.。!*_-#`$")
    return not rest or _is_remark(rest) or _is_check(rest) or _CONFIDENCE.fullmatch(rest) is not None


def _is_remark(text: str) -> bool:
    """A short closing remark without any number or second thought in it."""
    return len(text) < 120 and not re.search(r"\d", text) and not _SECOND_THOUGHT.search(text)


def _is_check(text: str) -> bool:
    """A short check of the answer that finds nothing wrong."""
    return (
        len(text) < 300 and bool(_CHECK.match(text)) and not _DOUBTS.search(text) and not _SECOND_THOUGHT.search(text)
    )


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
    text = _endings(_END_MARK.sub("", _REASON.sub("", text)))
    text = re.sub(r",?\s(?:I (?:think|believe|guess|hope)|right|indeed)\s?\??\Z", "", text.rstrip(" .!"))
    return unwrap_delimiters(text.strip().strip("*_ "))


def _accept(text: str, how: str, complete: bool) -> Commitment | None:
    text = _bare_value(text)
    if not text or len(text) > _MAX_ANSWER or is_empty(text) or _UNDECIDED.match(text):
        return None
    several = _SEVERAL.search(text) is not None and len(re.findall(r"\d+", text)) != 1
    return Commitment(text, how, several and bool(re.search(r"\d", words(text))), complete)
