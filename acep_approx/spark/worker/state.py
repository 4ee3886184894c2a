"""The state of a shard, as bytes that Spark keeps: an archive, so that people can see what is in a checkpoint."""

from __future__ import annotations

from typing import Any

from acep_approx.archive import FORMAT, Kind
from acep_approx.errors import DataError


def damaged() -> DataError:
    """Return the error that bytes are no state of a shard, or not as they were written (``ACEP-S010``)."""
    return DataError(
        "these bytes are not the state of a shard, or not all as they were written",
        code="ACEP-S010",
        hint="start the query with a new checkpoint directory",
    )


def other_format(theirs: str) -> DataError:
    """Return the error that another version wrote the state of a shard (``ACEP-S011``)."""
    return DataError(
        f"the checkpoint holds state of {theirs}, and this version reads format {FORMAT}",
        code="ACEP-S011",
        hint="go on with the version that wrote it, or start the query with a new checkpoint directory",
    )


SHARD = Kind("shard", damaged, other_format)


def describe(state: bytes) -> dict[str, Any]:
    """What the state of a shard says about itself, for debugging.

    Parameters
    ----------
    state : bytes
        A value of ``spark.read.format("statestore").option("stateVarName", "shard").load(checkpoint)``.

    Returns
    -------
    dict
        ``format``; ``query``, ``columns`` and what else must stay the same; ``events`` matched so far; ``waiting`` for
        the watermark; ``watermark`` before which all events were matched, as a tick; and the ``bytes`` of its parts.
    """
    scope = SHARD.unpack(state)
    return {"format": FORMAT, **scope.head, "bytes": {name: part.nbytes for name, part in scope.arrays.items()}}
