"""A graph to be drawn, as plain data: the one walk over an automaton, rules or queries ends here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

NodeKind = Literal["state", "end", "gone", "table", "rule", "call", "query", "stream"]
"""A state, one in which a match is complete at no cost, or where runs are gone; what rules and sets consist of."""
EdgeKind = Literal["plain", "missing", "filter", "rebind", "kill"]
"""How an edge is drawn: one on which something is missing, and the edges of queries in CEL."""


@dataclass(frozen=True)
class Node:
    """A node.

    Attributes
    ----------
    id : str
        Letters and digits.
    text : str
        All that there is to say, in one line.
    kind : NodeKind
    name : str
        What stands in a picture; default: ``text``.
    notes : tuple of str
        What stands below it, line by line.
    passes : str
        Which events a run passes over while it waits here; empty if none, or if it does not apply.
    is_start : bool
    """

    id: str
    text: str
    kind: NodeKind = "state"
    name: str = ""
    notes: tuple[str, ...] = ()
    passes: str = ""
    is_start: bool = False

    @property
    def shown(self) -> str:
        """What stands in a picture."""
        return self.name or self.text


@dataclass(frozen=True)
class Edge:
    """An edge between the nodes of two ids; ``weight``, from 0 to 1, is how thick it is beside others."""

    source: str
    target: str
    text: str = ""
    kind: EdgeKind = "plain"
    weight: float = 0.0


@dataclass(frozen=True)
class Group:
    """Nodes that belong together, by their ids, and why."""

    title: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """Nodes, edges and groups.

    Attributes
    ----------
    name : str
        A word.
    nodes : sequence of Node
    edges : sequence of Edge
    groups : sequence of Group
        No node is in two.
    """

    name: str
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    groups: Sequence[Group] = field(default=())
