"""Numbers of matches in words; from a limit on they mean "at least so many"."""

from __future__ import annotations

MOST_COUNTED = 2**63 - 1
"""Where the count of one match point stops growing, in the kernels of both engines."""


def is_at_least(total: int) -> bool:
    """Whether a number of matches may be less than there are: the count of some match point stopped growing."""
    return total >= MOST_COUNTED


def said(total: int) -> str:
    """A number of matches.

    Examples
    --------
    >>> said(1200), said(2**63 - 1)
    ('1,200', 'at least 9,223,372,036,854,775,807')
    """
    return f"at least {total:,}" if is_at_least(total) else f"{total:,}"
