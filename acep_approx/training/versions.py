"""The newest version of a history that is refreshed while a job runs, for processes that match many batches.

Nothing that happens to a version stops a job that has had a good one: the last good one serves, and a warning says so.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from acep_approx.training.history_graph import HistoryGraph
from history.errors import HistoryError
from history.store import pointed, versions, written

if TYPE_CHECKING:
    from acep_approx.planning.compiled import CompiledQuery

log = logging.getLogger("acep_approx.history")
OTHER_QUERY = "ACEP-H002"


@dataclass
class _LoadedVersion:
    """What this process has of one history: the last good version, and what it has warned of."""

    history: HistoryGraph | None = None
    version: int = 0
    written: int = -1
    warned: set[int] = field(default_factory=set)


_held: dict[tuple[Path, str], _LoadedVersion] = {}
_lock = Lock()


def newest(path: str | os.PathLike[str], query: CompiledQuery) -> HistoryGraph:
    """The version of a history that holds, loaded once in each process.

    Parameters
    ----------
    path : path
        Directory of the history.
    query : CompiledQuery
        That it is wanted for.

    Returns
    -------
    HistoryGraph
        The same object until the version changes; not to be changed. Where the version that holds is damaged, missing
        or of another format: the last good one that this process had, else the newest older one that can be read.

    Raises
    ------
    HistoryError
        There is none (ACEP-H001), of another query (ACEP-H002), none of its versions can be read (ACEP-H003,
        ACEP-H004).

    Notes
    -----
    Of each version that cannot be read the logger ``acep_approx.history`` warns once. It is tried again with the next
    call: on a shared file system it may only be late. Complexity: two small reads; O(history) for a new version.
    """
    home = Path(path).resolve()
    with _lock:
        held = _held.setdefault((home, query.plan.fingerprint()), _LoadedVersion())
        return _newest(home, query, held)


def _newest(home: Path, query: CompiledQuery, held: _LoadedVersion) -> HistoryGraph:
    wanted = 0
    try:
        wanted = pointed(home)
        if held.history is None or (wanted, written(home, wanted)) != (held.version, held.written):
            _load(home, query, wanted, held)
    except (HistoryError, OSError) as error:
        _refuse_other_query(error)
        if held.history is None:
            _load_older(home, query, wanted, held, error)
        if wanted not in held.warned:
            held.warned.add(wanted)
            words = f"{error.code}: {error.message}" if isinstance(error, HistoryError) else str(error)
            log.warning("%s; version %d is used instead", words, held.version)
    assert held.history is not None
    return held.history


def _load(home: Path, query: CompiledQuery, version: int, held: _LoadedVersion) -> None:
    when = written(home, version)
    held.history = HistoryGraph.load(home, query, version=version)
    held.version, held.written = version, when


def _load_older(home: Path, query: CompiledQuery, wanted: int, held: _LoadedVersion, reason: Exception) -> None:
    """Hold the newest version before ``wanted`` (0: of all) that can be read, or the oldest one after it.

    There is none before it where a pointer is so stale that the version was deleted since.
    """
    if not home.is_dir() or not versions(home):
        HistoryGraph.load(home, query)  # refuses, and says why
    there = versions(home)
    before = [version for version in there if not wanted or version < wanted]
    after = [version for version in reversed(there) if wanted and version > wanted]
    for version in before + after:
        try:
            return _load(home, query, version, held)
        except (HistoryError, OSError) as error:
            _refuse_other_query(error)
    raise reason


def _refuse_other_query(error: Exception) -> None:
    if isinstance(error, HistoryError) and error.code == OTHER_QUERY:
        raise error
