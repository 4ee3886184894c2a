"""What runs hold, in the words of columns that have got wider types."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.automaton.resolve import Register
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.engines.runs.programs import register_kind, types_like
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.kernels.runs.vm import NULL

_PER_UNIT = {"us": 1, "ns": 1000}


class Rewording:
    """From the words of some columns to those of the same columns with wider types.

    Parameters
    ----------
    before, after : EventColumns
        Of one stream: the codes of texts stay what they are.
    """

    def __init__(self, before: EventColumns, after: EventColumns) -> None:
        self._before, self._after = before, after
        self._finer = _PER_UNIT[after.unit] // _PER_UNIT[before.unit]

    def words(self, words: Ints, register: Register) -> Ints:
        """The words of a register; only null, and whole numbers as floats, change their kind.

        Raises
        ------
        pyarrow.ArrowInvalid
            A whole number cannot be held exactly as a float, or a time in the finer unit.
        """
        before, after = register_kind(register, self._before), register_kind(register, self._after)
        if before == after == "other":
            return self._carried(words, register)
        if before == after != "time":
            return words
        is_null = words == NULL
        known = np.where(is_null, 0, words)
        if after == "float":
            floats = to_numpy(to_arrow(known).cast(pa.float64()))
            return np.where(is_null, np.nan, floats).view(np.int64)
        if before == after and self._finer > 1:
            known = to_numpy(to_arrow(known).cast(pa.timestamp("us")).cast(pa.timestamp("ns")).cast(pa.int64()))
        return np.where(is_null, NULL, known)

    def _carried(self, words: Ints, register: Register) -> Ints:
        """Codes of values whose type has become wider, such as lists of which none had an item so far."""
        (before,), (after,) = types_like(register, self._before), types_like(register, self._after)
        if before.equals(after):
            return words
        return self._after.texts.encode(self._before.texts.carried(words, before).cast(after))
