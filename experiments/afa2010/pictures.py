"""Pictures and a table in Markdown of what ``afa2010`` measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acep_approx.diagrams.text_layout import label
from acep_approx.pages.drawing import short, steps
from experiments.report import Row

STYLE = (
    "text{font:15px sans-serif;fill:#222}.head{font-size:16px;font-weight:bold}.soft{fill:#59636e;font-size:14px}"
    ".grid{stroke:#d5d9de}.s0{fill:#0072b2}.s1{fill:#d55e00}.s2{fill:#7a7f87}.s3{fill:#007a5a}"
    ".l{fill:none;stroke-width:2.5}.l0{stroke:#0072b2}.l1{stroke:#d55e00}.l2{stroke:#7a7f87;stroke-dasharray:6 4}"
    ".l3{stroke:#007a5a;stroke-dasharray:2 4}.l4{stroke:#a3457f;stroke-dasharray:10 4 2 4}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#9aa5b1}.grid{stroke:#3a424c}.s0{fill:#56b4e9}"
    ".s1{fill:#f0a030}.s2{fill:#9aa5b1}.s3{fill:#3fc79a}.l0{stroke:#56b4e9}.l1{stroke:#f0a030}.l2{stroke:#9aa5b1}"
    ".l3{stroke:#3fc79a}.l4{stroke:#e08cc0}}"
)
WIDTH, LEFT, RIGHT = 560, 64, 24
SIZE, LANE, GAP = 170, 30, 34
"""Height of a panel with lines, of one bar, and the room between panels."""
CHARACTER = 8.3
"""Width of one, on average."""


@dataclass(frozen=True)
class Bars:
    """Bars with their values."""

    head: str
    note: str
    values: dict[str, float]

    def drawn(self, top: float) -> tuple[list[str], float]:
        """What is drawn from a height on, and where it ends."""
        left = 24 + CHARACTER * max(map(len, self.values))
        scale = (WIDTH - left - 64) / max(self.values.values())
        parts = [label(8, top + 16, self.head, kind="head"), label(8, top + 38, self.note, kind="soft")]
        y = top + 52
        for name, value in self.values.items():
            parts.append(label(left - 10, y + 17, name, anchor="end"))
            kind = "s0" if name.startswith("AFA") else "s2"
            parts.append(
                f'<rect class="{kind}" x="{left:.1f}" y="{y}" width="{max(value * scale, 1):.1f}" height="22" rx="2"/>'
            )
            parts.append(label(left + value * scale + 8, y + 17, short(float(f"{value:.2g}"))))
            y += LANE
        return parts, y


@dataclass(frozen=True)
class Lines:
    """One line for each series over the same places; a value that is None is left out."""

    head: str
    note: str
    below: str
    places: tuple[str, ...]
    series: dict[str, list[float | None]]

    def drawn(self, top: float) -> tuple[list[str], float]:
        """What is drawn from a height on, and where it ends."""
        parts = [label(8, top + 16, self.head, kind="head"), label(8, top + 38, self.note, kind="soft")]
        y = top + 62
        x = float(LEFT)
        for number, name in enumerate(self.series):
            if x > LEFT and x + 24 + CHARACTER * len(name) > WIDTH:
                x, y = float(LEFT), y + 22
            parts.append(f'<path class="l l{number}" d="M{x:.1f} {y - 5}h20"/>')
            parts.append(label(x + 26, y, name))
            x += 48 + CHARACTER * len(name)
        parts += self._curves(y + 22)
        base = y + 22 + SIZE
        parts.append(label((LEFT + WIDTH - RIGHT) / 2, base + 42, self.below, kind="soft", anchor="middle"))
        return parts, base + 46

    def _curves(self, top: float) -> Iterator[str]:
        """The grid, and the lines in it."""
        marks = steps(max(value for values in self.series.values() for value in values if value is not None), 4)
        base = top + SIZE
        for mark in marks:
            y = base - SIZE * mark / marks[-1]
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield label(LEFT - 8, y + 5, short(mark), anchor="end")
        step = (WIDTH - RIGHT - LEFT - 32) / max(len(self.places) - 1, 1)
        xs = [LEFT + 16 + step * n for n in range(len(self.places))]
        for x, place in zip(xs, self.places, strict=True):
            yield label(x, base + 20, place, anchor="middle")
        for number, values in enumerate(self.series.values()):
            points = [
                (x, base - SIZE * value / marks[-1]) for x, value in zip(xs, values, strict=True) if value is not None
            ]
            yield f'<path class="l l{number}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'
            yield from (f'<circle class="s{number}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points)


def drawing(panels: Sequence[Bars | Lines], title: str) -> str:
    """Panels, one below the other, as a file of its own."""
    parts: list[str] = []
    y = 4.0
    for panel in panels:
        more, y = panel.drawn(y)
        parts += more
        y += GAP
    height = y - GAP + 8
    size = f'width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{title}</title><style>{STYLE}</style>'
    return "\n".join((head, *parts, "</svg>")) + "\n"


def panels_of(figures: dict[str, list[Row]]) -> Iterator[Bars | Lines]:
    """What is drawn of the figures that were measured."""
    if "8" in figures:
        rates = {row["way"]: row["rate"] for row in figures["8"] if row["data"] == "generated"}
        yield Bars("Figure 8: Q1, k = 2, in order", "million events per second", rates)
    if "10" in figures:
        rows = [row for row in figures["10"] if row["query"] == "Q1"]
        sigmas = tuple(dict.fromkeys(row["sigma"] for row in rows))
        series = {}
        for key, name in (("ours", "ours"), ("algorithm", "Algorithm 1")):
            for share in dict.fromkeys(row["ignorable"] for row in rows):
                values = {row["sigma"]: row[f"{key}_ratio"] for row in rows if row["ignorable"] == share}
                series[f"{name}, I = {share}%"] = [values[sigma] for sigma in sigmas]
        note = "rows put out, of those at sigma = 0 (the paper at 1,000: 14 and 4.5)"
        yield Lines("Figure 10: Q1, k = 1, 5% late by 1-5,000", note, "sigma in ms", sigmas, series)
    for figure, head, key, below, lines in (
        ("12", "Figure 12: Q2, late by 1-1,000", "late", "events that are late, %", FIGURE_12),
        ("16", "Figure 16: Q1, k = 1, in order", "ignorable", "ignorable events, %", FIGURE_16),
    ):
        if figure in figures:
            rows = figures[figure]
            values = {name: [row[column] for row in rows] for column, name in lines.items()}
            places = tuple(f"{row[key]:g}" for row in rows)
            yield Lines(head, "million events per second", below, places, values)


FIGURE_12 = {"early_many": "AFA, 10,000 a push", "sequence_many": "AFA+O, 10,000", "early_few": "AFA, 1,000",
             "sequence_few": "AFA+O, 1,000"}  # fmt: skip
FIGURE_16 = {"ignore": "IGNORE", "loop": "an arc consumes them"}


def write(figures: dict[str, list[Row]], folder: Path) -> Path | None:
    """Draw what was measured: ``afa2010.svg``."""
    panels = list(panels_of(figures))
    if not panels:
        return None
    path = folder / "afa2010.svg"
    title = "The experiments of Chandramouli, Goldstein and Maier 2010 again: throughput, and rows put out."
    path.write_text(drawing(panels, title), encoding="utf-8")
    return path
