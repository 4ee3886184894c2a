"""Watermarks of several sources, and of events that carry numbers: row by row, in order of arrival.

The watermark is the least over the sources that are not idle. A tournament finds it: each source is a leaf, each inner
node has the source that wins among those below, so that a row costs O(log sources). That a source is idle is seen when
it wins: it is then taken out until its next row.

Events whose numbers are behind a gap wait in a heap per source. These are skew heaps (Sleator and Tarjan, SIAM Journal
on Computing 15(1), 1986) of nodes that lie in one room.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import called, inline

NEVER = -(2**62)
"""A watermark that nothing has moved."""
ENDED = 2**62
"""The watermark of a stream that has ended."""
NONE = -(2**63)
"""Where there is no number."""


class Rows(NamedTuple):
    """Rows in order of arrival: source (0: no name), tick, number (no room: none have one), whether a punctuation."""

    source: Ints
    tick: Ints
    number: Ints
    is_punctuation: Bools


class Sources(NamedTuple):
    """Per source, with room for more: what it has sent, and what it has in the tournament.

    ``newest`` is its greatest tick (``NEVER``: it is not known yet), ``mark`` its own watermark, ``last`` its number
    before the first gap (``NONE``: no event came), ``heap`` the first node of those that wait (-1: none do). ``key`` is
    its watermark, ``ENDED`` if it is taken out; ``winner`` has the nodes of the tournament, two per source, from 1 on.
    """

    newest: Ints
    mark: Ints
    last: Ints
    heap: Ints
    key: Ints
    winner: Ints


class Waiting(NamedTuple):
    """Events behind a gap: number, tick, and the two nodes below (-1: none). ``left`` links nodes that are free."""

    number: Ints
    tick: Ints
    left: Ints
    right: Ints


# state: the watermark; the greatest tick of all sources; the first free node, how many nodes were ever used;
# delay and idle (-1: none)
CURRENT, NEWEST, FREE, USED, DELAY, IDLE, STATE = 0, 1, 2, 3, 4, 5, 6


@inline
def _is_first(waiting: Waiting, one: int, other: int) -> bool:
    """Whether a node comes before another: the lower number, and of the same number the lower tick."""
    mine, theirs = waiting.number[one], waiting.number[other]
    return bool(mine < theirs or (mine == theirs and waiting.tick[one] <= waiting.tick[other]))


@called
def _merged(waiting: Waiting, one: int, other: int) -> int:
    """The first node of two heaps as one. Complexity: O(log nodes) amortised."""
    if one < 0 or other < 0:
        return max(one, other)
    if not _is_first(waiting, one, other):
        one, other = other, one
    first = one
    while True:
        right = waiting.right[one]
        waiting.right[one] = waiting.left[one]
        if right < 0:
            waiting.left[one] = other
            return first
        if not _is_first(waiting, right, other):
            right, other = other, right
        waiting.left[one] = right
        one = right


@inline
def _wait(waiting: Waiting, state: Ints, sources: Sources, s: int, number: int, tick: int) -> None:
    """Put an event of a source among those that wait; there is room."""
    node = state[FREE]
    if node >= 0:
        state[FREE] = waiting.left[node]
    else:
        node = state[USED]
        state[USED] = node + 1
    waiting.number[node] = number
    waiting.tick[node] = tick
    waiting.left[node] = waiting.right[node] = -1
    sources.heap[s] = _merged(waiting, sources.heap[s], node)


@called
def _go_on(sources: Sources, waiting: Waiting, state: Ints, s: int) -> None:
    """Let those events of a source wait no longer that are behind no gap, or behind one that is given up."""
    last, mark = sources.last[s], sources.mark[s]
    while sources.heap[s] >= 0:
        node = sources.heap[s]
        number, tick = waiting.number[node], waiting.tick[node]
        if number > last and number - 1 != last and tick >= max(mark, state[CURRENT]):
            break
        if number > last:
            last, mark = number, max(mark, tick)
        sources.heap[s] = _merged(waiting, waiting.left[node], waiting.right[node])
        waiting.left[node] = state[FREE]
        state[FREE] = node
    sources.last[s] = last
    sources.mark[s] = mark


@inline
def _play(sources: Sources, s: int) -> None:
    """Find the winners anew where a source has played."""
    key, winner = sources.key, sources.winner
    node = (len(key) + s) >> 1
    while node > 0:
        one, other = winner[2 * node], winner[2 * node + 1]
        best = one if key[one] <= key[other] else other
        if best != s and winner[node] == best:
            break
        winner[node] = best
        node >>= 1


@inline
def _is_idle(sources: Sources, state: Ints, s: int) -> bool:
    return bool(state[IDLE] >= 0 and state[NEWEST] - sources.newest[s] > state[IDLE])


@inline
def _count(sources: Sources, s: int) -> None:
    """Let a source count with its watermark; if it is idle, that is seen when it wins."""
    sources.key[s] = sources.mark[s]
    _play(sources, s)


@inline
def _rise(sources: Sources, state: Ints) -> None:
    """Let the watermark rise to the least over the sources that are not idle."""
    s = sources.winner[1]
    while sources.key[s] < ENDED and _is_idle(sources, state, s):
        sources.key[s] = ENDED
        _play(sources, s)
        s = sources.winner[1]
    if sources.key[s] < ENDED:
        state[CURRENT] = max(state[CURRENT], sources.key[s])


@called
def _pass_time(sources: Sources, waiting: Waiting, state: Ints, tick: int) -> None:
    """Take in a punctuation that counts for all sources."""
    state[CURRENT] = max(state[CURRENT], tick)
    for s in range(len(sources.heap) if state[USED] > 0 else 0):
        if sources.heap[s] >= 0:
            _go_on(sources, waiting, state, s)
            _count(sources, s)
    _rise(sources, state)


@inline
def _take_number(sources: Sources, waiting: Waiting, state: Ints, s: int, number: int, tick: int) -> None:
    """Take in the number of an event: the first of a source, the one after its last, or one behind a gap."""
    last = sources.last[s]
    if last == NONE or (number > last and number - 1 == last):
        sources.last[s] = number
        sources.mark[s] = max(sources.mark[s], tick)
    elif number > last:
        _wait(waiting, state, sources, s, number, tick)


@kernel
def advance(rows: Rows, first: int, sources: Sources, waiting: Waiting, state: Ints, before: Ints) -> int:
    """Take in rows from ``first`` on; ``before`` gets the watermark before each.

    Parameters
    ----------
    rows : Rows
    first : int
        The first row to be taken in.
    sources : Sources
        Changed in place. Has room for all sources of the rows.
    waiting : Waiting
        Changed in place.
    state : int64, of ``STATE``
        Changed in place.
    before : int64
        Has room for all rows.

    Returns
    -------
    int
        The first row not taken in, as ``waiting`` has no room for it; or the number of rows.

    Complexity: O(log sources) per row, and O(log events that wait) for each that waits; a punctuation that counts for
    all: O(sources) if events wait.
    """
    numbered = len(rows.number) > 0
    for i in range(first, len(rows.tick)):
        if numbered and state[FREE] < 0 and state[USED] == len(waiting.number):
            return i
        before[i] = state[CURRENT]
        s, tick, is_punctuation = rows.source[i], rows.tick[i], rows.is_punctuation[i]
        if is_punctuation and s == 0:
            _pass_time(sources, waiting, state, tick)
            continue
        sources.newest[s] = max(sources.newest[s], tick)
        state[NEWEST] = max(state[NEWEST], tick)
        if is_punctuation:
            sources.mark[s] = max(sources.mark[s], tick)
        elif state[DELAY] >= 0:
            sources.mark[s] = max(sources.mark[s], tick - state[DELAY])
        if numbered and not is_punctuation:
            _take_number(sources, waiting, state, s, rows.number[i], tick)
        if sources.heap[s] >= 0:
            _go_on(sources, waiting, state, s)
        _count(sources, s)
        _rise(sources, state)
    return len(rows.tick)


@kernel
def arrange(sources: Sources) -> None:
    """Begin the tournament: after a restart, or in a larger room. Complexity: O(sources)."""
    room = len(sources.key)
    for s in range(room):
        sources.key[s] = sources.mark[s] if sources.newest[s] != NEVER else ENDED
        sources.winner[room + s] = s
    for node in range(room - 1, 0, -1):
        one, other = sources.winner[2 * node], sources.winner[2 * node + 1]
        sources.winner[node] = one if sources.key[one] <= sources.key[other] else other
