"""Small worlds of automata written by hand: a random machine, as tree and text, and a random stream, all of one seed.

What a machine can say is added here. ``smaller_afa`` shrinks what fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.errors import QueryError
from acep_approx.query.checks import check
from acep_approx.query.checks_machine import lightest_way, repeated_variables
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.shape import expressions_of, walk
from acep_approx.query.syntax import (
    Aggregate,
    Assignment,
    Attribute,
    Between,
    Binary,
    Constant,
    Equivalence,
    Expression,
    FunctionCall,
    IgnoreRule,
    In,
    IsNull,
    Machine,
    MachineArc,
    MachineRegister,
    QuerySyntax,
    RegisterValue,
    ReturnItem,
    Unary,
    UserFunction,
    Window,
)
from tests.naive_afa import AfaRow, TooMany, afa_rows
from tests.rich_worlds import COLUMNS, Dice, Row

MOST_LIVE, MOST_ROWS = 1500, 400
"""Configurations at once, and rows of output: worlds with more get a shorter stream."""
TYPES = (*"AAABBBCCD",)
ASKED = (*"AAABBBCC", None, None, None)
COMPARISONS = ("<", "<=", ">", ">=", "=", "!=")
INITIAL: dict[str, tuple[str, tuple[Any, ...]]] = {
    "n": ("int", (0, 0, 1, None)),
    "top": ("int", (None, None, 2)),
    "total": ("float", (0.0, 0.5, None)),
    "word": ("text", (None, "u", "")),
    "flag": ("truth", (False, True, None)),
}
"""Registers, with what they hold and may begin with."""


def by_row(name: str, holds: str, plain: Callable[..., Any]) -> UserFunction:
    """A function of the user's that does over columns what another does with plain values; NULL comes as None, NaN."""

    def compute(*columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows = zip(*(column.tolist() for column in columns), strict=True)
        values = [plain(*(None if value is None or value != value else value for value in row)) for row in rows]
        if holds == "text":
            return np.array([*values, None], object)[:-1]
        return np.array([float("nan") if value is None else value for value in values], np.float64)

    return UserFunction(name, 1, holds, compute)


def mean(one: float | None, other: float | None) -> float | None:
    """Half of a sum."""
    return None if one is None or other is None else (one + other) / 2


def capped(one: int | None, other: int | None) -> int | None:
    """The lesser of two, or the one that is known."""
    known = [int(value) for value in (one, other) if value is not None]
    return min(known, default=None)


def longer(one: str | None, other: str | None) -> str | None:
    """Of two texts the longer one, or the first."""
    return other if one is None or (other is not None and len(other) > len(one)) else one


def either(one: bool | None, other: bool | None) -> bool:
    """Whether one of two is TRUE; never NULL."""
    return bool(one) or bool(other)


NAIVE: dict[str, Callable[..., Any]] = {"mean": mean, "capped": capped, "longer": longer, "either": either}
FUNCTIONS = tuple(
    by_row(name, holds, NAIVE[name])
    for name, holds in (("mean", "float"), ("capped", "int"), ("longer", "text"), ("either", "truth"))
)
"""What machines may call."""


@dataclass(frozen=True)
class AfaWorld:
    """A query whose pattern is a machine, its text, and a stream: rows with the attributes ``COLUMNS``."""

    query: QuerySyntax
    text: str
    rows: tuple[Row, ...]

    @property
    def machine(self) -> Machine:
        """The machine."""
        assert isinstance(self.query.pattern, Machine)
        return self.query.pattern

    def table(self) -> pa.Table:
        """The stream as columns."""
        return pa.table({name: pa.array([row[name] for row in self.rows], kind) for name, kind in COLUMNS.items()})

    def expected(self) -> dict[AfaRow, int]:
        """The rows of output by brute force, each with its least errors."""
        return afa_rows(self.query, self.rows, NAIVE)


def afa_world(seed: int, *, most_rows: int = MOST_ROWS) -> AfaWorld:
    """The world that comes of a seed: a machine that passes the checks, and a stream that brute force gets through.

    Most worlds have a match, or several; machines that refuse almost every stream say little.
    """
    dice = Dice(Random(seed))
    while True:
        query = afa_query(dice)
        if query is None:
            continue
        for _ in range(3):
            rows = shortened(query, stream(dice), most_rows)
            if afa_rows(query, rows, NAIVE) or dice.chance(6):
                return world_of(query, rows)


def world_of(query: QuerySyntax, rows: Sequence[Row]) -> AfaWorld:
    """A query that passes the checks, with its text, and a stream."""
    check(query)
    text = to_text(query)
    assert parse(text, query.functions) == query, text
    return AfaWorld(query, text, tuple(rows))


# --- streams ----------------------------------------------------------------------------------------------------------


def stream(dice: Dice) -> tuple[Row, ...]:
    """Some events: ties in time, NULLs, types that no arc asks for, two keys or none."""
    tick = dice.pick((0, 1, -3))
    rows = []
    for _ in range(dice.pick((5, 6, 8, 8, 10, 10, 12, 14, 16))):
        tick += dice.pick((1, 1, 1, 0, 2))
        rows.append({
            "ts": tick,
            "x": dice.pick((0, 1, 2, 3, 1, 2, None)),
            "y": dice.pick((0.5, 1.0, 1.5, 2.5, -1.0, None)),
            "type": dice.pick(TYPES),
            "s": dice.pick(("u", "v", "u", "", None)),
            "g": dice.pick(("p", "p", "p", "p", "q", "q", None)),
        })  # fmt: skip
    return tuple(rows)


def shortened(query: QuerySyntax, rows: tuple[Row, ...], most_rows: int) -> tuple[Row, ...]:
    """As much of a stream as brute force gets through."""
    while True:
        try:
            if len(afa_rows(query, rows, NAIVE, MOST_LIVE)) <= most_rows:
                return rows
        except TooMany:
            pass
        rows = rows[: len(rows) * 3 // 4]


# --- machines ---------------------------------------------------------------------------------------------------------


def afa_query(dice: Dice) -> QuerySyntax | None:
    """A machine with all that can stand beside it; None where it would be refused."""
    states = [f"q{number}" for number in range(dice.pick((2, 3, 3, 3, 4, 4)))]
    names = dice.random.sample(list(INITIAL), dice.pick((0, 1, 1, 2, 2, 3)))
    maker = Maker(dice, names, tuple(f"v{number}" for number in range(dice.pick((1, 2, 2, 3)))))
    finals = (states[-1],) if not dice.chance(3) else tuple(dict.fromkeys((states[-1], dice.pick(states[1:]))))
    arcs = maker.arcs(states, finals)
    is_set = {one.register for arc in arcs for one in arc.sets}
    registers = tuple(
        MachineRegister(name, INITIAL[name][0], Constant(dice.pick(INITIAL[name][1])))
        for name in INITIAL
        if name in is_set
    )
    machine = Machine(registers, maker.without(arcs, set(names) - is_set), maker.ignores(states, is_set), finals)
    weights = {dice.pick(maker.variables): dice.pick((2, 3))} if dice.chance(3) else {}
    weights = {name: weight for name, weight in weights.items() if any(arc.variable == name for arc in arcs)}
    if not can_go_on(machine) or (least := lightest_way(machine, weights)) == 0:
        return None
    errors = dice.pick((0, 0, 1, 1, 2))
    if errors >= least and not dice.chance(4):
        return None
    query = QuerySyntax(
        pattern=machine,
        window=Window(dice.pick((5, 8, 20, 8, 4, 6, 3, 2, 12, 0)), dice.pick(("ticks", "ticks", "events"))),
        equivalences=tuple(map(Equivalence, dice.pick(((), (), ("g",), ("g",), ("g", "s"))))),
        errors=min(errors, least - 1),
        weights=tuple(weights.items()),
        outputs=maker.outputs(machine, is_set) if dice.chance(2) else (),
    )
    query = replace(query, functions=FUNCTIONS if any(map(calls, expressions_of(machine))) else ())
    try:
        check(query)
    except QueryError as error:
        if error.code == "ACEP-Q081":  # a TIMEOUT, and IGNORE with a condition on registers
            return None
        raise
    return query


class Maker:
    """Makes the parts of a machine: ``registers`` may be named in conditions, ``variables`` stand for events."""

    def __init__(self, dice: Dice, registers: Sequence[str], variables: tuple[str, ...]) -> None:
        self.dice, self.registers, self.variables = dice, registers, variables

    # --- arcs ---

    def arcs(self, states: list[str], finals: tuple[str, ...]) -> tuple[MachineArc, ...]:
        """Arcs so that each state lies on a way from the first to a final one; circles and others beside them."""
        pick = self.dice.pick
        pairs = [(pick(states[:number]), state) for number, state in enumerate(states) if number]
        pairs += [(pick(states), pick(states)) for _ in range(pick((0, 1, 1, 2, 2, 3)))]
        pairs += [(state := pick(states[1:]), state)] if self.dice.chance(2) else []
        for state in states:
            if not leads(state, pairs, finals):
                pairs.append((state, pick(finals)))
        made = [self.arc(*pair, finals, is_first=not number) for number, pair in enumerate(pairs)]
        if self.registers and self.dice.chance(3):  # the same events by two ways, with other registers
            arc = pick(made)
            sets = self.sets(arc.variable, arc.kind == "on")
            made.append(replace(arc, sets=sets, when=pick((arc.when, None))))
        return tuple(without_silent_circles(made))

    def arc(self, source: str, target: str, finals: tuple[str, ...], *, is_first: bool) -> MachineArc:
        """An arc between two states: mostly on an event."""
        kind = self.dice.random.randrange(8)
        if kind == 0 and not is_first and source != target:
            return MachineArc(source, target, "epsilon", when=self.when(None, False, 2), sets=self.sets(None, False))
        if kind == 1 and target in finals and not is_first:
            return MachineArc(source, target, "timeout", when=self.when(None, False, 3), sets=self.sets(None, False))
        type_, variable = self.dice.pick(ASKED), self.dice.pick((None, *self.variables, *self.variables))
        return MachineArc(
            source, target, "on", type_, variable, self.when(variable, True, 2), self.sets(variable, True)
        )

    def without(self, arcs: tuple[MachineArc, ...], unset: set[str]) -> tuple[MachineArc, ...]:
        """Arcs that name no register that is never set: their conditions are left out."""
        return tuple(
            replace(
                arc,
                when=None if named(arc.when) & unset else arc.when,
                sets=tuple(
                    replace(one, value=self.moves(one.register, arc.variable, False)[0])
                    if named(one.value) & unset
                    else one
                    for one in arc.sets
                ),
            )
            for arc in arcs
        )

    def sets(self, variable: str | None, has_event: bool) -> tuple[Assignment, ...]:
        """Some registers get a value."""
        chosen = [name for name in self.registers if self.dice.chance(2)]
        return tuple(Assignment(name, self.dice.pick(self.moves(name, variable, has_event))) for name in chosen)

    def moves(self, register: str, variable: str | None, has_event: bool) -> list[Expression]:
        """What a register may be set to; the first names no other."""
        x, y, s = (self.attribute(variable, name) for name in "xys")
        own, others = RegisterValue(register), [RegisterValue(name) for name in self.registers if name in ("n", "top")]
        other = self.dice.pick(others or [Constant(1)])
        add = Binary("+", own, Constant(1))
        plain: dict[str, list[Expression]] = {
            "n": [add, add, Binary("-", own, Constant(1)), Constant(0), other],
            "top": [own, Binary("+", own, Constant(1)), Constant(2), other, Constant(None)],
            "total": [Binary("*", own, Constant(0.5)), Constant(1), Binary("/", other, Constant(2)), other],
            "word": [Constant("v"), own, Constant(None)],
            "flag": [Unary("NOT", own), Constant(True), Constant(False), Binary(">", other, Constant(1))],
        }
        of_event: dict[str, list[Expression]] = {
            "n": [x, Binary("+", own, x), Binary("%", x, Constant(2)), call("capped", x, own)],
            "top": [x, x, Binary("-", x, other), self.attribute(variable, "ts")],
            "total": [y, y, Binary("+", own, y), Binary("+", own, x), x, call("mean", y, own)],
            "word": [s, s, s, call("longer", s, own)],
            "flag": [Binary(">", x, other), IsNull(x, self.dice.chance(2)), Binary("=", s, Constant("u"))],
        }
        return [*plain[register], *(of_event[register] if has_event else ())]

    def attribute(self, variable: str | None, name: str) -> Attribute:
        """An attribute of the current event, with its variable or without."""
        return Attribute(variable if self.dice.chance(2) else None, None, name)

    # --- rules ---

    def ignores(self, states: list[str], registers: set[str]) -> tuple[IgnoreRule, ...]:
        """Everything everywhere; or some rules."""
        maker = Maker(self.dice, sorted(registers), self.variables)
        if self.dice.chance(4):
            return (IgnoreRule(tuple(states), otherwise=self.dice.chance(3)),)
        return tuple(maker.rule(states) for _ in range(self.dice.pick((0, 1, 1, 2, 3))))

    def rule(self, states: list[str]) -> IgnoreRule:
        """What some states pass over."""
        chosen = tuple(sorted(self.dice.random.sample(states, self.dice.random.randint(1, len(states)))))
        if self.dice.chance(3):
            return IgnoreRule(chosen, otherwise=True)
        type_ = self.dice.pick((*ASKED, None, "D"))
        variable = "e" if type_ and self.dice.chance(2) else None
        return IgnoreRule(chosen, type_, variable, self.when(variable, True, 3))

    # --- conditions ---

    def when(self, variable: str | None, has_event: bool, one_in: int) -> Expression | None:
        """A condition, once in so many times."""
        if not self.dice.chance(one_in) or not (has_event or self.registers):
            return None
        made = [self.test(variable, has_event) for _ in range(self.dice.pick((1, 1, 1, 2)))]
        return made[0] if len(made) == 1 else Binary(self.dice.pick(("AND", "AND", "OR")), *made)

    def test(self, variable: str | None, has_event: bool) -> Expression:
        """One condition: on the event, on registers, or on both."""
        kinds = ["event"] * 2 * has_event + ["registers"] * 2 * bool(self.registers)
        match self.dice.pick((*kinds, *["both"] * 3 * (has_event and bool(self.registers)))):
            case "event":
                return self.of_event(variable)
            case "registers":
                return self.of_register(self.dice.pick(self.registers))
        return self.of_both(self.dice.pick(self.registers), variable)

    def of_event(self, variable: str | None) -> Expression:
        """A condition on the current event."""
        pick = self.dice.pick
        x, y, s = (self.attribute(variable, name) for name in "xys")
        return pick((
            Binary(pick(COMPARISONS), x, Constant(pick((1, 2, 1.5)))),
            Binary(pick((">", "<=")), y, Constant(pick((1, 0.75)))),
            Binary(pick(("=", "!=")), s, Constant(pick(("u", "v")))),
            IsNull(pick((x, y, s)), True),
            Between(x, Constant(1), Constant(2), pick((False, True))),
            In(s, (Constant("u"), Constant("")), pick((False, True))),
            Binary(pick(COMPARISONS), Binary("*", x, Constant(2)), y),
            Binary(">", call("mean", x, y), Constant(1)),
        ))  # fmt: skip

    def of_register(self, name: str) -> Expression:
        """A condition on registers alone."""
        pick, own = self.dice.pick, RegisterValue(name)
        kind = INITIAL[name][0]
        if kind == "truth":
            return pick((own, Unary("NOT", own), Binary("=", own, Constant(True)), IsNull(own, True)))
        if kind == "text":
            return pick((Binary(pick(("=", "!=")), own, Constant("u")), IsNull(own, pick((False, True)))))
        other = pick([one for one in self.registers if INITIAL[one][0] in ("int", "float")])
        return pick((
            Binary(pick(("<", "<=", "!=")), own, Constant(pick((1, 2, 3)))),
            Binary(pick((">=", "=")), Binary("+", own, Constant(1)), Constant(pick((1, 2)))),
            Binary(pick(("<=", "!=")), own, RegisterValue(other)),
            Binary("=", Binary("%", own, Constant(2)), Constant(pick((0, 1)))),
            IsNull(own, pick((False, False, True))),
            Binary(pick(("<", ">")), Unary("-", own), Constant(0)),
        ))  # fmt: skip

    def of_both(self, name: str, variable: str | None) -> Expression:
        """A condition on the current event and a register."""
        pick, own = self.dice.pick, RegisterValue(name)
        x, y, s = (self.attribute(variable, name) for name in "xys")
        kind = INITIAL[name][0]
        if kind == "truth":
            tests = Binary("OR", own, Binary(">", x, Constant(1))), Binary("=", own, Binary(">", x, Constant(0)))
            return pick((*tests, call("either", own, Binary(">", x, Constant(0)))))
        if kind == "text":
            return pick(
                (Binary(pick(COMPARISONS), s, own), In(s, (Constant("v"), Constant(None)), pick((True, False))))
            )
        return pick((
            Binary(pick(COMPARISONS), x, own),
            Binary(pick((">", "<=")), pick((x, y)), own),
            Binary(pick((">=", "<")), Binary(pick("+-"), own, x), Constant(pick((1, 2)))),
            Binary("OR", IsNull(own, False), Binary(pick((">", "<")), x, own)),
            Between(y, own, Binary("+", own, Constant(2)), pick((False, True))),
            Binary(pick((">", "<=")), call("mean", x, own), Constant(1)),
        ))  # fmt: skip

    # --- RETURN ---

    def outputs(self, machine: Machine, registers: set[str]) -> tuple[ReturnItem, ...]:
        """Registers, and values of the events that variables bind."""
        pick, repeated = self.dice.pick, repeated_variables(machine)
        items = [ReturnItem(name, RegisterValue(name)) for name in sorted(registers) if self.dice.chance(2)]
        if "n" in registers and self.dice.chance(2):
            n = RegisterValue("n")  # rows that show the same are one, whatever registers hold
            shown = pick(
                (
                    Binary("+", n, Constant(1)),
                    Binary("%", n, Constant(2)),
                    Binary(">", n, Constant(1)),
                    IsNull(n, False),
                )
            )
            items.append(ReturnItem("more", shown))
        for variable in sorted({arc.variable for arc in machine.arcs if arc.variable}):
            if self.dice.chance(3):
                continue
            if variable not in repeated:
                items.append(ReturnItem(f"of_{variable}", Attribute(variable, None, pick("xys"))))
                continue
            function = pick(("count", "sum", "min", "max", "first", "last"))
            shown = Aggregate(function, variable, pick("xy"), False)
            items.append(ReturnItem(f"of_{variable}", pick((shown, shown, Aggregate("count", variable, None, False)))))
        return tuple(items)


def call(name: str, *arguments: Expression) -> FunctionCall:
    """A call of one of the ``FUNCTIONS``."""
    return FunctionCall(name, arguments)


def calls(expression: Expression) -> bool:
    """Whether an expression calls a function."""
    return any(isinstance(node, FunctionCall) for node in walk(expression))


def named(expression: Expression | None) -> set[str]:
    """The registers that an expression names."""
    nodes = walk(expression) if expression is not None else ()
    return {node.name for node in nodes if isinstance(node, RegisterValue)}


def leads(state: str, pairs: Sequence[tuple[str, str]], aims: Sequence[str]) -> bool:
    """Whether arcs lead from a state to one of others, or it is one of them."""
    found = {state}
    for _ in pairs:
        found |= {target for source, target in pairs if source in found}
    return not found.isdisjoint(aims)


def can_go_on(machine: Machine) -> bool:
    """Whether all states from which arcs lead can be reached before the window has closed."""
    pairs = [(arc.source, arc.target) for arc in machine.arcs if arc.kind != "timeout"]
    return all(leads(machine.start, pairs, (arc.source,)) for arc in machine.arcs)


def without_silent_circles(arcs: Sequence[MachineArc]) -> Iterator[MachineArc]:
    """The arcs, where EPSILON arcs in a circle set nothing: those with a register would never end."""
    pairs = [(arc.source, arc.target) for arc in arcs if arc.kind == "epsilon"]
    for arc in arcs:
        is_circle = arc.kind == "epsilon" and leads(arc.target, pairs, (arc.source,))
        yield replace(arc, sets=()) if is_circle else arc


def constructs(query: QuerySyntax) -> set[str]:
    """The constructs that a machine uses, by name: to see that these worlds hold them all."""
    machine = query.pattern
    assert isinstance(machine, Machine)
    found = {arc.kind for arc in machine.arcs} | {query.window.unit, f"k = {query.errors}"}
    found |= {f"{len(query.equivalences)} keys", f"{len(machine.registers)} registers"}
    found |= {f"{register.holds} register" for register in machine.registers}
    found |= {"weights"} if query.weights else set()
    found |= {"unnamed"} if any(arc.kind == "on" and arc.variable is None for arc in machine.arcs) else set()
    found |= {"self-loop"} if any(arc.source == arc.target for arc in machine.arcs) else set()
    found |= {"final goes on"} if any(arc.source in machine.finals for arc in machine.arcs) else set()
    found |= {"back to the start"} if any(arc.target == machine.start for arc in machine.arcs) else set()
    found |= {"silent set"} if any(arc.kind != "on" and arc.sets for arc in machine.arcs) else set()
    for rule in machine.ignores:
        asked = (" ON" if rule.type else "") + (" WHEN" if rule.when else "")
        found.add("IGNORE" + asked + (" OTHERWISE" if rule.otherwise else ""))
        found |= {"IGNORE by registers"} if named(rule.when) else set()
    found |= {"RETURN"} if query.outputs else set()
    found |= {"functions"} if query.functions else set()
    return found | {type(output.value).__name__ for output in query.outputs}
