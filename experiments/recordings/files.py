"""The files of a folder as texts: what a command has written, in words that can be compared."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SAVED = ("cp", "c", "checkpoint", "state")
"""Folders in which a run keeps where it stands: that form is the program's own, so only their presence is recorded."""
LONGEST = 400_000
"""Characters of a file that are recorded; of the rest the digest tells."""
Snapshot = dict[str, tuple[int, int]]


def snapshot(folder: Path) -> Snapshot:
    """Size and time of change of each file."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).parts[0] not in SAVED:
            stat = path.stat()
            found[str(path.relative_to(folder))] = (stat.st_size, stat.st_mtime_ns)
    for name in SAVED:
        if (folder / name).exists():
            found[f"{name}/"] = (0, 0)
    return found


def changed(before: Snapshot, after: Snapshot) -> list[str]:
    """Files that are new, were changed, or are gone."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def shown(folder: Path, name: str) -> str:
    """What is in a file, as text."""
    path = folder / name
    if not path.exists():
        return "gone"
    if name.endswith("/"):
        return "is there"
    data = path.read_bytes()
    if data.startswith(b"PAR1"):
        return "\n".join(_parquet(path))
    if data.startswith(b"SQLite format 3"):
        return "\n".join(_tables(path))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"
    if len(text) > LONGEST:
        return f"{text[:LONGEST]}\n... {len(text)} characters, sha256 {hashlib.sha256(data).hexdigest()}"
    return text


def _parquet(path: Path) -> Iterator[str]:
    """Schema and rows of a file of Parquet."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read()
    yield "Parquet"
    for field in table.schema:
        yield f"  {field.name}: {field.type}{'' if field.nullable else ' not null'}"
    for row in table.to_pylist():
        yield repr(row)


def _tables(path: Path) -> Iterator[str]:
    """Tables and rows of a file of SQLite; blobs are states, whose form is the program's own."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    yield "SQLite"
    for name, made in sorted(database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")):
        yield f"  {made}"
        rows: list[tuple[Any, ...]] = database.execute(f'SELECT * FROM "{name}"').fetchall()
        yield from (repr(tuple("blob" if isinstance(one, bytes) else one for one in row)) for row in rows)
    database.close()
