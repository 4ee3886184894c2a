"""What the runs engine is told where not all runs can be kept: what runs are worth, and how much may be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from acep_approx.arrays import Floats, Ints
from acep_approx.query.syntax import Expression

if TYPE_CHECKING:  # a run that keeps all loads nothing of histories
    from history.coverage.group_covers import GroupCovers
    from history.trees import Trees
    from history.vectors import Scheme

FeatureKind = Literal["int", "float", "text", "key", "pace", "ahead", "difference", "sum", "context"]
REASONS = (
    "born below the price", "fell below the price", "bound on run-steps", "bound on runs", "another stands for it",
    "another can do all that it can",
)  # fmt: skip
BY_ANOTHER = REASONS[-1]
"""The reason that loses no match point."""
WITHOUT_END = 1e18
DOMINATED = 1 / 256
"""What is left of the score of a run beside another of its place that can do all that it can."""


@dataclass(frozen=True)
class RunFeature:
    """One number of a run that its group depends on.

    ``column`` is that of a register. Numbers are in the bucket of as many ``edges`` as they reach, texts and keys in
    that of ``groups``; NULL and unknown ones are in the last of the ``buckets``. "pace" is that of the run's key:
    how many of its events came of late; "ahead" by how much the register is above what it is taken ``of`` in the event
    at hand. "difference" and "sum" are of the register and an ``other`` one; "context" is
    what ``trees`` make of the current event, whose inputs are its tick, the pace of its key and these ``inputs``.
    """

    kind: FeatureKind
    column: int
    buckets: int
    edges: tuple[float, ...] = ()
    groups: dict[str, int] = field(default_factory=dict)
    of: Expression | None = None
    other: int = 0
    trees: Trees | None = None
    inputs: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Worth:
    """What runs are worth, by vertex.

    ``features`` per pool (the first is that of the start); ``remaining`` equal parts of the window; ``since`` the
    longest times in ticks since the last event, but for the last bucket. Vertices are numbered by pool, group, part and
    time: shape of ``gain`` and ``cost`` (vertices,). ``overlap`` and ``covers`` are per pool: what share of the gain
    later runs take away, and those of which pools (the first is itself). Where groups cover each other (``by_group``),
    these say instead what is taken away; ``covers`` still says for which pools a child may stand. Ties are broken by a
    coin per lineage, or per run, that takes away a share of up to 1 / (1 + spread). ``dominated``: what is left of the
    score of a run beside one of its place that can do all that it can; 1: nobody looks. ``cost`` is to the power that
    the ``scheme`` says, which has the vertices in words.
    """

    features: Sequence[Sequence[RunFeature]]
    remaining: int
    since: tuple[int, ...]
    gain: Floats
    cost: Floats
    overlap: Floats
    covers: Sequence[Sequence[int]]
    by_group: GroupCovers | None = None
    spread: float = 10.0
    coin_per_run: bool = False
    dominated: float = DOMINATED
    scheme: Scheme | None = None
    joins: Ints | None = None


@dataclass(frozen=True)
class Allowance:
    """How much may be done.

    Parameters
    ----------
    rate : float
        Run-steps granted per event.
    most : float
        Run-steps that can be saved up.
    runs : int
        Most live runs; -1: any number.
    price : float
        Least score of a run that is kept while the budget is used as it should be; 0: nothing is ever shed.
    keeps_all : float
        A price below which nothing is shed, also what is worth nothing as far as is known.
    elasticity : float
        By which power of the work the price changes, from 0 to 1: see ``Prices.elasticity``.
    reserve, reserve_share : float
        Run-steps that should be left: so many, and this share of what was granted so far, but at most a quarter of
        that. The price rises above ``price`` when fewer are. Below 0: it stays as it is.
    audit, audit_share : float
        Share of (key, epoch) whose runs are protected, and of the budget that is for those that would have been shed.
    epoch : int
        Ticks.
    seed : int
        Of all coins.
    """

    rate: float = WITHOUT_END
    most: float = WITHOUT_END
    runs: int = -1
    price: float = 0.0
    keeps_all: float = 0.0
    elasticity: float = 1.0
    reserve: float = 1.0
    reserve_share: float = 0.0
    audit: float = 0.0
    audit_share: float = 0.0
    epoch: int = 1
    seed: int = 0
