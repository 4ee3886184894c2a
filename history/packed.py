"""Counts as plain bytes, to be sent from process to process: an npz of arrays, nothing pickled."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
from bitarray import bitarray

from history.bundles import Bundles
from history.checking import Array, check_column, check_order, check_places, require
from history.counting import Counts
from history.graph import Graph
from history.npz import read_npz
from history.vectors import Scheme

DENSE = ("visits", "reached", "led", "cost", "started", "completed")
"""Columns of a number for each vertex."""
PAIRS = {
    ("source", "target", "moves", "passed"): ("vertices", "vertices"),
    ("ends_vertex", "ends_bundle", "ends"): ("vertices", "bundles"),
    ("covered", "cover", "shareable", "shared"): ("groups", "groups"),
}
"""Columns of a number for each pair, with what the two of a pair are."""
COLUMNS = (*DENSE, *(name for columns in PAIRS for name in columns))
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

    Raises
    ------
    ValueError
        These are not such bytes.
    """
    graph = Graph(blank.scheme, blank.gap, blank.most_bundles)
    arrays = read_npz(io.BytesIO(packed), len(packed))
    bundles = Bundles(**{name: arrays[f"bundle_{name}"] for name in BUNDLES})
    _check_bundles(bundles, blank.most_bundles)
    _check_numbers(arrays, blank.scheme, len(bundles))
    maps = maps_of(arrays["map_vertices"].tolist(), arrays["map_bits"], len(bundles))
    graph.counts = Counts(bundles=bundles, maps=maps, **{name: arrays[name] for name in COLUMNS})
    return graph


def _check_bundles(bundles: Bundles, most: int) -> None:
    size = len(bundles)
    require(size <= most, f"there are {size} bundles, and {most} at most")
    require(bundles.slot.dtype.kind == "U" and bundles.slot.shape == (size,), "slot is not text everywhere")
    for name, least in (("first", None), ("last", None), ("row", None), ("points", 0)):
        check_column(name, getattr(bundles, name), "int64", size, least)


def _check_numbers(arrays: dict[str, Array], scheme: Scheme, bundles: int) -> None:
    """Numbers of vertices, groups and bundles are those of some, and columns that go together are of one length."""
    for name in DENSE:
        check_column(name, arrays[name], "float64" if name == "cost" else "int64", scheme.vertices)
    sizes = {"vertices": scheme.vertices, "groups": scheme.groups, "bundles": bundles}
    for columns, (one, other) in PAIRS.items():
        first, second, *numbers = columns
        for name, of in ((first, one), (second, other)):
            check_places(name, arrays[name], sizes[of])
        for name in (second, *numbers):
            check_column(name, arrays[name], "int64", len(arrays[first]))
        check_order(f"{first}, {second}", arrays[first], arrays[second], max(sizes[other], 1))
    mapped, bits = check_places("map_vertices", arrays["map_vertices"], scheme.vertices), arrays["map_bits"]
    require(len(np.unique(mapped)) == len(mapped), "a vertex has two maps")
    require(bits.dtype == np.uint8 and bits.shape == (len(mapped), (bundles + 7) // 8), "bits have another form")


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
