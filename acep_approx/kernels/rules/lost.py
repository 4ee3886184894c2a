"""What runs that were lost can still lead to: whether one of them may complete a match at an event.

Nobody runs them. Of those of a key that stand at one place, and started at about the same time, is kept: the latest
start, and of each register that holds numbers the least and the greatest. An event that may take one of them a step on,
as far as these numbers say, puts what comes of it to the next place, too. So it costs about as much for an event as it
has steps, however many runs were lost, and what is said to lead nowhere leads nowhere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline

PARTS = 5
"""Times of start that are told apart in a window, and one more."""
LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, EQUAL, DIFFERENT = range(6)
"""How a test compares."""
UNKNOWN, OWN = -1, -2
"""What a register becomes, where it is none of before: what nobody knows; or, from there down, a value of the event."""
MAY_STEP, MAY_END = 1, 2
"""What events may do to these runs, as bits: take one of them a step on, or begin one; complete a match."""
WHOLE = float(1 << 50)
"""Up to here whole numbers are exact, in sums and products with small ones too."""
ROUNDED = 1e-9
"""Share by which other numbers may be off."""


class Moves(NamedTuple):
    """How runs go on: steps by source, ``first[place]`` the first of a place.

    ``letter``: its bit; ``target``; ``ends``: whether matches end there. ``moves[s * registers + f]``: what a register
    of the target becomes. Of each step the tests from ``tests[s]`` on: a sum is compared with a value of the event, by
    number. The sum of a test is ``shift`` and the terms from ``terms[t]`` on: ``factor * register``. Steps of place 0
    begin runs; without any only those are followed that are said to be lost.
    """

    places: int
    registers: int
    window: int
    first: Ints
    letter: Ints
    target: Ints
    ends: Ints
    moves: Ints
    tests: Ints
    how: Ints
    shift: Floats
    value: Ints
    terms: Ints
    register: Ints
    factor: Floats


class Coming(NamedTuple):
    """Events in order: key slot (below 0: none), tick, letters, and their values, one row for each that is asked for.

    ``leads``: what it reads is in doubt, and matters; ``all_end``: it ends all runs that have begun before. ``lost``:
    the row of ``starts`` and ``bounds`` with what was lost at it, or -1; see ``engines.runs.shedding.Lost``.
    """

    slot: Ints
    tick: Ints
    letters: Ints
    values: Floats
    leads: Bools
    all_end: Bools
    lost: Ints
    starts: Ints
    bounds: Floats


class Kept(NamedTuple):
    """What is known of lost runs, by slot, place and time of start: the latest start, and the bounds of registers."""

    start: Ints
    bounds: Floats


@inline
def _part(start: int, window: int) -> int:
    """The time of a start, of which some are told apart."""
    return start // (window // (PARTS - 1) + 1)


@inline
def _cell(moves: Moves, kept: Kept, slot: int, place: int, start: int, never: int) -> int:
    """Where lost runs of a start are kept, emptied where it had those of a time long ago; -1 where that is this one."""
    part = _part(start, moves.window)
    cell = (slot * moves.places + place) * PARTS + part % PARTS
    before = kept.start[cell]
    if before > never and _part(before, moves.window) > part:
        return -1
    if before == never or _part(before, moves.window) < part:
        at = cell * 2 * moves.registers
        for f in range(moves.registers):
            kept.bounds[at + 2 * f] = math.inf
            kept.bounds[at + 2 * f + 1] = -math.inf
        kept.start[cell] = start
    return int(cell)


@inline
def _put(moves: Moves, kept: Kept, slot: int, place: int, start: int, bounds: Floats, at: int, never: int) -> None:
    """Lost runs of this start, or an earlier one, stand at a place; ``bounds`` of their registers begin at ``at``.

    Below 0 nobody knows them.
    """
    cell = _cell(moves, kept, slot, place, start, never)
    if cell < 0:
        return
    kept.start[cell] = max(kept.start[cell], start)
    to = cell * 2 * moves.registers
    for f in range(moves.registers):
        low, high = -math.inf, math.inf
        if at >= 0:
            low, high = bounds[at + 2 * f], bounds[at + 2 * f + 1]
        kept.bounds[to + 2 * f] = min(kept.bounds[to + 2 * f], low)
        kept.bounds[to + 2 * f + 1] = max(kept.bounds[to + 2 * f + 1], high)


@inline
def _put_anywhere(moves: Moves, kept: Kept, slot: int, start: int, never: int) -> None:
    """Lost runs may stand anywhere, and hold anything."""
    for place in range(1, moves.places):
        _put(moves, kept, slot, place, start, kept.bounds, -1, never)


@inline
def _is_whole(number: float) -> bool:
    return not math.isinf(number) and number == math.floor(number)


@inline
def _may_be(how: int, low: float, high: float, value: float, off: float) -> bool:
    """Whether a comparison with some number from ``low`` to ``high`` may hold; they may be off by so much."""
    # an unknown number less another one is none
    if math.isinf(low) or math.isinf(high) or math.isinf(value) or low != low or high != high:
        return True
    if how == LESS:
        return low < value + off
    if how == LESS_OR_EQUAL:
        return low <= value + off
    if how == GREATER:
        return high > value - off
    if how == GREATER_OR_EQUAL:
        return high >= value - off
    if how == EQUAL:
        return low <= value + off and high >= value - off
    return low != high or low != value or off > 0.0


@inline
def _may_step(moves: Moves, coming: Coming, kept: Kept, i: int, step: int, cell: int) -> bool:
    """Whether an event may take some of the runs of a cell a step on."""
    at, events = cell * 2 * moves.registers, len(coming.slot)
    for t in range(moves.tests[step], moves.tests[step + 1]):
        value = coming.values[moves.value[t] * events + i]
        if value != value:  # the event has none
            return False
        low = high = moves.shift[t]
        size, is_whole = abs(value) + abs(low), _is_whole(value) and _is_whole(low)
        for k in range(moves.terms[t], moves.terms[t + 1]):
            f = at + 2 * moves.register[k]
            if kept.bounds[f] > kept.bounds[f + 1]:  # none of them has a number there
                return False
            one, other = moves.factor[k] * kept.bounds[f], moves.factor[k] * kept.bounds[f + 1]
            low, high = low + min(one, other), high + max(one, other)
            size += max(abs(one), abs(other))
            is_whole = is_whole and _is_whole(one) and _is_whole(other)
        # numbers with fractions may be off, by as much as the largest of them
        if not _may_be(moves.how[t], low, high, value, 0.0 if is_whole and size < WHOLE else ROUNDED * size):
            return False
    return True


@inline
def _go_on(moves: Moves, coming: Coming, kept: Kept, i: int, step: int, cell: int, next_: Floats, never: int) -> None:
    """Runs of a cell take a step: those that come of them stand at the next place, too."""
    at, events = cell * 2 * moves.registers, len(coming.slot)
    for f in range(moves.registers):
        move = moves.moves[step * moves.registers + f]
        if move >= 0:
            next_[2 * f] = kept.bounds[at + 2 * move]
            next_[2 * f + 1] = kept.bounds[at + 2 * move + 1]
        elif move == UNKNOWN:
            next_[2 * f] = -math.inf
            next_[2 * f + 1] = math.inf
        else:
            value = coming.values[(OWN - move) * events + i]
            next_[2 * f] = value if value == value else math.inf
            next_[2 * f + 1] = value if value == value else -math.inf
    _put(moves, kept, coming.slot[i], moves.target[step], kept.start[cell], next_, 0, never)


@inline
def _step_on(moves: Moves, coming: Coming, kept: Kept, i: int, next_: Floats, never: int) -> int:
    """Let an event take runs a step on, or begin some; returns what it may do."""
    may, slot, low = 0, coming.slot[i], coming.tick[i] - moves.window
    for turn in range(2 * (moves.places - 1)):
        place, comes_back = moves.places - 1 - turn // 2, turn % 2 == 1  # others first: they change no run of the place
        for step in range(moves.first[place], moves.first[place + 1]):
            target = moves.target[step]
            if coming.letters[i] >> moves.letter[step] & 1 == 0 or (target == place) != comes_back:
                continue
            leads = moves.first[target] < moves.first[target + 1]
            for part in range(PARTS):
                cell = (slot * moves.places + place) * PARTS + part
                if kept.start[cell] < low or not _may_step(moves, coming, kept, i, step, cell):
                    continue
                may |= MAY_STEP if moves.ends[step] == 0 else MAY_STEP | MAY_END
                if leads:
                    _go_on(moves, coming, kept, i, step, cell, next_, never)
    begun = slot * moves.places * PARTS
    for step in range(moves.first[0], moves.first[1]):
        if coming.letters[i] >> moves.letter[step] & 1:
            may |= MAY_STEP if moves.ends[step] == 0 else MAY_STEP | MAY_END
            kept.start[begun] = coming.tick[i]
            _go_on(moves, coming, kept, i, step, begun, next_, never)
    return may


@inline
def _take_lost(moves: Moves, coming: Coming, kept: Kept, i: int, when: int, never: int) -> None:
    """Note the runs that were lost at an event before its tests, or behind them."""
    row, slot, places = coming.lost[i], coming.slot[i], moves.places
    for place in range(1, places):
        start = coming.starts[row * (1 + 2 * places) + 1 + when * places + place]
        if start > never:
            at = ((row * 2 + when) * places + place) * 2 * moves.registers
            _put(moves, kept, slot, place, start, coming.bounds, at, never)


@kernel
def follow_lost(moves: Moves, coming: Coming, kept: Kept, next_: Floats, never: int, may: Ints) -> None:
    """Follow the runs that the exact run may have, and this one has not; or all that there may be.

    ``may``: what each event may do to them. ``next_`` has room for the bounds of one place.

    Complexity: O(events * steps * registers).
    """
    for i in range(len(coming.slot)):
        slot, row = coming.slot[i], coming.lost[i]
        may[i] = 0
        if slot < 0:
            continue
        if coming.all_end[i]:
            for cell in range(slot * moves.places * PARTS, (slot + 1) * moves.places * PARTS):
                kept.start[cell] = never
        if row >= 0:
            unknown = coming.starts[row * (1 + 2 * moves.places)]
            if unknown > never:
                may[i] |= MAY_STEP | MAY_END
                _put_anywhere(moves, kept, slot, unknown, never)
            _take_lost(moves, coming, kept, i, 0, never)
        may[i] |= _step_on(moves, coming, kept, i, next_, never)
        if coming.leads[i]:
            _put_anywhere(moves, kept, slot, coming.tick[i], never)
        if row >= 0:
            _take_lost(moves, coming, kept, i, 1, never)
