"""Tables and state of the detection kernel: what the automaton looks like to ``kernels.cells.detect``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from acep_approx.arrays import Ints, extended
from acep_approx.automaton.automaton import START, Automaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.engine import Engine, Slots, Snapshot, does_not_fit
from acep_approx.errors import LimitError
from acep_approx.kernels.cells.detect import (
    FEW_LANES,
    MANY_LANES,
    MAX_ERRORS,
    NEVER,
    POINT,
    CellTables,
    Keyed,
    detect_few,
    detect_many,
)
from acep_approx.ranges import Range, check, check_arrays

Node = tuple[int, frozenset[int]]
NO_GUARD: frozenset[int] = frozenset()


class Cells(Engine):
    """Exact detection: which events complete a match, with how few errors, and the latest start.

    Parameters
    ----------
    automaton : Automaton
        Without guards at the start or at the end.
    window : int
        In ticks, or in events for a count window.

    Raises
    ------
    LimitError
        If k is above ``MAX_ERRORS``.

    Notes
    -----
    State is ``cells``: int64, ``rows x 2 lanes`` per key slot, whatever the number of partial matches.
    """

    def __init__(self, automaton: Automaton, window: int) -> None:
        if automaton.errors > MAX_ERRORS:
            raise LimitError(
                f"ERRORS {automaton.errors} is more than this engine can count",
                code="ACEP-Q906",
                given=automaton.errors,
                limit=MAX_ERRORS,
                hint=f"use at most {MAX_ERRORS}; with WEIGHTS, scale the weights down",
            )
        self.automaton = automaton
        self.window = window
        self.lanes = FEW_LANES if automaton.errors < FEW_LANES else MANY_LANES
        self._detect = detect_few if self.lanes == FEW_LANES else detect_many
        self._rows = self._number_rows()
        self.stride = 2 * self.lanes * len(self._rows)
        self.needed = 0  # key slots that were asked for
        self.classes: list[int] = []
        self.tables = CellTables(np.zeros(0, np.int64), np.zeros(9, np.int64))
        self._fresh = np.zeros(0, np.int64)
        self.cells = np.zeros(0, np.int64)
        self._out = np.zeros(0, np.int64)

    def _number_rows(self) -> dict[Node, int]:
        """A row for each state, and one more for each guard on an arc that leaves it."""
        nodes = {(state, NO_GUARD) for state in range(self.automaton.size) if state != START}
        nodes |= {(arc.source, arc.guard) for arc in self.automaton.arcs if arc.source != START}
        return {node: row for row, node in enumerate(sorted(nodes, key=lambda n: (n[0], sorted(n[1]))))}

    def set_classes(self, classes: list[int]) -> None:
        """Make the tables for event classes (letter masks); cells stay as they are."""
        self.classes = list(classes)
        groups: list[tuple[int, int, list[int], list[int]]] = []
        class_first = [0]
        clears: list[int] = []
        clear_first = [0]
        for mask in self.classes:
            groups.extend(self._groups(mask))
            class_first.append(len(groups))
            broken = {j for j in self.automaton.guards if mask >> j & 1}
            clears.extend(self._address(row) for (_, guard), row in self._rows.items() if guard & broken)
            clear_first.append(len(clears))
        self._layout(groups, class_first, clears, clear_first)
        largest = max((b - a for a, b in pairwise(class_first)), default=0)
        self._fresh = np.zeros(max(largest, 1) * self.lanes, np.int64)

    def _groups(self, mask: int) -> list[tuple[int, int, list[int], list[int]]]:
        """Per state that an event of ``mask`` can reach: begin cost, finish cost, arc reads, row writes."""
        never = MANY_LANES + 1
        begin: dict[int, int] = {}
        reads: dict[int, list[int]] = {}
        for arc in self.automaton.arcs:
            if not mask >> arc.letter & 1:
                continue
            reads.setdefault(arc.target, [])
            if arc.source == START:
                begin[arc.target] = min(arc.cost, begin.get(arc.target, never))
            else:
                reads[arc.target].append(self._address(self._rows[arc.source, arc.guard]) - arc.cost)
        finish = {final.state: final.cost for final in reversed(self.automaton.finals) if not final.guard}
        writes: dict[int, list[int]] = {}
        for (state, _), row in self._rows.items():
            writes.setdefault(state, []).append(self._address(row))
        return [
            (begin.get(q, never), finish.get(q, never), sorted(set(reads[q])), writes.get(q, [])) for q in sorted(reads)
        ]

    def _address(self, row: int) -> int:
        return row * 2 * self.lanes + self.lanes

    def _layout(
        self,
        groups: list[tuple[int, int, list[int], list[int]]],
        class_first: list[int],
        clears: list[int],
        clear_first: list[int],
    ) -> None:
        """Flatten into one table: classes, groups (with a sentinel), arcs, rows, clears.

        Groups of similar size are filled up to the same size: a loop of constant length is never mispredicted.
        """
        longest = max((len(read) for _, _, read, _ in groups), default=0)
        if longest * len(groups) <= 2 * sum(len(read) for _, _, read, _ in groups):
            nowhere = self._address(0) - self.lanes  # the pad of a row: minus infinity
            groups = [(b, f, read + [nowhere] * (longest - len(read)), write) for b, f, read, write in groups]
        heads: list[int] = []
        arcs: list[int] = []
        rows: list[int] = []
        for begin, finish, read, write in groups:
            heads += [begin, finish, len(arcs), len(rows)]
            arcs += read
            rows += write
        heads += [0, 0, len(arcs), len(rows)]
        parts = [class_first, heads, arcs, rows, clear_first, clears]
        starts = np.cumsum([0, *(len(part) for part in parts)])
        words = np.array([x for part in parts for x in part], dtype=np.int64)
        offsets = np.array([self.automaton.errors, self.stride, *starts[:6], len(clears)], dtype=np.int64)
        self.tables = CellTables(words, offsets)

    def reserve(self, slots: int) -> None:
        """Make room for key slots ``0 .. slots - 1``."""
        self.needed = max(self.needed, slots)
        if slots > self.slots:
            self.slots = max(slots, 2 * self.slots)
            self.cells = extended(self.cells, self.slots * self.stride, NEVER)

    @property
    def scratch(self) -> int:
        """Integers of scratch that the kernel needs."""
        return self._fresh.size

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""
        self.cells.reshape(self.slots, self.stride)[slots] = NEVER

    def newest(self) -> Ints:
        """Per key slot the latest start of any run; below every tick where there is none."""
        result: Ints = self.cells.reshape(self.slots, self.stride).max(axis=1, initial=NEVER)
        return result

    def fork(self, slot: int) -> Ints:
        """A copy of the cells of a key. Complexity: O(cells of the key)."""
        return self.cells[slot * self.stride : (slot + 1) * self.stride].copy()

    def put(self, slot: int, cells: Ints) -> None:
        """Bring a key back to where it stood when ``cells`` were copied, here or in another engine of the same query.

        Raises
        ------
        DataError
            ``ACEP-D047``: the copy does not fit this engine.
        """
        if cells.size != self.stride or (cells.reshape(-1, 2, self.lanes)[:, 0] != NEVER).any():  # a row has a pad
            raise does_not_fit("cells")
        self.cells[slot * self.stride : (slot + 1) * self.stride] = cells

    def snapshot(self, slots: Ints | None, floors: Ints) -> CellsSnapshot:  # noqa: ARG002
        """Where keys stand now."""
        return CellsSnapshot(self, slots)

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays."""
        return {"slots": self.needed}

    def arrays(self, floors: Ints) -> dict[str, Ints]:  # noqa: ARG002  (other engines have more to let go of)
        """The state as arrays."""
        return {"cells": self.cells[: self.needed * self.stride]}

    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state and make the tables for its event classes."""
        slots = arrays["cells"].size // self.stride
        check_arrays(arrays, {"cells": Range(slots * self.stride)})
        pads = arrays["cells"].reshape(-1, 2, self.lanes)[:, 0]
        check("cells", good=type(header["slots"]) is int and header["slots"] == slots and (pads == NEVER).all())
        self.slots = self.needed = slots
        self.cells = arrays["cells"]
        self.set_classes(classes)

    def detected(self, events: Grouped) -> Ints:
        """Match points of a batch, grouped by slot; as ``detect`` gives them."""
        return self.detect(events.slot, events.tick, events.cls)

    def detect(self, slot: Ints, tick: Ints, cls: Ints) -> Ints:
        """Match points of a batch, see ``kernels.cells.detect``.

        Returns
        -------
        numpy.ndarray of int64, shape (hits, 3)
            Event index, least err, latest start at that err; in the order of the events given. Valid until the next
            call.
        """
        if self._out.size < POINT * (slot.size + 1):
            self._out = np.zeros(POINT * (slot.size + 1), np.int64)
        found = 0
        for part in self._detect.pieces(slot.size):
            events, out = Keyed(slot[part], tick[part], cls[part]), self._out[POINT * found :]
            hits = self._detect(events, self.window, self.tables, self.cells, self._fresh, out)
            out[: POINT * hits : POINT] += part.start
            found += hits
        return self._out[: POINT * found].reshape(found, POINT)


class CellsSnapshot(Snapshot):
    """The cells of all keys, or of ``slots``, as they are now."""

    def __init__(self, engine: Cells, slots: Ints | None = None) -> None:
        self._engine = engine
        self._slots = Slots(slots)
        table = engine.cells.reshape(engine.slots, engine.stride)
        self._cells = table[: engine.needed].copy() if slots is None else table[slots]

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""
        return self._cells.size

    def bring_back(self, slots: Ints) -> None:
        """Let these keys stand where they stood."""
        table, at = self._engine.cells.reshape(self._engine.slots, -1), self._slots.places(slots)
        known = at < len(self._cells)
        table[slots[known]] = self._cells[at[known]]
        table[slots[~known]] = NEVER

    def renew(self, slots: Ints) -> None:
        """Take over where these keys stand now."""
        more = self._engine.needed - len(self._cells)
        if more > 0:
            self._cells = np.concatenate((self._cells, np.full((more, self._engine.stride), NEVER)))
        self._cells[slots] = self._engine.cells.reshape(self._engine.slots, -1)[slots]
