from __future__ import annotations

import json

import pytest

from klearbench.curation.decontaminate import Index, normalise, words
from klearbench.curation.dedup import Seen

BENCHMARK = (
    "A train leaves the old harbour at noon and reaches $13$ villages\nbefore dusk. How many minutes does it wait"
    " at each village if the whole trip takes $7$ hours?"
)
OTHER = "Find the number of ways to tile a board of size 3 by 14 with dominoes when two opposite corners are missing."
SHORT = "7 max 3 min 4 = ?"
ITEMS = [("bench", "b1", BENCHMARK), ("bench", "b2", OTHER), ("bench", "b3", SHORT), ("bench", "b4", "1 + 1")]


@pytest.mark.parametrize(
    ("copy", "how"),
    [
        (BENCHMARK, "exact"),
        (BENCHMARK.upper(), "exact"),
        (BENCHMARK.replace(" ", "\n  "), "exact"),
        ("\ufeff" + BENCHMARK.replace("village", "vil\u00adlage"), "exact"),
        (BENCHMARK.replace("$", "").replace(",", ";"), "ngram"),
        (f"Example one. {BENCHMARK} Answer: 32.", "ngram"),
        (BENCHMARK[:90], "ngram"),
        ("".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in BENCHMARK), "ngram"),
        (BENCHMARK.replace("13", "15"), "ngram"),
        ("  7 MAX 3\nmin 4 = ? ", "exact"),
        ("Work out: 7 max 3 min 4 = ? Show your steps.", "short"),
    ],
)
def test_planted_copies_are_found(copy, how):
    match = Index(ITEMS).find(copy)
    assert match is not None
    assert (match.suite, match.how) == ("bench", how)
    assert match.problem_id == ("b3" if "max" in copy.lower() and "7" in copy else "b1")


@pytest.mark.parametrize(
    "clean",
    [
        "A train leaves the old station at noon and reaches 13 towns before dusk. How long does it wait?",
        "7 max 3 min 5 = ?",
        "3 max 3 min 4 = ?",
        "We know that 1 + 1 = 2 and go on from there.",  # the benchmark's `1 + 1` is too short to be looked for inside
        "",
    ],
)
def test_clean_rows_are_left_alone(clean):
    assert Index(ITEMS).find(clean) is None


def test_eight_shared_words_are_no_copy_and_nine_are():
    taken = words(OTHER)
    assert Index(ITEMS).find("zero " + " ".join(taken[2:10]) + " end") is None
    assert Index(ITEMS).find("zero " + " ".join(taken[2:11]) + " end").problem_id == "b2"


def test_a_short_problem_keeps_its_operators():
    index = Index([("bench", "sum", "What is 3 + 5 * 2?")])
    assert index.find("Please: what is 3 + 5 * 2? Thanks").how == "short"
    assert index.find("Please: what is 3 - 5 * 2? Thanks") is None


def test_each_rule_can_be_switched_off():
    assert Index(ITEMS, ngram=0).find(f"See: {BENCHMARK}") is None
    assert Index(ITEMS, ngram=0).find(BENCHMARK.lower()).how == "exact"
    assert Index(ITEMS, exact=False).find(BENCHMARK).how == "ngram"
    assert Index([]).find(BENCHMARK) is None


def test_containment_asks_for_a_share_of_the_problem():
    part = " ".join(words(BENCHMARK)[:12])  # 12 words hold 4 of the 9-grams
    total = len(words(BENCHMARK)) - 8
    assert total == 22
    assert Index(ITEMS, containment=4 / total).find(part) is not None
    assert Index(ITEMS, containment=5 / total).find(part) is None


def test_common_phrasing_is_left_out_when_asked():
    tail = "where m and n are relatively prime positive integers find m plus n"
    items = [("bench", f"b{i}", f"Story number {i} about {w} {tail}") for i, w in enumerate(("cats", "dogs", "fish"))]
    row = f"Quite another task {tail}"
    assert Index(items).find(row) is not None
    assert Index(items, common=3).find(row) is None
    assert Index(items, common=4).find(row) is not None


def test_normalise_keeps_what_tells_problems_apart():
    assert normalise(" A\u200bb\n\tC ") == "ab c"
    assert normalise("x\u00b2 + 1") != normalise("x2 + 1")
    assert normalise("3 + 5") != normalise("3 - 5")


def test_the_first_of_equal_texts_is_named():
    seen = Seen()
    assert seen.first("one", "Hello  World") is None
    assert seen.first("two", "hello\nworld") == "one"
    assert seen.first("three", "hello", "world") is None  # two parts are not one text
    assert seen.first("four", "lone \ud800 surrogate") is None


@pytest.mark.shared
def test_recall_and_false_drops_on_the_labelled_corpus(shared):
    """The report's rule finds nearly all copies and drops about a fifth of the clean rows; containment mends that."""

    def rows(name):
        return [json.loads(line) for line in (shared / "cases" / "curation" / name).open()]

    benchmark = [(r["source"], r["id"], r["text"]) for r in rows("benchmarks.jsonl")]
    corpus = [r for r in rows("decontam_dev.jsonl") if r["contaminated"] in (True, False)]

    def measure(**rules):
        index = Index(benchmark, **rules)
        found = [(r["contaminated"], index.find(r["text"]) is not None) for r in corpus]
        copies = [hit for bad, hit in found if bad]
        return sum(copies) / len(copies), sum(hit for bad, hit in found if not bad)

    recall, false_drops = measure()
    assert recall >= 0.99
    assert 250 < false_drops < 350
    recall, false_drops = measure(common=3, containment=0.25)
    assert recall >= 0.93
    assert false_drops <= 5


@pytest.mark.parametrize(
    ("benchmark", "copy"),
    [("3 + 4 * 5 = ?", "3 + 4 × 5 = ?"), ("x^2 = 4 , x > 0", "x² = 4, x > 0"), ("2 - x <= 5 + y", "2 − x ≤ 5 + y")],
)
def test_short_problems_are_found_in_other_unicode_forms(benchmark: str, copy: str) -> None:
    assert Index([("s", "p", benchmark)], exact=False).find(copy) is not None
