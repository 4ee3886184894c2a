"""The register automaton as the kernel of the runs engine wants it: pools, steps and programs in one table."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import START
from acep_approx.automaton.dominance import Better, preferences
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Register
from acep_approx.automaton.states import ALWAYS, EVERYTHING, PLACE, Step
from acep_approx.engines.runs.event_columns import CODED, EventColumns
from acep_approx.engines.runs.hidden import (
    DOMINATED,
    EVENT_SCALARS,
    GONE,
    NO_OPTIONS,
    TIMES,
    RunOptions,
    hidden_columns,
)
from acep_approx.engines.runs.pools import KILLS, Group, Pool, Reactions
from acep_approx.engines.runs.programs import ANY_LETTER, MAX_TEMPORARIES, Operand, register_kind
from acep_approx.engines.runs.step_code import NOTHING, Programs, beyond, most_common
from acep_approx.kernels.runs import layout, vm
from acep_approx.kernels.runs.fronts import EQUAL, HIGH_FLOAT, HIGH_INT, LOW_FLOAT, LOW_INT
from acep_approx.kernels.runs.pools import ALL, APART, COLUMNS, HASHED, MOST_KEYS
from acep_approx.query.syntax import NON_OVERLAP, Expression

TESTS_NONE, BEGINS_NONE = 1 << 64, 1 << 65
"""Beside the letters of a class of events, all of which are below: with such an event no runs are tested, or begun."""


MOST_KNOWN = 16
"""Lists of classes whose tables are kept, for the next streams."""


@dataclass
class _ClassWords:
    """Parts of the table that are written class by class: see ``kernels.runs.layout``.

    ``moves_at`` says where the moves of a step stand that were written before.
    """

    class_first: list[int] = field(default_factory=lambda: [0])
    sources: list[int] = field(default_factory=list)
    targets_first: list[int] = field(default_factory=lambda: [0])
    targets: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    moves_at: dict[int, int] = field(default_factory=dict)
    probes: list[int] = field(default_factory=list)


class RunTables:
    """Everything about a query that the kernel reads and never writes.

    Parameters
    ----------
    automaton : RegisterAutomaton
    columns : EventColumns
        Of the schema of the events.
    window : int
    merging : frozenset of str
        ``equal``: runs of equal registers are merged; ``chain``: runs whose registers the next event must equal are
        found by an index, and bounds tell which runs no event can take; ``pareto``: runs that can do no more than
        another are dropped.
    keeps_lineage : int
        ``kernels.runs.layout.NO_LINEAGE`` where nothing is listed: only then runs are dropped, or see ``finds_best``.
    sheds : bool
        Whether runs carry, behind their registers, what shedding asks for: a mark, and the tick of the event that they
        bound last. Runs are merged only if their marks agree.
    ranks_dominated : bool
        Where it sheds: whether runs that can do no more than another are the first to go.
    finds_best : bool
        Where it sheds: whether of the matches of an event one with the fewest errors and the latest start is enough.
    options : RunOptions
        What else they carry, and whose they are.
    """

    def __init__(
        self,
        automaton: RegisterAutomaton,
        columns: EventColumns,
        window: int,
        merging: frozenset[str],
        keeps_lineage: int,
        *,
        sheds: bool = False,
        ranks_dominated: bool = False,
        finds_best: bool = False,
        options: RunOptions = NO_OPTIONS,
    ) -> None:
        self.automaton = automaton
        self.window = window
        self.merging = merging
        self.keeps_lineage = keeps_lineage
        self.sheds = sheds
        self.finds_best = finds_best
        self._better = preferences(automaton)
        self.ranks_dominated = sheds and ranks_dominated and self._is_monotone()
        self.options = options
        self.is_simultaneous = automaton.is_simultaneous
        self.hidden = hidden_columns(
            sheds=sheds,
            dominated=self.ranks_dominated,
            earliest=options.keeps_earliest,
            times=options.counts_merged,
            gone=self.is_simultaneous and not all(map(automaton.is_passive, range(len(automaton.states)))),
        )
        self.programs = Programs(automaton, columns, self.hidden, options)
        self.scalars, self.guard_letters = self.programs.scalars, self.programs.guard_letters
        self.steps, self._ignores = self.programs.steps, self.programs.ignores
        self._carries = self._carried_to()
        self.pools = [self._pool(state, errors) for state, errors in automaton.places]
        self.reactions = Reactions(automaton, self.pools, [step.keeps for step in self.steps])
        self.constants_at = 1 + len(self.guard_letters) + len(columns.expressions)
        self.now_at = self.scalars.size
        self.temporaries_at = self.now_at + EVENT_SCALARS
        self.scratch_at = self.temporaries_at + vm.BLOCK * (MAX_TEMPORARIES + 1 + len(self.scalars.calls))
        self.pools_at = self.scratch_at + vm.BLOCK * (COLUMNS + max(pool.fields for pool in self.pools))
        self.asks_more = self._asks_more()
        self.classes: tuple[int, ...] = ()
        self.calls_of_sources: list[frozenset[int]] = []
        self.tables = np.zeros(0, np.int64)
        self.shape = np.zeros(layout.SHAPE, np.int64)
        self._of_classes: dict[tuple[int, ...], tuple[Ints, Ints, list[frozenset[int]]]] = {}

    def for_stream(self, columns: EventColumns) -> RunTables:
        """The same for the columns of another stream, which are like those of this one; no text is in them."""
        other, programs = copy(self), copy(self.programs)
        scalars = replace(self.scalars, columns=columns, readers=self.scalars.readers.copy())
        programs.scalars = other.scalars = scalars
        other.programs, other.shape = programs, self.shape.copy()
        return other

    def _carried_to(self) -> set[int | None]:
        """States that registers are carried to, so that runs which reach them with one event may differ."""
        given: dict[int | None, set[tuple[Operand, ...]]] = {}
        for step, code in zip(self.automaton.steps, self.steps, strict=True):
            given.setdefault(step.target, set()).add(code.moves)
        return {
            target
            for target, some in given.items()
            if len(some) > 1 or any(move.place != vm.SCALAR for moves in some for move in moves)
        }

    def _asks_more(self) -> bool:
        """Whether the kernel must know of more than conditions and strategies: see ``records.Program``."""
        automaton = self.automaton
        has_lifetimes = any(step.lifetime != ALWAYS for step in automaton.steps)
        has_checks = any(ignore.checks for ignore in automaton.ignores)
        has_options = replace(self.options, charges_births=False) != NO_OPTIONS  # births are charged for anyway
        keeps_more = has_options or bool(automaton.shown) or self.scalars.asks_time
        return keeps_more or bool(self.scalars.calls) or self.is_simultaneous or has_lifetimes or has_checks

    # --- pools ----------------------------------------------------------------------------------------------

    def _pool(self, state: int, errors: int) -> Pool:
        automaton = self.automaton.automaton
        live = self.automaton.live[state]
        out = [self.automaton.steps[number] for number in self.automaton.steps_from[state]]
        stays = any(self.automaton.leads_to(step, errors) for step in out)
        ends = [n for n in self.automaton.finals[state] if errors + automaton.finals[n].cost <= automaton.errors]
        is_passive = self.automaton.is_passive(state)
        is_free = is_passive and PLACE not in live and state != START and stays
        keys = self._keys(state) if is_free and "chain" in self.merging else ()
        is_chained, front = bool(keys), self._front(state) if is_passive else ()
        if not self.ranks_dominated and (keys or not self.drops):
            front = ()
        equal = tuple(f for f in range(len(live)) if front and front[f] == EQUAL)[:MOST_KEYS]
        if self.ranks_dominated and is_free and "equal" in self.merging:
            keys = keys or equal
        in_chain = self.ranks_dominated and bool(front and keys)
        across = is_free and (self.ranks_dominated or not front) and ("equal" in self.merging or bool(keys))
        keys = keys or tuple(range(min(len(live), MOST_KEYS))) if across else ()
        is_probed = is_chained or in_chain or any(self._is_found_by(keys, n) for n in self.automaton.steps_from[state])
        return Pool(
            state=state,
            errors=errors,
            merge=self._merge(state, stays),
            fields=len(live) + len(self.hidden),
            across=across,
            is_probed=is_probed,
            keys=keys,
            front=front,
            in_chain=in_chain,
            stays=stays,
            is_end=bool(ends),
            alike=len(live) + self.hidden.alike,
            waits_for=self._waits_for(state) if state != START and stays else NOTHING,
        )

    def _waits_for(self, state: int) -> int:
        """The threshold that runs at a state wait for an event to pass; ``NOTHING`` where bounds are not kept."""
        out = self.automaton.steps_from[state]
        # a run that goes on in its pool gets another threshold there
        may_change = any(self.automaton.steps[n].target == state for n in out) and not self.is_simultaneous
        is_left = self.automaton.ignores[state] == EVERYTHING and not self.automaton.is_passive(state)
        calls = any(self.steps[number].calls for number in out)
        if self.sheds or "chain" not in self.merging or may_change or not is_left or calls:
            return NOTHING
        return most_common(self.steps[n].thresholds for n in out)

    def _is_monotone(self) -> bool:
        """Whether a run can be better than another of its pool, and their registers tell all that decides."""
        return not self.automaton.needs_filter and any(set(better) - {"equal"} for better in self._better)

    def _front(self, state: int) -> tuple[int, ...]:
        """Which values are better of the columns that equal runs agree in; empty where none are."""
        live, better = self.automaton.live[state], self._better[state]
        if not set(better) - {"equal"}:
            return ()
        return (*(self._direction(r, b) for r, b in zip(live, better, strict=True)), *(EQUAL,) * self.hidden.alike)

    @property
    def drops(self) -> bool:
        """Whether runs that can do no more than another may be dropped, as if merged with it."""
        return self.exact_drops or (self._may_drop and self.sheds and self.finds_best)

    @property
    def exact_drops(self) -> bool:
        """The same of an exact run of the same output."""
        return self._may_drop and self.keeps_lineage == layout.NO_LINEAGE

    @property
    def _may_drop(self) -> bool:
        keeps_all = self.options.keeps_earliest or self.options.counts_merged
        return "pareto" in self.merging and not keeps_all

    def _merge(self, state: int, stays: bool) -> int:
        """How runs that one event brings to a state are merged."""
        is_same = state not in self._carries and not self.hidden
        if self.keeps_lineage == layout.NO_LINEAGE and not stays and is_same:
            return ALL  # only that a match ends here matters
        return (ALL if is_same else HASHED) if "equal" in self.merging else APART

    def _direction(self, register: Register, better: Better) -> int:
        kind = register_kind(register, self.scalars.columns)
        if better == "equal" or kind in (*CODED, "truth", "null"):
            return EQUAL
        if kind == "float":
            return LOW_FLOAT if better == "low" else HIGH_FLOAT
        return LOW_INT if better == "low" else HIGH_INT

    def _keys(self, state: int) -> tuple[int, ...]:
        """The registers that the next event must equal, on all ways on that test any; empty if there are none."""
        tested = [self.steps[number].equalities for number in self.automaton.steps_from[state]]
        some = [set(columns) for columns in tested if columns]
        return tuple(sorted(set.intersection(*some)))[:MOST_KEYS] if some else ()

    def readers(self, expression: Expression) -> int:
        """The letters, as bits: the value of an expression is read of the events that one of them holds on."""
        return self.scalars.readers.get(expression, ANY_LETTER)

    def is_read(self, expression: Expression) -> Bools:
        """Per class of events whether the value of an expression is read of them."""
        return np.array([mask & self.readers(expression) != 0 for mask in self.classes], np.bool_)

    # --- the table ------------------------------------------------------------------------------------------

    def set_classes(self, classes: list[int]) -> None:
        """Make the table for event classes (letter masks)."""
        self.classes = tuple(classes)
        known = self._of_classes.get(self.classes)
        if known is not None:
            self.tables, self.calls_of_sources = known[0], known[2]
            self.shape[:] = known[1]
            return
        self.calls_of_sources = []
        words = _ClassWords()
        for mask in classes:
            involved = self._put_sources(words, mask)
            words.class_first.append(len(words.sources) // layout.SOURCE_WORDS)
            words.targets += [word for pool in involved for word in self.reactions.target(pool, mask)]
            words.targets_first.append(len(words.targets) // layout.TARGET_WORDS)
        guards, guards_first = self._guards(classes)
        states, ends, fronts = self._states()
        parts: list[list[int]] = [
            words.class_first, words.sources, words.targets_first, words.targets, words.steps, states, ends,
            words.moves, guards_first, guards, words.probes, fronts, self.hidden.merging, self._shown(),
        ]  # fmt: skip
        code_at = sum(len(part) for part in parts)
        starts = np.cumsum([0, *(len(part) for part in parts)])[:-1]
        self.tables = np.array([x for part in [*parts, self.programs.words] for x in part] or [0], np.int64)
        self._place_code(starts, len(words.steps) // layout.STEP, code_at)
        self.shape[: len(parts)] = starts
        self._write_shape()
        if len(self._of_classes) < MOST_KNOWN:
            self._of_classes[self.classes] = self.tables, self.shape.copy(), self.calls_of_sources

    def _put_sources(self, words: _ClassWords, mask: int) -> dict[int, None]:
        """Write down what runs may do on an event of ``mask``; gives the pools that it concerns, in order."""
        involved: dict[int, None] = {}
        begin_last = self.options.charges_births
        for pool in [*range(1, len(self.pools)), START] if begin_last else range(len(self.pools)):
            for group in self._groups(pool, mask):
                if not mask & (BEGINS_NONE if pool == START else TESTS_NONE):
                    self._put_source(words, pool, group, mask)
                involved |= dict.fromkeys(target for _, target in group if target != KILLS)
                if pool:
                    involved.setdefault(pool)
            if pool and self.reactions.follows(pool, mask):
                involved.setdefault(pool)
        return involved

    def _put_source(self, words: _ClassWords, pool: int, group: Group, mask: int) -> None:
        """Write down a group of steps that runs of a pool may take together."""
        how, ignore = self.reactions.how(pool, mask), self._ignores[self.pools[pool].state]
        codes = [self.steps[number] for number, _ in group]
        scalars = self._probe(pool, group[0][0]) if group else []
        calls = frozenset[int]().union(*(code.calls for code in codes))
        if how == layout.MAY_STAY:
            calls |= ignore.calls
        first_probe = len(words.probes) if scalars else -1
        removes = int(self.reactions.removes(pool, group, mask))
        is_charged = int(pool != START or self.options.charges_births)
        is_plain = int(not scalars and all(code.is_plain for code in codes))
        words.sources += [pool, len(words.steps) // layout.STEP, len(group), first_probe, removes]
        words.sources += [is_charged, len(calls), how, *ignore.code, is_plain]
        words.sources += beyond(self.pools[pool].waits_for, [code.thresholds for code in codes])
        words.probes += scalars
        self.calls_of_sources.append(calls)
        for number, target in group:
            in_place = self.reactions.is_in_place(pool, number, target, group, mask)
            inhibits = self.automaton.steps[number].inhibits and how != layout.LEAVE
            words.steps += self._step_words(number, target, self._moves_at(words, number), in_place, inhibits)

    def _write_shape(self) -> None:
        """What the kernel must know beside the parts of the tables."""
        self.shape[layout.WINDOW] = self.window
        self.shape[layout.EVENT_COLUMNS] = len(self.scalars.columns.expressions)
        self.shape[layout.COLUMNS_AT] = 1 + len(self.guard_letters)
        self.shape[layout.GUARD_LETTERS] = len(self.guard_letters)
        self.shape[layout.KEEPS_LINEAGE] = self.keeps_lineage
        self.shape[layout.TEMPORARIES] = self.temporaries_at
        self.shape[layout.SCRATCH] = self.scratch_at
        self.shape[layout.POOLS] = len(self.pools)
        self.shape[layout.SHEDS] = self.sheds
        self.shape[layout.NOW_AT] = self.now_at
        query = self.automaton.query
        self.shape[layout.SIMULTANEOUS] = self.is_simultaneous
        self.shape[layout.GONE] = self.hidden.behind(GONE)
        self.shape[layout.TIMES] = self.hidden.behind(TIMES)
        self.shape[layout.DOMINATED] = self.hidden.behind(DOMINATED)
        self.shape[layout.SHOWN_WORDS] = len(self.automaton.shown)
        self.shape[layout.NON_OVERLAP] = query.selection == NON_OVERLAP and not self.automaton.needs_filter

    def tested(self, mask: int) -> list[int]:
        """The pools that are gone through for an event of ``mask``: once for each group of steps."""
        return [pool for pool in range(len(self.pools)) for _ in self._groups(pool, mask)]

    def _groups(self, pool: int, mask: int) -> list[Group]:
        """Steps that runs of a pool can take on an event of ``mask``, with the pools they lead to.

        A group goes through the pool together; steps that find their runs by the index go alone. Where runs may stay
        or end without any step, they are gone through as well.
        """
        here = self.pools[pool]
        found = []
        for number in self.automaton.steps_from[here.state]:
            if mask >> self.automaton.steps[number].letter & 1:
                target = self.reactions.end(number, here.errors)
                if target is not None and (pool or target != KILLS):
                    found.append((number, target))
        found.sort(key=lambda item: item[1] == pool)  # runs that stay in their pool change their registers last
        together = [item for item in found if not self._is_found_by(here.keys, item[0])]
        alone = [[item] for item in found if item not in together]
        return [together, *alone] if together or self.reactions.how(pool, mask) == layout.MAY_STAY else alone

    def _probe(self, pool: int, number: int) -> list[int]:
        """Addresses of the scalars that a step's runs must equal in the indexed registers; empty: it has no index."""
        keys = self.pools[pool].keys
        tested = self.steps[number].equalities
        return [tested[key] for key in keys] if self._is_found_by(keys, number) else []

    def _is_found_by(self, keys: tuple[int, ...], number: int) -> bool:
        """Whether an index over these registers finds the runs that can take a step."""
        step = self.steps[number]
        if step.calls:
            return False  # functions are called with runs that stand together
        return bool(keys) and step.equalities.keys() >= set(keys)

    def _moves_at(self, words: _ClassWords, number: int) -> int:
        """Where the moves of a step stand, which are the same on all events."""
        if number not in words.moves_at:
            words.moves_at[number] = len(words.moves) // 2
            words.moves += [word for move in self.steps[number].moves for word in (move.place, move.number)]
            words.moves += self._hidden_moves(self.automaton.steps[number])
        return words.moves_at[number]

    def _step_words(self, number: int, target: int, moves_at: int, in_place: bool, inhibits: bool) -> list[int]:
        step, code = self.automaton.steps[number], self.steps[number]
        return [
            target, KILLS if step.arc is None else step.arc, *code.checks, *code.guards, *code.updates, moves_at,
            len(code.moves) + len(self.hidden), int(inhibits), int(in_place), *step.lifetime,
        ]  # fmt: skip

    def _hidden_moves(self, step: Step) -> list[int]:
        """Where the hidden columns of a child come from."""
        moves: list[int] = []
        for number, column in enumerate(self.hidden):
            is_birth = step.source == START or not column.is_inherited
            if is_birth and column.scalar is not None:
                moves += [vm.SCALAR, self.now_at + column.scalar]
            elif is_birth and column.constant is not None:
                moves += [vm.SCALAR, self.scalars.address(self.scalars.word(column.constant, "int").number)]
            else:
                moves += [vm.REGISTER, len(self.automaton.live[step.source]) + number]
        return moves

    def _place_code(self, starts: Ints, steps: int, code_at: int) -> None:
        """Programs begin behind all other parts."""
        at, states_at = int(starts[layout.STEPS]), int(starts[layout.STATES])
        sources = self.tables[int(starts[layout.SOURCES]) : int(starts[layout.TARGETS_FIRST])]
        sources.reshape(-1, layout.SOURCE_WORDS)[:, layout.SOURCE_IGNORE] += code_at
        self.tables[at : at + steps * layout.STEP].reshape(-1, layout.STEP)[:, [2, 4, 6]] += code_at
        states = self.tables[states_at : states_at + len(self.pools) * layout.STATE]
        states.reshape(-1, layout.STATE)[:, 3] += code_at

    def _states(self) -> tuple[list[int], list[int], list[int]]:
        """What becomes of the children in each pool."""
        automaton = self.automaton.automaton
        states: list[int] = []
        fronts: list[int] = []
        ends: list[int] = []
        for pool in self.pools:
            mine = [
                (number, pool.errors + automaton.finals[number].cost)
                for number in self.automaton.finals[pool.state]
                if pool.errors + automaton.finals[number].cost <= automaton.errors
            ]
            front = len(fronts) if pool.front else -1
            checks = self.programs.finals[pool.state]
            states += [int(pool.stays), len(ends) // 2, len(mine), *checks, front, int(pool.in_chain)]
            ends += [x for end in mine for x in end]
            fronts += pool.front
        return states, ends, fronts

    def _shown(self) -> list[int]:
        """Per pool the columns of the registers that results show; 0 where no match ends."""
        shown = self.automaton.shown
        places = [{register: at for at, register in enumerate(self.automaton.live[pool.state])} for pool in self.pools]
        return [known.get(register, 0) for known in places for register in shown]

    def _guards(self, classes: list[int]) -> tuple[list[int], list[int]]:
        """Per class the guard letters that hold on its events."""
        guards: list[int] = []
        first = [0]
        for mask in classes:
            guards += [g for g, letter in enumerate(self.guard_letters) if mask >> letter & 1]
            first.append(len(guards))
        return guards, first
