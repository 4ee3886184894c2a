"""Pictures of what ``active2011`` found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from acep_approx.pages.drawing import short
from experiments.afa2010.pictures import Bars, Lines, drawing
from experiments.cayuga.pictures import LogLines
from experiments.report import Row

WAYS = {"lwm": "LWM", "s2pl": "S2PL", "sei": "SEI", "by_lock": "S2PL, lock by lock"}

Panel = tuple[str, str, str, str, str, dict[str, str], type[Lines]]
PICTURES: dict[str, tuple[str, tuple[Panel, ...]]] = {
    "active2011-throughput": (
        "Throughput of the three schedulers: events per second of a simulated machine.",
        tuple(
            (f"Figure {number}: {what}", "events per second", below, number, key, WAYS, Lines)
            for number, what, below, key in (
                ("5", "reads, locks on rows", "reads of a transaction", "read_n"),
                ("6", "reads, locks on tables", "reads of a transaction", "read_n"),
                ("7", "writes, locks on rows", "potential writes of a transaction", "write_n"),
                ("8", "writes, locks on tables", "potential writes of a transaction", "write_n"),
            )
        ),
    ),
    "active2011-latency": (
        "Latency and memory of the three schedulers on a simulated machine.",
        (
            (
                "Figure 10: underloaded, 200 events/s",
                "latency above the baseline, %",
                "length of patterns",
                "10",
                "seq_l",
                WAYS,
                Lines,
            ),
            ("Figure 11: latency", "microseconds, output and rule", "events per second", "11", "rate", WAYS, LogLines),
            (
                "Figure 12: memory",
                "versions and buffered events, the most",
                "events per second",
                "12",
                "rate",
                {"lwm": "LWM", "s2pl": "S2PL", "sei": "SEI", "all": "LWM, all versions"},
                LogLines,
            ),
        ),
    ),
    "active2011-held": (
        "What low-water marks gain, by how long readers hold their locks.",
        (
            (
                "Readers that hold their locks",
                "throughput of LWM, of that of S2PL; locks on tables, 1 read",
                "microseconds behind the last read",
                "held",
                "held",
                {"lwm_s2pl": "of S2PL", "lwm_by_lock": "of S2PL, lock by lock"},
                Lines,
            ),
        ),
    ),
}
"""By file, its title and its panels: head, note, name below, figure, column of places, names of series, kind."""
ONLY = {"10": ("rate", 200), "held": ("read_n", 1)}
"""Of these figures the rows that are drawn; at 200 events/s Figure 10 is nearest to the paper's, see its table."""


def pictures(found: dict[str, list[Row]]) -> Iterator[tuple[str, str]]:
    """Name and text of each picture for which all figures are there."""
    for name, (title, panels) in PICTURES.items():
        if not all(found.get(panel[3]) for panel in panels):
            continue
        drawn: list[Bars | Lines] = []
        for head, note, below, figure, places, series, kind in panels:
            rows = [row for row in found[figure] if row[places] != "mean"]
            if figure in ONLY:
                key, wanted = ONLY[figure]
                rows = [row for row in rows if row[key] == wanted] or rows
            names = tuple(row[places] if isinstance(row[places], str) else short(row[places]) for row in rows)
            values = {text: [row[key] for row in rows] for key, text in series.items()}
            drawn.append(kind(head, note, below, names, values))
        yield name, drawing(drawn, title)


def draw(found: dict[str, list[Row]], folder: Path) -> list[Path]:
    """Draw what was found; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in pictures(found):
        paths.append(folder / f"{name}.svg")
        paths[-1].write_text(text, encoding="utf-8")
    return paths
