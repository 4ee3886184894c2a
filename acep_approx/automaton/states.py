"""States of the register automaton, what runs ignore there, the steps between them, and what registers become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from acep_approx.automaton.automaton import START
from acep_approx.automaton.resolve import Binding, Held, Own, Register, Resolved, held
from acep_approx.query.shape import replaced
from acep_approx.query.syntax import Constant, IsNull, Repeat, Strategy

PLACE = Register("place", "")
RUNNING = ("count", "counted", "sum", "min", "max", "least", "greatest")
"""Registers that every further event of their variable changes; so many functions of what was and what comes."""


@dataclass(frozen=True)
class Here:
    """The place of the current event."""


@dataclass(frozen=True)
class Neighbour:
    """Whether the current event is the one after the event bound last, where events are counted."""

    last: Held


@dataclass(frozen=True)
class Now:
    """The tick of the current event."""


@dataclass(frozen=True)
class Began:
    """The tick at which the current event began: its own, unless a column says otherwise."""


@dataclass(frozen=True)
class Running:
    """A running aggregate, one of ``RUNNING``, of which ``before`` is known, after one more ``value``."""

    function: str
    before: Resolved
    value: Resolved


@dataclass(frozen=True)
class Computed:
    """A register that steps compute: what it begins as, and what a step makes of it that does not say it.

    ``register`` is of kind ``computed`` and says what it ``holds``. ``init`` is about the first event of a run alone;
    ``update`` may read registers, its own too; None: it stays as it is.
    """

    register: Register
    init: Resolved
    update: Resolved | None = None


def by_kind(register: Register, binding: Binding) -> Resolved:
    """What a register becomes at a binding, where no step says it.

    Examples
    --------
    >>> by_kind(Register("count", "a"), Binding("a", frozenset()))
    Constant(value=1)
    >>> count = Register("count", "a")
    >>> by_kind(count, Binding("a", frozenset({"a"}))) == Running("count", Held(count), Constant(1))
    True
    """
    if register == PLACE:
        return Here()
    if register.kind == "computed" or register.variable not in binding.binds:
        return Held(register)
    if 0 < register.upto < binding.number:
        return Held(register)
    own: Resolved = Constant(1) if register.of is None else Own(register.of)
    if register.kind in RUNNING and not binding.is_first:
        return Running(register.kind, Held(register), own)
    if register.kind == "first" and not binding.is_first:
        return Held(register)
    return IsNull(own, negated=True) if register.kind == "counted" else own


def begun(node: Resolved, computed: tuple[Computed, ...]) -> Resolved:
    """``node`` at the start, where registers that steps compute are what they begin as."""
    begins = {one.register: one.init for one in computed}

    def known(part: Resolved) -> Resolved:
        if isinstance(part, Held):
            return part if part.updated else begins.get(part.register, part)
        return part if isinstance(part, Own) else None

    return replaced(node, known)


NOTHING: frozenset[str] = frozenset()
ALWAYS = (-(2**62), 2**62)
"""The lifetime of steps that do not change."""
Counted = Literal["nothing", "partition", "stream"]
"""Which events the place of an event counts: none, those of its partition, or all of the stream."""


@dataclass(frozen=True)
class State:
    """A position of the automaton and the bound variables that conditions to come will name (``resolve.numbered``).

    Where gaps with different strategies can come next, each has a state of its own for the runs that wait for its end:
    ``gap`` is that strategy, None that of the query. So have those that wait for others ``after_in`` repetitions that
    prefer something, and those with letters that must not come next, ``near``. In one of them, which ``ends``, are the
    matches that are complete.
    """

    position: int
    bound: frozenset[str] = NOTHING
    gap: Strategy | None = None
    after_in: frozenset[Repeat] = frozenset()
    near: frozenset[int] = frozenset()
    ends: bool = True


@dataclass(frozen=True)
class Ignore:
    """Which events a run passes over at a state; an event that it does not pass over ends it, whether it steps or not.

    ``letters``: an event of one of them is passed over, one of none of them is not; None: every event is. ``checks``
    must all be TRUE of run and event, too; they are asked of events that some letter of the automaton holds on.
    An inhibiting step that is open to the event ends a run that would ignore it.
    """

    letters: frozenset[int] | None = None
    checks: tuple[Resolved, ...] = ()

    @property
    def needs_neighbours(self) -> bool:
        """Whether an event that is nothing to the automaton ends the run: then the places of events are counted."""
        return self.letters is not None

    def passes(self, mask: int) -> bool:
        """Whether events with these letters can be passed over."""
        return self.letters is None or any(mask >> letter & 1 for letter in self.letters)


EVERYTHING, NO_EVENT = Ignore(), Ignore(frozenset())


@dataclass(frozen=True)
class Step:
    """What an event can do to a run at ``source``: bring a child of it to ``target``, by ``arc``.

    ``letter`` indexes ``RegisterAutomaton.letters``. ``checks`` must all be TRUE. ``guard`` holds the letters of which
    no event may have passed since the last bound event. An event on which an ``inhibits`` step is open cannot be
    ignored. ``lifetime``: the first tick at which it is open, and the first at which it is not. ``moves`` says what
    registers of the target become, where it does not follow from their kind. A *kill step* has no target, no arc and
    no guard: it inhibits, and that is all it does.
    """

    arc: int | None
    source: int
    target: int | None
    letter: int
    binding: Binding
    checks: tuple[Resolved, ...]
    guard: frozenset[int]
    inhibits: bool
    lifetime: tuple[int, int] = ALWAYS
    moves: Mapping[Register, Resolved] = field(default_factory=dict, hash=False)

    def after(self, register: Register) -> Resolved:
        """What a register becomes."""
        return self.moves[register] if register in self.moves else by_kind(register, self.binding)

    def reads(self, node: Resolved) -> frozenset[Register]:
        """The registers that must be known before the step to know ``node``, which may ask what others become."""
        found = held(node)
        known = frozenset(value.register for value in found if not value.updated)
        return known.union(*(self.reads(self.after(value.register)) for value in found if value.updated))

    def computing(self, computed: tuple[Computed, ...]) -> Step:
        """The step where some registers are computed: what it does not say of them follows from what they are."""
        implied = {one.register: one.update for one in computed if one.update is not None}
        if self.source != START:
            return replace(self, moves={**implied, **self.moves})
        moves = {**{one.register: one.init for one in computed}, **self.moves}
        return replace(
            self,
            moves={register: begun(move, computed) for register, move in moves.items()},
            checks=tuple(begun(check, computed) for check in self.checks),
        )
