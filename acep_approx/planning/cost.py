"""What running a query takes, by the sizes of its tables; nothing is run."""

from __future__ import annotations

from dataclasses import dataclass

from acep_approx.automaton.automaton import START, Automaton
from acep_approx.automaton.determinize import Determinised
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.errors import LimitError
from acep_approx.kernels.runs.layout import LINK
from acep_approx.kernels.runs.pools import COLUMNS

LINK_BYTES = 8 * LINK
"""One event bound by one run."""


@dataclass(frozen=True)
class CellsCost:
    """Sizes that decide speed and memory of the cells.

    ``states`` and ``arcs`` of the automaton; ``bytes_per_key`` of detection; ``updates_per_event`` in the worst case
    over single letters; ``determinised`` states for listing (None: more than can be explored ahead).
    """

    states: int
    arcs: int
    letters: int
    bytes_per_key: int
    updates_per_event: int
    determinised: int | None

    @property
    def work(self) -> str:
        """What an event takes."""
        return f"at most {self.updates_per_event} arc updates per event and letter"

    @property
    def memory(self) -> str:
        """What detection holds."""
        return f"{self.bytes_per_key} bytes per key"


@dataclass(frozen=True)
class RunsCost:
    """Sizes that decide speed and memory of the runs.

    ``states`` and ``arcs`` of the register automaton; ``bytes_per_run`` of its widest state; ``steps_per_run``: arcs
    that one event may try on one run, in the worst case over single letters.
    """

    states: int
    arcs: int
    letters: int
    bytes_per_run: int
    steps_per_run: int

    @property
    def work(self) -> str:
        """What an event takes."""
        return f"at most {self.steps_per_run} arc tests per event and run that it may move"

    @property
    def memory(self) -> str:
        """What a run holds."""
        return f"at most {self.bytes_per_run} bytes per run"


def cells_cost(automaton: Automaton) -> CellsCost:
    """What the cells take.

    Parameters
    ----------
    automaton : Automaton

    Complexity: of determinisation up to 2000 states.
    """
    rows = {(arc.source, arc.guard) for arc in automaton.arcs if arc.source != START}
    lanes = 4 if automaton.errors < 4 else 16
    per_letter = [sum(arc.letter == j for arc in automaton.arcs) for j in range(len(automaton.letters))]
    determinised: int | None
    try:
        subset = Determinised(automaton, cap=2000)
        subset.add_classes([1 << j for j in range(len(automaton.letters))])
        unmade = any((s, c) not in subset.bound for s in range(len(subset)) for c in range(len(subset.classes)))
        determinised = None if unmade else len(subset)
    except LimitError:
        determinised = None
    return CellsCost(
        states=automaton.size,
        arcs=len(automaton.arcs),
        letters=len(automaton.letters),
        bytes_per_key=len(rows) * 2 * lanes * 8,
        updates_per_event=max(per_letter, default=0),
        determinised=determinised,
    )


def runs_cost(registers: RegisterAutomaton) -> RunsCost:
    """What the runs take.

    Parameters
    ----------
    registers : RegisterAutomaton

    Complexity: O(steps).
    """
    tried: dict[tuple[int, int], int] = {}
    for step in registers.steps:
        letter = step.letter if step.arc is None else registers.automaton.arcs[step.arc].letter
        place = step.source, letter
        tried[place] = tried.get(place, 0) + 1
    return RunsCost(
        states=len(registers.states),
        arcs=len(registers.steps),
        letters=len(registers.automaton.letters),
        bytes_per_run=8 * (COLUMNS + max(map(len, registers.live))),
        steps_per_run=max(tried.values(), default=0),
    )
