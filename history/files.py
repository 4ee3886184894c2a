"""Files that other processes read while they are written."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(place: Path, content: bytes) -> None:
    """Write a file so that whoever reads it sees all of it, or the one before.

    Parameters
    ----------
    place : Path
        In a folder that is there.
    content : bytes

    Raises
    ------
    OSError
        It cannot be written.
    """
    draft = place.with_name(f".{place.name}-{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(place)
