"""Trace the past: run it exactly, and tell of every run what it remembered, what it led to and what it cost.

A history is learned from this. Source: Li and Ge, PVLDB 2016, section 3: match vectors and match maps are about runs of
the past; that an exact run over it supplies them, and how, is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Floats, Ints
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Register
from acep_approx.automaton.states import PLACE
from acep_approx.automaton.words import register_text, state_names
from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.event_columns import CODED
from acep_approx.engines.runs.programs import register_kind
from acep_approx.engines.runs.tables import RunTables
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import tick_unit
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching.outputs.kinds import TRACE
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.state import MATCHER, meaning, restored_stream, saved
from acep_approx.matching.stream_side import StreamSide
from acep_approx.matching.tracing.traced import PACE, POOL, REGISTERS, SLOT, START, TICK, Hindsight, RunTrace
from acep_approx.planning.planner import MERGING, Plan, merging
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import Expression
from history.trace import Trace
from history.vectors import CONTEXT

PACE_NAME, AHEAD, AT_HAND = "pace", " ahead of now", " at hand"
"""The column of how many events of the key came of late, and what follows the name of a register that is compared with
the current event, and that of a number of this event."""

MOST_PAIRED = 5
"""Registers of a place of which differences and sums are looked at: ten pairs."""


def register_names(automaton: RegisterAutomaton) -> dict[Register, str]:
    """A name for each register that a past can tell anything about, all different."""
    distinct = list(dict.fromkeys(register for some in reachable(automaton) for register in some if register != PLACE))
    total, so_far, found = Counter(map(register_text, distinct)), Counter[str](), {}
    for register in distinct:
        name = register_text(register)
        so_far[name] += 1
        found[register] = f"{name} ({so_far[name]})" if total[name] > 1 else name
    return found


def reachable(automaton: RegisterAutomaton) -> list[tuple[Register, ...]]:
    """The live registers of each place."""
    return [automaton.live[state] for state, _ in automaton.places]


@dataclass(frozen=True)
class Remembered:
    """Where runs of a query wait, and what they remember there.

    Attributes
    ----------
    places : tuple of (str, int)
        Name of the state and errors, one for each pool of the runs engine; the first is that of the start, where no run
        waits.
    columns : tuple of str
        Names of all registers but the row of the last event, which no past can tell anything about.
    kinds : tuple of str
        ``"int"``, ``"float"`` or ``"text"``, one for each column; truth values and times are ``"int"``.
    registers : tuple of tuple of int
        Per place: to which of the columns each register of its runs belongs, -1: to none.
    ahead : tuple of (int, int)
        Columns of numbers that events have as well, and which column of an event that is: by how much the run was above
        the current event is another column, behind those of the registers; then come the pace of the key and the
        context.
    at_hand : tuple of (int, bool)
        Columns of an event that are numbers which some run remembers, and whether they are floating point numbers: its
        context, with the tick and the pace of the key.
    event_columns : int
        Columns of an event.
    """

    places: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    registers: tuple[tuple[int, ...], ...]
    ahead: tuple[tuple[int, int], ...]
    at_hand: tuple[tuple[int, bool], ...]
    event_columns: int

    def pairs(self) -> list[list[tuple[str, str]]]:
        """Per place the numbers that its runs remember, two by two; texts and the current event are none."""
        found = []
        for registers in self.registers:
            numbers = [c for c in registers if c >= 0 and self.kinds[c] in ("int", "float")][:MOST_PAIRED]
            found.append([(self.columns[one], self.columns[other]) for one, other in combinations(numbers, 2)])
        return found

    @classmethod
    def by(cls, tables: RunTables) -> Remembered:
        """What the runs of an engine with these tables remember."""
        automaton, pools, event_columns = tables.automaton, tables.pools, tables.scalars.columns
        live = [automaton.live[pool.state] for pool in pools]
        distinct = list(dict.fromkeys(register for some in live for register in some if register != PLACE))
        kinds = [register_kind(register, event_columns) for register in distinct]
        ahead = []
        for number, register in enumerate(distinct):
            is_value = register.kind != "counted" and kinds[number] in ("int", "float")  # how many have it is another
            if is_value and register.of in event_columns.expressions:
                ahead.append((number, event_columns.place(register.of)))
        names, states = register_names(automaton), state_names(automaton)
        at_hand = [of for of in numbers_of(automaton) if event_columns.kind(of) in ("int", "float")]
        context = context_names(at_hand)
        return cls(
            places=tuple((states[pool.state], pool.errors) for pool in pools),
            columns=(*names.values(), *(f"{names[distinct[n]]}{AHEAD}" for n, _ in ahead), PACE_NAME, *context),
            kinds=(
                *("text" if kind in CODED else kind if kind == "float" else "int" for kind in kinds),
                *["float"] * (len(ahead) + 1),
                *[CONTEXT] * len(context),
            ),
            registers=tuple(tuple(distinct.index(r) if r != PLACE else -1 for r in some) for some in live),
            ahead=tuple(ahead),
            at_hand=tuple((event_columns.place(of), event_columns.kind(of) == "float") for of in at_hand),
            event_columns=len(event_columns.expressions),
        )

    def values(self, births: Ints) -> list[Floats]:
        """The columns of some births, as ``Trace`` wants them; texts by code.

        Parameters
        ----------
        births : numpy.ndarray of int64
            As ``Hindsight`` has them.

        Complexity: O(births · registers).
        """
        found = [np.full(len(births), -1.0 if kind == "text" else np.nan) for kind in self.kinds]
        for place, registers in enumerate(self.registers):
            mine = np.flatnonzero(births[:, POOL] == place)
            for number, column in enumerate(registers):
                if column < 0 or not len(mine):
                    continue
                words = births[mine, REGISTERS + number]
                if self.kinds[column] == "float":
                    found[column][mine] = words.view(np.float64)
                else:
                    nothing = -1.0 if self.kinds[column] == "text" else np.nan
                    found[column][mine] = np.where(words == NULL, nothing, words)
        behind = len(self.kinds) - len(self.at_hand) - 3 - len(self.ahead)
        first_column = births.shape[1] - self.event_columns
        for number, (column, event_column) in enumerate(self.ahead):
            now = _numbers(births[:, first_column + event_column], is_real=self.kinds[column] == "float")
            found[behind + number] = found[column] - now
        pace = behind + len(self.ahead)
        found[pace] = births[:, PACE].copy().view(np.float64)
        found[pace + 1], found[pace + 2] = births[:, TICK], found[pace]
        for number, (event_column, is_real) in enumerate(self.at_hand):
            found[pace + 3 + number] = _numbers(births[:, first_column + event_column], is_real=is_real)
        return found


def _numbers(words: Ints, *, is_real: bool) -> Floats:
    return np.ascontiguousarray(words).view(np.float64) if is_real else np.where(words == NULL, np.nan, words)


def context_names(at_hand: Sequence[Expression]) -> tuple[str, ...]:
    """Names of the columns of the context: when it is, how busy the key is, and numbers of the event."""
    return (f"tick{AT_HAND}", f"{PACE_NAME}{AT_HAND}", *(f"{to_text(of)}{AT_HAND}" for of in at_hand))


def numbers_of(automaton: RegisterAutomaton) -> list[Expression]:
    """What events are asked for that some run remembers, but for how many have it; not all of it are numbers."""
    registers = dict.fromkeys(register for some in reachable(automaton) for register in some)
    return list(dict.fromkeys(r.of for r in registers if r.of is not None and r.kind != "counted"))


# --- the trace ----------------------------------------------------------------------------------------------------

class Tracer:
    """Traces a past that comes in batches.

    Parameters
    ----------
    plan : Plan
    schema : pyarrow.Schema
        Of the events.
    roles : Roles
        Which columns are time, key and type.
    merge : str, default "equal,pareto,chain"
        Which lossless mergings are used; with "none" no two runs are one.

    Attributes
    ----------
    remembered : Remembered
        What the numbers of places and columns in the traces mean.
    pipeline : Pipeline
        It knows the window, and the columns that the batches must have.
    has_times : bool
        Whether ticks are times, so that there are days.

    Notes
    -----
    Runs are in the trace of their first event's window: with all that they led to, and their ancestors. Match points
    near the border of two traces are in both.

    What holds: ``mask`` is exact but for match points more than 63 behind ``first_point`` in their partition. Where
    runs were merged, a birth stands for all of them: it reaches what they reach together. Where only complete matches
    can be tested (filters, some negations), a run counts as leading to a match point if it completes anything there.
    ``cost`` is exact where nothing was merged; a child that belongs to the next trace is known only up to the border.
    Visits of merged runs go on with the run of the later start; the other one ends. With skip till next match, a run
    ends with the child that it goes on in; one that a negation breaks is believed to live on.

    Complexity: O(run-steps + links · log(events of a window)); memory O(links of two windows, at least half a million).
    """

    def __init__(self, plan: Plan, schema: pa.Schema, roles: Roles, merge: str = ",".join(MERGING)) -> None:
        self._trace_on(StreamSide(schema, roles), plan, merge)

    def _trace_on(self, stream: StreamSide, plan: Plan, merge: str) -> None:
        self.plan, self.merge = plan, merge
        self.pipeline = Pipeline(stream, plan, TRACE, merging=merging(merge))
        assert isinstance(self.pipeline.results, RunTrace), "it is what a trace is made by"
        self.output = self.pipeline.results
        self.remembered = Remembered.by(self.output.engine.tables)
        schema, roles = self.pipeline.schema, self.pipeline.roles
        is_time = tick_unit(schema.field(roles.time).type, roles.unit) is not None
        self.has_times = is_time and not self.pipeline.preparer.is_count

    @property
    def progress(self) -> RunProgress:
        """Events and run-steps so far: the full work of the query on this past."""
        return self.pipeline.progress

    def push(self, batch: EventBatch) -> Iterator[Trace]:
        """Run a batch; gives the runs whose windows have closed, now and then."""
        for _ in self.pipeline.stream.run(batch):
            pass
        yield from map(self._trace, self.output.take())

    def finish(self) -> Iterator[Trace]:
        """The past ends here: gives all other runs."""
        for _ in self.pipeline.finish():
            pass
        yield from map(self._trace, self.output.take())

    def state_bytes(self) -> bytes:
        """The state between two batches, for ``from_state``; see ``matching.state``."""
        return MATCHER.pack(saved(self.plan, {"merge": self.merge}, self.pipeline.stream))

    @classmethod
    def from_state(cls, plan: Plan, state: bytes) -> Self:
        """The tracer that ``state_bytes`` was called on.

        Raises
        ------
        DataError
            These are not such bytes, or those of another query.
        """
        scope, made = MATCHER.unpack(state, of=meaning(plan)), cls.__new__(cls)
        with MATCHER.reading():
            made._trace_on(restored_stream(scope.parts["stream"], scope.words), plan, scope.head["caller"]["merge"])
            made.pipeline.restore(scope.parts["query"])
        return made

    def _trace(self, seen: Hindsight) -> Trace:
        births, visits, texts = seen.births, seen.visits, seen.texts
        key = births[:, SLOT] + len(texts) if seen.keys else np.full(len(births), -1)
        return Trace(
            place=births[:, POOL].copy(),
            tick=births[:, TICK].copy(),
            start=births[:, START].copy(),
            slot=births[:, SLOT].copy(),
            columns=self.remembered.columns,
            kinds=self.remembered.kinds,
            values=self.remembered.values(births),
            key=key,
            texts=[*texts, *seen.keys],
            birth=visits[0],
            remaining=visits[1],
            since=visits[2],
            parent=visits[3],
            first_point=visits[4],
            mask=visits[5].view(np.uint64),
            cost=visits[6].astype(np.float64),
            point_row=seen.points[:, 0].copy(),
            point_tick=seen.points[:, 1].copy(),
            point_slot=seen.points[:, 2].copy(),
            end_visit=seen.ends[:, 0].copy(),
            end_point=seen.ends[:, 1].copy(),
            slots=seen.keys,
        )
