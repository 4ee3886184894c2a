"""Which driver runs a stage: over whole batches, in one kernel, or in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools
from acep_approx.events.roles import Roles
from acep_approx.matching.stream_side import StreamSide
from acep_approx.rules.firing import Firing, Statement
from acep_approx.rules.graph import PRESENCE, Cell, Stage, cell
from acep_approx.rules.lockstep.arenas import TableArena
from acep_approx.rules.lockstep.conditions import reads_of_circle
from acep_approx.rules.lockstep.eligible import Planned, live_reads
from acep_approx.rules.lockstep.loop import LockstepStage, Loop
from acep_approx.rules.lockstep.pipeline import LockstepPipeline, shown_by
from acep_approx.rules.lockstep.questions import Acts, Live
from acep_approx.rules.log import TableLog
from acep_approx.rules.pipeline import RulePipeline
from acep_approx.rules.program import Program
from acep_approx.rules.stages import BatchStage, Detector, derived_types, reads_of
from acep_approx.rules.stepping import SteppingStage

AnyStage = BatchStage | SteppingStage | LockstepStage


@dataclass(frozen=True)
class Surroundings:
    """What stages are made of: the rules, their actions, the tables and what is written to them."""

    program: Program
    firings: Mapping[int, Firing]
    logs: Mapping[str, TableLog]
    arena: TableArena

    def detector(
        self, planned: Planned, schema: pa.Schema, roles: Roles, side: StreamSide | None
    ) -> Detector | None:
        """What detects in a stage; ``side`` is that of a saved state."""
        stage, in_kernel = planned.stage, planned.in_kernel
        if not stage.detecting:
            return None
        rules = [self.program.rules[number] for number in stage.detecting]
        reads = reads_of_circle(rules) if in_kernel else reads_of(rules)
        side = side or StreamSide(schema, roles, derived_types(reads, self.logs))
        if in_kernel:
            live = {read.name for read in live_reads(stage, self.program)}
            side.leave_out(live - {name for rule in rules for name in shown_by(rule)})
        return Detector(rules, side, self.logs, reads, LockstepPipeline if in_kernel else RulePipeline)

    def stage(self, planned: Planned, detector: Detector | None) -> AnyStage:
        """What runs a stage."""
        stage = planned.stage
        own = [self.firings[rule] for rule in stage.firing]
        if not stage.is_cycle:
            return BatchStage(detector, own)
        if detector is not None and planned.in_kernel:
            return self._lockstep(stage, detector, own)
        cells = self._cells(stage)
        wanted = self._wanted(cells)
        return SteppingStage(detector, own, [self.logs[name] for name in wanted], [*wanted.values()])

    def _wanted(self, cells: Sequence[Cell]) -> dict[str, Bools]:
        """Per table the columns that some cells are computed from."""
        wanted: dict[str, Bools] = {}
        for table, column in cells:
            log = self.logs[table]
            mask = wanted.setdefault(table, np.zeros(len(log.rows.columns), np.bool_))
            if column != PRESENCE and column not in log.rows.table.key:
                mask |= log.programs.needs[log.rows.column(column)]
        return wanted

    def _cells(self, stage: Stage) -> list[Cell]:
        """The columns that parts of a stage read."""
        rules = self.program.rules
        reads = [cell(read) for rule in stage.detecting for read in rules[rule].reads]
        return reads + [cell(read) for rule in stage.firing for read in rules[rule].when_reads]

    def _lockstep(self, stage: Stage, detector: Detector, firings: Sequence[Firing]) -> LockstepStage:
        reads = live_reads(stage, self.program)
        keys = [*dict.fromkeys((read.table, read.keys) for read in reads)]
        live = {read.name: Live.of(read, self.logs, keys.index((read.table, read.keys))) for read in reads}
        wanted = self._wanted([*map(cell, reads)])
        cells = set().union(*(self.program.graph.cells_of(read.table, read.column) for read in reads))
        run = [[one for one in firing.statements if self._writes(one, cells)] for firing in firings]
        for table in wanted:
            self.arena.add(self.logs[table].rows)
        acts = Acts(firings, {table: self.logs[table] for table in wanted}, run, wanted)
        pipelines = [one for one in detector.pipelines if isinstance(one, LockstepPipeline)]
        return LockstepStage(detector, firings, live, Loop(pipelines, live, acts, self.arena))

    def _writes(self, statement: Statement, cells: set[Cell]) -> bool:
        """Whether a statement writes some cells."""
        return bool(self.program.graph.written_by(statement.write) & cells)
