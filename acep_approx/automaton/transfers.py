"""What registers become when an event is bound: what a step says, or what follows from the kind of the register."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from acep_approx.automaton.resolve import Binding, Held, Own, Register, Resolved
from acep_approx.query.syntax import Constant, IsNull

PLACE = Register("place", "")
RUNNING = ("count", "counted", "sum", "min", "max", "least", "greatest")
"""Registers that every further event of their variable changes; so many functions of what was and what comes."""


@dataclass(frozen=True)
class Here:
    """The place of the current event."""


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
    if register.kind == "computed" or register.variable != binding.variable:
        return Held(register)
    own: Resolved = Constant(1) if register.of is None else Own(register.of)
    if register.kind in RUNNING and not binding.is_first:
        return Running(register.kind, Held(register), own)
    if register.kind == "first" and not binding.is_first:
        return Held(register)
    return IsNull(own, negated=True) if register.kind == "counted" else own


def begun(node: Resolved, computed: tuple[Computed, ...]) -> Resolved:
    """``node`` at the start, where registers that steps compute are what they begin as."""
    if isinstance(node, Held) and not node.updated:
        return next((one.init for one in computed if one.register == node.register), node)
    if isinstance(node, tuple):
        return tuple(begun(part, computed) for part in node)
    if isinstance(node, Own | Held) or not is_dataclass(node):
        return node
    changed: dict[str, Any] = {part.name: begun(getattr(node, part.name), computed) for part in fields(node)}
    return replace(node, **changed)  # type: ignore[type-var]
