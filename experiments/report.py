"""What the repetition of SASE+'s evaluation shows: CSV files, pictures, tables; and the figures of the paper.

Source of the latter: Agrawal, Diao, Gyllstrom and Immerman, SIGMOD 2008, section 6.
"""

from __future__ import annotations

import csv
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]
Asked = TypeVar("Asked")

LENGTHS = {"p1s2": 250, "p1s3": 250, "p2s2": 4.5, "p2s3": 140, "p3s2": 250, "p3s3": 250}
"""Table 2: events of a match."""

RUNS = {"p1s2": 2, "p1s3": 2, "p2s2": 0.01, "p2s3": 2, "p3s2": 2, "p3s3": 2}
"""Table 2: runs per time step."""

CONSTRUCTION = {"p1s2": 39, "p1s3": 39, "p2s2": 0, "p2s3": 33, "p3s2": 33, "p3s3": 34}
"""Table 2: per cent of the time that go into constructing matches."""

MERGED = {
    500: {"p1s3": 47.9, "p2s3": 47.8, "p3s3": 47.8},
    1000: {"p1s3": 50.9, "p2s3": 48.3, "p3s3": 45.8},
    1500: {"p1s3": 66.6, "p2s3": 55.7, "p3s3": 44.9},
    2000: {"p1s3": 75.3, "p2s3": 60.4, "p3s3": 50.6},
}
"""Table 3: per cent of the runs that were merged, by window."""

MERGING_GAIN = {"p1s3": 1.5, "p2s3": 1.4, "p3s3": 1.5}
"""Experiment 5: throughput with merging, of that without."""

DETECTION_GAIN = "1.4-2.1"
"""Experiment 6: the same without construction of matches, over all windows and queries."""

BACKTRACK_FACTOR = {"p1s3": "200-300", "p2s2": "1.3", "p2s3": "200-300", "p3s2": "200-300", "p3s3": "200-300"}
"""Experiment 3: throughput of the basic algorithm, of that of backtracking."""

APART_FACTOR = {"p3*s3": "about 10"}
"""Experiment 4: the same for matches that do not overlap; the paper gives no number for the other queries."""

REPROCESSED = {"p1s3": 0.6, "p2s3": 0.6, "p3s3": 0.6}
"""Experiment 3: how often backtracking reads an event again, on average, with s3."""


@dataclass(frozen=True)
class Column:
    """One column of a table: key of the row, heading, format of its values."""

    key: str
    heading: str
    format: str = ""

    def cell(self, row: Row) -> str:
        """The value of a row, ``-`` where there is none."""
        value = row.get(self.key)
        if value is None:
            return "-"
        return value if isinstance(value, str) else f"{value:{self.format}}"


def of_texts(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]] = (),
    left: Container[str] = (),
    note: str = "",
) -> Table:
    """A table of the terminal; columns stand to the right but for those named in ``left``."""
    table = Table(title=title, caption=note or None)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    for row in rows:
        table.add_row(*row)
    return table


def of_columns(title: str, rows: Sequence[Row], columns: Sequence[Column], note: str = "") -> Table:
    """The values of rows as a table of the terminal; texts stand to the left."""
    cells = ([column.cell(row) for column in columns] for row in rows)
    left = {column.heading for column in columns if column.format == "s"}
    return of_texts(title, [column.heading for column in columns], cells, left, note)


def markdown(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """Rows as a table of a page."""
    lines = [[column.heading for column in columns], ["---" if c.format == "s" else "---:" for c in columns]]
    lines += [[column.cell(row) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Report:
    """Writes into one folder, and prints.

    Parameters
    ----------
    folder : Path
        Made if it is not there; files of the same name are replaced.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.console = Console(width=120)
        folder.mkdir(parents=True, exist_ok=True)

    def table(self, name: str, title: str, rows: Sequence[Row], columns: Sequence[Column], note: str = "") -> None:
        """Print some rows, and write all their values to ``NAME.csv``."""
        self.console.print(of_columns(title, rows, columns, note))
        with (self.folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def bars(self, name: str, title: str, rows: Sequence[Row], series: dict[str, str]) -> None:
        """Groups of bars, one group per query: ``series`` has the name of each key of the rows."""
        axes, save = self._axes(name, title)
        width = 0.8 / len(series)
        for k, (key, label) in enumerate(series.items()):
            places = [i + (k - (len(series) - 1) / 2) * width for i in range(len(rows))]
            axes.bar(places, [row[key] for row in rows], width, label=label)
        axes.set_xticks(range(len(rows)), [row["query"] for row in rows])
        axes.set_yscale("log")
        axes.set_ylabel("events per second")
        save()

    def lines(self, name: str, title: str, rows: Sequence[Row], x: Column, y: Column, *, log: bool) -> None:
        """One line per query over ``x``."""
        axes, save = self._axes(name, title)
        for query in dict.fromkeys(row["query"] for row in rows):
            mine = [row for row in rows if row["query"] == query]
            axes.plot([row[x.key] for row in mine], [row[y.key] for row in mine], marker="o", label=query)
        axes.set_xlabel(x.heading)
        axes.set_ylabel(y.heading)
        if log:
            axes.set_yscale("log")
        save()

    def _axes(self, name: str, title: str) -> tuple[Axes, Any]:
        """Axes to draw on, and what writes them to ``NAME.png``."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title)

        def save() -> None:
            axes.legend()
            figure.savefig(self.folder / f"{name}.png", dpi=120)

        return axes, save


Part = tuple[str, str, Callable[[Asked], list[Row]], Sequence[Column]]
"""Title and note of a table, what measures its rows, and its columns."""


def in_markdown(part: Part[Asked], rows: Sequence[Row]) -> str:
    """The table of a part as a piece of a page."""
    title, note, _, columns = part
    return f"**{title}.** {note}\n\n{markdown(rows, columns)}\n"


def chosen(parser: ArgumentParser, names: Sequence[str], parts: Collection[str], thing: str) -> list[str]:
    """The parts that were asked for, all by default; ends with an error where there is no such."""
    if unknown := [name for name in names if name not in parts]:
        parser.error(f"there is no {thing} {', '.join(unknown)}; there are {', '.join(parts)}")
    return list(names or parts)


def measured(
    parts: Mapping[str, Part[Asked]], names: Sequence[str], asked: Asked, report: Report, say: Callable[[str], None]
) -> Iterator[tuple[str, list[Row]]]:
    """Measure some parts, and give name and rows of each once its table is written; ``tables.md`` has all so far."""
    texts = list[str]()
    for name in names:
        title, note, measure, columns = parts[name]
        say(f"{title} ...")
        rows = measure(asked)
        if not rows:
            say(f"{title}: there is nothing to measure")
            continue
        report.table(name, title, rows, columns, note)
        texts.append(in_markdown(parts[name], rows))
        (report.folder / "tables.md").write_text("\n".join(texts), encoding="utf-8")
        yield name, rows
