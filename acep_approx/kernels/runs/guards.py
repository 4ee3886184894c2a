"""Guards: per key and negated letter the places of the last events that it held on."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.records import Keys, Program


@inline
def note_guard(keys: Keys, shape: Ints, key: int, place: int, letter: int) -> None:
    """Note that an event of a guard letter came, and where the last one stood that came at an earlier place."""
    at_letter = (key * shape[at.GUARD_LETTERS] + letter) * at.GUARD
    if keys.guards[at_letter] != place:
        keys.guards[at_letter + 1] = keys.guards[at_letter]
        keys.guards[at_letter] = place


@inline
def note_guards(program: Program, keys: Keys, key: int, place: int, kind: int) -> None:
    """Note an event of class ``kind`` with all guard letters that hold on it."""
    tables, shape = program.tables, program.shape
    where = shape[at.GUARDS_FIRST] + kind
    for i in range(tables[where], tables[where + 1]):
        note_guard(keys, shape, key, place, tables[shape[at.GUARDS] + i])
