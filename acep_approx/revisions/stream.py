"""One stream whose events may be late or change: what a matcher has once it knows the columns.

Parts of it may be punctuated: of the events that satisfy a condition no earlier ones will come. Source: Chandramouli,
Goldstein, Maier, PVLDB 3(1) 2010, appendix F.2 (predicated punctuations). Theirs also lets go of partial matches all of
whose paths to the end need such events; ours waits until all letters of a pattern are closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import Letter
from acep_approx.automaton.letters import Truths
from acep_approx.errors import QueryError
from acep_approx.events.columns import missing_column
from acep_approx.events.roles import Roles
from acep_approx.matching.execution import Execution
from acep_approx.matching.pipeline import Pipeline
from acep_approx.planning.planner import Plan
from acep_approx.query.parser import parse_condition
from acep_approx.query.shape import conjuncts, variables, walk
from acep_approx.query.syntax import Attribute, Binary, Constant, Expression
from acep_approx.ranges import COUNT, number_in
from acep_approx.revisions.changelog import Changelog
from acep_approx.revisions.final import FinalRun
from acep_approx.revisions.live import LiveEvents
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.request import Revisions
from acep_approx.run.events import Events
from acep_approx.run.waiting import Waiting
from acep_approx.run.watermarks import NEVER, Watermarks

Part = frozenset[Expression]


class ClosedParts:
    """How far the parts of a stream are that were punctuated.

    Parameters
    ----------
    plan : Plan
    roles : Roles
    names : sequence of str
        The columns of the events.
    """

    def __init__(self, plan: Plan, roles: Roles, names: Sequence[str]) -> None:
        self._roles = roles
        self._names = names
        self._ticks: dict[str, tuple[Part, int]] = {}  # by the text of the condition
        # where all events are counted, those that no letter holds on play a role, too
        all_count = plan.counted != "nothing" or plan.is_count_window
        self._letters = None if all_count else [_part_of(letter) for letter in plan.letters]

    def close(self, where: str, tick: int) -> bool:
        """No event before ``tick`` that satisfies a condition will come; False if that was known for a later time."""
        part = self.part(where)
        known = self._ticks.get(where)
        if known is not None and tick < known[1]:
            return False
        self._ticks[where] = part, tick
        return True

    def part(self, where: str) -> Part:
        """The conditions of a text, which must all hold.

        Raises
        ------
        QueryError
            It is no condition on one event alone: ``ACEP-Q923``.
        DataError
            ``ACEP-D002``: there is no such column.
        """
        keys, found = parse_condition(where)
        if keys or any(variables(one) for one in found):
            raise QueryError(
                f"where={where!r} is not about one event alone",
                code="ACEP-Q923",
                text=where,
                start=0,
                end=len(where),
                hint="name columns without variables, as in where=\"type = 'A'\"",
            )
        for leaf in (leaf for one in found for leaf in walk(one) if isinstance(leaf, Attribute)):
            if self._roles.column(leaf.name) not in self._names:
                raise missing_column(leaf.name, self._names)
        same = {self._roles.time: "ts", self._roles.key: "key", self._roles.type: "type"}
        return frozenset(_renamed(part, same) for one in found for part in conjuncts(one))

    def value_of(self, where: str, column: str) -> tuple[Any, ...]:
        """The value that a condition gives a column, if that is all it says; else nothing."""
        part = self.part(where)
        if len(part) != 1:
            return ()
        (one,) = part
        if isinstance(one, Binary) and one.op == "=" and one.left == Attribute(None, None, column):
            return (one.right.value,) if isinstance(one.right, Constant) else ()
        return ()

    @property
    def has_parts(self) -> bool:
        """Whether there are any."""
        return bool(self._ticks)

    def late(self, tick: Ints, data: pa.RecordBatch) -> Bools:
        """Which events come after it was said that none of their kind would."""
        late = np.zeros(len(tick), np.bool_)
        truths = Truths(len(tick), lambda name: data.column(self._roles.column(name)))
        for part, closed in self._ticks.values():
            behind = tick < closed
            if behind.any():
                late |= truths.all_hold(part, behind)
        return late

    @property
    def reached(self) -> int:
        """Before this tick no event will come that a letter of the pattern holds on."""
        if not self._ticks or self._letters is None:
            return NEVER
        return min(
            max([tick for part, tick in self._ticks.values() if part <= letter], default=NEVER)
            for letter in self._letters
        )

    def header(self) -> list[tuple[str, int]]:
        """As JSON."""
        return [(where, tick) for where, (_, tick) in self._ticks.items()]

    def restore(self, header: list[tuple[str, int]]) -> None:
        """Take over what ``header`` gave."""
        for where, tick in header:
            self.close(where, number_in("closed", tick, -COUNT, COUNT))


def _part_of(letter: Letter) -> Part:
    """What holds on every event of a letter."""
    known = {part for condition in letter.conditions for part in conjuncts(condition)}
    if letter.type is not None:
        known.add(Binary("=", Attribute(None, None, "type"), Constant(letter.type)))
    return frozenset(known)


def _renamed(condition: Expression, names: dict[str | None, str]) -> Expression:
    """A comparison with a column under the name of its role, as letters have it."""
    if isinstance(condition, Binary) and isinstance(condition.left, Attribute) and condition.left.name in names:
        return Binary(condition.op, Attribute(None, None, names[condition.left.name]), condition.right)
    return condition


@dataclass
class RevisionCounts:
    """What became of the rows so far.

    ``inserted`` and ``retracted`` events; rows left out because they were ``late``, took back an event that was
    ``unknown``, inserted one that was there (``duplicate``), or were a punctuation that went ``backwards``.
    """

    inserted: int = 0
    retracted: int = 0
    late: int = 0
    unknown: int = 0
    duplicate: int = 0
    backwards: int = 0

    @property
    def rejected(self) -> int:
        """Rows left out."""
        return self.late + self.unknown + self.duplicate + self.backwards


@dataclass
class RevisedStream:
    """What a matcher has once the columns of the events are known.

    ``names`` are the columns of the first rows, ``needed`` those that all rows must have, ``columns`` those that are
    kept of events; ``beyond``: how far beyond the watermark events are run; ``fitting``: columns that need no
    conversion. ``is_by_content``: whether rows that take events back name them by all that stands in them.
    """

    pipeline: Pipeline
    names: tuple[str, ...]
    needed: tuple[str, ...]
    columns: tuple[str, ...]
    op: str | None
    is_by_content: bool
    watermarks: Watermarks
    beyond: int
    changelog: Changelog
    run: Replay | FinalRun
    live: LiveEvents
    closed: ClosedParts
    waiting: Waiting
    fitting: pa.Schema | None = None

    @property
    def final(self) -> int:
        """Before this tick nothing changes any more that the pattern asks for."""
        return max(self.watermarks.current, self.closed.reached)

    def events_at(self, tick: int) -> list[Events]:
        """The events of a time that may still change."""
        found: list[Events] = []
        tail = self.run.tail
        if tail.segments:
            events = tail.segments[int(tail.segment_of(np.array([tick]))[0])].events
            first, last = np.searchsorted(events.tick, [tick, tick + 1])
            found.append(events.slice(int(first), int(last - first)))
        return found + self.waiting.at(tick)

    def no_events(self) -> Events:
        """None, with the columns that are kept."""
        none = np.zeros(0, np.int64)
        data = pa.RecordBatch.from_arrays([pa.nulls(0)] * len(self.columns), list(self.columns))
        return Events(none, none, none, data)

    def held_parts(self) -> list[Events]:
        """The events that are held, in order but for those that are not run yet."""
        in_tail = [part for segment in self.run.tail.segments for part in segment.parts]
        return [*self.run.tail.passed, *in_tail, *self.waiting.parts]

    @property
    def held(self) -> int:
        """Events that are held because they, or others beside them, may still change."""
        return self.run.tail.held + len(self.waiting)


def set_up(execution: Execution, asked: Revisions, names: tuple[str, ...], op: str | None) -> RevisedStream:
    """Begin with events of these columns, of which ``op`` says what a row does."""
    pipeline = execution.pipeline
    assert pipeline is not None, "bind first"
    is_time = pipeline.is_time
    changelog = Changelog(pipeline, execution.bind_by, asked.id, is_changelog=asked.is_changelog)
    is_by_content = op is not None and asked.id is None
    needed = tuple(dict.fromkeys((*pipeline.columns, *changelog.needed, *((asked.id,) if asked.id else ()))))
    run = FinalRun(pipeline, changelog) if asked.is_final else Replay(pipeline, asked.id)
    run.tail.has_twins = op is None and asked.id is not None and asked.is_changelog
    return RevisedStream(
        pipeline=pipeline,
        names=names,
        needed=needed,
        columns=names if is_by_content else needed,
        op=op,
        is_by_content=is_by_content,
        watermarks=asked.wait(is_time=is_time).watermarks,
        beyond=asked.beyond(is_time=is_time),
        changelog=changelog,
        run=run,
        live=LiveEvents(
            asked.id,
            [name for name in names if name not in (op, asked.sequence)],
            None if pipeline.preparer.is_count else pipeline.window,
        ),
        closed=ClosedParts(pipeline.plan, pipeline.roles, names),
        waiting=Waiting(() if asked.id is None else (asked.id,)),
    )
