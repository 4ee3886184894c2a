"""The key that a query in CEL has without saying so: an attribute that all events of each result agree in.

Where every operator asks ``$2.g = $1.g``, an event of one ``g`` is nothing to the runs of another: it takes none of
them forward, and none away. So the stream can be split by ``g``, as ``[g]`` splits it in PATTERN SEQ(..).

Source: ours. Demers et al., CIDR 2007, section 4.3.2, index what waits for an event by such equalities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Held, Own, Register, Resolved
from acep_approx.query.syntax import Attribute, Binary


def implied_key(automaton: RegisterAutomaton) -> str | None:
    """The attribute that every step but the first asks to be what it was in the events before; None if there is none.

    Parameters
    ----------
    automaton : RegisterAutomaton
        All that its runs hold is said by the moves of its steps, as ``compile_algebra`` makes it.

    Complexity: O(attributes asked x moves x depth), mostly O(attributes asked x moves).
    """
    asked = [[*_equalities(step.checks)] for step in automaton.steps if step.source != START]
    for name in dict.fromkeys(name for equalities in asked[:1] for name, _ in equalities):
        holding = _holding(automaton, name)
        if all(any(one == name and register in holding for one, register in equalities) for equalities in asked):
            return name
    return None


def _equalities(checks: Sequence[Resolved]) -> Iterator[tuple[str, Register]]:
    """The attributes of the current event that must equal a register of the run, with it."""
    for check in checks:
        match check:
            case (
                Binary(op="=", left=Held(register=register, updated=False), right=Own(value=Attribute(name=name)))
                | Binary(op="=", left=Own(value=Attribute(name=name)), right=Held(register=register, updated=False))
            ):
                yield name, register


def _holding(automaton: RegisterAutomaton, name: str) -> set[Register]:
    """The registers that hold what the attribute was in an event of the run, provided that all steps ask for it."""
    moves = [move for step in automaton.steps for move in step.moves.items()]
    holding = {register for register, _ in moves}
    while True:
        kept = holding - {register for register, value in moves if not _is_of(value, name, holding)}
        if kept == holding:
            return holding
        holding = kept


def _is_of(value: Resolved, name: str, holding: set[Register]) -> bool:
    match value:
        case Own(value=Attribute(name=own)):
            return own == name
        case Held(register=register, updated=False):
            return register in holding
    return False
