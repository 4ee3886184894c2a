"""Results as Arrow columns: matches, points, counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.automaton.automaton import Automaton
from acep_approx.engines.batches import Listed
from acep_approx.kernels.columns import spread
from acep_approx.matching.outputs.bind import BoundEvents
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.returns import ReturnColumns


def joined(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Tables of results as one, with the types that the columns have got by now."""
    parts = [table if table.schema.equals(schema) else table.cast(schema) for table in tables]
    return pa.concat_tables([schema.empty_table(), *parts])


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
        self._missing = lru_cache(maxsize=4096)(automaton.missing)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns of the events that are asked for."""
        return self.returns.needed or self.events.names

    def columns(self, listed: Listed) -> dict[str, pa.Array]:
        """Row numbers of the bound events, per variable: int64, null where nothing is bound; lists where Kleene."""
        if self.is_regex:
            return {"events": pa.ListArray.from_arrays(pa.array(listed.offset, pa.int32()), pa.array(listed.id))}
        matches = len(listed.hit)
        single = self._spread(listed)
        match = np.repeat(np.arange(matches), np.diff(listed.offset)) if self.kleene else listed.hit
        result = {}
        for label, variable in enumerate(self.automaton.variables):
            if variable not in self.kleene:
                result[variable] = single[variable]
                continue
            mine = listed.label == label
            lengths = np.bincount(match[mine], minlength=matches)
            offsets = np.concatenate(([0], np.cumsum(lengths)))
            result[variable] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(listed.id[mine]))
        return result

    def _spread(self, listed: Listed) -> dict[str, pa.Array]:
        """The columns of the variables that bind one event."""
        names = [variable for variable in self.automaton.variables if variable not in self.kleene]
        place = np.array([names.index(v) if v in names else -1 for v in self.automaton.variables], np.int64)
        matches = len(listed.hit)
        rows, bound = np.full(len(names) * matches, -1), np.zeros(len(names), np.int64)
        spread(listed.offset, listed.id, listed.label, place, rows, bound)
        columns = zip(names, rows.reshape(len(names), matches), bound.tolist(), strict=True)
        return {name: pa.array(each, mask=each < 0 if count < matches else None) for name, each, count in columns}

    def shown(self, listed: Listed, recent: Recent) -> dict[str, pa.Array]:
        """The columns of the variables, or what RETURN asks for."""
        bound = self.columns(listed)
        if self.returns:
            return self.returns.columns(bound, recent)
        return {name: self.events.shown(rows, recent.take) for name, rows in bound.items()}

    def described(self, listed: Listed, errors: Ints, recent: Recent) -> dict[str, pa.Array]:
        """What is missing from each match, where variables have names, and what ``shown`` gives."""
        missing = {} if self.is_regex else {"missing": self.missing(listed, errors)}
        return {**missing, **self.shown(listed, recent)}

    def missing(self, listed: Listed, errors: Ints) -> pa.Array:
        """Per match the variables whose events are missing: list of strings, in the order of the pattern."""
        if not errors.any():
            return pa.ListArray.from_arrays(pa.array(np.zeros(len(errors) + 1, np.int32)), pa.array([], pa.string()))
        codes, first = self._shapes(listed, errors)
        texts = [
            self._missing(tuple(listed.label[listed.offset[m] : listed.offset[m + 1]].tolist()), int(errors[m]))
            if errors[m]
            else ()
            for m in first
        ]
        return pa.array(texts, pa.list_(pa.string())).take(pa.array(codes))

    def _shapes(self, listed: Listed, errors: Ints) -> tuple[Ints, Ints]:
        """Number the distinct (errors, labels): per match its number, per number a match that has it."""
        lengths = np.diff(listed.offset)
        if not len(lengths):
            return lengths, lengths
        base = max(len(self.automaton.variables), self.automaton.errors) + 1
        if (lengths.max(initial=0) + 1) * np.log2(base) < 62:
            place = np.arange(len(listed.label)) - np.repeat(listed.offset[:-1], lengths)
            terms = (listed.label + 1) * base ** (place + 1)
            keys: Ints | npt.NDArray[np.object_] = np.add.reduceat(terms, listed.offset[:-1]) + errors
        else:
            ends = listed.offset.tolist()
            labels = (listed.label[a:b].tobytes() for a, b in pairwise(ends))
            keys = np.array([bytes((e,)) + text for e, text in zip(errors.tolist(), labels, strict=True)], object)
        _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        return codes, first

