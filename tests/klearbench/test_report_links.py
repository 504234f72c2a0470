"""Links into a report: what report_link writes, and what a real Chromium shows for it, for hostile ones as well."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import Browser
from browser import Page as Tab
from report_tab import as_written, ask, found, ready, rows
from report_tools import problem, write_eval

from klearbench.reports.html import write_report
from klearbench.reports.links import report_link

pytestmark = pytest.mark.browser

ODD = (
    "a b", "a#b&c=d/e?f;g", "50%zz %41", "a+b", "ü✓😀", "lone\ud800", "nul\x00", "two\nlines", "carriage\rreturn",
    "<img src=x onerror='window.hacked = 1'>", "=sign", " space", "__proto__", "(x)[y]\\`'\"", "problem=m1&suite=odd",
)  # fmt: skip
"""Ids that a suite may have."""
TWINS = ("twin\ud800", "twin\udfff", "twin\n", " twin", "twin")
"""Ids that neither an address nor a field can tell apart, but for the last two."""
HOSTILE = (
    "suite=<img src=x onerror='window.hacked=1'>", "problem=<script>window.hacked=1</script>",
    "suite=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E&problem=m1", "run=javascript:window.hacked=1",
    "suite=%zz&problem=%", "suite=%ff%fe%ed%a0%80", "problem=" + "x" * 300_000, "problem=" + "%zz" * 50_000,
    "suite=sums&problem=" + "&" * 50_000, "suite=__proto__", "suite=constructor&problem=toString",
    "suite=0&problem=0", "suite=", "suite&problem&run&sample", "problem=m1&problem=m2&suite=no",
    "suite=sums&problem=../m1", "suite=sums&problem=m1%00", "run=%00", "problem=\u202e\u2066m1",
)  # fmt: skip
NOT_LINKS = (
    "", "viewer", "no-such-anchor", "%", "%zz", "&&==", "__proto__=1", "sample=3", "'\"><img src=x>", "suite%3Dsums",
)  # fmt: skip


def completion(run: str, suite: str, problem_id: str, index: int) -> str:
    return json.dumps(f"{run}, {suite}, {problem_id}, {index}") + "."


def samples(run: str, suite: str, ids: tuple[str, ...], k: int) -> list[tuple]:
    return [(i, j, "wrong_answer", completion(run, suite, i, j), str(j)) for i in ids for j in range(k)]


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> Path:
    """One run: 30 problems and one of 70 samples in `sums`; odd ids; twins."""
    folder = tmp_path_factory.mktemp("one")
    ids = tuple(f"m{i}" for i in range(30))
    sums = [*samples("r", "sums", ids, 3), *samples("r", "sums", ("long",), 70)]
    suites = {"sums": sums, "odd": samples("r", "odd", ODD, 2), "twins": samples("r", "twins", TWINS, 1)}
    write_report([write_eval(folder / "r", suites, k=3)], folder / "my #1 report%.html")
    return folder / "my #1 report%.html"


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    """Two runs of two suites with the same ids."""
    folder = tmp_path_factory.mktemp("two")
    ids = ("p1", "p2", "p3")
    for run in ("base", "gppo & co"):
        suites = {suite: samples(run, suite, ids, 2) for suite in ("sums", "words")}
        write_eval(folder / run, suites, k=2, problems=[problem(i, "sums") for i in ids])
    write_report([folder / "base", folder / "gppo & co"], folder / "report.html")
    return folder / "report.html"


Opened = Callable[[str], Tab]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens a link in a tab of its own and waits for its rows. At the end nothing may have complained."""
    tabs: list[Tab] = []

    def open_link(link: str) -> Tab:
        browser.events.clear()
        tabs.append(Tab(browser))
        go(tabs[-1], link)
        return tabs[-1]

    yield open_link
    for tab in tabs:
        assert tab.complaints() == []
        assert tab.run("typeof hacked") == "undefined"
        tab.close()


def go(tab: Tab, link: str) -> None:
    tab.call("Page.navigate", url=link)
    tab.wait("document.readyState === 'complete' && location.protocol === 'file:'")
    ready(tab)


def follow(tab: Tab, link: str) -> None:
    """Go to a link of the page that is open; it stays loaded, and its script has seen the change."""
    seen = "new Promise((resolve) => addEventListener('hashchange', () => setTimeout(resolve), { once: true }))"
    change = f"location.href = {json.dumps(link)}"
    tab.run(f"((before) => {{ {change}; return location.href === before ? null : {seen}; }})(location.href)")


def link_to(report: Path, *names, **more) -> str:
    return report_link(report.as_uri(), *names, **more)


def text_shown(tab: Tab) -> str:
    """The text of the one sample that is open, which has to be in the window."""
    tab.wait("document.querySelector('#list .body .text')")
    assert tab.run("document.querySelectorAll('#list > details[open]').length") == 1
    tab.wait("document.querySelector('#list > details[open] > summary').getBoundingClientRect().top >= 0")
    assert tab.run("document.querySelector('#list .body').getBoundingClientRect().top < innerHeight - 50")
    return as_written(tab)


def marked(tab: Tab) -> list[str]:
    """Run (empty: of all) and title of each cell that is marked."""
    cells = "[...document.querySelectorAll('.heat [aria-current]')]"
    return tab.run(f"{cells}.map((cell) => cell.dataset.run + ' ' + cell.title.split(':')[0])")


def note(tab: Tab) -> str:
    """The note that is seen, or nothing."""
    seen = "getComputedStyle(lost).display !== 'none' && lost.getBoundingClientRect().top < innerHeight"
    return tab.run(f"((lost) => {seen} ? lost.textContent : '')(document.querySelector('#lost'))")


def click_sample(tab: Tab, place: int) -> None:
    tab.run(f"document.querySelectorAll('#list > details')[{place}].querySelector('summary').click()")
    tab.wait("document.querySelector('#list .body')")


def address(tab: Tab) -> str:
    return tab.run("location.href")


@pytest.mark.parametrize(
    ("given", "link"),
    [
        (("report.html", "aime24", "aime24-2024-II-3"), "report.html#suite=aime24&problem=aime24-2024-II-3"),
        (("r.html", "s", "a b", 7, "my run"), "r.html#suite=s&problem=a%20b&run=my%20run&sample=7"),
        (("r.html", "s", "x", 0), "r.html#suite=s&problem=x&sample=0"),
        (("r.html", "a&b=c", "#1/2+50%"), "r.html#suite=a%26b%3Dc&problem=%231%2F2%2B50%25"),
        (("r.html", "s", "é😀"), "r.html#suite=s&problem=%C3%A9%F0%9F%98%80"),
        (("r.html", "s", "\ud800\x00"), "r.html#suite=s&problem=%EF%BF%BD%EF%BF%BD"),
        (("r.html", "s", ")>](\n\"'"), "r.html#suite=s&problem=%29%3E%5D%28%0A%22%27"),
        (("../my #1 run?/100%.html", "s", "x"), "../my%20%231%20run%3F/100%25.html#suite=s&problem=x"),
        (("a/b\udcff.html", "s", "x"), "a/b%FF.html#suite=s&problem=x"),
        (("javascript:alert(1)", "s", "x"), "javascript%3Aalert%281%29#suite=s&problem=x"),
        (("https://h.org/a%20b/r.html?v=1&w#old", "s", "x"), "https://h.org/a%20b/r.html?v=1&w#suite=s&problem=x"),
        (("file:///tmp/a b<é>.html", "s", "x"), "file:///tmp/a%20b%3C%C3%A9%3E.html#suite=s&problem=x"),
    ],
)
def test_a_link_is_encoded(given, link):
    assert report_link(*given) == link


def test_a_link_opens_the_problems_first_sample_and_marks_its_cell(opened, one):
    tab = opened(link_to(one, "sums", "m7"))
    assert text_shown(tab) == completion("r", "sums", "m7", 0)
    assert found(tab) == "3 of 195 samples"
    assert tab.run("[...new FormData(document.querySelector('#filters'))].filter(([, value]) => value)") == [
        ["suite", "0"], ["problem", "=m7"],
    ]  # fmt: skip
    assert marked(tab) == ["0 m7"]
    assert note(tab) == ""
    assert address(tab).endswith("#suite=sums&problem=m7"), "as it was given"


def test_a_link_opens_a_sample_that_is_not_on_the_first_page_of_the_list(opened, one):
    tab = opened(link_to(one, "sums", "long", 61))
    assert text_shown(tab) == completion("r", "sums", "long", 61)
    assert found(tab) == "70 of 195 samples"


def test_odd_ids_are_found_and_their_copied_links_open_the_same_sample(opened, one):
    tab = opened(one.as_uri())
    for odd in ODD:
        follow(tab, link_to(one, "odd", odd, 1))
        assert text_shown(tab) == completion("r", "odd", odd, 1)
        assert note(tab) == "" and len(marked(tab)) == 1, odd
        tab.run("document.querySelector('.heat [aria-current]').click()")
        click_sample(tab, 0)
        copied = address(tab)
        assert copied.isascii() and copied.endswith("&sample=0")
        follow(tab, one.as_uri() + "#")
        follow(tab, copied)
        assert text_shown(tab) == completion("r", "odd", odd, 0)


def test_of_ids_that_differ_in_what_no_address_holds_one_is_opened_and_the_others_stand_beside_it(opened, one):
    for twin in ("twin", " twin"):
        tab = opened(link_to(one, "twins", twin))
        assert text_shown(tab) == completion("r", "twins", twin, 0)
    tab = opened(link_to(one, "twins", "twin\udfff"))
    assert text_shown(tab) == completion("r", "twins", "twin\ud800", 0)
    assert found(tab) == "2 of 195 samples"


def test_a_link_names_one_of_two_runs(opened, two):
    tab = opened(link_to(two, "words", "p2", run="gppo & co"))
    assert text_shown(tab) == completion("gppo & co", "words", "p2", 0)
    assert found(tab) == "2 of 24 samples"
    assert marked(tab) == [" p2", "1 p2"], "in the map of changes and in that of its run"


def test_without_a_run_the_samples_of_both_are_shown(opened, two):
    tab = opened(link_to(two, "words", "p2", 1))
    assert text_shown(tab) == completion("base", "words", "p2", 1)
    assert found(tab) == "4 of 24 samples"
    assert marked(tab) == [" p2", "0 p2", "1 p2"]


def test_a_suite_or_a_run_alone_is_a_filter_and_a_problem_alone_is_found_in_its_suite(opened, two, one):
    tab = opened(f"{two.as_uri()}#suite=words&run=base")
    assert found(tab) == "6 of 24 samples"
    assert tab.run("document.querySelectorAll('#list > details[open]').length") == 0
    assert tab.run("Math.abs(document.querySelector('#viewer').getBoundingClientRect().top) < innerHeight")
    assert text_shown(opened(f"{one.as_uri()}#problem=__proto__")) == completion("r", "odd", "__proto__", 0)


@pytest.mark.parametrize(
    ("fragment", "says"),
    [
        ("suite=sums&problem=m99", 'No problem "m99" in this report.'),
        ("suite=odd&problem=m7", 'No problem "m7" in this report.'),
        ("problem=m99", 'No problem "m99" in this report.'),
        ("suite=nope&problem=m7", 'No suite "nope" in this report.'),
        ("suite=sums&problem=m7&run=other", 'No run "other" in this report.'),
        ("suite=sums&problem=" + "x" * 500, f'No problem "{"x" * 80} ..." in this report.'),
    ],
)
def test_an_unknown_name_is_told_and_the_report_opens_as_usual(opened, one, fragment, says):
    tab = opened(f"{one.as_uri()}#{fragment}")
    assert note(tab) == says
    assert found(tab) == "195 of 195 samples"
    assert tab.run("scrollY") == 0
    assert marked(tab) == []
    ask(tab, "30 of 195 samples", suite="1")
    assert note(tab) == "", "a filter changed by hand ends it"


def test_an_unknown_sample_is_told_beside_those_of_its_problem(opened, one):
    for sample in ("3", "-1", "x", "01", ""):
        tab = opened(f"{one.as_uri()}#suite=sums&problem=m7&sample={sample}")
        assert note(tab) == f'No sample "{sample}" of problem "m7" in this report.'
        assert found(tab) == "3 of 195 samples"
        assert marked(tab) == ["0 m7"]


def harmless(tab: Tab) -> None:
    assert note(tab).startswith("No ") and len(note(tab)) < 120
    assert found(tab) == "195 of 195 samples"
    assert tab.run("document.querySelectorAll('#lost *, main img, #list > details[open]').length") == 0


@pytest.mark.parametrize("fragment", HOSTILE[:9], ids=lambda fragment: fragment[:30])
def test_a_page_opened_with_a_hostile_fragment_shows_a_note_and_nothing_else(opened, one, fragment):
    harmless(opened(f"{one.as_uri()}#{fragment}"))


def test_a_hostile_fragment_put_into_the_address_does_no_more(opened, one):
    tab = opened(one.as_uri())
    for fragment in HOSTILE:
        follow(tab, one.as_uri() + "#")
        assert note(tab) == ""
        follow(tab, f"{one.as_uri()}#{fragment}")
        harmless(tab)


def test_a_fragment_that_is_no_link_is_left_alone(opened, one):
    tab = opened(f"{one.as_uri()}#%zz")
    for fragment in NOT_LINKS:
        follow(tab, f"{one.as_uri()}#{fragment}")
        assert (note(tab), found(tab), marked(tab)) == ("", "195 of 195 samples", [])
        assert tab.run("document.querySelectorAll('#list > details[open]').length") == 0, fragment
    for fragment in ("", "viewer"):
        tab = opened(f"{one.as_uri()}#{fragment}")
        assert (note(tab), found(tab), marked(tab)) == ("", "195 of 195 samples", [])


def test_a_click_on_a_cell_makes_the_address_a_link_that_shows_the_same(opened, two):
    tab = opened(two.as_uri())
    entries = tab.run("history.length")
    tab.run("document.querySelectorAll('#problems .heat')[3].children[2].click()")
    assert address(tab) == link_to(two, "words", "p3", run="gppo & co")
    assert found(tab) == "2 of 24 samples" and marked(tab) == [" p3", "1 p3"]
    tab.run("document.querySelector('.heat.change').children[0].click()")
    assert address(tab) == link_to(two, "sums", "p1")
    assert found(tab) == "4 of 24 samples"
    assert tab.run("history.length") == entries
    assert text_shown(opened(address(tab))) == completion("base", "sums", "p1", 0)


def test_a_sample_opened_by_hand_is_in_the_address_and_its_link_reopens_it(opened, two):
    tab = opened(two.as_uri())
    click_sample(tab, 17)
    copied = address(tab)
    assert copied == link_to(two, "sums", "p3", 1, "gppo & co")
    assert as_written(tab) == completion("gppo & co", "sums", "p3", 1)
    assert found(tab) == "24 of 24 samples", "the list stays as it was"
    assert text_shown(opened(copied)) == completion("gppo & co", "sums", "p3", 1)


def test_a_filter_changed_by_hand_takes_the_link_out_of_the_address(opened, one):
    tab = opened(link_to(one, "sums", "m7"))
    ask(tab, "30 of 195 samples", suite="1", problem="")
    assert address(tab) == one.as_uri()
    assert marked(tab) == []
    go(tab, link_to(one, "sums", "m8"))
    tab.run("document.querySelector('#filters button[type=reset]').click()")
    tab.wait("document.querySelector('#found').textContent === '195 of 195 samples'")
    assert (address(tab), marked(tab)) == (one.as_uri(), [])


def test_back_forward_and_a_reload_show_what_the_address_names(opened, one):
    tab = opened(one.as_uri())
    for name in ("m7", "m8"):
        tab.run(f"location.hash = 'suite=sums&problem={name}&sample=2'")
        tab.wait(f"document.querySelector('[aria-current]')?.dataset.problem === '{name}'")
        assert text_shown(tab) == completion("r", "sums", name, 2)
    tab.run("history.back()")
    tab.wait("document.querySelector('[aria-current]')?.dataset.problem === 'm7'")
    assert text_shown(tab) == completion("r", "sums", "m7", 2)
    tab.call("Page.reload")
    tab.wait("document.querySelector('#found')?.textContent === '3 of 195 samples'")
    assert text_shown(tab) == completion("r", "sums", "m7", 2)
    tab.run("history.back()")
    tab.wait("document.querySelector('#found').textContent === '195 of 195 samples'")
    assert rows(tab)[0].split(" | ")[1] == "m0 #0"
    assert marked(tab) == []
    tab.run("history.go(2)")
    tab.wait("document.querySelector('[aria-current]')?.dataset.problem === 'm8'")


def test_an_anchor_of_the_page_leaves_filters_made_by_hand(opened, one):
    tab = opened(one.as_uri())
    ask(tab, "3 of 195 samples", problem="=m7")
    tab.run("document.querySelector('nav a').click()")
    assert address(tab) == one.as_uri() + "#scores"
    tab.run("history.back()")
    tab.wait("location.hash === ''")
    assert found(tab) == "3 of 195 samples"
