"""What streams without data are taken to have: the attributes that a query asks of them."""

from __future__ import annotations

from collections.abc import Iterable

from acep_approx.query.cel.schemas import Schema


class Guessed(Exception):  # noqa: N818  no error: names are looked at again from the beginning
    """Another attribute is taken to be there, or one is not any more."""


class Guesses:
    """The attributes of streams of which nothing is known.

    An attribute without a decorator is of one input alone. Where both could have it, one is tried: a guess that is not
    *firm*. It is taken back once the other input turns out to have it, and not tried again. A decorator leaves no
    choice.

    Parameters
    ----------
    streams : iterable of str
        Those without data.
    """

    def __init__(self, streams: Iterable[str]) -> None:
        self._taken: dict[str, dict[str, bool]] = {name: {} for name in streams}
        self._denied: set[tuple[str, str]] = set()

    def schemas(self) -> dict[str, Schema]:
        """What each stream is taken to have, in the order in which it was asked."""
        return {stream: tuple(names) for stream, names in self._taken.items()}

    def ask(self, stream: str, name: str, *, firm: bool) -> None:
        """Take a stream to have an attribute, if it may.

        Raises
        ------
        Guessed
            It is taken to have it from now on.
        """
        names = self._taken.get(stream)
        if names is not None and name not in names and (firm or (stream, name) not in self._denied):
            names[name] = firm
            raise Guessed

    def take_back(self, stream: str, name: str) -> None:
        """Take back that a stream has an attribute, if that is a guess that is not firm.

        Raises
        ------
        Guessed
            It is taken back.
        """
        names = self._taken.get(stream, {})
        if not names.get(name, True):
            del names[name]
            self._denied.add((stream, name))
            raise Guessed
