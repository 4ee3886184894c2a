"""Files that other processes read while they are written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def replace_file(place: Path, content: bytes, rights: int = 0o777) -> None:
    """Write a file so that whoever reads it sees all of it, or the one before.

    Parameters
    ----------
    place : Path
        In a folder that is there.
    content : bytes
    rights : int
        The most that it grants, whatever the umask.

    Raises
    ------
    OSError
        It cannot be written.
    """
    draft = place.with_name(f".{place.name}-{os.getpid()}")
    draft.write_bytes(content)
    draft.chmod(draft.stat().st_mode & rights)
    draft.replace(place)


def read_json(place: Path) -> Any:
    """What a file of JSON holds.

    Raises
    ------
    OSError
        It is not there, or cannot be read.
    ValueError
        It is not JSON, or not whole.
    """
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(f"{place.name} is too deep") from error
