"""One plan that is carried out: batches of events in, tables of results out; the state can be saved between any two.

The state is plain arrays and a JSON header, never pickle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.automaton.determinize import MAX_DETERMINISED
from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.errors import UsageError, expect
from acep_approx.events.columns import to_arrow
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.source import Source
from acep_approx.events.stream import EventBatch
from acep_approx.events.time_formats import TimeFormat
from acep_approx.matching.outputs.bind import Bind, as_plain, bound_names, from_plain
from acep_approx.matching.outputs.kinds import KINDS, MATCHES, OutputKind
from acep_approx.matching.pipeline import BeforeBatch, Pipeline
from acep_approx.matching.state import MATCHER, meaning, restored_stream, saved
from acep_approx.matching.stream_side import StreamSide
from acep_approx.matching.tracing.partial import refuse_algebra
from acep_approx.matching.unseen import warn_of_unseen_types
from acep_approx.planning.durations import Duration, check_duration
from acep_approx.planning.planner import MERGING, Plan, merging
from acep_approx.ranges import COUNT, check, number_in

WANTED = ("time", "key", "type", "unit", "start")
"""Options that name roles."""


def checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options that a state was made with, if they can be some.

    Raises
    ------
    DamagedError
    """
    number_in("state_cap", options["state_cap"], 1, COUNT)
    check("options", good=all(isinstance(options[name], str | None) for name in WANTED))
    return options | {"bind": from_plain(options["bind"])}


class Execution:
    """Carries out one plan over a stream of batches, without the verbs that ``Matcher`` adds.

    Parameters
    ----------
    plan : Plan
    output : {"matches", "points", "counts", "partial", "compressed"}, default "matches"
        List every match; only the events that complete one; how many each of these completes; the events that began a
        run and no match, with how far it came; or what ``Matches.compressed`` is made of (not for pushing).
    time, key, type : str, optional
        Columns that play these roles; inferred from the first batch where not given.
    unit : str, optional
        Unit of a time column of numbers: ns, us, ms or s. Default: plain ticks.
    start : str, optional
        Column that says when an event began, if not when it ended: for queries in CEL, others do not read it.
    state_cap : int, default MAX_DETERMINISED
        Most determinised states for listing and counting.
    merge : str, default "equal,pareto,chain"
        Which lossless mergings the runs engine uses; "none" for none.
    shedding : LoadShedder, optional
        How the runs engine stays inside a load budget (``budget`` makes one); default: nothing is shed.
    bind : str, sequence of str or Wide, optional
        What stands for a bound event in the results: the value of this column of it, a struct of these, or each value
        in a column of its own. Default: its row number.
    key_idle : str or int, optional
        How long a key may have no event, such as ``"1 h"``, or 5 in ticks: then it is dropped, its stream ends, and a
        later event of it begins a new one. Default: keys are kept as long as a window may hold an event of theirs.

    is_raw : bool, default False
        Whether results have key slots, ticks and row numbers in the places of what they stand for.

    Attributes
    ----------
    pipeline : Pipeline or None
        None until the columns of the events are known.

    Notes
    -----
    The same events give the same results in any split into batches. Events must be ordered by (time, arrival), over
    batch borders too.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        output: str = MATCHES,
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        start: str | None = None,
        time_format: str | TimeFormat | None = None,
        state_cap: int = MAX_DETERMINISED,
        merge: str = ",".join(MERGING),
        shedding: LoadShedder | None = None,
        bind: Bind = None,
        key_idle: Duration | None = None,
        is_raw: bool = False,
    ) -> None:
        kind = KINDS.get(output)
        if kind is None or (kind.is_inner and not isinstance(output, OutputKind)):
            raise UsageError(
                f"there is no output {output!r}", code="ACEP-U001", hint="choose matches, points, counts or partial"
            )
        if kind.is_partial:
            refuse_algebra(plan.query)
        if key_idle is not None:
            check_key_idle(plan, kind, key_idle)
        self.plan = plan
        self.key_idle = key_idle
        self.output = kind
        self.bind_by = bound_names(bind, plan.query, kind)
        self.wanted: dict[str, Any] = {"time": time, "key": key, "type": type, "unit": unit, "start": start}
        self.wanted |= TimeFormat.plain(time_format)
        self.state_cap = state_cap
        self.merge = merge
        self._is_raw = is_raw
        self._merging = merging(merge)
        self.shedding = shedding
        self._none_seen = RunProgress()
        self.pipeline: Pipeline | None = None

    @property
    def progress(self) -> RunProgress:
        """Numbers of events seen so far."""
        return self.pipeline.progress if self.pipeline is not None else self._none_seen

    may_search = False
    """Whether match points may be found backwards where that takes less."""
    is_stamped = False
    """Whether raw results show keys and times all the same."""
    row_column: str | None = None
    """A column that events get beside their own, with their row numbers."""
    lookout: BeforeBatch | None = None
    """What its pipeline gets as ``lookout``, once there is one."""
    waits = False
    """Whether events may come in any order."""

    @property
    def roles(self) -> Roles | None:
        """Which columns are time, key and type; None before the columns of the events are known."""
        return None if self.pipeline is None else self.pipeline.roles

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that must be read."""
        return () if self.pipeline is None else self.pipeline.columns

    @property
    def arrived(self) -> int:
        """How many events there were so far."""
        return self.progress.events

    def begin(self, schema: pa.Schema) -> None:
        """Get ready for events of these columns; see ``bind``."""
        if self.pipeline is None:
            self.bind(schema)

    @property
    def last_tick(self) -> int | None:
        """Of the last event; None before the first one."""
        return self.pipeline.stream.last_tick if self.pipeline is not None else None

    def bind(
        self, schema: pa.Schema, roles: Roles | None = None, derived: Mapping[str, pa.DataType] | None = None
    ) -> Pipeline:
        """Check the query against the columns of the events and set the engine up.

        Parameters
        ----------
        schema : pyarrow.Schema
        roles : Roles, optional
            Default: inferred, with the names given before.
        derived : mapping of str to pyarrow.DataType, optional
            Columns that no file has; see ``StreamSide``.

        Raises
        ------
        DataError, QueryError
            A column is missing or has the wrong type.
        """
        roles = roles or infer_roles(schema, **self.wanted)
        if self.row_column is not None:
            derived = {self.row_column: pa.int64()}
        self.pipeline = self._pipeline(StreamSide(schema, roles, derived, self.key_idle))
        return self.pipeline

    def _pipeline(self, stream: StreamSide) -> Pipeline:
        bind = () if self._is_raw else self.bind_by  # who gets raw results shows them later
        may_search = self.may_search and "pareto" in self._merging
        made = Pipeline(
            stream, self.plan, self.output, self.state_cap, self._merging, self.shedding, bind, is_raw=self._is_raw,
            is_stamped=self.is_stamped, may_search=may_search,
        )  # fmt: skip
        made.lookout = self.lookout
        return made

    def run(self, batch: EventBatch, derived: Mapping[str, pa.Array] | None = None) -> Iterator[pa.Table]:
        """Run one batch; results come as they are made, and must all be taken before the next batch.

        Raises
        ------
        DataError
            See ``StreamSide.run``.
        """
        assert self.pipeline is not None, "bind first"
        if self.row_column is not None:
            derived = {self.row_column: to_arrow(batch.first_row + np.arange(len(batch)))}
        for _, table in self.pipeline.stream.run(batch, derived):
            yield table

    def pass_time(self, tick: int) -> pa.Table:
        """No event before ``tick`` will come any more: the matches whose window has closed by then.

        Parameters
        ----------
        tick : int
            Not before the last event. Keys that have been silent for longer than the window are forgotten.

        Returns
        -------
        pyarrow.Table
            Only a negation at the end of a pattern makes matches wait; without one, and in windows of events, it is
            empty.
        """
        expect("tick", tick, Integral, "a whole number")
        if self.pipeline is None:
            return pa.table({})
        stream = self.pipeline.stream
        stream.check_whole()
        return self.pipeline.joined([table for _, table in stream.pass_time(tick)])

    @property
    def waits_until(self) -> int | None:
        """The tick before which windows must end for the next waiting match to be put out by ``pass_time``."""
        return self.pipeline.waits_until if self.pipeline is not None else None

    def finish(self, *, ended: bool = True) -> pa.Table:
        """The stream has ended: the matches that were waiting for the end of their window.

        Parameters
        ----------
        ended : bool, default True
            Whether no event can come any more. If some may, what waits for a window that they may lie in is not given:
            ``unclosed`` counts it. Nothing can be pushed behind that.

        Returns
        -------
        pyarrow.Table
            Only a negation at the end of a pattern makes matches wait; without one it is empty. Partial matches
            whose window had not closed.
        """
        if self.pipeline is None:
            return pa.table({})
        self.pipeline.stream.check_whole()
        self.pipeline.stream.ends = ended
        return self.pipeline.joined(list(self.pipeline.finish()))

    @property
    def unclosed(self) -> int:
        """How many results waited for the end of their window when it was finished, though more events may come."""
        return self.pipeline.stream.unclosed if self.pipeline is not None else 0

    @property
    def types_seen(self) -> set[str]:
        """Types of the events so far; see ``LetterReader.seen`` for which are left out."""
        return self.pipeline.preparer.letters.seen if self.pipeline is not None else set()

    def look_for_types(self, source: Source) -> None:
        """Warn of types that the query names and no event of ``source`` has, without matching any.

        Reads only the type column, and no further than to where all types have been seen.
        """
        assert self.pipeline is not None, "bind first"
        letters, column = self.pipeline.preparer.letters, self.pipeline.roles.type
        if not letters.needs_type or column is None:
            return
        has_events = False
        for batch in source.batches([column]):
            has_events |= batch.num_rows > 0
            letters.notice(batch.column(0))
            if letters.types <= letters.seen:
                return
        if has_events:
            warn_of_unseen_types(self.plan.automaton, letters.seen)

    def state_bytes(self) -> bytes:
        """The state as bytes, to go on later or elsewhere; see ``matching.state`` for the layout.

        Raises
        ------
        DataError
            ``ACEP-D045``: an error stopped it in the middle of a batch.
        """
        stream = self.pipeline.stream if self.pipeline is not None else None
        return MATCHER.pack(saved(self.plan, self.options(), stream))

    def options(self) -> dict[str, Any]:
        """What it was made with, as JSON."""
        return {
            "output": self.output,
            "state_cap": self.state_cap,
            "merge": self.merge,
            "bind": as_plain(self.bind_by),
            "key_idle": self.key_idle,
            **self.wanted,
        }

    @classmethod
    def from_state(cls, plan: Plan, state: bytes, shedding: LoadShedder | None = None) -> Self:
        """What ``state_bytes`` was called on, ready for the next batch; with ``shedding`` as it was given.

        Raises
        ------
        DataError
            Not a state, a state of another query, or of another format.
        """
        saved = MATCHER.unpack(state, of=meaning(plan))
        with MATCHER.reading():
            return cls.from_saved(plan, saved, shedding)

    @classmethod
    def from_saved(cls, plan: Plan, saved: Scope, shedding: LoadShedder | None = None) -> Self:
        """The same of a state that was unpacked.

        Raises
        ------
        DataError
            ``ACEP-D044``: one of the two is inside a load budget, the other is not.
        Exception
            What ``ranges.reading`` takes for damage.
        """
        options = {name: value for name, value in saved.head["caller"].items() if name != "spending"}
        options["output"] = KINDS[options["output"]]
        made = cls(plan, **checked_options(options), shedding=shedding)
        made.take(saved)
        return made

    def take(self, saved: Scope) -> None:
        """Go on from a state, before anything was run."""
        if "stream" in saved.parts:
            self.pipeline = self._pipeline(restored_stream(saved.parts["stream"], saved.words))
            self.pipeline.restore(saved.parts["query"])


def check_key_idle(plan: Plan, output: str, key_idle: Duration) -> None:
    """Refuse to drop keys where there are none, or where what is put out tells nothing of it.

    Raises
    ------
    UsageError
        ``ACEP-U200``; ``ACEP-U056``: it is not a length of time.
    """
    check_duration("key_idle", key_idle)
    if not plan.query.equivalences:
        raise UsageError(
            "key_idle= (--key-idle) drops keys, and the query names none",
            code="ACEP-U200",
            hint="leave it out, or name the key in the query: WHERE [user]",
        )
    if KINDS[output].is_linked:
        raise UsageError(
            "key_idle= (--key-idle) and compressed output do not go together: it numbers the events of keys",
            code="ACEP-U200",
            hint="list the matches, or leave key_idle= out",
        )
