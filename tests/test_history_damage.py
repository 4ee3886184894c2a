"""A damaged history is refused with ACEP-H00x, whatever happened to which of its files; nothing of it is used."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.training.history_graph import newest
from history.errors import HistoryError
from history.store import DIGEST, LEARNED, MANIFEST, pointed, prune
from history.tables import BUNDLES, DENSE, ENDS, MAPS, PAIRS, TABLES, VERTICES
from history.values import Values
from history.versions import LATEST

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE (c.x - a.x) * (c.x - a.x) < 40 WITHIN 60"
FLIPS = 40
OTHERS: tuple[Any, ...] = (None, -1, 2.5, 10**30, "x", [], {}, [[0]], True, {"x": -1}, float("nan"))
"""What a value of the manifest is replaced by."""
INDICES = ("vertex", "source", "target", "covered", "cover", "vertices", "ends_vertex", "ends_bundle")


def stream(events: int = 2500) -> pa.Table:
    dice = np.random.default_rng(2)
    letter, x = dice.integers(0, 3, events), dice.integers(0, 100, events)
    x[letter == 2] = 10
    return pa.table({"ts": np.arange(events), "type": pa.array(np.array(list("ABC"))[letter]), "x": x})


@pytest.fixture(scope="module")
def query() -> Query:
    return compile_query(QUERY, engine="runs")


@pytest.fixture(scope="module")
def saved(query: Query, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with features and with what a learner has found; not to be changed."""
    known = HistoryGraph(query, gap="window").fit(stream())
    assert any(place.features for place in known.graph_.scheme.places)
    found = known.values()
    known.learned_ = Values(found.gain, found.cost, found.chance)
    known.learned_overlap_ = np.zeros(len(known.graph_.scheme.places))
    home = tmp_path_factory.mktemp("saved") / "past"
    known.save(home)
    return home


@pytest.fixture
def home(saved: Path, tmp_path: Path) -> Path:
    """A copy of it that can be damaged."""
    return Path(shutil.copytree(saved, tmp_path / "past"))


def files(home: Path) -> list[Path]:
    return [home / LATEST, *(home / "v0001" / name for name in (MANIFEST, LEARNED, *TABLES))]


def refused(home: Path, query: Query) -> HistoryError:
    """The error of a history that cannot be loaded."""
    with pytest.raises(HistoryError) as caught:
        HistoryGraph.load(home, query)
    assert caught.value.code.startswith("ACEP-H00")
    assert str(home) in str(caught.value)
    assert caught.value.hint or caught.value.code == "ACEP-H001"
    return caught.value


def said(known: HistoryGraph) -> str:
    """All that a history says."""
    counts = {name: column for name, column in vars(known.graph_.counts).items() if name != "bundles"}
    bundles = vars(known.graph_.counts.bundles)
    learned = vars(known.learned_) if known.learned_ is not None else {}
    columns = {name: column.tolist() if isinstance(column, np.ndarray) else column for name, column in {
        **counts, **bundles, **learned}.items()}  # fmt: skip
    return repr([known.graph_.scheme, known.prices_, known.events_, known.points_, known.overlap_, columns])


def harmed(whole: bytes) -> Iterator[bytes]:
    """Bits flipped, cut off, too long, replaced."""
    dice = Random(3)
    for bit in (dice.randrange(8 * len(whole)) for _ in range(FLIPS)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)
    yield from (b"", whole[:1], whole[: len(whole) // 2], whole[:-2], whole + b"x", b"\xff\xfe\xfd", bytes(100))
    yield from (b"v" + b"9" * 5000, b"[" * 100_000, "v\u0661\u0661\u0661\u0661".encode())


@pytest.mark.parametrize("number", range(8))
def test_files_that_changed_are_refused_or_say_the_same(number: int, home: Path, query: Query) -> None:
    before = said(HistoryGraph.load(home, query))
    file = files(home)[number]
    whole = file.read_bytes()
    refusals = 0
    for content in harmed(whole):
        file.write_bytes(content)
        try:
            known = HistoryGraph.load(home, query)
        except HistoryError as error:
            assert error.code in ("ACEP-H003", "ACEP-H004")
            refusals += 1
        else:
            assert said(known) == before
    assert refusals > 40
    file.unlink()
    assert refused(home, query).code == "ACEP-H004"


def test_what_a_terminal_would_obey_is_shown(home: Path, query: Query) -> None:
    file = home / "v0001" / MANIFEST
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": "\x1b]52;c;eA==\x07\u202e\x9b31m"}))
    error = refused(home, query)
    assert error.code == "ACEP-H003"
    assert r"has format \x1b]52;c;eA==\x07\u202e\x9b31m" in str(error)
    assert str(error).replace("\n", "").isprintable()


def test_a_pointer_that_is_no_text_stops_nobody(home: Path, query: Query) -> None:
    (home / LATEST).write_bytes(b"\xff\xfe")
    assert refused(home, query).code == "ACEP-H004"
    with pytest.raises(HistoryError, match="ACEP-H004"):
        pointed(home)
    assert prune(home) == []
    assert newest(home, query).version_ == 1  # the newest that can be read, with a warning
    assert HistoryGraph.load(home, query, version=1).version_ == 1


# --- the manifest -------------------------------------------------------------------------------------------


def changed(value: Any) -> Iterator[Any]:
    """JSON with one key renamed, or one value replaced, wherever it is."""
    if isinstance(value, dict):
        for key, held in value.items():
            rest = {name: other for name, other in value.items() if name != key}
            yield {**rest, f"{key}s": held}
            yield from ({**rest, key: one} for one in (*OTHERS, *changed(held)))
    elif isinstance(value, list) and value:
        yield value[1:]
        yield [*value, value[-1]]
        yield from ([*value[:-1], one] for one in (*OTHERS, *changed(value[-1])))


def read(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "v0001" / MANIFEST).read_text("utf-8"))
    return found


def write(home: Path, manifest: Any) -> None:
    (home / "v0001" / MANIFEST).write_text(json.dumps(manifest), "utf-8")


def test_a_manifest_that_says_anything_else_is_refused(home: Path, query: Query) -> None:
    manifest = read(home)
    for other in changed(manifest):
        if DIGEST in other and other != manifest:
            write(home, other)
            assert refused(home, query).code in ("ACEP-H003", "ACEP-H004")
    for other in (None, 1, "x", [], {}, [manifest]):
        write(home, other)
        assert refused(home, query).code == "ACEP-H004"


def test_what_an_older_manifest_says_is_checked(home: Path, query: Query) -> None:
    """Without a digest, what cannot be seen to be wrong is taken; but then all of it can be used."""
    manifest = read(home)
    del manifest[DIGEST]
    write(home, manifest)
    known = HistoryGraph.load(home, query)
    taken = refusals = 0
    for other in changed(manifest):
        write(home, other)
        try:
            known = HistoryGraph.load(home, query)
        except HistoryError as error:
            assert error.code in ("ACEP-H002", "ACEP-H003", "ACEP-H004")
            refusals += 1
        else:
            assert len(known.values().gain) == known.graph_.scheme.vertices
            known.worth()
            assert 0 <= known.prices_.price(0.5) < np.inf
            taken += 1
    assert refusals > 5 * taken > 0


def test_a_key_of_the_manifest_that_was_renamed_is_told(home: Path, query: Query) -> None:
    manifest = read(home)
    del manifest[DIGEST]
    manifest["notes"]["price"] = manifest["notes"].pop("prices")
    write(home, manifest)
    assert "prices" in str(refused(home, query))


@pytest.mark.parametrize(("at", "number"), [(0, 10**30), (0, 10**400), (1, 2**62), (2, 10**30)])
def test_numbers_of_a_price_that_are_too_long_are_refused_or_reckoned_with(
    home: Path, query: Query, at: int, number: int
) -> None:
    manifest = read(home)
    del manifest[DIGEST]
    manifest["notes"]["prices"][-1][at] = number
    write(home, manifest)
    if (at, number) == (0, 10**30):
        assert HistoryGraph.load(home, query).prices_.price(1e-9) == pytest.approx(1e30)
    else:
        assert refused(home, query).code == "ACEP-H004"


# --- the tables ---------------------------------------------------------------------------------------------


def columns_of(file: Path) -> dict[str, Any]:
    """The columns of a file, whatever it is."""
    if file.suffix == ".npz":
        with np.load(file) as arrays:
            return dict(arrays)
    table = pq.read_table(file)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def replace(home: Path, name: str, columns: dict[str, Any]) -> None:
    """Write a file anew, with a digest that is right."""
    file = home / "v0001" / name
    if file.suffix == ".npz":
        np.savez_compressed(file, **columns)
    else:
        pq.write_table(pa.table(columns), file)
    manifest = read(home)
    manifest["files"][name] = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest.pop(DIGEST, None)
    write(home, manifest)


def last(column: Any, value: Any) -> Any:
    """A column with another last value."""
    return np.concatenate((column[:-1], np.array([value], column.dtype)))


def at_end(value: Any) -> Callable[[Any], Any]:
    return lambda column: last(column, value)


HARMS: dict[str, Callable[[Any], Any]] = {
    "far": at_end(10**9),
    "negative": at_end(-1),
    "largest": at_end(2**63 - 1),
    "twice": lambda column: last(column, column[-2]),
    "type": lambda column: column.astype(np.float32 if column.dtype.kind == "i" else np.int32),
    "short": lambda column: column[:-1],
    "long": lambda column: np.concatenate((column, column[-1:])),
    "square": lambda column: column[None],
    "text": lambda column: np.array(["x"] * len(column)),
}
NUMBERS = [
    *((VERTICES, name) for name in ("vertex", *DENSE)),
    *((file, name) for file, names in PAIRS.items() for name in names),
    *((BUNDLES, name) for name in ("first", "last", "row", "points")),
    *((MAPS, name) for name in ("vertices", "bits", *ENDS)),
    *((LEARNED, name) for name in ("gain", "cost", "chance", "overlap")),
]
HARMLESS = {
    *((name, harm) for _, name in NUMBERS for harm in ("far", "largest", "twice") if name not in INDICES),
    ("first", "negative"), ("last", "far"), ("last", "largest"), ("bits", "negative"), ("source", "twice"),
    ("covered", "twice"), ("cover", "twice"), ("ends_vertex", "twice"), ("ends_bundle", "twice"), ("target", "twice"),
    *((name, "negative") for name in ("gain", "cost", "chance", "overlap")), ("points", "twice"),
}  # fmt: skip
"""Other numbers, and no indices; or pairs that stay different."""


@pytest.mark.parametrize(("file", "name"), NUMBERS)
def test_tables_that_hold_something_else_are_refused(file: str, name: str, home: Path, query: Query) -> None:
    """Though their digests are right, and there is none of the manifest."""
    columns = columns_of(home / "v0001" / file)
    replace(home, file, columns)
    HistoryGraph.load(home, query)
    rest = {key: column for key, column in columns.items() if key != name}
    changes = {"gone": rest, "renamed": {**rest, f"{name}s": columns[name]}}
    for harm, do in HARMS.items():
        is_possible = file.endswith(".npz") or harm not in ("short", "long", "square")
        if is_possible and (name, harm) not in HARMLESS and not (name == "bits" and harm in ("far", "largest")):
            changes[harm] = {**rest, name: do(columns[name])}
    for harm, other in changes.items():
        replace(home, file, other)
        error = refused(home, query)
        assert error.code == "ACEP-H004", harm
        assert name in str(error) or file in str(error), harm
