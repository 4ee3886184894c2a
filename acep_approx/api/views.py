"""What a notebook shows of queries, of runs that go on, of sets, and of rules.

Their classes import this: it does not import them, not for types either, which would be a circle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice
from typing import Any

from acep_approx.automaton.draw import graph_of
from acep_approx.diagrams.fragments import (
    bounded,
    drawn,
    first_rows,
    folded,
    listed,
    plain,
    soft,
    table,
    tiles,
    title,
    view,
)
from acep_approx.diagrams.graph import Edge, Graph, Node
from acep_approx.diagrams.svg import WRITERS
from acep_approx.errors import UsageError
from acep_approx.pages.code import code
from acep_approx.query.rules.printer import to_text as text_of_rules
from acep_approx.rules.explain import graph_of as graph_of_rules
from acep_approx.timeline.picture import moment_text

FIRST, SAVED, NAMED = 10, 100_000, 2_000
"""Rows that are shown; most runs of which the state is measured; most queries that are looked at one by one."""


# --- queries ----------------------------------------------------------------------------------------------------


def query_view(query: Any) -> str:
    """The text, which engine runs it and why, the automaton, and the rest of the plan."""
    head, *reasons, rest = _engine(query.explain())
    return view(
        title(head),
        code(bounded(str(query))),
        listed(reasons),
        drawn(graph_of(query.plan.registers or query.plan.automaton)),
        folded("the plan", plain(rest)),
    )


def _engine(plan: str) -> list[str]:
    """Which engine, why, and the plan without its query."""
    rest = plan.partition("\n\n")[2] or plan
    lines = rest.splitlines()
    engine, because = lines[0].removeprefix("engine").strip(), []
    for line in lines[1:]:
        if not line.strip().startswith("because "):
            break
        because.append(line.strip())
    return [f"Query, run by the engine {engine}" if lines[0].startswith("engine") else "Query", *because, rest]


# --- runs that go on --------------------------------------------------------------------------------------------


def matcher_view(matcher: Any, *more: str) -> str:
    """The query, and how far the run has come: events, keys, runs, memory."""
    progress = matcher.progress
    relevant = (f"{progress.relevant:,}", "of them with a letter of the query")
    numbers = [(f"{progress.events:,}", "events so far"), relevant]
    if progress.keys:
        numbers.append((f"{progress.keys:,}", "keys with state"))
    if matcher.plan.registers is not None:
        numbers += [(f"{progress.live:,}", "live runs"), (f"{progress.steps:,}", "run-steps so far")]
    if progress.live + progress.keys <= SAVED:
        number = len(matcher.state_bytes())
        size, unit = (1, "B") if number < 10_000 else (1e3, "kB") if number < 1e7 else (1e6, "MB")
        numbers.append((f"{number / size:,.0f} {unit}", "to save its state"))
    at = "" if matcher.last_tick is None else moment_text(matcher.last_tick, is_time=matcher.pipeline.is_time)
    return view(
        title(f"Live run of a query, output {matcher.output}"),
        code(bounded(str(matcher.plan.query.text))),
        tiles(numbers),
        soft(at and f"the last event was at {at}"),
        *more,
    )


# --- many queries -----------------------------------------------------------------------------------------------


def set_view(desk: Any) -> str:
    """Who feeds whom, and the first queries."""
    levels, streams = desk.levels(), desk.streams()
    counts = {"queries": len(desk), "levels": len(levels), "streams published": len(streams)}
    numbers = [(f"{count:,}", name) for name, count in counts.items()]
    if len(desk) > NAMED:
        rows = [[str(level), f"{len(ids):,}", ", ".join(ids[:3])] for level, ids in sorted(levels.items())]
        return view(title("Set of queries"), tiles(numbers), table(["level", "queries", "such as"], rows, "", (0, 1)))
    level_of = {id_: level for level, ids in levels.items() for id_ in ids}
    shown = [[id_, str(level_of.get(id_, 0)), " ".join(desk.text(id_).split())] for id_ in islice(desk, FIRST)]
    caption = f"the first {len(shown)} of {len(desk):,} queries" if len(desk) > len(shown) else ""
    return view(
        title("Set of queries"),
        tiles(numbers),
        drawn(set_graph(levels, streams)),
        table(["id", "level", "query"], shown, caption, (1,)),
    )


def drawn_set(desk: Any, format: str) -> str:  # noqa: A002
    """The queries of a set, and the streams between them, as a picture; see ``QuerySet.graph``."""
    if format not in WRITERS:
        hint = "choose one of " + ", ".join(WRITERS)
        raise UsageError(f"there is no format {format!r}", code="ACEP-U001", hint=hint)
    return WRITERS[format](set_graph(desk.levels(), desk.streams()))


def set_graph(levels: Mapping[int, list[str]], streams: Mapping[str, tuple[list[str], list[str]]]) -> Graph:
    """Queries and the streams between them; queries that read and publish the same are one node.

    Parameters
    ----------
    levels : mapping of int to list of str
        Ids by level.
    streams : mapping of str to (list of str, list of str)
        For each stream who publishes and who reads it.
    """
    publishes, reads = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for name, (publishers, readers) in streams.items():
        for id_ in publishers:
            publishes[id_].append(name)
        for id_ in readers:
            reads[id_].append(name)
    groups: dict[tuple[int, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for level, ids in sorted(levels.items()):
        for id_ in ids:
            groups.setdefault((level, tuple(reads[id_]), tuple(publishes[id_])), []).append(id_)
    number = {name: f"s{i}" for i, name in enumerate(streams)}
    nodes, edges = [Node("events", "events", "stream")], []
    nodes += [Node(number[name], name, "stream") for name in streams]
    for i, ((_, read, published), ids) in enumerate(groups.items()):
        text = ids[0] if len(ids) == 1 else f"{len(ids):,} queries"
        notes = () if len(ids) == 1 else (", ".join(ids[:3]) + (", …" if len(ids) > 3 else ""),)
        nodes.append(Node(f"q{i}", f"{text}: {', '.join(ids[:20])}" if notes else text, "query", text, notes))
        edges += [Edge(number[name], f"q{i}") for name in read] or [Edge("events", f"q{i}")]
        edges += [Edge(f"q{i}", number[name]) for name in published]
    return Graph("queries", nodes, edges)


# --- rules ------------------------------------------------------------------------------------------------------


def rules_view(rules: Any) -> str:
    """Who reads and writes which table, the rules, and how they are run."""
    numbers = [(f"{len(rules.file.rules):,}", "rules"), (f"{len(rules.file.tables):,}", "tables")]
    return view(
        title("Rules"),
        tiles(numbers),
        drawn(graph_of_rules(rules._program)),
        folded("the rules", code(bounded(text_of_rules(rules.file)))),
        folded("how they are run", plain(rules.explain())),
    )


def rule_run_view(run: Any) -> str:
    """What happened so far, and the tables as they are now."""
    numbers = [(f"{number:,}", name.replace("_", " ")) for name, number in run.counters.items()]
    return view(title("Rules under way"), tiles(numbers), *(first_rows(one, name) for name, one in run.store.items()))
