"""Queries from Python: the same tree as the text makes, built by calls.

>>> query = (
...     seq(event("Shelf", "a"), absent(event("Register", "b")), event("Exit", "c"))
...     .where("[tag_id] AND a.price > 10")
...     .within("12 h")
...     .errors(1)
... )
>>> print(query)
PATTERN SEQ(Shelf a, ~(Register b), Exit c)
WHERE [tag_id] AND a.price > 10
WITHIN 12 h
ERRORS 1
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta

from acep_approx.arguments import checked
from acep_approx.errors import UsageError
from acep_approx.query.clauses import QueryBuilder
from acep_approx.query.limits import refuse_deep_tree, refuse_many_nodes
from acep_approx.query.parser import parse_window, preference_for, strategy_for
from acep_approx.query.printer import is_name, to_text
from acep_approx.query.shape import all_of as all_parts
from acep_approx.query.shape import choice_of, sequence_of
from acep_approx.query.syntax import CONTIGUITY, Absent, Atom, Pattern, Repeat, Spaced, UserFunction


@dataclasses.dataclass(frozen=True)
class PatternBuilder:
    """A pattern, to be repeated, combined, and given clauses; every method gives a new object.

    Parameters
    ----------
    node : Pattern
        Its tree.

    Raises
    ------
    LimitError
        ACEP-Q021, ACEP-Q024: it is nested too deep, or has too many parts.
    """

    node: Pattern

    def __post_init__(self) -> None:
        refuse_many_nodes((self.node,), "")
        refuse_deep_tree(self.node, "")

    def plus(self) -> PatternBuilder:
        """Once or more: ``+``."""
        return self._repeat(1, None)

    def star(self) -> PatternBuilder:
        """Any number of times, also none: ``*``."""
        return self._repeat(0, None)

    def optional(self) -> PatternBuilder:
        """Once or not at all: ``?``."""
        return self._repeat(0, 1)

    @checked
    def times(self, least: int, most: int | None = None) -> PatternBuilder:
        """A bounded number of times: ``{least}`` or ``{least,most}``.

        Parameters
        ----------
        least : int
            From 0.
        most : int, optional
            Default: as ``least``, exactly that often.

        Returns
        -------
        PatternBuilder
            The repetition.
        """
        return self._repeat(least, least if most is None else most)

    @checked
    def at_least(self, least: int) -> PatternBuilder:
        """That often or more, from 0: ``{least,}``; see `times`."""
        return self._repeat(least, None)

    @checked
    def gap(self, word: str) -> PatternBuilder:
        """The strategy of the gap before this part: ``STRICT B b``.

        Parameters
        ----------
        word : str
            STRICT, CONTIGUOUS, NEXT or ANY.

        Returns
        -------
        PatternBuilder
            To be put into `seq`, behind another part.

        Raises
        ------
        UsageError
            ACEP-U021: no such word.

        Examples
        --------
        >>> print(seq(event("A", "a"), event("B", "b").plus().rounds("NEXT").gap("STRICT")))
        SEQ(A a, STRICT B+ NEXT b[])
        """
        return PatternBuilder(Spaced(strategy_for(word), self.node))

    @checked
    def rounds(
        self, gap: str | None = None, prefers: str | None = None, until: PatternBuilder | None = None
    ) -> PatternBuilder:
        """Say how the rounds of this repetition follow one another: ``B+ NEXT GREEDY b[]``.

        Parameters
        ----------
        gap : str, optional
            The strategy of the gaps between rounds, a word as for `gap`.
        prefers : str, optional
            GREEDY or RELUCTANT.
        until : PatternBuilder, optional
            Made by `absent`: events with which no further round begins, ``B+ UNTIL (S s) b[]``.

        Returns
        -------
        PatternBuilder
            The repetition.

        Raises
        ------
        UsageError
            ACEP-U021: no such word. ACEP-U023: this is no repetition. ACEP-U024: ``until`` was not made by `absent`.
        """
        ending = self.node.until if until is None and isinstance(self.node, Repeat) else until and until.node
        if not isinstance(ending, Absent | None):
            raise UsageError("until is no absent(...)", code="ACEP-U024", hint="until=absent(event('S', 's'))")
        if not isinstance(self.node, Repeat):
            hint = "event('B', 'b').plus().rounds('NEXT')"
            raise UsageError("only a repetition has rounds", code="ACEP-U023", hint=hint)
        between = self.node.between if gap is None else strategy_for(gap)
        preferred = self.node.prefers if prefers is None else preference_for(prefers)
        return PatternBuilder(dataclasses.replace(self.node, between=between, prefers=preferred, until=ending))

    @checked
    def where(self, conditions: str, *functions: UserFunction) -> QueryBuilder:
        """See `QueryBuilder.where`."""
        return QueryBuilder(self.node).where(conditions, *functions)

    @checked
    def by(self, *keys: str) -> QueryBuilder:
        """See `QueryBuilder.by`."""
        return QueryBuilder(self.node).by(*keys)

    @checked
    def strategy(self, name: str) -> QueryBuilder:
        """See `QueryBuilder.strategy`."""
        return QueryBuilder(self.node).strategy(name)

    @checked
    def within(self, window: str | int | timedelta) -> QueryBuilder:
        """See `QueryBuilder.within`."""
        return QueryBuilder(self.node).within(window)

    def simultaneous(self) -> QueryBuilder:
        """See `QueryBuilder.simultaneous`."""
        return QueryBuilder(self.node).simultaneous()

    @checked
    def errors(self, k: int, weights: Mapping[str, int] | None = None) -> QueryBuilder:
        """See `QueryBuilder.errors`."""
        return QueryBuilder(self.node).errors(k, weights)

    def non_overlap(self) -> QueryBuilder:
        """See `QueryBuilder.non_overlap`."""
        return QueryBuilder(self.node).non_overlap()

    def at_start(self) -> QueryBuilder:
        """See `QueryBuilder.at_start`."""
        return QueryBuilder(self.node).at_start()

    def maximal(self) -> QueryBuilder:
        """See `QueryBuilder.maximal`."""
        return QueryBuilder(self.node).maximal()

    def first_match(self) -> QueryBuilder:
        """See `QueryBuilder.first_match`."""
        return QueryBuilder(self.node).first_match()

    @checked
    def skip_to(self, where: str) -> QueryBuilder:
        """See `QueryBuilder.skip_to`."""
        return QueryBuilder(self.node).skip_to(where)

    def consume(self) -> QueryBuilder:
        """See `QueryBuilder.consume`."""
        return QueryBuilder(self.node).consume()

    @checked
    def every(self, length: str | int | timedelta) -> QueryBuilder:
        """See `QueryBuilder.every`."""
        return QueryBuilder(self.node).every(length)

    @checked
    def returning(self, **outputs: str) -> QueryBuilder:
        """See `QueryBuilder.returning`."""
        return QueryBuilder(self.node).returning(**outputs)

    def __str__(self) -> str:
        return to_text(self.node)

    def _repeat(self, least: int, most: int | None) -> PatternBuilder:
        if least < 0 or (most is not None and most < 0):
            hint = "bounds of a repetition are whole numbers from 0"
            raise UsageError(f"{min(least, most or 0)} times makes no sense", code="ACEP-U023", hint=hint)
        return PatternBuilder(Repeat(self.node, least, most))


@checked
def event(type: str | None, variable: str) -> PatternBuilder:  # noqa: A002  the word of the language
    """One event: ``Shelf a``.

    Parameters
    ----------
    type : str or None
        The event type; None for any (``ANY a``).
    variable : str
        The name of the event in conditions and outputs.

    Returns
    -------
    PatternBuilder
        To be put into `seq`, repeated, or given clauses.

    Raises
    ------
    UsageError
        ACEP-U022: the variable is not a word, or reserved.
    """
    if not is_name(variable):
        hint = "a variable is a word of letters, digits and _ that is not reserved"
        raise UsageError(f"{variable!r} is no name for a variable", code="ACEP-U022", hint=hint)
    return PatternBuilder(Atom(type, variable))


@checked
def seq(*parts: PatternBuilder) -> PatternBuilder:
    """Parts that follow one another: ``SEQ(A a, B b)``.

    Parameters
    ----------
    *parts : PatternBuilder
        At least one.

    Returns
    -------
    PatternBuilder
        The sequence.
    """
    return PatternBuilder(sequence_of(_nodes("seq", parts)))


@checked
def either(*parts: PatternBuilder) -> PatternBuilder:
    """Exactly one of several parts, of which there must be one: ``(A a | B b)``."""
    return PatternBuilder(choice_of(_nodes("either", parts)))


@checked
def all_of(*parts: PatternBuilder) -> PatternBuilder:
    """All of several parts, one after the other, in any order: ``ALL(A a, B b)``.

    Parameters
    ----------
    *parts : PatternBuilder
        At least one.

    Returns
    -------
    PatternBuilder
        To be put into `seq`, repeated, or given clauses.

    Examples
    --------
    >>> print(all_of(event("A", "a"), event("B", "b").plus()))
    ALL(A a, B+ b[])
    """
    return PatternBuilder(all_parts(_nodes("all_of", parts)))


@checked
def absent(
    *events: PatternBuilder,
    in_order: bool = False,
    since_start: bool = False,
    within: str | int | timedelta | None = None,
    directly: str | None = None,
) -> PatternBuilder:
    """Negation: none of the events happens here: ``~(Register b)``, ``~(A a | B b)``.

    Parameters
    ----------
    *events : PatternBuilder
        At least one; single events.
    in_order : bool, default False
        Whether they do not happen one after the other, ``~(A a, B b)``, instead of none of them.
    since_start : bool, default False
        Whether none happens since the start of the partition: ``~(B b) SINCE START``, the first part of `seq`.
    within : str, int or timedelta, optional
        So long after the event before none happens: ``~(B b) WITHIN 5 min``.
    directly : str, optional
        STRICT or CONTIGUOUS: only the event that comes next counts, ``~(STRICT Register b)``.

    Returns
    -------
    PatternBuilder
        To be put into `seq`.

    Raises
    ------
    UsageError
        ACEP-U024: nothing, or more than single events. ACEP-U021: no such word.
    """
    nodes = _nodes("absent", events)
    atoms = tuple(node for node in nodes if isinstance(node, Atom))
    if len(atoms) < len(nodes):
        hint = "write one absent(...) for each event that must be missing, or absent(a, b) for several types"
        raise UsageError("only single events can be negated", code="ACEP-U024", hint=hint)
    window = None if within is None else parse_window(within)
    in_order, word = in_order and len(atoms) > 1, None if directly is None else strategy_for(directly, CONTIGUITY)
    found = Absent(atoms, in_order=in_order, since_start=since_start, within=window, directly=word)
    return PatternBuilder(found)


def _nodes(name: str, parts: tuple[PatternBuilder, ...]) -> list[Pattern]:
    if not parts:
        raise UsageError(f"{name}() needs at least one part", code="ACEP-U024", hint="event('Shelf', 'a')")
    return [part.node for part in parts]
