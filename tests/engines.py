"""Run small worlds through the kernels, many streams at once: each stream is a key of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acep_approx.automaton.automaton import Automaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
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
    return Grouped(slot, tick, cls, row, row, row)


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


def enumerated(
    automaton: Automaton, window: int, streams: Sequence[Stream], classes: list[int], *, chunk: int = 4096
) -> list[dict[Binding, int]]:
    """Per stream: every match -> err, by the arc logs; none is listed twice, and both ways to count agree."""
    logs = ArcLogs(automaton, window)
    logs.set_classes(classes)
    logs.reserve(len(streams))
    events = grouped(streams, classes)
    hits = logs.update(events, np.array([int(events.tick.min()) - window]))
    errs = logs.err(hits)
    found: list[dict[Binding, int]] = [{} for _ in streams]
    total = 0
    for listed in logs.listed(hits, events, chunk):
        rows, labels, offsets = listed.id.tolist(), listed.label.tolist(), listed.offset.tolist()
        for m, hit in enumerate(listed.hit.tolist()):
            span = slice(offsets[m], offsets[m + 1])
            bound = tuple((r, automaton.variables[v]) for r, v in zip(rows[span], labels[span], strict=True))
            matches = found[events.slot[hits[2 * hit]]]
            assert bound not in matches, f"{bound} was listed twice"
            matches[bound] = int(errs[hit])
            total += 1
    counts = logs.count(hits, events)
    assert counts.sum() == total
    logs.patience = 0
    assert logs.count(hits, events).tolist() == counts.tolist(), "counting by states and by walking differ"
    return found
