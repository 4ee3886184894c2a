"""Results as Arrow columns: matches, points, counts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Ints, zeros
from acep_approx.automaton.automaton import Automaton
from acep_approx.engines.columns import Listed, Placement
from acep_approx.errors import CappedCountWarning
from acep_approx.events.columns import to_arrow, to_lists
from acep_approx.events.counts import AT_LEAST, MOST_COUNTED, is_at_least, said
from acep_approx.matching.outputs.bind import BoundEvents
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.returns import ReturnColumns

ENDS = ("first event", "last event")
"""Columns of the events that a match begins and ends with, where RETURN is left for later and some are not shown."""
NO_REGISTERS: Mapping[str, pa.Array] = {}
REGISTER = "register "
"""What the columns of registers begin with where RETURN is left for later."""
BOUND = "bound "
"""What the columns of variables begin with where match points show them for that."""


def joined(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Tables of results as one, with the types that the columns have got by now."""
    parts = [table if table.schema.equals(schema) else table.cast(schema) for table in tables]
    return parts[0] if len(parts) == 1 else pa.concat_tables([schema.empty_table(), *parts])


class BindingColumns:
    """Turns flat lists of bound events into one column per variable.

    Parameters
    ----------
    automaton : Automaton
    is_regex : bool
        One column ``events`` instead of a column per variable.
    returns : ReturnColumns
        What is shown in the place of the variables, if anything.
    events : BoundEvents
        What stands for an event where they are shown.
    """

    def __init__(
        self,
        automaton: Automaton,
        returns: ReturnColumns,
        events: BoundEvents,
        *,
        is_regex: bool,
    ) -> None:
        self.automaton = automaton
        self.returns = returns
        self.events = events
        self.kleene = automaton.kleene  # their columns hold lists
        self.is_regex = is_regex
        self.placement = self._placed()
        self._missing = lru_cache(maxsize=4096)(automaton.missing)
        self._missing_between = lru_cache(maxsize=4096)(automaton.missing_between)

    def _placed(self) -> Placement:
        if self.is_regex:
            placement = Placement(np.full(len(self.automaton.variables), -1))
        else:
            placement = Placement.of([name in self.kleene for name in self.automaton.variables])
        return replace(placement, keeps_labels=self.automaton.errors > 0 and not self.is_regex)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns of the events that are asked for."""
        return self.returns.needed or self.events.names

    def columns(self, listed: Listed) -> dict[str, pa.Array]:
        """Row numbers of the bound events, per variable: int64, null where nothing is bound; lists where Kleene."""
        lists = [to_lists(offsets, to_arrow(ids)) for offsets, ids in listed.lists]
        if self.is_regex:
            return {"events": lists[0]}
        is_full = listed.is_full
        singles = [to_arrow(ids, None if is_full or ids.min(initial=0) >= 0 else ids >= 0) for ids in listed.single]
        columns = zip(self.automaton.variables, self.placement.column.tolist(), strict=True)
        return {name: singles[c] if c >= 0 else lists[-1 - c] for name, c in columns if name}

    def shown(
        self, listed: Listed, recent: Recent, registers: Mapping[str, pa.Array] = NO_REGISTERS
    ) -> dict[str, pa.Array]:
        """The columns of the variables, or what RETURN asks for, which may read registers that have names."""
        bound = self.columns(listed)
        if self.returns:
            return self.returns.columns(bound, recent, registers, len(listed))
        return {**self.events.columns(bound, recent), **{REGISTER + name: values for name, values in registers.items()}}

    def described(
        self,
        listed: Listed,
        errors: Ints,
        recent: Recent,
        registers: Mapping[str, pa.Array] = NO_REGISTERS,
        arcs: Ints | None = None,
    ) -> dict[str, pa.Array]:
        """What is missing from each match, where variables have names, and what ``shown`` gives.

        ``arcs`` are those that the events took, where their labels do not say what is missing.
        """
        missing = {} if self.is_regex else {"missing": self.missing(listed, errors, arcs)}
        return {**missing, **self.shown(listed, recent, registers)}

    def missing(self, listed: Listed, errors: Ints, arcs: Ints | None = None) -> pa.Array:
        """Per match the variables whose events are missing: list of strings, in the order of the pattern."""
        if not errors.any():
            return nothing_missing(len(errors))
        labels, named = (listed.labels, self._missing) if arcs is None else (arcs, self._missing_between)
        codes, first = self._shapes(listed.begin, labels, errors)
        spans = zip(listed.begin[first].tolist(), listed.begin[first + 1].tolist(), errors[first].tolist(), strict=True)
        texts = [named(tuple(labels[a:b].tolist()), e) if e else () for a, b, e in spans]
        return pa.array(texts, pa.list_(pa.string())).take(pa.array(codes))

    def _shapes(self, begin: Ints, labels: Ints, errors: Ints) -> tuple[Ints, Ints]:
        """Number the distinct (errors, labels): per match its number, per number a match that has it."""
        lengths = np.diff(begin)
        base = max(len(self.automaton.variables), self.automaton.errors, int(labels.max(initial=0)) + 1) + 1
        if (lengths.max(initial=0) + 1) * np.log2(base) < 62:
            place = np.arange(len(labels)) - np.repeat(begin[:-1], lengths)
            terms = (labels + 1) * base ** (place + 1)
            keys: Ints | npt.NDArray[np.object_] = np.add.reduceat(terms, begin[:-1]) + errors
        else:
            spans = zip(pairwise(begin.tolist()), errors.tolist(), strict=True)
            keys = np.array([bytes((e,)) + labels[a:b].tobytes() for (a, b), e in spans], object)
        _, at, codes = np.unique(keys, return_index=True, return_inverse=True)
        return codes, at


def nothing_missing(matches: int) -> pa.Array:
    """The column of what is missing where nothing is: an empty list for each match."""
    return to_lists(zeros(matches + 1, np.int32), pa.nulls(0, pa.string()))


# --- numbers of matches ---------------------------------------------------------------------------------


def sums(counts: Ints, first: Ints) -> Ints:
    """Sums of runs of counts that begin at ``first``; like each of the counts at most ``MOST_COUNTED``.

    Examples
    --------
    >>> sums(np.array([2, 3, 2**62, 2**62]), np.array([0, 2])).tolist() == [5, 2**63 - 1]
    True
    """
    if not len(first):
        return first
    high, low = np.add.reduceat(counts >> 32, first), np.add.reduceat(counts & 0xFFFFFFFF, first)
    high += low >> 32
    return np.where(high >> 31 > 0, MOST_COUNTED, (high << 32) + (low & 0xFFFFFFFF))


def count_columns(matches: Ints) -> dict[str, pa.Array]:
    """Counts as columns of a table, with whether each of them is exact.

    Examples
    --------
    >>> count_columns(np.array([7, 2**63 - 1]))[AT_LEAST].to_pylist()
    [False, True]
    """
    return {"matches": pa.array(matches), AT_LEAST: pa.array(matches >= MOST_COUNTED)}


def results_in(table: pa.Table) -> int:
    """How many results a table has: of numbers of matches their sum.

    Examples
    --------
    >>> results_in(pa.table({"a": [4, 7]})), results_in(pa.table(count_columns(np.array([7, 3]))))
    (2, 10)
    """
    counts: list[int] = table["matches"].to_pylist() if AT_LEAST in table.column_names else [table.num_rows]
    return sum(counts)


def warn_at_least(totals: Iterable[int]) -> None:
    """Warn where a number of matches is too large to be counted, so that the one shown may be too small."""
    if any(map(is_at_least, totals)):
        message = (
            f"there are more matches than can be counted: {said(MOST_COUNTED)} end with one event. "
            f"Numbers from 2^63 - 1 on are too small, as the column {AT_LEAST} says; match points are exact"
        )
        warnings.warn(message, CappedCountWarning, stacklevel=3)
