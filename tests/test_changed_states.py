"""A state of any kind in which a number was changed, under a digest of its own, is refused or runs without a crash."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import HistoryGraph, QuerySet, compile_query, compile_rules
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.errors import StoreError
from acep_approx.events.roles import Roles
from acep_approx.ipc import from_ipc, to_ipc
from acep_approx.live.checkpoint import NAME, Checkpoint, CheckpointFolder
from acep_approx.rules.durable.notes import digest
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.query import QueryProgram
from acep_approx.spark.worker.shard import Shard
from acep_approx.spark.worker.spending import Spending
from history.errors import HistoryError
from history.tables import read_npz
from tests.cases import cases
from tests.changed_states import Use, changed, findings

EVENTS, MORE = 240, 60
CELLS = "PATTERN SEQ(A a, ~(D d), B b, C+ c[]) WHERE [k] WITHIN 20 ERRORS 1"
RUNS = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > b.x WITHIN 60"
TEXTS = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { b.s != a.s AND c.s = a.s } WITHIN 40 events"
WAITING = "PATTERN SEQ(A a, ~(D d), B b, ~(C c)) WHERE [k] AND b.x > a.x AND d.x > a.x AND c.x < b.x WITHIN 30"
ALGEBRA = "SELECT * FROM A FOLD{$2.k = $1.k, $2.x > $.x, } B"
TEMPLATE = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { [k] AND b[i].x >= :p } WITHIN :w"
RULES = """
TABLE seen (k int, n int DEFAULT 0, s text, KEY (k))
RULE one ON PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 20
DO UPDATE seen SET n = 1 AT (b.k); CALL tell(b.k, b.x) END
RULE two ON PATTERN SEQ(B b, C+ c[], D d) WHERE [k] AND store.seen[b.k].n = 0 AND d.x > b.x WITHIN 10
DO UPDATE seen SET n = 0, s = d.s AT (d.k) END
"""
CALLS: dict[str, Any] = {"tell": lambda _: None}
Made = tuple[bytes, Use]


def stream(events: int, first: int = 0) -> pa.Table:
    dice = np.random.default_rng(first)
    columns = {"ts": np.arange(first, first + events), "x": dice.integers(0, 30, events)}
    words = {name: pa.array(dice.choice(list(of), events)) for name, of in (("type", "ABCD"), ("s", "uvwxyz"))}
    return pa.table({**columns, "k": dice.integers(0, 5, events), **words})


LATER = stream(MORE, EVENTS)


def goes_on(restore: Callable[[bytes], Any]) -> Use:
    """Restores something that takes events, gives it more in two parts, and its end; its state is asked in between."""

    def use(state: bytes) -> None:
        found = restore(state)
        for part in (LATER.slice(0, MORE // 2), LATER.slice(MORE // 2)):
            found.push(part)
            found.state_bytes()
        found.finish()

    return use


def of_matcher(text: str, output: Any = "matches", **options: Any) -> Made:
    query = compile_query(text)
    matcher = query.matcher(output=output, **options)
    matcher.push(stream(EVENTS))
    return matcher.state_bytes(), goes_on(query.from_state)


def of_budget() -> Made:
    known = HistoryGraph(compile_query(RUNS)).fit(stream(EVENTS))
    query = compile_query(RUNS)
    matcher = query.matcher(budget="30%", history=known, seed=4, audit=0.5)
    matcher.push(stream(EVENTS))
    return matcher.state_bytes(), goes_on(lambda state: query.from_state(state, history=known))


def of_learner() -> Made:
    query = compile_query(RUNS)

    def shedder() -> Shedder:
        return Shedder(query.plan, Load(Budget.parse("20 steps/event"), seed=3, learns=True))

    matcher = Matcher(query.plan, shedding=shedder())
    matcher.push(stream(EVENTS))
    return matcher.state_bytes(), goes_on(lambda state: Matcher.from_state(query.plan, state, shedder()))


def of_set() -> Made:
    queries = QuerySet()
    for text in (CELLS, RUNS):
        queries.add(text)
    queries.add_many(TEMPLATE, [{"p": n % 9, "w": 10 + n % 7} for n in range(12)])
    queries.push(stream(EVENTS))
    return queries.state_bytes(), goes_on(QuerySet.from_state)


def of_rules() -> Made:
    rules = compile_rules(RULES)
    run = rules.start(calls=CALLS)
    run.push(stream(EVENTS))
    return run.state_bytes(), goes_on(lambda state: rules.from_state(state, calls=CALLS))


def of_shard() -> Made:
    table = stream(EVENTS)
    spending = Spending(Budget.parse("9 steps/event"), policy="oldest")
    program = QueryProgram(compile_query(RUNS), "x")
    job = Job.of(program, table.schema, Roles("ts", None, "type", None), ("x",), 1, spending)
    shard = Shard(job)
    shard.process(table, EVENTS - 50)

    def use(state: bytes) -> None:
        there = Shard(job, state=state)
        there.process(LATER, EVENTS + MORE)
        there.to_bytes()
        there.finish()

    return shard.to_bytes(), use


MATCHERS: dict[str, Callable[[], Made]] = {
    "cells, matches": lambda: of_matcher(CELLS),
    "cells, counts": lambda: of_matcher(CELLS, "counts"),
    "cells, partial matches": lambda: of_matcher(CELLS, "partial"),
    "runs, points": lambda: of_matcher(RUNS, "points"),
    "runs, partial matches": lambda: of_matcher(RUNS, "partial"),
    "runs, texts": lambda: of_matcher(TEXTS),
    "runs, negations that wait": lambda: of_matcher(WAITING),
    "an algebra": lambda: of_matcher(ALGEBRA),
    "revised, final": lambda: of_matcher(RUNS, watermark=10, source="s", idle=50),
    "revised, early": lambda: of_matcher(CELLS, watermark=10, emit="early"),
    "budget": of_budget,
    "learner": of_learner,
    "set": of_set,
    "rules": of_rules,
    "shard": of_shard,
}


@pytest.mark.parametrize("kind", MATCHERS)
def test_states(kind: str) -> None:
    state, use = MATCHERS[kind]()
    use(state)
    assert findings(state, use, range(cases(1000, 12))) == []


def test_checkpoints_of_live_runs(tmp_path: Path) -> None:
    state, run_on = of_matcher(TEXTS)
    file = tmp_path / NAME
    with CheckpointFolder(tmp_path) as folder:
        folder.write(Checkpoint({"query": TEXTS}, state, {"offset": 7}, {"results": 12}, {"events": EVENTS}))

    def use(checkpoint: bytes) -> None:
        file.write_bytes(checkpoint)
        with CheckpointFolder(tmp_path) as folder:
            found = folder.read()
        if found is not None and found.state is not None:
            run_on(found.state)

    assert findings(file.read_bytes(), use, range(cases(1000, 12))) == []


def test_stores(tmp_path: Path) -> None:
    """Both the state of the run and matches that wait."""
    rules, whole, copy = compile_rules(RULES), tmp_path / "whole.db", tmp_path / "copy.db"
    with rules.start(at=whole, calls=CALLS) as run:
        run.push(stream(EVENTS))
    with sqlite3.connect(whole) as store:
        ((offset, engine),) = store.execute("SELECT offset, engine FROM acep_checkpoint").fetchall()

    def run_on(statement: str, *values: Any) -> None:
        for suffix in ("", "-wal", "-shm"):
            copy.with_name(copy.name + suffix).unlink(missing_ok=True)
        copy.write_bytes(whole.read_bytes())
        store = sqlite3.connect(copy)
        store.execute(statement, values)
        store.commit()
        store.close()
        with rules.start(at=copy, calls=CALLS) as run:
            run.push(LATER)
            run.finish()

    def use(state: bytes) -> None:
        run_on("UPDATE acep_checkpoint SET engine = ?, sha256 = ?", state, digest(offset, state))

    assert findings(engine, use, range(cases(1000, 12))) == []
    matches = to_ipc(pa.table({"x": [1]}))
    add = "INSERT INTO acep_matches (rule, rows, arrow, sha256) VALUES (?, 1, ?, ?)"
    for rule, arrow in (("none", matches), ("one", matches[:-9]), ("one", b"")):
        with pytest.raises(StoreError, match="ACEP-R209"):
            run_on(add, rule, arrow, digest(rule, arrow))
    with pytest.raises(StoreError, match="ACEP-R209"):
        run_on("UPDATE acep_checkpoint SET offset = 7, sha256 = ?", digest(7, engine))


# --- histories ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("history")
    HistoryGraph(compile_query(RUNS)).fit(stream(EVENTS)).save(home)
    return home


def sealed_anew(folder: Path) -> None:
    """Make the digests of a version of a history again."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    del manifest["sha256"]
    manifest["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in manifest["files"]}
    manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def with_arrays(file: Path, **others: np.ndarray) -> None:
    np.savez_compressed(file, **{**read_npz(file), **others})


def with_header(file: Path, name: str, header: bytes, content: bytes = b"") -> None:
    """An npz of which one array says something else of its shape and type."""
    with zipfile.ZipFile(file) as archive:
        parts = {member: archive.read(member) for member in archive.namelist()}
    parts[f"{name}.npy"] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, part in parts.items():
            archive.writestr(member, part)


def false_arrays() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Ways to write an array that is not what it says."""

    def header(shape: str, kind: str = "<i8", content: bytes = bytes(64)) -> Callable[[Path], None]:
        text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        return lambda file: with_header(file, "ends", text, content)

    yield "of 10^11 numbers", header("(100000000000,)")
    yield "of 10^11 rows without columns", header("(100000000000, 0)", content=b"")
    yield "of a negative length", header("(-8,)")
    yield "of no dimension", header("()", content=bytes(8))
    yield "of more than any number", header("(9223372036854775807, 9223372036854775807)")
    yield "of objects", header("(8,)", "|O")
    yield "of nothing", header("(8,)", "|V0", b"")
    yield "with half a header", lambda file: with_header(file, "ends", b"{'descr'")
    yield "unfolding to gigabytes", lambda file: bomb(file, 5 << 30)


def bomb(file: Path, size: int) -> None:
    """A member that says how long it is in the directory alone; the bytes are few."""
    with_header(file, "ends", b"x")
    content = bytearray(file.read_bytes())
    at = content.index(b"PK\x01\x02")
    while content[at : at + 4] == b"PK\x01\x02":
        content[at + 24 : at + 28] = struct.pack("<I", min(size, 2**32 - 2))
        at = content.index(b"PK", at + 46)
    file.write_bytes(bytes(content))


@pytest.mark.parametrize(("what", "harm"), [*false_arrays()])
def test_false_arrays_of_histories(saved: Path, tmp_path: Path, what: str, harm: Callable[[Path], None]) -> None:
    """They are refused before there is room for them, with their digests made again."""
    copied(saved, tmp_path)
    harm(tmp_path / "v0001" / "maps.npz")
    sealed_anew(tmp_path / "v0001")
    with pytest.raises(HistoryError) as error:
        HistoryGraph.load(tmp_path, compile_query(RUNS))
    assert error.value.code == "ACEP-H004", what


def copied(home: Path, to: Path) -> None:
    (to / "v0001").mkdir()
    for file in ("LATEST", *(f"v0001/{one.name}" for one in (home / "v0001").iterdir())):
        (to / file).write_bytes((home / file).read_bytes())


def test_long_tables_of_histories(saved: Path, tmp_path: Path) -> None:
    """A few bytes of Parquet can stand for any number of rows."""
    copied(saved, tmp_path)
    many = pa.array(np.zeros(1 << 20, np.int64))
    file = tmp_path / "v0001" / "vertices.parquet"
    names = pq.read_schema(file).names
    pq.write_table(pa.table({name: many if name != "cost" else many.cast(pa.float64()) for name in names}), file)
    assert file.stat().st_size < 100_000
    sealed_anew(tmp_path / "v0001")
    with pytest.raises(HistoryError, match=r"ACEP-H004.* rows, and \d+ at most"):
        HistoryGraph.load(tmp_path, compile_query(RUNS))


def test_numbers_of_histories(saved: Path, tmp_path: Path) -> None:
    """A number of any of its files is another one."""
    copied(saved, tmp_path)
    folder = tmp_path / "v0001"
    names = sorted(one.name for one in folder.iterdir())
    files = {name: (folder / name).read_bytes() for name in names}
    query = compile_query(RUNS)

    def use(state: bytes) -> None:
        number, state = state[0], state[1:]
        for name, content in {**files, names[number]: state}.items():
            (folder / name).write_bytes(content)
        sealed_anew(folder)
        known = HistoryGraph.load(tmp_path, query)
        matcher = query.matcher(budget="30%", history=known)
        matcher.push(LATER)

    def change(_: bytes, dice: Random) -> bytes:
        number = dice.randrange(len(names))
        name = names[number]
        if not name.endswith(".parquet"):
            return bytes([number]) + changed(files[name], dice)
        table = from_ipc(changed(to_ipc(pq.read_table(io.BytesIO(files[name]))), dice))
        pq.write_table(table, file := io.BytesIO())
        return bytes([number]) + file.getvalue()

    assert findings(b"", use, range(cases(1000, 24)), change) == []


# --- columns that were compressed ---------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("size", [10**11, 2**62, -2, -(2**63)])
def test_false_lengths_of_columns(codec: str, size: int) -> None:
    """Arrow makes room for what a column says that it holds before it looks at it."""
    table = pa.table({"x": np.arange(1000) % 7, "s": ["abc"] * 1000})
    content = bytearray(to_ipc(table, codec))
    assert from_ipc(bytes(content)).equals(table)
    at = content.index(struct.pack("<q", 8000))
    content[at : at + 8] = struct.pack("<q", size)
    with pytest.raises(pa.ArrowInvalid, match="says that it holds"):
        from_ipc(bytes(content))
