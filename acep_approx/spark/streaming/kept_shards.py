"""The number of shards of a checkpoint: a stream goes on with the one that it was begun with.

The state of a key is where the number of shards has put it. By default that number is how many cores there are, and a
job may be started again on a machine with others. So the driver notes it beside the checkpoint.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from acep_approx.errors import DataError
from acep_approx.spark.setup.control import CONTROL
from history.files import read_json, replace_file

log = logging.getLogger("acep_approx.spark")
NOTE = "shards.json"


def known_shards(checkpoint: Path) -> int | None:
    """Return the number of shards that a checkpoint was begun with; None where it does not say, or is new."""
    place, offsets = checkpoint / CONTROL / NOTE, checkpoint / "offsets"
    if not place.exists() or not (offsets.is_dir() and any(offsets.iterdir())):
        return None
    try:
        number = read_json(place)
    except ValueError:
        number = None
    if type(number) is int and number > 0:
        return number
    log.warning("%s cannot be read: the job goes on with the number of shards that it is started with", place)
    return None


def check_shards(shards: int, checkpoint: Path) -> None:
    """Refuse another number of shards than that of a checkpoint (``ACEP-S012``)."""
    known = known_shards(checkpoint)
    if known is not None and known != shards:
        raise DataError(
            f"the checkpoint {str(checkpoint)!r} was begun with shards = {known}, and this job has {shards}",
            code="ACEP-S012",
            hint=f"go on with --shards {known} (shards={known} in Python), or start with a new checkpoint directory",
        )


def note_shards(shards: int, checkpoint: Path) -> None:
    """Note the number of shards of a job that starts."""
    replace_file(checkpoint / CONTROL / NOTE, json.dumps(shards).encode())
