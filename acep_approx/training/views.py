"""What a notebook shows of a history: its states, the ways between them that led to matches, and what budgets find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from acep_approx.diagrams.fragments import drawn, soft, table, tiles, title, view
from acep_approx.diagrams.graph import Edge, Graph, Node

if TYPE_CHECKING:
    from acep_approx.training.pricing import Prices
    from history.graph import Graph as History

LEAST = 0.005
"""Ways that a smaller share of the completions took are left out."""
MOST_PRICES = 8


def history_view(known: Any) -> str:
    """Numbers, states and ways, and what was found at which share of the work."""
    query = " ".join(str(known.query).split())
    if not known.is_fitted:
        return view(title("A history that has not learned anything yet"), soft(query), soft("fit(events) learns."))
    numbers = (
        (f"{known.events_:,}", "events learned from"),
        (f"{known.points_:,}", "match points in them"),
        (f"{known.steps_per_event_:,.3g}", "run-steps per event of the exact run"),
    )
    told = "A way is as thick as the share of the completions that took it; a state says what became of its runs."
    return view(title("History"), soft(query), tiles(numbers), drawn(history_graph(known.graph_)), soft(told),
                _prices(known.prices_))  # fmt: skip


def history_graph(history: History) -> Graph:
    """The history with all vertices of a place as one: a few states that a person can read.

    Parameters
    ----------
    history : history.graph.Graph

    Returns
    -------
    Graph
        From the start over the places that were visited to the match.
    """
    scheme, counts = history.scheme, history.counts
    size = len(scheme.places)
    place = np.repeat(scheme.place_of_group, scheme.cells)
    visits, led, reached, started, completed = (
        np.bincount(place, weights=column, minlength=size)
        for column in (counts.visits, counts.led, counts.reached, counts.started, counts.completed)
    )
    passed = np.zeros((size, size))
    np.add.at(passed, (place[counts.source], place[counts.target]), counts.passed)
    total = max(float(completed.sum()), 1.0)
    nodes = [Node("start", "start", is_start=True)]
    for number, one in enumerate(scheme.places):
        if visits[number]:
            errors = f", {one.errors} error{'' if one.errors == 1 else 's'}" if one.errors else ""
            share, gain = led[number] / visits[number], reached[number] / visits[number]
            notes = (f"{visits[number]:,.0f} visits", f"{share:.1%} led to a match", f"{gain:.3g} match points each")
            name = f"{one.state}{errors}"
            nodes.append(Node(f"p{number}", f"{name}: {', '.join(notes)}", name=name, notes=notes))
    flows = [("start", f"p{i}", started[i]) for i in range(size)]
    flows += [(f"p{i}", f"p{j}", passed[i, j]) for i in range(size) for j in range(size) if i != j]
    flows += [(f"p{i}", "match", completed[i]) for i in range(size)]
    edges = [Edge(a, b, f"{n / total:.0%}", weight=min(n / total, 1.0)) for a, b, n in flows if n >= LEAST * total]
    return Graph("history", [*nodes, Node("match", "match", "end")], edges)


def _prices(prices: Prices) -> str:
    """At which share of the work which share of the match points was found, in the end of the past."""
    known = sorted(zip(prices.shares.tolist(), prices.recalls.tolist(), strict=True), reverse=True)
    chosen = known if len(known) <= MOST_PRICES else known[:: -(-len(known) // MOST_PRICES)]
    if len(known) < 2:
        return ""
    rows = [[f"{share:.1%}", f"{recall:.1%}"] for share, recall in chosen]
    return table(["share of the work", "match points found"], rows, "replays of the end of the past", (0, 1))
