"""The runs of the active key, taken up from where they are saved: a matcher goes on where another one stopped.

``kernels.runs.saved.load_runs`` does this for the next key of a stream, and forgets what was noted about the key
before. Here nothing is forgotten: where it matters which runs are shed, the next event must find all as it was.
"""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.kernels.runs import pools as kp
from acep_approx.kernels.runs import saved

OF_ALL_KEYS = (kp.TRIED, kp.JOINED, kp.REST, kp.TESTED)
OF_KEY = (kp.RUNS, kp.CHILDREN, kp.FRESH, kp.KEPT, kp.HEAD, kp.LAST_PLACE, kp.OLDEST, kp.AGE, kp.COUNTED)
"""Words of a pool that say how it stands, whichever key is current, and with this key."""
WITHIN_RUNS = (kp.CHILDREN, kp.FRESH, kp.KEPT, kp.HEAD)
"""Those that say which runs: they may be of runs that have left, for which there is no room any more."""


def take_up(before: Ints, span: Ints, stored: Ints, pools: Ints, words: Ints) -> None:
    """Bring the saved runs of the current key back into pools that have room for them.

    Parameters
    ----------
    before : int64 array, shape (pools * POOL,)
        The words of the pools when the runs were saved.
    span : int64 array, shape (SPAN,)
        Where the runs of the key are in ``stored``; of length 0 where no key is current.
    stored, pools, words : int64 arrays
        Of the engine. Indexes must be made anew.

    Complexity: O(runs of the key).
    """
    table, old = pools.reshape(-1, kp.POOL), before.reshape(-1, kp.POOL)
    table[:, OF_ALL_KEYS] = old[:, OF_ALL_KEYS]
    if not len(span):
        return
    table[1:, OF_KEY] = old[1:, OF_KEY]
    table[1:, WITHIN_RUNS] = np.minimum(old[1:, WITHIN_RUNS], old[1:, [kp.RUNS]])
    at, end = int(span[0]), int(span[0] + span[1])
    while at < end:
        pool, runs = int(stored[at]) & saved.POOL_MASK, int(stored[at + 1])
        base, room = int(table[pool, kp.BASE]), int(table[pool, kp.ROOM])
        columns = kp.COLUMNS + int(table[pool, kp.FIELDS])
        at += saved.SAVED
        block = stored[at : at + columns * runs].reshape(columns, runs)
        words[base : base + columns * room].reshape(columns, room)[:, :runs] = block
        at += columns * runs
