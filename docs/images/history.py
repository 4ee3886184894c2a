"""Draw docs/images/history.svg, the picture of docs/how-to/history.md: ``python docs/images/history.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

STYLE = (
    "text{font:13px sans-serif;fill:#222}.head{font-weight:bold}.small{font-size:11px}"
    ".line{stroke:#777;fill:none}.box{fill:#e3f1e3;stroke:#2e7d32}.ball{fill:#c62828}.on{fill:#2e7d32}"
    ".both{fill:#b0b0b0}.new{fill:#1565c0}.off{fill:none;stroke:#999}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.line{stroke:#999}.box{fill:#1d331f;stroke:#81c784}"
    ".ball{fill:#ef5350}.on{fill:#81c784}.both{fill:#777}.new{fill:#64b5f6}}"
)
MAPS = {
    "v, cheap": "111101",
    "v, dear": "000011",
    "b, cheap": "111100",
    "b, dear": "000011",
}
"""Match vectors and their match maps: one bit for each of six bundles."""
PLACES = {"v, cheap": (300, 70), "v, dear": (300, 150), "b, cheap": (450, 70), "b, dear": (450, 150)}
EVENTS = "vbpvbvpbpvvbpvbpvp"
"""The past; each p completes a match."""
KEPT, NEW = "b, cheap", "v, cheap"


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words at a place."""
    return f'<text x="{x}" y="{y}" class="{kind}">{words}</text>'


def bits(x: float, y: float, kinds: list[str]) -> Iterator[str]:
    """A match map, one square for each bundle."""
    for number, kind in enumerate(kinds):
        yield f'<rect x="{x + 15 * number}" y="{y}" width="12" height="12" class="{kind}"/>'


def past() -> Iterator[str]:
    """The events, with the match points that the exact run found."""
    yield text(20, 25, "1. An exact run over the past", "head")
    yield '<path d="M20 110H270" class="line"/>'
    points = [24 + 14 * place for place, letter in enumerate(EVENTS) if letter == "p"]
    for number, x in enumerate(points, 1):
        yield f'<path d="M{x} 110V95" class="line"/><circle cx="{x}" cy="88" r="7" class="ball"/>'
        yield text(x - 4, 72, str(number))
    yield from (text(20 + 14 * n, 130, letter, "small") for n, letter in enumerate(EVENTS))
    yield text(20, 165, "Each match point is a match bundle.", "small")
    yield text(20, 182, "Which runs were seen where,", "small")
    yield text(20, 199, "and to which bundles they led.", "small")


def graph() -> Iterator[str]:
    """Match vectors, the moves between them, and their match maps."""
    yield text(300, 25, "2. The history graph", "head")
    yield '<path d="M400 92H450M400 172H450M400 100L450 160" class="line"/>'
    for name, (x, y) in PLACES.items():
        yield f'<rect x="{x}" y="{y}" width="110" height="48" rx="5" class="box"/>'
        yield text(x + 8, y + 18, name)
        yield from bits(x + 10, y + 28, ["on" if bit == "1" else "off" for bit in MAPS[name]])
    yield text(300, 225, "Boxes: match vectors, by state, window left", "small")
    yield text(300, 242, "and price. Squares: match maps, bundles 1 to 6.", "small")


def decision() -> Iterator[str]:
    """What a new run adds to the one that is kept."""
    mine, theirs = MAPS[NEW], MAPS[KEPT]
    adds = [("new" if b == "0" else "both") if a == "1" else "off" for a, b in zip(mine, theirs, strict=True)]
    left, own = adds.count("new"), mine.count("1")
    yield text(600, 25, "3. What a new run adds", "head")
    yield text(600, 75, f"kept: {KEPT}")
    yield from bits(740, 64, ["on" if bit == "1" else "off" for bit in theirs])
    yield text(600, 105, f"new: {NEW}")
    yield from bits(740, 94, adds)
    yield text(600, 140, f"{own - left} of its {own} bundles a kept run", "small")
    yield text(600, 157, f"leads to as well: it adds {left} of {own}.", "small")
    yield text(600, 190, f"score = gain x {left}/{own} / cost")
    yield text(600, 215, "At the price or above: kept.")
    yield text(600, 235, "Below the price: shed.")


def history_picture() -> str:
    """The whole of it."""
    parts = "\n".join([*past(), *graph(), *decision()])
    title = "From past events to the history graph, and from its match maps to what is kept"
    size = 'width="850" height="255" viewBox="0 0 850 255"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{title}</title>'
    return f"{head}<style>{STYLE}</style>\n{parts}\n</svg>\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(history_picture(), encoding="utf-8")
