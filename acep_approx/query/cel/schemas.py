"""Which attributes a stream has, or is taken to have while it has no data; how NEXT and FOLD rename them.

Source: Demers et al., CIDR 2007, section 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from acep_approx.query.cel.syntax import Filter, Fold, Next, Select, Star, Stream

if TYPE_CHECKING:
    from acep_approx.query.cel.syntax import Algebra


Schema = tuple[str, ...]
Schemas = Mapping[str, Schema | None]
"""The attributes of each stream by its name; None where no data is known yet."""


def schema_of(node: Algebra, schemas: Schemas) -> Schema:
    """The attributes of the events of a stream, in their order.

    Parameters
    ----------
    node : Algebra
        Any part of a query, resolved or not.
    schemas : mapping of str to tuple of str or None
        The attributes of the streams it reads; of one that has none here nothing is known (`names.completed` fills
        them in).

    Returns
    -------
    tuple of str
        Without the times and ``DUR``, which every event has.

    Examples
    --------
    >>> from acep_approx.query import parse_cel
    >>> pair = parse_cel("SELECT * FROM Stock NEXT Stock").select
    >>> schema_of(pair, {"Stock": ("Name", "Price")})
    ('Name_1', 'Price_1', 'Name', 'Price')
    """
    match node:
        case Stream(name=name):
            return schemas.get(name) or ()
        case Filter(source=source):
            return schema_of(source, schemas)
        case Select(items=items, source=source):
            below = schema_of(source, schemas)
            return tuple(name for one in items for name in (below if isinstance(one, Star) else (one.name,)))
        case Next(left=left, right=right) | Fold(left=left, right=right):
            return joined(node, schema_of(left, schemas), schema_of(right, schemas))


def joined(node: Next | Fold, left: Schema, right: Schema) -> Schema:
    """The attributes of the outputs of NEXT and FOLD: those of the left, renamed, those of the right, aggregates."""
    new = [one.name for one in node.aggregates] if isinstance(node, Fold) else []
    return (*renaming(node, left, right).values(), *right, *new)


def renaming(node: Next | Fold, left: Schema, right: Schema) -> dict[str, str]:
    """How the attributes of the left input are called in the output.

    Parameters
    ----------
    node : Next or Fold
    left, right : tuple of str
        The attributes of its inputs.

    Returns
    -------
    dict of str to str
        NEXT renames all, ``a`` to ``a_1``, or none where no name is on both sides. FOLD renames those that are on
        both sides and those that its aggregates name.

    Examples
    --------
    >>> renaming(Next(Stream("A"), None, Stream("B")), ("x", "y"), ("y",))
    {'x': 'x_1', 'y': 'y_1'}
    >>> renaming(Fold(Stream("A"), None, None, (), Stream("B")), ("x", "y"), ("y",))
    {'x': 'x', 'y': 'y_1'}
    """
    common = set(left) & set(right)  # and what else is renamed with it
    if isinstance(node, Fold):
        common |= {one.name for one in node.aggregates}
    elif common:
        common = set(left)
    return {name: f"{name}_1" if name in common else name for name in left}


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
