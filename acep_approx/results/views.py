"""What a notebook shows of matches, of one match, of a run under a budget, and of tuning.

Of matches that are found when asked for it shows the first: a bounded part of the events is read, nothing changes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep_approx.diagrams.colours import COLOURS, GRAPH
from acep_approx.diagrams.fragments import bounded, rows_of, soft, table, tiles, title, view
from acep_approx.diagrams.text_layout import shortened, width
from acep_approx.events.counts import counted, said
from acep_approx.events.stream import read_events
from acep_approx.events.writing.tables import gathered_table
from acep_approx.matching.outputs.kinds import MATCHES, POINTS
from acep_approx.pages.budget.charts import load
from acep_approx.pages.budget.lines import need_words, recall_words, spent
from acep_approx.pages.budget.shared import numbers
from acep_approx.pages.code import code
from acep_approx.pages.drawing import percent
from acep_approx.pages.shell import part_of_page
from acep_approx.results.beginning import much
from acep_approx.timeline.picture import svg
from acep_approx.visible import escape

if TYPE_CHECKING:
    from acep_approx.budget.ledger import RunRecord, SpentRecord
    from acep_approx.budget.set_ledger import SharedRecord


FIRST = 10
"""Matches that are shown as a table."""
EXPLAINED = 20_000
"""Events that are looked at to say why there is no match."""
STATIONS, STATION, ROW, GAP = 24, 22, 66.0, 14.0
"""Events of a match that are drawn, letters of their texts, height of a row of them, and what is between two."""


# --- matches ----------------------------------------------------------------------------------------------------


def matches_view(matches: Any) -> str:
    """The query, where its match points lie in time, and the first matches; of the beginning of the events."""
    query = code(bounded(str(matches.plan.query.text)))
    if not matches.source.reusable:
        return view(title("Matches"), query, soft("The events can be read only once, so they are not read to draw it."))
    found = preview(matches, FIRST if matches.limit is None else min(FIRST, matches.limit))
    if found is not None and found.is_all and not found.points.num_rows and found.events:
        from acep_approx.why.no_match import explain_no_match

        with matches.source.looked_at():
            source, roles, is_sorted = matches.source.beside(), matches.question.roles, matches.question.sort
            reasons = explain_no_match(matches.plan, source, roles, sort=is_sorted, most=EXPLAINED)
        return view(title(_headline(found)), query, *reasons.parts())
    some = "" if matches.limit is None else f"The first {matches.limit:,} matches of those of "
    return view(title(some + _headline(found)), query, *_found(found, matches.source.rows))


def budgeted_view(matches: Any) -> str:
    """The same inside a budget; and where something was run already what that run did."""
    query = code(bounded(str(matches.plan.query.text)))
    budget = soft(f"inside a budget of {matches.load.budget}; record() says what a run did, report(path) writes a page")
    if matches.source.reusable:
        found = preview(matches)
        return view(title(_headline(found)), budget, query, *_found(found, matches.source.rows))
    return view(title("Matches"), budget, query, soft("The events can be read only once, so they are not read here."))


def _headline(found: Preview | None) -> str:
    if found is None:
        return "Matches"
    some = found.points.num_rows
    return f"{counted(some, 'match point')} in {'' if found.is_all else 'the first '}{found.events:,} events"


def _found(found: Preview | None, rows: int | None) -> Iterator[str]:
    """The picture, the first matches, and what was left out."""
    if found is None:
        many = rows is None or rows > MOST_EVENTS
        yield soft("To sort them all events are read, which a display does not do." if many else "There are no events.")
        return
    if not found.is_all:
        of = f" of {rows:,}" if rows is not None else ""
        yield soft(f"A display reads the beginning: {found.events:,}{of} events. points() and to_arrow() find all.")
    if not found.points.num_rows:
        where = "in them" if found.is_all else "there"
        yield soft(f"There is no match {where}; no_match() says which step no event passed.")
        return
    is_time = pa.types.is_timestamp(found.points.schema.field("end").type)
    yield f'<div class="wide">{_scrolls(svg(found.points, is_time=is_time))}</div>'
    shown, what = (found.matches, "matches") if found.matches.num_columns else (found.points, "match points")
    first = shown.slice(0, FIRST)
    yield rows_of(first.column_names, first.to_pylist(), 0, f"the first {what}")


def _scrolls(picture: str) -> str:
    """A picture that is never so small that its texts cannot be read."""
    return picture.replace("<svg ", '<svg style="min-width:620px;max-width:960px" ', 1)


# --- one match --------------------------------------------------------------------------------------------------


def match_view(match: Any) -> str:
    """The events of a match on a line, in the order of the pattern, with those that are missing."""
    errors = f"{match.errors} error{'' if match.errors == 1 else 's'}"
    key = ", ".join(f"{name} {value}" for name, value in match.key.items())
    head = f"Match{f' of {key}' if key else ''}, {errors}, from {match.start} to {match.end}"
    if not match.shows_events:
        body = rows_of([*match.values], [match.values], 1)
        return view(title(head), body, soft(f"missing: {', '.join(match.missing)}") if match.missing else "")
    stations = [*_stations(match)]
    left = len(stations) - STATIONS
    return view(
        title(head),
        f'<div class="wide">{_line(stations[:STATIONS])}</div>',
        soft(f"and {left:,} more events") if left > 0 else "",
    )


def _stations(match: Any) -> Iterator[tuple[str, str, bool]]:
    """Name of a variable, text of its event, and whether that is there."""
    for name, value in match.values.items():
        if name in match.missing:
            yield name, "missing", False
        elif isinstance(value, list):
            for number, one in enumerate(value, 1):
                yield f"{name}[{number}]", _event(one), True
        elif value is not None:
            yield name, _event(value), True


def _event(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"row {value:,}"
    return ", ".join(f"{name} {one}" for name, one in value.items()) if isinstance(value, dict) else str(value)


def _line(stations: list[tuple[str, str, bool]]) -> str:
    """Stations on a line, in rows that fit a phone or a page as they are needed."""
    texts = [(shortened(name, STATION), shortened(said, STATION), there) for name, said, there in stations]
    sizes = [max(width(name, 13.5), width(said, 11.5), 30.0) + GAP for name, said, _ in texts]
    at, places = 12.0, []
    for size in sizes:
        places.append(at + size / 2)
        at += size
    parts = []
    for (name, text, there), (full, all_said, _), x in zip(texts, stations, places, strict=True):
        kind = "there" if there else "gone"
        parts.append(
            f'<g><title>{escape(full)}: {escape(all_said)}</title><circle class="{kind}" cx="{x:.1f}" cy="36" r="8"/>'
            f'<text class="name" x="{x:.1f}" y="18" text-anchor="middle">{escape(name)}</text>'
            f'<text class="note" x="{x:.1f}" y="62" text-anchor="middle">{escape(text)}</text></g>'
        )
    ends = f"M{places[0]:.1f} 36H{places[-1]:.1f}" if places else ""
    style = (
        ".acep-graph .there{fill:var(--c0)}.acep-graph .track{stroke:var(--line);stroke-width:2}"
        ".acep-graph circle.gone{fill:var(--back);stroke:var(--c1);stroke-width:2;stroke-dasharray:3 3}"
    )
    total = max(at + 12, 120)
    return (
        f'<svg class="acep-graph" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} 74" width="{total:.0f}" '
        f'height="74" style="max-width:{total:.0f}px;min-width:{min(total, 0.8 * total):.0f}px" role="img" '
        f'aria-label="the events of a match"><style>{COLOURS}{GRAPH}{style}</style>'
        f'<path class="track" d="{ends}"/>{"".join(parts)}</svg>'
    )


# --- a run under a budget ---------------------------------------------------------------------------------------


def record_view(record: RunRecord) -> str:
    """The four numbers to know, and work against its bound over time."""
    estimate = record.recall
    found = "unknown" if estimate is None or estimate.recall is None else percent(estimate.recall)
    recall = (found, f"estimated recall: {recall_words(estimate).removeprefix('unknown: ')}")
    return _spent_view(record, record.source, f"{record.bound}; ", [recall, *spent(record)])


def shared_view(record: SharedRecord) -> str:
    """The same of a budget that queries, or rules, share."""
    return _spent_view(record, record.source, "", numbers(record))


def _spent_view(record: SpentRecord, source: str, bound: str, known: list[tuple[str, str]]) -> str:
    drawing = f'<div class="wide">{_scrolls(load(record))}</div>' if record.pieces else ""
    rules = re.findall(r"\.chart[^{}]*\{[^{}]*\}", part_of_page("page.css"))  # about pictures with a frame
    style = "".join(f".acep-view {rule}" for rule in rules)
    of = f"{source} under" if source else "A run under"
    return view(
        title(f"{of} a budget of {record.budget}"),
        soft(f"{bound}exact run: {need_words(record)}"),
        tiles(known),
        f"<style>{style}</style>{drawing}" if drawing else soft("There were no events."),
    )


# --- tuning -----------------------------------------------------------------------------------------------------


def tuning_view(tuning: Any) -> str:
    """What each choice finds within each budget, as a table."""
    head = ["ERRORS", "WITHIN", "match points", "matches", "run-steps per event", *map(str, tuning.budgets)]
    rows = []
    for trial in tuning.trials:
        found, recalls = ["-", "-"], ["too much"] * len(tuning.budgets)
        if not trial.skipped:
            found = [f"{trial.points:,}", said(trial.matches)]
            recalls = [trial.recall_words(number) for number in range(len(trial.recalls))]
        steps = "-" if trial.skipped and not trial.steps else f"{trial.steps:,.3g}"
        rows.append([str(trial.errors), trial.within, *found, steps, *recalls])
    told = f"learned from {tuning.trained:,} events, measured on the {tuning.measured:,} after them"
    return view(
        title("What each choice finds, and what each budget finds of it"),
        table(head, rows, "", range(2, len(head))),
        soft(f"{told}; below a budget stands which share of the match points it found"),
    )


LISTABLE = 1_000_000
"""Matches of the first events from which on none is listed: those of one event are put in order, so all are made."""
MOST_EVENTS, MOST_SECONDS, PIECE = 200_000, 2.0, 20_000
"""A display reads no more events, and takes no more time; between pieces of so many it looks at the clock."""


@dataclass(frozen=True)
class Preview:
    """What was found in the beginning of the events, or in all of them.

    Attributes
    ----------
    points : pyarrow.Table
    matches : pyarrow.Table
        The first few.
    events : int
        How many were read.
    is_all : bool
        Whether these were all.
    """

    points: pa.Table
    matches: pa.Table
    events: int
    is_all: bool


def preview(asked: Any, most: int | None = None) -> Preview | None:
    """Run a question over the beginning of its events.

    Parameters
    ----------
    asked : Matches
        Of events that can be read several times. What is remembered of their last pass stays, and files for rows that
        are left out are not written.
    most : int, optional
        Matches that are wanted; none are listed where there are too many. Default: match points only.

    Returns
    -------
    Preview or None
        None: there are no columns, or too many events to sort.
    """
    source, sort = asked.source, asked.question.sort
    if not len(source.schema) or (sort and (source.rows is None or source.rows > MOST_EVENTS)):
        return None
    is_listed = most is not None and ((known := much(asked)) is None or known.matches <= LISTABLE)
    points, matches = asked.asking().begun(POINTS), asked.asking().begun(MATCHES) if is_listed else None
    found, first = [points.pipeline.nothing()], [] if matches is None else [matches.pipeline.nothing()]
    begun, is_all, wanted = time.perf_counter(), True, most or 0
    with source.looked_at():  # its reader knows of rows that cannot be read
        for batch in read_events(source.beside(), points.roles, sort=sort, batch_rows=PIECE):
            if points.progress.events >= MOST_EVENTS or time.perf_counter() - begun > MOST_SECONDS:
                is_all = False
                break
            found += points.run(batch)
            if matches is not None and wanted > 0:
                for table in matches.run(batch):
                    first.append(table.slice(0, wanted))
                    wanted -= first[-1].num_rows
    if is_all:
        found.append(points.finish(ended=asked.question.ended))
        if matches is not None and wanted > 0:
            first.append(matches.finish(ended=asked.question.ended).slice(0, wanted))
    return Preview(gathered_table(found), gathered_table(first), points.progress.events, is_all)
