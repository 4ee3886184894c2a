"""What samples the tests of shards for the learners of a job: there is one for each engine of which it learns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from acep_approx.archive import Kind, Scope
from acep_approx.learning.online import WITHIN, Observer, ShardLearning, learner_file
from acep_approx.learning.training_sample import Shares
from acep_approx.spark.worker.program import Turn
from acep_approx.spark.worker.spending import Spending
from history.places import place_of

ENGINES = "engines"
"""The folder, among what the driver tells the workers, that has a folder for each engine of a set."""
SAMPLES = Kind("samples")
"""Training samples of several engines, by what these are known by."""


def engine_folder(control: str | os.PathLike[str], engine: str) -> Path:
    """Return where the driver keeps what it tells of an engine; ``""`` is that of a single query."""
    home = place_of(control)
    return home / ENGINES / engine if engine else home


def observer_of(spending: Spending, turn: Turn, shards: int, engine: str = "") -> Observer:
    """Return what takes the training sample of an engine in a micro-batch of a shard.

    In a large micro-batch the shard learns by itself, too, until it ends.

    Parameters
    ----------
    spending : Spending
    turn : Turn
    shards : int
        Of the job.
    engine : str
        What it is known by; ``""``: it is a single query.
    """
    if spending.control is None:
        return Observer(None, shards)
    home = engine_folder(spending.control, engine)
    shares = Shares.load(home)
    if turn.events >= WITHIN:
        return ShardLearning(learner_file(home), turn.batch, shares, shards)
    return Observer(shares, shards)


def packed_samples(samples: Mapping[str, bytes]) -> bytes:
    """Return the samples of several engines as bytes; none: no bytes."""
    if not samples:
        return b""
    scope = Scope()
    for name, sample in samples.items():
        scope.put(name, sample)
    return SAMPLES.pack(scope)


def samples_in(packed: bytes) -> dict[str, bytes]:
    """Return what ``packed_samples`` was given."""
    if not packed:
        return {}
    return {name: array.tobytes() for name, array in SAMPLES.unpack(packed).arrays.items()}
