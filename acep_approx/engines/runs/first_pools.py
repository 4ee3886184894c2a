"""How many runs of one bound event an exact run would have: they are begun here, and never tested.

Which runs begin depends on events alone, and which of them are merged, or dropped, on those in the window. So the pools
that an event is tested with first can be kept beside a run that sheds, without a run-step: an event is tested with as
many runs as stand there. Those further on would have to be tested for. Source: ours.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.automaton.automaton import START
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.engines.runs.hidden import NO_OPTIONS
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.tables import BEGINS_NONE, TESTS_NONE, RunTables
from acep_approx.engines.runs.worth import Allowance
from acep_approx.kernels.runs import pools as kp
from acep_approx.kernels.runs.pools import hash_word
from acep_approx.query.syntax import NON_OVERLAP

DICE = 17
"""What the hashes begin with that say which events are looked at: by their rows, however they arrive."""
HASHES = 2.0**31
NO_FLOORS = np.zeros(1, np.int64)


class Look(NamedTuple):
    """Which events of a piece were looked at, by their place in it, and what each is tested with.

    ``runs``: shape (events, places).
    """

    at: Ints
    runs: Ints


def can_begin_alone(tables: RunTables) -> bool:
    """Whether runs begin and end by events alone, whatever becomes of other runs."""
    automaton = tables.automaton
    is_plain = tables.options is NO_OPTIONS and not tables.is_simultaneous and tables.window > 0
    return is_plain and automaton.counted == "nothing" and automaton.query.selection != NON_OVERLAP


class FirstPools:
    """Keeps the runs of the first places, as an exact run would: in memory, a run for each event that began one.

    Parameters
    ----------
    tables : RunTables
        Of the run that sheds.

    Attributes
    ----------
    engine : Runs
        Has these runs.
    places : tuple of int
        Those at which runs stand that have bound one event, where no test is needed to know which these are: not where
        other runs come there, where events take runs away, or where an index finds the runs to be tested.
    """

    def __init__(self, tables: RunTables) -> None:
        self._tables = tables
        merging = tables.merging if tables.exact_drops else tables.merging - {"pareto"}
        columns, shedder = tables.scalars.columns, FixedLoad(Shedding(None, Allowance()))
        self.engine = Runs(tables.automaton, columns, tables.window, merging, keeps_lineage=False, shedding=shedder)
        self.places = self._first_places() if can_begin_alone(tables) else ()
        self._classes: Sequence[int] = ()
        self._concerns: Bools = np.zeros(0, np.bool_)

    def _first_places(self) -> tuple[int, ...]:
        automaton, found = self.engine.automaton, []
        for place, pool in enumerate(self.engine.tables.pools):
            sources = {step.source for step in automaton.steps if step.target == pool.state}
            is_first = place != START and pool.stays and sources == {START}
            if is_first and automaton.is_passive(pool.state) and not pool.is_probed:
                found.append(place)
        return tuple(found)

    def look(self, events: RunEvents, chances: Floats) -> Look:
        """Begin the runs of events, and look with these chances at what each is tested with.

        Complexity: O(events that begin runs), and some for each that is looked at.
        """
        self._know_classes()
        self.engine.reserve(int(events.slot.max(initial=-1)) + 1)
        hashed: Any = hash_word  # takes arrays too
        is_looked_at = np.asarray(hashed(DICE, events.row), np.int64) < chances * HASHES
        wanted = np.flatnonzero(is_looked_at | self._concerns[events.cls])
        order = wanted[np.argsort(events.slot[wanted], kind="stable")]  # each change of key takes time
        looks = np.flatnonzero(is_looked_at[order])
        found = np.zeros((len(looks), len(self._tables.pools)), np.int64)
        # events that are looked at come twice: they pass, which shows what they meet, and then begin their runs
        twice = np.insert(order, looks, order[looks])
        passing = looks + np.arange(len(looks))
        columns = {field.name: getattr(events, field.name)[..., twice] for field in fields(RunEvents)}
        columns["cls"][passing] += len(self._classes)
        ends, places = [*(passing + 1).tolist(), len(twice)], list(self.places)
        for number, _ in enumerate(self.engine.advance_to(RunEvents(**columns), ends, NO_FLOORS)):
            if number < len(looks):
                rows = self.engine.arena.rows
                found[number, places] = rows[places, kp.CHILDREN] - rows[places, kp.HEAD]
        return Look(order[looks], found)

    def _know_classes(self) -> None:
        classes = self._tables.classes
        if classes != self._classes:
            self._classes = classes
            tested_none = [mask | TESTS_NONE for mask in classes]
            self.engine.set_classes(tested_none + [mask | BEGINS_NONE for mask in tested_none])
            here = {START, *self.places}  # what is tested there sees to it, too, that old runs are swept out
            self._concerns = np.array([not here.isdisjoint(self._tables.tested(mask)) for mask in classes], np.bool_)

    def rebind(self, tables: RunTables) -> None:
        """Go on with columns of wider types."""
        columns: EventColumns = tables.scalars.columns
        self.engine.widen(columns)
        self._tables = tables

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        arrays = self.engine.arrays(NO_FLOORS).items()
        coded = {name: b64encode(np.ascontiguousarray(words).tobytes()).decode() for name, words in arrays}
        return {"header": self.engine.header(), "arrays": coded}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave.

        Raises
        ------
        DataError
            See ``Runs.restore``.
        """
        arrays = {name: np.frombuffer(b64decode(words), np.int64).copy() for name, words in saved["arrays"].items()}
        self.engine.restore(saved["header"], arrays, [])
        self._classes = ()
