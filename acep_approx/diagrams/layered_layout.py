"""Where the nodes of a graph lie: in layers along one axis, so that edges lead on and cross little.

Source: Sugiyama, Tagawa and Toda, IEEE Trans. SMC 11(2) 1981: layers, then the order in each by barycentres, then
places. Here a label is a node of its own, between the layers of its edge's ends, so that no label is drawn over
another; and places within a layer are the nearest to what neighbours ask for, by isotonic regression.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

SWEEPS = 12
"""How often layers are put in order, and then moved, there and back."""
LAYER_GAP, GAP, LINE_GAP = 26.0, 16.0, 10.0
"""Between layers; between things in a layer; between lines that pass by."""
_STIFF = 6.0
"""How much more lines that pass by a layer insist on being straight."""


@dataclass(frozen=True)
class Box:
    """The size of a thing: along the axis of the layers; and across it, before and after its middle."""

    along: float
    before: float
    after: float


@dataclass(eq=False)
class Spot:
    """A thing in a layer: a node, a label, or a place where a line passes by.

    ``at`` is the middle along the axis, ``across`` its place across, ``pull`` how straight its edge wants to be.
    """

    kind: Literal["node", "label", "line"]
    box: Box
    layer: int = 0
    at: float = 0.0
    across: float = 0.0
    pull: float = 99.0
    back: list[Spot] = field(default_factory=list, repr=False)
    on: list[Spot] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Route:
    """An edge in its place: the spots that it passes, from its source to its target, and which of them is its label."""

    spots: Sequence[Spot]
    label: Spot | None
    is_back: bool


@dataclass(frozen=True)
class Layout:
    """Nodes and edges in the order given, and the size of all: along, and from ``low`` to ``high`` across."""

    nodes: Sequence[Spot]
    routes: Sequence[Route]
    along: float
    low: float
    high: float
    layers: Sequence[tuple[float, float]]
    """Where each layer begins and ends along the axis."""


def lay_out(boxes: Sequence[Box], edges: Sequence[tuple[int, int, Box | None, float]]) -> Layout:
    """Give all nodes and edges a place.

    Parameters
    ----------
    boxes : sequence of Box
        Of the nodes; the first comes first where nothing else says what does.
    edges : sequence of (int, int, Box or None, float)
        Source, target, the size of the label, and how straight it is to be beside others; no edge leads from a node to
        itself.

    Returns
    -------
    Layout

    Complexity: O(sweeps · (nodes + edges · layers) · log).
    """
    nodes = [Spot("node", box) for box in boxes]
    backward = _backward(len(boxes), [(a, b) for a, b, _, _ in edges])
    ahead = [(b, a) if number in backward else (a, b) for number, (a, b, _, _) in enumerate(edges)]
    for spot, number in zip(nodes, _layers(len(boxes), ahead), strict=True):
        spot.layer = number
    layers: list[list[Spot]] = [[] for _ in range(max((spot.layer for spot in nodes), default=0) + 1)]
    for spot in nodes:
        layers[spot.layer].append(spot)
    routes = []
    for number, (first, last) in enumerate(ahead):
        way, label = _way(nodes[first], nodes[last], edges[number][2], layers)
        for spot in way[1:-1]:
            spot.pull = edges[number][3]
        is_back = number in backward
        routes.append(Route(way[::-1] if is_back else way, label, is_back))
    layers = [layer for layer in layers if layer]
    for layer_number, layer in enumerate(layers):
        for spot in layer:
            spot.layer = layer_number
    _order(layers)
    _place(layers)
    spans = _along(layers)
    low = min((spot.across - spot.box.before for layer in layers for spot in layer), default=0.0)
    high = max((spot.across + spot.box.after for layer in layers for spot in layer), default=0.0)
    return Layout(nodes, routes, spans[-1][1] if spans else 0.0, low, high, spans)


def _backward(size: int, edges: Sequence[tuple[int, int]]) -> set[int]:
    """Edges that lead back, to a node that they come from: without them there is no circle."""
    out: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    for number, (source, target) in enumerate(edges):
        out[source].append((number, target))
    found: set[int] = set()
    begun, done = [False] * size, [False] * size
    for root in range(size):
        stack = [(root, iter(out[root]))] if not begun[root] else []
        begun[root] = True
        while stack:
            node, rest = stack[-1]
            for number, target in rest:
                if not begun[target]:
                    begun[target] = True
                    stack.append((target, iter(out[target])))
                    break
                if not done[target]:
                    found.add(number)
            else:
                done[node] = True
                stack.pop()
    return found


def _layers(size: int, ahead: Sequence[tuple[int, int]]) -> list[int]:
    """Each node two layers behind the last that leads to it: between them is room for labels."""
    waits, out = [0] * size, [[] for _ in range(size)]  # type: tuple[list[int], list[list[int]]]
    for source, target in ahead:
        waits[target] += 1
        out[source].append(target)
    layer = [0] * size
    ready = [node for node in range(size) if not waits[node]]
    while ready:
        node = ready.pop()
        for target in out[node]:
            layer[target] = max(layer[target], layer[node] + 2)
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    targets = {target for _, target in ahead}
    for node in range(size):  # who is led to by nobody stands right before the first that it leads to
        if out[node] and node not in targets:
            layer[node] = min(layer[target] for target in out[node]) - 2
    return layer


def _way(first: Spot, last: Spot, label: Box | None, layers: list[list[Spot]]) -> tuple[list[Spot], Spot | None]:
    """The spots of an edge, one in each layer; its label is in the middle."""
    way, said = [first], None
    middle = (first.layer + last.layer) // 2
    middle += (middle % 2 == 0) * (1 if middle == first.layer else -1)
    for layer in range(first.layer + 1, last.layer):
        is_label = label is not None and layer == middle
        spot = Spot("label" if is_label else "line", label if is_label and label else Box(0.0, 0.0, 0.0), layer)
        said = spot if is_label else said
        layers[layer].append(spot)
        way.append(spot)
    way.append(last)
    for one, two in pairwise(way):
        one.on.append(two)
        two.back.append(one)
    return way, said


# --- the order in each layer ------------------------------------------------------------------------------------


def _order(layers: list[list[Spot]]) -> None:
    """Put each layer in the order of the means of its neighbours, there and back; the best order is kept."""
    best, least = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(SWEEPS):
        is_back = bool(sweep % 2)
        for number in range(len(layers) - 2, -1, -1) if is_back else range(1, len(layers)):
            beside = layers[number + 1 if is_back else number - 1]
            place = {spot: float(i) for i, spot in enumerate(beside)}
            wanted = {}
            for i, spot in enumerate(layers[number]):
                others = [place[one] for one in (spot.on if is_back else spot.back)]
                wanted[spot] = sum(others) / len(others) if others else float(i)
            layers[number].sort(key=lambda spot, wanted=wanted: wanted[spot])  # type: ignore[misc]
        crossings = _crossings(layers)
        if crossings < least:
            best, least = [list(layer) for layer in layers], crossings
    for layer, order in zip(layers, best, strict=True):
        layer[:] = order


def _crossings(layers: Sequence[Sequence[Spot]]) -> int:
    crossed = 0
    for layer, beyond in pairwise(layers):
        place = {spot: i for i, spot in enumerate(beyond)}
        seen: list[int] = []
        for spot in layer:
            ends = sorted(place[one] for one in spot.on)
            crossed += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return crossed


# --- places -----------------------------------------------------------------------------------------------------


def _place(layers: Sequence[Sequence[Spot]]) -> None:
    """Move things across to where their neighbours are, as far as their order and their sizes allow."""
    for layer in layers:
        _settle(layer, [0.0] * len(layer), [1.0] * len(layer))
    for sweep in range(SWEEPS):
        for layer in reversed(layers) if sweep % 2 else layers:
            wanted, weights = [], []
            for spot in layer:
                beside = [*spot.back, *spot.on]
                asks = [min(spot.pull, one.pull) * (_STIFF if spot.kind != "node" != one.kind else 1) for one in beside]
                total = sum(asks)
                middle = sum(ask * one.across for ask, one in zip(asks, beside, strict=True))
                wanted.append(middle / total if total else spot.across)
                weights.append(max(total, 0.1))
            _settle(layer, wanted, weights)


def _settle(layer: Sequence[Spot], wanted: Iterable[float], weights: Iterable[float]) -> None:
    """The places nearest to those wanted, in least squares, in which nothing touches: pool adjacent violators."""
    offset, offsets = 0.0, []
    for number, spot in enumerate(layer):
        if number:
            before = layer[number - 1]
            gap = LINE_GAP if spot.kind == before.kind == "line" else GAP
            offset += before.box.after + gap + spot.box.before
        offsets.append(offset)
    pools: list[tuple[float, float, int]] = []
    for want, weight, shift in zip(wanted, weights, offsets, strict=True):
        mean, heft, count = want - shift, weight, 1
        while pools and pools[-1][0] >= mean:
            other, its, some = pools.pop()
            mean, heft, count = (mean * heft + other * its) / (heft + its), heft + its, count + some
        pools.append((mean, heft, count))
    places = [mean for mean, _, count in pools for _ in range(count)]
    for spot, place, shift in zip(layer, places, offsets, strict=True):
        spot.across = place + shift


def _along(layers: Sequence[Sequence[Spot]]) -> list[tuple[float, float]]:
    spans, at = [], 0.0
    for layer in layers:
        size = max(spot.box.along for spot in layer)
        for spot in layer:
            spot.at = at + size / 2
        spans.append((at, at + size))
        at += size + LAYER_GAP
    return spans
