"""Structural mistakes in files of rules. `check_rules` is the only entry.

Tables are checked first, then rules in their order: the names in their reads, their queries (``query.checks``), as of
which events they read, WHEN and actions, and types as far as tables and constants tell them. Types against the events'
columns are checked by `acep_approx.query.rules.types.check_types`, when these are known.
"""

from __future__ import annotations

from typing import NoReturn

from acep_approx.query.assemble import did_you_mean
from acep_approx.query.checks import check
from acep_approx.query.rules.bound import known_variables
from acep_approx.query.rules.checks_actions import ActionChecks
from acep_approx.query.rules.checks_reads import ReadChecks
from acep_approx.query.rules.messages import EXAMPLE, fault
from acep_approx.query.rules.syntax import Rule, RuleFile, Table, place
from acep_approx.query.rules.types import check_default, check_types
from acep_approx.query.syntax import Span

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


class _Checker:
    def __init__(self, file: RuleFile) -> None:
        self.file = file

    def fail(self, code: str, message: str, span: Span, hint: str | None = None) -> NoReturn:
        raise fault(self.file.text, code, message, span, hint)

    def check(self) -> None:
        self._check_table_names()
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
            self._check_rule(rule, tables)
        check_types(self.file)

    # --- tables -------------------------------------------------------------------------------------------

    def _check_table_names(self) -> None:
        seen: dict[str, str] = {}
        for table in self.file.tables:
            first = seen.setdefault(table.name.lower(), table.name)
            if seen[table.name.lower()] is not table.name:
                self._refuse_twice("tables", first, table.name, place(table, "name"))

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

    # --- rules --------------------------------------------------------------------------------------------

    def _check_rule(self, rule: Rule, tables: dict[str, Table]) -> None:
        reads = ReadChecks(rule, tables)
        reads.check_names()
        check(rule.query)
        reads.check_events()
        if rule.when is not None:
            self._check_fired(rule)
        ActionChecks(rule, tables).check()

    def _check_fired(self, rule: Rule) -> None:
        """Rules with WHEN have a column that says for which matches it held."""
        outputs = {output.name: output.span for output in rule.query.outputs}
        if FIRED in (*known_variables(rule.query.pattern), *outputs):
            hint = "choose another name; the column says for which matches WHEN held"
            message = f"the name {FIRED!r} is taken: results of rules with WHEN have a column {FIRED!r} of their own"
            self.fail("ACEP-Q901", message, outputs.get(FIRED, rule.query.pattern.span), hint)
