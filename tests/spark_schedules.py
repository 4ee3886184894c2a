"""Schedules of faults, each made of a seed: a tiny job, what befalls it, and what must hold all the same."""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import mkdtemp
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx import QuerySet, compile_query, compile_rules
from acep_approx.budget.budget import Budget
from acep_approx.events.roles import Roles
from acep_approx.learning import learner
from acep_approx.shedding import refresher
from acep_approx.spark.plan.packing import LATE
from acep_approx.spark.streaming import engine_learning
from acep_approx.spark.worker import observers
from acep_approx.spark.worker.early import EarlyProgram
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.program import Program
from acep_approx.spark.worker.query import QueryProgram
from acep_approx.spark.worker.spending import Spending
from tests.spark_faults import Faults
from tests.spark_simulation import MOST_ROWS, Simulation, Stream

QUERIES = [
    compile_query(text)
    for text in (
        "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > b.x WITHIN 12",
        "PATTERN SEQ(A a, B+ b[], C c) WHERE [k] AND b[i].x >= a.x WITHIN 14",
        "PATTERN SEQ(A a, B b, ~(C c)) WHERE [k] AND b.x > a.x WITHIN 9",
        "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 8",
    )
]
"""The last is for cells; the others, for runs, can have a budget."""
DESK = QuerySet()
DESK.add("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 8 RETURN a.k AS k, b.x AS x PUBLISH Up", id="up")
DESK.add("PATTERN SEQ(Up a, Up b) WHERE [k] AND b.x > a.x WITHIN 20", id="twice")
DESK.add("PATTERN SEQ(A a, B b, ~(C c)) WHERE [k] WITHIN 9", id="waits")
RULES = compile_rules("""
TABLE seen (k text, n int DEFAULT 0, last int DEFAULT 0, KEY (k))
RULE count ON PATTERN B b WITHIN 1 DO UPDATE seen SET n = old.n + 1, last = b.x AT (b.k) END
RULE often ON PATTERN SEQ(A a, B b) WHERE [k] AND store.seen[b.k].n > 2 WITHIN 9
  DO CALL note(b.x); UPDATE seen SET n = 0 AT (b.k) END
RULE waits ON PATTERN SEQ(A a, ~(C c)) WHERE [k] AND store.seen[a.k].last < 4 WITHIN 5
""")
EXACT, LEARNING, SPLIT, RANDOM = "exact", "learning", "split", "random"
SETS, OF_RULES, EARLY, COUNTS = "sets", "rules", "early", "counts"
PROGRAMS = (SETS, OF_RULES, EARLY, COUNTS)
"""Exact jobs of other programs than a query that lists its matches."""
SHARE, FULL_WORK = 40, 1.5
STREAMS = 24
"""Different streams of a sort of job, so that each unbroken run is needed once."""
END = 10_000


def made_stream(seed: int, shards: int, *, rows: int = 22) -> Stream:
    """Events of some keys, out of order within the delay; some late however they are cut, and some without a time."""
    dice = Random(f"stream {seed}")
    delay, now, ticks = dice.choice((0, 2, 5)), 5, []
    for _ in range(rows):
        now += dice.choice((0, 0, 1, 2))
        ticks.append(now)
    arrival: list[int | None] = sorted(ticks, key=lambda tick: tick + dice.uniform(0, delay))  # type: ignore[arg-type]
    for _ in range(2):
        at = dice.randrange(MOST_ROWS + 3, len(arrival))
        before = max(tick for tick in arrival[: at - MOST_ROWS] if tick is not None) - delay
        if before > 1:
            arrival.insert(at, dice.randrange(1, before))
    arrival.insert(dice.randrange(len(arrival)), None)
    arrival.append(END)
    number = len(arrival)
    several = dice.choice((2, 3))
    keys = [dice.randrange(several) for _ in arrival]
    events = pa.table({
        "ts": pa.array(arrival, pa.int64()),
        "k": pa.array([f"k{key}" for key in keys]),
        "x": pa.array([dice.randrange(6) for _ in arrival], pa.int64()),
        "type": pa.array([dice.choice("AABBC") for _ in arrival]),
        "id": pa.array(range(number), pa.int64()),
    })  # fmt: skip
    ends, at = [], 0
    while at < number:
        at = min(at + dice.randint(4, MOST_ROWS), number)
        ends.append(at)
    idle = frozenset(end for end in ends if dice.random() < 0.2)
    return Stream(events, np.array(keys) % shards, tuple(ends), idle, delay)


def made_job(sort: str, seed: int, folder: Path) -> tuple[Job, Stream]:
    """The job of a sort on a stream."""
    dice = Random(f"job {seed}")
    shards = 1 if sort == RANDOM else dice.choice((1, 2, 3))
    query = dice.choice(QUERIES if sort == EXACT else QUERIES[1:2])
    stream = made_stream(seed, shards)
    spending = None
    if sort not in (EXACT, *PROGRAMS):
        learns = sort == LEARNING
        spending = Spending(
            Budget.parse(f"{SHARE}%"),
            control=str(folder / "checkpoint" / "acep"),
            history=str(folder / "history") if learns else None,
            policy=None if learns else "random",
            full_work=FULL_WORK,
            learns=learns,
        )
    schema = stream.events.schema
    roles = Roles("ts", None, "type", None)
    program = made_program(sort, dice, schema) if sort in PROGRAMS else QueryProgram(query, "id")
    return Job.of(program, schema, roles, ("id",), shards, spending), stream


def made_program(sort: str, dice: Random, schema: pa.Schema) -> Program:
    """The program of a sort."""
    if sort == COUNTS:
        return QueryProgram(dice.choice(QUERIES[:3]), "id", "counts")
    if sort == EARLY:
        program: Program = EarlyProgram(dice.choice(QUERIES[:3]), emit=dice.choice(("early", 3)))
    else:
        matcher = DESK.spark(id="id") if sort == SETS else RULES.spark(id="id")
        program = matcher.program
    return program.decided("id", None, schema, Roles("ts", None, "type", None))


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that is gone afterwards; in memory where the system has such a place."""
    memory = Path("/dev/shm")
    made = Path(mkdtemp(prefix="acep-faults-", dir=memory if memory.is_dir() else None))
    try:
        yield made
    finally:
        rmtree(made, ignore_errors=True)


@contextmanager
def soon() -> Iterator[None]:
    """Little is enough for a new version, so that tens of events make several; and old ones go soon."""
    with ExitStack() as stack:
        for module, name, value in (
            (learner, "FIRST", ((0, 0),)),
            (learner, "LEAST_ROWS", 3),
            (learner, "FIRST_PIECE", 2),
            (refresher, "EVERY", 1),
            (observers, "WITHIN", 2),
            (engine_learning, "KEPT_VERSIONS", 2),
        ):
            stack.enter_context(patch.object(module, name, value))
        yield


@cache
def unbroken(sort: str, seed: int) -> tuple[Counter[str], Counter[str]]:
    """Matches and events left out of a job that nothing befalls and that has no budget."""
    with folder() as place:
        job, stream = made_job(sort, seed, place)
        run = Simulation(replace(job, spending=None), stream, Faults(place, Random(0)))
        run.run()
        return run.found(), run.written("late")


def local(seed: int) -> tuple[Counter[str], list[int]]:
    """The matches of an exact job as the local matcher finds them, and which events are left out."""
    job, stream = made_job(EXACT, seed, Path())
    ticks, late = stream.events["ts"].to_pylist(), []
    for first, end in zip((0, *stream.ends), stream.ends, strict=False):
        late += [n for n in range(first, end) if ticks[n] is None or ticks[n] < stream.watermark(first)]
    in_time = stream.events.filter(pc.invert(pc.is_in(stream.events["id"], pa.array(late))))
    found = job.engines[""].match(in_time.sort_by([("ts", "ascending"), ("id", "ascending")]), bind="id")  # type: ignore[attr-defined]
    return Counter(map(str, found.to_arrow().to_pylist())), late


def run_schedule(seed: int, counts: Counter[str], sort: str) -> None:
    """Run a job through what the seed says, and hold it against what is promised."""
    dice, world = Random(f"schedule {sort} {seed}"), seed % STREAMS
    kills = tuple(made_kill(sort, dice) for _ in range(dice.choice((1, 1, 2, 3))))
    rate = dice.choice((0.0, 0.1, 0.3))
    with folder() as place, soon():
        run = Simulation(*made_job(sort, world, place), Faults(place, dice, counts), kills, rate)
        run.run()
        found, late = run.found(), run.written("late")
        counts["matches"] += found.total()
        counts["left out"] += late.total()
        for name, kind in (*((name, name) for name in run.job.tables), ("late", LATE)):
            assert run.written_by_batch(name) == run.said_by_batch(kind), "what was written is what was done at last"
        if sort == RANDOM:
            held_against_the_same_cuts(run, world)
    there, left_out = unbroken(sort, world)
    assert late == left_out, "events that came late"
    if sort == EARLY:
        found, there = net(found), net(there)
    if sort in (EXACT, *PROGRAMS):
        assert found == there, "matches"
    assert not found - there, "what was found is there to be found"


def net(lines: Counter[str]) -> Counter[str]:
    """What remains of results that come and are taken back: how often is a matter of cuts."""
    remain: Counter[str] = Counter()
    for line, number in lines.items():
        row = literal_eval(line)
        remain[str({name: row[name] for name in row if name != "op"})] += number if row["op"] == "+I" else -number
    return remain


def made_kill(sort: str, dice: Random) -> tuple[int, str]:
    """After how many writes, and in which folder, a process is killed: those of a learner are few among many."""
    below = dice.choice(("", "checkpoint", "history")) if sort == LEARNING else ""
    return dice.randint(0, dice.choice((15, 30 if below else 60))), below


def held_against_the_same_cuts(run: Simulation, seed: int) -> None:
    """Without a split and a learner each micro-batch finds what it finds in a run that is cut so and not broken."""
    with folder() as place:
        other = Simulation(*made_job(RANDOM, seed, place), Faults(place, Random(0)), is_cut=tuple(run.planned))
        other.run()
        for name in ("found", "late"):
            assert run.written_by_batch(name) == other.written_by_batch(name)
