"""A report about one or several evaluation runs: one self-contained HTML page, Markdown or JSON, by the file's suffix.

Safety of the page: what models wrote reaches it in two ways only. Static parts are escaped here; samples are data, and
the script puts them on the page as text. A Content-Security-Policy with the scripts' hashes lets no other script run
and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import Template

from klearbench.errors import UsageError, unknown_name
from klearbench.reports.bundle import Bundle, read_bundle
from klearbench.reports.charts import text
from klearbench.reports.data import Embedded, embed
from klearbench.reports.jsonfile import json_report
from klearbench.reports.markdown import markdown_report
from klearbench.reports.pieces import Linked, pack
from klearbench.reports.sections import sections
from klearbench.store import write_atomic

MAX_BYTES = 48_000_000
"""20,000 samples of 2,000 characters fit, however badly they compress."""
SCRIPTS = ("render.js", "links.js", "report.js")
VENDOR = ("temml.min.js", "highlight.min.js")
"""Of others; see vendor/LICENSES.md. They are packed like data, and put to work when the first sample is opened."""
_HERE = "klearbench.reports"
OWN = ("manifest.json", "scores.json")
"""What a report must never be written over."""
_DATA, _SIZE = "<!--data-->", "<!--size-->"  # no text of a run can hold these: its `<` is escaped


def write_report(runs: Sequence[Path], out: Path, *, max_bytes: int = MAX_BYTES) -> None:
    """Write the report of run folders of `klearbench eval` to one file, whole or not at all.

    Args:
        runs: the folders, at least one; the order is that of the table, and the first is what others are compared with.
        out: the file; its suffix (.html, .md, .json) is the format.
        max_bytes: the HTML file's size, about. Beyond it the longest completions are written as text files into
            `<stem>_files/` beside the page, which links them. Scores and charts always cover all samples.

    Raises:
        UsageError: no run given, or another suffix; DataError: not a run folder of `eval`, or a corrupt file; DiskFull.
    """
    if out.suffix.lower() not in FORMATS:
        raise UsageError(f"{out}: " + unknown_name("format of a report", out.suffix, FORMATS))
    if out.name in OWN and (out.parent / "manifest.json").exists():
        raise UsageError(f"{out} is a run's own file; give the report another name")
    FORMATS[out.suffix.lower()](read_bundle(runs), out, max_bytes)


def _write_html(bundle: Bundle, out: Path, max_bytes: int) -> None:
    page = _page(bundle)
    room = max_bytes - len(page.safe_substitute(linked="").encode("utf-8", "replace"))
    found = embed(bundle, out.parent / f"{out.stem}_files", room)
    head, tail = page.substitute(linked=_note(found.linked)).split(_DATA)
    size = len((head + tail).encode("utf-8", "replace")) + sum(map(len, found.elements))
    start, end = (part.replace(_SIZE, _about(found, size)).encode("utf-8", "replace") for part in (head, tail))
    write_atomic(out, b"".join((start, *found.elements, end)))
    found.linked.tidy()


def _page(bundle: Bundle) -> Template:
    """The page without its samples: `$linked` is still open, and there are marks for the data and the size."""
    scripts = {name: resource(name) for name in SCRIPTS}
    vendor = {name: resource(f"vendor/{name}") for name in VENDOR}
    hashes = " ".join(f"'sha256-{_digest(code)}'" for code in (*scripts.values(), *vendor.values()))
    parts = sections(bundle)
    closed = {
        "policy": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {hashes};"
        " base-uri 'none'; form-action 'none'",
        "title": text(bundle.title),
        "css": resource("report.css") + math_css(),
        "nav": "".join(f'<a href="#{part.anchor}">{part.title}</a>' for part in parts),
        "sections": "".join(part.html() for part in parts),
        "licences": text(resource("vendor/LICENSES.md")),
        "vendor": "".join(f'<script type="text/plain" id="{_id(k)}">{pack(v)}</script>\n' for k, v in vendor.items()),
        "scripts": "".join(f"<script>{code}</script>\n" for code in scripts.values()),
        "data": _DATA,
        "size": _SIZE,
    }
    escaped = {key: value.replace("$", "$$") for key, value in closed.items()}
    return Template(Template(resource("template.html")).substitute(escaped, linked="$linked"))


def resource(name: str) -> str:
    """A file of this package."""
    return resources.files(_HERE).joinpath(name).read_text(encoding="utf-8")


def math_css() -> str:
    """Temml's style sheet without its web font, which the page could not fetch."""
    css = resource("vendor/temml-local.css")
    start = css.index("@font-face")
    return css[:start] + css[css.index("}", start) + 1 :]


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _id(file: str) -> str:
    return file.partition(".")[0]


def _note(linked: Linked) -> str:
    """What was linked out of the page, or nothing."""
    if not linked.samples:
        return ""
    size = f"{sum(linked.files.values()) / 1e6:.1f} MB"
    return (
        f'<p class="note warn">To keep this file small, the {linked.samples} longest completions are files of their own'
        f" ({size}) in {text(linked.folder.name)}/, a folder beside it. Each is linked from its sample; the search for"
        f" texts leaves them out.</p>"
    )


def _about(found: Embedded, size: int) -> str:
    beside = f", {found.linked.samples} of the completions beside it" if found.linked.samples else ""
    return f"{size / 1e6:.1f} MB with {found.samples} samples{beside}"


def _write_text(make: Callable[[Bundle], str]) -> Callable[[Bundle, Path, int], None]:
    def write(bundle: Bundle, out: Path, max_bytes: int) -> None:
        write_atomic(out, make(bundle).encode("utf-8", "replace"))

    return write


FORMATS: Mapping[str, Callable[[Bundle, Path, int], None]] = {
    ".html": _write_html,
    ".md": _write_text(markdown_report),
    ".json": _write_text(json_report),
}
"""Suffix -> what writes such a report."""
