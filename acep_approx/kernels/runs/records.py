"""The records of arrays that the kernels of the runs engine take; their words are named in ``layout``."""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Floats, Ints


class Batch(NamedTuple):
    """Events of a batch, grouped by key: parallel columns; ``columns`` has one after the other.

    ``id`` is the name of each, ``place`` a number that grows within its key.
    ``start``: the tick at which runs that begin with an event start; that of the event, unless a column says otherwise.
    ``low``: the earliest start of a run that may still be in the window.
    """

    slot: Ints
    tick: Ints
    low: Ints
    start: Ints
    cls: Ints
    id: Ints
    place: Ints
    columns: Ints


class Program(NamedTuple):
    """What a query asks for: its ``tables``, where their parts begin (``shape``), and the ranks of texts by code.

    ``more`` is None where it asks for nothing beyond conditions and strategies: what functions, ticks and the
    like need is then no part of the compiled code.
    """

    tables: Ints
    shape: Ints
    ranks: Ints
    more: int | None


class Pools(NamedTuple):
    """Runs by pool: the words of each pool (``table``), and the arena of their columns as integers and as floats.

    ``chains`` find runs by registers, ``buckets`` the children of the current event.
    """

    table: Ints
    words: Ints
    floats: Floats
    chains: Ints
    buckets: Ints


class Lanes(NamedTuple):
    """What is known of each run of a block: whether it takes a step, whether it stays, and which ones were chosen."""

    mask: Ints
    stay: Ints
    chosen: Ints


class Lineage(NamedTuple):
    """Which runs led to which, the key of each link where windows count events, and what was completed.

    ``shown``: of each hit the registers that results show; there is room for as many hits as in ``hits``.
    """

    links: Ints
    owner: Ints
    hits: Ints
    shown: Ints


class Keys(NamedTuple):
    """The runs of the keys that are not current, where each has them, and the last places of its guard letters."""

    stored: Ints
    spans: Ints
    guards: Ints


class Arena(NamedTuple):
    """How to stay inside a budget: the arena as integers and as floats, tables of groups, and the pace of each key.

    ``weights``: what a match point counts for, per key; the last one is that of all further ones.

    ``stands_for``: for how many events of the stream run-steps are granted at each event of the batch. ``log`` and
    ``sample`` take what is written down of runs. ``prices``: at which price each event of the batch was, or is, run.
    ``lost``: per event of the batch the latest starts of what was lost at it: of unknown runs, and of those of each
    pool before its tests and behind them; no room where nobody asks. ``lost_bounds``: the least and the greatest number
    in each register of the latter.
    """

    words: Ints
    floats: Floats
    lookup: Ints
    stands_for: Floats
    log: Ints
    sample: Ints
    pace: Floats
    prices: Floats
    weights: Floats
    lost: Ints
    lost_bounds: Floats


class Event(NamedTuple):
    """The current event; ``number`` is that within the batch, ``low`` the earliest start inside the window.

    ``start``: the start of the runs that begin with it.
    """

    number: int
    now: int
    start: int
    key: int
    kind: int
    id: int
    place: int
    low: int


class RunBlock(NamedTuple):
    """Runs of a pool that the steps of a source are tried with; ``source``: where its words stand.

    The columns of their starts, links and registers begin at ``starts``, ``before`` and ``registers``, and are ``room``
    words apart; ``first``: of so many ``steps``; ``removes``: whether they take runs away.
    """

    pool: int
    source: int
    first: int
    steps: int
    removes: int
    starts: int
    before: int
    registers: int
    room: int
    offset: int
    n: int
    has_old: int


class Taken(NamedTuple):
    """A step that ``m`` runs of a block take.

    ``moves``: where the ``fields`` registers of a child come from; ``link``: its first link; ``here``: id and arc.
    ``stamp``: the lowest of this event.
    """

    target: int
    moves: int
    fields: int
    m: int
    link: int
    here: int
    key: int
    stamp: int


class Cut(NamedTuple):
    """Which runs go: those below the bin ``threshold``, and those in it but ``spare``; and why."""

    threshold: int
    spare: int
    reason: int


class Front(NamedTuple):
    """The runs of a pool, which may dominate one another.

    Their columns begin at ``base``, and each has ``room``; marks stand at ``marks``. The first ``fields`` registers are
    held against each other, each as the ``directions`` say.
    """

    pool: int
    base: int
    room: int
    marks: int
    directions: int
    fields: int
