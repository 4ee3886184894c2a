"""Numbers of a saved state are looked at before any of them is used: kernels follow indices without looking.

A digest tells that bytes have changed by accident. Who can write a file can make its digest anew: what a state holds is
believed only within the ranges that are said here, array by array, by those who use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from acep_approx.errors import DataError

LOWEST, HIGHEST = -(2**63), 2**63 - 1
TICK = 2**61
"""Times of events are below this in size: windows can be added to them."""
COUNT = 2**62
"""Counts stay below: what is added to them later fits, too."""


class DamagedError(ValueError):
    """Something of a state is not as it can have been written."""


class Range(NamedTuple):
    """How an array of a state must be: its length (None: any), and what its numbers lie in, ``low <= n < end``."""

    size: int | None = None
    low: int = LOWEST
    end: int = HIGHEST + 1
    kind: type = np.int64


def check_arrays(arrays: Mapping[str, Any], ranges: Mapping[str, Range]) -> None:
    """Refuse arrays that are missing, or not as their ranges say.

    Raises
    ------
    DamagedError

    Examples
    --------
    >>> check_arrays({"rows": np.array([0, 4])}, {"rows": Range(2, 0, 5)})
    >>> check_arrays({"rows": np.array([0, 5])}, {"rows": Range(2, 0, 5)})
    Traceback (most recent call last):
    ...
    acep_approx.ranges.DamagedError: rows
    """
    for name, wanted in ranges.items():
        array = arrays.get(name)
        if array is None or array.dtype != wanted.kind or array.ndim != 1:
            raise DamagedError(name)
        if wanted.size is not None and array.size != wanted.size:
            raise DamagedError(name)
        check_range(name, array, wanted.low, wanted.end)


def check_range(what: str, numbers: Any, low: int, end: int) -> None:
    """Refuse numbers of which one is below ``low``, or not below ``end``.

    Raises
    ------
    DamagedError
    """
    if len(numbers) and (int(np.min(numbers)) < low or int(np.max(numbers)) >= end):
        raise DamagedError(what)


def check(what: str, *, good: Any) -> None:
    """Refuse what is not ``good``.

    Raises
    ------
    DamagedError
    """
    if not good:
        raise DamagedError(what)


def number_in(what: str, number: Any, low: int, end: int) -> int:
    """A number of a header, if it is a whole one, ``low <= number < end``.

    Raises
    ------
    DamagedError
    """
    if type(number) is not int or not low <= number < end:
        raise DamagedError(what)
    return number


def finite(what: str, *numbers: Any) -> None:
    """Refuse numbers of a header of which one is none, or has no end.

    Raises
    ------
    DamagedError
    """
    if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        raise DamagedError(what)


def impossible(what: str) -> DataError:
    """The error of a run that came upon what no state can hold, which only a state that was changed leads to."""
    return DataError(
        f"{what}: the state that was restored is not as it was written",
        code="ACEP-D040",
        hint="take a copy that is whole, or start from the beginning",
    )


@contextmanager
def reading(error: Callable[[], Exception]) -> Iterator[None]:
    """Read what a state holds: whatever goes wrong because something else stands there is this error."""
    try:
        yield
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        MemoryError,
        NotImplementedError,
        OSError,
        RecursionError,
        TypeError,
        ValueError,
    ) as wrong:
        raise error() from wrong
