"""Variants of revisions that are known to be wrong: each is a change of some lines of the real code."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from acep_approx.engines.runs.runs import RunsSnapshot
from acep_approx.matching import snapshots
from acep_approx.matching.outputs.of_runs import RunOutput
from acep_approx.matching.pipeline import Pipeline
from acep_approx.revisions import segments
from acep_approx.revisions.changelog import Changelog
from acep_approx.revisions.live import LiveEvents
from acep_approx.revisions.matcher import RevisedMatcher
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.segments import Tail
from acep_approx.revisions.stream import RevisedStream
from acep_approx.run import events as order_events
from acep_approx.run.waiting import Waiting
from tests.revised_small import RARE, check, told

Change = tuple[Any, str, str, str]
"""A class or module, its function, the lines that are changed (they must fit exactly), and what they become."""

MUTANTS: dict[str, tuple[Change, ...]] = {
    # snapshots
    "a snapshot behind a change is kept as it was": ((snapshots.QuerySnapshot, "renew", "part.renew(slots)", "pass"),),
    "links of snapshots keep their numbers": (
        (
            RunsSnapshot,
            "renumber",
            "number, empty",
            "np.minimum(np.arange(number.size), self._engine.control[layout.LINKS] - 1), empty",
        ),
    ),
    "links that snapshots need are dropped": ((Pipeline, "keep_from", "self._kept_from = tick, counters", "pass"),),
    "a snapshot lacks what began in the window before it": (
        (Pipeline, "floors_after", "np.array([tick - self.window])", "np.array([tick])"),
    ),
    "matches that wait are not brought back": (
        (snapshots._Waiting, "bring_back", "setattr(self._finder, self._name, ", "_ = ("),
    ),
    "events that negations look for are not brought back": (
        (snapshots._Log, "bring_back", "setattr(self._log, name, column)", "pass"),
    ),
    "what was listed is not brought back": (
        (snapshots.QuerySnapshot, "__init__", "if not finder.selection.is_all:", "if False:"),
    ),
    "what is counted by key is not brought back": ((snapshots._ByKey, "bring_back", "here[slots] = ", "_ = "),),
    "a state is that of the head": (
        (Replay, "at_base", "self.tail.segments[0].snapshot.bring_back(everything)", "pass"),
    ),
    # running again
    "the replay stops without looking at the old runs": (
        (Replay, "__init__", "pipeline.window * (2 if waits else 1) if stops", "0 if stops"),
    ),
    "changes are local without overlap and in windows of events": ((Replay, "__init__", "if stops else ENDED", ""),),
    "a second change does not make the replay longer": (
        (
            Replay,
            "_run_again",
            "np.maximum(until[mine],",
            "(lambda old, new: np.where(old == NEVER, new, old))(until[mine],",
        ),
    ),
    "keys are not led to the head again": ((Replay, "_run_again", "head.bring_back(np.flatnonzero(is_past))", "pass"),),
    "results of a segment are not replaced": (
        (Replay, "_run_active", "segment.results = [table for table in left if table.num_rows]", "pass"),
    ),
    "keys that did not change are run again, too": (
        (Replay, "_run_active", "events.where((events.slot >= 0) & active[events.slot])", "events"),
    ),
    "segments behind a change keep their counts": (
        (Replay, "_run_again", "self._count if self._is_whole else segment.before", "segment.before"),
    ),
    "the head keeps its count": ((Replay, "_run_again", "self._before = self._count", "pass"),),
    "windows do not close between segments": ((Replay, "_run_segment", "if self._lets_wait and", "if False and"),),
    "what closes where a segment begins is forgotten": (
        (Replay, "_begin_segment", "self.tail.segments[-1].add_results(closed)", "pass"),
    ),
    "what waits for the end of its window is not taken back": (
        (Replay, "change", "changed.gone += self._waiting", "pass"),
    ),
    "what waits is gone once it was put out": (
        (RunOutput, "as_if_ended", "finder.waiting, finder.held = waiting, held", "pass"),
    ),
    "what was listed as if the stream had ended stands in the way": (
        (RunOutput, "as_if_ended", "finder.before.take_over(before)", "pass"),
    ),
    # order and places
    "ties are in order of arrival where there are ids": ((order_events, "in_order", "keys[str(number)] = ", "_ = "),),
    "no event at the time of the head is late": (
        (Replay, "_late", "return late if (order[1:] > order[:-1]).all() else tied", "return late"),
    ),
    "an update does not keep its place among ties": (
        (LiveEvents, "resolve", "tie[row] = self.vacant[1]", "pass"),
    ),
    "an event gets the place of its neighbour": ((segments, "places_between", "return None", "pass"),),
    "results with old places stay": ((Replay, "_place_anew", "segment.results = []", "pass"),),
    "snapshots with old places stay": (
        (Replay, "_place_anew", "segment.snapshot = self._snapshot(segment.since)", "pass"),
    ),
    "what waits keeps its old places": (
        (Replay, "_place_anew", "self._waiting = self.pipeline.results.as_if_ended()", "pass"),
    ),
    "events count as in order behind a late one": ((Tail, "insert", "self.in_order = 0", "pass"),),
    # events that go
    "an event that is taken back stays among the recent ones": (
        (Replay, "_remove", "self.pipeline.recent.remove(gone.place)", "pass"),
    ),
    "an event that is taken back cannot be looked up": ((Tail, "remove", "self.removed.append(gone)", "pass"),),
    "an event beyond the horizon is not taken back": (
        (Waiting, "remove", "self.parts[number] = part.where(~is_gone)", "pass"),
    ),
    # watermarks, and what is let go
    "an event at the watermark is late": ((RevisedStream, "late", "tick < before", "tick <= before"),),
    "an event at the watermark stays for ever": (
        (LiveEvents, "_by_id", "found[0] < watermark", "found[0] <= watermark"),
        (LiveEvents, "_by_content", "held[0][0] < watermark", "held[0][0] <= watermark"),
    ),
    "the watermark moves from push to push": (
        (
            RevisedMatcher,
            "_take_in",
            "self.rows += len(before)",
            "self.rows += len(before); before = before[:1].repeat(len(before))",
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
            "base.since - (2 * pipeline.window if self._lets_wait else pipeline.window)",
            "watermark",
        ),
    ),
    "all events before the tail are let go in windows of events": (
        (Replay, "settle", "self.tail.keep_only(", "self.tail.keep_only(others[:0] if others.size else "),
    ),
    "events of a window of events are let go": (
        (Replay, "settle", "pipeline.forget_all_but(others)", "pipeline.forget_all_but(others[:0])"),
    ),
    "keys with events in the tail are forgotten": ((Replay, "_forget_keys", "is_used[part.slot] = True", "pass"),),
    # what is put out
    "rows that did not change are put out": (
        (Changelog, "table", "if gone:", "if False:"),
        (Changelog, "_table", "_without_pairs(table, words[0], gone)", "table"),
    ),
    "rows that show the same are put out": (
        (Changelog, "_table", "_without_pairs(table, words[0], gone)", "table"),
    ),
    "final results show places": (
        (Changelog, "in_rows", "renumbered(stamped, self._variables, lookup.arrivals)", "stamped"),
    ),
    "matches are named by places": ((Changelog, "_names", "lookup.arrivals(places)", "places"),),
}


@contextmanager
def changed(changes: tuple[Change, ...]) -> Iterator[None]:
    """The package with the changes of a mutant."""
    with ExitStack() as stack:
        for owner, name, old, new in changes:
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
        is_ours = other.__name__.startswith(("acep_approx.revisions", "acep_approx.run"))
        if is_ours and getattr(other, name, None) is real:
            yield other, scope[name]


SHOWN_BY = {
    "a snapshot behind a change is kept as it was": 214,
    "links of snapshots keep their numbers": 1380,
    "links that snapshots need are dropped": 120,
    "a snapshot lacks what began in the window before it": 1,
    "matches that wait are not brought back": 1380,
    "events that negations look for are not brought back": 122,
    "what is counted by key is not brought back": 1380,
    "a state is that of the head": 122,
    "the replay stops without looking at the old runs": 122,
    "changes are local without overlap and in windows of events": 36,
    "a second change does not make the replay longer": 122,
    "keys are not led to the head again": 214,
    "results of a segment are not replaced": 120,
    "keys that did not change are run again, too": 238,
    "segments behind a change keep their counts": 214,
    "the head keeps its count": 214,
    "windows do not close between segments": 34,
    "what closes where a segment begins is forgotten": 34,
    "what waits for the end of its window is not taken back": 120,
    "what waits is gone once it was put out": 120,
    "ties are in order of arrival where there are ids": 214,
    "no event at the time of the head is late": 120,
    "an update does not keep its place among ties": 120,
    "an event gets the place of its neighbour": 214,
    "results with old places stay": 120,
    "snapshots with old places stay": 120,
    "what waits keeps its old places": 36,
    "events count as in order behind a late one": 48,
    "an event that is taken back stays among the recent ones": 98,
    "an event that is taken back cannot be looked up": 122,
    "an event beyond the horizon is not taken back": 2,
    "an event at the watermark is late": 120,
    "an event at the watermark stays for ever": 120,
    "the watermark moves from push to push": 1380,
    "a punctuation lets go of events at its time": 101,
    "a punctuation lets go of one segment too many": 120,
    "events that matches bind are let go": 1,
    "all events before the tail are let go in windows of events": 1380,
    "events of a window of events are let go": 1380,
    "keys with events in the tail are forgotten": 238,
    "rows that did not change are put out": 120,
    "rows that show the same are put out": 55,
    "final results show places": 29,
    "matches are named by places": 36,
}
"""Schedules that are looked at first: the test of the package itself runs them, too."""


def noticed(mutant: str, schedules: int) -> int:
    """A schedule that shows that a mutant is wrong; -1 if none does."""
    seeds: list[int] = [*RARE, *range(schedules), *range(-1, -schedules, -1)]
    if mutant in SHOWN_BY:
        seeds.insert(0, SHOWN_BY[mutant])
    for seed in seeds:
        told(seed)  # with the package as it is
        with changed(MUTANTS[mutant]):
            try:
                check(seed)
            except Exception:  # noqa: BLE001  a wrong variant may also crash
                return seed
    return -1
