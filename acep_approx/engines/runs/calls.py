"""Functions that the kernel asks for: before runs of a block take steps, their results are put into columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.runs.event_columns import Kind, Texts
from acep_approx.engines.runs.pool_arena import PoolArena
from acep_approx.engines.runs.programs import MAX_TEMPORARIES, Operand
from acep_approx.kernels.runs import layout, vm
from acep_approx.kernels.runs import pools as kp
from acep_approx.query.evaluate import plain_result


def call_functions(arena: PoolArena, control: Ints) -> None:
    """Call the functions of the current source, over columns of the current block, and let the kernel go on.

    Raises
    ------
    DataError
        ``ACEP-D203``: a result that is not as long as the block.

    Complexity: O(runs of the block x arguments), and what the functions take.
    """
    tables, words = arena.tables, arena.words
    source, n = int(control[layout.SOURCE]), int(control[layout.ASK])
    place = tables.tables[tables.shape[layout.SOURCES] + source * layout.SOURCE_WORDS + layout.SOURCE_POOL]
    pool = arena.rows[place]
    first, room = int(pool[kp.BASE] + control[layout.OFFSET]), int(pool[kp.ROOM])

    texts = tables.scalars.columns.texts

    def column(operand: Operand) -> npt.NDArray[Any]:
        if operand.place == vm.SCALAR:
            found = np.full(n, words[tables.scalars.address(operand.number)])
        else:
            at = first + (kp.COLUMNS + operand.number) * room
            found = words[at : at + n].copy()
        return _argument(found, operand.kind, texts)

    for number in tables.calls_of_sources[source]:
        called = tables.scalars.calls[number]
        function = tables.options.functions[called.name]
        result = function.compute(*(column(operand) for operand in called.arguments))
        values, is_known = plain_result(function, result, n)
        at = tables.temporaries_at + (MAX_TEMPORARIES + 1 + number) * vm.BLOCK
        if function.holds == "text":
            words[at : at + n] = texts.encode(pa.array(values, pa.string(), mask=~is_known))
        elif function.holds == "float":
            words[at : at + n] = values.view(np.int64)
        else:
            words[at : at + n] = np.where(is_known, values.astype(np.int64), vm.NULL)
    control[layout.CALLED] = 1


def _argument(words: Ints, kind: Kind, texts: Texts) -> npt.NDArray[Any]:
    """Words of the block machine as functions get them: whole numbers with NULL among them as floats."""
    if kind == "float":
        return words.view(np.float64)
    is_null = words == vm.NULL
    if kind == "text":
        known = np.array([*texts.values, None], object)
        return known[np.where(is_null, len(known) - 1, words)]
    if kind == "time":
        return words.view("datetime64[us]")  # its NaT is our NULL
    if kind == "truth" and not is_null.any():
        return words.astype(np.bool_)
    return np.where(is_null, np.nan, words) if is_null.any() else words
