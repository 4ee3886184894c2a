"""Structural mistakes in files of rules. `check_rules` is the only entry.

Tables are checked first, then rules in their order: the names in their reads, their queries (``query.checks``), as of
which events they read, WHEN and actions, and types as far as tables and constants tell them. Types against the events'
columns are checked by `acep_approx.query.rules.types.check_types`, when these are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NoReturn

from acep_approx.errors import UnsupportedError
from acep_approx.query.assemble import did_you_mean, no_variable
from acep_approx.query.checks import check, check_names
from acep_approx.query.printer import event_name, field_name, to_text
from acep_approx.query.rules.named_events import (
    as_of,
    can_be_missing,
    certain,
    ends_late,
    events_of_key,
    is_late,
    known_variables,
    last_variable,
    nodes_of_key,
    reads_of,
    rewritten,
    several,
)
from acep_approx.query.rules.parser import EXAMPLE
from acep_approx.query.rules.syntax import OLD, Call, Rule, RuleFile, Table, Write, expressions, place
from acep_approx.query.rules.types import check_default, check_types
from acep_approx.query.shape import naming, negated_variables, passing_less, replaced, variables
from acep_approx.query.syntax import (
    Aggregate,
    Attribute,
    Constant,
    Expression,
    IgnoreRule,
    Machine,
    MachineArc,
    QuerySyntax,
    Read,
    RegisterValue,
    Span,
    Written,
)

_TABLE = re.compile(r"(?:EXISTS\s+)?store\s*\.\s*(\w+)", re.IGNORECASE)


class _RuleChecker(Written):
    """Checks one rule: the names in its reads, its query, as of which events it reads, WHEN and actions."""

    def __init__(self, rule: Rule, tables: dict[str, Table]) -> None:
        self.rule = rule
        self.text = rule.query.text
        self.query = rule.query
        self.tables = tables
        self.known = known_variables(rule.query.pattern)
        self.several = several(rule.query.pattern)
        self.negated = negated_variables(rule.query.pattern)

    def check(self) -> None:
        self._check_names()
        check(self.query)
        self._check_events()
        if self.rule.when is not None:
            self._check_fired()
            self._check_when(self.rule.when)
        if self.rule.each == "point" and ends_late(self.query.pattern):
            hint = "write FOR EACH MATCH"
            message = "matches of this pattern are known when their window has closed, and not at an event"
            self.fail("ACEP-R019", message, self.query.pattern.span, hint)
        for action in self.rule.actions:
            if isinstance(action, Write):
                self._check_write(action)
            else:
                self._check_call(action)

    @cached_property
    def certain(self) -> frozenset[str]:
        """The variables that every match binds, were no event missing."""
        return certain(self.query.pattern)

    @cached_property
    def last(self) -> str | None:
        """The variable of the last event of every match."""
        return last_variable(self.query)

    def _table_of(self, name: str, span: Span) -> Table:
        if name not in self.tables:
            known = did_you_mean(name, self.tables) + f"tables are {', '.join(self.tables)}"
            hint = known if self.tables else f"declare it before the rules: TABLE {name} (id text, ..., KEY (id))"
            self.fail("ACEP-R007", f"no table {name!r}", span, hint)
        return self.tables[name]

    def _check_count(self, table: Table, keys: tuple[Expression, ...], span: Span) -> None:
        if len(keys) == len(table.key):
            return
        columns = f"{len(table.key)} column{'s' if len(table.key) != 1 else ''}, {', '.join(table.key)}"
        message = f"the key of {table.name!r} has {columns}; here {'is' if len(keys) == 1 else 'are'} {len(keys)}"
        self.fail("ACEP-R009", message, span, "give one value for each, in that order")

    # --- reads of tables ------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        """Check which tables, columns and events are named; the query itself may be wrong still."""
        outputs = [output.value for output in self.query.outputs]
        for expression in (*self.query.predicates, *outputs, *(() if self.rule.when is None else (self.rule.when,))):
            self._check_variables(expression, None)
        for action in self.rule.actions:
            for expression in expressions(action):
                self._check_variables(expression, action.table if isinstance(action, Write) else "")
        for predicate in self.query.predicates:
            for read in reads_of(predicate):
                self._check_named(read, is_output=False)
        for output in self.query.outputs:
            for read in reads_of(output.value):
                self._check_named(read, is_output=True)
        for arc, expression in _of_arcs(self.query):
            for read in reads_of(expression):
                self._check_row(read)
                self._check_arc(arc, read)
        for read in () if self.rule.when is None else reads_of(self.rule.when):
            self._check_row(read)
            if read.at is not None:
                hint = "WHEN reads what holds when the match is complete: leave AT out, or move the condition to WHERE"
                self.fail("ACEP-R022", "WHEN knows no AT", read.at.span, hint)

    def _check_events(self) -> None:
        """Check what conditions and results of the query read of tables; the query itself passed its checks."""
        for predicate in self.query.predicates:
            for read in reads_of(predicate):
                self._check_key(read)
                if is_late(read, self.query):
                    self._check_late(read, predicate)
        for output in self.query.outputs:
            for read in reads_of(output.value):
                self._check_key(read)

    def _check_variables(self, expression: Expression, written: str | None) -> None:
        """Refuse tables in the place of events; ``written``: by the action, ``""`` by CALL, None outside actions."""
        for node in naming(expression):
            table = self.tables.get(str(node.variable))
            if table is not None and node.variable not in (*self.known, OLD):
                keys = ", ".join(f"{self.known[-1] if self.known else 't'}.{name}" for name in table.key)
                hint = f"a table is read by its key: store.{table.name}[{keys}].{node.name or table.key[0]}"
                if written is not None:
                    hint = "an action knows its events, and in SET the row it writes, as `old`"
                if table.name == written:
                    hint = f"in SET, the row before this action is `old`: old.{node.name}"
                self.fail("ACEP-Q030", f"{table.name!r} is a table, and no variable of the pattern", node.span, hint)

    def _check_named(self, read: Read, *, is_output: bool) -> None:
        self._check_row(read)
        if read.at is not None:
            self._check_at(read.at, is_output=is_output)
        elif not any(isinstance(node, Attribute | Aggregate | RegisterValue) for node in nodes_of_key(read)):
            hint = f"say when: {_with_at(read, self.known[-1] if self.known else 'a')}"
            self.fail("ACEP-R021", f"the key of {read.table!r} names no event", read.span, hint)

    def _check_row(self, read: Read) -> None:
        named = _TABLE.match(self.query.text, *read.span)
        table = self._table_of(read.table, named.span(1) if named else read.span)
        if read.column is not None and table.column(read.column) is None:
            column = (read.span[1] - len(field_name(read.column)), read.span[1])
            self.fail("ACEP-R008", *no_column(table, read.column, column))
        self._check_count(table, read.keys, read.span)
        for node in (*nodes_of_key(read), *((read.at,) if read.at else ())):
            if isinstance(node, Attribute) and isinstance(node.index, int):
                name = node.variable
                hint = f"read it by the first or the last event: {name}[1], {name}[{name}.LEN]"
                self.fail("ACEP-Q098", f"a read of a table cannot name {event_name(node)}", node.span, hint)
            if isinstance(node, Read):
                hint = "keep what is needed in one table, or compare both reads with attributes of events"
                self.fail("ACEP-R023", "the key of a read is read from a table itself", node.span, hint)

    # --- the event behind AT ------------------------------------------------------------------------------

    def _check_at(self, at: Attribute, *, is_output: bool) -> None:
        variable = str(at.variable)
        if variable not in self.known:
            raise no_variable(self, variable, self.known, at.span)
        if at.index is not None and variable not in self.several:
            message = f"{variable!r} is one event and takes no index"
            self.fail("ACEP-Q033", message, at.span, f"write AT {variable}")
        if is_output and variable in self.negated:
            hint = "an event that must not happen is in no match"
            self.fail("ACEP-Q032", f"{variable!r} is negated", at.span, hint)
        if is_output and variable in self.several and at.index not in ("first", "last"):
            hint = f"write AT {variable}[1] or AT {variable}[{variable}.LEN]"
            self.fail("ACEP-R022", f"{variable!r} stands for several events, RETURN needs one value", at.span, hint)

    def _check_arc(self, arc: MachineArc | IgnoreRule, read: Read) -> None:
        """An arc reads as of its own event: only of that the value is known when the arc is taken."""
        if read.at is not None and (read.at.variable != arc.variable or read.at.index is not None):
            hint = "an arc reads what holds at its own event: leave AT out"
            self.fail("ACEP-R022", "AT is another event than that of the arc", read.at.span, hint)
        for node in nodes_of_key(read):
            if isinstance(node, RegisterValue):
                hint = "name the row by attributes of the event"
                self.fail("ACEP-R021", f"a key cannot be of a register such as {node.name!r}", node.span, hint)
        if read.at is None and not any(isinstance(node, Attribute) for node in nodes_of_key(read)):
            hint = f"say when: {_with_at(read, arc.variable or 't')}"
            self.fail("ACEP-R021", f"the key of {read.table!r} names no event", read.span, hint)

    # --- keys ---------------------------------------------------------------------------------------------

    def _check_key(self, read: Read) -> None:
        for node in nodes_of_key(read):
            if isinstance(node, Aggregate):
                hint = f"name one event, {node.variable}[1].{node.name or 'x'}; in WHEN aggregates may be keys"
                self.fail("ACEP-R021", f"{to_text(node)} in a key is about several events", node.span, hint)
            if isinstance(node, RegisterValue):
                hint = "name the row by attributes of events"
                self.fail("ACEP-R021", f"a key cannot be of a register such as {node.name!r}", node.span, hint)
        events = events_of_key(read, self.query)
        if read.at is None and len(events) > 1:
            first, second = map(event_name, events[:2])
            hint = f"say when: {_with_at(read, second)}"
            message = f"the key of {read.table!r} names two events, {first} and {second}"
            self.fail("ACEP-R021", message, read.span, hint)

    def _check_late(self, read: Read, predicate: Expression) -> None:
        query, at = self.query, as_of(read, self.query)
        assert at is not None
        others = events_of_key(rewritten(read, query), query)
        other, at_event = next(event_name(one) for one in others if one != at), event_name(at)
        reason = None
        if not query.selection.is_all:
            clause = query.selection.clauses[0]
            reason, way = f"with {clause}", f"leave {clause} out"
        elif found := passing_less(query):
            reason, way = f"with {found[0]}", "use skip_till_any_match"
        elif names := sorted(variables(predicate) & self.negated):
            reason, way = f"in a condition about {names[0]}, which is negated", f"let the key be of {at_event}"
        if reason is None:
            return
        message = f"the key of {read.table!r} is of {other} and read AT {at_event}: such a condition is known only for "
        message += f"complete matches, which does not work yet {reason}"
        hint = f"{way}; where [attr] is in force, the key may be that attribute of any event"
        raise query.fault("ACEP-Q900", message, read.span, hint, UnsupportedError)

    # --- WHEN ---------------------------------------------------------------------------------------------

    def _check_when(self, when: Expression) -> None:
        self._check_expression(when, "WHEN")
        for node in naming(when):
            if node.variable in self.negated:
                hint = "an event that must not happen is in no match"
                self.fail("ACEP-R017", f"{node.variable!r} is negated", node.span, hint)
        if not any(naming(when)) and not any(reads_of(when)):
            hint = "a condition is about events and tables: WHEN store.room[b.location].ward != 'closed'"
            self.fail("ACEP-Q043", "the condition is about no event and no table", when.span, hint)

    def _check_expression(self, expression: Expression, where: str) -> None:
        """Refuse what no complete match has: unknown variables, and several events where one value is needed."""
        pattern = self.query.pattern
        registers = {one.name for one in pattern.registers} if isinstance(pattern, Machine) else set()
        for node in naming(expression):
            if node.variable is None and node.name in registers:
                hint = f"show it in the results: RETURN {node.name}"
                self.fail("ACEP-R018", f"{where} knows the events of a match, and no registers", node.span, hint)
            if node.variable is None and node.name in self.known:
                hint = f"name an attribute of the event: {node.name}.x"
                self.fail("ACEP-Q048", f"{node.name!r} is an event, and no value", node.span, hint)
            if not self.known:
                hint = "give the arc's event a variable: q0 -> q1 ON Tick t"
                self.fail("ACEP-Q030", f"no variable {node.variable!r} in the pattern", node.span, hint)
        check_names(self.query, expression, {*self.known}, self.several)
        for node in naming(expression):
            variable, name = node.variable, node.name
            if isinstance(node, Aggregate) and node.prior:
                hint = f"write {node.function}({variable}[]...) for all events"
                self.fail("ACEP-R018", f"there is no i in {where}", node.span, hint)
            if isinstance(node, Attribute) and variable in self.several and node.index not in ("first", "last"):
                hint = f"write {variable}[1].{name}, {variable}[{variable}.LEN].{name} or an aggregate"
                message = f"{variable!r} stands for several events, {where} needs one value"
                self.fail("ACEP-R018", message, node.span, hint)

    def _check_fired(self) -> None:
        """Rules with WHEN have a column that says for which matches it held."""
        outputs = {output.name: output.span for output in self.query.outputs}
        if FIRED in (*known_variables(self.query.pattern), *outputs):
            hint = "choose another name; the column says for which matches WHEN held"
            message = f"the name {FIRED!r} is taken: results of rules with WHEN have a column {FIRED!r} of their own"
            self.fail("ACEP-Q901", message, outputs.get(FIRED, self.query.pattern.span), hint)

    # --- actions ------------------------------------------------------------------------------------------

    def _check_call(self, action: Call) -> None:
        for argument in action.arguments:
            for node in naming(argument):
                if node.variable == OLD and OLD not in self.known:
                    hint = "give CALL what events have; only SET knows the row as it was"
                    self.fail("ACEP-R015", f"{to_text(node)} stands outside SET", node.span, hint)
            self._check_value(argument)

    def _check_write(self, action: Write) -> None:
        table = self._table_of(action.table, place(action, "table"))
        if table.is_static:
            hint = f"leave STATIC out of TABLE {table.name}"
            message = f"{table.name!r} is STATIC: no rule writes it"
            self.fail("ACEP-R011", message, place(action, "table"), hint)
        self._check_form(action, table)
        self._check_columns(action, table)
        self._check_count(table, action.key, place(action, "AT"))
        if any(one.variable == OLD for value in action.sets for one in naming(value.value)) and OLD in self.known:
            hint = "give the variable of the pattern another name"
            message = "in SET, `old` is the row before this action, and here it is a variable of the pattern, too"
            at = next(one for value in action.sets for one in naming(value.value) if one.variable == OLD)
            self.fail("ACEP-R015", message, at.span, hint)
        for key in action.key:
            for node in naming(key):
                if node.variable == OLD and OLD not in self.known:
                    hint = "the key says which row it is: name it by events, AT (b.hcw)"
                    self.fail("ACEP-R015", f"{to_text(node)} stands outside SET", node.span, hint)
            self._check_value(key)
        for one in action.sets:
            self._check_value(self._without_old(one.value, table))

    def _check_form(self, action: Write, table: Table) -> None:
        kind, name = action.kind.upper(), table.name
        value = table.values[0].name if table.values else "level"
        key = ", ".join(f"b.{column}" for column in table.key)
        if not action.key:
            message = f"{kind} does not say which row"
            self.fail("ACEP-R014", message, action.span, f"name it by its key: AT ({key})")
        if action.kind == "delete" and action.sets:
            hint = f"write DELETE {name} AT ({key}), or UPDATE with SET"
            self.fail("ACEP-R014", "DELETE sets no columns", action.sets[0].span, hint)
        if action.kind == "update" and not action.sets:
            hint = f"write UPDATE {name} SET {value} = ... AT ({key})"  # noqa: S608  no SQL
            self.fail("ACEP-R014", "UPDATE without SET changes nothing", action.span, hint)

    def _check_columns(self, action: Write, table: Table) -> None:
        seen: set[str] = set()
        for one in action.sets:
            span = place(action, f"SET {one.column}") if action.places else one.span
            if table.column(one.column) is None:
                self.fail("ACEP-R008", *no_column(table, one.column, span))
            if one.column in table.key:
                hint = "a row keeps its key: DELETE it, and UPSERT another one"
                self.fail("ACEP-R012", f"{one.column!r} is in the key of {table.name!r}", span, hint)
            if one.column in seen:
                hint = "keep one of the two; `old` is the same row in both"
                self.fail("ACEP-R013", f"one action sets {one.column!r} twice", one.span, hint)
            seen.add(one.column)

    def _without_old(self, value: Expression, table: Table) -> Expression:
        def change(node: Expression) -> Expression | None:
            if not isinstance(node, Attribute):
                return None
            if node.variable is None and table.column(node.name) is not None:
                hint = f"write old.{node.name} for the row before this action"
                self.fail("ACEP-Q048", f"{node.name!r} is of no variable", node.span, hint)
            if node.variable != OLD:
                return None
            if node.index is not None:
                self.fail("ACEP-R015", "`old` is one row and takes no index", node.span, f"write old.{node.name}")
            if table.column(node.name) is None:
                self.fail("ACEP-R008", *no_column(table, node.name, node.span))
            return Constant(None, node.span)

        for node in naming(value):
            if isinstance(node, Aggregate) and node.variable == OLD:
                self.fail("ACEP-R015", "`old` is one row: there is nothing to aggregate", node.span)
        return replaced(value, change)

    def _check_value(self, value: Expression) -> None:
        for read in reads_of(value):
            hint = "an action knows its events, and in SET the row it writes, as `old`; test other tables in WHEN"
            self.fail("ACEP-R020", "an action reads no tables", read.span, hint)
        self._check_expression(value, "an action")
        for node in naming(value):
            self._check_bound(node)
            if self.rule.each == "point":
                self._check_point(node)

    def _check_bound(self, node: Attribute | Aggregate) -> None:
        variable = str(node.variable)
        there = ", ".join(name for name in self.known if name in self.certain)
        if variable in self.negated:
            hint = f"an action may name what every match has: {there}"
            self.fail("ACEP-R017", f"{variable!r} is negated: a match has no such event", node.span, hint)
        if variable not in self.certain:
            some = f"an action may name what every match has: {there}" if there else "no event is in every match"
            hint = f"{some}; or write a rule for each case"
            self.fail("ACEP-R017", f"not every match has an event {variable!r}", node.span, hint)
        if can_be_missing(self.query, variable):
            errors, weight = self.query.errors, dict(self.query.weights).get(variable, 1)
            hint = f"WEIGHTS ({variable} = {errors + 1}) lets no match do without it"
            message = f"{variable!r} can be missing: its weight {weight} is not above ERRORS {errors}"
            self.fail("ACEP-R016", message, node.span, hint)

    def _check_point(self, node: Attribute | Aggregate) -> None:
        """Once for an event: what is named is of that event, or the same in all matches that it completes."""
        variable = node.variable
        if isinstance(node, Attribute):
            if variable == self.last and (variable not in self.several or node.index == "last"):
                return
            if node.name in {one.name for one in self.query.equivalences}:
                return
        shown = f"{self.last}[{self.last}.LEN]" if self.last in self.several else self.last
        shared = ", ".join(f"[{one.name}]" for one in self.query.equivalences)
        may = [f"{shown}, its last event"] if self.last else []
        may += [f"attributes in {shared}"] if shared else []
        hint = f"name {' or '.join(may)}; or write FOR EACH MATCH" if may else "write FOR EACH MATCH"
        message = f"matches that one event completes can differ in {to_text(node)}"
        self.fail("ACEP-R019", message, node.span, hint)


def _with_at(read: Read, event: str) -> str:
    row = f"store.{read.table}[{', '.join(map(to_text, read.keys))} AT {event}]"
    return f"EXISTS {row}" if read.column is None else f"{row}.{field_name(read.column)}"


def _of_arcs(query: QuerySyntax) -> Iterator[tuple[MachineArc | IgnoreRule, Expression]]:
    if not isinstance(query.pattern, Machine):
        return
    parts: tuple[MachineArc | IgnoreRule, ...] = (*query.pattern.arcs, *query.pattern.ignores)
    for part in parts:
        if part.when is not None:
            yield part, part.when
    for arc in query.pattern.arcs:
        for one in arc.sets:
            yield arc, one.value


def no_column(table: Table, name: str, span: Span) -> tuple[str, Span, str]:
    """What is said of a column that is not there: message, place and hint.

    Parameters
    ----------
    table : Table
    name : str
    span : Span
    """
    names = [column.name for column in table.columns]
    return f"no column {name!r} in {table.name!r}", span, did_you_mean(name, names) + f"columns are {', '.join(names)}"


RESERVED_COLUMNS = ("time", "row", "rule", "op", "deleted")
"""Columns that logs of changes have of their own."""
FIRED = "fired"
"""The column of a rule's matches that says for which of them WHEN held."""


def check_rules(file: RuleFile) -> None:
    """Refuse a file whose parts do not fit together.

    Parameters
    ----------
    file : RuleFile
        From the parser.

    Raises
    ------
    QueryError
        With a code from ACEP-R001 on, or a code of queries; the table is in ``docs/reference/errors.md``.
    UnsupportedError
        ACEP-Q900: it is right, and cannot be run yet.

    Examples
    --------
    >>> from acep_approx.query import parse_rules
    >>> check_rules(parse_rules("RULE r ON PATTERN SEQ(A a, B b) WITHIN 5 DO CALL f(b.x) END"))
    >>> check_rules(parse_rules("RULE r ON PATTERN SEQ(A a, B? b) WITHIN 5 DO CALL f(b.x) END"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    acep_approx.errors.QueryError: ACEP-R017: not every match has an event 'b' ...
    """
    _Checker(file).check()


class _Checker(Written):
    def __init__(self, file: RuleFile) -> None:
        self.text = file.text
        self.file = file

    def check(self) -> None:
        names: dict[str, str] = {}
        for table in self.file.tables:
            first = names.setdefault(table.name.lower(), table.name)
            if first is not table.name:
                self._refuse_twice("tables", first, table.name, place(table, "name"))
        for table in self.file.tables:
            self._check_table(table)
        if not self.file.rules:
            end = len(self.file.text.rstrip())
            self.fail("ACEP-R001", "there is no rule", (end, end), EXAMPLE)
        tables = {table.name: table for table in self.file.tables}
        seen: set[str] = set()
        for rule in self.file.rules:
            if rule.name in seen:
                hint = "give each rule its own name: its matches have it"
                self.fail("ACEP-R002", f"two rules are named {rule.name!r}", place(rule, "name"), hint)
            seen.add(rule.name)
            _RuleChecker(rule, tables).check()
        check_types(self.file)

    # --- tables -------------------------------------------------------------------------------------------

    def _refuse_twice(self, what: str, first: str, second: str, span: Span) -> NoReturn:
        """Stores in files do not tell names apart that differ in case."""
        code = "ACEP-R002" if what == "tables" else "ACEP-R003"
        if first == second:
            self.fail(code, f"two {what} are named {second!r}", span, f"give each of the {what} its own name")
        hint = "stores in files do not tell them apart: give one of them another name"
        self.fail(code, f"two {what} are named {first!r} and {second!r}", span, hint)

    def _check_table(self, table: Table) -> None:
        seen: dict[str, str] = {}
        for column in table.columns:
            if column.name.lower() in seen:
                self._refuse_twice("columns", seen[column.name.lower()], column.name, column.span)
            seen[column.name.lower()] = column.name
            if column.name.lower() in RESERVED_COLUMNS:
                hint = "choose another name; taken are " + ", ".join(RESERVED_COLUMNS)
                message = f"the name {column.name!r} is taken: logs of changes have a column of that name"
                self.fail("ACEP-R026", message, column.span, hint)
        self._check_key(table)
        for column in table.columns:
            if column.default is not None and column.name in table.key:
                hint = "every row is made with its key: leave DEFAULT out"
                self.fail("ACEP-R005", f"the key column {column.name!r} has a default", column.default.span, hint)
            check_default(self.file.text, column)

    def _check_key(self, table: Table) -> None:
        names = [column.name for column in table.columns]
        example = f"KEY ({names[0]})" if names else "KEY (id)"
        if not table.key:
            where = place(table, "KEY") if "KEY" in dict(table.places) else place(table, "name")
            hint = f"say which columns name a row, behind the others: {example}"
            self.fail("ACEP-R004", f"the table {table.name!r} has no key", where, hint)
        seen: set[str] = set()
        for name in table.key:
            where = place(table, f"KEY {name}")
            if name not in names:
                known = f"columns are {', '.join(names)}" if names else "declare it: " + name + " text"
                message = f"no column {name!r} for the key of {table.name!r}"
                self.fail("ACEP-R004", message, where, did_you_mean(name, names) + known)
            if name in seen:
                self.fail("ACEP-R004", f"the column {name!r} stands twice in the key", where, "name each column once")
            seen.add(name)
