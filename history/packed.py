"""Counts as plain bytes, to be sent from process to process: an npz of arrays, nothing pickled."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
from bitarray import bitarray

from history.bundles import Bundles
from history.counting import Counts
from history.graph import Graph

COLUMNS = (
    "visits", "reached", "led", "cost", "started", "completed", "source", "target", "moves", "passed", "ends_vertex",
    "ends_bundle", "ends", "covered", "cover", "shareable", "shared",
)  # fmt: skip
BUNDLES = ("first", "last", "slot", "row", "points")


def pack(graph: Graph) -> bytes:
    """All that a graph has counted.

    Parameters
    ----------
    graph : Graph
        Its scheme, gap and number of bundles are not part of the bytes.

    Returns
    -------
    bytes
        For ``unpack``; the same counts give the same bytes.

    Complexity: O(history).
    """
    counts, file = graph.counts, io.BytesIO()
    vertices, bits = map_rows(counts)
    np.savez(
        file,
        map_vertices=vertices,
        map_bits=bits,
        **{name: getattr(counts, name) for name in COLUMNS},
        **{f"bundle_{name}": getattr(counts.bundles, name) for name in BUNDLES},
    )
    return file.getvalue()


def unpack(packed: bytes, blank: Graph) -> Graph:
    """The graph that ``pack`` was given.

    Parameters
    ----------
    packed : bytes
    blank : Graph
        Of the same scheme, gap and number of bundles; not changed.
    """
    graph = Graph(blank.scheme, blank.gap, blank.most_bundles)
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        bundles = Bundles(**{name: arrays[f"bundle_{name}"] for name in BUNDLES})
        maps = maps_of(arrays["map_vertices"].tolist(), arrays["map_bits"], len(bundles))
        graph.counts = Counts(bundles=bundles, maps=maps, **{name: arrays[name] for name in COLUMNS})
    return graph


def map_rows(counts: Counts) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """The vertices that have a match map, and the bytes of their maps, one row for each."""
    rows = [np.frombuffer(bits.tobytes(), np.uint8) for bits in counts.maps.values()]
    width = (len(counts.bundles) + 7) // 8
    return np.array(list(counts.maps), np.int64), np.stack(rows) if rows else np.empty((0, width), np.uint8)


def maps_of(vertices: list[int], bits: np.ndarray[Any, np.dtype[np.uint8]], size: int) -> dict[int, bitarray]:
    """Match maps of ``size`` bits from what ``map_rows`` gave."""
    maps = {}
    for vertex, row in zip(vertices, bits, strict=True):
        found = bitarray(endian="big")
        found.frombytes(row.tobytes())
        del found[size:]
        maps[vertex] = found
    return maps
