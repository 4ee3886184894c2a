"""What SET says as small programs for the kernel that writes rows, and which values of a match they take.

Arithmetic is done write by write, so that ``old.n + 1`` sees what was written just before, and a number that passes 64
bits stops its own transaction. All else is computed for many matches at once, and put into slots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from acep_approx.arrays import Bools
from acep_approx.errors import QueryError
from acep_approx.kernels.rules import rows as do
from acep_approx.kernels.rules.rows import Statements
from acep_approx.query.rules.syntax import Assign, Holds, Table, Write
from acep_approx.query.shape import replaced, walk
from acep_approx.query.syntax import Attribute, Binary, Expression, Unary
from acep_approx.rules.compiled import is_old

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
