"""The folder of ours beside a checkpoint of Spark: what the driver tells the workers, and what a job began with."""

from __future__ import annotations

from pathlib import Path

from history.places import is_remote

CONTROL = "acep"
"""Its name in the folder of the checkpoint."""


def control_of(checkpoint: str) -> Path | None:
    """Return the folder; None where only Spark can reach the checkpoint.

    Examples
    --------
    >>> control_of("/jobs/one").as_posix(), control_of("s3a://bucket/jobs/one")
    ('/jobs/one/acep', None)
    """
    return None if is_remote(checkpoint) else Path(checkpoint) / CONTROL
