"""Which circles of rules can be run in one kernel, and why others cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from acep_approx.automaton.automaton import Letter
from acep_approx.kernels.cells.detect import FEW_LANES
from acep_approx.kernels.rules.lockstep import EQUAL, GREATER, IS_NULL, LESS
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Aggregate, Atom, Attribute
from acep_approx.rules.compiled import CompiledRule, ReadColumn, always_last, is_old
from acep_approx.rules.graph import Cell, Part, RuleGraph, Stage
from acep_approx.rules.lockstep.conditions import (
    Given,
    NotATestError,
    Test,
    Tree,
    leaves,
    reads_of_circle,
    tree_of,
    when_of,
)
from acep_approx.rules.program import Driver, Program

MOST_TESTS = 10
"""Tests that one event may be asked by one rule: there is a class for each of their outcomes."""
MOST_LETTERS = 64


def why_not_lockstep(stage: Stage, program: Program) -> str | None:
    """Why a stage cannot be run in one kernel, in words; None where it can.

    Parameters
    ----------
    stage : Stage
    program : Program
        Whose stage it is.
    """
    return next(_reasons(stage, program), None)


@dataclass(frozen=True)
class Planned:
    """A stage, and why it is not run in one kernel; None: it is."""

    stage: Stage
    why_not: str | None

    @property
    def in_kernel(self) -> bool:
        """Whether it is run in one kernel."""
        return self.why_not is None


def planned_stages(program: Program, driver: Driver, doubted: Collection[int] = ()) -> list[Planned]:
    """The stages of a program in their order.

    Parts that wait for nothing in a circle come into it where one kernel can run all of it then: what rules detect
    whose actions alone wait for themselves, through WHEN, and rules that write what is read in it. ``doubted``: rules
    that no kernel can run, since inside a load budget they may read what is in doubt.
    """
    if driver != "auto":
        return [Planned(stage, "it was asked for in turn") for stage in program.stages(driver)]
    more: dict[Part, set[Part]] = {}
    reasons: dict[Stage, str] = {}
    for stage in program.graph.stages():
        if stage.is_cycle:
            tried = _with_writers(stage, program, more)
            around = _around(stage, program.graph.stages(tried))
            reason = IN_DOUBT if _has(around, doubted) else why_not_lockstep(around, program)
            if reason is None:
                more = tried
            else:
                reasons[stage] = reason
    stages = program.graph.stages(more)
    why_not = {stage: IN_DOUBT if _has(stage, doubted) else why_not_lockstep(stage, program) for stage in stages}
    return [Planned(stage, reasons.get(stage) or why_not[stage]) for stage in stages]


IN_DOUBT = "inside the load budget, what it reads may be in doubt"


def _has(stage: Stage, rules: Collection[int]) -> bool:
    """Whether a part of some rules is in a stage."""
    return any(rule in rules for rule, _ in stage.parts)


def _with_writers(stage: Stage, program: Program, more: Mapping[Part, set[Part]]) -> dict[Part, set[Part]]:
    """What must wait besides, so that a circle has all that writes what it reads, and all that its rules detect."""
    found = {part: set(others) for part, others in more.items()}
    while True:
        rules = {rule for rule, _ in stage.parts}
        writers = rules | program.graph.writers_of(_cells_read(rules, program))
        wanted: set[Part] = {(rule, "detect") for rule in writers}
        if wanted <= set(stage.parts):
            return found
        for part in wanted:
            found.setdefault(part, set()).add(stage.parts[0])
        stage = _around(stage, program.graph.stages(found))


def _cells_read(rules: Iterable[int], program: Program) -> set[Cell]:
    """What rules read of what some rule of theirs writes."""
    graph = program.graph
    own = [program.rules[rule] for rule in rules]
    written = {cell for one in own for cell in graph.written(one)}
    found = [graph.cells_of(read.table, read.column) for one in own for read in one.reads]
    found += [graph.cells_of(read.table, read.column) for one in own for read in one.when_reads]
    return {cell for cells in found if cells & written for cell in cells}


def _around(stage: Stage, stages: Iterable[Stage]) -> Stage:
    """Of some stages that which has the parts of another."""
    return next(one for one in stages if set(stage.parts) <= set(one.parts))


def live_reads(stage: Stage, program: Program) -> tuple[ReadColumn, ...]:
    """The columns of a stage's events that its own rules write; others are known before it runs."""
    graph, own = program.graph, set(stage.firing)
    reads = reads_of_circle(program.rules[rule] for rule in stage.firing)
    return tuple(read for read in reads if graph.writers_of(graph.cells_of(read.table, read.column)) & own)


def trees_of(letter: Letter, live: frozenset[str]) -> tuple[Tree, ...]:
    """The conditions of a letter that read what is live.

    Raises
    ------
    NotATestError
    """
    trees = (tree_of(condition, live) for condition in letter.conditions)
    return tuple(tree for tree in trees if not isinstance(tree, Given))


def _reasons(stage: Stage, program: Program) -> Iterator[str]:
    if not stage.is_cycle:
        yield "nothing in it waits for itself"
    rules = [program.rules[number] for number in stage.firing]
    for rule in rules:
        yield from (f"rule {rule.name}: {reason}" for reason in _of_rule(rule, program))
    if stage.detecting != stage.firing:
        yield "some of its rules only detect in it, or only fire"
    live = live_reads(stage, program)
    yield from _of_reads(stage, program, live)
    for rule in rules:
        yield from (f"rule {rule.name}: {reason}" for reason in _of_conditions(rule, program, live))


def _of_rule(rule: CompiledRule, program: Program) -> Iterator[str]:
    """What of a rule alone speaks against it."""
    if rule.plan.registers is not None:
        yield f"it needs the runs engine, for {'; '.join(rule.plan.why_runs)}"
    if rule.plan.looks_to_the_start:
        yield "it depends on the start of partitions"
    if rule.plan.query.errors >= FEW_LANES:
        yield f"it has more than {FEW_LANES - 1} errors"
    if rule.late:
        yield "a condition reads the store for one event as of another"
    try:
        when_of(rule)
    except NotATestError as error:
        yield f"{error}"
    yield from _of_actions(rule, program)


def _of_actions(rule: CompiledRule, program: Program) -> Iterator[str]:
    """What is written must be known from the event that completes a match, and the same for each of its matches."""
    query = rule.plan.query
    last, shared = always_last(query), {one.name for one in query.equivalences}
    values = [value for write in rule.writes for value in (*write.key, *(one.value for one in write.sets))]
    named = [node for value in values for node in walk(value)]
    for node in named:
        if not isinstance(node, Attribute | Aggregate):
            continue
        if is_old(node):
            if rule.rule.each == "match" and not isinstance(query.pattern, Atom):
                yield "an event may complete several matches, and each of them changes what the row was before"
        elif isinstance(node, Aggregate) or (node.name not in shared and node.variable != last):
            yield f"an action writes what another event than the last one says, {node.variable}"
    if rule.rule.each == "match" and not isinstance(query.pattern, Atom):
        made: set[str] = set()
        for write in reversed(rule.writes):
            if write.kind == "update" and write.table in made and not program.graph.tables[write.table].is_total:
                yield "UPSERT makes a row that UPDATE finds when the next match of the event comes"
            made |= {write.table} if write.kind == "upsert" else set()


def _of_reads(stage: Stage, program: Program, live: tuple[ReadColumn, ...]) -> Iterator[str]:
    """What is written in the circle must be written by no other rule, and be no key."""
    graph, own = program.graph, set(stage.firing)
    for read in live:
        others = graph.writers_of(graph.cells_of(read.table, read.column)) - own
        if others:
            yield f"{read.name} is written by the rule {program.rules[min(others)].name}, too, which is not in it"
        if read.column in graph.tables[read.table].key:
            yield f"{read.name} is a column of the key"


def _of_conditions(rule: CompiledRule, program: Program, live: tuple[ReadColumn, ...]) -> Iterator[str]:
    """Conditions must be made of tests, and not of too many."""
    by_name = {read.name: read for read in live}
    try:
        trees = [trees_of(letter, frozenset(by_name)) for letter in rule.plan.letters]
        when = [tree_of(condition, frozenset(by_name)) for condition in when_of(rule).conditions]
    except NotATestError as error:
        yield f"{error}"
        return
    found = [{leaf for tree in some for leaf in leaves(tree)} for some in trees]
    of_when = {leaf for tree in when for leaf in leaves(tree)}
    for test in (leaf for some in (*found, of_when) for leaf in some if isinstance(leaf, Test)):
        if _is_order_of_texts(test, by_name[test.read], program.graph):
            yield f"{test.read} is a text, and compared with others by their order"
    for letter in rule.plan.letters:
        together = zip(rule.plan.letters, found, strict=True)
        asked = {leaf for other, some in together for leaf in some if other.type in (None, letter.type)}
        if max(sum(isinstance(leaf, Test) for leaf in some) for some in (asked, of_when)) > MOST_TESTS:
            yield f"more than {MOST_TESTS} questions about the store are asked of one event"
    if len(trees) + sum(isinstance(leaf, Given) for leaf in of_when.union(*found)) > MOST_LETTERS:
        yield f"more than {MOST_LETTERS} things are asked of events"


def _is_order_of_texts(test: Test, read: ReadColumn, graph: RuleGraph) -> bool:
    column = None if read.column is None else graph.tables[read.table].column(read.column)
    is_equality = test.outcomes in (EQUAL, LESS + GREATER) or test.outcomes >= IS_NULL
    return column is not None and column.holds == "text" and not is_equality
