"""Texts that a model may write by accident or on purpose, in the report, in a real Chromium: shown, nothing done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page as Tab
from browser import chromium
from report_tab import as_written, ask, open_sample, ready
from report_tools import problem, write_eval

from klearbench.reports.html import write_report

pytestmark = pytest.mark.browser

HOSTILE = {
    "script": "</script><script>window.hacked = 1</script>",
    "image": "<img src=x onerror='window.hacked = 1'> <svg onload='window.hacked = 1'>",
    "nul and surrogates": "a\x00b \ud800 c \udfff $\ud800$ `\x00`",
    "link": r"$\href{javascript:window.hacked=1}{x}$ \(\url{https://example.org}\) \[\includegraphics{https://example.org/a.png}\]",
    "style": r"$\style{position:fixed}{x}$ \(\class{body}{y}\) $\htmlId{list}{z}$ $\data{a=b}{w}$",
    "broken": "$\\frac{1}{$ \\(\\left( x\\) \\[ \\begin{array} $$ \\undefined{} $$ \\boxed{ \\begin{align} x",
    "bomb": "$" + "".join(rf"\def\{a}{{" + rf"\{b}" * 9 + "}" for a, b in ("ab", "bc", "cd", "da")) + r"\a$",
    "loop": "\\(\\def\\x{\\x\\x}\\x\\)",
    "deep": "$" + "{" * 3000 + "x" + "}" * 3000 + "$",
    "font": "$\\mathscr{A} \\mathcal{B} \\mathfrak{C}$ \\(f'\\) $\\cancel{x} \\boxed{y} \\sqrt[3]{z}$",
    "huge": "$\\rule{99999em}{99999em}$ $\\Huge x$ \\(\\kern{9999em}y\\)",
    "fences": "```" + "a" * 50_000 + "`\n" + "```\n" * 2_000 + "~~~\n$x$\n",
    "dollars": "$ $" * 10_000,
    "openings": "\\( \\[ $$ ** ` \\boxed{ \\begin{align} " * 2_000,
    "formulas": "$x$ " * 5_000,
    "line": "word " * 200_000,
    "spaces": "\n" + " " * 200_000 + "x",
    "thinking": "<think>" + "</think><think>" * 5_000,
    "template": "${1+1} {{1+1}} <%= 1 %> %s $data $linked <!--data-->",
    "empty": "",
    "rtl": "\u202e\u2066 abc \u0301\u0301\u0301 \ufeff",
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    cut = {name: text[:20_000] for name, text in HOSTILE.items()}
    found = [(f"h {name} <i>", 0, "wrong_answer", text, text, {"detail": cut[name]}) for name, text in HOSTILE.items()]
    problems = [problem(f"h {name} <i>", text=text) for name, text in cut.items()]
    run = write_eval(folder / "<script>run", found, k=1, problems=problems, about={"model": HOSTILE["image"]})
    write_report([run], folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def tab(tmp_path_factory, hostile) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        found = Tab(browser)
        found.open(hostile)
        ready(found)
        yield found


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_shown_and_does_nothing(tab, name):
    ask(tab, f"1 of {len(HOSTILE)} samples", problem=f"=h {name} <i>")
    open_sample(tab)
    tab.run("document.querySelector('.body > details summary').click()")
    tab.run("[...document.querySelectorAll('.body details')].forEach((d) => { d.open = true; })")
    tab.run("new Promise((resolve) => setTimeout(resolve, 50))")
    assert tab.run("document.querySelectorAll('#list img, #list script, #list svg, #list a, #list iframe').length") == 0
    assert tab.run("document.querySelectorAll('#list .note.warn').length") == 0
    assert as_written(tab) == HOSTILE[name]
    assert tab.complaints() == []
    assert tab.run("typeof hacked") == "undefined"


def test_formulas_that_can_not_be_read_stay_as_they_were_written(tab):
    ask(tab, f"1 of {len(HOSTILE)} samples", problem="=h broken <i>")
    open_sample(tab)
    tab.wait("document.querySelector('.body .text .badmath')")
    assert tab.run("document.querySelector('.body .text .badmath').textContent") == "$\\frac{1}{$"
    assert tab.run("document.querySelector('.body .text').textContent") == HOSTILE["broken"]
