"""Folders with versions: what is in them, without reading any of it; and how a version is made.

A version is a folder of its own, beside a pointer to the one that holds. Histories and folders of queries are laid out
like this, on this machine and in object stores.

On this machine a version is written under another name, and renamed when it is whole. A store renames nothing: there a
version is whole as soon as its head is there, the file that says what is in it, which is put last. Of two writers at
once one makes the version: each puts a claim, then looks which claims there are, and steps back where there is another.
So no two can make the same version, as whoever comes later sees the claim, or the version.
"""

from __future__ import annotations

import errno
import math
import os
import random
import re
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from history.errors import PlaceError
from history.files import read_plain, replace_file
from history.places import StorePath, place_of, remove

LATEST = "LATEST"
VERSION = r"v[0-9]{4,12}"
"""How the folders of versions are called."""
HEADS = ("manifest.json", "queries.json")
"""Files that say what is in a version; in a store there is a version where one of them is."""
DRAFTS = (".draft-", ".gone-", f".{LATEST}-")
"""How the names of unfinished files begin."""
LEFT_OVER = 3600.0
"""Seconds after which what a killed writer has left behind is taken for that."""
CLAIMED = 60.0
"""Seconds for which a claim holds: its writer may have been killed."""
TRIES, WAIT = 8, 0.25
"""How often a writer that has stepped back begins again; seconds that it waits at most, first, then twice as long."""
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES)
"""Why a version cannot get its name: another process has just written it."""


def versions(path: str | os.PathLike[str]) -> list[int]:
    """All versions that are there, the newest first; whether they are whole is not looked at."""
    home = place_of(path)
    if isinstance(home, StorePath):
        names = (name.split("/") for name, _ in home.objects(recursive=True))
        found = {parts[0] for parts in names if len(parts) == len(("v0001", "head")) and parts[1] in HEADS}
    elif home.is_dir():
        found = {entry.name for entry in home.iterdir()}
    else:
        return []
    return sorted((int(name[1:]) for name in found if re.fullmatch(VERSION, name)), reverse=True)


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


def make_version(home: Path, version: int, write: Callable[[Path], object]) -> bool:
    """Make a version, whole and once.

    Parameters
    ----------
    home : Path
        Of all versions; there, or in a store.
    version : int
        Its number.
    write : callable
        Writes its files into a folder of this machine.

    Returns
    -------
    bool
        False: another process has made a version of this number.

    Raises
    ------
    OSError
        It cannot be written.
    PlaceError
        The store does not take it; ``ACEP-H014``: another process is making the same version, and does not end.
    """
    if isinstance(home, StorePath):
        return _put_version(home, version, write)
    draft = home / f".draft-{secrets.token_hex(8)}"
    draft.mkdir()  # with the rights that the user gives to folders
    folder = home / name_of(version)
    try:
        write(draft)
        draft.rename(folder)  # fails if another process has just written this version: it is not empty
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        if error.errno in _TAKEN and folder.exists():
            return False
        raise
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return True


def delete_version(home: Path, version: int) -> None:
    """Delete a version so that nobody reads half of it."""
    folder = home / name_of(version)
    if isinstance(folder, StorePath):
        for head in HEADS:
            (folder / head).unlink(missing_ok=True)
        folder.remove_tree()
        return
    gone = home / f".gone-{name_of(version)}"
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def is_unfinished(entry: Path) -> bool:
    """Whether something in a folder without versions is what a writer has begun, or a killed one has left behind."""
    is_version = isinstance(entry, StorePath) and re.fullmatch(VERSION, entry.name) is not None
    return entry.name.startswith(DRAFTS) or is_version


def clear_left_over(home: Path) -> None:
    """Delete what killed writers left behind more than an hour ago; others may still be writing what is younger."""
    for entry in home.iterdir():
        if entry.name.startswith(DRAFTS) and _age(entry) > LEFT_OVER:
            remove(entry)


def _age(entry: Path) -> float:
    """Seconds since it was written, a folder in a store since the first of its files; 0 where it is gone by now."""
    try:
        files: list[Path] = list(entry.rglob("*")) if isinstance(entry, StorePath) else []
        return time.time() - min(file.stat().st_mtime for file in files or [entry])
    except OSError:
        return 0.0


# --- in a store -------------------------------------------------------------------------------------------------------


def _put_version(home: StorePath, version: int, write: Callable[[Path], object]) -> bool:
    draft = home / f".draft-{secrets.token_hex(8)}"
    try:
        with TemporaryDirectory(prefix="acep-version-") as folder:
            write(Path(folder))
            files = sorted(Path(folder).iterdir(), key=lambda file: file.name in HEADS)
            *others, head = ((file.name, file.read_bytes()) for file in files)
        for name, content in others:  # however long it takes: they are in nobody's way
            (draft / name).write_bytes(content)
        for number in range(TRIES):
            is_made = _claimed(home, version, draft, [name for name, _ in others], head)
            if is_made is not None:
                return is_made
            time.sleep(random.uniform(0.05, WAIT * 2**number))  # noqa: S311  (not both at the same time again)
    finally:
        draft.remove_tree()
    raise PlaceError(
        f"another process is making {name_of(version)} of {str(home)!r}",
        code="ACEP-H014",
        hint="try again when it has ended; what a killed one has left behind holds for a minute",
        passes=True,
    )


def _claimed(
    home: StorePath, version: int, draft: StorePath, others: list[str], head: tuple[str, bytes]
) -> bool | None:
    """Make a version if nobody else is about to; False: it is there already; None: somebody may make it."""
    folder = home / name_of(version)
    claim = home / f".draft-{name_of(version)}-{secrets.token_hex(8)}"
    began = time.monotonic()
    claim.write_bytes(b"")
    try:
        mine = claim.stat().st_mtime
        for one in home.glob(f".draft-{name_of(version)}-*"):
            if one.name != claim.name and mine - _written(one) < CLAIMED:
                return None
        if version in versions(home):  # looked at after the claims: who has made it may have taken its claim away
            return False
        for name in others:
            (draft / name).copy(folder / name)
        if time.monotonic() - began > CLAIMED / 2:  # another one may soon take the claim for left over
            return None
        (folder / head[0]).write_bytes(head[1])
    finally:
        claim.unlink(missing_ok=True)
    return True


def _written(claim: StorePath) -> float:
    """When a claim was put; long ago where it is gone by now, as its version is looked for then."""
    try:
        return claim.stat().st_mtime
    except OSError:
        return -math.inf
