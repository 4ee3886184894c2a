"""Copies of one key, taken out of an engine and put back: the error of one that does not fit."""

from __future__ import annotations

from acep_approx.errors import DataError


def does_not_fit(what: str) -> DataError:
    """The error of a copy of the ``what`` of a key that is of another query, or is not as it was made."""
    return DataError(
        f"this copy of the {what} of a key is of another query, or was changed",
        code="ACEP-D047",
        hint="put back only what the engine of the same query gave",
    )
