"""A checkpoint: all that a run needs to go on from a place in the stream, and what has come of it by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class Checkpoint:
    """What one transaction writes, and what the next run begins with.

    Parameters
    ----------
    offset : int
        How many events of the stream are in it.
    engine : bytes
        The state of whatever runs the rules, which is kept as it is.
    changes : mapping of str to pyarrow.Table
        By table, the rows that have changed since the checkpoint before, each key once: the columns of the key in its
        order, the other columns in the order of the text, and at last, whatever the others are called, a column
        ``deleted`` (bool). Of a row that is deleted only the key counts. Types as ``words.ARROW`` has them.
    matches : mapping of str to pyarrow.Table, optional
        By rule, matches that nobody has got yet.
    calls : pyarrow.Table, optional
        Calls that are to be made, in order; columns as ``waiting.CALLS`` names them.
    taken : sequence of int, optional
        Numbers of matches of earlier checkpoints that have been taken since.
    made : sequence of str, optional
        Ids of calls of earlier checkpoints that have been made since.
    """

    offset: int
    engine: bytes
    changes: Mapping[str, pa.Table] = field(default_factory=dict)
    matches: Mapping[str, pa.Table] = field(default_factory=dict)
    calls: pa.Table | None = None
    taken: Sequence[int] = ()
    made: Sequence[str] = ()
