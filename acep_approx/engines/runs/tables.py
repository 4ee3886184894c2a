"""The register automaton as the kernel of the runs engine wants it: pools, steps and programs in one table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import START
from acep_approx.automaton.dominance import Better, preferences
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Register, Resolved
from acep_approx.automaton.states import ALWAYS, EVERYTHING, PLACE, Step
from acep_approx.engines.runs.event_columns import CODED, EventColumns
from acep_approx.engines.runs.hidden import DOMINATED, EVENT_SCALARS, GONE, TIMES, hidden_columns
from acep_approx.engines.runs.options import NO_OPTIONS, RunOptions
from acep_approx.engines.runs.pool import Pool
from acep_approx.engines.runs.programs import ANY_LETTER, MAX_TEMPORARIES, Lowering, Operand, Scalars, register_kind
from acep_approx.engines.runs.reactions import KILLS, Reactions
from acep_approx.engines.runs.waiting import NOTHING, beyond, most_common, thresholds
from acep_approx.kernels.runs import layout, vm
from acep_approx.kernels.runs.fronts import EQUAL, HIGH_FLOAT, HIGH_INT, LOW_FLOAT, LOW_INT
from acep_approx.kernels.runs.pools import ALL, APART, COLUMNS, HASHED, MOST_KEYS
from acep_approx.query.syntax import Expression


@dataclass
class _Code:
    """A program in the table: where it begins, how many instructions it has."""

    begin: int
    length: int


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
        ``kernels.runs.layout.NO_LINEAGE`` where nothing is listed: only then runs are dropped.
    sheds : bool
        Whether runs carry, behind their registers, what shedding asks for: a mark, and the tick of the event that they
        bound last. Runs are merged only if their marks agree.
    ranks_dominated : bool
        Where it sheds: whether runs that can do no more than another are the first to go.
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
        options: RunOptions = NO_OPTIONS,
    ) -> None:
        self.automaton = automaton
        self.window = window
        self.merging = merging
        self.keeps_lineage = keeps_lineage
        self.sheds = sheds
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
        self.guard_letters = sorted({j for step in automaton.steps for j in step.guard})
        self.scalars = Scalars(columns, len(self.guard_letters), options)
        self._words: list[int] = []  # programs and moves
        self.calls_of_sources: list[set[int]] = []
        self._calls: list[set[int]] = []
        for column in self.hidden:
            if column.constant is not None:  # before scalars get their final numbers
                self.scalars.word(column.constant, "int")
        self._steps = [self._step(step) for step in automaton.steps]
        self.scalars.letters = ANY_LETTER
        states = range(len(automaton.states))
        self._finals = [
            self._tests(Lowering(self.scalars, automaton.live[state]), automaton.final_checks[state])
            for state in states
        ]
        self._ignores: list[_Code] = []
        self._calls_to_ignore: list[set[int]] = []
        for state in states:
            lowering = Lowering(self.scalars, automaton.live[state])
            self._ignores.append(self._tests(lowering, automaton.ignores[state].checks))
            self._calls_to_ignore.append(lowering.calls)
        self._resolve_scalars()
        self._equalities = [self._equalities_of(checks) for checks, *_ in self._steps]
        self._thresholds = [thresholds(self._code(checks)) for checks, *_ in self._steps]
        ways = zip(automaton.steps, self._steps, strict=True)
        # states that registers are carried to, so that runs which reach them with one event may differ
        given: dict[int | None, set[tuple[Operand, ...]]] = {}
        for step, (_, _, _, moves) in ways:
            given.setdefault(step.target, set()).add(tuple(moves))
        self._carries = {
            target
            for target, some in given.items()
            if len(some) > 1 or any(move.place != vm.SCALAR for moves in some for move in moves)
        }
        self.pools = self._pools()
        keeps = [all(m.place != vm.REGISTER or m.number == f for f, m in enumerate(steps[3])) for steps in self._steps]
        self.reactions = Reactions(automaton, self.pools, keeps)
        self.constants_at = 1 + len(self.guard_letters) + len(columns.expressions)
        self.now_at = self.scalars.size
        self.temporaries_at = self.now_at + EVENT_SCALARS
        self.scratch_at = self.temporaries_at + vm.BLOCK * (MAX_TEMPORARIES + 1 + len(self.scalars.calls))
        has_lifetimes = any(step.lifetime != ALWAYS for step in automaton.steps)
        has_checks = any(ignore.checks for ignore in automaton.ignores)
        # whether the kernel must know of more than conditions and strategies: see ``records.Program``
        keeps_more = options is not NO_OPTIONS or bool(automaton.shown) or self.scalars.asks_time
        self.asks_more = keeps_more or self.is_simultaneous or has_lifetimes or has_checks
        self.classes: tuple[int, ...] = ()
        self.pools_at = self.scratch_at + vm.BLOCK * (COLUMNS + max(pool.fields for pool in self.pools))
        self.tables = np.zeros(0, np.int64)
        self.shape = np.zeros(layout.SHAPE, np.int64)

    # --- programs -------------------------------------------------------------------------------------------

    def _step(self, step: Step) -> tuple[_Code, _Code, _Code, list[Operand]]:
        """Programs of checks, guards and updates, and where each register of the target comes from."""
        live = self.automaton.live
        self.scalars.letters = 1 << step.letter
        lowering = Lowering(self.scalars, live[step.source], step.after)
        for check in step.checks:
            lowering.test(check)
        checks = self._put(lowering.take())
        for letter in sorted(step.guard):
            lowering.test_guard(self.guard_letters.index(letter))
        guards = self._put(lowering.take())
        kept = live[step.target] if step.target is not None else ()
        moves = [lowering.after(register) for register in kept]
        self._calls.append(lowering.calls)
        return checks, guards, self._put(lowering.take()), moves

    def _tests(self, lowering: Lowering, checks: tuple[Resolved, ...]) -> _Code:
        """The program of what is asked of runs that bind nothing."""
        for check in checks:
            lowering.test(check)
        return self._put(lowering.take())

    def _put(self, code: list[tuple[int, ...]]) -> _Code:
        begin = len(self._words)
        for instruction in code:
            self._words.extend(instruction)
        return _Code(begin, len(code))

    def _resolve_scalars(self) -> None:
        """Give scalars their final numbers, now that all are known."""
        for at in range(0, len(self._words), vm.WIDTH):
            for place in (at + 2, at + 4):
                if self._words[place] == vm.SCALAR:
                    self._words[place + 1] = self.scalars.address(self._words[place + 1])

    # --- pools ----------------------------------------------------------------------------------------------

    def _pools(self) -> list[Pool]:
        return [self._pool(state, errors) for state, errors in self.automaton.places]

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
        if self.sheds or "chain" not in self.merging or may_change or not is_left or any(self._calls[n] for n in out):
            return NOTHING
        return most_common(self._thresholds[n] for n in out)

    def _code(self, code: _Code) -> list[int]:
        return self._words[code.begin : code.begin + code.length * vm.WIDTH]

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
        keeps_all = self.options.keeps_earliest or self.options.counts_merged
        return "pareto" in self.merging and self.keeps_lineage == layout.NO_LINEAGE and not keeps_all

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
        tested = [self._equalities[number] for number in self.automaton.steps_from[state]]
        some = [set(columns) for columns in tested if columns]
        return tuple(sorted(set.intersection(*some)))[:MOST_KEYS] if some else ()

    def _equalities_of(self, checks: _Code) -> dict[int, int]:
        """Register columns that checks compare for equality with a scalar: column -> address of the scalar."""
        found, words = {}, self._code(checks)
        for at in range(0, len(words), vm.WIDTH):
            op, _, place, column, other, scalar, flags = words[at : at + vm.WIDTH]
            if op == vm.TEST_INT and (place, other, flags) == (vm.REGISTER, vm.SCALAR, vm.EQUAL):
                found[column] = scalar
        return found

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
        self.calls_of_sources = []
        sources: list[int] = []
        probes: list[int] = []
        targets: list[int] = []
        class_first, targets_first = [0], [0]
        steps: list[int] = []
        moves_at: dict[int, int] = {}
        moves: list[int] = []
        order = [*range(1, len(self.pools)), START] if self.options.charges_births else range(len(self.pools))
        for mask in classes:
            involved: dict[int, None] = {}
            for pool in order:
                how = self.reactions.how(pool, mask)
                for group in self._groups(pool, mask):
                    scalars = self._probe(pool, group[0][0]) if group else []
                    removes = int(self.reactions.removes(pool, group, mask))
                    calls = {call for number, _ in group for call in self._calls[number]}
                    calls |= self._calls_to_ignore[self.pools[pool].state] if how == layout.MAY_STAY else set()
                    is_charged = int(pool != START or self.options.charges_births)
                    sources += [pool, len(steps) // layout.STEP, len(group), len(probes) if scalars else -1, removes]
                    is_plain = not scalars and all(self._is_plain(number) for number, _ in group)
                    sources += [is_charged, len(calls), *self._staying(pool, mask), int(is_plain)]
                    sources += beyond(self.pools[pool].waits_for, [self._thresholds[number] for number, _ in group])
                    self.calls_of_sources.append(calls)
                    probes += scalars
                    for number, target in group:
                        in_place = self.reactions.is_in_place(pool, number, target, group, mask)
                        inhibits = self.automaton.steps[number].inhibits and how != layout.LEAVE
                        steps += self._step_words(number, target, moves, moves_at, in_place, inhibits)
                        if target != KILLS:
                            involved.setdefault(target)
                    if pool:
                        involved.setdefault(pool)
                if pool and self.reactions.follows(pool, mask):
                    involved.setdefault(pool)
            class_first.append(len(sources) // layout.SOURCE_WORDS)
            targets += [word for pool in involved for word in self.reactions.target(pool, mask)]
            targets_first.append(len(targets) // layout.TARGET_WORDS)
        guards, guards_first = self._guards(classes)
        states, ends, fronts = self._states()
        parts: list[list[int]] = [
            class_first, sources, targets_first, targets, steps, states, ends, moves, guards_first, guards, probes,
            fronts, self.hidden.merging, self._shown(),
        ]  # fmt: skip
        code_at = sum(len(part) for part in parts)
        starts = np.cumsum([0, *(len(part) for part in parts)])[:-1]
        self.tables = np.array([x for part in [*parts, self._words] for x in part] or [0], np.int64)
        self._place_code(starts, len(steps) // layout.STEP, code_at)
        self.shape[: len(parts)] = starts
        self._write_shape()

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
        self.shape[layout.NON_OVERLAP] = query.non_overlap and not self.automaton.needs_filter

    def _groups(self, pool: int, mask: int) -> list[list[tuple[int, int]]]:
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

    def _staying(self, pool: int, mask: int) -> list[int]:
        code = self._ignores[self.pools[pool].state]
        return [self.reactions.how(pool, mask), code.begin, code.length]

    def _probe(self, pool: int, number: int) -> list[int]:
        """Addresses of the scalars that a step's runs must equal in the indexed registers; empty: it has no index."""
        keys = self.pools[pool].keys
        tested = self._equalities[number]
        return [tested[key] for key in keys] if self._is_found_by(keys, number) else []

    def _is_found_by(self, keys: tuple[int, ...], number: int) -> bool:
        """Whether an index over these registers finds the runs that can take a step."""
        if self._calls[number]:
            return False  # functions are called with runs that stand together
        return bool(keys) and self._equalities[number].keys() >= set(keys)

    def _step_words(
        self, number: int, target: int, moves: list[int], moves_at: dict[int, int], in_place: bool, inhibits: bool
    ) -> list[int]:
        step, (checks, guards, updates, origin) = self.automaton.steps[number], self._steps[number]
        if number not in moves_at:
            moves_at[number] = len(moves) // 2
            for operand in origin:
                is_scalar = operand.place == vm.SCALAR
                moves += [operand.place, self.scalars.address(operand.number) if is_scalar else operand.number]
            moves += self._hidden_moves(step)
        return [
            target, KILLS if step.arc is None else step.arc, checks.begin, checks.length, guards.begin, guards.length,
            updates.begin, updates.length, moves_at[number], len(origin) + len(self.hidden), int(inhibits),
            int(in_place), *step.lifetime,
        ]  # fmt: skip

    def _is_plain(self, number: int) -> bool:
        """Whether the programs of a step do nothing but compare registers with scalars."""
        checks, guards, updates, _ = self._steps[number]
        words = self._words[checks.begin : guards.begin + guards.length * vm.WIDTH]  # they follow each other
        found = zip(words[:: vm.WIDTH], words[2 :: vm.WIDTH], words[4 :: vm.WIDTH], strict=True)
        plain = {(op, vm.REGISTER, vm.SCALAR) for op in (vm.TEST_INT, vm.TEST_FLOAT)}
        return updates.length == 0 and set(found) <= plain

    def compared(self, number: int) -> list[tuple[int, int, bool]] | None:
        """What a step compares registers with: scalar, flags, whether as a float; None where it does more than that."""
        checks, guards, updates, _ = self._steps[number]
        found: list[tuple[int, int, bool]] = []
        floats: dict[int, int] = {}
        for at in range(checks.begin, checks.begin + checks.length * vm.WIDTH, vm.WIDTH):
            op, target, place, column, other, scalar, flags = self._words[at : at + vm.WIDTH]
            if (op, place) == (vm.TO_FLOAT, vm.SCALAR):
                floats[target] = column
            elif op in (vm.TEST_INT, vm.TEST_FLOAT) and place == vm.REGISTER and other == vm.SCALAR:
                found.append((scalar, flags, False))
            elif (op, place, other) == (vm.TEST_FLOAT, vm.REGISTER, vm.TEMPORARY) and scalar in floats:
                found.append((floats[scalar], flags, True))
            elif (op, place, other) == (vm.TEST_FLOAT, vm.TEMPORARY, vm.REGISTER) and column in floats:
                found.append((floats[column], _turned(flags), True))
            else:
                return None
        return None if guards.length or updates.length else found

    def given(self, number: int) -> list[int] | None:
        """The scalars that the registers become at a step; None where some come from registers, or are computed."""
        moves = self._steps[number][3]
        return None if any(m.place != vm.SCALAR for m in moves) else [self.scalars.address(m.number) for m in moves]

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
            code = self._finals[pool.state]
            front = len(fronts) if pool.front else -1
            checks = [code.begin, code.length]
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


def _turned(flags: int) -> int:
    """What a comparison asks with its sides changed."""
    return flags & vm.EQUAL | (vm.GREATER if flags & vm.LESS else 0) | (vm.LESS if flags & vm.GREATER else 0)
