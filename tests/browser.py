"""A real browser without a window, driven over a pipe by its own protocol: for tests of what pages look like.

Nothing is installed for it: where the system has no Chromium or Chrome, tests that want it skip.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 30.0
"""Seconds that an answer may take."""
LAUNCH = (
    "import os, sys; from fcntl import F_DUPFD, fcntl;"
    "r, w = (fcntl(int(n), F_DUPFD, 10) for n in sys.argv[1:3]); os.dup2(r, 3); os.dup2(w, 4);"
    "os.execv(sys.argv[3], sys.argv[3:])"
)
"""The browser reads commands from descriptor 3, and writes answers to 4."""


def installed() -> str | None:
    """The browser of the system."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page of the browser.

    Attributes
    ----------
    errors : list of str
        What scripts complained about since the page was opened.
    """

    def __init__(self, path: str, folder: Path) -> None:
        from_us, to_us = os.pipe(), os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
                   "--no-first-run", "--disable-extensions", "--disable-background-networking",
                   f"--user-data-dir={folder}", "--force-color-profile=srgb", "--lang=en"]  # fmt: skip
        command = [sys.executable, "-S", "-c", LAUNCH, str(from_us[0]), str(to_us[1]), path, *options]
        self._process = subprocess.Popen(
            command, pass_fds=(from_us[0], to_us[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(from_us[0])
        os.close(to_us[1])
        self._to, self._from, self._rest, self._number = from_us[1], to_us[0], b"", 0
        self.errors: list[str] = []
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None

    def begin(self) -> None:
        """Open an empty page."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> Any:
        """Ask the browser for something, and wait for the answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select([self._from], [], [], PATIENCE)[0], "the browser does not answer"
            some = os.read(self._from, 1 << 20)
            assert some, "the browser has ended"
            self._rest += some
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        kind, params = message.get("method"), message.get("params", {})
        self._events.append(message)
        if kind == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"].get("exception", params)))
        elif kind == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif kind == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(str(params["args"]))

    def open(self, page: Path, *, width: int, height: int = 900, scheme: str = "light", script: bool = True) -> None:
        """Open a page in a window of this width, light or dark."""
        self.errors, self._events = [], []
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.send("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._next()

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page, once what it promises is there."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=8 * shift)

    def click(self, selector: str, number: int = 0, *, at: tuple[float, float] = (0.5, 0.5)) -> None:
        """Click into an element, at this share of its width and height; it is brought into view."""
        find = f"document.querySelectorAll({json.dumps(selector)})[{number}]"
        box = self.value(
            f"(() => {{ const e = {find}; e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        )
        x, y = box[0] + at[0] * box[2], box[1] + at[1] * box[3]
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, *, whole: bool = True) -> bytes:
        """The page as it looks now, as PNG."""
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))
        return base64.b64decode(shot["data"])

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1}}

    def close(self) -> None:
        """End the browser."""
        os.close(self._to)
        os.close(self._from)
        self._process.terminate()
        self._process.wait(PATIENCE)


@contextmanager
def browser(path: str, folder: Path) -> Iterator[Browser]:
    """A browser that is ended afterwards."""
    opened = Browser(path, folder)
    try:
        opened.begin()
        yield opened
    finally:
        opened.close()
