"""Places as Spark knows them; the folder of ours beside a checkpoint of Spark: what the driver tells the workers."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from history.errors import PlaceError
from history.places import is_remote, is_stored, place_of

log = logging.getLogger("acep_approx.spark")
CONTROL = "acep"
"""Its name in the folder of the checkpoint."""
HADOOP = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}
"""Schemes of stores that Hadoop calls otherwise than others do."""


def spark_address(place: str | os.PathLike[str]) -> str:
    """Return a place as Spark knows it: a URI, without settings of the store, which Spark has its own of.

    Examples
    --------
    >>> spark_address("s3://bucket/found?region=eu-west-1"), spark_address("hdfs://host/found"), spark_address("/found")
    ('s3a://bucket/found', 'hdfs://host/found', 'file:///found')
    """
    if not is_remote(place):
        return Path(place).absolute().as_uri()
    text = str(place_of(place))
    if not is_stored(text):
        return text
    scheme, colon, rest = text.partition("?")[0].partition(":")
    return f"{HADOOP.get(scheme, scheme)}{colon}{rest}"


def control_of(checkpoint: str | os.PathLike[str]) -> Path | None:
    """Return the folder; None where only Spark can reach the checkpoint.

    Raises
    ------
    PlaceError
        ``ACEP-H010``: its store cannot be reached now.

    Examples
    --------
    >>> str(control_of("/jobs/one")), control_of("dbfs:/jobs/one")
    ('/jobs/one/acep', None)
    """
    if is_remote(checkpoint) and not is_stored(checkpoint):
        return None
    control = place_of(checkpoint) / CONTROL
    try:
        control.exists()
    except PlaceError as error:
        if error.passes:
            raise
        log.info("the checkpoint is for Spark alone: %s", error)
        return None
    return control
