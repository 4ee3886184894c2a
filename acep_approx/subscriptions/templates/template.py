"""A template: queries that differ in constants alone, as one plan that reads the constants from columns.

Source: Demers et al., CIDR 2007, section 4.3.1 (equal states are merged). Deviation: queries of one template are equal
by their text, and their constants are columns of the events that are tried for them.

They stay in columns of their own until a table of queries has them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.automaton.automaton import START
from acep_approx.engines.runs.event_columns import Kind
from acep_approx.errors import LimitError, QueryError, UsageError
from acep_approx.events.columns import to_numpy
from acep_approx.planning.cel import left_associated, plan_unbound
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.cel.syntax import CelQuery, computed_in
from acep_approx.query.parameters import MARK, as_attributes, parameters_of
from acep_approx.query.shape import MIRRORED, walk
from acep_approx.query.syntax import Attribute, Binary, Expression, Machine, Moment, Parameter, QuerySyntax, Window
from acep_approx.subscriptions.templates.literals import Syntax, text_of, uses
from acep_approx.subscriptions.templates.query_table import ARROW, QueryTable, kind_of

_LONGEST = 2**40
"""Windows above may be too long in microseconds: they are checked as those of single queries are."""
_KINDS = "a number, a text, TRUE or FALSE, or a time"


@dataclass(frozen=True)
class Test:
    """``own op constant``: what the index and the pairs ask of an event and the constants of a query."""

    own: Expression
    op: str
    parameter: str


@dataclass(frozen=True)
class Template:
    """Queries that differ in constants alone.

    Parameters
    ----------
    syntax : QuerySyntax or CelQuery
        With parameters.
    parameters : tuple of str
        Their names, in the order of the text.
    plan : Plan
        Of the query in which attributes named ``:parameter`` stand for them.
    window : str or None
        The parameter that gives the window.
    horizon : str, optional
        How long partial matches are kept inside a load budget, where there is no window.
    """

    syntax: Syntax
    parameters: tuple[str, ...]
    plan: Plan
    window: str | None
    horizon: str | None = None

    @classmethod
    def of(cls, syntax: Syntax) -> Template | None:
        """The template of a query with parameters; None where its queries must be run each by itself.

        That is so for automata written by hand and bare regular expressions, for windows that count events, where
        complete matches wait or are tested once more, where RETURN shows a parameter, and in CEL where a part is a
        stream of its own; and where it could be planned with constants alone, as their places say more than attributes.
        """
        try:
            return cls._of_cel(syntax) if isinstance(syntax, CelQuery) else cls._of_pattern(syntax)
        except (QueryError, LimitError):  # what is wrong with each of its queries is told of that
            return None

    @classmethod
    def _of_cel(cls, syntax: CelQuery) -> Template | None:
        if len(left_associated(syntax)) > 1:
            return None
        by = None if syntax.window is None else syntax.window.parameter
        plan = plan_unbound(syntax, allows_parameters=True)
        return cls(syntax, tuple(uses(syntax)), plan, None if by is None else by.name)

    @classmethod
    def _of_pattern(cls, syntax: QuerySyntax) -> Template | None:
        with_attributes = as_attributes(syntax)
        if with_attributes is None or isinstance(syntax.pattern, Machine) or syntax.is_regex:
            return None
        if syntax.window.unit == "events":
            return None
        by = syntax.window.parameter
        if by is not None:  # the cells have one window
            with_attributes = replace(with_attributes, window=Window(0, syntax.window.unit, syntax.window.span))
        made = plan(with_attributes, "auto" if by is None else "runs")
        if made.registers is not None and (made.registers.needs_list or made.registers.negations):
            return None
        if made.looks_to_the_start:
            return None
        return cls(syntax, parameters_of(syntax), made, by.name if by is not None else None)

    @cached_property
    def text(self) -> str:
        """What it can be made of again."""
        return text_of(self.syntax)

    def can_have(self, constants: Mapping[str, object]) -> bool:
        """Whether these are constants that a table can hold; the check of the query tells about all others."""
        for value in constants.values():
            if isinstance(value, Moment) or not isinstance(value, int | float | str):
                return False
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                return False
        window = 0 if self.window is None else constants[self.window]
        return isinstance(window, int) and not isinstance(window, bool) and 0 <= window <= _LONGEST

    @cached_property
    def begins(self) -> int:
        """The letters that can begin a run, as a mask."""
        arcs = self.plan.automaton.arcs
        return sum(1 << letter for letter in {arc.letter for arc in arcs if arc.source == START})


def with_key(plan: Plan) -> Plan:
    """A plan of a template that has no key, with the attribute as one that all letters ask to equal one constant.

    Events of another value are nothing to a query, so that those of each value need only be tried for its queries.
    """
    if plan.keys or plan.counted != "nothing":
        return plan
    tests = [{test_of(condition) for condition in letter.conditions} for letter in plan.letters]
    common = {test for test in set.intersection(*tests) if test is not None and test.op == "="}
    names = [test.own.name for test in common if isinstance(test.own, Attribute)]
    return replace(plan, implied_key=min(names, default=None))


@lru_cache(maxsize=4096)
def asks_parameter(expression: Expression) -> bool:
    """Whether the constants of a query have a part in an expression."""
    return any(isinstance(node, Attribute) and node.name.startswith(MARK) for node in walk(expression))


def test_of(condition: Expression) -> Test | None:
    """A condition on one event as a test against one constant; None where it is something else."""
    if not isinstance(condition, Binary) or condition.op not in MIRRORED:
        return None
    for own, other, op in (
        (condition.left, condition.right, condition.op),
        (condition.right, condition.left, MIRRORED[condition.op]),
    ):
        is_constant = isinstance(other, Attribute) and other.name.startswith(MARK)
        if is_constant and not asks_parameter(own) and any(isinstance(node, Attribute) for node in walk(own)):
            return Test(own, op, other.name.removeprefix(MARK))  # type: ignore[union-attr]
    return None


_CODES: dict[Kind, str] = {"int": "q", "float": "d"}


class Alike(NamedTuple):
    """Some queries of a template: the kinds of its parameters, and for each a column of constants."""

    template: Template
    kinds: tuple[Kind, ...]
    columns: tuple[Sequence[Any], ...]

    @property
    def queries(self) -> int:
        """How many."""
        return len(self.columns[0])

    @property
    def key(self) -> tuple[object, ...]:
        """The same for queries that one table can hold."""
        return id(self.template), *self.kinds

    @classmethod
    def one(cls, template: Template, constants: Mapping[str, Any]) -> Alike:
        """A query with constants that the template can have."""
        values = [constants[name] for name in template.parameters]
        return cls(template, tuple(map(kind_of, values)), tuple((value,) for value in values))

    @classmethod
    def of(cls, template: Template, rows: pa.RecordBatch) -> Alike | None:
        """A query for each of some rows that ``checked`` gave; None where that must be looked at row by row."""
        columns = [rows.column(name) for name in template.parameters]
        kinds = [kind for column in columns if (kind := _kind_of(column.type))]
        if len(kinds) < len(columns):
            return None
        alike = cls(template, tuple(kinds), tuple(map(_values, columns, kinds)))
        if template.window is not None:
            windows = alike.columns[template.parameters.index(template.window)]
            if not all(template.can_have({template.window: one}) for one in (min(windows), max(windows))):
                return None
        return alike


class Shared:
    """What queries have in common that came together: a template, and constants of the same kinds.

    Parameters
    ----------
    template : Template
    kinds : tuple of {"int", "float", "truth", "text"}
        Of the constants, in the order of the parameters: one table holds those of the same kinds.
    """

    __slots__ = ("_columns", "_gone", "_numbers", "key", "kinds", "template")

    def __init__(self, template: Template, kinds: Sequence[Kind]) -> None:
        self.template, self.kinds = template, tuple(kinds)
        self.key = id(template), *self.kinds  # as of ``Alike``
        self._begin()

    def _begin(self) -> None:
        self._numbers = array("q")
        self._gone: set[int] = set()
        self._columns: list[Any] = [array(_CODES[kind]) if kind in _CODES else [] for kind in self.kinds]

    def new_table(self) -> QueryTable:
        """A table without rows for queries like these."""
        return QueryTable(dict(zip(self.template.parameters, self.kinds, strict=True)))

    # --- those that wait for their table ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._numbers) - len(self._gone)

    def add(self, numbers: Iterable[int], columns: Iterable[Sequence[Any]]) -> None:
        """Hold the constants of some queries, a column for each parameter."""
        self._numbers.extend(numbers)
        for column, values in zip(self._columns, columns, strict=True):
            column.extend(values)

    def add_table(self, numbers: Iterable[int], table: pa.Table) -> None:
        """The same, of what ``waiting`` gave, or another table with columns named as the parameters."""
        self.add(numbers, map(_values, table.select(self.template.parameters).combine_chunks().columns, self.kinds))

    def drop(self, number: int) -> None:
        """Forget the constants of a query."""
        self._gone.add(number)

    def waiting(self) -> tuple[Ints, pa.Table]:
        """The numbers of those that wait, and a column with the constants for each parameter."""
        numbers = np.array(self._numbers, np.int64)
        columns = [
            pa.array(np.array(column) if kind in _CODES else column, ARROW[kind])
            for column, kind in zip(self._columns, self.kinds, strict=True)
        ]
        table = pa.table(dict(zip(self.template.parameters, columns, strict=True)))
        if self._gone:
            stay = ~np.isin(numbers, [*self._gone])
            numbers, table = numbers[stay], table.filter(pa.array(stay))
        return numbers, table

    def take(self) -> tuple[Ints, pa.Table]:
        """The same; they wait no more."""
        found = self.waiting()
        self._begin()
        return found


def _kind_of(type_: pa.DataType) -> Kind | None:
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return "text"
    if pa.types.is_integer(type_) and type_ != pa.uint64():  # the largest of these are beyond all constants
        return "int"
    if type_ in (pa.float32(), pa.float64()):
        return "float"
    return "truth" if pa.types.is_boolean(type_) else None


def _values(column: pa.Array, kind: Kind) -> list[Any]:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values: list[Any] = to_numpy(column.cast(ARROW[kind])).tolist() if kind in _CODES else column.to_pylist()
    return values


# --- the constants that users give: all that none can be is refused before a query is made ------------------------


def require_columns(syntax: Syntax, columns: list[str]) -> None:
    """See to it that a table has a column for each parameter.

    Raises
    ------
    UsageError
        ``ACEP-U070``: one is missing.
    """
    for name in uses(syntax):
        if name not in columns:
            raise UsageError(
                f"the table has no column {name!r}, and the template asks for :{name}",
                code="ACEP-U070",
                hint=f"its columns are {', '.join(columns) or '(none)'}; give it a column {name!r}",
            )


def checked(syntax: Syntax, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Rows of constants of which each can stand in the place of its parameter; times are texts, see ``constants_in``.

    Parameters
    ----------
    syntax : QuerySyntax or CelQuery
        The template.
    rows : pyarrow.RecordBatch
        A column for each parameter.
    first : int
        The number of the first row.

    Raises
    ------
    UsageError
        ``ACEP-U070``: a constant is NULL or NaN, of a type that no constant has, or of another one than its place.
    QueryError
        ``ACEP-Q045``: a window below 0, without an end, or a fraction of ticks.

    Complexity: O(rows), vectorised.
    """
    window = None if syntax.window is None else syntax.window.parameter
    outputs = computed_in(syntax) if isinstance(syntax, CelQuery) else [output.value for output in syntax.outputs]
    shown = {node.name for node in outputs if isinstance(node, Parameter)}
    given = {name: _plain(rows.column(name)) for name in uses(syntax)}
    for name, column in given.items():
        _refuse_nulls(name, column, first)
        if not _is_constant(column.type):
            what = f"the column {name!r} holds values of type {column.type}, and no constant is one"
            _refuse(what, f"it is {_KINDS}")
        if window is not None and name == window.name:
            _check_windows(syntax, name, column, first)
        if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py():
            _refuse(f"the column {name!r} has an infinite number", "write one that a query can have, such as 1e308")
        if pa.types.is_temporal(column.type) and name in shown:
            what = f":{name} is a time, and a result cannot show one that stands in the query"
            _refuse(what, "compare it with a column of times, and show that column")
    return pa.RecordBatch.from_pydict(given) if given else rows


def constants_in(syntax: Syntax, rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The constants of each of some rows, by the names of the parameters."""
    names = [*uses(syntax)]
    if not names:
        return ({} for _ in range(rows.num_rows))
    columns = [_python_values(name, rows.column(name)) for name in names]
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _python_values(name: str, column: pa.Array) -> list[Any]:
    """Values as Python has them; times as texts in ISO 8601, in UTC where they have a zone."""
    if not pa.types.is_temporal(column.type):
        values: list[Any] = column.to_pylist()
        return values
    zone = "UTC" if pa.types.is_timestamp(column.type) and column.type.tz else None
    try:
        return [Moment(value.isoformat()) for value in column.cast(pa.timestamp("us", zone)).to_pylist()]
    except (pa.ArrowInvalid, ValueError, OverflowError):
        what = f"the column {name!r} holds a time that is finer than microseconds, or before the year 1 or after 9999"
        _refuse(what, "round these times to microseconds")


def _plain(column: pa.Array) -> pa.Array:
    """Values without a dictionary; half floats as floats."""
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary_decode())
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _is_constant(type_: pa.DataType) -> bool:
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    is_time = pa.types.is_timestamp(type_) or pa.types.is_date(type_)
    return bool(is_text or is_number or is_time or pa.types.is_boolean(type_))


def _refuse_nulls(name: str, column: pa.Array, first: int) -> None:
    wrong = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    if pc.any(wrong).as_py():
        row = first + pc.index(wrong, True).as_py()
        what = f"the column {name!r} has no value in row {row}, and the template asks for :{name}"
        _refuse(what, "give each query a value for each parameter, or leave these rows out")


def _check_windows(syntax: Syntax, name: str, column: pa.Array, first: int) -> None:
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        what = f"the window is WITHIN :{name}, and the column {name!r} holds values of type {column.type}"
        _refuse(what, "give it a column of numbers")
    window = syntax.window
    assert window is not None, "it has a parameter"
    values = column.to_numpy(zero_copy_only=False)
    wrong = (values < 0) | ~np.isfinite(values)
    hint = "a window is 0 or longer"
    if window.unit in ("events", "ticks"):
        wrong |= values != np.floor(values)
        hint = "events and ticks are whole numbers from 0; for time write a unit, as in WITHIN :{name} s"
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        start, end = window.span
        raise QueryError(
            f"a window of {values[row]} {window.unit} in row {first + row} of the table",
            code="ACEP-Q045",
            hint=hint.format(name=name),
            text=syntax.text,
            start=start,
            end=end,
        )


def _refuse(what: str, hint: str) -> NoReturn:
    raise UsageError(what, code="ACEP-U070", hint=hint)
