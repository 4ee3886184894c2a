"""What was counted, to be kept or sent: as tables of Parquet and npz in a folder, or as bytes from process to process.

Nothing is pickled, and all of it is read as what a stranger may have written: nothing is made room for before it is
known to come. A header of a few bytes can ask for any number of values, and a few kilobytes of a zip file can unfold to
gigabytes.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from bitarray import bitarray

from history.bundles import Bundles, Texts
from history.checking import Array, check_column, check_order, check_places, require
from history.counting import DENSE as COUNTED
from history.counting import EDGES as OF_EDGES
from history.counting import ENDS, Counts
from history.counting import OVERLAPS as OF_OVERLAPS
from history.errors import HistoryError
from history.graph import Graph

MOST_BYTES = 1 << 32
"""What the arrays of one file may hold together."""
UNFOLDED = 1032
"""Bytes that one byte of deflate stands for, at most."""
SLACK = 64
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
SUFFIX = ".npy"


def read_npz(file: Path | IO[bytes], most: int = MOST_BYTES) -> dict[str, Array]:
    """The arrays of an npz file, by name.

    Parameters
    ----------
    file : path or file
    most : int, default 4 GiB
        Bytes that the arrays may take together.

    Raises
    ------
    ValueError
        It is none, an array is not as long as its header says, or holds objects, or there is more than ``most``.

    Complexity: O(bytes of the arrays), which are at most ``most``.
    """
    try:
        with ZipFile(file) as archive:
            members = archive.infolist()
            _check_members(members, most)
            return {_name(member): _read(archive, member) for member in members}
    except (BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise ValueError(f"no whole npz file: {error}") from error


def _check_members(members: list[ZipInfo], most: int) -> None:
    names = [_name(member) for member in members]
    if len(set(names)) < len(names):
        raise ValueError("two arrays have one name")
    for member in members:
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise ValueError(f"{member.filename!r:.80} is compressed in another way")
        if member.file_size > UNFOLDED * member.compress_size + SLACK:
            raise ValueError(f"{member.filename!r:.80} cannot be as long as it says")
    total = sum(member.file_size for member in members)
    if total > most:
        raise ValueError(f"its arrays take {total:,} bytes, and {most:,} at most")


def _name(member: ZipInfo) -> str:
    return member.filename.removesuffix(SUFFIX)


def _read(archive: ZipFile, member: ZipInfo) -> Array:
    with archive.open(member) as file:
        shape, is_fortran, kind = _header(file, member.filename)
        values = 1
        for size in shape:
            values *= size
        if kind.hasobject or not kind.itemsize or any(size < 0 for size in shape):
            raise ValueError(f"{member.filename!r:.80} holds no plain numbers or texts")
        if values * kind.itemsize != member.file_size - file.tell():
            raise ValueError(f"{member.filename!r:.80} is not as long as its shape {shape} says")
        held = bytearray(file.read())
        if len(held) != values * kind.itemsize:
            raise ValueError(f"{member.filename!r:.80} is cut off")
        return np.frombuffer(held, kind).reshape(shape, order="F" if is_fortran else "C")


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"{name!r:.80} has another format of arrays")
    try:
        return HEADERS[version](file)
    except (ArithmeticError, MemoryError, RecursionError, SyntaxError, TokenError, TypeError) as error:
        raise ValueError(f"{name!r:.80} has no header that can be read") from error


def write_npz(file: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays, compressed.

    Raises
    ------
    HistoryError
        ``ACEP-H008``: they are more than ``read_npz`` would read.
    """
    total = sum(array.nbytes for array in arrays.values())
    if total > MOST_BYTES - (1 << 20):
        raise HistoryError(
            f"the history is too large to be saved: {file.name} would hold {total:,} bytes",
            code="ACEP-H008",
            hint="learn it with fewer bundles or fewer features",
        )
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


# --- what a history has counted -----------------------------------------------------------------------------------

VERTICES, EDGES, OVERLAPS = "vertices.parquet", "edges.parquet", "overlaps.parquet"
BUNDLES, MAPS = "bundles.parquet", "maps.npz"
TABLES = (VERTICES, EDGES, OVERLAPS, BUNDLES, MAPS)
DENSE = dict.fromkeys(COUNTED, "int64") | {"cost": "float64"}
"""What is counted at vertices, with its type; tables have only those that were visited."""
PAIRS = {EDGES: OF_EDGES, OVERLAPS: OF_OVERLAPS}
"""Files of pairs, of vertices or of groups, with what is counted of each."""
MOST_PAIRS = 1 << 27
"""Pairs that a file may hold: four columns of them are as much as an npz file may hold."""
Column = Callable[[str], Any]
"""Gives a column by its name."""


# --- as bytes -----------------------------------------------------------------------------------------------


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
    mapped, bits = _map_rows(counts)
    names = (*DENSE, *PAIRS[EDGES], *PAIRS[OVERLAPS], *ENDS)
    np.savez(
        file,
        map_vertices=mapped,
        map_bits=bits,
        **{name: getattr(counts, name) for name in names},
        **{f"bundle_{field.name}": getattr(counts.bundles, field.name) for field in fields(Bundles)},
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
    counts, scheme = graph.counts, graph.scheme
    arrays = read_npz(io.BytesIO(packed), len(packed))
    slots = arrays["bundle_slot"]
    require(slots.dtype.kind == "U" and slots.ndim == 1, "slot is not text everywhere")
    require(len(slots) <= graph.most_bundles, f"there are {len(slots)} bundles, and {graph.most_bundles} at most")
    counts.bundles = _bundles(slots, lambda name: arrays[f"bundle_{name}"])
    for name, type_ in DENSE.items():
        setattr(counts, name, check_column(name, arrays[name], type_, scheme.vertices))
    for names, size in ((PAIRS[EDGES], scheme.vertices), (PAIRS[OVERLAPS], scheme.groups)):
        _take_pairs(counts, names, arrays.__getitem__, size, size)
    _take_maps(counts, arrays, "map_", scheme.vertices)
    return graph


# --- as files -----------------------------------------------------------------------------------------------


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
    mapped, bits = _map_rows(counts)
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
        MAPS: lambda file: _take_maps(counts, read_npz(file), "", scheme.vertices),
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


def _columns(file: Path, kinds: dict[str, str], most: int) -> Column:
    table = _table(file, {name: pa.type_for_alias(kind) for name, kind in kinds.items()}, most)
    return lambda name: table.column(name).to_numpy()


def _read_vertices(counts: Counts, file: Path, vertices: int) -> None:
    column = _columns(file, {"vertex": "int64", **DENSE}, vertices)
    seen = check_places("vertex", column("vertex"), vertices)
    check_order("vertex", seen)
    for name, type_ in DENSE.items():
        getattr(counts, name)[seen] = check_column(name, column(name), type_, len(seen))


def _read_pairs(counts: Counts, file: Path, size: int) -> None:
    names = PAIRS[file.name]
    _take_pairs(counts, names, _columns(file, dict.fromkeys(names, "int64"), MOST_PAIRS), size, size)


def _read_bundles(counts: Counts, file: Path, most: int) -> None:
    kinds = {field.name: pa.string() if field.name == "slot" else pa.int64() for field in fields(Bundles)}
    table = _table(file, kinds, most)
    slots = table.column("slot")
    require(not slots.null_count, "slot is not text everywhere")
    longest = max((len(text) for chunk in slots.chunks for text in chunk.dictionary.to_pylist()), default=0)
    size = table.num_rows
    require(4 * longest * size <= MOST_BYTES, f"texts of {longest} characters are too long for {size} bundles")
    counts.bundles = _bundles(np.array(slots.to_pylist(), np.str_), lambda name: table.column(name).to_numpy())


# --- either way ---------------------------------------------------------------------------------------------


def _bundles(slots: Texts, column: Column) -> Bundles:
    first, last, row, points = (
        check_column(name, column(name), "int64", len(slots), least)
        for name, least in (("first", None), ("last", None), ("row", 0), ("points", 1))
    )
    require((first <= last).all() and (first[1:] >= first[:-1]).all(), "first and last are not in order")
    return Bundles(first, last, slots, row, points)


def _take_pairs(counts: Counts, names: tuple[str, ...], column: Column, size: int, other_size: int) -> None:
    """Take over numbers of pairs, each once and in order, of two things of which there are so many."""
    first, second, *numbers = names
    one, other = check_places(first, column(first), size), check_places(second, column(second), other_size)
    require(len(one) == len(other), f"{first} and {second} are not of one length")
    check_order(f"{first}, {second}", one, other, max(other_size, 1))
    setattr(counts, first, one)
    setattr(counts, second, other)
    for name in numbers:
        setattr(counts, name, check_column(name, column(name), "int64", len(one)))


def _take_maps(counts: Counts, arrays: Mapping[str, Array], prefix: str, vertices: int) -> None:
    """Take over match maps, and edges to bundles; the bundles are known by now."""
    bundles = len(counts.bundles)
    mapped = check_places("vertices", arrays[f"{prefix}vertices"], vertices)
    bits = arrays[f"{prefix}bits"]
    require(len(np.unique(mapped)) == len(mapped), "a vertex has two maps")
    require(bits.dtype == np.uint8 and bits.shape == (len(mapped), (bundles + 7) // 8), "bits have another form")
    for vertex, row in zip(mapped.tolist(), bits, strict=True):
        counts.maps[vertex] = found = bitarray(endian="big")
        found.frombytes(row.tobytes())
        del found[bundles:]
    _take_pairs(counts, ENDS, arrays.__getitem__, vertices, bundles)


def _map_rows(counts: Counts) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    rows = [np.frombuffer(bits.tobytes(), np.uint8) for bits in counts.maps.values()]
    width = (len(counts.bundles) + 7) // 8
    return np.array(list(counts.maps), np.int64), np.stack(rows) if rows else np.empty((0, width), np.uint8)
