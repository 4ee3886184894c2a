"""Run small worlds through the kernels, many streams at once: each stream is a key of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acep_approx.automaton.automaton import Automaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.cells.listing import listed as listed_matches
from acep_approx.engines.columns import Placement
from tests.naive import Binding

Ints = np.ndarray
Stream = Sequence[tuple[int, int]]
"""(tick, letter mask) per event."""


def grouped(streams: Sequence[Stream], classes: list[int]) -> Grouped:
    """All streams as one batch; the row of an event is its index in its own stream."""
    number = {mask: i for i, mask in enumerate(classes)}
    columns = [
        (slot, tick, number[mask], i) for slot, stream in enumerate(streams) for i, (tick, mask) in enumerate(stream)
    ]
    slot, tick, cls, row = (np.array(c, np.int64) for c in zip(*columns, strict=True))
    return Grouped(slot, tick, cls, row, row, row, row)


def detected(automaton: Automaton, window: int, streams: Sequence[Stream], classes: list[int]) -> list[dict[int, int]]:
    """Per stream: match point -> least err, by the detection kernel."""
    cells = Cells(automaton, window)
    cells.set_classes(classes)
    cells.reserve(len(streams))
    events = grouped(streams, classes)
    points: list[dict[int, int]] = [{} for _ in streams]
    for i, err, _ in cells.detect(events.slot, events.tick, events.cls).tolist():
        points[events.slot[i]][int(events.row[i])] = err
    return points


def one_list(automaton: Automaton) -> Placement:
    """All events of a match in one column, with what they are bound to beside it."""
    return Placement(np.full(len(automaton.variables), -1), keeps_labels=True)


def enumerated(
    automaton: Automaton, window: int, streams: Sequence[Stream], classes: list[int], *, chunk: int = 4096
) -> list[dict[Binding, int]]:
    """Per stream: every match -> err, by the arc logs; none is listed twice, and both ways to count agree."""
    logs = ArcLogs(automaton, window)
    logs.set_classes(classes)
    logs.reserve(len(streams))
    events = grouped(streams, classes)
    hits = logs.update(events, np.array([int(events.tick.min()) - window]))
    errs, ends = logs.err(hits).tolist(), hits[::2].tolist()
    slots = events.slot[hits[::2]].tolist()
    found: list[dict[Binding, int]] = [{} for _ in streams]
    listed_of = dict.fromkeys(range(len(errs)), 0)
    for listed in listed_matches(logs, hits, events, one_list(automaton), chunk):
        rows, labels, begin = listed.lists[0][1].tolist(), listed.labels.tolist(), listed.begin.tolist()
        assert listed.lists[0][0].tolist() == begin
        pairs = list(zip(rows, [automaton.variables[v] for v in labels], strict=True))
        for match, hit in enumerate(listed.hit.tolist()):
            bound = tuple(pairs[begin[match] : begin[match + 1]])
            matches = found[slots[hit]]
            assert bound not in matches, f"{bound} was listed twice"
            matches[bound] = errs[hit]
            listed_of[hit] += 1
    counted_of = dict.fromkeys(listed_of, 0)
    first = 0
    for hit, count in enumerate(logs.count(hits, events).tolist()):
        first = hit if (ends[hit], errs[hit]) != (ends[first], errs[first]) else first
        counted_of[first] += count
    assert counted_of == listed_of, "listing and counting differ"
    return found
