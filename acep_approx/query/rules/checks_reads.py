"""Mistakes in reads of tables: which row they name, and as of when."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acep_approx.errors import UnsupportedError
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.printer import event_name, field_name, to_text
from acep_approx.query.rules.named_events import (
    as_of,
    events_of_key,
    is_late,
    known_variables,
    nodes_of_key,
    reads_of,
    rewritten,
    several,
)
from acep_approx.query.rules.syntax import OLD, Rule, Table, Write, expressions
from acep_approx.query.shape import naming, negated_variables, variables
from acep_approx.query.syntax import (
    Aggregate,
    Attribute,
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


class RuleChecks(Written):
    """Some checks of one rule.

    Parameters
    ----------
    rule : Rule
    tables : dict of str to Table
        All tables of its file.
    """

    def __init__(self, rule: Rule, tables: dict[str, Table]) -> None:
        self.rule = rule
        self.text = rule.query.text
        self.query = rule.query
        self.tables = tables
        self.known = known_variables(rule.query.pattern)
        self.several = several(rule.query.pattern)
        self.negated = negated_variables(rule.query.pattern)

    def table_of(self, name: str, span: Span) -> Table:
        """The table of that name.

        Parameters
        ----------
        name : str
        span : Span
            Where it is named.

        Raises
        ------
        QueryError
            ACEP-R007.
        """
        if name not in self.tables:
            known = did_you_mean(name, self.tables) + f"tables are {', '.join(self.tables)}"
            hint = known if self.tables else f"declare it before the rules: TABLE {name} (id text, ..., KEY (id))"
            self.fail("ACEP-R007", f"no table {name!r}", span, hint)
        return self.tables[name]

    def check_count(self, table: Table, keys: tuple[Expression, ...], span: Span) -> None:
        """Refuse a key of more or fewer values than the table has key columns.

        Parameters
        ----------
        table : Table
        keys : tuple of Expression
        span : Span
            Where they stand.

        Raises
        ------
        QueryError
            ACEP-R009.
        """
        if len(keys) == len(table.key):
            return
        columns = f"{len(table.key)} column{'s' if len(table.key) != 1 else ''}, {', '.join(table.key)}"
        message = f"the key of {table.name!r} has {columns}; here {'is' if len(keys) == 1 else 'are'} {len(keys)}"
        self.fail("ACEP-R009", message, span, "give one value for each, in that order")


_TABLE = re.compile(r"(?:EXISTS\s+)?store\s*\.\s*(\w+)", re.IGNORECASE)


class ReadChecks(RuleChecks):
    """What is wrong with the reads of one rule.

    Parameters
    ----------
    rule : Rule
    tables : dict of str to Table
        All tables of its file.
    """

    def check_names(self) -> None:
        """Check which tables, columns and events are named; the query itself may be wrong still.

        Raises
        ------
        QueryError
            ACEP-R007, R008, R009, R021, R022, R023, and ACEP-Q030, Q032, Q033 for the event behind AT.
        """
        for expression in _outside_actions(self.rule):
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

    def check_events(self) -> None:
        """Check as of which event tables are read; the query itself passed its checks.

        Raises
        ------
        QueryError
            ACEP-R021.
        UnsupportedError
            ACEP-Q900: a read that is known only when the match is complete, where that comes too late.
        """
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
        table = self.table_of(read.table, named.span(1) if named else read.span)
        if read.column is not None and table.column(read.column) is None:
            column = (read.span[1] - len(field_name(read.column)), read.span[1])
            self.fail("ACEP-R008", *no_column(table, read.column, column))
        self.check_count(table, read.keys, read.span)
        for node in nodes_of_key(read):
            if isinstance(node, Read):
                hint = "keep what is needed in one table, or compare both reads with attributes of events"
                self.fail("ACEP-R023", "the key of a read is read from a table itself", node.span, hint)

    # --- the event behind AT ------------------------------------------------------------------------------

    def _check_at(self, at: Attribute, *, is_output: bool) -> None:
        variable = str(at.variable)
        if variable not in self.known:
            hint = did_you_mean(variable, self.known) + f"variables are {', '.join(sorted(self.known))}"
            self.fail("ACEP-Q030", f"no variable {variable!r} in the pattern", at.span, hint)
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
        """Without AT, the key is of one event."""
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
        if query.non_overlap:
            reason, way = "with NON OVERLAP", "leave NON OVERLAP out"
        elif query.strategy != "skip_till_any_match":
            reason, way = f"with {query.strategy}", "use skip_till_any_match"
        elif found := sorted(variables(predicate) & self.negated):
            reason, way = f"in a condition about {found[0]}, which is negated", f"let the key be of {at_event}"
        if reason is None:
            return
        message = f"the key of {read.table!r} is of {other} and read AT {at_event}: such a condition is known only for "
        message += f"complete matches, which does not work yet {reason}"
        hint = f"{way}; where [attr] is in force, the key may be that attribute of any event"
        raise query.fault("ACEP-Q900", message, read.span, hint, UnsupportedError)


def _with_at(read: Read, event: str) -> str:
    row = f"store.{read.table}[{', '.join(map(to_text, read.keys))} AT {event}]"
    return f"EXISTS {row}" if read.column is None else f"{row}.{field_name(read.column)}"


def _of_arcs(query: QuerySyntax) -> Iterator[tuple[MachineArc | IgnoreRule, Expression]]:
    """The expressions of an automaton written by hand, each with the arc or the rule it stands in."""
    if not isinstance(query.pattern, Machine):
        return
    parts: tuple[MachineArc | IgnoreRule, ...] = (*query.pattern.arcs, *query.pattern.ignores)
    for part in parts:
        if part.when is not None:
            yield part, part.when
    for arc in query.pattern.arcs:
        for one in arc.sets:
            yield arc, one.value


def _outside_actions(rule: Rule) -> Iterator[Expression]:
    """The conditions and outputs of a rule, those of arcs left out."""
    yield from rule.query.predicates
    yield from (output.value for output in rule.query.outputs)
    if rule.when is not None:
        yield rule.when


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
