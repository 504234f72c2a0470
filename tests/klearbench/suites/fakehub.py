"""A hub of our own: as much of the Hugging Face hub's HTTP interface as `load_dataset` and `hf_hub_download` need."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SHA = "a" * 40
"""The only commit of every repository."""
Files = dict[str, dict[str, bytes]]
"""Dataset id -> path -> content."""


def lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def dataset(config: str, split: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, bytes]:
    """The files of a dataset with one configuration and some splits ("a+b": the rows are dealt out among them)."""
    names = split.split("+")
    every = list(rows)
    parts = {name: every[i :: len(names)] for i, name in enumerate(names)}
    entries = "".join(f"  - split: {name}\n    path: {config}/{name}.jsonl\n" for name in names)
    card = f"---\nconfigs:\n- config_name: {config}\n  data_files:\n{entries}---\n"
    return {"README.md": card.encode()} | {f"{config}/{name}.jsonl": lines(part) for name, part in parts.items()}


@contextmanager
def serve(files: Files) -> Iterator[str]:
    """The address (for HF_ENDPOINT) at which some datasets can be had."""

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing is said."""

        def _send(self, body: bytes, code: int = 200, **headers: str) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _json(self, value: object) -> None:
            self._send(json.dumps(value).encode(), Content_Type="application/json")

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0].strip("/").split("/")
            if path[:2] == ["api", "datasets"] and "/".join(path[2:4]) in files:
                self._about("/".join(path[2:4]), path[4:])
            elif path[0] == "datasets" and "resolve" in path:
                at = path.index("resolve")
                self._file(files.get("/".join(path[1:at]), {}).get("/".join(path[at + 2 :])))
            else:
                self._send(b"{}", 404, X_Error_Code="RepoNotFound")

        def _about(self, name: str, rest: list[str]) -> None:
            if rest[:1] == ["tree"]:
                below = "/".join(rest[2:])
                found = {path: data for path, data in files[name].items() if path.startswith(below)}
                self._json([{"type": "file", "path": p, "size": len(d), "oid": _tag(d)} for p, d in found.items()])
            else:
                self._json({"id": name, "sha": SHA, "siblings": [{"rfilename": path} for path in files[name]]})

        def _file(self, data: bytes | None) -> None:
            if data is None:
                self._send(b"{}", 404, X_Error_Code="EntryNotFound", X_Repo_Commit=SHA)
            else:
                self._send(data, X_Repo_Commit=SHA, ETag=f'"{_tag(data)}"')

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _tag(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
