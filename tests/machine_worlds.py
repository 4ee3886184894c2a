"""Random register automata made by hand, with streams for them: what no strategy and no text of a query says."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx.automaton.automaton import Arc, Automaton, Component, Final, Letter
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Binding, Held, Own, Register
from acep_approx.automaton.states import EVERYTHING, NO_EVENT, NOTHING, Computed, Counted, Ignore, Running, State, Step
from acep_approx.planning.planner import Plan
from acep_approx.query.syntax import Attribute, Binary, Constant, Equivalence, OtherPattern, QuerySyntax, Window
from tests.naive_machine import Bound, machine_matches

X, Y, KIND, TYPE = (Own(Attribute(None, None, name)) for name in ("x", "y", "kind", "type"))
COUNTER = Register("computed", "counter", holds="int")
TOTAL = Register("computed", "total", holds="float")
TOP = Register("computed", "top", holds="int")
WORD = Register("computed", "word", holds="text")
FLAG = Register("computed", "flag", holds="truth")
COMPUTED = (
    Computed(COUNTER, Constant(1), Binary("+", Held(COUNTER), Constant(1))),
    Computed(TOTAL, Y, Running("sum", Held(TOTAL), Y)),
    Computed(TOP, X, Running("max", Held(TOP), X)),
    Computed(WORD, KIND),
    Computed(FLAG, Constant(value=False), Binary(">", X, Held(TOP))),
)
CHECKS = (
    Binary("<=", Held(COUNTER), Constant(2)),
    Binary("<=", Held(COUNTER, updated=True), Constant(2)),
    Binary(">", Y, Held(TOTAL)),
    Binary(">=", Held(TOTAL, updated=True), Constant(2.5)),
    Binary(">=", X, Held(TOP)),
    Binary("<", Held(TOP), X),
    Binary("=", KIND, Held(WORD)),
    Binary("!=", Held(WORD), KIND),
    Binary("=", Held(FLAG), Constant(value=True)),
    Binary("<", X, Constant(2)),
)
MOVES: tuple[tuple[Register, Any], ...] = (
    (COUNTER, Constant(0)),
    (COUNTER, Binary("+", Held(COUNTER), X)),
    (TOTAL, X),
    (TOTAL, Binary("-", Held(TOTAL), Held(COUNTER))),
    (TOP, Held(TOP)),
    (WORD, KIND),
    (FLAG, Binary("<", Held(COUNTER, updated=True), Held(COUNTER))),
)
LETTERS = (
    Letter("A"),
    Letter("B"),
    Letter("C"),
    Letter("A", (Binary(">", Attribute(None, None, "x"), Constant(1)),)),
    Letter(None, (Binary("=", Attribute(None, None, "x"), Constant(0)),)),
)


@dataclass(frozen=True)
class MachineWorld:
    """A machine, not completed, and events for it."""

    machine: RegisterAutomaton
    rows: tuple[dict[str, Any], ...]
    window: int

    @property
    def key(self) -> str | None:
        """The attribute that all events of a match share."""
        return next((one.name for one in self.machine.query.equivalences), None)

    def plan(self) -> Plan:
        """The machine ready to run."""
        return plan_of(self.machine)

    def table(self) -> pa.Table:
        """The events."""
        kinds = {"x": pa.int64(), "y": pa.float64(), "kind": pa.string(), "key": pa.string(), "type": pa.string()}
        return pa.Table.from_pylist(list(self.rows), pa.schema({"ts": pa.int64(), **kinds}))

    def expected(self) -> set[Bound]:
        """What brute force finds."""
        return machine_matches(self.machine, self.rows, self.window, self.key)


def machine_world(random: Random) -> MachineWorld:
    """The world that comes of a seed."""
    size = random.choice((2, 3, 3, 3))
    window = random.choice((4, 8, 20, 40))
    steps = [step_of(random, source, source + 1, size) for source in range(size - 1)]
    for _ in range(random.choice((0, 1, 2, 3))):
        source = random.randrange(1, size)
        steps.append(step_of(random, source, random.choice((source, random.randrange(1, size))), size))
    steps += [kill_of(random, random.randrange(1, size)) for _ in range(random.choice((0, 0, 1, 2)))]
    ignores = [EVERYTHING, *(ignore_of(random) for _ in range(size - 1))]
    query = QuerySyntax(
        OtherPattern("a machine"),
        Window(window, "ticks"),
        equivalences=(Equivalence("key"),) if random.random() < 0.5 else (),
    )
    finals = {size - 1, random.randrange(1, size)}
    machine = machine_of(query, size, steps, ignores, finals, random.choice(("partition", "partition", "stream")))
    if random.random() < 0.3:
        machine.final_checks[size - 1] = (random.choice((CHECKS[0], CHECKS[8])),)
    return MachineWorld(machine, tuple(stream(random)), window)


def machine_of(
    query: QuerySyntax, size: int, steps: list[Step], ignores: list[Ignore], finals: set[int], counted: Counted
) -> RegisterAutomaton:
    """A machine of these parts, not completed: state ``n`` binds the variable ``v{n}``."""
    names = tuple(f"v{state}" for state in range(1, size))
    arcs, numbered = [], []
    for step in steps:
        if step.target is None:
            numbered.append(step)
            continue
        arc = Arc(step.source, step.target, step.letter, step.target - 1)
        if arc in arcs:  # each binding by one way
            continue
        numbered.append(Step(**{**vars(step), "arc": len(arcs)}))
        arcs.append(arc)
    automaton = Automaton(
        size=size,
        errors=0,
        letters=LETTERS,
        variables=names,
        arcs=tuple(arcs),
        finals=tuple(Final(state) for state in sorted(finals)),
        names=("start", *names),
        components=tuple(Component(name, is_kleene=True) for name in names),
    )
    return RegisterAutomaton(
        query,
        automaton,
        letters=list(LETTERS),
        states=[State(number) for number in range(size)],
        ignores=ignores,
        counted=counted if any(ignore.needs_neighbours for ignore in ignores) else "nothing",
        steps=numbered,
        final_checks=[() for _ in range(size)],
        computed=COMPUTED,
    )


def plan_of(machine: RegisterAutomaton) -> Plan:
    """A machine ready to run; the machine itself stays as it is."""
    complete = RegisterAutomaton(**vars(machine))
    complete.complete()
    return Plan(machine.query, machine.automaton, "runs", complete, ("a machine made by hand",))


def step_of(random: Random, source: int, target: int, size: int) -> Step:
    """A step with some checks and moves."""
    checks = random.choices(CHECKS, k=random.choice((0, 0, 1, 1, 2)))
    moves = dict(random.choices(MOVES, k=random.choice((0, 0, 1, 2))))
    if source == 0:  # nothing is held yet but what registers begin as
        checks = [check for check in checks if check == CHECKS[9]]
    inhibits = source > 0 and random.random() < 0.4
    letter = random.randrange(len(LETTERS))
    binding = Binding(f"v{target}", NOTHING)
    return Step(0, source, target, letter, binding, tuple(checks), frozenset(), inhibits, moves=moves)


def kill_of(random: Random, source: int) -> Step:
    """A kill step."""
    checks = tuple(random.choices(CHECKS, k=random.choice((0, 1, 1))))
    letter = random.randrange(len(LETTERS))
    return Step(None, source, None, letter, Binding(None, NOTHING), checks, frozenset(), inhibits=True)


def ignore_of(random: Random) -> Ignore:
    """What a state ignores: the strategies' ways, sets of letters, conditions on registers."""
    some = frozenset(random.sample(range(len(LETTERS)), random.choice((1, 2, 3, 4))))
    letters = random.choice((None, some, some))
    held = [check for check in CHECKS if check not in (CHECKS[1], CHECKS[3])]
    checks = tuple(random.choices(held, k=random.choice((0, 1))))
    return random.choice((EVERYTHING, NO_EVENT, Ignore(letters), Ignore(letters, checks)))


def stream(random: Random) -> list[dict[str, Any]]:
    """Events: some of types that no letter asks for, some with NULLs."""
    rows, tick = [], 0
    for _ in range(random.choice((6, 12, 16, 20))):
        tick += random.choice((0, 1, 1, 1, 2))
        rows.append({
            "ts": tick,
            "type": random.choice("AAABBBCCCD"),
            "x": random.choice((0, 1, 2, 3, None)),
            "y": random.choice((0.0, 0.5, 1.5, 3.0, None)),
            "kind": random.choice(("up", "down", "up", None)),
            "key": random.choice(("k", "k", "l")),
        })  # fmt: skip
    return rows
