"""Which of two runs in one state can do all that the other can: by what conditions to come ask of their registers.

A condition like ``b.x > a.x`` prefers a low ``a.x``: what a run with a higher one can do, a run with a lower one can
do too, if it started no earlier and they agree in all other registers. Only with skip till any match: under the other
strategies a run that can take more events is another run, not a better one.

Source: dominance is ours (DESIGN 6); Agrawal et al., SIGMOD 2008, section 5.2.2 merge equal runs only.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Literal

from acep_approx.automaton.registers import PLACE, RegisterAutomaton
from acep_approx.automaton.resolve import Held, Own, Register, Resolved, needed_before
from acep_approx.query.syntax import Binary, Constant, Unary

Better = Literal["low", "high", "equal"]
"""Which values of a register are better; ``equal``: none, so that runs must agree in it."""

OPPOSITE: dict[Better, Better] = {"low": "high", "high": "low", "equal": "equal"}
WANTED: dict[str, tuple[Better, Better]] = {
    "<": ("low", "high"),
    "<=": ("low", "high"),
    ">": ("high", "low"),
    ">=": ("high", "low"),
}
Wishes = dict[Register, Better]


def preferences(automaton: RegisterAutomaton) -> list[tuple[Better, ...]]:
    """Per state which values of its live registers are better.

    Complexity: O(states x steps x registers).

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 5")
    >>> preferences(query.plan.registers)
    [(), ('low',), ('low',), ()]
    """
    wishes: list[Wishes] = [{} for _ in automaton.states]
    for state, checks in enumerate(automaton.final_checks):
        for check in checks:
            _test(check, wishes[state])
    for step in automaton.steps:
        mine = wishes[step.source]
        if step.guard:
            _wish(PLACE, "high", mine)
        for check in step.checks:
            _test(check, mine)
    changed = True
    while changed:
        changed = False
        for step in reversed(automaton.steps):  # mostly one round
            before = dict(wishes[step.source])
            for register, better in wishes[step.target].items():
                if needed_before(register, step.binding):
                    _wish(register, better, wishes[step.source])
            changed |= before != wishes[step.source]
    return [tuple(mine.get(r, "equal") for r in live) for mine, live in zip(wishes, automaton.live, strict=True)]


def _wish(register: Register, better: Better, wishes: Wishes) -> None:
    """Note what a condition prefers; conditions that disagree leave only equality."""
    wishes[register] = better if wishes.get(register, better) == better else "equal"


def _test(check: Resolved, wishes: Wishes) -> None:
    """What makes a condition TRUE more often."""
    match check:
        case Binary(op=("AND" | "OR"), left=left, right=right):
            _test(left, wishes)
            _test(right, wishes)
        case Binary(op=op, left=left, right=right) if op in WANTED:
            _value(left, WANTED[op][0], wishes)
            _value(right, WANTED[op][1], wishes)
        case _:
            _value(check, "equal", wishes)


def _value(node: Resolved, better: Better, wishes: Wishes) -> None:
    """What makes a value lower or higher."""
    match node:
        case Held(register=register):
            _wish(register, better, wishes)
        case Own() | Constant():
            pass
        case Unary(op="-", operand=operand):
            _value(operand, OPPOSITE[better], wishes)
        case Binary(op="+", left=left, right=right):
            _value(left, better, wishes)
            _value(right, better, wishes)
        case Binary(op="-", left=left, right=right):
            _value(left, better, wishes)
            _value(right, OPPOSITE[better], wishes)
        case Binary(op="*", left=Constant(value=float() | int() as factor), right=other) if factor > 0:
            _value(other, better, wishes)
        case Binary(op=("*" | "/"), left=other, right=Constant(value=float() | int() as factor)) if factor > 0:
            _value(other, better, wishes)
        case _:
            for part in _parts(node):
                _value(part, "equal", wishes)


def _parts(node: Resolved) -> list[Resolved]:
    found = [getattr(node, part.name) for part in fields(node)] if is_dataclass(node) else []
    flat = [item for value in found for item in (value if isinstance(value, tuple) else (value,))]
    return [item for item in flat if is_dataclass(item)]
