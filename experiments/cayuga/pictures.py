"""Pictures of what ``cayuga`` measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path

from acep_approx.diagrams.text_layout import label
from acep_approx.pages.drawing import short
from experiments.afa2010.pictures import LEFT, RIGHT, SIZE, WIDTH, Lines, drawing
from experiments.report import Row


@dataclass(frozen=True)
class LogLines(Lines):
    """Lines over powers of ten; those named in ``across`` are values of others, without places of their own."""

    across: tuple[str, ...] = ()

    def _curves(self, top: float) -> Iterator[str]:
        """The grid, and the lines in it."""
        known = [value for values in self.series.values() for value in values if value]
        least, most = floor(log10(min(known))), ceil(log10(max(known)))
        base, power = top + SIZE, SIZE / max(most - least, 1)
        for exponent in range(least, most + 1):
            y = base - power * (exponent - least)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield label(LEFT - 8, y + 5, short(10.0**exponent), anchor="end")
        step = (WIDTH - RIGHT - LEFT - 32) / max(len(self.places) - 1, 1)
        xs = [LEFT + 16 + step * n for n in range(len(self.places))]
        for x, place in zip(xs, self.places, strict=True):
            yield label(x, base + 20, place, anchor="middle")
        for number, (name, values) in enumerate(self.series.items()):
            points = [(x, base - power * (log10(value) - least)) for x, value in zip(xs, values, strict=True) if value]
            if name in self.across:
                yield f'<path class="l l{number}" d="M{LEFT} {points[0][1]:.1f}H{WIDTH - RIGHT}"/>'
                continue
            yield f'<path class="l l{number}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'
            yield from (f'<circle class="s{number}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points)


ESPER = {"Esper by its documentation, 1,000 statements": 5e5}
"""Esper Reference 4.3, 17.1: "exceeds over 500 000 event/s", a dual CPU of 2 GHz, averages of a symbol each."""

Picture = tuple[str, str, str, str, dict[str, str], dict[str, float]]
PICTURES: dict[str, tuple[Picture, ...]] = {
    "queries": (
        (
            "Queries on one stream",
            "events per second on one core; a thousand symbols",
            "queries",
            "queries",
            {"rate": "a set", "join": "joined with constants", "hidden": "without index", "alone": "each by itself"},
            ESPER,
        ),
    ),
    "skew": (
        (
            "Hot symbols",
            "events per second; symbol number r comes 1/r^z as often as the first",
            "z",
            "skew",
            {
                "of_queries": "of queries",
                "of_events": "of events",
                "of_both": "of both",
                "few_values": "of both, 8 values per constant",
            },
            {},
        ),
    ),
    "waiting": (
        (
            "Partial matches that wait for a threshold",
            "microseconds per event",
            "partial matches that wait",
            "runs",
            {"pattern": "a pattern", "next": "NEXT", "pattern_scan": "a pattern, without bounds"},
            {},
        ),
        (
            "Partial matches that wait for a value of their own",
            "microseconds per event",
            "partial matches that wait",
            "runs",
            {"key_pattern": "[g]", "same_pattern": "b.g = a.g", "next_same": "NEXT", "fold_same": "FOLD"},
            {},
        ),
    ),
    "templates": (
        (
            "Templates",
            "events per second; the same number of queries in all",
            "templates",
            "templates",
            {"rate": "a set"},
            {},
        ),
    ),
}
"""By experiment, for each panel: title, note, name below, column of places, names of series, values of others."""


def pictures(found: dict[str, list[Row]]) -> Iterator[tuple[str, str]]:
    """Name and text of each picture of the experiments that were measured."""
    for name, panels in PICTURES.items():
        if not found.get(name):
            continue
        rows, drawn = found[name], []
        for head, note, below, places, series, others in panels:
            names = tuple(short(row[places]) for row in rows)
            values: dict[str, list[float | None]]
            values = {title: [row.get(key) for row in rows] for key, title in series.items()}
            values |= {title: [value] * len(names) for title, value in others.items()}
            drawn.append(LogLines(head, note, below, names, values, tuple(others)))
        yield f"cayuga-{name}", drawing(drawn, f"{panels[0][0]}: {panels[0][1]}.")


def draw(found: dict[str, list[Row]], folder: Path) -> list[Path]:
    """Draw what was measured; gives the files."""
    paths = []
    for name, text in pictures(found):
        paths.append(folder / f"{name}.svg")
        paths[-1].write_text(text, encoding="utf-8")
    return paths
