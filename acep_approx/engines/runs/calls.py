"""Functions that the kernel asks for: before runs of a block take steps, their results are put into columns."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.engines.runs.pool_arena import PoolArena
from acep_approx.engines.runs.programs import MAX_TEMPORARIES, Operand
from acep_approx.errors import DataError
from acep_approx.kernels.runs import layout, vm
from acep_approx.kernels.runs import pools as kp


def call_functions(arena: PoolArena, control: Ints) -> None:
    """Call the functions of the source at hand, over columns of the block at hand, and let the kernel go on.

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

    def column(operand: Operand) -> Ints | Floats:
        if operand.place == vm.SCALAR:
            found = np.full(n, words[tables.scalars.address(operand.number)])
        else:
            at = first + (kp.COLUMNS + operand.number) * room
            found = words[at : at + n].copy()
        return found.view(np.float64) if operand.kind == "float" else found

    for number in tables.calls_of_sources[source]:
        called = tables.scalars.calls[number]
        function = tables.options.functions[called.name]
        result = np.asarray(function.compute(*(column(operand) for operand in called.arguments)))
        if result.shape != (n,):
            raise DataError(
                f"the function {called.name!r} was given {n} values per argument, and gave {result.shape} back",
                code="ACEP-D203",
                hint="give one value back for each that comes in",
            )
        kind = np.float64 if function.kind == "float" else np.int64
        at = tables.temporaries_at + (MAX_TEMPORARIES + 1 + number) * vm.BLOCK
        words[at : at + n] = result.astype(kind).view(np.int64)
    control[layout.CALLED] = 1
