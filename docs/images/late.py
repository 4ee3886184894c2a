"""Draw docs/images/late.svg, the picture of docs/how-to/disorder.md: ``python docs/images/late.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

STYLE = (
    "text{font:16px sans-serif;fill:#222}.head{font-weight:bold}.mid{text-anchor:middle}"
    ".soft{fill:#59636e;font-size:15px}"
    ".axis{stroke:#888;fill:none}.passed{fill:#e7e9ec}.edge{stroke:#777;stroke-dasharray:2 3}"
    ".ask{fill:#555}.reply{fill:#0072b2}.new{fill:#d55e00}.out{fill:none;stroke:#59636e;stroke-width:2}"
    ".lost{stroke:#59636e;stroke-width:2}.came{stroke:#0072b2;stroke-width:3;fill:none}.stays{stroke:#0072b2;fill:none}"
    ".gone{stroke:#b3261e;stroke-width:2;stroke-dasharray:6 5;fill:none}"
    ".came_op{fill:#0072b2;font-weight:bold}.gone_op{fill:#b3261e;font-weight:bold}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#9aa5b1}.passed{fill:#262c34}.ask{fill:#aaa}"
    ".reply{fill:#56b4e9}.new{fill:#f0a030}.out,.lost{stroke:#9aa5b1}.came,.stays{stroke:#56b4e9}"
    ".gone{stroke:#ff8a80}.came_op{fill:#56b4e9}.gone_op{fill:#ff8a80}}"
)
MESSAGES = [(1, "ask", "Eve"), (9, "reply", "Bob"), (4, "reply", "Ann"), (2, "reply", "Cy")]
"""Time, kind and author, in the order in which they come; a reply may come 6 minutes later than the newest message."""
WATERMARK = 3
"""Once Bob's has come."""
PANELS = (
    ("1. Eve has asked. Bob's reply comes.", [("came", 9)]),
    ("2. Ann's comes, written before Bob's: she was first.", [("gone", 9), ("came", 4)]),
    ("3. Cy's comes when the watermark has passed it: left out.", [("stays", 4)]),
)
"""What is said, and what is put out, taken back, or stays as it is: with the reply of which time."""
WIDTH, HIGH = 560, 206
LEFT, STEP, LINE = 30, 47, 124
"""Where time 0 is, how long one minute is, and how far below its head the axis of a panel is."""


def text(x: float, y: float, words: str, kind: str) -> str:
    """Words at a place."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>'


def at(ts: int) -> int:
    """Where a time is."""
    return LEFT + STEP * ts


def axis(top: int) -> Iterator[str]:
    """Time, and the part of it that the watermark has passed."""
    y, edge = top + LINE, at(WATERMARK)
    yield f'<rect x="0" y="{top + 22}" width="{edge}" height="{LINE + 34}" class="passed"/>'
    yield f'<path d="M{edge} {top + 22}V{y + 56}" class="edge"/>'
    yield text(8, top + 42, f"watermark {WATERMARK}", "soft")
    yield f'<path d="M0 {y}H{WIDTH}" class="axis"/>'


def messages(top: int, many: int) -> Iterator[str]:
    """The messages that have come, the last of them in another colour, or crossed out."""
    y = top + LINE
    for number, (ts, kind, who) in enumerate(MESSAGES[:many]):
        yield text(at(ts), y + 27, who, "mid")
        yield text(at(ts), y + 47, str(ts), "mid soft")
        if ts < WATERMARK and number:
            yield f'<circle cx="{at(ts)}" cy="{y}" r="8" class="out"/>'
            yield f'<path d="M{at(ts) - 6} {y + 6}L{at(ts) + 6} {y - 6}" class="lost"/>'
        else:
            yield f'<circle cx="{at(ts)}" cy="{y}" r="8" class="{"new" if number == many - 1 else kind}"/>'


def bow(panel: int, replied: int, kind: str) -> Iterator[str]:
    """A match: a bow from the question to the reply."""
    asked, y = MESSAGES[0][0], panel + LINE - 10
    height = 12 * (replied - asked) + 10
    first, last, top = at(asked), at(replied), y - height
    yield f'<path d="M{first} {y}C{first} {top} {last} {top} {last} {y}" class="{kind}"/>'
    if kind == "stays":
        return
    who = next(who for ts, _, who in MESSAGES if ts == replied)
    words, of_op = f"{'+I' if kind == 'came' else '-D'} {who}", f"{kind}_op"
    yield text(last + 14, y - 22, words, of_op)


def late_picture() -> str:
    """A reply takes its place, another does not: three pushes, and what they put out."""
    parts: list[str] = []
    for number, (head, changes) in enumerate(PANELS):
        top = 20 + HIGH * number
        parts += [text(8, top, head, "head"), *axis(top), *messages(top, number + 2)]
        for kind, replied in changes:
            parts += bow(top, replied, kind)
    title = "A reply that comes out of order: one match is taken back, another is put out. A late one is left out."
    size = f'width="{WIDTH}" height="{HIGH * 3}" viewBox="0 0 {WIDTH} {HIGH * 3}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{title}</title>'
    body = "\n".join(parts)
    return f"{head}<style>{STYLE}</style>\n{body}\n</svg>\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(late_picture(), encoding="utf-8")
