"""``acep demo``: the main job on real data, US flights of 2013, and what an exact matcher loses there."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acep_approx.cli.options.groups import grouped
from acep_approx.cli.options.output import OutputOptions, Quiet, check_folder, format_of
from acep_approx.cli.options.spark import SparkOptions
from acep_approx.cli.process import hide_pandas
from acep_approx.cli.tables import show
from acep_approx.cli.terminal import amount, progress_bar, say, tell
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

QUERY = """\
PATTERN SEQ(DEP a, ARR b, DEP c)
WHERE [key] AND a.delay_min >= 60 AND c.delay_min >= 60
WITHIN 24 h
ERRORS 1 WEIGHTS (a = 2, c = 2)"""

STORY = """\
Flights out of New York in 2013: {events:,} departures, arrivals and cancellations.

Which planes carried a delay along? We look for a plane that leaves New York more than an hour late (a),
arrives somewhere (b), and within 24 hours leaves New York more than an hour late again (c):

{query}

[key]      all three events are of one plane, by its tail number
ERRORS 1   one event may be missing; the weights make both departures too dear, so it can only be the arrival b
"""


@dataclass(frozen=True)
class Findings:
    """What the demo found.

    Attributes
    ----------
    events : int
        Events read.
    seconds : float
        How long the matching alone took.
    counts : dict of int to int
        Number of matches by number of errors.
    exact_points : int
        Number of match points without errors: those that k = 0 finds.
    pairs : list of (int, int)
        For each match point that only k = 1 finds, the rows of its latest a and of c.
    lost : list of bool
        For each pair, whether no arrival of the flight of a was ever recorded.
    """

    events: int
    seconds: float
    counts: dict[int, int]
    exact_points: int
    pairs: list[tuple[int, int]]
    lost: list[bool]


@grouped
def demo(
    *,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            metavar="FILE",
            help="Where the picture goes (a page of HTML).",
            rich_help_panel=OutputOptions.panel,
        ),
    ] = Path("acep-demo.html"),
    save_events: Annotated[
        Path | None,
        typer.Option(
            "--save-events",
            metavar="FILE",
            help="Write the flights to a file (.csv, .jsonl or .parquet) to try things on, and do nothing else.",
            rich_help_panel=OutputOptions.panel,
        ),
    ] = None,
    spark: SparkOptions,
    quiet: Quiet = False,
) -> None:
    """Show the main job on real data: matches with a missing event among US flights, and a picture of where they lie.

    Takes a few seconds. With --spark: a history is learned from three months of flights, and the other nine are matched
    as a stream, inside a budget, while the history learns on; takes about two minutes. Nothing is downloaded.
    """
    from acep_approx.pages.shell import write_page

    spark.check()
    if save_events is not None:
        _save_events(save_events, quiet=quiet)
        return
    if not output.parent.is_dir():
        raise UsageError(
            f"there is no folder {str(output.parent)!r} for the picture", code="ACEP-U016", hint="name another FILE"
        )
    if spark.spark:
        from acep_approx.cli.on_spark.demo import demo_on_spark

        write_page(demo_on_spark(spark.master, quiet=quiet), output)
    else:
        _demo_here(output, quiet=quiet)
    if not quiet:
        tell(f"\npicture: {output.resolve()}")


def _save_events(file: Path, *, quiet: bool) -> None:
    form = format_of(file)
    check_folder(file)

    from acep_approx.cli.write import write
    from acep_approx.events.demo import flights

    events = flights()
    write([events], form, file)
    if not quiet:
        tell(f"{file}: {events.num_rows:,} events")


def _demo_here(output: Path, *, quiet: bool) -> None:
    if not quiet:
        say("reading the flights ...")

    hide_pandas()

    from acep_approx.events.demo import flights
    from acep_approx.pages.shell import write_page

    with ThreadPoolExecutor(1) as beside:
        reading = beside.submit(flights)
        _ask_for_kernels()
        events = reading.result()
    if not quiet:
        shown = "\n".join(f"    {line}" for line in QUERY.splitlines())
        tell(STORY.format(events=events.num_rows, query=shown))
    with progress_bar("matching", enabled=not quiet) as progress:
        progress.total = events.num_rows
        findings = explore(events, on_progress=progress.done)
    if not quiet:
        _print_numbers(findings)
        _print_found(events, findings)
    write_page(picture(events, findings), output)


def _ask_for_kernels() -> None:
    """Match three made-up flights, so that kernels that are not compiled yet are, while the real flights are read."""
    import pyarrow as pa

    from acep_approx.api import compile_query

    few = {"ts": pa.array([0, 1, 2], pa.timestamp("us", "UTC")), "type": ["DEP", "ARR", "DEP"], "key": ["N1"] * 3}
    found = compile_query(QUERY).match(pa.table({**few, "delay_min": pa.array([60] * 3, pa.int16())}))
    found.points()  # which the page begins with
    found.to_arrow()


def explore(events: pa.Table, on_progress: Callable[[int], None] | None = None) -> Findings:
    """Match the flights with k = 1, and look closer at what k = 0 would not find.

    Each match says how many errors it has, so those of k = 0 are among them.

    Parameters
    ----------
    events : pyarrow.Table
        As ``events.demo.flights`` makes them.
    on_progress : callable, optional
        Called with the number of events done.

    Returns
    -------
    Findings
    """
    from acep_approx.api import compile_query

    begun = clock.perf_counter()
    matches = compile_query(QUERY).match(events, on_progress=on_progress).to_arrow()
    seconds = clock.perf_counter() - begun
    columns = (matches.column(name).to_pylist() for name in ("errors", "a", "c"))
    counts, latest, exact = {0: 0, 1: 0}, dict[int, int](), set[int]()
    for errors, a, c in zip(*columns, strict=True):
        counts[errors] += 1
        latest[c] = max(a, latest.get(c, a))
        if errors == 0:
            exact.add(c)
    pairs = [(a, c) for c, a in sorted(latest.items()) if c not in exact]
    lost = _without_arrival(events, [a for a, _ in pairs])
    return Findings(events.num_rows, seconds, counts, len(exact), pairs, lost)


def _without_arrival(events: pa.Table, departures: list[int]) -> list[bool]:
    """For each of these departures whether the same flight has no arrival anywhere in the data."""
    import pyarrow as pa
    import pyarrow.compute as pc

    flight = ("key", "carrier", "flight", "sched_ts")
    left = events.select(flight).take(pa.array(departures, pa.int64())).to_pylist()
    is_arrival = pc.equal(events.column("type"), "ARR")
    planes = pc.is_in(events.column("key"), pa.array([row["key"] for row in left], pa.string()))
    arrivals = events.filter(pc.and_(is_arrival, planes)).select(flight).to_pylist()
    arrived = {tuple(row.values()) for row in arrivals}
    return [tuple(row.values()) not in arrived for row in left]


def picture(events: pa.Table, findings: Findings) -> str:
    """The page: where the matches lie, their flights, and what nearly matched."""
    from acep_approx.api import compile_query
    from acep_approx.pages.explorer import explorer_page
    from acep_approx.results.explorer.explorable import PageLabels
    from acep_approx.results.explorer.explore import explored

    told = (
        "Planes that left New York more than an hour late, arrived, and left New York more than an hour late again "
        "within 24 hours (2013; times in UTC). Without errors there are "
        f"{findings.exact_points:,} match points; with one missing event allowed "
        f"{len(findings.pairs)} more are found"
        f"{', whose arrival is missing' if all(findings.lost) else ''}."
    )
    labels = PageLabels(
        title="Delays that travelled with the plane",
        source="US flights of 2013 out of New York",
        explanation=(told,),
        command="acep demo",
        events="'flights.csv'",
        ask="acep why flights.acep flights.csv",
        notes=("The events as a file: acep demo --save-events flights.csv. The query is to be saved as flights.acep.",),
    )
    return explorer_page(explored(compile_query(QUERY).match(events), labels, findings.counts))


def _print_numbers(findings: Findings) -> None:
    table = _table("", "k = 0: exact", "k = 1: one event may be missing")
    exact, new = findings.exact_points, len(findings.pairs)
    table.add_row("match points", f"{exact:,}", f"{exact + new:,} ({new} more)")
    for errors, number in findings.counts.items():
        table.add_row(f"matches with {amount(errors, 'error')}", "-" if errors else f"{number:,}", f"{number:,}")
    show(table)
    tell(
        "A match point is the event that completes a match. With k = 1 every (a, c) counts as a match with one error,\n"
        "also where an arrival exists; the match points show what is really new.\n\n"
        f"{findings.events:,} events matched in {findings.seconds:.2f} s: "
        f"{findings.events / findings.seconds:,.0f} events/s on one core\n"
    )


def _print_found(events: pa.Table, findings: Findings) -> None:
    import pyarrow as pa

    table = _table("plane", "flight a", "to", "a leaves (UTC)", "late", "b", "c leaves (UTC)", "late")
    for pair in findings.pairs:
        a, c = events.take(pa.array(pair)).to_pylist()
        table.add_row(
            a["key"],
            f"{a['carrier']} {a['flight']}",
            f"{a['origin']}-{a['dest']}",
            f"{a['ts']:%d %b %H:%M}",
            f"{a['delay_min']} min",
            "arrival: missing",
            f"{c['ts']:%d %b %H:%M}",
            f"{c['delay_min']} min",
        )
    tell(f"The {len(findings.pairs)} match points that only k = 1 finds:")
    show(table)
    lost = sum(findings.lost)
    where = "all of them" if lost == len(findings.lost) else f"{lost} of them"
    tell(
        f"In {where} flight a has no arrival anywhere in the data, as when a flight is diverted or turns back.\n"
        "An exact matcher waits for the arrival in vain, and loses them."
    )


def _table(*columns: str) -> Table:
    """An empty table for the terminal; numbers to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name == "late" or name.startswith("k =") else "left", no_wrap=True)
    return table
