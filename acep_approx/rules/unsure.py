"""Which events of a rule may have other letters in the exact run, since what they read of tables is in doubt.

A condition on a value in doubt is asked of all values that may stand there (``domains``): where it comes out the same
for all of them, nothing is in doubt. An event plays no role either where another condition of the letter does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import Letter
from acep_approx.automaton.letters import Truths, unbound
from acep_approx.errors import DataError
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.query.shape import atoms, negated_variables, passing_less, variables, walk
from acep_approx.query.syntax import Attribute, Expression, QuerySyntax
from acep_approx.rules.compiled import CompiledRule, ReadColumn, always_last
from acep_approx.rules.domains import asks_only
from acep_approx.rules.doubt import TableDoubt
from acep_approx.rules.log import Transactions

ALL = 2**62 - 1
"""All bits."""


@dataclass(frozen=True)
class Condition:
    """A condition of a letter that reads tables.

    ``only``: the column that it asks for, and nothing else; then ``true`` and ``false`` are the values for which it
    holds, and does not, as bits.
    """

    asked: Expression
    reads: tuple[ReadColumn, ...]
    only: ReadColumn | None = None
    true: int = 0
    false: int = 0


@dataclass(frozen=True)
class Reading:
    """A letter that reads tables: its conditions that do, and those that do not."""

    letter: Letter
    is_last: bool
    reading: tuple[Condition, ...]
    others: tuple[Expression, ...]


@dataclass(frozen=True)
class Unsure:
    """Of the events of a batch whether what they read in doubt may matter.

    Attributes
    ----------
    leads : bool
        It may: they may begin a match of the exact run, lead one on or end one, or do so here alone.
    ends : bool
        They may end a match of the exact run, or do so here alone, and nothing else.
    guard : int64
        Of those that only may end one: the values of ``Readings.guard`` in which they do, as bits; 0: not known.
    rows : int64
        Of which row that is.
    """

    leads: Bools
    ends: Bools
    guard: Ints
    rows: Ints

    @property
    def any(self) -> Bools:
        """Whether it may in any way."""
        found: Bools = self.leads | self.ends
        return found

    @classmethod
    def none(cls, events: int) -> Unsure:
        """Of none of some events."""
        leads, ends = np.zeros(events, np.bool_), np.zeros(events, np.bool_)
        return cls(leads, ends, np.zeros(events, np.int64), np.full(events, -1))


class Readings:
    """What the events of a rule read of tables that may be in doubt, and for what.

    Parameters
    ----------
    rule : CompiledRule
    doubts : mapping of str to TableDoubt
        Of these tables.

    Attributes
    ----------
    reads : list of ReadColumn
        Columns that its events read of them.
    guard : ReadColumn or None
        The one column that the last event of a match is asked for; where it has one of some values, and all else is
        certain, the match is there.
    """

    def __init__(self, rule: CompiledRule, doubts: Mapping[str, TableDoubt]) -> None:
        self.reads = [read for read in rule.reads if read.table in doubts]
        self._doubts = doubts
        self._names = {read.name: read for read in self.reads}
        query = rule.plan.query
        ends = _last_letters(rule) if self.reads else frozenset()
        self._letters = [
            self._reading(letter, is_last=number in ends)
            for number, letter in enumerate(rule.plan.letters)
            if any(self._named(one) for one in letter.conditions)
        ]
        self._beside = self._read_beside(query, rule)
        self.guard = self._guarding()

    # --- once -------------------------------------------------------------------------------------------------

    def _named(self, condition: Expression) -> tuple[ReadColumn, ...]:
        """The columns in doubt that a condition without variables reads."""
        names = (str(node.name) for node in walk(condition) if isinstance(node, Attribute))
        return tuple(dict.fromkeys(self._names[name] for name in names if name in self._names))

    def _reading(self, letter: Letter, *, is_last: bool) -> Reading:
        reading, others = [], []
        for condition in letter.conditions:
            reads = self._named(condition)
            if not reads:
                others.append(condition)
                continue
            domain = None
            if asks_only(condition) is not None:
                domain = self._doubts[reads[0].table].domain(reads[0].column)
            known = () if domain is None else (reads[0], *domain.truth(condition))
            reading.append(Condition(condition, reads, *known))
        return Reading(letter, is_last, tuple(reading), tuple(others))

    def _read_beside(self, query: QuerySyntax, rule: CompiledRule) -> list[tuple[ReadColumn, set[str | None], bool]]:
        """What is read for more than conditions of letters: by events of which types, and whether of the last alone."""
        by_letters = {one for letter in rule.plan.letters if not letter.unseen for one in letter.conditions}
        asked = [one for one in query.predicates if not _is_of_one(one) or unbound(one) not in by_letters]
        asked += [output.value for output in query.outputs]
        asked += rule.late
        leaves = [node for one in asked for node in walk(one) if isinstance(node, Attribute)]
        found = []
        for read in self.reads:
            named = {leaf.variable for leaf in leaves if leaf.name == read.name}
            if not named:
                continue
            types: set[str | None] = {atom.type for atom in atoms(query.pattern) if atom.variable in named}
            is_last = named == {always_last(query)} and _may_pass(rule)
            found.append((read, types | ({None} if None in named else set()), is_last))
        return found

    def _guarding(self) -> ReadColumn | None:
        last = [one for one in self._letters if one.is_last]
        only = {one.only for letter in last for one in letter.reading}
        return only.pop() if len(last) == 1 and len(only) == 1 else None

    # --- batch by batch ---------------------------------------------------------------------------------------

    def may_matter(self, batch: StreamBatch) -> Bools:
        """The events of which something that is read, and may be in doubt, plays a role."""
        found = np.zeros(len(batch), np.bool_)
        for one in self._letters:
            found |= is_of({one.letter.type}, batch)
        for _, types, _ in self._beside:
            found |= is_of(types, batch)
        return found

    def unsure(self, batch: StreamBatch, rows: Mapping[str, Ints], of: Transactions) -> Unsure:
        """Of which events something in doubt matters.

        Parameters
        ----------
        batch : StreamBatch
            Before its events are run.
        rows : mapping of str to numpy.ndarray of int64
            What rows the events name, by read.
        of : Transactions
            Those of the events.
        """
        size = len(batch)
        found = Unsure.none(size)
        matters = self.may_matter(batch)
        worlds: dict[ReadColumn, Ints] = {}
        for read in self.reads:
            own = rows[read.name]
            worlds[read] = np.zeros(size, np.int64)
            at = np.flatnonzero(matters & (own >= 0))
            if len(at):
                worlds[read][at] = self._doubts[read.table].possible(read.column, own[at], of.take(at))
        if not any(some.any() for some in worlds.values()):
            return found
        for one in self._letters:
            self._ask(one, batch, worlds, rows, found)
        for read, types, is_last in self._beside:
            some = is_of(types, batch) & self._differs(read, worlds[read], batch)
            (found.ends if is_last else found.leads)[some] = True
            found.guard[some] = 0
        return found

    def _differs(self, read: ReadColumn, worlds: Ints, batch: StreamBatch) -> Bools:
        """Where the exact run may have another value."""
        domain = self._doubts[read.table].domain(read.column)
        differs: Bools = worlds != 0
        if domain is not None and differs.any():
            differs &= ~domain.is_same(worlds, domain.bits(batch.values(read.name)))
        return differs

    def _ask(
        self,
        one: Reading,
        batch: StreamBatch,
        worlds: Mapping[ReadColumn, Ints],
        rows: Mapping[str, Ints],
        found: Unsure,
    ) -> None:
        """Note the events on which a letter may hold or not."""
        truths = batch.computed.truths
        may = is_of({one.letter.type}, batch)
        asked = [*one.others, *(read_by.asked for read_by in one.reading)]
        held = {condition: _holds(condition, truths, batch) for condition in asked}
        is_guarded = one.is_last and self.guard is not None and all(one is not None for one in held.values())
        everywhere = np.ones(len(batch), np.bool_)  # where a condition cannot be computed of some event
        for condition in one.others:
            may &= _or(held[condition], everywhere)
        differ = np.zeros(len(batch), np.bool_)
        guard = np.full(len(batch), ALL)
        for read_by in one.reading:
            here, known = _or(held[read_by.asked], everywhere), np.zeros(len(batch), np.bool_)
            own = np.zeros(len(batch), np.bool_)
            for read in read_by.reads:
                own |= self._differs(read, worlds[read], batch)
            if read_by.only is not None and own.any():
                some = worlds[read_by.only]
                known = (some > 0) & np.where(here, some & ~read_by.true == 0, some & ~read_by.false == 0)
            own &= ~known
            may &= here | own  # it holds neither here nor there
            differ |= own
            guard &= np.where(own, read_by.true, ALL)
        at = may & differ
        (found.ends if one.is_last else found.leads)[at] = True
        found.guard[at] = guard[at] if is_guarded else 0
        if one.is_last and self.guard is not None:
            found.rows[at] = rows[self.guard.name][at]


def _is_of_one(predicate: Expression) -> bool:
    """Whether a condition is one on each event of a variable, as those of letters are."""
    leaves = [node for node in walk(predicate) if isinstance(node, Attribute)]
    return len(variables(predicate)) == 1 and all(leaf.index in (None, "current") for leaf in leaves)


def _may_pass(rule: CompiledRule) -> bool:
    """Whether an event that ends a match here, or in the exact run, changes no other match."""
    query = rule.plan.query
    is_plain = passing_less(query) is None and not negated_variables(query.pattern) and query.selection.is_all
    return is_plain and not (rule.is_late or rule.plan.is_count_window or query.is_simultaneous or query.at_start)


def _last_letters(rule: CompiledRule) -> frozenset[int]:
    """The letters that end a match, and do nothing else."""
    if not _may_pass(rule):
        return frozenset()
    registers, automaton = rule.plan.registers, rule.plan.automaton
    if registers is not None:
        moves = [(step.letter, step.source, step.target, step.guard) for step in registers.steps]
        ends = {state for state, finals in enumerate(registers.finals) if finals}
    else:
        moves = [(arc.letter, arc.source, arc.target, arc.guard) for arc in automaton.arcs]
        ends = {final.state for final in automaton.finals}
    going_on = {source for _, source, _, _ in moves}
    ending = {letter for letter, _, target, _ in moves if target in ends and target not in going_on}
    leading = {letter for letter, _, target, _ in moves if target not in ends or target in going_on}
    return frozenset(ending - leading - frozenset().union(*(guard for *_, guard in moves)))


def is_of(types: set[str | None], batch: StreamBatch) -> Bools:
    """Which events are of one of some types; None: of any."""
    if None in types:
        return np.ones(len(batch), np.bool_)
    names, codes = batch.computed.truths.types
    wanted: Bools = np.array([*(name in types for name in names), False])[batch.here(codes)]
    return wanted


def _holds(condition: Expression, truths: Truths, batch: StreamBatch) -> Bools | None:
    """On which events a condition holds; None where it cannot be computed of some."""
    try:
        return batch.here(truths.holds(condition))
    except DataError:
        return None


def _or(held: Bools | None, otherwise: Bools) -> Bools:
    return otherwise if held is None else held
