"""A graph to be drawn: as plain data, where the one walk over an automaton, rules or queries ends; as text for others.

Mermaid and Graphviz draw that text. We write it ourselves; neither is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
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


_SHAPES: dict[NodeKind, tuple[str, str]] = {
    "state": ("((", "))"),
    "end": ("(((", ")))"),
    "gone": ("((", "))"),
    "table": ("[(", ")]"),
    "rule": ("[", "]"),
    "query": ("[", "]"),
    "call": ("([", "])"),
    "stream": ("([", "])"),
}
_ARROWS: dict[EdgeKind, str] = {"plain": "-->", "missing": "-.->", "filter": "-.->", "rebind": "==>", "kill": "--x"}
_DOT_SHAPES: dict[NodeKind, str] = {
    "state": "circle",
    "end": "doublecircle",
    "gone": "circle",
    "table": "cylinder",
    "rule": "box",
    "query": "box",
    "call": "oval",
    "stream": "oval",
}
_DOT_STYLES: dict[EdgeKind, str] = {
    "plain": "",
    "missing": "style=dashed",
    "filter": "style=dotted",
    "rebind": "style=bold",
    "kill": "style=dashed, arrowhead=tee",
}


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
    return "\n".join(_mermaid(graph))


def _mermaid(graph: Graph) -> Iterator[str]:
    yield "flowchart LR"
    for group, nodes in _grouped(graph):
        if group is not None:
            yield f'  subgraph k{group} ["{_escaped(graph.groups[group].title)}"]'
        for node in nodes:
            left, right = _SHAPES[node.kind]
            yield f'{"  " if group is None else "    "}{node.id}{left}"{_escaped(node.text)}"{right}'
        if group is not None:
            yield "  end"
    yield from map(_arrow, graph.edges)


def _arrow(edge: Edge) -> str:
    text = f'|"{_escaped(edge.text)}"|' if edge.text else ""
    return f"  {edge.source} {_ARROWS[edge.kind]}{text} {edge.target}"


def _escaped(text: str) -> str:
    """For Mermaid's quoted text."""
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")


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
    return "\n".join(_dot(graph))


def _dot(graph: Graph) -> Iterator[str]:
    usual = _DOT_SHAPES[graph.nodes[0].kind] if graph.nodes else "circle"
    yield f"digraph {graph.name} {{"
    yield "  rankdir=LR;"
    yield f"  node [shape={usual}];"
    for group, nodes in _grouped(graph):
        if group is not None:
            yield f"  subgraph cluster_{group} {{"
            yield f"    label={_quoted(graph.groups[group].title)};"
        for node in nodes:
            shape = _DOT_SHAPES[node.kind]
            yield (
                f"{'  ' if group is None else '    '}{node.id} [label={_quoted(node.text)}"
                f"{f', shape={shape}' if shape != usual else ''}];"
            )
        if group is not None:
            yield "  }"
    yield from map(_dot_arrow, graph.edges)
    yield "}"


def _dot_arrow(edge: Edge) -> str:
    said = [f"label={_quoted(edge.text)}"] if edge.text else []
    said += filter(None, [_DOT_STYLES[edge.kind]])
    attributes = f" [{', '.join(said)}]" if said else ""
    return f"  {edge.source} -> {edge.target}{attributes};"


def _quoted(text: str) -> str:
    """For Graphviz, which reads UTF-8, and takes no other escapes than these."""
    return json.dumps(text, ensure_ascii=False)


def _grouped(graph: Graph) -> Iterator[tuple[int | None, list[Node]]]:
    """Each node by itself, or with its group, at the place of the first node of it."""
    nodes = {node.id: node for node in graph.nodes}
    group_of = {id_: number for number, group in enumerate(graph.groups) for id_ in group.nodes}
    while nodes:
        first = next(iter(nodes))
        number = group_of.get(first)
        if number is None:
            yield None, [nodes.pop(first)]
        else:
            yield number, [nodes.pop(id_) for id_ in graph.groups[number].nodes if id_ in nodes]
