"""Take docs/images/explorer.png, the picture of the README, from the page of ``acep demo``.

``python -m docs.images.explorer``, from the root of the project. It needs Chromium or Chrome.
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from acep_approx.cli.commands.demo import explore, picture
from acep_approx.events import flights
from tests.browser import browser, installed

WIDTH = 960
"""Of the window, and of the picture, in pixels."""
CHOOSE = """(() => {
    const find = document.querySelector('#explorer input');
    find.value = 'N641JB';
    find.dispatchEvent(new Event('input', {bubbles: true}));
    const of = document.querySelector('#explorer select#errors');
    of.value = '1';
    of.dispatchEvent(new Event('change', {bubbles: true}));
})()"""
"""One plane, whose arrival is missing in July."""
EDGES = """['#over-time', '#explorer .detail'].map(
    (part) => document.querySelector(part).getBoundingClientRect()).flatMap((box) => [box.top, box.bottom])"""


def explorer_picture() -> bytes:
    """The page, from its time line to a match whose arrival is missing, as PNG."""
    events = flights()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Path(folder, "demo.html")
        page.write_text(picture(events, explore(events)), encoding="utf-8")
        with browser(installed() or "chromium", Path(folder, "profile")) as shown:
            shown.open(page, width=WIDTH)
            shown.value(CHOOSE)
            shown.value("new Promise((done) => setTimeout(done, 500))")
            shown.click("#explorer .rows tbody tr", 1)
            shown.value("scrollTo(0, 0)")
            top, _, _, end = shown.value(EDGES)
            clip = {"x": 0, "y": top - 16, "width": WIDTH, "height": end - top + 32, "scale": 1}
            shot = shown.send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    Path(__file__).with_suffix(".png").write_bytes(explorer_picture())
