"""What was seen in some events, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from acep_approx.profiling.columns import ColumnProfile
from acep_approx.profiling.first_query import FirstQuery
from acep_approx.profiling.roles import RoleFound
from acep_approx.profiling.times import TimeProfile


@dataclass(frozen=True)
class SecondChoice:
    """A type and a key that would do about as well as those that are chosen.

    Attributes
    ----------
    type, key : str or None
    command : str
        What takes them.
    """

    type: str | None
    key: str | None
    command: str


@dataclass(frozen=True)
class StreamProfile:
    """What is in some events.

    Attributes
    ----------
    name : str
        Where they come from.
    rows : int
        Events that were looked at.
    is_all : bool
        Whether these are all.
    size : int or None
        Bytes of the files.
    understood : tuple of str
        How the files are written: format, delimiter, formats of times, and so on.
    columns : tuple of ColumnProfile
    time, type, key : RoleFound
        The columns that play these roles, and those that could.
    second : SecondChoice or None
        Where the choice of the type and the key is a guess: what would do about as well.
    unit : str or None
        What a time column of numbers counts, if that was said or is plausible.
    is_unit_said : bool
        Whether it was said: without ``--unit`` numbers are plain ticks.
    times : TimeProfile or None
        None where no column is the time, or not one time can be read.
    types : tuple of (str, int)
        The most frequent types with their counts.
    malformed : int
        Rows that cannot be read.
    reasons : tuple of str
        Of the first of them.
    first : FirstQuery
    """

    name: str
    rows: int
    is_all: bool
    size: int | None
    understood: tuple[str, ...]
    columns: tuple[ColumnProfile, ...]
    time: RoleFound
    type: RoleFound
    key: RoleFound
    second: SecondChoice | None
    unit: str | None
    is_unit_said: bool
    times: TimeProfile | None
    types: tuple[tuple[str, int], ...]
    malformed: int
    reasons: tuple[str, ...]
    first: FirstQuery

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, as for JSON."""
        return asdict(self)
