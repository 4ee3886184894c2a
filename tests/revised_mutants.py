"""Variants of revisions that are known to be wrong, and schedules short and dense enough to tell them.

Each is a change of some lines of the real code. Where segments and free places are few, some dozen events reach what
takes thousands of them otherwise: ``small``.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from acep_approx import Query, compile_query
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.snapshots import RunsSnapshot
from acep_approx.errors import DataError
from acep_approx.matching import snapshots, stream_side
from acep_approx.matching.pipeline import Pipeline
from acep_approx.query.shape import atoms, negated_variables
from acep_approx.revisions import events, final, matcher, replay, segments, waiting
from acep_approx.revisions.changelog import Changelog
from acep_approx.revisions.live import LiveEvents
from acep_approx.revisions.matcher import RevisedMatcher
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.segments import Tail
from acep_approx.revisions.waiting import Waiting
from tests.revised_model import Ledger, Model, Schedule, frozen
from tests.revised_streams import (
    CODES,
    RETURNING,
    SPECULATED,
    TWELVE,
    Writer,
    arriving,
    cut,
    matches_of,
    named,
    schedule,
)
from tests.rich_worlds import COLUMNS, Dice, Row

# --- small constants --------------------------------------------------------------------------------------------------

SMALL = (
    (replay, "PIECE", 8),
    (replay, "LEAST_PIECE", 4),
    (replay, "WORDS_PER_EVENT", 10**6),
    (segments, "GAP", 3),
    (segments, "PARTS", 2),
    (waiting, "APART", 4),
    (final, "MANY", 4),
    (matcher, "DICTS_PER_CHUNK", 4),
    (stream_side, "SWEEP", 2),
)


@contextmanager
def small() -> Iterator[None]:
    """Segments of a few events, few free places between them; engines drop what they can before each batch."""
    advance, update = Runs.advance, ArcLogs.update

    def advance_compact(self: Runs, batch: Any, floors: Any, deadline: float | None = None) -> bool:
        if self.keeps_lineage:
            self._compact(floors)
        return advance(self, batch, floors, deadline)

    def update_compact(self: ArcLogs, batch: Any, floors: Any) -> Any:
        if self.arena.size:
            self.live_places(floors)
        return update(self, batch, floors)

    with ExitStack() as stack:
        for owner, name, value in SMALL:
            stack.enter_context(patch.object(owner, name, value))
        stack.enter_context(patch.object(Runs, "advance", advance_compact))
        stack.enter_context(patch.object(ArcLogs, "update", update_compact))
        yield


# --- schedules --------------------------------------------------------------------------------------------------------

QUERIES = (
    *TWELVE,
    *RETURNING,
    "PATTERN SEQ(A a, C c, ~(B b)) WHERE [g] AND b.x > a.x WITHIN 5 ERRORS 1",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] WITHIN 4 events",
    "PATTERN SEQ(A a, B b, ~(C c)) WITHIN 6 NON OVERLAP",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE [g] AND sum(b[].x) > 3 WITHIN 6 events",
    "PATTERN SEQ(A a, ~(C c), B b) WHERE c.x > a.x WITHIN 6",
    "PATTERN SEQ(A a, B b) WHERE [g] AND b.x > a.x WITHIN 6 NON OVERLAP",
    "A(B|C)+A WITHIN 5",
)


MOST_MATCHES = 300
"""Of all events of a schedule; it has fewer events where there would be more."""


def lively(seed: int) -> Schedule:
    """Some dozen events of one of the ``QUERIES``, in small pushes; keys come and go, many events are changed."""
    dice = Dice(Random(seed))
    tick, rows = 0, []
    later, keys = dice.pick(((0, 0, 1), (0, 1, 1, 2), (1, 1, 2, 8))), dice.pick((4, 20, 10**9))
    for _ in range(dice.pick((12, 25, 40, 60))):
        tick += dice.pick(later)
        key = f"{tick // keys}{dice.pick('pq')}"
        values: Row = {"ts": tick, "type": dice.pick("AABBC"), "x": dice.pick(range(5)), "y": 0.5, "g": key}
        rows.append({**dict.fromkeys(COLUMNS), **values, "s": dice.pick(("u", "v", None))})
    text = QUERIES[seed % len(QUERIES)]
    while matches_of(text, "auto", tuple(rows)) > MOST_MATCHES:
        rows = rows[: len(rows) * 2 // 3]
    codes = None if dice.chance(8) else dice.pick(CODES[:7])
    made = Schedule(
        seed,
        text,
        (),
        output=dice.pick(("matches", "matches", "points", "counts")),
        delay=dice.pick((None, 3, 6, 12)),
        emit=dice.pick(SPECULATED),
        id=dice.pick((None, "id")),
        merge=dice.pick((None, None, "none")),
        op="op" if codes else None,
        is_id_text=dice.chance(2),
    )
    writer = Writer(dice, made, codes, dice.pick((3, 6)))
    writer.write(arriving(named(tuple(rows), made, dice), dice))
    return replace(made, steps=tuple(cut(writer.said, dice, dice.pick((1, 2, 5, 9)), dice.pick((8, 25, 10**9)))))


@dataclass(frozen=True)
class Told:
    """A schedule, its query, and what the model says after each step and in the end: columns, rows, rows left out."""

    asked: Schedule
    query: Query
    answers: tuple[tuple[list[str], Counter[tuple[Any, ...]]], ...]
    left_out: tuple[int, ...]


@cache
def told(seed: int) -> Told:
    """The schedule of a seed: every other one is of a random query."""
    asked = schedule(seed) if seed % 2 else lively(seed // 2)
    query, model = compile_query(asked.text, engine=asked.engine), asked.model()
    answers, before = [], None
    for step in (*asked.steps, None):
        if step is not None and step.tick is not None:
            model.punctuate(step.tick)
        elif step is not None and step.rows is not None:
            model.push(step.rows)
        now = [one.number for one in model.ordered()], model.horizon, model.watermark, step is None
        answers.append(answer(asked, query, model, is_over=step is None) if now != before else answers[-1])
        before = now
    return Told(asked, query, tuple(answers), tuple(number for number, _ in model.left_out))


def answer(asked: Schedule, query: Query, model: Model, *, is_over: bool) -> tuple[list[str], Counter[tuple[Any, ...]]]:
    """What the plain query finds in the live events: columns, and rows with what stands for each event."""
    held = model.ordered(float("inf") if is_over else model.horizon)
    if not held:
        return [], Counter()
    whole = asked.table([one.row for one in held], has_op=False)
    if model.emit == "final" and not is_over:
        plain = query.matcher(output=asked.output)
        table = pa.concat_tables([plain.push(whole), plain.pass_time(model.watermark)])
    else:
        matches = query.match(whole)
        table = {"matches": matches.to_arrow, "points": matches.points, "counts": matches.counts}[asked.output]()
    labels = [model.label(one) for one in held]
    names, bound = [name for name in table.column_names if name != "position"], bound_columns(asked, query)
    rows = ([label(row[name], labels) if name in bound else row[name] for name in names] for row in table.to_pylist())
    return [asked.id or name if name == "row" else name for name in names], Counter(map(frozen, rows))


def bound_columns(asked: Schedule, query: Query) -> set[str]:
    """The columns that hold numbers of rows."""
    if asked.output != "matches":
        return {"row"}
    if query.syntax.outputs:
        return set()
    names = {atom.variable for atom in atoms(query.syntax.pattern)} - negated_variables(query.syntax.pattern)
    return {"events"} if query.syntax.is_regex else names


def label(numbers: Any, labels: Sequence[Any]) -> Any:
    """What stands for an event, or for each of a list."""
    if isinstance(numbers, list):
        return [labels[number] for number in numbers]
    return None if numbers is None else labels[numbers]


def check(seed: int) -> None:
    """Runs a schedule with small constants; after each step all that was put out must be the plain answer."""
    known = told(seed)
    asked = known.asked
    rows = [row for step in asked.steps for row in step.rows or ()]
    has_ids = not asked.id or bool(asked.op) or all(row["id"] is not None for row in rows)
    is_telling = asked.output == "matches" and not known.query.syntax.outputs and has_ids
    ledger, left_out = Ledger(has_ids=has_ids, is_telling=is_telling), []
    with small():
        running: Any = known.query.matcher(**asked.options())
        for step, (columns, expected) in zip((*asked.steps, None), known.answers, strict=True):
            if step is None:
                ledger.take(running.finish())
            elif step.tick is not None:
                ledger.take(punctuated(running, step.tick))
            elif step.rows is not None:
                ledger.take(running.push(asked.table(step.rows)))
            else:
                running = known.query.from_state(running.state_bytes())
            left_out += sorted(row["row"] for row in running.rejected().to_pylist())
            assert ledger.net == expected, (ledger.net - expected, expected - ledger.net)
            assert not columns or not ledger.columns or columns == ledger.columns
    assert left_out == list(known.left_out)


def punctuated(running: Any, tick: int) -> pa.Table:
    """Time passes, or is refused where it runs backwards: what comes of it says whether that was right."""
    try:
        return running.punctuate(tick)
    except DataError as error:
        assert error.code == "ACEP-D072", error
        return pa.table({})


# --- mutants ----------------------------------------------------------------------------------------------------------

Change = tuple[Any, str, str, str]
"""A class or module, its function, the lines that are changed (they must fit exactly), and what they become."""

MUTANTS: dict[str, tuple[Change, ...]] = {
    # snapshots
    "a snapshot behind a change is kept as it was": (
        (snapshots.QuerySnapshot, "renew", "part.renew(slots)", "pass"),
    ),
    "links of snapshots keep their numbers": (
        (
            RunsSnapshot,
            "renumber",
            "number, empty",
            "np.minimum(np.arange(number.size), self._engine.control[layout.LINKS] - 1), empty",
        ),
    ),
    "links that snapshots need are dropped": (
        (Pipeline, "keep_from", "self._kept_from = tick, counters", "pass"),
    ),
    "a snapshot lacks what began in the window before it": (
        (Pipeline, "floors_after", "np.array([tick - self.window])", "np.array([tick])"),
    ),
    "matches that wait are not brought back": (
        (snapshots._Waiting, "bring_back", "self._finder.waiting = ", "_ = "),
    ),
    "events that negations look for are not brought back": (
        (snapshots._Log, "bring_back", "setattr(self._log, name, column)", "pass"),
    ),
    "what is counted by key is not brought back": (
        (snapshots._ByKey, "bring_back", "here[slots] = ", "_ = "),
    ),
    "a state is that of the head": (
        (Replay, "go_to_base", "self.tail.segments[0].snapshot.bring_back(everything)", "pass"),
    ),
    # running again
    "the replay stops without looking at the old runs": (
        (Replay, "__init__", "pipeline.window * (2 if waits else 1) if stops", "0 if stops"),
    ),
    "changes are local without overlap and in windows of events": (
        (Replay, "__init__", "if stops else FAR", ""),
    ),
    "a second change does not make the replay longer": (
        (
            Replay,
            "_run_again",
            "np.maximum(until[mine],",
            "(lambda old, new: np.where(old == LONG_AGO, new, old))(until[mine],",
        ),
    ),
    "keys are not led to the head again": (
        (Replay, "_run_again", "head.bring_back(np.flatnonzero(is_past))", "pass"),
    ),
    "results of a segment are not replaced": (
        (Replay, "_run_active", "segment.results = [_without(table, active) for table in segment.results]", "pass"),
    ),
    "keys that did not change are run again, too": (
        (Replay, "_run_active", "events.where((events.slot >= 0) & active[events.slot])", "events"),
    ),
    "segments behind a change keep their counts": (
        (Replay, "_run_again", "self._count if self._is_whole else segment.before", "segment.before"),
    ),
    "the head keeps its count": (
        (Replay, "_run_again", "self._before = self._count", "pass"),
    ),
    "windows do not close between segments": (
        (Replay, "_run_segment", "if self._has_late_ends and", "if False and"),
    ),
    "what closes where a segment begins is forgotten": (
        (Replay, "_begin_segment", "self.tail.segments[-1].add_results(closed)", "pass"),
    ),
    "what waits for the end of its window is not taken back": (
        (Replay, "change", "changed.gone += self._waiting", "pass"),
    ),
    "what waits is gone once it was put out": (
        (Replay, "_as_if_ended", "finder.waiting, finder.last_end = waiting, last_end", "pass"),
    ),
    # order and places
    "ties are in order of arrival where there are ids": (
        (events, "in_order", '"id": ids, ', ""),
    ),
    "no event at the time of the head is late": (
        (Replay, "_late", "return late if (order[1:] > order[:-1]).all() else tied", "return late"),
    ),
    "an update does not keep its place among ties": (
        (LiveEvents, "resolve", "made.tie[row] = self.vacant[1]", "pass"),
    ),
    "an event gets the place of its neighbour": (
        (events, "places_between", "return None", "pass"),
    ),
    "results with old places stay": (
        (Replay, "_place_anew", "segment.results = []", "pass"),
    ),
    "snapshots with old places stay": (
        (Replay, "_place_anew", "segment.snapshot = self._snapshot(segment.since)", "pass"),
    ),
    "what waits keeps its old places": (
        (Replay, "_place_anew", "self._waiting = self._as_if_ended()", "pass"),
    ),
    "events count as in order behind a late one": (
        (Tail, "insert", "self.in_order = 0", "pass"),
    ),
    # events that go
    "an event that is taken back stays among the recent ones": (
        (Replay, "_remove", "self.pipeline.recent.remove(gone.place)", "pass"),
    ),
    "an event that is taken back cannot be looked up": (
        (Tail, "remove", "self.removed.append(gone)", "pass"),
    ),
    "an event beyond the horizon is not taken back": (
        (Waiting, "remove", "self.parts[number] = part.where(~is_gone)", "pass"),
    ),
    # watermarks, and what is let go
    "an event at the watermark is late": (
        (RevisedMatcher, "_late", "tick < before", "tick <= before"),
    ),
    "an event at the watermark stays for ever": (
        (LiveEvents, "_by_id", "tick < watermark", "tick <= watermark"),
        (LiveEvents, "_by_content", "held[0][0] < watermark", "held[0][0] <= watermark"),
    ),
    "the watermark moves from push to push": (
        (
            RevisedMatcher,
            "_take_in",
            "before = stream.watermarks.advance(tick, source, sequence, is_mark)",
            "before = stream.watermarks.advance(tick, source, sequence, is_mark)[:1].repeat(len(tick))",
        ),
    ),
    "a punctuation lets go of events at its time": (
        (Replay, "settle", "segment.since <= watermark for", "segment.since <= watermark + 1 for"),
    ),
    "a punctuation lets go of one segment too many": (
        (Replay, "settle", "for segment in segments) - 1", "for segment in segments[:-1])"),
    ),
    "events that matches bind are let go": (
        (
            Replay,
            "settle",
            "base.since - (2 * pipeline.window if self._has_late_ends else pipeline.window)",
            "watermark",
        ),
    ),
    "all events before the tail are let go in windows of events": (
        (Replay, "settle", "self.tail.keep_only(", "self.tail.keep_only(others[:0] if others.size else "),
    ),
    "events of a window of events are let go": (
        (Replay, "settle", "pipeline.forget_all_but(others)", "pipeline.forget_all_but(others[:0])"),
    ),
    "keys with events in the tail are forgotten": (
        (Replay, "_forget_keys", "is_used[part.slot] = True", "pass"),
    ),
    # what is put out
    "rows that did not change are put out": (
        (Changelog, "table", "gone, came = difference(gone, came)", "pass"),
        (Changelog, "_table", "_without_pairs(table, gone.num_rows)", "table"),
    ),
    "rows that show the same are put out": (
        (Changelog, "_table", "_without_pairs(table, gone.num_rows)", "table"),
    ),
    "matches are named by places": (
        (Changelog, "_names", "lookup.arrivals(places).astype", "places.astype"),
    ),
}


RARE = (356, 558, 792, 1156, 1380)
"""Schedules that show what few others do."""


@contextmanager
def changed(mutant: str) -> Iterator[None]:
    """The package with the changes of a mutant."""
    with ExitStack() as stack:
        for owner, name, old, new in MUTANTS[mutant]:
            for holder, function in rewritten(owner, name, old, new):
                stack.enter_context(patch.object(holder, name, function))
        yield


def rewritten(owner: Any, name: str, old: str, new: str) -> Iterator[tuple[Any, Any]]:
    """A function with one line changed, for each that has it: its class, or all modules that import it."""
    real = inspect.getattr_static(owner, name)
    source = textwrap.dedent(inspect.getsource(real))
    assert source.count(old) == 1, f"{name} has changed: the mutant does not fit any more\n{old}"
    scope: dict[str, Any] = {}
    module = owner if inspect.ismodule(owner) else sys.modules[owner.__module__]
    exec(source.replace(old, new), vars(module), scope)
    if owner is not module:
        yield owner, scope[name]
        return
    for other in list(sys.modules.values()):
        if other.__name__.startswith("acep_approx.revisions") and getattr(other, name, None) is real:
            yield other, scope[name]


def noticed(mutant: str, schedules: int) -> int:
    """The first schedule that shows that a mutant is wrong; -1 if none does."""
    for seed in (*range(schedules), *RARE):
        told(seed)  # with the package as it is
        with changed(mutant):
            try:
                check(seed)
            except Exception:  # noqa: BLE001  a wrong variant may also crash
                return seed
    return -1
