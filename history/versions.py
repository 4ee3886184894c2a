"""Folders with versions: what is in them, without reading any of it.

A version is a folder of its own, beside a pointer to the one that holds. Histories and folders of queries are laid out
like this.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

from history.files import read_plain, replace_file

LATEST = "LATEST"
VERSION = r"v[0-9]{4,12}"
"""How the folders of versions are called."""
DRAFTS = (".draft-", ".gone-", f".{LATEST}-")
"""How the names of unfinished files begin."""
LEFT_OVER = 3600.0
"""Seconds after which what a killed writer has left behind is taken for that."""


def versions(path: str | os.PathLike[str]) -> list[int]:
    """All versions that are there, the newest first; whether they are whole is not looked at."""
    home = Path(path)
    if not home.is_dir():
        return []
    found = (int(entry.name[1:]) for entry in home.iterdir() if re.fullmatch(VERSION, entry.name))
    return sorted(found, reverse=True)


def name_of(version: int) -> str:
    """What the folder of a version is called."""
    return f"v{version:04d}"


def has_versions(home: Path) -> bool:
    """Whether a folder has versions, or says that it had, whole or damaged."""
    return bool(versions(home)) or (home / LATEST).exists()


def pointed_to(home: Path) -> int:
    """The version that the pointer names.

    Raises
    ------
    OSError
        It cannot be read.
    ValueError
        It names none; the text says what is wrong.
    """
    try:
        text = read_plain(home / LATEST).decode().strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"{LATEST} cannot be read") from error
    if not re.fullmatch(VERSION, text):
        raise ValueError(f"{LATEST} names no version: {text[:40]!r}")
    return int(text[1:])


def point(home: Path, version: int) -> None:
    """Let the pointer name a version."""
    replace_file(home / LATEST, f"{name_of(version)}\n".encode())


def clear_left_over(home: Path) -> None:
    """Delete what killed writers left behind more than an hour ago; others may still be writing what is younger."""
    for entry in home.iterdir():
        if entry.name.startswith(DRAFTS) and _age(entry) > LEFT_OVER:
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)


def _age(entry: Path) -> float:
    """Seconds since it was written; 0 where it is gone by now."""
    try:
        return time.time() - entry.stat().st_mtime
    except OSError:
        return 0.0
