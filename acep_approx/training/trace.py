"""Trace the past: run it exactly, and tell of every run what it led to and what it cost.

A history is learned from this. Source: Li and Ge, PVLDB 2016, section 3: match vectors and match maps are about runs of
the past; that an exact run over it supplies them, and how, is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.automaton.determinize import MAX_DETERMINISED
from acep_approx.automaton.registers import ROW, RegisterAutomaton
from acep_approx.automaton.resolve import Register
from acep_approx.automaton.words import register_text, state_names
from acep_approx.engines.progress import Progress
from acep_approx.engines.runs.programs import register_kind
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.tables import RunTables
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.source import open_source
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.tracing.traced import PACE, POOL, REGISTERS, SLOT, START, TICK, Hindsight
from acep_approx.planning.planner import MERGING, Plan, merging
from history.trace import Trace

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


PACE_NAME, AHEAD = "pace", " ahead of now"
"""The column of how many events of the key came of late, and what follows the name of a register that is compared with
the event at hand."""


def register_names(automaton: RegisterAutomaton) -> dict[Register, str]:
    """A name for each register that a past can tell anything about, all different."""
    distinct = list(dict.fromkeys(register for some in reachable(automaton) for register in some if register != ROW))
    return dict(zip(distinct, _apart([register_text(register) for register in distinct]), strict=True))


def reachable(automaton: RegisterAutomaton) -> list[tuple[Register, ...]]:
    """The live registers of each place."""
    return [automaton.live[state] for state, _ in automaton.places]


def _apart(names: list[str]) -> tuple[str, ...]:
    """Names, numbered where several registers have the same."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    count: dict[str, int] = {}
    found = []
    for name in names:
        count[name] = count.get(name, 0) + 1
        found.append(f"{name} ({count[name]})" if seen[name] > 1 else name)
    return tuple(found)


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
        the event at hand is another column, behind those of the registers; the last one is the pace of the key.
    event_columns : int
        Columns of an event.
    """

    places: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    registers: tuple[tuple[int, ...], ...]
    ahead: tuple[tuple[int, int], ...]
    event_columns: int

    @classmethod
    def by(cls, tables: RunTables) -> Remembered:
        """What the runs of an engine with these tables remember."""
        automaton, pools, event_columns = tables.automaton, tables.pools, tables.scalars.columns
        live = [automaton.live[pool.state] for pool in pools]
        distinct = list(dict.fromkeys(register for some in live for register in some if register != ROW))
        kinds = [register_kind(register, event_columns) for register in distinct]
        ahead = []
        for number, register in enumerate(distinct):
            is_value = register.kind != "counted" and kinds[number] in ("int", "float")  # how many have it is another
            if is_value and register.of in event_columns.expressions:
                ahead.append((number, event_columns.place(register.of)))
        names, states = register_names(automaton), state_names(automaton)
        return cls(
            places=tuple((states[pool.state], pool.errors) for pool in pools),
            columns=(*names.values(), *(f"{names[distinct[number]]}{AHEAD}" for number, _ in ahead), PACE_NAME),
            kinds=(*(kind if kind in ("float", "text") else "int" for kind in kinds), *["float"] * (len(ahead) + 1)),
            registers=tuple(tuple(distinct.index(r) if r != ROW else -1 for r in some) for some in live),
            ahead=tuple(ahead),
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
        for number, (column, event_column) in enumerate(self.ahead):
            words = births[:, births.shape[1] - self.event_columns + event_column]
            is_real = self.kinds[column] == "float"
            now = words.view(np.float64) if is_real else np.where(words == NULL, np.nan, words)
            found[len(self.kinds) - 1 - len(self.ahead) + number] = found[column] - now
        found[-1] = births[:, PACE].copy().view(np.float64)
        return found


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
    progress : Progress
        Events and run-steps so far: the full work of the query on this past.
    """

    def __init__(self, plan: Plan, schema: pa.Schema, roles: Roles, merge: str = ",".join(MERGING)) -> None:
        self.pipeline = Pipeline(plan, "trace", schema, roles, MAX_DETERMINISED, merging(merge))
        self.progress = Progress()
        assert isinstance(self.pipeline.engine, Runs)
        self.remembered = Remembered.by(self.pipeline.engine.tables)

    def push(self, batch: EventBatch) -> Iterator[Trace]:
        """Run a batch; gives the runs whose windows have closed, now and then."""
        for _ in self.pipeline.run(batch, self.progress):
            pass
        yield from map(self._trace, self.pipeline.hindsight())

    def finish(self) -> Iterator[Trace]:
        """The past ends here: gives all other runs."""
        for _ in self.pipeline.finish():
            pass
        yield from map(self._trace, self.pipeline.hindsight())

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


def trace_past(
    plan: Plan,
    events: Any,
    *,
    time: str | None = None,
    key: str | None = None,
    type: str | None = None,  # noqa: A002  (the word of the query language)
    unit: str | None = None,
    sort: bool = False,
    merge: str = ",".join(MERGING),
    on_progress: Callable[[int], None] | None = None,
) -> Iterator[Trace]:
    """Trace some events.

    Parameters
    ----------
    plan : Plan
        Of a compiled query; it is run by the runs engine in any case.
    events : path, pyarrow table or reader, pandas.DataFrame, or iterable of dicts
        Ordered by (time, arrival), or see ``sort``.
    time, key, type, unit, sort, merge
        As for ``Query.match``.
    on_progress : callable, optional
        Called after each batch with the number of events done.

    Yields
    ------
    Trace
        Runs are in the trace of their first event's window: with all that they led to, and their ancestors. Match
        points near the border of two traces are in both. ``Remembered`` says what places and columns are.

    Notes
    -----
    What holds: ``mask`` is exact but for match points more than 63 behind ``first_point`` in their partition. Where
    runs were merged, a birth stands for all of them: it reaches what they reach together. Where only complete matches
    can be tested (filters, some negations), a run counts as leading to a match point if it completes anything there.
    ``cost`` is exact where nothing was merged; a child that belongs to the next trace is known only up to the border.
    Visits of merged runs go on with the run of the later start; the other one ends. With skip till next match, a run
    ends with the child that it goes on in; one that a negation breaks is believed to live on.

    Complexity: O(run-steps + links · log(events of a window)); memory O(links of two windows, at least half a million).

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> past = [{"ts": tick, "type": kind} for tick, kind in enumerate("ABABC")]
    >>> plan = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 3").plan
    >>> [trace] = trace_past(plan, past)
    >>> births = trace.first_visits()
    >>> [(int(tick), int(mask)) for tick, mask in zip(trace.tick, trace.mask[births])]
    [(0, 0), (1, 0), (2, 1), (3, 1)]
    """
    source = open_source(events)
    if not len(source.schema):
        return
    tracer = Tracer(plan, source.schema, infer_roles(source.schema, time=time, key=key, type=type, unit=unit), merge)
    pipeline = tracer.pipeline
    for batch in read_events(source, pipeline.roles, columns=pipeline.columns, sort=sort):
        yield from tracer.push(batch)
        if on_progress:
            on_progress(tracer.progress.events)
    yield from tracer.finish()
