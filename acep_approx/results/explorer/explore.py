"""The explorer of the matches of one query, and how a page shows any query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import integers
from acep_approx.events.counts import counted, said
from acep_approx.matching.outputs.bind import Wide, columns_of
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.pages.explorer import Condition, Explored, QueryShown, explorer_page
from acep_approx.planning.planner import Plan
from acep_approx.query.cel.parser import parse_cel
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.shape import atoms, expressions_of, negated_variables, walk
from acep_approx.query.syntax import Aggregate, Attribute, Machine, QuerySyntax
from acep_approx.results.explorer.explorable import Explorable, PageLabels, by_rows, keys_of, said_left_out
from acep_approx.results.explorer.listing import EventColumns, Listing, events_at, in_time_order, listing, with_events
from acep_approx.results.explorer.near_matches import near_or_shed, number_of_places


def page_text(found: Explorable, labels: PageLabels) -> str:
    """The explorer of matches as HTML.

    Parameters
    ----------
    found : Explorable
        The matches, of events that can be read several times; see ``explorable.reread``.
    labels : PageLabels
    """
    # a whole pass: late events and rows that cannot be read are written
    counts = found.asking(on_progress=None).count_by_errors()
    with found.source.looked_at():
        more = list(found.page_sections())
        return explorer_page(explored(found, labels, counts), more)


def explored(found: Explorable, labels: PageLabels, counts: dict[int, int]) -> Explored:
    """What the explorer shows, of which the matches by number of errors are known.

    Complexity: up to seven passes over the events, each bounded in memory; see ``listing`` and ``near``.
    """
    found = found.asking(on_progress=None)
    found.has_warned = True  # in the first pass
    plain = by_rows(found)
    pipeline = plain.begun(BARE).pipeline
    if pipeline is None:  # no columns, no events
        none = np.zeros(0, np.int64)
        query = query_shown(found.plan.query, 0, PointsOf({}, none, none), Listing([], (), ""))
        title, again = labels.title or _title(0, labels.source), how_to_reproduce(found, labels)
        return Explored(title, [query], explanation=("There were no events.",), again=again)
    points = plain.points()
    read = plain.progress  # of a whole pass: others stop early
    late, malformed = found.source.late.count, found.source.malformed.count
    left_out = said_left_out(late, malformed, read.without_key)
    is_time = pa.types.is_timestamp(points.schema.field("end").type)
    chosen = listing(found, sum(counts.values()))
    if pipeline.plan.query.is_algebra and chosen.matches:
        chosen = with_events(plain, chosen, number_of_places(plain, points, pipeline.window), is_time=is_time)
    near = near_or_shed(plain, labels, points)
    keys = keys_of(found)
    named = [*(name for _, name in uses(found.plan.query)), *columns_of(found.question.bind)]
    columns = EventColumns.of(pipeline.roles, found.source.schema, named, keys)
    bound = [*(one.events for one in chosen.matches), *(one.events for one in near.places)]
    rows = np.unique(np.array([row for events in bound for _, row in events], np.int64))
    points_of = PointsOf.of(counts, integers(points, "end"), integers(points, "errors"))
    query = query_shown(pipeline.plan.query, pipeline.window, points_of, chosen)
    facts = [("events", f"{read.events:,} read, {read.relevant:,} relevant to the query")]
    facts += [("window", query.window)] if query.window else []
    facts += [("keys", f"{read.keys_dropped:,} dropped without an event for long")] if read.keys_dropped else []
    events = events_at(found.source, pipeline.roles, rows, columns, sort=found.question.sort)
    kept = found.source.kept
    return Explored(
        title=labels.title or _title(query.total, labels.source),
        explanation=labels.explanation if query.total else (*labels.explanation, capital(found.no_match().headline)),
        queries=[query],
        matches=in_time_order(chosen.matches, events),
        events=events,
        near=near.places,
        near_note=near.note,
        facts=[*([("input", labels.source)] if labels.source else []), *facts, *left_out, *labels.facts],
        tiles=tiles_of(counts, points_of.errors),
        is_time=is_time,
        keys=tuple(keys),
        attributes=columns.names,
        used=columns.used,
        ask=labels.asking("TIME", dict.fromkeys(keys, "VALUE"), is_time=is_time),
        again=how_to_reproduce(found, labels),
        notes=[note for note in (chosen.note, kept.note if kept else "") if note],
        again_notes=labels.notes,
    )


def capital(text: str) -> str:
    """Words as a sentence.

    Examples
    --------
    >>> capital("no match: no event is A")
    'No match: no event is A.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def _title(total: int, source: str) -> str:
    number = f"{capital(said(total))[:-1]} match{'' if total == 1 else 'es'}" if total else "No match"
    return f"{number} in {source}" if source else number


def tiles_of(counts: dict[int, int], errors: Ints) -> list[tuple[str, str]]:
    """Numbers to know of matches by errors, and of match points."""
    total = sum(counts.values())
    tiles = [
        (said(total), "match" if total == 1 else "matches"),
        (f"{len(errors):,}", f"match point{'' if len(errors) == 1 else 's'}: events that complete one"),
    ]
    if len(counts) > 1:
        levels, numbers = np.unique(errors, return_counts=True)
        by_level = dict(zip(levels.tolist(), numbers.tolist(), strict=True))
        tiles += [
            (f"{by_level.get(level, 0):,}", f"match points that take {counted(level, 'error')}" if level else
             "match points where nothing is missing")
            for level in list(counts)[:3]
        ]  # fmt: skip
    return tiles


# --- how it is made again -----------------------------------------------------------------------------------


def how_to_reproduce(found: Explorable, labels: PageLabels) -> list[tuple[str, str]]:
    """The command, where there is one, and the call of Python."""
    roles = {name: value for name, value in found.question.options.items() if value is not None and name != "merge"}
    if isinstance(roles.get("bind"), Wide):  # the page shows what the query names anyway
        roles.pop("bind")
        roles |= {"bind": list(columns)} if (columns := columns_of(found.question.bind)) else {}
    if found.question.sort:
        roles["sort"] = True
    policies = {"on_malformed": found.source.malformed.policy, "on_late": found.source.late.policy}
    roles |= {name: policy for name, policy in policies.items() if policy != "refuse"}
    given = "".join(f", {name}={getattr(value, 'value', value)!r}" for name, value in roles.items())  # not as an Enum
    text = str(found.plan.query.text).strip() or to_text(found.plan.query)
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    method, more = found.asked_by
    call = (
        "from acep_approx import compile_query\n\n"
        f'query = compile_query("""\n{text}\n"""{_replaced(found.plan)})\n'
        f'query.{method}({labels.events}{more}{given}).page("page.html")'
    )
    in_python = [("In Python", call)] if labels.events else []
    return [*([("On the command line", labels.command)] if labels.command else []), *in_python]


def _replaced(plan: Plan) -> str:
    """The arguments of ``compile_query`` that stand for other clauses than those of the text."""
    query, text = plan.query if plan.cel is None else plan.cel, plan.query.text
    if not text.strip():
        return ""
    written = parse(text, plan.query.functions) if plan.cel is None else parse_cel(text)
    errors = f", errors={query.errors}" if query.errors != written.errors else ""
    window = query.window
    return errors if window is None or window == written.window else f"{errors}, within={to_text(window)!r}"


@dataclass(frozen=True)
class PointsOf:
    """What a query found: matches by number of errors; of its match points ticks, in order, and errors."""

    counts: dict[int, int]
    ticks: Ints
    errors: Ints

    @classmethod
    def of(cls, counts: dict[int, int], ticks: Ints, errors: Ints) -> PointsOf:
        """Those of match points in any order."""
        by_time = np.argsort(ticks, kind="stable")
        return cls(counts, ticks[by_time], errors[by_time])


def query_shown(
    query: QuerySyntax, window: int, found: PointsOf, chosen: Listing, *, name: str = "", text: str = ""
) -> QueryShown:
    """A query as a page shows it.

    Parameters
    ----------
    query : QuerySyntax
    window : int
        In ticks, or in events; 0: not known.
    found : PointsOf
    chosen : Listing
        Some of its matches.
    name, text : str
        Empty: it has no name; it is its own text.
    """
    unbounded = query.window.unit == "unbounded"
    conditions: list[Condition] = []
    for one in query.predicates if not query.is_algebra else ():  # of CEL its text says them better
        leaves = [leaf for leaf in walk(one) if isinstance(leaf, Attribute)]
        reads = dict.fromkeys((leaf.variable or "", leaf.name) for leaf in leaves)
        conditions.append(Condition(to_text(one), tuple(reads)))
    if not query.is_algebra:
        conditions += [Condition(f"{one.letter} AS {to_text(one.condition)}") for one in query.definitions]
    return QueryShown(
        name=name,
        text=text or str(query.text).strip() or to_text(query),
        variables=variables(query),
        conditions=tuple(conditions),
        uses=uses(query),
        window="" if unbounded else f"{query.window.amount:g} {query.window.unit}",
        span=0 if query.window.unit == "events" or unbounded else window,
        found=found.counts,
        ticks=found.ticks,
        errors=found.errors,
        listed=len(chosen.matches),
        columns=chosen.columns,
    )


def variables(query: QuerySyntax) -> tuple[tuple[str, str], ...]:
    """The variables that matches show, in the order of the text, each with its type."""
    if query.is_algebra:
        return ()
    pattern = query.pattern
    parts = pattern.arcs if isinstance(pattern, Machine) else atoms(pattern)
    types = {part.variable: part.type or "" for part in parts if part.variable}
    if query.is_regex:
        return tuple(types.items())
    hidden = negated_variables(pattern)
    return tuple((name, type_) for name, type_ in types.items() if name not in hidden)


def uses(query: QuerySyntax) -> tuple[tuple[str, str], ...]:
    """The (variable, attribute) that a query reads anywhere; without variable: of any event."""
    trees = [*query.predicates, *(one.value for one in query.outputs), *(one.condition for one in query.definitions)]
    if isinstance(query.pattern, Machine):
        trees += expressions_of(query.pattern)
    leaves = [leaf for tree in trees for leaf in walk(tree) if isinstance(leaf, (Attribute, Aggregate))]
    used = ((leaf.variable or "", leaf.name) for leaf in leaves if leaf.name not in (None, "ts", "type"))
    return tuple(dict.fromkeys(used))
