"""The tables of one version of a history: what was counted, as Parquet and npz, checked when it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from history.bundles import Bundles
from history.checking import check_column, check_order, check_places, require
from history.counting import Counts
from history.graph import Graph
from history.npz import MOST_BYTES, read_npz, write_npz
from history.packed import map_rows, maps_of

VERTICES, EDGES, OVERLAPS = "vertices.parquet", "edges.parquet", "overlaps.parquet"
BUNDLES, MAPS = "bundles.parquet", "maps.npz"
TABLES = (VERTICES, EDGES, OVERLAPS, BUNDLES, MAPS)
DENSE = dict.fromkeys(("visits", "reached", "led", "cost", "started", "completed"), "int64") | {"cost": "float64"}
"""What is counted at vertices; only those that were visited are written down."""
PAIRS = {EDGES: ("source", "target", "moves", "passed"), OVERLAPS: ("covered", "cover", "shareable", "shared")}
"""Files of pairs, of vertices or of groups, with what is counted of each."""
MOST_PAIRS = 1 << 27
"""Pairs that a file may hold: four columns of them are as much as an npz file may hold."""
ENDS = ("ends_vertex", "ends_bundle", "ends")


def write_tables(graph: Graph, folder: Path) -> None:
    """Write all tables of a history into a folder."""
    counts = graph.counts
    seen = np.flatnonzero(counts.visits)
    vertices = {"vertex": seen, **{name: getattr(counts, name)[seen] for name in DENSE}}
    pq.write_table(pa.table(vertices), folder / VERTICES)
    for file, columns in PAIRS.items():
        pq.write_table(pa.table({name: getattr(counts, name) for name in columns}), folder / file)
    bundles = {field.name: getattr(counts.bundles, field.name) for field in fields(Bundles)}
    bundles["slot"] = pa.array(counts.bundles.slot.tolist(), pa.string())
    pq.write_table(pa.table(bundles), folder / BUNDLES)
    mapped, bits = map_rows(counts)
    ends = {name: getattr(counts, name) for name in ENDS}
    write_npz(folder / MAPS, {"vertices": mapped, "bits": bits, **ends})


def read_tables(graph: Graph, folder: Path) -> None:
    """Read what ``write_tables`` wrote into a graph that has counted nothing yet.

    Raises
    ------
    ValueError
        A column is missing, of another type or length, or names what is not there.
    """
    counts, scheme = graph.counts, graph.scheme
    readers: dict[str, Callable[[Path], None]] = {
        VERTICES: lambda file: _read_vertices(counts, file, scheme.vertices),
        EDGES: lambda file: _read_pairs(counts, file, scheme.vertices),
        OVERLAPS: lambda file: _read_pairs(counts, file, scheme.groups),
        BUNDLES: lambda file: _read_bundles(counts, file, graph.most_bundles),
        MAPS: lambda file: _read_maps(counts, file, scheme.vertices),
    }
    for name, read in readers.items():
        try:
            read(folder / name)
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"{name}: {error}") from error


def _table(file: Path, kinds: dict[str, pa.DataType], most: int) -> pa.Table:
    """A Parquet file of these columns, which has ``most`` rows at most: a few bytes can stand for any number of them.

    Texts stay as they are encoded: of them, too, a few bytes can stand for many.
    """
    with pq.ParquetFile(file, read_dictionary=[name for name, kind in kinds.items() if kind == pa.string()]) as held:
        rows, schema = held.metadata.num_rows, held.metadata.schema.to_arrow_schema()
        require(rows <= most, f"it has {rows} rows, and {most} at most")
        require({f.name: f.type for f in schema} == kinds, f"it has the columns {', '.join(map(str, schema))}"[:200])
        return held.read()


def _columns(file: Path, kinds: dict[str, str], most: int) -> Callable[[str], Any]:
    """Gives the columns of numbers of a Parquet file by name."""
    table = _table(file, {name: pa.type_for_alias(kind) for name, kind in kinds.items()}, most)
    return lambda name: table.column(name).to_numpy()


def _read_vertices(counts: Counts, file: Path, vertices: int) -> None:
    column = _columns(file, {"vertex": "int64", **DENSE}, vertices)
    seen = check_places("vertex", column("vertex"), vertices)
    check_order("vertex", seen)
    for name, type_ in DENSE.items():
        getattr(counts, name)[seen] = check_column(name, column(name), type_, len(seen))


def _read_pairs(counts: Counts, file: Path, size: int) -> None:
    column = _columns(file, dict.fromkeys(PAIRS[file.name], "int64"), MOST_PAIRS)
    first, second, *numbers = PAIRS[file.name]
    one, other = (check_places(name, column(name), size) for name in (first, second))
    require(len(one) == len(other), f"{first} and {second} are not of one length")
    check_order(f"{first}, {second}", one, other, size)
    for name, found in ((first, one), (second, other)):
        setattr(counts, name, found)
    for name in numbers:
        setattr(counts, name, check_column(name, column(name), "int64", len(one)))


def _read_bundles(counts: Counts, file: Path, most: int) -> None:
    kinds = {field.name: pa.string() if field.name == "slot" else pa.int64() for field in fields(Bundles)}
    table = _table(file, kinds, most)
    size = table.num_rows
    slots = table.column("slot")
    require(not slots.null_count, "slot is not text everywhere")
    longest = max((len(text) for chunk in slots.chunks for text in chunk.dictionary.to_pylist()), default=0)
    require(4 * longest * size <= MOST_BYTES, f"texts of {longest} characters are too long for {size} bundles")
    first, last, row, points = (
        check_column(name, table.column(name).to_numpy(), "int64", size, least)
        for name, least in (("first", None), ("last", None), ("row", 0), ("points", 1))
    )
    require((first <= last).all() and (first[1:] >= first[:-1]).all(), "first and last are not in order")
    counts.bundles = Bundles(first, last, np.array(slots.to_pylist(), np.str_), row, points)


def _read_maps(counts: Counts, file: Path, vertices: int) -> None:
    bundles = len(counts.bundles)
    arrays = read_npz(file)
    mapped, bits = check_places("vertices", arrays["vertices"], vertices), arrays["bits"]
    vertex, bundle, ends = (arrays[name] for name in ENDS)
    require(len(np.unique(mapped)) == len(mapped), "a vertex has two maps")
    require(bits.dtype == np.uint8 and bits.shape == (len(mapped), (bundles + 7) // 8), "bits have another form")
    counts.maps = maps_of(mapped.tolist(), bits, bundles)
    counts.ends_vertex = check_places("ends_vertex", vertex, vertices)
    counts.ends_bundle = check_places("ends_bundle", bundle, bundles)
    counts.ends = check_column("ends", ends, "int64", len(vertex))
    require(len(vertex) == len(bundle), "ends_vertex and ends_bundle are not of one length")
    check_order("ends_vertex, ends_bundle", counts.ends_vertex, counts.ends_bundle, max(bundles, 1))
