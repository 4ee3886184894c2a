"""Numbers in words; those of matches mean "at least so many" from a limit on."""

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


def counted(number: int, thing: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "cell"), counted(1200, "cell"), counted(2, "match")
    ('1 cell', '1,200 cells', '2 matches')
    """
    plural = f"{thing}es" if thing.endswith("ch") else f"{thing}s"
    return f"{number:,} {thing if number == 1 else plural}"
