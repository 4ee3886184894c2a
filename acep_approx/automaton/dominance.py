"""Which of two runs in one state can do all that the other can: by what conditions to come ask of their registers.

A condition like ``b.x > a.x`` prefers a low ``a.x``: what a run with a higher one can do, a run with a lower one can
do too, if it started no earlier and they agree in all other registers. Only with skip till any match: under the other
strategies a run that can take more events is another run, not a better one. So conditions of steps that take runs
away, and of what is ignored, prefer nothing.

Source: dominance is ours (DESIGN 6); Agrawal et al., SIGMOD 2008, section 5.2.2 merge equal runs only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Held, Own, Register, Resolved
from acep_approx.automaton.states import PLACE, Running
from acep_approx.query.shape import operands
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
Becomes = Callable[[Register], Resolved]
"""What a register becomes at a step."""


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
    for state, mine in enumerate(wishes):
        for check in automaton.final_checks[state]:
            _test(check, Held, mine)
        for check in automaton.ignores[state].checks:
            _value(check, "equal", Held, mine)
    for step in automaton.steps:
        mine = wishes[step.source]
        if step.guard:
            _wish(PLACE, "high", mine)
        for check in step.checks:
            if step.inhibits:  # it takes runs away
                _value(check, "equal", step.after, mine)
            else:
                _test(check, step.after, mine)
    changed = True
    while changed:
        changed = False
        for step in reversed(automaton.steps):  # mostly one round
            before = dict(wishes[step.source])
            for register, better in list(wishes[step.target].items()) if step.target is not None else ():
                _value(step.after(register), better, step.after, wishes[step.source])
            changed |= before != wishes[step.source]
    return [tuple(mine.get(r, "equal") for r in live) for mine, live in zip(wishes, automaton.live, strict=True)]


def _wish(register: Register, better: Better, wishes: Wishes) -> None:
    wishes[register] = better if wishes.get(register, better) == better else "equal"


def _test(check: Resolved, becomes: Becomes, wishes: Wishes) -> None:
    match check:
        case Binary(op=("AND" | "OR"), left=left, right=right):
            _test(left, becomes, wishes)
            _test(right, becomes, wishes)
        case Binary(op=op, left=left, right=right) if op in WANTED:
            _value(left, WANTED[op][0], becomes, wishes)
            _value(right, WANTED[op][1], becomes, wishes)
        case _:
            _value(check, "equal", becomes, wishes)


def _value(node: Resolved, better: Better, becomes: Becomes, wishes: Wishes) -> None:
    parts: list[tuple[Resolved, Better]] = []
    match node:
        case Held(register=register, updated=True):
            parts = [(becomes(register), better)]
        case Held(register=register):
            _wish(register, better, wishes)
        case Own() | Constant():
            pass
        case Running(before=before, value=value):
            parts = [(before, better), (value, "equal")]
        case Unary(op="-", operand=operand):
            parts = [(operand, OPPOSITE[better])]
        case Binary(op="+", left=left, right=right):
            parts = [(left, better), (right, better)]
        case Binary(op="-", left=left, right=right):
            parts = [(left, better), (right, OPPOSITE[better])]
        case Binary(op="*", left=Constant(value=float() | int() as factor), right=other) if factor > 0:
            parts = [(other, better)]
        case Binary(op=("*" | "/"), left=other, right=Constant(value=float() | int() as factor)) if factor > 0:
            parts = [(other, better)]
        case _:
            parts = [(part, "equal") for part in operands(node)]
    for part, wanted in parts:
        _value(part, wanted, becomes, wishes)
