"""A graph as SVG: one picture that needs no script, no network and no program, light and dark."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from typing import Literal

from acep_approx.diagrams.colours import COLOURS, GRAPH
from acep_approx.diagrams.graph import Edge, Graph, Node, dot, mermaid
from acep_approx.diagrams.layered_layout import Box, Layout, Route, Spot, lay_out
from acep_approx.diagrams.text_layout import MONO, label, shortened, width, wrapped
from acep_approx.visible import escape

Direction = Literal["right", "down"]
"""Where edges lead."""
MOST_NODES, MOST_EDGES = 40, 120
"""Of a larger graph the nodes nearest to its beginning are drawn."""
NAME, NOTES, NOTE = 30, 4, 34
"""Most letters of a name; most notes below it, and their letters."""
LABEL, LABEL_DOWN, LABEL_LINES = 26, 20, 4
"""Most letters of a line of a label; and lines."""
ROW, NAME_ROW, LOOP, PASS, MARGIN, HEAD = 15.0, 17.0, 22.0, 16.0, 12.0, 8.0
LOOPS = 3
"""Edges of a kind from a node to itself of which the texts are shown."""
PULL = {"plain": 8.0, "rebind": 4.0}
"""How straight an edge is to be, beside others at 1."""
LEGEND = {
    "missing": "an event is missing",
    "filter": "filter: the run stays",
    "rebind": "rebind: the next iteration",
    "kill": "kill: the run is gone",
    "pass": "the run waits, other events pass by",
}


def svg(graph: Graph, direction: Direction = "right") -> str:
    """A graph as one ``<svg>`` element with its own style.

    Parameters
    ----------
    graph : Graph
        Of more than 40 nodes or 120 edges those nearest to its first node are drawn, and the picture says so.
    direction : {"right", "down"}, default "right"
        Where edges lead: "down" is for narrow screens.

    Returns
    -------
    str
        Long texts are shortened; whole they are in the titles, which a pointer shows.
    """
    seen, left_out = _nearest(graph)
    return _Picture(seen, direction, left_out).text()


def _nearest(graph: Graph) -> tuple[Graph, str]:
    """What is drawn of a graph, and in words what is not."""
    nodes, edges = list(graph.nodes), list(graph.edges)
    if len(nodes) > MOST_NODES or len(edges) > MOST_EDGES:
        nodes = _breadth_first(nodes, edges)[:MOST_NODES]
        kept = {node.id for node in nodes}
        edges = [edge for edge in edges if edge.source in kept and edge.target in kept][:MOST_EDGES]
    words = []
    if len(nodes) < len(graph.nodes):
        words.append(f"{len(nodes)} of {len(graph.nodes):,} nodes")
    if len(edges) < len(graph.edges):
        words.append(f"{len(edges)} of {len(graph.edges):,} edges")
    return replace(graph, nodes=nodes, edges=edges), f"drawn: {' and '.join(words)}" if words else ""


def _breadth_first(nodes: Sequence[Node], edges: Sequence[Edge]) -> list[Node]:
    out: dict[str, list[str]] = {}
    for edge in edges:
        out.setdefault(edge.source, []).append(edge.target)
    by_id, order, seen = {node.id: node for node in nodes}, [], set()
    for root in nodes:
        waiting = deque([root.id])
        while waiting:
            id_ = waiting.popleft()
            if id_ not in seen and id_ in by_id:
                seen.add(id_)
                order.append(by_id[id_])
                waiting.extend(out.get(id_, ()))
    return order


@dataclass(frozen=True)
class _Loop:
    """The edges of one kind from a node to itself, with what they say."""

    kind: str
    edges: Sequence[Edge]
    lines: Sequence[str]


@dataclass(frozen=True)
class _Shape:
    node: Node
    name: str
    notes: Sequence[str]
    loops: Sequence[_Loop]
    pass_lines: Sequence[str]
    wide: float
    high: float

    @property
    def radius(self) -> float:
        round_ = self.node.kind in ("state", "end", "gone", "call", "stream")
        return min(self.high / 2, 19.0) if round_ else 6.0


class _Picture:
    def __init__(self, graph: Graph, direction: Direction, left_out: str) -> None:
        self.graph, self.is_right, self.left_out = graph, direction == "right", left_out
        self.letters = LABEL if self.is_right else LABEL_DOWN
        loops: dict[str, list[Edge]] = {}
        for edge in graph.edges:
            if edge.source == edge.target:
                loops.setdefault(edge.source, []).append(edge)
        self.shapes = [self._shape(node, loops.get(node.id, [])) for node in graph.nodes]
        number = {node.id: i for i, node in enumerate(graph.nodes)}
        self.edges = [edge for edge in graph.edges if edge.source != edge.target]
        self.lines = [wrapped(edge.text, self.letters, LABEL_LINES) for edge in self.edges]
        ways = []
        for edge, lines in zip(self.edges, self.lines, strict=True):
            label_box = None
            if lines:
                wide, high = max(map(len, lines)) * MONO + 10, ROW * len(lines) + 4
                label_box = Box(wide, high / 2, high / 2) if self.is_right else Box(high, wide / 2, wide / 2)
            ways.append((number[edge.source], number[edge.target], label_box, PULL.get(edge.kind, 1.0)))
        self.layout: Layout = lay_out([self._box(shape) for shape in self.shapes], ways)
        self.turn = {id_ for group in graph.groups for id_ in group.nodes}

    # --- sizes --------------------------------------------------------------------------------------------------

    def _shape(self, node: Node, loops: list[Edge]) -> _Shape:
        notes = [shortened(note, NOTE) for note in node.notes[:NOTES]]
        if len(node.notes) > NOTES:
            notes[-1] = f"and {len(node.notes) - NOTES + 1} more"
        name = shortened(node.shown, NAME)
        passes = node.passes if node.passes not in ("", "every event") else ""
        wide = max([width(name, 13.8), *(width(note, 11.5) for note in notes)]) + 26
        high = 16 + NAME_ROW + ROW * len(notes) if notes else 36.0
        found = []
        for kind in dict.fromkeys(edge.kind for edge in loops):
            mine = [edge for edge in loops if edge.kind == kind]
            lines = [line for edge in mine[:LOOPS] for line in wrapped(edge.text, self.letters, LABEL_LINES)]
            lines += [f"and {len(mine) - LOOPS} more"] if len(mine) > LOOPS else []
            found.append(_Loop(kind, mine, lines))
        return _Shape(node, name, notes, found, wrapped(passes, self.letters, 2), max(wide, 40.0), high)

    def _box(self, shape: _Shape) -> Box:
        loops, (pass_wide, pass_high) = [_block(loop.lines) for loop in shape.loops], _block(shape.pass_lines)
        if self.is_right:
            half, of_loops, of_pass = shape.high / 2, max([high for _, high in loops], default=0.0), pass_high
            along = max(shape.wide, sum(wide + LOOP / 2 for wide, _ in loops), pass_wide)
        else:
            half, of_loops, of_pass = shape.wide / 2, max([wide for wide, _ in loops], default=0.0), pass_wide
            along = max(shape.high, sum(max(high, LOOP) + LOOP / 2 for _, high in loops), pass_high)
        with_loops = half + (LOOP + of_loops if loops else 0)
        with_pass = half + (PASS + of_pass if shape.node.passes else 0)
        return Box(along, with_loops, with_pass) if self.is_right else Box(along, with_pass, with_loops)

    def _at(self, along: float, across: float) -> tuple[float, float]:
        across -= self.layout.low
        return (along + MARGIN, across + MARGIN) if self.is_right else (across + MARGIN, along + MARGIN)

    # --- the picture --------------------------------------------------------------------------------------------

    def text(self) -> str:
        along, across = self.layout.along, self.layout.high - self.layout.low
        wide, high = (along, across) if self.is_right else (across, along)
        meanings = self._meanings()
        total = max([wide, 120.0, *(42 + width(words, 11.5) for _, words in meanings)]) + 2 * MARGIN
        below, legend = high + 2 * MARGIN, []
        for row, (kind, words) in enumerate(meanings):
            x, y = MARGIN, below + 8 + 18 * row
            if kind == "turn":
                legend.append(f'<rect class="node turn" x="{x + 4}" y="{y - 7:.1f}" width="26" height="13" rx="4"/>')
            elif kind:
                legend.append(f'<path class="edge {kind}" d="M{x} {y:.1f}h26"/>{_arrow(x + 34, y, (1, 0), kind)}')
            legend.append(label(x + 42, y + 4, words, kind="note"))
        below += 18 * len(meanings) + 6 if meanings else 0
        name = f"{self.graph.name} of {len(self.graph.nodes)} nodes and {len(self.graph.edges)} edges"
        shift = 0.0 if self.is_right else (total - 2 * MARGIN - wide) / 2
        head = (
            f'<svg class="acep-graph" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {below:.0f}" '
            f'width="{total:.0f}" height="{below:.0f}" role="img" aria-label="{escape(name)}">'
        )
        back = f'<rect class="back" width="{total:.0f}" height="{below:.0f}" rx="6"/>'
        moved = f'<g transform="translate({shift:.1f} 0)">'
        parts = [*self._edges(), *self._nodes()]
        return "\n".join([head, f"<style>{COLOURS}{GRAPH}</style>", back, moved, *parts, "</g>", *legend, "</svg>"])

    def _meanings(self) -> list[tuple[str, str]]:
        """The lines and frames that are not plain, and what they mean; at last what is not drawn."""
        kinds: list[str] = list(dict.fromkeys(edge.kind for edge in self.graph.edges if edge.kind != "plain"))
        kinds += ["pass"] if any(shape.node.passes for shape in self.shapes) else []
        found = [(kind, LEGEND[kind]) for kind in kinds]
        found += [("turn", group.title) for group in self.graph.groups[:1]]
        return [*found, *([("", self.left_out)] if self.left_out else [])]

    # --- nodes --------------------------------------------------------------------------------------------------

    def _nodes(self) -> Iterator[str]:
        for shape, spot in zip(self.shapes, self.layout.nodes, strict=True):
            node = shape.node
            x, y = self._at(spot.at, spot.across)
            loops = [f"to itself: {edge.text}" for loop in shape.loops for edge in loop.edges]
            passes = [f"passes over {node.passes}"] if node.passes else []
            whole = "\n".join([node.text, *loops, *passes])
            yield f"<g><title>{escape(whole)}</title>"
            if passes:
                yield from self._pass(shape, x, y)
            yield from self._loop_lines(shape, x, y)
            yield from self._body(shape, x, y)
            yield "</g>"

    def _body(self, shape: _Shape, x: float, y: float) -> Iterator[str]:
        node, left, top = shape.node, x - shape.wide / 2, y - shape.high / 2
        kinds = ["node", node.kind, *(["start"] if node.is_start else []), *(["turn"] if node.id in self.turn else [])]
        yield (
            f'<rect class="{" ".join(kinds)}" x="{left:.1f}" y="{top:.1f}" width="{shape.wide:.1f}" '
            f'height="{shape.high:.1f}" rx="{shape.radius:.1f}"/>'
        )
        if node.kind == "end":
            yield (
                f'<rect class="inner" x="{left + 3.5:.1f}" y="{top + 3.5:.1f}" width="{shape.wide - 7:.1f}" '
                f'height="{shape.high - 7:.1f}" rx="{max(shape.radius - 3.5, 2):.1f}"/>'
            )
        if node.kind == "table":
            yield f'<path class="edge table" d="M{left:.1f} {top + 6:.1f}h{shape.wide:.1f}"/>'
        line = top + (12 if shape.notes else (shape.high - NAME_ROW) / 2) + 12.5 - (4 if shape.notes else 0)
        yield label(x, line, shape.name, kind="name", anchor="middle")
        yield from _lines(shape.notes, x, line + ROW, "middle", "note")

    def _loop_lines(self, shape: _Shape, x: float, y: float) -> Iterator[str]:
        """The loops of a node, side by side above it, or one below the other to its right."""
        sizes = [_block(loop.lines) for loop in shape.loops]
        room = [wide + LOOP / 2 if self.is_right else max(high, LOOP) + LOOP / 2 for wide, high in sizes]
        at = -sum(room) / 2
        side = shape.wide if self.is_right else shape.high
        for number, (loop, (_, high), size) in enumerate(zip(shape.loops, sizes, room, strict=True)):
            middle, place = at + size / 2, side * ((number + 0.5) / len(sizes) - 0.5)
            at += size
            if self.is_right:
                at_x, top = x + place, y - shape.high / 2
                bend = f"C{at_x - 26:.1f} {top - 26:.1f} {at_x + 26:.1f} {top - 26:.1f} {at_x + 9:.1f} {top - 5:.1f}"
                arrow = _arrow(at_x + 6, top, (0, 1), loop.kind)
                yield f'<path class="edge {loop.kind}" d="M{at_x - 9:.1f} {top:.1f}{bend}"/>{arrow}'
                yield from _said(loop.lines, x + middle, top - LOOP - high + 10, "middle", loop.kind)
            else:
                right, at_y = x + shape.wide / 2, y + place
                far = right + 26
                bend = f"C{far:.1f} {at_y - 24:.1f} {far:.1f} {at_y + 24:.1f} {right + 5:.1f} {at_y + 8:.1f}"
                arrow = _arrow(right, at_y + 6, (-1, 0), loop.kind)
                yield f'<path class="edge {loop.kind}" d="M{right - 2:.1f} {at_y - 9:.1f}{bend}"/>{arrow}'
                yield from _said(loop.lines, right + LOOP + 2, y + middle - high / 2 + 12, "start", loop.kind)

    def _pass(self, shape: _Shape, x: float, y: float) -> Iterator[str]:
        """That a run waits while events pass by: below the node, or to its left."""
        if self.is_right:
            low = y + shape.high / 2
            bend = f"C{x + 22:.1f} {low + 18:.1f} {x - 22:.1f} {low + 18:.1f} {x - 7:.1f} {low + 4:.1f}"
            yield f'<path class="edge pass" d="M{x + 8:.1f} {low - 1:.1f}{bend}"/>'
            yield _arrow(x - 5, low, (0, -1), "pass", 5)
            yield from _said(shape.pass_lines, x, low + PASS + 12, "middle", "quiet")
        else:
            left = x - shape.wide / 2
            bend = f"C{left - 18:.1f} {y + 20:.1f} {left - 18:.1f} {y - 20:.1f} {left - 4:.1f} {y - 7:.1f}"
            yield f'<path class="edge pass" d="M{left + 1:.1f} {y + 8:.1f}{bend}"/>'
            yield _arrow(left, y - 5, (1, 0), "pass", 5)
            block = _block(shape.pass_lines)
            yield from _said(shape.pass_lines, left - PASS - 2, y - block[1] / 2 + 12, "end", "quiet")

    # --- edges --------------------------------------------------------------------------------------------------

    def _edges(self) -> Iterator[str]:
        ports, names = self._ports(), {node.id: node.shown for node in self.graph.nodes}
        for number, (edge, lines, route) in enumerate(zip(self.edges, self.lines, self.layout.routes, strict=True)):
            whole = edge.text or f"{names[edge.source]} to {names[edge.target]}"
            yield f"<g><title>{escape(whole)}</title>"
            yield from self._edge(edge, route, ports[number])
            if route.label is not None and lines:
                x, y = self._at(route.label.at, route.label.across)
                wide, high = max(map(len, lines)) * MONO + 8, ROW * len(lines) + 2
                yield (
                    f'<rect class="back" x="{x - wide / 2:.1f}" y="{y - high / 2:.1f}" width="{wide:.1f}" '
                    f'height="{high:.1f}" rx="3"/>'
                )
                yield from _said(lines, x, y - high / 2 + 12, "middle", edge.kind)
            yield "</g>"

    def _ports(self) -> list[tuple[float, float]]:
        """Per edge how far from the middle of its ends it begins and ends, so that edges of a node fan out."""
        ends: dict[tuple[Spot, bool], list[tuple[float, int, bool]]] = {}
        for number, route in enumerate(self.layout.routes):
            spots = route.spots
            ends.setdefault((spots[0], route.is_back), []).append((spots[1].across, number, True))
            ends.setdefault((spots[-1], not route.is_back), []).append((spots[-2].across, number, False))
        found = [[0.0, 0.0] for _ in self.layout.routes]
        shape_of = dict(zip(self.layout.nodes, self.shapes, strict=True))
        for (spot, _), some in ends.items():
            room = (shape_of[spot].high if self.is_right else shape_of[spot].wide) * 0.56
            step = min(10.0, room / max(len(some) - 1, 1))
            for place, (_, number, begins) in enumerate(sorted(some)):
                found[number][0 if begins else 1] = (place - (len(some) - 1) / 2) * step
        return [(begin, end) for begin, end in found]

    def _border(self, spot: Spot, port: float, *, is_front: bool) -> float:
        """Where a line meets the border of a node, along."""
        shape = self.shapes[self.layout.nodes.index(spot)]
        half, side = (shape.wide, shape.high) if self.is_right else (shape.high, shape.wide)
        beyond = abs(port) - (side / 2 - shape.radius)
        inset = shape.radius - sqrt(max(shape.radius**2 - beyond**2, 0.0)) if beyond > 0 else 0.0
        return spot.at + (half / 2 - inset) * (1 if is_front else -1)

    def _edge(self, edge: Edge, route: Route, ports: tuple[float, float]) -> Iterator[str]:
        spots, way = route.spots, -1 if route.is_back else 1
        (_, source_end), (target_begin, _) = (
            self.layout.layers[spot.layer][::way] for spot in (spots[0], spots[-1])
        )  # where their layers end, on the way
        begin = (self._border(spots[0], ports[0], is_front=way > 0), spots[0].across + ports[0])
        end = (self._border(spots[-1], ports[1], is_front=way < 0), spots[-1].across + ports[1])
        tip = (end[0] - way * (HEAD - 1), end[1])
        stops = [begin, (source_end, begin[1])]
        for spot in spots[1:-1]:
            low, high = self.layout.layers[spot.layer]
            stops += [(low, spot.across), (high, spot.across)][::way]
        stops += [(min(target_begin * way, tip[0] * way) * way, end[1]), tip]
        said = "M{:.1f} {:.1f}".format(*self._at(*begin))
        for one, two in pairwise(stops):
            half = (one[0] + two[0]) / 2
            is_straight = abs(one[1] - two[1]) < 0.05
            bends = [] if is_straight else [self._at(half, one[1]), self._at(half, two[1])]
            said += "CL"[is_straight] + " ".join(f"{x:.1f} {y:.1f}" for x, y in [*bends, self._at(*two)])
        wide = f' style="stroke-width:{1.2 + 7 * edge.weight:.1f}"' if edge.weight else ""
        yield f'<path class="edge {edge.kind}"{wide} d="{said}"/>'
        x, y = self._at(*end)
        yield _arrow(x, y, (way, 0) if self.is_right else (0, way), edge.kind)


def _block(lines: Sequence[str]) -> tuple[float, float]:
    return (max(map(len, lines)) * MONO + 8, ROW * len(lines)) if lines else (0.0, 0.0)


def _lines(lines: Sequence[str], x: float, y: float, anchor: str, kind: str) -> Iterator[str]:
    return (label(x, y + ROW * row, line, kind=kind, anchor=anchor) for row, line in enumerate(lines))


def _said(lines: Sequence[str], x: float, y: float, anchor: str, kind: str) -> Iterator[str]:
    return _lines(lines, x, y, anchor, f"said {kind}")


def _arrow(x: float, y: float, way: tuple[float, float], kind: str, size: float = HEAD) -> str:
    """The head of an arrow that ends at a place: a triangle, or for what is killed a bar."""
    along, across = way
    half = size * 0.48
    if kind == "kill":
        x, y = x - 2 * along, y - 2 * across
        return f'<path class="head kill" d="M{x - 6 * across:.1f} {y - 6 * along:.1f}l{12 * across:g} {12 * along:g}"/>'
    back = (x - size * along, y - size * across)
    one = (back[0] - half * across, back[1] - half * along)
    two = (back[0] + half * across, back[1] + half * along)
    return f'<path class="head {kind}" d="M{x:.1f} {y:.1f}L{one[0]:.1f} {one[1]:.1f}L{two[0]:.1f} {two[1]:.1f}Z"/>'


WRITERS: dict[str, Callable[[Graph], str]] = {"mermaid": mermaid, "dot": dot, "svg": svg}
"""What writes a graph, by the names of formats."""
