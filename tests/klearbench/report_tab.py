"""What the tests of the report in a browser do with a page: fill the form, read the list, open a sample."""

from __future__ import annotations

import json

from browser import Page as Tab


def ready(tab: Tab) -> None:
    """Wait until the viewer shows its samples."""
    tab.wait("/ samples$/.test(document.querySelector('#found').textContent)")


def found(tab: Tab) -> str:
    return tab.run("document.querySelector('#found').textContent")


def rows(tab: Tab) -> list[str]:
    cells = "[...summary.children].map((cell) => cell.textContent).join(' | ')"
    return tab.run(f"[...document.querySelectorAll('#list summary')].map((summary) => {cells})")


def ask(tab: Tab, expect: str, **values: str) -> None:
    """Fill the form, and wait until so many samples are found."""
    for name, value in values.items():
        tab.run(f"document.querySelector('#filters').elements[{json.dumps(name)}].value = {json.dumps(value)}")
    tab.run("document.querySelector('#found').textContent = ''")
    tab.run("document.querySelector('#filters').dispatchEvent(new Event('input'))")
    tab.wait(f"document.querySelector('#found').textContent === {json.dumps(expect)}")


def open_sample(tab: Tab, place: int = 0) -> None:
    tab.run(f"document.querySelectorAll('#list > details')[{place}].querySelector('summary').click()")
    tab.wait(f"document.querySelectorAll('#list > details')[{place}].querySelector('.body')")


def as_written(tab: Tab) -> str:
    tab.run("document.querySelector('.body .tools button').click()")
    return tab.run("document.querySelector('.body > div > .text > pre').textContent")
