"""One match, and how it is taken from all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral
from operator import index
from typing import Any, ClassVar

import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import NoSuchPlaceError, UnknownNameError, UsageError, expect


@dataclass(frozen=True)
class Match:
    """One match.

    Attributes
    ----------
    errors : int
        Least weight of the missing events.
    start, end : datetime or int
        Time of the first and the last bound event.
    key : dict
        Values of the equivalence attributes.
    missing : tuple of str
        Variables without event that the pattern wanted; empty for bare regular expressions.
    values : dict
        Per variable the row number of its event (None where nothing is bound, a list where it repeats), or what
        ``bind`` or RETURN asks for; for a bare regular expression ``events``, all row numbers.
    shows_events : bool
        Whether ``values`` are events, and not what RETURN asks for.
    number : int
        Its place in the order of the matches, from 0.
    """

    errors: int
    start: Any
    end: Any
    key: dict[str, Any]
    missing: tuple[str, ...]
    values: dict[str, Any]
    shows_events: bool = field(default=True, compare=False, repr=False)
    number: int = field(default=0, repr=False, compare=False)
    _events: ClassVar[Any] = None  # gives its events; no field, so that copies do not take the input along

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_events"}

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.results.views import match_view

        return match_view(self)

    @checked
    def __getitem__(self, name: str) -> Any:
        return named(self.values, name, "value")

    def events(self) -> pa.Table:
        """Its events, with all columns of the input; columns as for ``Matches.events``.

        The events are matched once more, up to this match: for many matches ask ``Matches.events``.

        Raises
        ------
        UsageError
            ``ACEP-U103``: they can be read only once; ``ACEP-U148``: it is not found again, or is of a query in CEL.
        """
        if self._events is None:
            raise UsageError(
                "this match was not found in events", code="ACEP-U148", hint="take it from query.match(events)"
            )
        return self._events()


def named(values: Mapping[str, Any], name: str, what: str) -> Any:
    """The value of a name.

    Raises
    ------
    UnknownNameError
        ``ACEP-U160``: there is none; ``what`` it is, in words.
    """
    if name not in values:
        raise UnknownNameError(
            f"there is no {what} {name!r:.80}", code="ACEP-U160", hint=f"there are: {', '.join(values) or 'none'}"
        )
    return values[name]


def _whole(number: Any, name: str) -> int:
    """A place among matches; those beyond what Python can count to are all the same."""
    expect(name, number, Integral, "a whole number: matches[0], matches[:5]")
    try:
        return max(-sys.maxsize, min(index(number), sys.maxsize - 1))
    except TypeError:  # numpy calls lengths of time whole numbers, too
        expect(name, number, (), "a whole number: matches[0], matches[:5]")
        raise


def by_number(
    every: Iterable[Match], head: Callable[[int], Iterable[Match]], number: int | slice
) -> Match | list[Match]:
    """What stands in the brackets of ``matches[...]``; see ``Matches.__getitem__``.

    Parameters
    ----------
    every : iterable of Match
        All matches.
    head : callable
        Gives the first so many of them.
    number : int or slice
    """
    if isinstance(number, slice):
        parts = (number.start, number.stop, number.step)
        start, stop, step = (None if part is None else _whole(part, "a place") for part in parts)
        if step == 0:
            expect("the step", step, (), "a whole number from 1: matches[::2]")
        if any(part is not None and part < 0 for part in (start, stop, step)):
            return list(iter(every))[start:stop:step]
        return list(islice(every if stop is None else head(stop), start, stop, step))
    place = _whole(number, "the number")
    try:
        return list(iter(every))[place] if place < 0 else next(islice(head(place + 1), place, None))
    except (IndexError, StopIteration):
        raise NoSuchPlaceError(
            f"there is no match {place}", code="ACEP-U161", hint="len(matches) says how many there are"
        ) from None
