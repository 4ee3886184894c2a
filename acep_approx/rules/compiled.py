"""A rule that can be run: the plan of its query, what its events carry, what actions need, what SET says as programs.

A read of the store as of an event is one more column of that event: the query is compiled with an attribute in its
place, and whoever runs it gives the column with each batch. So letters, registers, errors and ``why`` stay as they are.

What SET says becomes small programs for the kernel that writes rows. Arithmetic is done write by write, so that
``old.n + 1`` sees what was written just before, and a number that passes 64 bits stops its own transaction. All else is
computed for many matches at once, and put into slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from acep_approx.arrays import Bools
from acep_approx.automaton.automaton import START
from acep_approx.automaton.letters import unbound
from acep_approx.errors import QueryError, UnsupportedError
from acep_approx.kernels.rules import rows as do
from acep_approx.kernels.rules.rows import Statements
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.printer import to_text
from acep_approx.query.rules.named_events import as_of, ends_late, is_late, last_variable, rewritten
from acep_approx.query.rules.syntax import OLD, Assign, Holds, Rule, Table, Write
from acep_approx.query.shape import atoms, conjuncts, kleene_variables, passing_less, replaced, variables, walk
from acep_approx.query.syntax import (
    Aggregate,
    Atom,
    Attribute,
    Binary,
    Expression,
    Machine,
    OtherPattern,
    QuerySyntax,
    Read,
    ReturnItem,
    Unary,
)

HIDDEN = " "
"""What the names of columns begin with that results have for the actions, and that users do not see."""
Leaf = Attribute | Aggregate


@dataclass(frozen=True)
class ReadColumn:
    """A column that events get from the store, as of themselves; ``column`` is None for EXISTS.

    ``keys`` are over the event alone: their attributes name no variable.
    """

    table: str
    keys: tuple[Expression, ...]
    column: str | None

    @cached_property
    def name(self) -> str:
        """What attributes call it."""
        where = f"store.{self.table}[{', '.join(map(to_text, self.keys))}]"
        return f"EXISTS {where}" if self.column is None else f"{where}.{self.column}"


@dataclass(frozen=True)
class CompiledRule:
    """A rule of a file.

    Parameters
    ----------
    number : int
        Its place in the file, from 0.
    rule : Rule
    plan : Plan
        Of its query, with attributes in the places of reads.
    reads : tuple of ReadColumn
        Columns that its events need.
    late : tuple of Expression
        Conditions on complete matches: those that read the store for one event as of another.
    """

    number: int
    rule: Rule
    plan: Plan
    reads: tuple[ReadColumn, ...]
    late: tuple[Expression, ...] = ()

    @property
    def name(self) -> str:
        """Of the rule."""
        return self.rule.name

    @property
    def writes(self) -> tuple[Write, ...]:
        """The actions that write the store."""
        return tuple(action for action in self.rule.actions if isinstance(action, Write))

    @cached_property
    def lists(self) -> bool:
        """Whether its matches are listed; else the event that completes them says all that is asked."""
        if self.rule.each == "match" or self.is_late or self.late:
            return True
        last = always_last(self.plan.query)
        if any(variables(one) - {last} for one in self.conditions):  # those that have no event make them void
            return True
        return not all(map(self.is_of_last, self.leaves))

    def is_of_last(self, leaf: Leaf) -> bool:
        """Whether the event that completes a match says it."""
        query = self.plan.query
        return isinstance(leaf, Attribute) and (
            leaf.variable == always_last(query) or leaf.name in {one.name for one in query.equivalences}
        )

    def types_reading(self, column: ReadColumn) -> set[str | None]:
        """The types of the events of which a column that is read plays a role; None: of any type."""
        query = self.plan.query
        asked = (*query.predicates, *(output.value for output in query.outputs), *self.late)
        leaves = (node for one in asked for node in walk(one) if isinstance(node, Attribute))
        named = {leaf.variable for leaf in leaves if leaf.name == column.name}
        asks = (column.table, column.keys, column.column)
        if any((one.table, tuple(map(unbound, one.keys)), one.column) == asks for one in self.when_reads):
            named.add(always_last(query))
        types: set[str | None] = {atom.type for atom in atoms(query.pattern) if atom.variable in named}
        return types | ({None} if None in named else set())

    def names_row(self, write: Write) -> bool:
        """Whether the event that completes a match says which row is written."""
        return all(self.is_of_last(leaf) for key in write.key for leaf in walk(key) if isinstance(leaf, Leaf))

    @cached_property
    def is_same(self) -> bool:
        """Whether all matches of one event write the same, however many of them act."""
        if self.is_late:
            return False
        if self.rule.each == "point":
            return True
        tables = [write.table for write in self.writes]
        if len(set(tables)) < len(tables):  # done twice, what comes later may matter to what comes earlier
            return False
        said = [node for write in self.writes for part in (*write.key, *write.sets) for node in walk(_value_of(part))]
        return all(self.is_of_last(leaf) and not is_old(leaf) for leaf in said if isinstance(leaf, Leaf))

    @property
    def acts_once(self) -> bool:
        """Whether no event makes it act twice."""
        return self.rule.each == "point" or isinstance(self.plan.query.pattern, Atom)

    @property
    def is_late(self) -> bool:
        """Whether a negation at the end makes matches wait for the end of their window."""
        return self.plan.registers is not None and self.plan.registers.has_late_ends

    @cached_property
    def last_letters(self) -> int:
        """The letters on which a match can end, as a mask."""
        registers, automaton = self.plan.registers, self.plan.automaton
        if registers is not None:
            ends = {state for state, finals in enumerate(registers.finals) if finals}
            letters = {step.letter for step in registers.steps if step.target in ends}
        else:
            costs = {final.state: final.cost for final in automaton.finals}
            arcs = (arc for arc in automaton.arcs if arc.target in costs)
            letters = {arc.letter for arc in arcs if arc.cost + costs[arc.target] <= automaton.errors}
        return sum(1 << letter for letter in letters)

    @cached_property
    def ending_letters(self) -> int:
        """The letters that end every match which has begun, as a mask: a negation stands in each of its gaps.

        An event that also leads matches on, or completes them, does that first: see ``later_letters``.
        """
        if self.is_late or self.plan.query.is_simultaneous:
            return 0
        registers, automaton = self.plan.registers, self.plan.automaton
        if registers is not None:
            guards = [step.guard for step in registers.steps if step.source != START and step.target is not None]
        else:
            guards = [arc.guard for arc in automaton.arcs if arc.source != START]
        ending = frozenset.intersection(*guards) if guards else frozenset[int]()
        return sum(1 << letter for letter in ending)

    @cached_property
    def later_letters(self) -> int:
        """The letters of all events of a match but the first, as a mask."""
        registers, automaton = self.plan.registers, self.plan.automaton
        if registers is not None:
            letters = {step.letter for step in registers.steps if step.source != START and step.target is not None}
        else:
            letters = {arc.letter for arc in automaton.arcs if arc.source != START}
        return sum(1 << letter for letter in letters)

    @cached_property
    def conditions(self) -> tuple[Expression, ...]:
        """Those of WHEN that must all hold for the actions to be run."""
        return conjuncts(self.rule.when)

    @cached_property
    def leaves(self) -> dict[Leaf, str]:
        """What of a match is asked for beside what its results show, with the names of the hidden columns."""
        asked: dict[Leaf, str] = {}
        for expression in (*self.conditions, *self.late, *self._of_actions()):
            for leaf in walk(expression):
                if isinstance(leaf, Leaf) and not is_old(leaf):
                    asked.setdefault(leaf, f"{HIDDEN}{HIDDEN}{len(asked)}")
        return asked

    def _of_actions(self) -> Iterable[Expression]:
        for action in self.rule.actions:
            if isinstance(action, Write):
                yield from action.key
                yield from (one.value for one in action.sets)
            else:
                yield from action.arguments

    @cached_property
    def hidden(self) -> tuple[ReturnItem, ...]:
        """The leaves as outputs."""
        return tuple(ReturnItem(name, leaf) for leaf, name in self.leaves.items())

    @cached_property
    def when_reads(self) -> tuple[Read, ...]:
        """The reads of WHEN, each once."""
        return _reads(self.conditions)

    @cached_property
    def late_reads(self) -> tuple[Read, ...]:
        """The reads of conditions on complete matches, each once."""
        return _reads(self.late)


def _value_of(part: Assign | Expression) -> Expression:
    return part.value if isinstance(part, Assign) else part


def _reads(expressions: Iterable[Expression]) -> tuple[Read, ...]:
    return tuple(dict.fromkeys(node for one in expressions for node in walk(one) if isinstance(node, Read)))


def always_last(query: QuerySyntax) -> str | None:
    """The variable of the one event that ends every match, if there is one."""
    last = last_variable(query)
    return None if last in kleene_variables(query.pattern) or ends_late(query.pattern) else last


def is_old(leaf: Expression) -> bool:
    """Whether an expression is a value of the row that is written, as it was before."""
    return isinstance(leaf, Attribute) and leaf.variable == OLD


def compiled(number: int, rule: Rule) -> CompiledRule:
    """Compile a rule.

    Raises
    ------
    QueryError
        Its query is wrong, or no engine can run it.
    """
    query, reads = rule.query, dict[ReadColumn, None]()
    if isinstance(query.pattern, Machine | OtherPattern):
        raise UnsupportedError(
            "an automaton written by hand does not go into a rule yet",
            code="ACEP-Q900",
            hint="write the pattern with SEQ",
            text=query.text,
            start=query.pattern.span[0],
            end=query.pattern.span[1],
        )

    if query.selection.maximal:
        raise query.fault(
            "ACEP-Q900",
            "MAXIMAL does not go into a rule yet",
            query.place("MAXIMAL"),
            "leave it out; FIRST MATCH, NON OVERLAP and CONSUME can be in a rule",
            UnsupportedError,
        )

    def as_attribute(node: Expression) -> Expression | None:
        if not isinstance(node, Read):
            return None
        event = as_of(node, query)
        assert event is not None, "checks refuse reads of no event"
        keys = tuple(map(unbound, rewritten(node, query).keys))
        column = ReadColumn(node.table, keys, node.column)
        reads[column] = None
        return Attribute(event.variable, event.index, column.name, node.span)

    for one in conjuncts(rule.when):
        if _is_of_each(one, query):
            raise _unsupported(query, one, "WHEN asks something of each event of a variable that has several")

    def unless_late(node: Expression) -> Expression | None:
        return None if isinstance(node, Read) and is_late(node, query) else as_attribute(node)

    late = tuple(one for one in query.predicates if _is_late(one, query))
    kept = tuple(replaced(one, as_attribute) for one in query.predicates if one not in late)
    outputs = []
    for output in query.outputs:
        if _is_late(output.value, query):
            raise _unsupported(query, output.value, "RETURN reads the store for one event as of another")
        outputs.append(replace(output, value=replaced(output.value, as_attribute)))
    if late:
        _check_late(query, late)
    changed = replace(query, predicates=kept, outputs=tuple(outputs))
    beside = tuple(replaced(one, unless_late) for one in late)  # reads of an event beside late ones are its columns
    return CompiledRule(number, rule, plan(changed), tuple(reads), beside)


def _is_late(expression: Expression, query: QuerySyntax) -> bool:
    """Whether an expression reads the store for one event as of another."""
    return any(isinstance(node, Read) and is_late(node, query) for node in walk(expression))


def _check_late(query: QuerySyntax, late: tuple[Expression, ...]) -> None:
    passing = passing_less(query)
    if passing or not query.selection.is_all:
        what = passing[0] if passing and query.selection.is_all else query.selection.clauses[0]
        raise _unsupported(query, late[0], f"with {what}, a condition reads the store for one event as of another")
    for one in late:
        if query.window.unit == "events":
            raise _unsupported(query, one, "in a window of events, a condition reads the store for one as of another")
        if _is_of_each(one, query):
            raise _unsupported(query, one, "a condition reads the store for each of several events as of another")


def _is_of_each(expression: Expression, query: QuerySyntax) -> bool:
    """Whether an expression has a value for each event of a Kleene variable."""
    nodes = [node for node in walk(expression) if isinstance(node, Attribute)]
    nodes += [node.at for node in walk(expression) if isinstance(node, Read) and node.at is not None]
    several = kleene_variables(query.pattern)
    return any(one.index in ("current", "previous") or (one.index is None and one.variable in several) for one in nodes)


def _unsupported(query: QuerySyntax, where: Expression, what: str) -> UnsupportedError:
    return UnsupportedError(
        what,
        code="ACEP-Q900",
        hint="ask of one event, such as a[1] or a[a.LEN], or read as of the event that the key names, without AT",
        text=query.text,
        start=where.span[0],
        end=where.span[1],
    )


KINDS = {"update": do.UPDATE, "upsert": do.UPSERT, "delete": do.DELETE}
_OPERATORS = {"+": do.ADD, "-": do.SUBTRACT, "*": do.MULTIPLY, "%": do.MODULO}
Number = Literal["int", "float"]
KindOf = Callable[[Expression], Holds]
"""Says what an expression over events gives."""


@dataclass(frozen=True)
class Slot:
    """A value that is computed for each match: what it is, and what it is held as."""

    value: Expression
    holds: Holds


class _Programs:
    """Makes the programs of one table; instructions of all stand one after the other."""

    def __init__(self, table: Table, text: str) -> None:
        self.table = table
        self.columns = {column.name: (number, column) for number, column in enumerate(table.values)}
        self.text = text
        self.code: list[int] = []
        self.slots: list[Slot] = []
        self.needs: dict[int, set[int]] = {}  # which columns each column is computed from

    def assign(self, one: Assign, write: Write, kind_of: KindOf) -> int:
        """Add the program of an assignment; gives the number of its column."""
        number, column = self.columns[one.column]
        keys = dict(zip(self.table.key, write.key, strict=True))

        def as_key(node: Expression) -> Expression | None:  # the row has the key that the action names
            return keys.get(node.name) if isinstance(node, Attribute) and is_old(node) else None

        value = replaced(one.value, as_key)
        olds = {self.columns[node.name][0] for node in walk(value) if isinstance(node, Attribute) and is_old(node)}
        self.needs.setdefault(number, set()).update(olds)
        if column.holds in ("int", "float") and _is_computed(value):
            if self._made(value, kind_of) != column.holds:
                self.code += [do.AS_FLOAT if column.holds == "float" else do.AS_INT, 0]
        elif isinstance(value, Attribute) and is_old(value):
            self.code += [do.OLD_VALUE, self.columns[value.name][0]]
        elif olds:
            raise QueryError(
                "a value of the row is used in a way that cannot be computed",
                code="ACEP-R070",
                hint="old.column stands alone, or with + - * / % in numbers",
                text=self.text,
                start=one.value.span[0],
                end=one.value.span[1],
            )
        else:
            self._slot(value, column.holds)
        return number

    def _slot(self, value: Expression, holds: Holds) -> None:
        slot = Slot(value, holds)
        if slot not in self.slots:
            self.slots.append(slot)
        self.code += [do.SLOT, self.slots.index(slot)]

    def _made(self, value: Expression, kind_of: KindOf) -> Number:
        """Add what computes a number, and say whether it is whole."""
        if isinstance(value, Unary):
            made = self._made(value.operand, kind_of)
            self.code += [do.NEGATE + do.FLOAT * (made == "float"), 0]
            return made
        if isinstance(value, Binary):
            left = self._made(value.left, kind_of)
            right = self._made(value.right, kind_of)
            if value.op == "/" or left != right:
                self.code += [do.AS_FLOAT, 1] if left == "int" else []
                self.code += [do.AS_FLOAT, 0] if right == "int" else []
                left = "float"
            if value.op == "/":
                self.code += [do.DIVIDE_FLOATS, 0]
            else:
                self.code += [_OPERATORS[value.op] + do.FLOAT * (left == "float"), 0]
            return left
        if isinstance(value, Attribute) and is_old(value):
            number, column = self.columns[value.name]
            self.code += [do.OLD_VALUE, number]
            return "float" if column.holds == "float" else "int"
        holds: Number = "float" if kind_of(value) == "float" else "int"
        self._slot(value, holds)
        return holds


def _is_computed(value: Expression) -> bool:
    is_arithmetic = isinstance(value, Binary) and value.op in ("+", "-", "*", "/", "%")
    return is_arithmetic or (isinstance(value, Unary) and value.op == "-") or is_old(value)


@dataclass(frozen=True)
class TablePrograms:
    """The statements that write a table, and what they take.

    Attributes
    ----------
    statements : Statements
    slots : list of list of Slot
        Per statement the values in its slots.
    width : int
        Slots of a write.
    needs : list of numpy.ndarray of bool
        Per column which columns must be written for its values to be right: itself and those it is computed from.
    """

    statements: Statements
    slots: list[list[Slot]]
    width: int
    needs: list[Bools]


def compile_writes(table: Table, writes: Sequence[tuple[Write, KindOf]], text: str) -> TablePrograms:
    """Make the programs of all actions that write a table, in the order given.

    Raises
    ------
    QueryError
        ``ACEP-R070``: ``old`` is used in a way that cannot be computed.
    """
    made = _Programs(table, text)
    kinds: list[int] = []
    first, columns, code = [0], list[int](), [0]
    slots: list[list[Slot]] = []
    for write, kind_of in writes:
        made.slots = []
        kinds.append(KINDS[write.kind])
        for one in write.sets:
            columns.append(made.assign(one, write, kind_of))
            code.append(len(made.code) // 2)
        first.append(len(columns))
        slots.append(made.slots)
    statements = Statements(*(np.array(part, np.int64) for part in (kinds, first, columns, code, made.code)))
    width = max([len(some) for some in slots], default=0)
    return TablePrograms(statements, slots, max(width, 1), _closures(len(table.values), made.needs))


def _closures(columns: int, needs: dict[int, set[int]]) -> list[Bools]:
    """Per column itself and all that it is computed from, directly or not."""
    found = []
    for column in range(columns):
        reached, waiting = {column}, [column]
        while waiting:
            more = needs.get(waiting.pop(), set()) - reached
            reached |= more
            waiting += more
        found.append(np.isin(np.arange(columns), [*reached]))
    return found
