"""Types in files of rules: what tables hold against what is read, written and used as a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from acep_approx.query.rules.syntax import OLD, Call, Column, Rule, RuleFile, Table, Write
from acep_approx.query.syntax import Attribute, Constant, Expression, Read, Span
from acep_approx.query.types import KIND_OF_HELD, NAMES, Kind, TypeChecker

_WORDS = {"int": "whole numbers", "float": "numbers", "text": "text", "bool": "TRUE and FALSE", "time": "times"}


def check_types(file: RuleFile, schema: Mapping[str, Kind] | None = None) -> None:
    """Refuse rules that name attributes the events do not have, or mix types.

    Parameters
    ----------
    file : RuleFile
        It passed `acep_approx.query.rules.checks.check_rules`.
    schema : mapping of str to Kind, optional
        The attributes of the events, for example from ``query.types.kinds``. Without it only what tables and constants
        say is checked.

    Raises
    ------
    QueryError
        ACEP-Q060 to Q065 as of queries; ACEP-R010 (a column cannot hold the value).

    Examples
    --------
    >>> from acep_approx.query import parse_rules
    >>> file = parse_rules("TABLE t (id text, n int, KEY (id)) RULE r ON PATTERN A a WHERE store.t[a.x].n > 3 WITHIN 5")
    >>> check_types(file, {"x": "string"})
    >>> check_types(file, {"x": "number"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    acep_approx.errors.QueryError: ACEP-R010: the key column 'id' of 't' holds text, and this is a number ...
    """
    tables = {table.name: table for table in file.tables}
    for rule in file.rules:
        _RuleTypes(file.text, schema, tables).rule(rule)


def check_default(text: str, column: Column) -> None:
    """Refuse a default that its column cannot hold.

    Parameters
    ----------
    text : str
        The whole file.
    column : Column

    Raises
    ------
    QueryError
        ACEP-R005; ACEP-Q065 for a text that is no time.
    """
    if column.default is not None:
        _RuleTypes(text, None, {}).held(_Place("ACEP-R005", f"the column {column.name!r}"), column, column.default)


class _Place(NamedTuple):
    code: str
    words: str


class _RuleTypes(TypeChecker):
    """Finds the kind of expressions over the events, the tables and, in SET, the row that is written.

    Parameters
    ----------
    schema : mapping of str to Kind or None
        None: the events may have any attributes, of any type.
    tables : mapping of str to Table
    """

    def __init__(self, text: str, schema: Mapping[str, Kind] | None, tables: Mapping[str, Table]) -> None:
        super().__init__(text, {} if schema is None else schema)
        self.knows_events = schema is not None
        self.tables = tables
        self.old: Table | None = None

    def rule(self, rule: Rule) -> None:
        self.query(rule.query)
        if rule.when is not None:
            self.condition(rule.when)
        for action in rule.actions:
            if isinstance(action, Call):
                for argument in action.arguments:
                    self.kind(argument)
            else:
                self._write(action)

    def _write(self, action: Write) -> None:
        table = self.tables[action.table]
        self._key(table, action.key)
        self.old = table
        for one in action.sets:
            column = table.column(one.column)
            assert column is not None
            place = _Place("ACEP-R010", f"the column {column.name!r} of {table.name!r}")
            self.held(place, column, one.value)
        self.old = None

    def kind(self, expr: Expression) -> Kind:
        """The kind of an expression; ``old.level`` is what the column holds."""
        if self.old is not None and isinstance(expr, Attribute) and expr.variable == OLD:
            column = self.old.column(expr.name)
            assert column is not None
            return KIND_OF_HELD[column.holds]
        return super().kind(expr)

    def attribute(self, name: str, span: Span) -> Kind:
        """The kind of an attribute of the events."""
        return super().attribute(name, span) if self.knows_events else "unknown"

    def read(self, read: Read) -> Kind:
        """The kind of the column that is read; the key must be what the table is keyed by."""
        table = self.tables[read.table]
        self._key(table, read.keys)
        if read.column is None:
            return "boolean"
        column = table.column(read.column)
        assert column is not None
        return KIND_OF_HELD[column.holds]

    def _key(self, table: Table, keys: tuple[Expression, ...]) -> None:
        for column, value in zip(table.keys, keys, strict=True):
            place = _Place("ACEP-R010", f"the key column {column.name!r} of {table.name!r}")
            if isinstance(value, Constant) and value.value is None:
                hint = "no row has NULL in its key"
                raise self.fault(place.code, f"{place.words} is never NULL", value.span, hint)
            self.held(place, column, value)

    def held(self, place: _Place, column: Column, value: Expression) -> None:
        found, wanted = self.kind(value), KIND_OF_HELD[column.holds]
        given = value.value if isinstance(value, Constant) else None
        if wanted == "time" and isinstance(value, Constant) and isinstance(given, str):
            self.time(value, given)
            return
        if found not in (wanted, "unknown"):
            message = f"{place.words} holds {_WORDS[column.holds]}, and this is {NAMES[found]}"
            raise self.fault(place.code, message, value.span, _hint(column, value, found))
        if (
            column.holds == "int"
            and isinstance(given, float)
            and not (given.is_integer() and place.code == "ACEP-R010")
        ):
            hint = f"write {given:.0f}, or declare the column: {column.name} float"
            raise self.fault(place.code, f"{place.words} holds whole numbers, and this is {given!r}", value.span, hint)
        if isinstance(given, int) and not -(2**63) <= given < 2**63:
            raise self.fault("ACEP-Q008", "the number is too large", value.span, "whole numbers have 64 bits")


_TYPES: dict[Kind, str] = {"number": "float", "string": "text", "boolean": "bool", "time": "time"}


def _hint(column: Column, value: Expression, found: Kind) -> str:
    if isinstance(value, Constant):
        if column.holds == "text":
            shown = str(value.value).upper() if isinstance(value.value, bool) else value.value
            return f"text stands in quotes: '{shown}'"
        if column.holds == "time":
            return "write it as '2013-01-31' or '2013-01-31T12:30:00'"
        if column.holds == "bool":
            return "write TRUE or FALSE"
        return "numbers stand without quotes" if found == "string" else "write a number"
    if found == "duration":
        return "tables hold no durations, but numbers of a unit: (b.ts - a.ts) / 1 s"
    return f"declare what it holds: {column.name} {_TYPES[found]}" if found in _TYPES else "no column can hold it"
