"""What stands in results for the events that a match binds: their row numbers, or values of their columns.

Row numbers are for who has the events at hand. Elsewhere values of their columns say which event it is: in the place of
the row number, or, for who reads the results as they are, each in a column of its own (``Wide``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arguments import check_fields
from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError, UsageError, expect
from acep_approx.events.columns import missing_column, to_numpy
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import as_shown, shown_type
from acep_approx.matching.outputs.kinds import MATCHES, OutputKind
from acep_approx.query.parameters import MARK
from acep_approx.query.shape import atoms, expressions_of, naming
from acep_approx.query.syntax import Machine, QuerySyntax

Take = Callable[[str, Ints, Bools], pa.Array]
"""Values of a column at some rows, NULL where they are missing; ``Recent.take`` is one."""


class Known(Protocol):
    """What knows some events: ``Recent``, or ``Lookup`` where they may change."""

    def take(self, column: str, ids: Ints, missing: Bools, /) -> pa.Array:
        """Values of ``column`` of some events; null where ``missing``."""

    def ticks_of(self, ids: Ints, missing: Bools, /) -> pa.Array:
        """Their ticks; null where ``missing``."""


@dataclass(frozen=True)
class Wide:
    """Each value in a column of its own, named like the variable and the column: ``a.price``.

    Parameters
    ----------
    columns : tuple of str
        Of the events. Default: the time, ``id``, and what the query names of each variable beside the keys.
    id : str, optional
        The column that names an event, if there is one.
    keeps_rows : bool
        Whether row numbers stand beside, in columns named like ``ROWS`` and the variable; see ``as_rows``.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > 1 WITHIN 5")
    >>> matcher = query.matcher(bind=Wide())
    >>> print(matcher.push([{"ts": 1, "type": "A", "x": 0}, {"ts": 2, "type": "B", "x": 7}]).column_names)
    ['errors', 'start', 'end', 'missing', 'a.ts', 'b.ts', 'b.x']
    """

    columns: tuple[str, ...] = ()
    id: str | None = None
    keeps_rows: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    def __str__(self) -> str:
        return f"columns {', '.join(self.columns) or 'that the query names'}"


ROWS = " "
"""What the columns of row numbers begin with beside those of ``Wide``: no other name of a result has a blank there."""
Bind = str | Sequence[str] | Wide | None
"""What a user, or the command line, asks for."""


def without_rows(table: pa.Table) -> pa.Table:
    """The table without the row numbers that stand beside."""
    return table.select([name for name in table.column_names if not name.startswith(ROWS)])


def columns_of(bind: Bind) -> tuple[str, ...]:
    """The columns that are named."""
    if isinstance(bind, Wide):
        return bind.columns
    if bind is None:
        return ()
    expect("bind", bind, (str, Sequence), "the name of a column, or several")
    return (bind,) if isinstance(bind, str) else tuple(bind)


def as_plain(bind: Bind) -> Any:
    """What stands for events, as JSON."""
    return {"wide": bind.columns, "id": bind.id, "rows": bind.keeps_rows} if isinstance(bind, Wide) else bind or None


def from_plain(saved: Any) -> Bind:
    """What ``as_plain`` was told."""
    is_wide = isinstance(saved, Mapping)
    return Wide(tuple(saved["wide"]), saved["id"], keeps_rows=saved["rows"]) if is_wide else saved


def as_rows(table: pa.Table) -> pa.Table:
    """The row numbers of events in the place of their columns, where a table has both."""
    rows = [name for name in table.column_names if name.startswith(ROWS)]
    wide = tuple(f"{name.removeprefix(ROWS)}." for name in rows)
    table = table.select([name for name in table.column_names if not (wide and name.startswith(wide))])
    return table.rename_columns([name.removeprefix(ROWS) for name in table.column_names])


def bound_names(bind: Bind, query: QuerySyntax, output: OutputKind = MATCHES) -> tuple[str, ...] | Wide:
    """The columns that a user names; none for row numbers.

    Raises
    ------
    UsageError
        ``ACEP-U051``: no name, or one twice; or there is nothing that they could stand for.
    """
    if bind is None:
        return ()
    if isinstance(bind, Wide):
        names = _checked(bind.columns, query, output) if bind.columns else ()
        has_variables = output.binds and not (query.outputs or query.is_regex or query.is_algebra)
        return replace(bind, columns=names) if has_variables else names
    expect("bind", bind, (str, Sequence), "the name of a column, or several")
    return _checked((bind,) if isinstance(bind, str) else tuple(bind), query, output)


def bound_where_shown(bind: Bind, query: QuerySyntax, output: OutputKind = MATCHES) -> tuple[str, ...] | Wide:
    """The same for one of many queries: those with RETURN, or in CEL, show no events."""
    shows_none = output.binds and (query.outputs or query.is_algebra)
    return () if shows_none else bound_names(bind, query, output)


def _checked(names: tuple[str, ...], query: QuerySyntax, output: OutputKind) -> tuple[str, ...]:
    shown = repr(names[0] if len(names) == 1 else list(names))
    for name in names:
        expect("a column of bind", name, str, "its name as text")
    if not names or len(set(names)) < len(names):
        raise UsageError(
            f"bind is {shown}", code="ACEP-U051", hint="name a column of the events, or several different ones"
        )
    if query.is_algebra and not output.is_point:
        raise UsageError(
            f"bind={shown} and a query in CEL do not go together: its results name no events",
            code="ACEP-U051",
            hint="leave --bind out (bind= in Python): SELECT says which attributes results have; --output points "
            "(output='points') shows their last events",
        )
    shows = bool(query.outputs) and not output.is_point
    if shows or output.is_linked:
        raise UsageError(
            f"bind={shown} and {'RETURN' if shows else 'compressed output'} do not go together",
            code="ACEP-U051",
            hint="leave bind out: RETURN says what is shown of events, compressed output keeps row numbers",
        )
    return names


def named_columns(query: QuerySyntax, roles: Roles, *always: str) -> dict[str, tuple[str, ...]]:
    """The columns that say of each variable which event it is: the time, ``always``, then what the query names of it.

    Keys are left out, as each match shows them once. Of an event of any type its type is named, too.

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> query = parse("PATTERN SEQ(A a, ANY b) WHERE [user] AND a.x < b.x AND b.user != 'u' AND b.y > 1 WITHIN 5")
    >>> named_columns(query, Roles(time="when", type="kind"))
    {'a': ('when', 'x'), 'b': ('when', 'kind', 'x', 'y')}
    """
    pattern, conditions = query.pattern, list(query.predicates)
    if isinstance(pattern, Machine):
        conditions += expressions_of(pattern)
        types = [(arc.variable, arc.type) for arc in pattern.arcs if arc.variable is not None]
    else:
        types = [(atom.variable, atom.type) for atom in atoms(pattern)]
    found: dict[str, dict[str, None]] = {}
    for variable, type_ in types:
        mine = found.setdefault(variable, dict.fromkeys((roles.time, *always)))
        if type_ is None and roles.type is not None:
            mine[roles.type] = None
    keys = {roles.column(one.name) for one in query.equivalences}
    for leaf in chain.from_iterable(map(naming, conditions)):
        if not leaf.name or leaf.name.startswith(MARK) or leaf.variable not in found:
            continue  # no column of an event: the event as a whole, a parameter of a template, what must not happen
        if (column := roles.column(leaf.name)) not in keys:
            found[leaf.variable][column] = None
    return {variable: tuple(columns) for variable, columns in found.items()}


class BoundEvents:
    """Puts events into columns: as row numbers, as values of one column, or as structs of several; or ``Wide``.

    Parameters
    ----------
    bind : tuple of str or Wide
        Columns of the events; none for row numbers.
    schema : pyarrow.Schema
        Of the events.
    roles : Roles
        The times of the events are shown as all times of results are.
    query : QuerySyntax
        What is wide is named by its variables; a bare regular expression has none.
    is_time : bool
        Whether ticks are real time.
    derived : collection of str
        Columns that are made on the way: they are shown only where they are asked for.

    Attributes
    ----------
    names : tuple of str
        Columns of the events that must be known.

    Raises
    ------
    DataError
        A column is missing.
    """

    def __init__(
        self,
        bind: tuple[str, ...] | Wide,
        schema: pa.Schema,
        roles: Roles,
        query: QuerySyntax,
        *,
        is_time: bool,
        derived: Collection[str] = (),
    ) -> None:
        wide = bind if isinstance(bind, Wide) else None
        always = (wide.id,) if wide is not None and wide.id is not None else ()
        self.names = columns_of(bind)
        for name in (*self.names, *always):
            if name not in schema.names:
                raise missing_column(name, schema.names)
        self.roles = roles
        self._is_time = is_time
        self._keeps_rows = wide is not None and wide.keeps_rows
        self._by_variable: dict[str, tuple[str, ...]] | None = None
        if wide is not None:
            found = {
                variable: wide.columns or tuple(name for name in columns if name not in derived)
                for variable, columns in named_columns(query, roles, *always).items()
            }
            self._by_variable = found
            # times are known of all events that are kept: without another column they are kept for that alone
            others = dict.fromkeys(name for columns in found.values() for name in columns if name != roles.time)
            self.names = tuple(others) or (roles.time,)
        self.know(schema)

    def know(self, schema: pa.Schema) -> None:
        """Take over the schema of the events."""
        self._schema = schema

    def check_apart(self, variables: Iterable[str], keys: Collection[str]) -> None:
        """Refuse results with two columns of one name (``ACEP-D043``)."""
        for variable in variables:
            for name in [variable] if self._by_variable is None else self._named(variable):
                if name in keys:
                    raise DataError(
                        f"{name!r} stands for a variable and is a key column: the result would have two columns of "
                        "that name",
                        code="ACEP-D043",
                        hint="choose another name for the variable",
                    )

    def columns(self, bound: Mapping[str, pa.Array], known: Known) -> dict[str, pa.Array]:
        """The columns of the variables, of which ``bound`` has the rows: int64 with nulls, or lists of int64."""
        if self._by_variable is None:
            return {name: self.shown(rows, known.take) for name, rows in bound.items()}
        beside = {f"{ROWS}{name}": rows for name, rows in bound.items()} if self._keeps_rows else {}
        return beside | {
            shown: _in_place(rows, partial(self._value, column, known))
            for name, rows in bound.items()
            for shown, column in self._named(name).items()
        }

    def _named(self, variable: str) -> dict[str, str]:
        """The columns of a variable, by the names that they have in results."""
        assert self._by_variable is not None, "it is wide"
        return {f"{variable}.{column}": column for column in self._by_variable[variable]}

    def _value(self, column: str, known: Known, ids: Ints, missing: Bools) -> pa.Array:
        """A column of some events, of which the time is what ``start`` and ``end`` are made of, too."""
        if column != self.roles.time:
            return as_shown(known.take(column, ids, missing), column, self.roles)
        ticks = known.ticks_of(ids, missing)
        times = shown_type(self._schema.field(column).type, self.roles.time_format)
        return ticks.cast(times) if self._is_time else ticks

    def shown(self, rows: pa.Array, take: Take) -> pa.Array:
        """What stands for ``rows``: int64 with nulls, or lists of int64."""
        if not self.names:
            return rows
        return _in_place(rows, partial(self._values, take))

    def column(self, rows: Ints, take: Take, others: Sequence[str]) -> dict[str, pa.Array]:
        """A column of single events: ``row``, named like the one column, or ``event`` where there are several.

        Raises
        ------
        DataError
            ``ACEP-D043``: one of the ``others`` of the result has that name.
        """
        name = self.names[0] if len(self.names) == 1 else "event" if self.names else "row"
        if name in others:
            raise DataError(
                f"{name!r} stands for events and is another column: the result would have two columns of that name",
                code="ACEP-D043",
                hint="bind events by another column, or by several",
            )
        return {name: self.shown(pa.array(rows), take)}

    def of_batch(self, batch: EventBatch) -> Take:
        """Looks values up in the batch that has all rows asked for."""

        def take(name: str, rows: Ints, _: Bools) -> pa.Array:
            if not len(rows):
                return pa.nulls(0, self._schema.field(name).type)
            values = batch.data.column(name).take(pa.array(batch.at(rows)))
            return values.cast(self._schema.field(name).type)  # batches have texts as codes

        return take

    def _values(self, take: Take, rows: Ints, missing: Bools) -> pa.Array:
        columns = [take(name, rows, missing) for name in self.names]
        if self.roles.unit is not None or not self.names[0].startswith(ROWS):  # whole events come out as they are
            columns = [as_shown(values, name, self.roles) for values, name in zip(columns, self.names, strict=True)]
        if len(columns) == 1:
            return columns[0]
        return pa.StructArray.from_arrays(columns, names=list(self.names), mask=pa.array(missing))


def _in_place(rows: pa.Array, values: Callable[[Ints, Bools], pa.Array]) -> pa.Array:
    """Values of events in the places of their rows, which may stand in lists."""
    if not pa.types.is_list(rows.type):
        return values(to_numpy(pc.fill_null(rows, 0)), to_numpy(pc.is_null(rows)))
    flat = to_numpy(rows.flatten())
    return pa.ListArray.from_arrays(rows.offsets, values(flat, np.zeros(len(flat), np.bool_)))
