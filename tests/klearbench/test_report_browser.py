"""The report in a real Chromium: it is read, clicked and typed into as a user does; nothing may complain."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import Browser
from browser import Page as Tab
from report_tab import as_written, ask, found, open_sample, ready, rows
from report_tools import problem, write_eval

from klearbench.reports.html import write_report

pytestmark = pytest.mark.browser

MATH = (
    "<think>\nLet $a = 1$, then\n\n\\[ \\sum_{j=1}^n j = \\frac{n(n+1)}{2} \\]\nso we are done.\n</think>\n\n"
    "## Result\nIt **is** \\(x^2\\), costs $5 or $6, `a_b`, and\n\n"
    "$$\\begin{pmatrix}1 & 2\\end{pmatrix}$$\n\n\\boxed{7}"
)
PROGRAM = "def f(x):\n    return '<b>' + str(x)  # $x$ and **y**\n"
CODE = f"We use $O(n)$.\n\n```python\n{PROGRAM}```\n\n```c++\nint main() {{ return 0; }}\n```\nand ```\nno end"
DETAIL = r"test 3 of 9: line 2: expected '4', got '5' (input '3\n1 2 3\n') [local-0]"


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """Two runs of two suites, 600 samples, the last of which holds a word that is in no other."""
    folder = tmp_path_factory.mktemp("report")
    problems = [problem(f"m{i}", "sums", f"What is $x_{{{i}}}$?", date="2024-09-01") for i in range(50)]
    problems += [problem(f"c{i}", "programs", "Print it.", "code", meta={"difficulty": "hard"}) for i in range(50)]
    verdict = {"detail": DETAIL, "passed": 2, "total": 9, "cpu_s": 0.25, "peak_mb": 31.0}
    for number, name in enumerate(("base", "gppo")):
        sums = [
            (f"m{i}", j, "correct" if i % 3 or number else "wrong_answer", MATH, r"\frac{7}{1}")
            for i in range(50) for j in range(3)
        ]  # fmt: skip
        programs = [(f"c{i}", j, "wrong_answer", CODE, PROGRAM, verdict) for i in range(50) for j in range(3)]
        sums[4] = ("m1", 1, "truncated", "<think>\nno end of $thinking", None)
        if number:
            programs[-1] = (*programs[-1][:3], "The Unique-Word is $here$.", *programs[-1][4:])
        write_eval(folder / name, {"sums": sums, "programs": programs}, k=3, problems=problems)
    write_report([folder / "base", folder / "gppo"], folder / "report.html")
    return folder / "report.html"


Opened = Callable[..., Tab]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens a report in a tab of its own and waits for its rows. At the end nothing may have complained."""
    tabs: list[Tab] = []

    def open_report(path: Path, **options) -> Tab:
        browser.events.clear()
        tabs.append(Tab(browser, **options))
        tabs[-1].open(path)
        ready(tabs[-1])
        return tabs[-1]

    yield open_report
    for tab in tabs:
        assert tab.complaints() == []
        assert tab.run("typeof hacked") == "undefined"
        tab.close()


def test_the_page_opens_with_its_tables_and_samples(opened, report):
    tab = opened(report)
    assert found(tab) == "600 of 600 samples"
    assert len(rows(tab)) == 50
    assert rows(tab)[0] == "wrong answer | m0 #0 | sums | base | 32 tokens | answer \\frac{7}{1}"
    assert tab.run("document.querySelector('#scores tbody').rows.length") == 4
    paint = tab.run("performance.getEntriesByName('first-contentful-paint').length")
    assert paint == 1
    tab.run("document.querySelector('#more').click()")
    assert len(rows(tab)) == 100


def test_a_click_on_a_problem_shows_its_samples(opened, report):
    tab = opened(report)
    tab.run("document.querySelectorAll('#problems .heat')[2].children[7].click()")
    tab.wait("document.querySelector('#found').textContent === '3 of 600 samples'")
    assert [row.split(" | ")[1:4] for row in rows(tab)] == [
        ["m7 #0", "sums", "gppo"],
        ["m7 #1", "sums", "gppo"],
        ["m7 #2", "sums", "gppo"],
    ]


def test_a_click_on_a_changed_problem_shows_it_in_both_runs(opened, report):
    tab = opened(report)
    assert tab.run("document.querySelector('button.problem').textContent") == "m0"
    tab.run("document.querySelector('button.problem').focus()")
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    tab.wait("document.querySelector('#found').textContent === '6 of 600 samples'")
    assert {row.split(" | ")[3] for row in rows(tab)} == {"base", "gppo"}


def test_filters_by_numbers_and_order(opened, report):
    tab = opened(report)
    ask(tab, "2 of 600 samples", end="8")
    assert {row.split(" | ")[0] for row in rows(tab)} == {"truncated"}
    ask(tab, "1 of 600 samples", run="1")
    ask(tab, "150 of 600 samples", end="", suite="1")
    assert rows(tab)[0].startswith("wrong answer | c0 #0 | programs | gppo")
    ask(tab, "33 of 600 samples", problem="c1")
    ask(tab, "3 of 600 samples", problem="=c1")
    tab.run("document.querySelector('#filters').reset()")
    tab.wait("document.querySelector('#found').textContent === '600 of 600 samples'")
    ask(tab, "600 of 600 samples", order="1")
    lengths = [int(row.split(" | ")[4].split()[0]) for row in rows(tab)]
    assert lengths == sorted(lengths) and lengths[0] == 4
    ask(tab, "3 of 600 samples", least="4", most="5")


def test_the_search_finds_texts_in_late_pieces_answers_and_details(opened, report):
    tab = opened(report)
    assert tab.run("document.querySelectorAll('script[id^=texts]').length") >= 6
    ask(tab, "1 of 600 samples", text="unique-WORD")
    assert rows(tab)[0].split(" | ")[1:4] == ["c49 #2", "programs", "gppo"]
    open_sample(tab)
    tab.wait("CSS.highlights.get('found') && CSS.highlights.get('found').size === 1")
    ask(tab, "298 of 600 samples", text="\\frac{7}", problem="m")
    ask(tab, "300 of 600 samples", text="got '5'", problem="")
    ask(tab, "0 of 600 samples", text="in no sample at all")


def test_a_newer_search_ends_an_older_one(opened, report):
    tab = opened(report)
    ask(tab, "2 of 600 samples", text="no end of", end="")
    for text in ("so we are", "xx", "unique-word"):
        tab.run(f"document.querySelector('#filters').elements.text.value = {json.dumps(text)}")
        tab.run("document.querySelector('#filters').dispatchEvent(new Event('input'))")
        tab.run("new Promise((resolve) => setTimeout(resolve, 210))")
    tab.wait("document.querySelector('#found').textContent === '1 of 600 samples'")
    assert len(rows(tab)) == 1


def test_mathematics_is_rendered_and_the_text_can_be_seen_as_written(opened, report):
    tab = opened(report)
    open_sample(tab)
    tab.wait("document.querySelectorAll('.body > div .text > div math').length === 3")
    rendered = "document.querySelector('.body > div .text > div')"
    assert tab.run(f"{rendered}.querySelector('math mtable') !== null")
    assert tab.run(f"{rendered}.querySelector('p.h').textContent.split('\\n')[0]") == "Result"
    assert tab.run(f"[...{rendered}.querySelectorAll('b')].map((b) => b.textContent)") == ["is"]
    assert tab.run(f"{rendered}.querySelector('code').textContent") == "a_b"
    assert "costs $5 or $6, a_b" in tab.run(f"{rendered}.textContent")
    assert tab.run("document.querySelector('.verdict math mfrac') !== null"), "the answer"
    assert as_written(tab) == MATH


def test_thinking_is_folded_with_its_length(opened, report):
    tab = opened(report)
    open_sample(tab)
    thinking = "[...document.querySelectorAll('.body details')].find((d) => d.textContent.startsWith('Thinking'))"
    tab.wait(thinking)
    length = len(MATH.split("</think>")[0].removeprefix("<think>"))
    assert tab.run(f"{thinking}.querySelector('summary').textContent") == f"Thinking, {length} characters"
    assert tab.run(f"{thinking}.open") is False
    tab.run(f"{thinking}.querySelector('summary').click()")
    tab.wait(f"{thinking}.querySelectorAll('math').length === 2")


def test_thinking_without_an_end_is_shown_at_once(opened, report):
    tab = opened(report)
    ask(tab, "2 of 600 samples", end="8")
    open_sample(tab)
    tab.wait("document.querySelector('.body .thinking') && document.querySelector('.body .thinking').textContent")
    assert tab.run("document.querySelector('.body .thinking').textContent") == "no end of $thinking"
    assert "20 characters, not finished" in tab.run("document.querySelector('.body').textContent")


def test_what_was_asked_is_shown(opened, report):
    tab = opened(report)
    open_sample(tab)
    asked = "document.querySelector('.body > details')"
    tab.run(f"{asked}.querySelector('summary').click()")
    tab.wait(f"{asked}.querySelector('math')")
    assert tab.run(f"{asked}.querySelector('h4').textContent") == "user"
    assert "2024-09-01" in tab.run(f"{asked}.textContent")


def test_code_is_coloured_and_its_failing_test_shown(opened, report):
    tab = opened(report)
    ask(tab, "300 of 600 samples", suite="1")
    open_sample(tab)
    tab.wait("document.querySelectorAll('.body .text pre').length === 2")
    assert tab.run("document.querySelector('.body .text pre code').textContent") == PROGRAM.rstrip("\n")
    assert tab.run("document.querySelector('.body .text pre .hl-keyword').textContent") == "def"
    assert tab.run("document.querySelectorAll('.body .text pre')[1].querySelector('.hl-type').textContent") == "int"
    assert "and ```\nno end" in tab.run("document.querySelector('.body .text').textContent")
    terms = "[...document.querySelectorAll('.verdict dt')].map((t) => [t.textContent, t.nextSibling.textContent])"
    assert dict(tab.run(terms)) == {
        "Status": "wrong answer", "Tests": "2 of 9 passed", "Used": "0.25 s of CPU time, 31 MiB",
        "First failing": "test 3 of 9, line 2", "Input": "3\n1 2 3\n", "Expected": "4", "Got": "5",
    }  # fmt: skip
    tab.run("document.querySelector('.verdict details summary').click()")
    tab.wait("document.querySelector('.verdict details .hl-string')")


def test_a_completion_that_was_linked_out_is_one_click_away(opened, tmp_path):
    text = "".join(random.Random(5).choices("abcdefgh", k=200_000)) + "é"
    found = [("a", 0, "correct", text, "7"), ("a", 1, "correct", "short", "8")]
    write_report([write_eval(tmp_path / "r", found)], tmp_path / "my #1 report%.html", max_bytes=200_000)
    tab = opened(tmp_path / "my #1 report%.html")
    assert "the 1 longest completions" in tab.run("document.querySelector('#viewer').textContent")
    open_sample(tab)
    href = tab.run("document.querySelector('.body p a').href")
    assert "200,001 characters" in tab.run("document.querySelector('.body').textContent")
    tab.call("Page.navigate", url=href)
    tab.wait("document.contentType === 'text/plain' && document.body.innerText.length > 100000")
    assert tab.run("document.body.innerText") == text
    ask_again = opened(tmp_path / "my #1 report%.html")
    ask(ask_again, "1 of 2 samples", text="short")


def test_dark_and_light_follow_the_user(opened, report):
    light, dark = (
        opened(report, dark=dark).run("getComputedStyle(document.body).backgroundColor") for dark in (False, True)
    )
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(21, 23, 26)")


def test_paper_shows_the_tables_and_not_the_viewer(opened, report):
    tab = opened(report)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.run("document.querySelector('#viewer').offsetHeight") == 0
    assert tab.run("document.querySelector('#scores table').offsetHeight > 50")


def test_a_narrow_window_never_scrolls_sideways(opened, report):
    tab = opened(report, width=420)
    ask(tab, "300 of 600 samples", suite="1")
    open_sample(tab)
    tab.wait("document.querySelector('.body .text pre')")
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")


def test_without_scripts_everything_but_the_viewer_is_there(browser, report):
    tab = Tab(browser)
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(report)
    assert "The viewer needs JavaScript" in tab.run("document.body.innerText")
    assert tab.run("document.querySelector('#scores tbody').rows.length") == 4
    tab.close()


def test_the_browser_would_tell(browser, tmp_path):
    """A blocked script, a picture that is asked for, and an exception are all complaints."""
    policy = "default-src 'none'; script-src 'unsafe-inline'"
    blocked = f"<meta http-equiv='Content-Security-Policy' content=\"{policy}\"><img src='https://localhost:1/a.png'>"
    (tmp_path / "blocked.html").write_text(blocked)
    (tmp_path / "asks.html").write_text("<img src='http://localhost:1/a.png'>")
    (tmp_path / "throws.html").write_text("<script>setTimeout(() => { throw new Error('oh'); })</script>")
    for name, says in (
        ("blocked", "Content Security Policy"),
        ("asks", "asked for http://localhost:1"),
        ("throws", "oh"),
    ):
        tab = Tab(browser)
        tab.open(tmp_path / f"{name}.html")
        tab.run("new Promise((resolve) => setTimeout(resolve, 100))")
        assert any(says in complaint for complaint in tab.complaints()), name
        tab.close()
