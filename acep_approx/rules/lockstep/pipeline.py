"""A rule of a circle on its way through a batch: what it detects with beside what lists its matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.engines.cells.cells import Cells
from acep_approx.matching.outputs.of_cells import CellPoints
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute
from acep_approx.rules.compiled import CompiledRule
from acep_approx.rules.pipeline import RulePipeline


class LockstepPipeline(RulePipeline):
    """The query of a rule whose events are classified, and run through its cells, by a kernel of several rules.

    Attributes
    ----------
    cells : Cells
        Where the rule stands; also its engine, where only match points are wanted.
    points : CellPoints
        Puts what the kernel finds into tables then.
    """

    cells: Cells
    points: CellPoints

    def set_up(self) -> None:
        """Begin anew, with the schema that the stream has now."""
        super().set_up()
        self.cells = self.engine if isinstance(self.engine, Cells) else Cells(self.plan.automaton, self.window)
        self.take_classes()
        self.cells.reserve(max(self.key_slots.slots, 1))
        self.points = CellPoints(self.cells, self.stamps)

    def take_keys(self, batch: StreamBatch) -> None:
        """Learn the keys of a batch, and make room for them."""
        self.preparer.read_keys(batch)
        self.engine.reserve(self.key_slots.slots)
        self.cells.reserve(self.key_slots.slots)

    def run_classes(self, batch: StreamBatch, classes: Ints) -> list[pa.Table]:
        """List the matches of a batch whose events have these classes."""
        if not self.preparer.is_count and not classes.any():
            self.progress.events += len(batch)
            return []
        batch.computed.classes[self.preparer] = classes
        return [*self.run(batch)]

    def take_classes(self) -> None:
        """Take notice of classes that were found."""
        if len(self.cells.classes) < len(self.preparer.classes):
            self.cells.set_classes(self.preparer.classes)
            if self.cells is not self.engine:
                self.engine.set_classes(self.preparer.classes)

    @property
    def lists(self) -> bool:
        """Whether its matches are listed; else what the kernel finds is all that is asked."""
        return self.cells is not self.engine

    # --- what the stream side and the state ask ---------------------------------------------------------------

    def is_silent(self, slots: Ints, now: int) -> Bools:
        """Per key slot whether its last event has left the window at ``now``."""
        if self.preparer.is_count:
            return np.zeros(len(slots), np.bool_)
        silent: Bools = super().is_silent(slots, now) & (self.cells.newest()[slots] < now - self.window)
        return silent

    def clear(self, slots: Ints) -> None:
        """Forget some key slots, whose keys are forgotten."""
        super().clear(slots)
        self.cells.clear(slots)

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays."""
        return {**super().header(), "cells": self.cells.header()}

    def arrays(self) -> dict[str, Ints]:
        """The state of what is not in the engine, as arrays."""
        return super().arrays() | (self.cells.arrays(np.zeros(0, np.int64)) if self.lists else {})

    def restore(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Take over what ``header`` and ``arrays`` gave."""
        super().restore(header, arrays)
        if self.lists:
            self.cells.restore(header["cells"], arrays, self.preparer.classes)


def shown_by(rule: CompiledRule) -> set[str]:
    """The attributes of events that the results of a rule show."""
    nodes = (node for output in rule.plan.query.outputs for node in walk(output.value))
    return {node.name for node in nodes if isinstance(node, Attribute)}
