"""A graph to be drawn: as plain data, where the one walk over an automaton, rules or queries ends; as text for others.

Mermaid and Graphviz draw that text. We write it ourselves; neither is needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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


_NODES: dict[NodeKind, tuple[str, str, str]] = {
    "state": ("((", "))", "circle"),
    "end": ("(((", ")))", "doublecircle"),
    "gone": ("((", "))", "circle"),
    "table": ("[(", ")]", "cylinder"),
    "rule": ("[", "]", "box"),
    "query": ("[", "]", "box"),
    "call": ("([", "])", "oval"),
    "stream": ("([", "])", "oval"),
}
"""What stands around the text of a node in Mermaid, and its shape in Graphviz."""
_EDGES: dict[EdgeKind, tuple[str, str]] = {
    "plain": ("-->", ""),
    "missing": ("-.->", "style=dashed"),
    "filter": ("-.->", "style=dotted"),
    "rebind": ("==>", "style=bold"),
    "kill": ("--x", "style=dashed, arrowhead=tee"),
}
"""An arrow in Mermaid, and what Graphviz is told of it."""


def mermaid(graph: Graph) -> str:
    """A graph for Mermaid.

    Examples
    --------
    >>> print(mermaid(Graph("two", [Node("a", "first"), Node("b", "last", "end")], [Edge("a", "b", "x < 3")])))
    flowchart LR
      a(("first"))
      b((("last")))
      a -->|"x #lt; 3"| b
    """

    def quoted(text: str) -> str:
        escaped = text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
        return f'"{escaped}"'

    def node_line(node: Node) -> str:
        left, right, _ = _NODES[node.kind]
        return f"{node.id}{left}{quoted(node.text)}{right}"

    lines = _node_lines(graph, node_line, lambda number, title: [f"subgraph k{number} [{quoted(title)}]"], "end")
    for edge in graph.edges:
        text = f"|{quoted(edge.text)}|" if edge.text else ""
        lines.append(f"  {edge.source} {_EDGES[edge.kind][0]}{text} {edge.target}")
    return "\n".join(["flowchart LR", *lines])


def dot(graph: Graph) -> str:
    """A graph for Graphviz.

    Examples
    --------
    >>> print(dot(Graph("two", [Node("a", "first"), Node("b", "last", "end")], [Edge("a", "b", "x", "missing")])))
    digraph two {
      rankdir=LR;
      node [shape=circle];
      a [label="first"];
      b [label="last", shape=doublecircle];
      a -> b [label="x", style=dashed];
    }
    """
    usual = _NODES[graph.nodes[0].kind][2] if graph.nodes else "circle"

    def quoted(text: str) -> str:
        return json.dumps(text, ensure_ascii=False)  # Graphviz reads UTF-8, and takes no other escapes than these

    def node_line(node: Node) -> str:
        shape = _NODES[node.kind][2]
        return f"{node.id} [label={quoted(node.text)}{f', shape={shape}' if shape != usual else ''}];"

    def begin(number: int, title: str) -> list[str]:
        return [f"subgraph cluster_{number} {{", f"  label={quoted(title)};"]

    lines = _node_lines(graph, node_line, begin, "}")
    for edge in graph.edges:
        said = [*([f"label={quoted(edge.text)}"] if edge.text else []), *filter(None, [_EDGES[edge.kind][1]])]
        attributes = f" [{', '.join(said)}]" if said else ""
        lines.append(f"  {edge.source} -> {edge.target}{attributes};")
    return "\n".join([f"digraph {graph.name} {{", "  rankdir=LR;", f"  node [shape={usual}];", *lines, "}"])


def _node_lines(
    graph: Graph, node_line: Callable[[Node], str], begin: Callable[[int, str], list[str]], end: str
) -> list[str]:
    """A line for each node by itself, or with its group, at the place of the first node of it."""
    nodes = {node.id: node for node in graph.nodes}
    group_of = {id_: number for number, group in enumerate(graph.groups) for id_ in group.nodes}
    lines: list[str] = []
    while nodes:
        first = next(iter(nodes))
        number = group_of.get(first)
        if number is None:
            lines.append(f"  {node_line(nodes.pop(first))}")
            continue
        group = graph.groups[number]
        lines += [f"  {line}" for line in begin(number, group.title)]
        lines += [f"    {node_line(nodes.pop(id_))}" for id_ in group.nodes if id_ in nodes]
        lines.append(f"  {end}")
    return lines
