"""The state of a shard, as bytes that Spark keeps.

It is a JSON header and bytes (``matching.blob``), never pickle: another version can tell that it cannot read it,
and people can see what is in a checkpoint.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.reading.ipc import from_ipc, to_ipc
from acep_approx.matching import blob
from acep_approx.matching.sealed import OlderBytesError
from acep_approx.ranges import reading

FORMAT = 4
"""Changes when the layout, or the meaning of a part, does."""


def join(header: dict[str, Any], matcher: bytes, waiting: pa.Table) -> bytes:
    """The state of a shard: what it says about itself, the matcher's own state, and the events that wait."""
    parts = {"matcher": np.frombuffer(matcher, np.uint8), "waiting": np.frombuffer(to_ipc(waiting, "lz4"), np.uint8)}
    return blob.joined({"shard": FORMAT, **header}, parts)


def split(state: bytes) -> tuple[dict[str, Any], bytes, pa.Table]:
    """What ``join`` put together.

    Raises
    ------
    DataError
        ``ACEP-S010``: not such bytes; ``ACEP-S011``: of another format.
    """
    header, parts = _parts(state)
    with reading(damaged):
        if header["shard"] != FORMAT:
            raise _other_format(header["shard"], is_older=header["shard"] < FORMAT)
        return header, parts["matcher"].tobytes(), from_ipc(parts["waiting"])


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
    header, parts = _parts(state)
    return {"format": header.pop("shard"), **header, "bytes": {name: part.nbytes for name, part in parts.items()}}


def _parts(state: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        header, parts = blob.split(state)
        _ = header["shard"], parts["matcher"], parts["waiting"]
    except OlderBytesError as error:
        raise _other_format(f"less than {FORMAT}", is_older=True) from error
    except (ValueError, LookupError, TypeError) as error:
        raise damaged() from error
    return header, parts


def damaged() -> DataError:
    """The error that bytes are no state of a shard, or not as they were written (``ACEP-S010``)."""
    return DataError(
        "these bytes are not the state of a shard, or not all as they were written",
        code="ACEP-S010",
        hint="start the query with a new checkpoint directory",
    )


def _other_format(theirs: object, *, is_older: bool) -> DataError:
    named = "the older format" if is_older else "format"
    return DataError(
        f"the checkpoint holds state of {named} {theirs}, and this version reads format {FORMAT}",
        code="ACEP-S011",
        hint="go on with the version that wrote it, or start the query with a new checkpoint directory",
    )
