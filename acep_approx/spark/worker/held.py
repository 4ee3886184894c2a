"""Shards that a worker process keeps from one micro-batch to the next, so that their states need not be read again.

Which worker gets a shard is Spark's choice, and what it did may count for nothing: a task is done again, or by several.
So a shard is known by all of the state that it stands for. Who comes with other bytes reads them; and who takes a shard
takes it away, as nobody else may go on from where it will stand then.

To make a set of 400 queries of its state takes a second and a half, to write that state a tenth.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256

from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.shard import Shard

MOST = 64
"""Shards that a process keeps: more than it has cores, as they wander."""

_HELD: OrderedDict[tuple[bytes, int, bytes], Shard] = OrderedDict()


def taken(job: Job, name: bytes, number: int, state: bytes | None, batch: int | None) -> Shard:
    """The shard of a state, as it was kept or made of it.

    Parameters
    ----------
    job : Job
    name : bytes
        Tells the job from others: a shard of another one is another shard, whatever its state.
    number : int
    state : bytes or None
    batch : int or None
        As for ``Shard``.
    """
    held = None
    if state is not None and job.spending is None:  # inside a budget none is kept
        held = _HELD.pop((name, number, digest(state)), None)
    if held is None:
        return Shard(job, number, state, batch)
    held.batch = batch
    return held


def digest(state: bytes) -> bytes:
    """Tells a state from all others."""
    return sha256(state).digest()


def keep(shard: Shard, name: bytes, state: bytes) -> None:
    """Keep a shard that stands where this state says; not inside a budget, whose parts change with each micro-batch."""
    if shard.job.spending is not None:
        return
    _HELD[name, shard.number, digest(state)] = shard
    while len(_HELD) > MOST:
        _HELD.popitem(last=False)
