"""Structural mistakes in automata written by hand: states that lead nowhere, registers that nobody sets, circles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from acep_approx.query.assemble import did_you_mean, no_variable
from acep_approx.query.printer import is_name, to_text
from acep_approx.query.shape import is_of_each, walk
from acep_approx.query.syntax import (
    Aggregate,
    Attribute,
    Constant,
    Expression,
    FunctionCall,
    IgnoreRule,
    Machine,
    MachineArc,
    QuerySyntax,
    RegisterValue,
    Written,
)


def check_machine(query: QuerySyntax) -> None:
    """Refuse an automaton written by hand whose parts do not fit together, or that other clauses contradict.

    Parameters
    ----------
    query : QuerySyntax
        Its pattern is a ``Machine``.

    Raises
    ------
    QueryError
        ``ACEP-Q074`` to ``Q084``, and codes that other patterns share; see ``docs/reference/errors.md``.

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> check_machine(parse("PATTERN AUTOMATON (a -> b ON Tick FINAL c) WITHIN 5"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    acep_approx.errors.QueryError: ACEP-Q076: no state 'c'...
    """
    machine = query.pattern
    assert isinstance(machine, Machine)
    _Checker(query, machine).check()


_GIVE = "functions need Python: give it to compile_query(..., functions=[...])"


class _Checker(Written):
    def __init__(self, query: QuerySyntax, machine: Machine) -> None:
        self.text = query.text
        self.query = query
        self.machine = machine
        self.states = {state for arc in machine.arcs for state in (arc.source, arc.target)}
        self.registers = {register.name for register in machine.registers}
        self.variables = {arc.variable for arc in machine.arcs if arc.variable is not None}

    def check(self) -> None:
        self._check_clauses()
        self._check_registers()
        self._check_states()
        for arc in self.machine.arcs:
            self._check_arc(arc)
        for rule in self.machine.ignores:
            self._check_rule(rule)
        self._check_circles()
        self._check_weights()
        self._check_errors()
        self._check_outputs()

    # --- clauses ------------------------------------------------------------------------------------------

    def _check_clauses(self) -> None:
        query = self.query
        if query.predicates:
            hint = "write it behind WHEN of the arcs that it is about; WHERE has only [key] here"
            self.fail("ACEP-Q077", "an automaton has its conditions on its arcs", query.predicates[0].span, hint)
        if query.strategy != "skip_till_any_match":
            hint = "leave the strategy out: IGNORE says which events a state passes over"
            self.fail("ACEP-Q077", f"an automaton has no strategy such as {query.strategy}", self.machine.span, hint)
        if query.is_simultaneous:
            hint = "an automaton reads one event after the other: leave SIMULTANEOUS out"
            self.fail("ACEP-Q053", "AUTOMATON and SIMULTANEOUS exclude one another", query.place("SIMULTANEOUS"), hint)

    # --- registers and states -----------------------------------------------------------------------------

    def _check_registers(self) -> None:
        is_set = {one.register for arc in self.machine.arcs for one in arc.sets}
        seen: set[str] = set()
        for register in self.machine.registers:
            if not is_name(register.name):
                hint = "a register is a word of letters, digits and _ that is not reserved"
                self.fail("ACEP-Q051", f"{register.name!r} is no name for a register", register.span, hint)
            if register.name in seen or register.name in self.variables:
                hint = "give registers and variables different names"
                self.fail("ACEP-Q031", f"the name {register.name!r} stands twice", register.span, hint)
            seen.add(register.name)
            if register.name not in is_set:
                hint = f"set it on an arc: SET {register.name} = ...; or leave it out and write its value"
                self.fail("ACEP-Q078", f"the register {register.name!r} is never set", register.span, hint)

    def _check_states(self) -> None:
        machine = self.machine
        if not machine.finals:
            hint = f"say where a match ends: FINAL {machine.arcs[-1].target}"
            self.fail("ACEP-Q074", "the automaton has no final state", machine.span, hint)
        places = dict(self.query.places)
        named = [(state, places.get(f"FINAL {state}", machine.span)) for state in machine.finals]
        named += [(state, rule.span) for rule in machine.ignores for state in rule.states]
        for state, span in named:
            if state not in self.states:
                known = ", ".join(sorted(self.states))
                hint = did_you_mean(state, self.states) + f"the arcs lead to and from {known}"
                self.fail("ACEP-Q076", f"no state {state!r}: no arc leads there", span, hint)
        reached = reachable({machine.start}, [(arc.source, arc.target) for arc in machine.arcs])
        useful = reachable(set(machine.finals), [(arc.target, arc.source) for arc in machine.arcs])
        for arc in machine.arcs:
            if arc.target not in useful:
                hint = f"write FINAL {arc.target}, or an arc from there on"
                message = f"the arc leads nowhere: no way from {arc.target} to a final state"
                self.fail("ACEP-Q079", message, arc.span, hint)
            if arc.source not in reached:
                hint = f"runs begin at {machine.start}, where the first arc begins: is an arc to {arc.source} missing?"
                self.fail("ACEP-Q079", f"no way leads from the start to {arc.source}", arc.span, hint)

    # --- arcs ---------------------------------------------------------------------------------------------

    def _check_arc(self, arc: MachineArc) -> None:
        if arc.variable is not None and not is_name(arc.variable):
            hint = "a variable is a word of letters, digits and _ that is not reserved"
            self.fail("ACEP-Q051", f"{arc.variable!r} is no name for a variable", arc.span, hint)
        consumes = arc.kind == "on"
        if arc.when is not None:
            self._check_expression(arc.when, arc.variable, consumes=consumes)
        seen: set[str] = set()
        for one in arc.sets:
            if one.register not in self.registers:
                known = ", ".join(sorted(self.registers)) or "none"
                near = did_you_mean(one.register, self.registers)
                hint = near + f"registers are {known}; declare it behind REGISTERS"
                self.fail("ACEP-Q071", f"no register {one.register!r}", one.span, hint)
            if one.register in seen:
                self.fail("ACEP-Q071", f"one arc sets {one.register!r} twice", one.span, "keep one of the two")
            seen.add(one.register)
            self._check_expression(one.value, arc.variable, consumes=consumes)
        if arc.kind == "timeout":
            if arc.target not in self.machine.finals:
                hint = f"when the window has closed nothing can follow: write FINAL {arc.target}"
                self.fail("ACEP-Q080", "a TIMEOUT must lead to a final state", arc.span, hint)
            if clauses := self.query.selection.clauses:
                hint = "leave one of the two out"
                self.fail("ACEP-Q081", f"TIMEOUT and {clauses[0]} do not go together yet", arc.span, hint)

    def _check_rule(self, rule: IgnoreRule) -> None:
        if rule.when is not None:
            self._check_expression(rule.when, rule.variable, consumes=True)
        waiting = {arc.source for arc in self.machine.arcs if arc.kind == "timeout"}
        pairs = [(arc.target, arc.source) for arc in self.machine.arcs if arc.kind == "epsilon" or self.query.errors]
        before_timeout = reachable(waiting, pairs)
        for state in rule.states:
            arcs = [arc.when for arc in self.machine.leaving.get(state, ()) if arc.kind == "on"]
            asked = [when for when in (arcs if rule.otherwise else [rule.when]) if when is not None]
            if state in before_timeout and any(isinstance(node, RegisterValue) for one in asked for node in walk(one)):
                hint = "let the condition of IGNORE be about the event alone, or end the match by an event"
                message = f"TIMEOUT, and IGNORE {state} with a condition on registers, do not go together yet"
                if rule.otherwise:
                    hint = f"let the arcs of {state} ask for the event alone, or end the match by an event"
                    message = f"TIMEOUT, and IGNORE {state} OTHERWISE where arcs read registers, do not go together yet"
                self.fail("ACEP-Q081", message, rule.span, hint)

    def _check_expression(self, expression: Expression, variable: str | None, *, consumes: bool) -> None:
        functions = {function.name for function in self.query.functions}
        for node in walk(expression):
            match node:
                case Aggregate():
                    hint = "an arc sees its event and the registers: keep it in a register, SET total = total + t.x"
                    self.fail("ACEP-Q082", f"{to_text(node)} is about several events", node.span, hint)
                case Attribute(index=str()):
                    hint = "an arc sees the current event and the registers: keep the value in a register"
                    self.fail("ACEP-Q082", f"{to_text(node)} is about another event", node.span, hint)
                case Attribute() if not consumes:
                    near = did_you_mean(node.name, self.registers) if node.variable is None else ""
                    hint = near + "EPSILON and TIMEOUT see only the registers"
                    message = f"{to_text(node)} is of an event, and there is none at hand"
                    self.fail("ACEP-Q082", message, node.span, hint)
                case Attribute(variable=str(name)) if name != variable:
                    own = f"{variable}.{node.name}" if variable else f"ON ... {name}, or {node.name} alone"
                    hint = f"write {own}; what other events had must be kept in registers"
                    self.fail("ACEP-Q082", f"{name!r} is not the event of this arc", node.span, hint)
                case FunctionCall(name=name) if name not in functions:
                    known = sorted(functions)
                    hint = did_you_mean(name, known) + (f"functions are {', '.join(known)}" if known else _GIVE)
                    self.fail("ACEP-Q011", f"no function {name!r}", node.span, hint)
                case Constant(value=int(value)) if not -(2**63) <= value < 2**63:
                    self.fail("ACEP-Q008", "the number is too large", node.span, "whole numbers have 64 bits")
                case _:
                    pass

    def _check_circles(self) -> None:
        silent = [arc for arc in self.machine.arcs if arc.kind == "epsilon"]
        pairs = [(arc.source, arc.target) for arc in silent]
        for arc in silent:
            if arc.sets and arc.source in reachable({arc.target}, pairs):
                hint = "let one arc of the circle consume an event, or leave SET out"
                self.fail("ACEP-Q083", "a circle of EPSILON arcs changes registers: it would never end", arc.span, hint)

    # --- errors -------------------------------------------------------------------------------------------

    def _check_weights(self) -> None:
        seen: set[str] = set()
        for name, weight in self.query.weights:
            span = self.query.place(f"WEIGHTS {name}")
            if name not in self.variables:
                raise no_variable(self, name, self.variables, span)
            if name in seen or not isinstance(weight, int) or weight < 1:
                hint = "one weight for each variable, a whole number from 1"
                self.fail("ACEP-Q038", f"the weight of {name} is {weight}", span, hint)
            seen.add(name)

    def _check_errors(self) -> None:
        query = self.query
        if query.errors < 0:
            hint = "ERRORS k is the number of events that may be missing, from 0"
            self.fail("ACEP-Q039", f"ERRORS {query.errors} is below 0", query.place("ERRORS"), hint)
        least = lightest_way(self.machine, dict(query.weights))
        if least == 0:
            hint = "a match has an event: no EPSILON arcs alone may lead from the start to a final state"
            self.fail("ACEP-Q036", "the pattern matches without any event", self.machine.span, hint)
        if query.errors >= least:
            message = f"ERRORS {query.errors} is not below {least}, the weight of the lightest way to a final state"
            hint = f"with so many events missing nothing is left to find; use at most ERRORS {least - 1}"
            self.fail("ACEP-Q040", message, query.place("ERRORS"), hint)

    # --- RETURN -------------------------------------------------------------------------------------------

    def _check_outputs(self) -> None:
        several, seen = repeated_variables(self.machine), set[str]()
        for output in self.query.outputs:
            if output.name in seen:
                hint = "give each output its own name"
                self.fail("ACEP-Q044", f"two outputs are named {output.name!r}", output.span, hint)
            seen.add(output.name)
            for node in walk(output.value):
                if isinstance(node, FunctionCall):
                    hint = "call it on an arc, and keep what it gives in a register"
                    self.fail("ACEP-Q084", "RETURN calls no functions", node.span, hint)
                if isinstance(node, Attribute) and node.variable is None:
                    near = did_you_mean(node.name, [*self.registers, *self.variables])
                    names = ", ".join(sorted(self.registers)) or "none"
                    hint = near + f"registers are {names}; write t.{node.name} for an attribute"
                    self.fail("ACEP-Q048", f"{node.name!r} is no register", node.span, hint)
                if isinstance(node, Attribute | Aggregate):
                    self._check_output(node, several)

    def _check_output(self, node: Attribute | Aggregate, several: frozenset[str]) -> None:
        name, variable = node.name, str(node.variable)
        if variable not in self.variables:
            raise no_variable(self, variable, self.variables, node.span)
        if isinstance(node, Aggregate):
            if variable not in several:
                hint = f"write {variable}.{name or 'price'}"
                message = f"{variable!r} is one event, there is nothing to aggregate"
                self.fail("ACEP-Q034", message, node.span, hint)
            if node.prior:
                hint = f"write {node.function}({variable}[]...)"
                self.fail("ACEP-Q041", "there is no i in RETURN", node.span, hint)
        elif variable in several and is_of_each(node):
            hint = f"write first({variable}[].{name}), {variable}[{variable}.LEN].{name} or an aggregate"
            message = f"{variable!r} stands for several events, RETURN needs one value"
            self.fail("ACEP-Q049", message, node.span, hint)
        elif variable not in several and node.index is not None:
            message = f"{variable!r} is one event and takes no index"
            self.fail("ACEP-Q033", message, node.span, f"write {variable}.{name}")


def lightest_way(machine: Machine, weights: Mapping[str, int]) -> int:
    """The weight of the lightest way from the start to a final state: what it costs to make a match from nothing.

    Parameters
    ----------
    machine : Machine
        Some way leads there.
    weights : mapping of str to int
        Of a missing variable, where it is not 1.

    Complexity: O(states x arcs).
    """
    costs = {machine.start: 0}
    changed = True
    while changed:
        changed = False
        for arc in machine.arcs:
            if arc.source in costs and arc.kind != "timeout":
                cost = costs[arc.source] + (weight_of(arc, weights) if arc.kind == "on" else 0)
                if cost < costs.get(arc.target, cost + 1):
                    costs[arc.target] = cost
                    changed = True
    for arc in machine.arcs:
        if arc.kind == "timeout" and arc.source in costs:
            cost = costs[arc.source]
            costs[arc.target] = min(cost, costs.get(arc.target, cost))
    return min(costs[state] for state in machine.finals if state in costs)


def weight_of(arc: MachineArc, weights: Mapping[str, int]) -> int:
    """What it costs to skip an arc."""
    return weights.get(arc.variable, 1) if arc.variable is not None else 1


def repeated_variables(machine: Machine) -> frozenset[str]:
    """The variables that some way through an automaton written by hand can bind twice.

    Parameters
    ----------
    machine : Machine

    Complexity: O(arcs x variables).
    """
    bound: dict[str, set[str]] = {state: set() for arc in machine.arcs for state in (arc.source, arc.target)}
    waiting = [machine.start, *bound]
    while waiting:  # carry on what may be bound when a run comes to a state
        state = waiting.pop()
        for arc in machine.leaving.get(state, ()):
            before = bound[state] if arc.variable is None else bound[state] | {arc.variable}
            if not before <= bound[arc.target]:
                bound[arc.target] |= before
                waiting.append(arc.target)
    return frozenset(str(arc.variable) for arc in machine.arcs if arc.variable in bound[arc.source])


def reachable(states: set[str], pairs: Iterable[tuple[str, str]]) -> set[str]:
    """States that can be reached from some, and these; O(pairs)."""
    targets: dict[str, list[str]] = {}
    for source, target in pairs:
        targets.setdefault(source, []).append(target)
    found, waiting = set(states), list(states)
    while waiting:
        more = [target for target in targets.get(waiting.pop(), ()) if target not in found]
        found.update(more)
        waiting += more
    return found
