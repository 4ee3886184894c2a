"""A rule of a circle on its way through a batch: what it detects with beside what lists its matches."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.matching.choice import Parts, Way, cell_listing
from acep_approx.matching.outputs.of_cells import CellListing, CellPoints
from acep_approx.matching.outputs.output import Output, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import BindingColumns
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.matching.stream_side import StreamSide
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute
from acep_approx.rules.compiled import CompiledRule
from acep_approx.rules.pipeline import rule_pipeline


class DetectedListing(CellListing):
    """Lists the matches of what has been detected by cells, which stand beside the engine."""

    def __init__(
        self, cells: Cells, engine: ArcLogs, stamps: Stamps, bindings: BindingColumns, recent: Recent
    ) -> None:
        super().__init__(engine, stamps, bindings, recent)
        self._cells = cells

    def newest(self) -> Ints:
        """Per key slot the latest start of any run, in the engine and in the cells."""
        listed, detected = self.engine.newest(), self._cells.newest()
        both = min(len(listed), len(detected))
        return np.maximum(listed[:both], detected[:both])

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""
        super().clear(slots)
        self._cells.clear(slots)

    def arrays(self) -> dict[str, Ints]:
        """The state of what is not in the engine, as arrays."""
        return super().arrays() | self._cells.arrays(np.zeros(0, np.int64))

    def restore(self, arrays: dict[str, Ints]) -> None:
        """Take over a state."""
        super().restore(arrays)
        cells = self._cells
        cells.restore({"slots": arrays["cells"].size // cells.stride}, arrays, self.stamps.preparer.classes)


class KernelRule:
    """A rule whose events are classified, and run through its cells, by a kernel of several rules.

    Parameters
    ----------
    stream : StreamSide
    rule : CompiledRule

    Attributes
    ----------
    pipeline : Pipeline
        Lists its matches.
    lists : bool
        Whether matches are listed; else what the kernel finds is all that is asked.
    cells : Cells
        Where the rule stands; the engine of the pipeline, where nothing is listed.
    points : CellPoints
        Puts what the kernel finds into tables then.
    """

    def __init__(self, stream: StreamSide, rule: CompiledRule) -> None:
        self.rule = rule
        self.lists = rule.lists
        self.pipeline = rule_pipeline(stream, rule, Way(self._output))

    def _output(self, parts: Parts) -> Output:
        self.cells = Cells(parts.plan.automaton, parts.window)
        self.points = CellPoints(self.cells, parts.stamps)
        if not self.lists:
            return self.points
        self.cells.set_classes(parts.preparer.classes)
        self.cells.reserve(max(parts.preparer.key_slots.slots, 1))
        return cell_listing(parts, partial(DetectedListing, self.cells))

    def take_keys(self, batch: StreamBatch) -> None:
        """Learn the keys of a batch, and make room for them."""
        pipeline = self.pipeline
        pipeline.preparer.read_keys(batch)
        pipeline.engine.reserve(pipeline.key_slots.slots)
        self.cells.reserve(pipeline.key_slots.slots)

    def take_classes(self) -> None:
        """Take notice of classes that were found."""
        classes = self.pipeline.preparer.classes
        if len(self.cells.classes) < len(classes):
            self.cells.set_classes(classes)
            if self.lists:
                self.pipeline.engine.set_classes(classes)

    def run_classes(self, batch: StreamBatch, classes: Ints) -> list[pa.Table]:
        """List the matches of a batch whose events have these classes."""
        pipeline = self.pipeline
        if not pipeline.preparer.is_count and not classes.any():
            pipeline.progress.events += len(batch)
            return []
        batch.computed.classes[pipeline.preparer] = classes
        return [*pipeline.run(batch)]


def shown_by(rule: CompiledRule) -> set[str]:
    """The attributes of events that the results of a rule show."""
    nodes = (node for output in rule.plan.query.outputs for node in walk(output.value))
    return {node.name for node in nodes if isinstance(node, Attribute)}
