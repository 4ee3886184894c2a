"""The folder of ours beside a checkpoint of Spark: what the driver tells the workers, and what a job began with."""

from __future__ import annotations

from pathlib import Path

from history.places import is_remote, is_stored, place_of

CONTROL = "acep"
"""Its name in the folder of the checkpoint."""


def control_of(checkpoint: str) -> Path | None:
    """Return the folder; None where only Spark can reach the checkpoint.

    Examples
    --------
    >>> str(control_of("/jobs/one")), str(control_of("s3a://bucket/jobs/one")), control_of("dbfs:/jobs/one")
    ('/jobs/one/acep', 's3a://bucket/jobs/one/acep', None)
    """
    is_reached = is_stored(checkpoint) or not is_remote(checkpoint)
    return place_of(checkpoint) / CONTROL if is_reached else None
