"""The queries of a set: they are added and removed, and say who feeds whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from types import NoneType
from typing import Any
from weakref import WeakValueDictionary

from acep_approx.api.query import Query
from acep_approx.api.query_texts import Planned, QueryTexts
from acep_approx.arguments import checked
from acep_approx.errors import UsageError, expect
from acep_approx.events.source import open_source
from acep_approx.matching.choice import OutputKind
from acep_approx.planning.planner import Plan
from acep_approx.subscriptions.adding import entries_of
from acep_approx.subscriptions.callbacks import Subscription, Subscriptions
from acep_approx.subscriptions.graph import is_hidden
from acep_approx.subscriptions.running import Running
from acep_approx.subscriptions.templates.constants import require_columns
from acep_approx.subscriptions.templates.literals import uses
from acep_approx.subscriptions.templates.template import Alike
from acep_approx.visible import broken_at


class SetMembers:
    """The queries of a ``QuerySet``, by their ids."""

    def __init__(self, running: Running, output: OutputKind) -> None:
        self.output: OutputKind = output
        self._running = running
        # by the number of the part that is shown: those that a user holds, and those that have someone to tell
        self._held: WeakValueDictionary[int, Subscription] = WeakValueDictionary()
        self._listening: dict[int, Subscription] = {}
        self._gone: list[int] = []
        self._texts = QueryTexts(output)

    @checked
    def add(self, query: str | Query, *, id: str | None = None) -> Subscription:  # noqa: A002  (what users call it)
        """Add a query: it sees the epochs whose first event is pushed after this.

        Parameters
        ----------
        query : str or Query
            Its text, or what ``compile_query`` made of it.
        id : str, optional
            Names it; default "q1", "q2" and so on.

        Returns
        -------
        Subscription
            Its ``id``; ``on_match(f)`` calls a function with its results.

        Raises
        ------
        QueryError
            The query is wrong; ``ACEP-Q930``: it cannot publish.
        UsageError
            ``ACEP-U060``: the id is taken; ``ACEP-U061``: streams would feed one another in a circle; ``ACEP-U062``:
            others that run already read what it publishes; ``ACEP-U064``, ``ACEP-U066``: it cannot be in a set.

        Complexity: that of compiling it; not of how many there are.
        """
        expect("the query", query, (str, Query), "its text, or what compile_query made of it")
        expect("id", id, (str, NoneType), "a text")
        if id is not None and broken_at(id) is not None:
            raise UsageError(f"the id {id!r} is no text", code="ACEP-U191", hint="give one without half characters")
        added = self._add(self._texts.planned(query, self._running.graph.next_number), [id])
        return self._subscription(*added.popitem())

    @checked
    def add_many(
        self, template: str, table: Any, *, id: str | None = None  # noqa: A002  (what users call it)
    ) -> Sequence[Subscription]:
        """Add a query for each row of a table of constants.

        Parameters
        ----------
        template : str
            A query with parameters in the places of constants: ``:limit``.
        table : pyarrow.Table, pandas.DataFrame, list of dicts, or file
            A column for each parameter. A column ``id`` names the queries, unless it is a parameter.
        id : str, optional
            Where no column does: the queries are ``id[0]``, ``id[1]`` and so on. Default: as for ``add``.

        Returns
        -------
        sequence of Subscription
            In the order of the rows.

        Raises
        ------
        QueryError, UsageError, DataError
            As for ``add``; ``ACEP-U070``: a column is missing, or has a NULL or what no constant can be;
            ``ACEP-Q045``: a number that is no window. Then none was added.

        Examples
        --------
        >>> from acep_approx import QuerySet
        >>> desk = QuerySet()
        >>> many = desk.add_many("PATTERN SEQ(A a, B b) WHERE b.x > :low WITHIN 5", [{"low": 1}, {"low": 7}])
        >>> found = desk.match([{"ts": 1, "type": "A", "x": 0}, {"ts": 2, "type": "B", "x": 4}])
        >>> list(found), many
        (['q1'], [<Subscription 'q1'>, <Subscription 'q2'>])
        """
        syntax = self._texts.tree(template)
        names = [*uses(syntax)]
        source = open_source(table)
        require_columns(syntax, source.schema.names)
        is_named = "id" in source.schema.names and "id" not in names
        ids: list[str] = []
        numbers: list[int] = []
        try:
            columns = [*names, *(["id"] if is_named else [])] or source.schema.names[:1]
            for batch in source.batches(columns):
                first = len(ids)
                rows = range(first, first + batch.num_rows)
                if is_named and batch.column("id").null_count:
                    what = "the column 'id' of the table has no value in some row"
                    raise UsageError(what, code="ACEP-U070", hint="name each query, or leave the column out")
                given = map(str, batch.column("id").to_pylist()) if is_named else (id and f"{id}[{n}]" for n in rows)
                for planned in self._texts.with_constants(syntax, batch, first, self._next_number):
                    added = self._add(planned, [*islice(given, planned.queries)])
                    ids += added
                    numbers += added.values()
        except Exception:
            for one in ids:
                self.remove(one, cascade=True)
            raise
        return Subscriptions(ids, numbers, self._subscription)

    def _next_number(self) -> int:
        return self._running.graph.next_number

    def _add(self, query: Planned | Alike, ids: Sequence[str | None]) -> dict[str, int]:
        """Add a query, or many that are alike; gives their ids and numbers."""
        graph = self._running.graph
        graph.refuse_taken([id_ for id_ in ids if id_ is not None])
        names = [graph.free_id() if id_ is None else id_ for id_ in ids]
        if isinstance(query, Alike):
            return dict(zip(names, self._running.add_alike(query, names, self.output), strict=True))
        parts = entries_of(query.plans, query.text, self.output, id=names[0], first=graph.next_number)
        for number, part in enumerate(parts):
            try:
                self._running.add(part)
            except UsageError:
                if number:
                    self._running.take_back(part.id)
                raise
        return {names[0]: parts[-1].number}

    @checked
    def remove(self, id: str | Subscription, *, cascade: bool = False) -> None:  # noqa: A002  (what users call it)
        """Remove a query: it sees no epoch whose first event is pushed after this.

        What of it waits for the end of a window is put out when its last epoch is complete.

        Parameters
        ----------
        id : str or Subscription
            Or what ``add`` gave.
        cascade : bool, default False
            Whether queries that read what only it publishes go, too.

        Raises
        ------
        UsageError
            ``ACEP-U060``: there is no such query; ``ACEP-U063``: others read what it publishes.
        """
        self._gone += self._running.remove(self._id(id), cascade=cascade)

    def _id(self, query: str | Subscription) -> str:
        """The id of a query, which may be named by what ``add`` gave for it."""
        if isinstance(query, Subscription):
            if self._held.get(self._running.graph.shown(query.id)[0]) is not query:
                raise UsageError(
                    f"{query!r} is of another set, or its query was removed and another one has its id now",
                    code="ACEP-U060",
                    hint="give the id, or what add() of this set gave",
                )
            return query.id
        expect("the id", query, str, "the one that add() was given, or gave, or what add() gave")
        return query

    def __len__(self) -> int:
        return len(self._running.graph.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._running.graph.ids)

    def __contains__(self, id: object) -> bool:  # noqa: A002  (what users call it)
        return isinstance(id, str) and id in self._running.graph.ids

    @checked
    def text(self, id: str | Subscription) -> str:  # noqa: A002  (what users call it)
        """The text of a query.

        Raises
        ------
        UsageError
            ``ACEP-U060``: there is no such query.

        Examples
        --------
        >>> from acep_approx import QuerySet
        >>> desk = QuerySet()
        >>> many = desk.add_many("PATTERN SEQ(A a, B b) WHERE b.x > :low WITHIN 5", [{"low": 1}, {"low": 7}])
        >>> " ".join(desk.text("q2").split())
        'PATTERN SEQ(A a, B b) WHERE b.x > 7 WITHIN 5'
        """
        return self._running.text(self._id(id))

    @checked
    def subscription(self, id: str | Subscription) -> Subscription:  # noqa: A002  (what users call it)
        """What ``add`` gave for a query, for example after ``from_state``.

        Raises
        ------
        UsageError
            ``ACEP-U060``: there is no such query.
        """
        name = self._id(id)
        return self._subscription(name, self._running.graph.shown(name)[0])

    def _subscription(self, id: str, number: int) -> Subscription:  # noqa: A002
        if (held := self._held.get(number)) is None:
            held = self._held[number] = Subscription(id, number, self._listening)
        return held

    def levels(self) -> dict[int, list[str]]:
        """The ids of the queries by their level: those of level 0 read no stream that others publish."""
        found: dict[int, list[str]] = {}
        for _, id_, entry in self._running.graph.numbered:
            if entry.is_shown:
                found.setdefault(entry.level, []).append(id_)
        return found

    def streams(self) -> dict[str, tuple[list[str], list[str]]]:
        """The streams that queries publish, each with the ids of those that publish it, and that read it."""
        graph = self._running.graph
        shown = {name: numbers for name, numbers in graph.publishers.items() if not is_hidden(name)}
        return {name: (graph.ids_of(shown[name]), graph.ids_of(graph.readers.get(name, ()))) for name in shown}

    @checked
    def graph(self, format: str = "mermaid") -> str:  # noqa: A002  (as on the command line)
        """Who feeds whom, as a picture: "mermaid", "dot" or "svg"; queries that read and publish the same are one.

        Raises
        ------
        UsageError
            ``ACEP-U001``: no such format.
        """
        from acep_approx.api.views import drawn_set

        return drawn_set(self, format)

    def plans(self) -> dict[str, list[Plan]]:
        """The plans of the queries by their ids: one for each automaton that a query needs, its own last."""
        found: dict[str, list[Plan]] = {id_: [] for id_ in self}
        for _, id_, entry in self._running.graph.numbered:
            found[id_].append(entry.plan)
        return found
