"""Events one after the other as long as each meets few runs: a function of its own, with code of its own.

Compiled into the kernel, which goes through blocks, these loops would wait at each event for what loops over blocks
want to know beforehand.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import compact, inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.begin import begin_event, event_at
from acep_approx.kernels.runs.ends import end_event
from acep_approx.kernels.runs.few import are_few, try_few
from acep_approx.kernels.runs.idle import pass_idle
from acep_approx.kernels.runs.records import Batch, Keys, Lanes, Lineage, Pools, Program


@inline
def is_over(control: Ints) -> bool:
    """Whether a call has done what it was asked for; it stops where this changes nothing: before a whole block."""
    return bool(control[at.LIMIT] < -1 and control[at.DONE_STEPS] >= -2 - control[at.LIMIT])


@compact
def run_while_few(
    control: Ints, batch: Batch, program: Program, pools: Pools, lanes: Lanes, lineage: Lineage, keys: Keys
) -> int:
    """Run events up to one that has begun, and must be tried block by block; returns as the kernel does."""
    status = at.DONE
    while status == at.DONE and control[at.PHASE] == 0:
        pass_idle(control, batch, program, pools, keys)
        if control[at.EVENT] >= len(batch.slot):
            break
        if is_over(control):
            return at.STOPPED
        event = event_at(control, batch)
        status = begin_event(control, batch, program, pools, lineage, keys, None, event)
        if status == at.DONE and are_few(control, program, pools, lineage.links, event.kind):
            try_few(control, program, pools, lanes, lineage, event)
            status = end_event(control, program, pools, lanes, lineage, keys, None, event)
    return status
