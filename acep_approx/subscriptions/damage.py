"""What is raised where something of the state of a set cannot be."""

from __future__ import annotations

from acep_approx.errors import DataError


def damaged(what: str) -> DataError:
    """The error that something is not as it was written (``ACEP-D040``)."""
    return DataError(
        f"{what} are not as they were written", code="ACEP-D040", hint="take a copy that is whole, or start anew"
    )
