"""Which queries a micro-batch runs, as the driver of a job tells its workers by files.

    queries/began.json           the folder of queries, and the version that the job began with
    queries/v0006.json           the queries of a version that run, each with its part of the job
    queries/micro-batches.json   which version each of the last micro-batches runs

Each file is replaced at once, so a reader sees all of it or the one before. The version of a micro-batch is noted
before anything of it is done, and never again: a micro-batch that is done a second time runs the same queries.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from acep_approx.errors import DataError
from history.files import read_json, replace_file
from history.places import place_of
from history.versions import name_of

FOLDER = "queries"
BEGAN, NOTES = "began.json", "micro-batches.json"
KEPT_NOTES = 100
"""Micro-batches whose versions stay known: Spark keeps as many, and does at most the last one again."""


class Began(NamedTuple):
    """The folder that a job takes its queries from, and the version that it began with."""

    folder: str
    version: int


@dataclass(frozen=True)
class PlacedQuery:
    """A query of a version, with the number of its part of the job."""

    id: str
    since: int
    text: str
    part: int


@dataclass(frozen=True)
class PinnedVersions:
    """The files of a job.

    Parameters
    ----------
    control : str
        Folder of what the driver tells its workers.
    """

    control: str

    @property
    def _home(self) -> Path:
        return place_of(self.control) / FOLDER

    @property
    def began(self) -> Began | None:
        """What the job began with; None: it is new."""
        place = self._home / BEGAN
        if not place.exists():
            return None
        held = _read(place)
        return Began(held["folder"], held["version"])

    def begin(self, began: Began) -> None:
        """Note what the job begins with."""
        self._home.mkdir(parents=True, exist_ok=True)
        _replace(self._home / BEGAN, began._asdict())

    @property
    def notes(self) -> dict[int, int]:
        """The versions of the last micro-batches, by their numbers."""
        place = self._home / NOTES
        held = _read(place) if place.exists() else {}
        return {int(batch): version for batch, version in held.items()}

    def note(self, batch: int, version: int) -> None:
        """Note the version of a micro-batch, whose queries are kept already; forget what nobody asks for any more."""
        notes = self.notes | {batch: version}
        kept = {one: notes[one] for one in sorted(notes)[-KEPT_NOTES:]}
        _replace(self._home / NOTES, kept)
        for place in self._home.glob("v*.json"):
            if int(place.stem[1:]) not in kept.values():
                place.unlink(missing_ok=True)

    def version_of(self, batch: int | None) -> int:
        """Return the version that a micro-batch runs.

        Raises
        ------
        DataError
            ``ACEP-S087``: the driver has not noted it; ``ACEP-S088``: the notes are damaged.
        """
        notes = self.notes
        if batch is None or batch not in notes:
            which = "a micro-batch" if batch is None else f"micro-batch {batch}"
            raise DataError(
                f"the driver has not noted in {str(self._home)!r} which queries {which} runs",
                code="ACEP-S087",
                hint="let all workers see the checkpoint's folder, and start the job with acep_approx.spark.start",
            )
        return notes[batch]

    def keep(self, version: int, queries: list[PlacedQuery]) -> None:
        """Keep the queries of a version that run."""
        self._home.mkdir(parents=True, exist_ok=True)
        _replace(self._place(version), [asdict(one) for one in queries])

    def queries(self, version: int) -> tuple[PlacedQuery, ...]:
        """Return the queries of a version that run.

        Raises
        ------
        DataError
            ``ACEP-S088``: they are damaged.
        """
        place = self._place(version)
        try:
            return _kept(place, place.stat().st_mtime_ns)
        except OSError as error:
            raise _damaged(place) from error

    def has(self, version: int) -> bool:
        """Return whether the queries of a version are kept."""
        return self._place(version).exists()

    def _place(self, version: int) -> Path:
        return self._home / f"{name_of(version)}.json"


@lru_cache(8)
def _kept(place: Path, written: int) -> tuple[PlacedQuery, ...]:  # noqa: ARG001  (another file is another answer)
    try:
        return tuple(PlacedQuery(**one) for one in _read(place))
    except TypeError as error:
        raise _damaged(place) from error


def _read(place: Path) -> Any:
    try:
        return read_json(place)
    except (OSError, ValueError) as error:
        raise _damaged(place) from error


def _replace(place: Path, held: Any) -> None:
    replace_file(place, json.dumps(held, ensure_ascii=False).encode())


def _damaged(place: Path) -> DataError:
    return DataError(
        f"{str(place)!r} is missing or damaged, so nobody knows which queries the job runs",
        code="ACEP-S088",
        hint="put the checkpoint back from a copy, or start the job with a new one: --checkpoint DIR",
    )
