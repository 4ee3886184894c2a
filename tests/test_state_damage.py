"""State that is not to the bit what was written is refused before anything of it is used."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import DataError, HistoryGraph, QuerySet, archive, compile_query, compile_rules
from acep_approx.api.matcher import Matcher
from acep_approx.archive import DIGEST, MAGIC, OLDER, Kind, Scope
from acep_approx.budget.budget import Budget
from acep_approx.events.roles import Roles
from acep_approx.learning.online import LEARNER
from acep_approx.live.checkpoint import NAME, CheckpointFolder
from acep_approx.matching.state import MATCHER
from acep_approx.rules.durable.notes import digest
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.query import QueryProgram
from acep_approx.spark.worker.shard import SHARD, Shard, describe
from acep_approx.spark.worker.spending import Spending
from tests.spark_driving import QUERY, job_of, run
from tests.spark_driving import stream as keyed_stream

LOOKED_AT = 2 * (len(MAGIC) + DIGEST)
"""Bytes at the beginning of which every bit is flipped."""
FLIPS = 400
CELLS = "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 40 ERRORS 1"
RUNS = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > b.x WITHIN 60"
WAITING = "PATTERN SEQ(A a, B b, ~C c) WHERE [k] AND b.x > a.x WITHIN 60"
TEXTS = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { b.s != a.s AND c.s = a.s } WITHIN 40 events"


def stream(events: int = 900) -> pa.Table:
    dice = np.random.default_rng(3)
    columns = {"ts": np.arange(events), "x": dice.integers(0, 30, events), "k": dice.integers(0, 5, events)}
    words = {name: pa.array(dice.choice(list(of), events)) for name, of in (("type", "ABCD"), ("s", "uvwxyz"))}
    return pa.table({**columns, **words})


@cache
def known() -> HistoryGraph:
    return HistoryGraph(compile_query(RUNS)).fit(stream())


def harmed(whole: bytes) -> Iterator[bytes]:
    """Every bit of the beginning flipped, bits anywhere, bytes replaced, cut off, too long."""
    dice = Random(5)
    bits = [*range(8 * min(LOOKED_AT, len(whole))), *(dice.randrange(8 * len(whole)) for _ in range(FLIPS))]
    for bit in bits:
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)
    for at in range(len(MAGIC) + DIGEST):
        yield whole[:at] + bytes([whole[at] ^ dice.randrange(1, 256)]) + whole[at + 1 :]
    for size in (0, 1, 7, 8, 20, 40, 41, 48, 100, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        yield whole[:size]
    yield from (whole + bytes(1), whole + bytes(8), whole + whole, whole[1:], whole[8:])


def matcher_state(text: str, output: str, budget: str) -> tuple[bytes, Callable[[Any], object]]:
    """A state, and what restores it."""
    query = compile_query(text)

    def shedder() -> Shedder | None:
        return Shedder(query.plan, Load(Budget.parse(budget), known())) if budget else None

    matcher = Matcher(query.plan, output=output, shedding=shedder())  # type: ignore[arg-type]
    matcher.push(stream())
    return matcher.state_bytes(), lambda state: Matcher.from_state(query.plan, state, shedder())


STATES = [
    (CELLS, "points", ""), (CELLS, "matches", ""), (CELLS, "counts", ""), (CELLS, "partial", ""), (RUNS, "points", ""),
    (RUNS, "matches", ""), (WAITING, "matches", ""), (TEXTS, "matches", ""), (RUNS, "matches", "30%"),
    (RUNS, "points", "20 runs"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "output", "budget"), STATES)
def test_the_state_of_a_matcher(text: str, output: str, budget: str) -> None:
    whole, restore = matcher_state(text, output, budget)
    restore(whole)
    for state in harmed(whole):
        with pytest.raises(DataError) as error:
            restore(state)
        assert error.value.code == "ACEP-D040"


@pytest.mark.parametrize("spending", [None, Spending(Budget.parse("9 steps/event"), policy="oldest")])
def test_the_state_of_a_shard(spending: Spending | None) -> None:
    table = stream()
    program = QueryProgram(compile_query(RUNS), "x")
    job = Job.of(program, table.schema, Roles("ts", None, "type", None), ("x",), 1, spending)
    shard = Shard(job)
    shard.process(table, 500)
    whole = shard.to_bytes()
    assert len(Shard(job, state=whole).order.waiting) == 400
    for state in harmed(whole):
        for read in (lambda state: Shard(job, state=state), describe):
            with pytest.raises(DataError) as error:
                read(state)
            assert error.value.code == "ACEP-S010"


def test_what_a_driver_has_learned(tmp_path: Path) -> None:
    """It is learned anew, with a warning; never taken for something else."""
    control = tmp_path / "control"
    control.mkdir()
    events = keyed_stream(2)
    job = job_of(events, control, learns=True, history=str(tmp_path / "history"))
    run(job, control, events)
    refresher = refresher_of(job, control)
    whole = (control / LEARNER).read_bytes()
    refresher.restore(whole)
    for learned in harmed(whole):
        with pytest.raises(ValueError, match="those that were written"):
            refresher.restore(learned)


def refresher_of(job: Job, control: Path) -> Any:
    from acep_approx.spark.streaming.driver import Driver

    refresher = Driver(job, control).learning[""].refresher
    assert refresher is not None
    return refresher


def test_one_kind_of_state_is_not_taken_for_another() -> None:
    matcher = QUERY.matcher()
    mine = matcher.state_bytes()
    others = [sealed(b"{}"), sealed(b""), *(Kind(name).pack(Scope()) for name in ("set", "rules", "", "matchers"))]
    for state in others:
        with pytest.raises(DataError) as error:
            QUERY.from_state(state)
        assert error.value.code == "ACEP-D040"
    for state in (*others, mine):
        with pytest.raises(DataError) as error:
            describe(state)
        assert error.value.code == "ACEP-S010"


def sealed(content: bytes) -> bytes:
    """Anything behind a digest that is right."""
    return MAGIC + hashlib.sha256(content).digest() + content


@pytest.mark.parametrize("begins", OLDER)
def test_what_earlier_versions_wrote_is_of_another_format(begins: bytes) -> None:
    """Whether they wrote a digest, or none."""
    old = begins + QUERY.matcher().state_bytes()[len(MAGIC) :]
    for read, code in ((QUERY.from_state, "ACEP-D041"), (describe, "ACEP-S011")):
        with pytest.raises(DataError, match=f"{code}: .* the older format less than 13,") as error:
            read(old)
        assert error.value.code == code


def with_format(number: int, kind: Kind, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> bytes:
    with monkeypatch.context() as patched:
        patched.setattr(archive, "FORMAT", number)
        return kind.pack(scope)


@pytest.mark.parametrize(("number", "said"), [(5, "the older format 5"), (99, "format 99")])
def test_state_of_another_format_says_so(number: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a matcher and of a shard of a stream on Spark."""
    state = with_format(number, MATCHER, MATCHER.unpack(QUERY.matcher().state_bytes()), monkeypatch)
    with pytest.raises(DataError, match=f"ACEP-D041: the state has {said}, this version reads format 13"):
        QUERY.from_state(state)
    state = with_format(number, SHARD, Scope(), monkeypatch)
    with pytest.raises(DataError, match=f"ACEP-S011: the checkpoint holds state of {said}, and"):
        describe(state)


# --- what the versions before archives wrote ------------------------------------------------------------------------

WRITTEN = {
    kind: zlib.decompress(b64decode("".join(lines)))
    for kind, lines in json.loads(Path(__file__).with_name("older_states.json").read_bytes()).items()
}
"""A state of each kind, with a layout of its own each: written by the commit 73309974 from twelve events of
``tests/test_changed_states.py`` and its queries, and by a driver of Spark."""
RULES = compile_rules("""
TABLE seen (k int, n int DEFAULT 0, KEY (k))
RULE one ON PATTERN SEQ(A a, B b) WHERE [k] WITHIN 20 DO UPDATE seen SET n = 1 AT (b.k) END
""")


def restored_checkpoint(state: bytes, place: Path) -> None:
    with CheckpointFolder(place) as folder:
        (place / NAME).write_bytes(state)
        folder.read()


def restored_store(state: bytes, place: Path) -> None:
    """A store that holds the state of an older version, under the digest of its table."""
    RULES.start(at=place / "store.db").close()
    with sqlite3.connect(place / "store.db") as store:
        statement = "UPDATE acep_checkpoint SET offset = ?, engine = ?, sha256 = ?"
        store.execute(statement, (12, state, digest(12, state)))
    RULES.start(at=place / "store.db")


def restored_shard(state: bytes, _: Path) -> None:
    schema = stream(12).schema
    job = Job.of(QueryProgram(compile_query(RUNS), "x"), schema, Roles("ts", None, "type", None), ("x",))
    Shard(job, state=state)


OLDER_STATES: dict[str, tuple[str, Callable[[bytes, Path], object]]] = {
    "matcher": ("ACEP-D041", lambda state, _: compile_query(CELLS).from_state(state)),
    "revised matcher": ("ACEP-D041", lambda state, _: compile_query(RUNS).from_state(state)),
    "set": ("ACEP-D041", lambda state, _: QuerySet.from_state(state)),
    "rules": ("ACEP-D041", lambda state, _: RULES.from_state(state)),
    "store": ("ACEP-D041", restored_store),
    "shard": ("ACEP-S011", restored_shard),
    "checkpoint": ("ACEP-D063", restored_checkpoint),
}


@pytest.mark.parametrize("kind", OLDER_STATES)
def test_states_of_older_versions_are_refused(kind: str, tmp_path: Path) -> None:
    code, restore = OLDER_STATES[kind]
    with pytest.raises(DataError, match=f"{code}: .* the older format") as error:
        restore(WRITTEN[kind], tmp_path)
    assert error.value.code == code


def test_learners_of_older_versions_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The driver learns anew, and says so."""
    assert WRITTEN.keys() == {*OLDER_STATES, "learner"}
    job = job_of(keyed_stream(2), tmp_path, learns=True, history=str(tmp_path / "history"))
    (tmp_path / LEARNER).write_bytes(WRITTEN["learner"])
    refresher = refresher_of(job, tmp_path)
    assert "learned anew" in caplog.text
    with pytest.raises(ValueError, match="these bytes have the older format"):
        refresher.restore(WRITTEN["learner"])
