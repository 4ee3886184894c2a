"""The clauses of a query from Python: each call gives a query with one more; ``builder`` has the patterns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from acep_approx.arguments import checked
from acep_approx.errors import QueryError, UsageError
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.messages import STRATEGIES
from acep_approx.query.parser import parse, parse_condition, parse_expression, parse_window
from acep_approx.query.printer import is_name, to_text
from acep_approx.query.syntax import (
    DEFAULT_STRATEGY,
    LISTS_ALL,
    Equivalence,
    Expression,
    Machine,
    Pattern,
    QuerySyntax,
    RegisterValue,
    ReturnItem,
    Selection,
    Skip,
    SkipTo,
    Strategy,
    UserFunction,
    Window,
)


@dataclasses.dataclass(frozen=True)
class QueryBuilder:
    """A query in the making; every method gives a new one.

    Made by the clause methods of a pattern, seldom by hand. ``str(builder)`` is the text of the query.

    Parameters
    ----------
    pattern : Pattern
        What to look for.
    window : Window, optional
        Must be given, by `within`, before the query is complete.
    functions : tuple of UserFunction, optional
        What conditions call.
    """

    pattern: Pattern
    window: Window | None = None
    chosen: Strategy = DEFAULT_STRATEGY
    equivalences: tuple[Equivalence, ...] = ()
    predicates: tuple[Expression, ...] = ()
    only_later: bool = False
    missing: int = 0
    weights: tuple[tuple[str, int], ...] = ()
    begins: bool = False
    selection: Selection = LISTS_ALL
    outputs: tuple[ReturnItem, ...] = ()
    functions: tuple[UserFunction, ...] = ()

    @checked
    def where(self, conditions: str, *functions: UserFunction) -> QueryBuilder:
        """Add conditions; all conditions of all calls must hold.

        Parameters
        ----------
        conditions : str
            As in WHERE: ``"a.price > 10"``, ``"[tag_id] AND b.x = 1"``.
        *functions : functions
            What they call of your own, made by `afa_function`.

        Returns
        -------
        QueryBuilder
            With the conditions added.

        Raises
        ------
        QueryError
            The text is no condition.
        """
        equivalences, predicates = parse_condition(conditions, functions)
        return dataclasses.replace(
            self,
            equivalences=self.equivalences + equivalences,
            predicates=self.predicates + predicates,
            functions=tuple(dict.fromkeys((*self.functions, *functions))),
        )

    @checked
    def by(self, *keys: str) -> QueryBuilder:
        """Let all events of a match have the same value of each of these attributes: ``[symbol]``.

        Parameters
        ----------
        *keys : str
            Names of attributes.

        Returns
        -------
        QueryBuilder
            With the keys added after those it has.

        Examples
        --------
        >>> from acep_approx import event
        >>> print(event("A", "a").by("symbol", "dep time").within(5))
        PATTERN A a
        WHERE [symbol] AND [`dep time`]
        WITHIN 5
        """
        return dataclasses.replace(self, equivalences=self.equivalences + tuple(map(Equivalence, keys)))

    @checked
    def strategy(self, name: str) -> QueryBuilder:
        """Choose which events may be skipped.

        Parameters
        ----------
        name : str
            ``skip_till_any_match`` (the default), ``skip_till_next_match``, ``partition_contiguity`` or
            ``strict_contiguity``.

        Returns
        -------
        QueryBuilder
            With that strategy.

        Raises
        ------
        UsageError
            ACEP-U021: no such strategy.
        """
        if name.lower() not in STRATEGIES:
            hint = did_you_mean(name.lower(), STRATEGIES) + "strategies are " + ", ".join(STRATEGIES)
            raise UsageError(f"no strategy {name!r}", code="ACEP-U021", hint=hint)
        return dataclasses.replace(self, chosen=cast("Strategy", name.lower()))

    @checked
    def within(self, window: str | int | timedelta) -> QueryBuilder:
        """Set the window.

        Parameters
        ----------
        window : str, int or timedelta
            ``"10 s"``, ``"5 events"``; a number alone is in the units of the time column.

        Returns
        -------
        QueryBuilder
            With that window, whatever it was before.

        Raises
        ------
        QueryError
            The text is no window.

        Examples
        --------
        >>> from acep_approx import event
        >>> print(event("A", "a").within(timedelta(minutes=90)))
        PATTERN A a
        WITHIN 90 min
        """
        return dataclasses.replace(self, window=parse_window(window))

    def simultaneous(self) -> QueryBuilder:
        """Let events at one time not follow one another: each event of a match is later than the one before it.

        Returns
        -------
        QueryBuilder
            With the clause SIMULTANEOUS.

        Examples
        --------
        >>> from acep_approx import event, seq
        >>> print(seq(event("A", "a"), event("B", "b")).within(5).simultaneous())
        PATTERN SEQ(A a, B b)
        WITHIN 5
        SIMULTANEOUS
        """
        return dataclasses.replace(self, only_later=True)

    @checked
    def errors(self, k: int, weights: Mapping[str, int] | None = None) -> QueryBuilder:
        """Say how many events may be missing.

        Parameters
        ----------
        k : int
            The largest sum of weights of missing events, from 0.
        weights : mapping of str to int, optional
            What a missing event of a variable costs; default 1 each.

        Returns
        -------
        QueryBuilder
            With these errors.
        """
        return dataclasses.replace(self, missing=k, weights=tuple((weights or {}).items()))

    def at_start(self) -> QueryBuilder:
        """Let the first event of a match be the first event of its partition.

        Returns
        -------
        QueryBuilder
            With the clause AT START.

        Examples
        --------
        >>> from acep_approx import event, seq
        >>> print(seq(event("Boot", "a"), event("Crash", "b")).by("host").within(5).at_start())
        PATTERN SEQ(Boot a, Crash b)
        WHERE [host]
        WITHIN 5
        AT START
        """
        return dataclasses.replace(self, begins=True)

    def non_overlap(self) -> QueryBuilder:
        """Ask for matches that do not overlap: each begins after the one before it in its partition.

        Returns
        -------
        QueryBuilder
            With the clause NON OVERLAP.

        Examples
        --------
        >>> from acep_approx import event, seq
        >>> print(seq(event("A", "a"), event("B", "b")).within(5).non_overlap())
        PATTERN SEQ(A a, B b)
        WITHIN 5
        NON OVERLAP
        """
        return self._select(skip=Skip("past last row"))

    def maximal(self) -> QueryBuilder:
        """Ask for the largest matches: those whose set of events is in no larger one of another match.

        Returns
        -------
        QueryBuilder
            With the clause MAXIMAL.

        Examples
        --------
        >>> from acep_approx import event
        >>> print(event("A", "a").plus().within(5).maximal())
        PATTERN A+ a[]
        WITHIN 5
        MAXIMAL
        """
        return self._select(maximal=True)

    def first_match(self) -> QueryBuilder:
        """Ask for one match for each first event: the one that is known first.

        Returns
        -------
        QueryBuilder
            With the clause FIRST MATCH.

        Examples
        --------
        >>> from acep_approx import event, seq
        >>> print(seq(event("A", "a"), event("B", "b")).within(5).first_match())
        PATTERN SEQ(A a, B b)
        WITHIN 5
        FIRST MATCH
        """
        return self._select(first=True)

    @checked
    def skip_to(self, where: str) -> QueryBuilder:
        """Say where the match after one that is listed may start.

        Parameters
        ----------
        where : str
            ``"next row"``, ``"past last row"``, or the first or last event of a variable: ``"first b"``, ``"last b"``.

        Returns
        -------
        QueryBuilder
            With the clause AFTER MATCH SKIP.

        Raises
        ------
        UsageError
            ``ACEP-U021``: no such place.

        Examples
        --------
        >>> from acep_approx import event, seq
        >>> print(seq(event("A", "a"), event("B", "b").plus()).within(5).skip_to("last b"))
        PATTERN SEQ(A a, B+ b[])
        WITHIN 5
        AFTER MATCH SKIP TO LAST b
        """
        word, _, rest = " ".join(where.split()).partition(" ")
        match word.lower(), rest:
            case "next" | "past", _ if (place := f"{word} {rest}".lower()) in ("next row", "past last row"):
                return self._select(skip=Skip(cast("SkipTo", place)))
            case "first" | "last" as edge, variable if is_name(variable):
                return self._select(skip=Skip(edge, variable))
        hint = "write 'next row', 'past last row', 'first b' or 'last b'"
        raise UsageError(f"no place {where!r} to skip to", code="ACEP-U021", hint=hint)

    def consume(self) -> QueryBuilder:
        """Ask for matches that share no event.

        Returns
        -------
        QueryBuilder
            With the clause CONSUME.

        Examples
        --------
        >>> from acep_approx import event, seq
        >>> print(seq(event("A", "a"), event("B", "b")).within(5).consume())
        PATTERN SEQ(A a, B b)
        WITHIN 5
        CONSUME
        """
        return self._select(consume=True)

    @checked
    def every(self, length: str | int | timedelta) -> QueryBuilder:
        """Ask for no more than one match in a length of time.

        Parameters
        ----------
        length : str, int or timedelta
            How long after the end of a match that is listed the next one may end, as for ``within``.

        Returns
        -------
        QueryBuilder
            With the clause EVERY.

        Raises
        ------
        QueryError
            The text is no length of time.

        Examples
        --------
        >>> from acep_approx import event, seq
        >>> print(seq(event("A", "a"), event("B", "b")).within("5 min").every("1 h"))
        PATTERN SEQ(A a, B b)
        WITHIN 5 min
        EVERY 1 h
        """
        return self._select(every=parse_window(length))

    def _select(self, **chosen: Any) -> QueryBuilder:
        return dataclasses.replace(self, selection=dataclasses.replace(self.selection, **chosen))

    @checked
    def returning(self, *registers: str, **outputs: str) -> QueryBuilder:
        """Add output columns.

        Parameters
        ----------
        *registers : str
            Registers of an automaton written by hand, which give their columns their names.
        **outputs : str
            Name of the column and expression: ``mean="avg(b[].price)"``.

        Returns
        -------
        QueryBuilder
            With the outputs added after those it has.

        Raises
        ------
        QueryError
            A text is no expression; ACEP-Q071: there is no such register.
        """
        known = [register.name for register in self.pattern.registers] if isinstance(self.pattern, Machine) else []
        for name in registers:
            if name not in known:
                hint = f"registers are {', '.join(known) or 'none'}; write other outputs as returning(x='t.x')"
                hint = did_you_mean(name, known) + hint
                raise QueryError(f"no register {name!r} to return", code="ACEP-Q071", hint=hint)
        made = [ReturnItem(name, RegisterValue(name)) for name in registers]
        made += [ReturnItem(name, parse_expression(text)) for name, text in outputs.items()]
        return dataclasses.replace(self, outputs=(*self.outputs, *made))

    def syntax(self) -> QuerySyntax:
        """The tree of the query; its positions refer to ``str(self)``.

        Returns
        -------
        QuerySyntax
            Equal to what the parser makes of the text.

        Raises
        ------
        QueryError
            A clause is missing (WITHIN) or a name cannot stand in a query.
        """
        return parse(str(self), self.functions)

    def __str__(self) -> str:
        if self.window is None:
            # There is no canonical text of half a query: print what `parse` will complain about.
            return to_text(self._query(Window(0, "ticks"))).replace("\nWITHIN 0", "", 1)
        return to_text(self._query(self.window))

    def _query(self, window: Window) -> QuerySyntax:
        return QuerySyntax(
            pattern=self.pattern,
            window=window,
            strategy=self.chosen,
            equivalences=self.equivalences,
            predicates=self.predicates,
            is_simultaneous=self.only_later,
            errors=self.missing,
            weights=self.weights,
            at_start=self.begins,
            selection=self.selection,
            outputs=self.outputs,
            functions=self.functions,
        )
