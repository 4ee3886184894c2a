"""Which driver runs a stage: over whole batches, in one kernel, or in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools
from acep_approx.events.roles import Roles
from acep_approx.matching.outputs.bind import Bind
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_side import StreamSide
from acep_approx.rules.compiled import CompiledRule, ReadColumn
from acep_approx.rules.firing import Firing
from acep_approx.rules.graph import PRESENCE, Cell, Stage, cell
from acep_approx.rules.lockstep.arenas import TableArena
from acep_approx.rules.lockstep.conditions import reads_of_circle
from acep_approx.rules.lockstep.eligible import Planned, live_reads
from acep_approx.rules.lockstep.loop import LockstepStage, Loop
from acep_approx.rules.lockstep.questions import Acts, Live
from acep_approx.rules.log import TableLog
from acep_approx.rules.losses import Losses, Watch
from acep_approx.rules.pipeline import KernelRule, rule_pipeline, shown_by
from acep_approx.rules.program import Program
from acep_approx.rules.stages import BatchStage, Detector, derived_types, reads_of
from acep_approx.rules.stepping import SteppingStage

AnyStage = BatchStage | SteppingStage | LockstepStage


@dataclass(frozen=True)
class Surroundings:
    """What stages are made of: the rules, their actions, the tables and what is written to them.

    ``losses``: inside a load budget, what may be missed.
    """

    program: Program
    firings: Mapping[int, Firing]
    logs: Mapping[str, TableLog]
    arena: TableArena
    bind: Bind
    losses: Losses | None = None

    def stage(self, planned: Planned, schema: pa.Schema, roles: Roles, side: StreamSide | None) -> AnyStage:
        """What runs a stage; ``side`` is that of a saved state."""
        stage = planned.stage
        rules = [self.program.rules[number] for number in stage.detecting]
        own = [self.firings[rule] for rule in stage.firing]
        reads = reads_of_circle(rules) if planned.in_kernel else reads_of(rules)
        detector = None
        if rules:
            side = side or StreamSide(schema, roles, derived_types(reads, self.logs))
            if planned.in_kernel:
                return self._lockstep(stage, rules, side, reads, own)
            detector = self._detector(rules, side, reads)
        if not stage.is_cycle:
            return BatchStage(detector, own)
        read = [cell(read) for rule in rules for read in rule.reads]
        read += [cell(read) for rule in stage.firing for read in self.program.rules[rule].when_reads]
        wanted = self._wanted(read)
        doubts = {} if self.losses is None else self.losses.doubts
        own_doubts = [doubt for name, doubt in doubts.items() if name in wanted]
        return SteppingStage(detector, own, [self.logs[name] for name in wanted], [*wanted.values()], own_doubts)

    def _detector(self, rules: list[CompiledRule], side: StreamSide, reads: list[ReadColumn]) -> Detector:
        losses = self.losses
        pipelines, watches = list[Pipeline](), list[Watch | None]()
        for rule in rules:
            shedder = None if losses is None else losses.shedders.get(rule.number)
            pipelines.append(rule_pipeline(side, rule, self.bind, shedding=shedder))
            watch = None if losses is None else losses.watch(rule, pipelines[-1], self.firings[rule.number])
            watches.append(watch)
        return Detector(rules, side, self.logs, reads, pipelines, watches)

    def _wanted(self, cells: Sequence[Cell]) -> dict[str, Bools]:
        """Per table the columns that some cells are computed from."""
        wanted: dict[str, Bools] = {}
        for table, column in cells:
            log = self.logs[table]
            mask = wanted.setdefault(table, np.zeros(len(log.rows.columns), np.bool_))
            if column != PRESENCE and column not in log.rows.table.key:
                mask |= log.programs.needs[log.rows.column(column)]
        return wanted

    def _lockstep(
        self,
        stage: Stage,
        rules: list[CompiledRule],
        side: StreamSide,
        reads: list[ReadColumn],
        firings: Sequence[Firing],
    ) -> LockstepStage:
        own, graph = live_reads(stage, self.program), self.program.graph
        side.leave_out({read.name for read in own} - {name for rule in rules for name in shown_by(rule)})
        in_kernel = [KernelRule(side, rule, self.bind) for rule in rules]
        detector = Detector(rules, side, self.logs, reads, [one.pipeline for one in in_kernel], [None] * len(rules))
        keys = [*dict.fromkeys((read.table, read.keys) for read in own)]
        live = {read.name: Live.of(read, self.logs, keys.index((read.table, read.keys))) for read in own}
        wanted = self._wanted([*map(cell, own)])
        cells = set().union(*(graph.cells_of(read.table, read.column) for read in own))
        run = [[one for one in firing.statements if graph.written_by(one.write) & cells] for firing in firings]
        for table in wanted:
            self.arena.add(self.logs[table].rows)
        acts = Acts(firings, {table: self.logs[table] for table in wanted}, run, wanted)
        return LockstepStage(detector, firings, live, Loop(in_kernel, live, acts, self.arena))
