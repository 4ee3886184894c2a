"""The few values that a column of a table may have, each a bit: so what may stand in a row is one word.

A column that rules only set to constants has these, its default and NULL. A whole number that rules also count up or
down has all between the constants that it is set to and compared with, one bit for what is below and one for what is
above. Where a value is none of them, anything may stand there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import to_numpy
from acep_approx.query.evaluate import evaluate, is_true
from acep_approx.query.rules.syntax import Assign, Column, Holds, RuleFile
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Between, Binary, Constant, Expression, In, IsNull, Unary
from acep_approx.rules.compiled import CompiledRule, ReadColumn, is_old
from acep_approx.rules.words import ARROW

MOST = 58
"""Values of a column, of the 62 bits that a word has for them."""
SPREAD = 2
"""Whole numbers beyond the largest and the smallest constant that are told apart."""
COMPARISONS = ("=", "!=", "<>", "<", "<=", ">", ">=")
ABSENT, PRESENT = 1, 2
"""The bits of the last "column" of a table: whether there is a row."""


@dataclass(frozen=True)
class Domain:
    """The values of a column that are told apart; the first is NULL.

    ``is_range``: whole numbers in a row, with a bit for those below and one for those above behind them.
    """

    holds: Holds
    values: tuple[Any, ...]
    is_range: bool = False
    _known: pa.Array = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", pa.array(self.values, ARROW[self.holds]))

    @property
    def below(self) -> int:
        """The bit of whole numbers below all others."""
        return 1 << len(self.values)

    @property
    def above(self) -> int:
        """The bit of whole numbers above all others."""
        return 2 << len(self.values)

    def bits(self, values: pa.Array) -> Ints:
        """The bit of each value; 0 where it is none of those that are told apart.

        Examples
        --------
        >>> Domain("text", (None, "safe", "warning")).bits(pa.array(["warning", None, "?"])).tolist()
        [4, 1, 0]
        >>> Domain("int", (None, 0, 1), is_range=True).bits(pa.array([1, 7, -1])).tolist()
        [4, 16, 8]
        """
        at = to_numpy(pc.fill_null(pc.index_in(values, value_set=self._known), -1)).astype(np.int64)
        found = np.where(at >= 0, np.int64(1) << np.maximum(at, 0), 0)
        if not self.is_range:
            return found
        numbers = to_numpy(pc.fill_null(values, self.values[1]))
        found[(at < 0) & (numbers < self.values[1])] = self.below
        found[(at < 0) & (numbers > self.values[-1])] = self.above
        return found

    def is_same(self, worlds: Ints, here: Ints) -> Bools:
        """Where worlds are the one value that stands here."""
        is_one: Bools = (worlds == here) & (here > 0) & (here >> len(self.values) == 0)
        return is_one

    def bit(self, value: Any) -> int:
        """The bit of one value, as a constant of the text has it; 0 where it is none of those that are told apart."""
        try:
            given = pa.array([value]).cast(ARROW[self.holds])
        except pa.ArrowException:
            return 0
        return int(self.bits(given)[0])

    def truth(self, condition: Expression) -> tuple[int, int]:
        """For which values a condition holds that asks for nothing else, and for which it does not, as bits."""
        try:
            holds = is_true(evaluate(condition, lambda _: self._known), len(self.values))
        except DataError:
            return 0, 0
        true = sum(1 << n for n, one in enumerate(holds) if one)
        false = sum(1 << n for n, one in enumerate(holds) if not one)
        if self.is_range and self._compares(condition):  # with a number within: all beyond an end are alike
            for bit, end in ((self.below, 1), (self.above, len(self.values) - 1)):
                true, false = (true | bit, false) if holds[end] else (true, false | bit)
        return true, false

    def _compares(self, condition: Expression) -> bool:
        """Whether a condition compares a value with a whole number among those that are told apart."""
        if not isinstance(condition, Binary) or condition.op not in COMPARISONS:
            return False
        left, right = condition.left, condition.right
        left, right = (right, left) if isinstance(left, Constant) else (left, right)
        if not isinstance(left, Attribute) or not isinstance(right, Constant):
            return False
        return type(right.value) is int and self.values[1] <= right.value <= self.values[-1]


def domains_of(file: RuleFile, rules: Sequence[CompiledRule]) -> dict[str, list[Domain | None]]:
    """Per table those of its columns beside the key; None where values are too many, or nobody knows them."""
    compared: dict[tuple[str, str | None], list[Any]] = {}
    for rule in rules:
        for read in rule.reads:
            compared.setdefault((read.table, read.column), []).extend(_compared(read, rule))
    sets = [(write.table, one) for rule in rules for write in rule.writes for one in write.sets]
    return {
        table.name: [
            _domain(column, [one for name, one in sets if name == table.name and one.column == column.name],
                    compared.get((table.name, column.name), []))
            for column in table.values
        ]
        for table in file.tables
    }  # fmt: skip


def _compared(read: ReadColumn, rule: CompiledRule) -> Iterable[Any]:
    """The constants of conditions on a column that is read."""
    for letter in rule.plan.letters:
        for condition in letter.conditions:
            if asks_only(condition) == read.name:
                yield from (node.value for node in walk(condition) if isinstance(node, Constant))


def _domain(column: Column, sets: Sequence[Assign], compared: Sequence[Any]) -> Domain | None:
    default = None if column.default is None else column.default.value
    given = [default, *(one.value.value for one in sets if isinstance(one.value, Constant))]
    if column.holds == "bool":
        return Domain("bool", (None, False, True))
    if column.holds == "time":
        return None
    if column.holds == "int":
        told = [one for one in (*given, *compared) if isinstance(one, int) and not isinstance(one, bool)]
        low, high = min(told, default=0) - SPREAD, max(told, default=0) + SPREAD
        return Domain("int", (None, *range(low, high + 1)), is_range=True) if high - low < MOST else None
    values = [*dict.fromkeys(value for value in given if value is not None)]
    if column.holds == "float":
        values = [*dict.fromkeys(float(value) for value in values)]
    return Domain(column.holds, (None, *values)) if values and len(values) < MOST else None


def asks_only(condition: Expression) -> str | None:
    """The one attribute that a condition without variables asks for, and nothing else; None where it asks for more."""
    nodes = [*walk(condition)]
    if not all(isinstance(node, Attribute | Constant | Unary | Binary | In | Between | IsNull) for node in nodes):
        return None
    names = {node.name for node in nodes if isinstance(node, Attribute)}
    return names.pop() if len(names) == 1 else None


NONE, CONSTANT, SHIFT, OTHER = range(4)
"""What a statement does to a column: nothing; it sets a constant; adds a whole number to it; or something else."""


def effect(one: Assign, column: Column, domain: Domain | None) -> tuple[int, int]:
    """What an assignment does, with the bit of the constant, or the number that it adds."""
    if domain is None:
        return OTHER, 0
    if isinstance(one.value, Constant):
        bit = domain.bit(one.value.value)
        return (CONSTANT, bit) if bit else (OTHER, 0)
    step = _step(one.value, column.name) if domain.is_range else None
    return (OTHER, 0) if step is None or abs(step) > MOST else (SHIFT, step)


def _step(value: Expression, column: str) -> int | None:
    """By how much ``old.n + 1`` is more than ``old.n``."""
    if not isinstance(value, Binary) or value.op not in ("+", "-"):
        return None
    left, right = value.left, value.right
    if value.op == "+" and isinstance(left, Constant):
        left, right = right, left
    if not (isinstance(left, Attribute) and is_old(left) and left.name == column and isinstance(right, Constant)):
        return None
    step = right.value
    if not isinstance(step, int) or isinstance(step, bool):
        return None
    return step if value.op == "+" else -step


PRESENCE = Domain("bool", (False, True))
"""Of the last "column" of a table."""
