"""The explorer of a run: one page of HTML that loads nothing, with all it shows as data in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acep_approx.arrays import Ints
from acep_approx.diagrams.fragments import tiles
from acep_approx.events.counts import counted, said
from acep_approx.pages.code import code, command
from acep_approx.pages.over_time import Near, OverTime, Points
from acep_approx.pages.shell import facts, page
from acep_approx.timeline.picture import moment_text
from acep_approx.visible import escape

ROWS = 50
"""Matches of the table that those without a script see."""
OF_QUERY = ("name", "variables", "conditions", "uses", "window", "span", "total", "listed", "columns")
"""What the script is told of a query, in this order."""
SHORT = 24
"""Lines of a query that is not folded away."""


@dataclass(frozen=True)
class Condition:
    """A condition as text, and the (variable, attribute) that it reads of single events."""

    text: str
    reads: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class QueryShown:
    """A query, or a rule, and what it found.

    Attributes
    ----------
    name : str
        Empty where there is one query only.
    text : str
    variables : tuple of (str, str)
        In the order of the pattern, each with its type (empty: any). Results in CEL have none: their events show types.
    conditions : tuple of Condition
    uses : tuple of (str, str)
        The (variable, attribute) that it reads anywhere; without variable: of any event.
    window : str
        In words; empty: none.
    span : int
        The window in ticks; 0 where it counts events, or there is none.
    found : mapping of int to int
        Matches by number of errors.
    ticks, errors : numpy.ndarray of int64
        Of the match points, in order of time.
    listed : int
        Of the matches, how many the page holds.
    columns : tuple of str
        Names of the values that its matches have beside their events.
    """

    name: str
    text: str
    variables: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...]
    window: str
    span: int
    found: Mapping[int, int]
    ticks: Ints = field(repr=False)
    errors: Ints = field(repr=False)
    listed: int = 0
    columns: tuple[str, ...] = ()
    uses: tuple[tuple[str, str], ...] = ()

    @property
    def total(self) -> int:
        """All its matches."""
        return sum(self.found.values())


@dataclass(frozen=True)
class EventShown:
    """An event: its time, its type, and its values in the order of ``Explored.attributes``."""

    tick: int
    type: str | None
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class MatchShown:
    """A match.

    Attributes
    ----------
    query : int
        Number of its query.
    errors : int
    start, end : int
        Ticks.
    key : tuple of str or None
    missing : tuple of str
        Variables.
    events : tuple of (str, int)
        Variables, each with the row of its event, in order of time.
    hidden : int
        Events that are not listed.
    values : tuple of str or None
        By ``QueryShown.columns``.
    """

    query: int
    errors: int
    start: int
    end: int
    key: tuple[str | None, ...]
    missing: tuple[str, ...] = ()
    events: tuple[tuple[str, int], ...] = ()
    hidden: int = 0
    values: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class NearShown:
    """A place where a match nearly was, and why it was not.

    Attributes
    ----------
    query : int
    start, tick : int
        Of the first and of the last event of the furthest partial match.
    key : tuple of str or None
    errors : int
    events : tuple of (str, int)
        As of a match.
    why : str
        ``window closed``, ``stream ended``, ``broken`` or ``refused``; ``shed``: it is a match, and a budget shed it.
    awaited : tuple of str
        Variables that could have come next; of what was shed those that are missing.
    headline : str
    lines, helps : tuple of str
        The answer in words, and what would have made a match.
    ask : str
        The command that asks for it again.
    """

    query: int
    start: int
    tick: int
    key: tuple[str | None, ...]
    errors: int
    events: tuple[tuple[str, int], ...]
    why: str
    awaited: tuple[str, ...]
    headline: str
    lines: tuple[str, ...]
    helps: tuple[str, ...]
    ask: str


@dataclass(frozen=True)
class Explored:
    """A run as the explorer shows it.

    Attributes
    ----------
    title : str
    explanation : sequence of str
        A few sentences; may be empty.
    facts : sequence of (str, str)
        What was read, in words.
    tiles : sequence of (str, str)
        Numbers to know, each with what it is.
    is_time : bool
        Whether ticks are microseconds since 1970.
    keys, attributes : tuple of str
        Names of the equivalence attributes, and of the values of events; the first ``used`` of these are those that
        the query names.
    queries : sequence of QueryShown
    matches : sequence of MatchShown
    events : mapping of int to EventShown
        By row.
    near : sequence of NearShown
    near_note : str
        How many of how many there are, or why there are none.
    ask : str
        How to ask for any other place; empty: it cannot be asked.
    again : sequence of (str, str)
        How the page is made again: where, and the command or the call.
    again_notes : sequence of str
        What else is to be known for that.
    notes : sequence of str
        What is left out.
    """

    title: str
    queries: Sequence[QueryShown]
    matches: Sequence[MatchShown] = ()
    events: Mapping[int, EventShown] = field(default_factory=dict)
    near: Sequence[NearShown] = ()
    near_note: str = ""
    explanation: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    tiles: Sequence[tuple[str, str]] = ()
    is_time: bool = False
    keys: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    used: int = 0
    ask: str = ""
    again: Sequence[tuple[str, str]] = ()
    again_notes: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def total(self) -> int:
        """All matches of all queries."""
        return sum(query.total for query in self.queries)


def explorer_page(run: Explored, more: Iterable[str] = ()) -> str:
    """The page as text.

    Parameters
    ----------
    run : Explored
        What the run found.
    more : iterable of str
        Further sections, as HTML.

    Returns
    -------
    str
        HTML with its style, its pictures, its data and its script; needs no network. Without a script the picture and
        the first matches are there. The same for the same run.

    Complexity: linear in what ``run`` holds.
    """
    picture = _picture(run)
    sections = [*_head(run), *_over_time(picture), *_matches(run), *more]
    if run.again:
        sections += ["<h2>To make this page again</h2>", *(f"<p>{escape(text)}</p>" for text in run.again_notes)]
        sections += [f"<h3>{escape(name)}</h3>{command(text)}" for name, text in run.again]
    data = page_data(run, picture)
    return page(run.title, sections, sheets=["explorer.css"], script="explorer.js", data=data)


# --- sections -----------------------------------------------------------------------------------------------


def _head(run: Explored) -> Iterator[str]:
    yield f"<h1>{escape(run.title)}</h1>"
    yield from (f"<p>{escape(text)}</p>" for text in run.explanation)
    if run.tiles:
        yield tiles(run.tiles)
    if len(run.queries) == 1 and not run.queries[0].name:
        text = run.queries[0].text
        if text.count("\n") < SHORT:
            yield code(text)
        else:
            yield f"<details open><summary>the query</summary>{code(text)}</details>"
    else:
        yield "<h2>Queries</h2>"
        yield from (_folded(query) for query in run.queries)
    if run.facts:
        yield facts(run.facts)
    yield from (f'<p class="soft">{escape(note)}</p>' for note in run.notes)


def _folded(query: QueryShown) -> str:
    by_errors = ", ".join(f"{said(n)} with {counted(errors, 'error')}" for errors, n in query.found.items() if n)
    plural = "match" if query.total == 1 else "matches"
    total = f"{said(query.total)} {plural}" + (f": {by_errors}" if len(query.found) > 1 and by_errors else "")
    return (
        f'<details class="query"><summary><b>{escape(query.name)}</b> <span>{escape(total)}</span></summary>'
        f"{code(query.text)}</details>"
    )


def _picture(run: Explored) -> OverTime | None:
    if not run.near and not any(len(query.ticks) for query in run.queries):
        return None
    points = [Points(query.name, query.ticks, query.errors) for query in run.queries]
    near = []
    for one in run.near:
        said = " · ".join([_moment(one.tick, is_time=run.is_time), *(k or "-" for k in one.key)])
        near.append(Near(one.tick, said, one.why == "shed"))
    least = max([1, *(query.span for query in run.queries)])
    return OverTime(points, near, is_time=run.is_time, least=least)


def _over_time(picture: OverTime | None) -> Iterator[str]:
    yield '<h2 id="over-time">Over time</h2>'
    if picture is None:
        yield "<p>No match point was found, and nothing came near to one.</p>"
        return
    yield (
        '<p class="soft">A match point is an event that completes a match. <span class="with-script">Choose a bar, or '
        "draw across some, to see the matches there; with the keyboard: arrow keys, Enter, Shift for more, Escape."
        "</span></p>"
    )
    yield picture.html()
    yield '<p class="with-script chosen" id="chosen" role="status" aria-live="polite"></p>'


def _matches(run: Explored) -> Iterator[str]:
    yield '<h2 id="matches">Matches, event by event</h2>'
    if run.near_note:
        yield f'<p class="soft with-script">{escape(run.near_note)}</p>'
    if run.ask:
        yield f'<details class="with-script"><summary>ask about any other place</summary>{command(run.ask)}</details>'
    if not run.matches and not run.near:
        yield "<p>There is no match to look at.</p>"
        return
    yield '<div id="explorer" class="with-script"></div>'
    if run.matches:
        yield f'<div class="no-script">{_table(run)}</div>'


def _table(run: Explored) -> str:
    """The first matches, for those without a script."""
    many = len(run.queries) > 1
    head = [*(["query"] if many else []), *run.keys, "errors", "from", "to", "missing", "events"]
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in _cells(run, one, many=many)) for one in run.matches[:ROWS])
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    caption = f"the first {min(ROWS, len(run.matches)):,} of {said(run.total)} matches"
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{caption}</caption><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n'
        "</tbody></table></div>"
    )


def _cells(run: Explored, one: MatchShown, *, many: bool) -> Iterator[str]:
    if many:
        yield run.queries[one.query].name
    yield from (key or "-" for key in one.key)
    yield f"{one.errors:,}"
    yield from (_moment(tick, is_time=run.is_time) for tick in (one.start, one.end))
    yield ", ".join(one.missing)
    named = [_event(run, one.query, variable, row) for variable, row in one.events[:5]]
    values = [f"{name} {value}" for name, value in zip(run.queries[one.query].columns, one.values, strict=False)]
    yield ", ".join([*named, *(["..."] if len(one.events) > 5 or one.hidden else []), *values])


def _event(run: Explored, query: int, variable: str, row: int) -> str:
    """An event of a match in words: its time, and what the query names of it."""
    event = run.events.get(row)
    if event is None:  # only those of the matches in the table are known
        return f"{variable} row {row}".strip()
    named = {name for of, name in run.queries[query].uses if of in ("", variable)}
    values = zip(run.attributes, event.values, strict=True)
    shown = [f"{name} {value}" for name, value in values if name in named and value is not None]
    return f"{variable} ({', '.join([_moment(event.tick, is_time=run.is_time), *shown])})".strip()


# --- data ---------------------------------------------------------------------------------------------------


def page_data(run: Explored, picture: OverTime | None) -> dict[str, Any]:
    """What the script reads: short lists in the place of objects, where there are many."""
    binned = []  # match points by query and bin: so that it can say how many of them have a match in the table
    if picture is not None:
        for query in run.queries:
            bins = picture.bins(query.ticks)
            binned.append({str(place): int(bins[place]) for place in bins.nonzero()[0].tolist()})
    return {
        "time": run.is_time,
        "edges": [] if picture is None else picture.edges.tolist(),
        "keys": run.keys,
        "attributes": run.attributes,
        "used": run.used,
        "in_all": said(run.total),
        "queries": [
            {
                **{name: getattr(query, name) for name in OF_QUERY},
                "conditions": [[one.text, one.reads] for one in query.conditions],
            }
            for query in run.queries
        ],
        "points": binned,
        "events": {str(row): [event.tick, event.type, *event.values] for row, event in run.events.items()},
        "matches": [[*vars(one).values()] for one in run.matches],
        "near": [vars(one) for one in run.near],
    }


def _moment(tick: int, *, is_time: bool) -> str:
    """A tick for people, without seconds where there are none."""
    return moment_text(tick, is_time=is_time).removesuffix(":00")
