"""The explorer of the matches of one query."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import to_numpy
from acep_approx.matching.pipeline import Pipeline
from acep_approx.pages.explorer.data import Condition, Explored, QueryShown
from acep_approx.pages.explorer.page import explorer_page
from acep_approx.pages.over_time import errors_text
from acep_approx.planning.planner import Plan
from acep_approx.query.printer import to_text
from acep_approx.query.shape import atoms, expressions_of, walk
from acep_approx.query.syntax import Aggregate, Attribute, Expression, Machine, Window
from acep_approx.results.exploring.events import EventColumns, events_at
from acep_approx.results.exploring.found import Found, Labels, by_rows, check_reusable, silent
from acep_approx.results.exploring.listing import Listing, listing
from acep_approx.results.exploring.near import asking, near_matches


def page_text(found: Found, labels: Labels) -> str:
    """The explorer of matches as HTML.

    Parameters
    ----------
    found : Found
        The matches.
    labels : Labels

    Raises
    ------
    UsageError
        ``ACEP-U150``: the events can be read only once.
    """
    check_reusable(found.source)
    more = list(found.page_sections())
    return explorer_page(explored(found, labels), more)


def explored(found: Found, labels: Labels) -> Explored:
    """What the explorer shows.

    Complexity: up to seven passes over the events, each bounded in memory; see ``listing`` and ``near``.
    """
    found = silent(found)
    counts = found.count_by_errors()
    plain = by_rows(found)  # after the first pass, which warns if something is wrong
    _, pipeline = found.source.settle(partial(plain._bound, "points"))
    if pipeline is None:  # no columns, no events
        return _empty(found, labels)
    points = plain.points()
    chosen = listing(found, sum(counts.values()))
    near = near_matches(plain, labels, points)
    read = plain.progress
    columns = _columns(found, pipeline)
    bound = [*(one.events for one in chosen.matches), *(one.events for one in near.places)]
    rows = np.unique(np.array([row for events in bound for _, row in events], np.int64))
    ends = points.column("end").combine_chunks()
    is_time = pa.types.is_timestamp(ends.type)
    ticks, errors = to_numpy(ends.cast(pa.int64())), to_numpy(points.column("errors").combine_chunks().cast(pa.int64()))
    by_time = np.argsort(ticks, kind="stable")
    query = query_shown(pipeline.plan, pipeline.window, counts, ticks[by_time], errors[by_time], chosen)
    facts = [("events", f"{read.events:,} read, {read.relevant:,} relevant to the query")]
    facts += [("window", query.window)] if query.window else []
    return Explored(
        title=labels.title or _title(query.total, labels.source),
        told=labels.told,
        queries=[query],
        matches=chosen.matches,
        events=events_at(found.source, pipeline.roles, rows, columns, sort=found._sort),
        near=near.places,
        near_told=near.told,
        facts=[*([("input", labels.source)] if labels.source else []), *facts, *_left_out(found)],
        tiles=tiles_of(counts, errors),
        is_time=is_time,
        keys=tuple(one.name for one in found.plan.query.equivalences),
        attributes=columns.names,
        used=columns.used,
        ask=_ask(found, labels, is_time=is_time),
        again=again(found, labels),
        notes=[chosen.note] if chosen.note else [],
        again_told=labels.notes,
    )


def _title(total: int, source: str) -> str:
    number = f"{total:,} match{'' if total == 1 else 'es'}" if total else "No match"
    return f"{number} in {source}" if source else number


def _empty(found: Found, labels: Labels) -> Explored:
    none = np.zeros(0, np.int64)
    query = query_shown(found.plan, 0, {}, none, none, Listing([], (), ""))
    title = labels.title or _title(0, labels.source)
    return Explored(title, [query], told=("There were no events.",), again=again(found, labels))


def tiles_of(counts: dict[int, int], errors: Ints) -> list[tuple[str, str]]:
    """Numbers to know of matches by errors, and of match points."""
    total = sum(counts.values())
    told = [
        (f"{total:,}", "match" if total == 1 else "matches"),
        (f"{len(errors):,}", f"match point{'' if len(errors) == 1 else 's'}: events that complete one"),
    ]
    if len(counts) > 1:
        levels, numbers = np.unique(errors, return_counts=True)
        by_level = dict(zip(levels.tolist(), numbers.tolist(), strict=True))
        told += [
            (f"{by_level.get(level, 0):,}", f"match points that take {errors_text(level)}" if level else
             "match points where nothing is missing")
            for level in list(counts)[:3]
        ]  # fmt: skip
    return told


def _left_out(found: Found) -> Iterator[tuple[str, str]]:
    told = {
        "late": found.source.late.count,
        "could not be read": found.source.malformed.count,
        "without key": found.progress.without_key,
    }
    words = ", ".join(f"{number:,} {name}" for name, number in told.items() if number)
    if words:
        yield "left out", words


# --- the query ----------------------------------------------------------------------------------------------


def query_shown(
    plan: Plan, window: int, counts: dict[int, int], ticks: Ints, errors: Ints, chosen: Listing, name: str = ""
) -> QueryShown:
    """A query as a page shows it.

    Parameters
    ----------
    plan : Plan
    window : int
        In ticks.
    counts : dict of int to int
        Matches by errors.
    ticks, errors : numpy.ndarray of int64
        Of the match points.
    chosen : Listing
        Some of its matches.
    name : str
    """
    query = plan.query
    unbounded = query.window.unit == "unbounded"
    return QueryShown(
        name=name,
        text=str(query.text).strip() or to_text(query),
        variables=_variables(plan),
        conditions=_conditions(plan),
        uses=_uses(plan),
        window="" if unbounded else _window(query.window),
        span=0 if plan.is_count_window or unbounded else window,
        found=counts,
        ticks=ticks,
        errors=errors,
        listed=len(chosen.matches),
        columns=chosen.columns,
    )


def _window(window: Window) -> str:
    return f"{window.amount:g} {window.unit}"


def _variables(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The variables that matches show, in the order of the text, each with its type."""
    query = plan.query
    if query.is_algebra:
        return ()
    pattern = query.pattern
    parts = pattern.arcs if isinstance(pattern, Machine) else atoms(pattern)
    types = {part.variable: part.type or "" for part in parts if part.variable}
    if query.is_regex:
        return tuple(types.items())
    return tuple((name, type_) for name, type_ in types.items() if name in plan.automaton.shown)


def _conditions(plan: Plan) -> tuple[Condition, ...]:
    query = plan.query
    if query.is_algebra:  # its text says them better
        return ()
    letters = (Condition(f"{one.letter} AS {to_text(one.condition)}") for one in query.definitions)
    return (*(Condition(to_text(one), _reads(one)) for one in query.predicates), *letters)


def _reads(condition: Expression) -> tuple[tuple[str, str], ...]:
    """The (variable, attribute) of single events that a condition reads."""
    leaves = [leaf for leaf in walk(condition) if isinstance(leaf, Attribute)]
    return tuple(dict.fromkeys((leaf.variable or "", leaf.name) for leaf in leaves))


def _uses(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The (variable, attribute) that a query reads anywhere; without variable: of any event."""
    query = plan.query
    trees = [*query.predicates, *(one.value for one in query.outputs), *(one.condition for one in query.definitions)]
    if isinstance(query.pattern, Machine):
        trees += expressions_of(query.pattern)
    leaves = [leaf for tree in trees for leaf in walk(tree) if isinstance(leaf, (Attribute, Aggregate))]
    used = ((leaf.variable or "", leaf.name) for leaf in leaves if leaf.name not in (None, "ts", "type"))
    return tuple(dict.fromkeys(used))


def _columns(found: Found, pipeline: Pipeline) -> EventColumns:
    """Which values of events are shown: those the query names, those of ``bind``, some others."""
    bound = found._options.get("bind") or ()
    named = [*(name for _, name in _uses(found.plan)), *([bound] if isinstance(bound, str) else bound)]
    schema = found.source.schema
    keys = [one.name for one in found.plan.query.equivalences]
    return EventColumns.of(pipeline.roles, schema, named, keys)


# --- how it is made again -----------------------------------------------------------------------------------


def _ask(found: Found, labels: Labels, *, is_time: bool) -> str:
    keys = dict.fromkeys((one.name for one in found.plan.query.equivalences), "VALUE")
    return asking(labels, "TIME", keys, is_time=is_time)


def again(found: Found, labels: Labels) -> list[tuple[str, str]]:
    """The command, where there is one, and the call of Python."""
    roles = {name: value for name, value in found._options.items() if value is not None and name != "merge"}
    if found._sort:
        roles["sort"] = True
    given = "".join(f", {name}={getattr(value, 'value', value)!r}" for name, value in roles.items())  # not as an Enum
    text = str(found.plan.query.text).strip() or to_text(found.plan.query)
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    call = (
        "from acep_approx import compile_query\n\n"
        f'query = compile_query("""\n{text}\n""")\n'
        f'query.match({labels.events}{given}).page("page.html")'
    )
    return [*([("On the command line", labels.command)] if labels.command else []), ("In Python", call)]
