"""Warnings that a past has too few match points to learn from: of one history, and of several at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from acep_approx.diagrams.text_layout import one_line
from acep_approx.errors import FewPointsWarning
from acep_approx.training.training import FEW_POINTS

NAMED = 5
"""Histories that one warning names."""


def warn_of_few(points: int, stacklevel: int) -> None:
    """Warn of a history of so few match points, if they are few."""
    if points < FEW_POINTS:
        _warn(f"{points} match point{'s' * (points != 1)} in this past: too few to learn from", stacklevel + 1)


@contextmanager
def warning_once() -> Iterator[dict[str, int]]:
    """Meanwhile nobody warns; at the end there is one warning for all. Gives a dict that takes match points by name.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True, action="always") as told, warning_once() as points:
    ...     points |= {"up": 3, "down": 400}
    >>> print(told[0].message)
    too few match points in this past to learn from: up (3); 30 or more tell which partial matches are worth keeping
    """
    points: dict[str, int] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewPointsWarning)
        yield points
    few = [f"{one_line(name):.60} ({number})" for name, number in points.items() if number < FEW_POINTS]
    if few:
        others = f" and {len(few) - NAMED:,} more" if len(few) > NAMED else ""
        _warn(f"too few match points in this past to learn from: {', '.join(few[:NAMED])}{others}", stacklevel=4)


def _warn(found: str, stacklevel: int) -> None:
    wanted = f"{FEW_POINTS} or more tell which partial matches are worth keeping"
    warnings.warn(f"{found}; {wanted}", FewPointsWarning, stacklevel=stacklevel + 1)
