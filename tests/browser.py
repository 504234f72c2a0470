"""A real Chromium without a window, driven over its DevTools protocol by a pipe: no port, no further package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--hide-scrollbars", "--mute-audio",
)  # fmt: skip
LAUNCHER = """
import fcntl, os, sys
ours = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for there, fd in zip((3, 4), ours):
    os.dup2(fd, there)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Becomes Chromium, with the pipe's ends as the file descriptors that the protocol wants."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class PageError(AssertionError):
    """A script failed, or the page did not become what was waited for."""


class Browser:
    """One Chromium process with one page at a time. Messages are JSON, each ended by a NUL."""

    def __init__(self, program: str, profile: Path) -> None:
        there, write = os.pipe()
        read, here = os.pipe()
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()
        command = [program, *FLAGS, *root, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(there), str(here), *command],
            pass_fds=(there, here),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there)
        os.close(here)
        self._out, self._in = os.fdopen(write, "wb", buffering=0), os.fdopen(read, "rb")
        self._numbers = count(1)
        self._rest = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """One command's result; events that come meanwhile are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            got = os.read(self._in.fileno(), 1 << 20)
            if not got:
                raise PageError("Chromium ended")
            self._rest += got
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def close(self) -> None:
        self._out.close()  # its end of the pipe closed, Chromium ends by itself
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._in.close()


class Page:
    """A page of a browser."""

    def __init__(self, browser: Browser, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Performance"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def open(self, path: Path) -> None:
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, script: str) -> Any:
        """The value of an expression, awaited. Raises PageError when it throws."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description") or details["text"])
        return found["result"].get("value")

    def wait(self, condition: str, seconds: float = 60) -> None:
        """Until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise PageError(f"still not so after {seconds} s: {condition}")
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """Errors that scripts threw or the browser logged (a policy's violations among them), and all requests that
        left the machine."""
        self.run("0")
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert", "warning"):
                found.append(json.dumps(params["args"]))
            elif event["method"] == "Network.requestWillBeSent":
                url = params["request"]["url"]
                found += [] if url.startswith(("file:", "data:", "about:", "blob:")) else [f"asked for {url}"]
        return found

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self._target)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser with a profile in `folder`; skips the test where none is installed."""
    named = os.environ.get("KLEARBENCH_CHROMIUM")
    program = named or next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium is installed (KLEARBENCH_CHROMIUM names one)")
    browser = Browser(program, folder)
    try:
        yield browser
    finally:
        browser.close()
