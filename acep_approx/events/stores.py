"""What an object store refuses, as an error of events that are read or of a file that is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from acep_approx.errors import DataError
from history.errors import PlaceError


@contextmanager
def reaching() -> Iterator[None]:
    """Tell of what a store refuses as a ``DataError`` with the same code and words.

    Raises
    ------
    DataError
        ``ACEP-H010``: it cannot be reached, which may pass; ``ACEP-H011`` to ``ACEP-H013``: it refuses.
    """
    try:
        yield
    except PlaceError as error:
        raise DataError(error.message, code=error.code, hint=error.hint, passes=error.passes) from error
