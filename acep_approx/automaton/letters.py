"""Which letters hold on which events: each distinct condition is evaluated once per batch, over whole columns.

What was found of a batch is kept with it (``Truths``), so that no other query need evaluate the same condition again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import Letter
from acep_approx.errors import DataError
from acep_approx.events.columns import in_python, to_numpy
from acep_approx.query.evaluate import evaluate, evaluate_asked, is_true
from acep_approx.query.shape import replaced
from acep_approx.query.syntax import Attribute, Binary, Constant, Expression, IsNull, Unary

Masks = npt.NDArray[np.uint64]
ALL = np.uint64(2**64 - 1)
MOST_SEEN = 1000
"""Types beyond which only those that a query names are noted."""


def unbound(condition: Expression) -> Expression:
    """``condition`` with its variable left out: ``a.price > 10`` becomes ``price > 10``."""
    return replaced(
        condition, lambda node: replace(node, variable=None, index=None) if isinstance(node, Attribute) else None
    )


_TYPE = Attribute(None, None, "type")


def asked_by(letter: Letter) -> tuple[Expression, ...]:
    """Return the conditions of a letter, with one for its type if it asks for one."""
    asked: tuple[Expression, ...] = () if letter.type is None else (Binary("=", _TYPE, Constant(letter.type)),)
    return asked + letter.conditions


def untrue(conditions: Sequence[Any]) -> Any:
    """Return a condition that is TRUE where at least one of ``conditions`` is FALSE or NULL; they may be resolved."""
    if not conditions:
        return Constant(value=False)
    both = reduce(lambda a, b: Binary("AND", a, b), conditions)
    return Binary("OR", Unary("NOT", both), IsNull(both, negated=False))


MOST_TABLES = 64
"""Tables of masks that are kept: most batches have the types of another one before."""


class Truths:
    """What letters ask of the events of a batch: each thing is found once.

    Parameters
    ----------
    rows : int
        Number of events.
    column : callable
        Gives the column of an attribute name (``"type"`` is the event type).
    """

    def __init__(self, rows: int, column: Callable[[str], pa.Array]) -> None:
        self.rows = rows
        self._column = column
        self._holds: dict[Expression, Bools] = {}
        self._types: tuple[list[str | None], Ints] | None = None

    @property
    def types(self) -> tuple[list[str | None], Ints]:
        """Distinct types, and per event the place of its own; behind the last where it has none."""
        if self._types is None:
            self._types = _encoded(self._column("type"))
        return self._types

    def know_types(self, names: list[str | None], codes: Ints) -> None:
        """Take over what ``types`` gives from who knows it."""
        self._types = names, codes

    def holds(self, condition: Expression) -> Bools:
        """Per event whether a condition without variables holds; NULL does not.

        Raises
        ------
        DataError
            ``ACEP-D201``, ``ACEP-D202``: it cannot be computed of some event.
        """
        if condition not in self._holds:
            found = evaluate(condition, self._leaf)
            self._holds[condition] = is_true(found, self.rows)
        return self._holds[condition]

    def holds_on(self, condition: Expression, asked: Callable[[], Bools]) -> Bools:
        """The same where only some events matter; it holds on no other one if it cannot be computed of all."""
        return is_true(evaluate_asked(condition, self._leaf, asked), self.rows)

    def all_hold(self, conditions: Iterable[Expression], among: Bools) -> Bools:
        """On which of some events all conditions hold; one that fails where others exclude the event is no error."""
        held, failing = among.copy(), []
        for condition in conditions:
            try:
                held &= self.holds(condition)
            except DataError:
                failing.append(condition)
        for condition in failing:
            held &= self.holds_on(condition, held.copy)
        return held

    def _leaf(self, leaf: Any) -> pa.Array:
        return self._column(str(leaf.name))


class LetterReader:
    """Turns a batch of events into letter masks: bit j of an event is set when letter j holds on it.

    Parameters
    ----------
    letters : tuple of Letter
        At most 64.

    Attributes
    ----------
    types : frozenset of str
        What the letters ask for.
    seen : set of str
        Types of the events so far, until all of ``types`` have been seen; no more than ``MOST_SEEN`` others, and those
        of one batch.

    Notes
    -----
    A condition that is NULL on an event does not hold (SQL's WHERE). An event without type satisfies only letters
    that ask for no type.
    """

    def __init__(self, letters: tuple[Letter, ...]) -> None:
        self.letters = letters
        needing: dict[Expression, int] = {}
        for j, letter in enumerate(letters):
            for condition in letter.conditions:
                needing[condition] = needing.get(condition, 0) | 1 << j
        self.conditions = tuple(needing)
        self._needing = tuple(np.uint64(bits) for bits in needing.values())
        self._left = tuple(np.array([~bits, ALL], np.uint64) for bits in self._needing)
        self.types = frozenset(letter.type for letter in letters if letter.type is not None)
        self._mask_of = {name: self._mask(name) for name in self.types}
        self._mask_of_others = self._mask(None)
        self._tables: dict[tuple[str | None, ...], Masks] = {}  # masks by the types that a batch may have
        self.seen: set[str] = set()
        self.needs_type = bool(self.types)

    def masks(self, truths: Truths, is_part: Callable[[], Bools] | None = None) -> Masks:
        """Letter masks of a batch.

        Parameters
        ----------
        truths : Truths
            Of its events.
        is_part : callable, optional
            Gives for each event whether its mask matters. Default: that of each event does.

        Returns
        -------
        numpy.ndarray of uint64, shape (rows,)

        Raises
        ------
        DataError
            ``ACEP-D201``, ``ACEP-D202``: a condition cannot be computed of an event that has the type, and satisfies
            the other conditions, of a letter that asks for it.

        Complexity: O(rows x distinct conditions), vectorised.
        """
        if self.needs_type:
            table, codes = self._of_types(*truths.types)
            masks = table[codes]
        else:
            masks = np.full(truths.rows, self._mask_of_others, np.uint64)
        failing = []
        for condition, needing, left in zip(self.conditions, self._needing, self._left, strict=True):
            try:
                masks &= left[truths.holds(condition).view(np.uint8)]
            except DataError:
                failing.append((condition, needing, left))
        for condition, needing, left in failing:
            asked = (masks & needing) != 0
            if is_part is not None:
                asked &= is_part()
            masks &= left[truths.holds_on(condition, asked.copy).view(np.uint8)]
        return masks

    def _mask(self, type_: str | None) -> np.uint64:
        return np.uint64(sum(1 << j for j, letter in enumerate(self.letters) if letter.type in (None, type_)))

    def by_type(self, truths: Truths) -> tuple[Masks, Ints] | None:
        """Masks by type, and for each event where its own stands; None where more than the type says which it is."""
        return self._of_types(*truths.types) if self.needs_type and not self.conditions else None

    def _of_types(self, names: list[str | None], codes: Ints) -> tuple[Masks, Ints]:
        key = tuple(names)
        if (table := self._tables.get(key)) is None:
            others = self._mask_of_others
            per_name = [others if name is None else self._mask_of.get(name, others) for name in names]
            table = np.array([*per_name, others], dtype=np.uint64)
            if len(self._tables) == MOST_TABLES:
                self._tables.clear()
            self._tables[key] = table
        if not self.types <= self.seen:
            self._notice(names, codes)
        return table, codes

    def notice(self, types: pa.Array) -> None:
        """Note the types of some events in ``seen``, and nothing else."""
        names, codes = _encoded(types)
        self._notice(names, codes)

    def _notice(self, names: list[str | None], codes: Ints) -> None:
        """Note which types occur; a dictionary may hold others."""
        occurs = np.zeros(len(names) + 1, np.bool_)
        occurs[codes] = True
        found = {name for name, one in zip(names, occurs.tolist(), strict=False) if one and name is not None}
        self.seen |= found if len(self.seen) < MOST_SEEN else found & self.types


def _encoded(types: pa.Array) -> tuple[list[str | None], Ints]:
    """Distinct types, and per event the place of its own; behind the last where it has none."""
    if not pa.types.is_dictionary(types.type):
        types = pc.dictionary_encode(types)
    values, codes = types.dictionary, types.indices
    names = values.to_pylist() if pa.types.is_string(values.type) else list(map(type_name, in_python(values)))
    if codes.null_count:
        codes = pc.fill_null(codes, len(names))
    return names, to_numpy(codes)


def type_name(value: object) -> str | None:
    """The name of a type that events have as a value: of a whole number its digits, also where it is a float.

    Examples
    --------
    >>> [type_name(value) for value in ("A", 7, 7.0, -0.0, 7.5, True, float("nan"), None)]
    ['A', '7', '7', '0', '7.5', 'True', None, None]
    """
    if isinstance(value, float):
        if value != value:  # noqa: PLR0124
            return None
        return str(int(value)) if value.is_integer() else str(value)
    return None if value is None else str(value)
