"""The paths of a query as the kernel searches them: in which order, through which chains, with which checks.

See ``kernels.search.kept`` for the words of the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import islice, permutations
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.automaton.paths import At, Path
from acep_approx.automaton.resolve import Resolved
from acep_approx.engines.runs.event_columns import EventColumns, Kind
from acep_approx.engines.runs.programs import COMPARISONS, MAX_TEMPORARIES, Lowering, Operand, Scalars
from acep_approx.engines.search.bands import SLACK, WIDER, Bands, Near, Wanted, bands, differences
from acep_approx.engines.search.implied import Differences, closed, is_implied
from acep_approx.kernels.runs import layout, records, vm
from acep_approx.kernels.search import end_search as kernel
from acep_approx.kernels.search import kept as kept_events
from acep_approx.query.printer import to_text
from acep_approx.query.shape import MIRRORED
from acep_approx.query.syntax import Binary, Expression

if TYPE_CHECKING:  # a run that is exact loads nothing of histories
    from history.trees import Trees

Order = tuple[int, ...]
"""The positions of a path but the last, as they are searched."""
WITHOUT_LIMIT = 1 << 60
HASHED: tuple[Kind, ...] = ("int", "truth", "time", "duration", "text")
"""Kinds of which equal values have equal words."""
ORDERED: tuple[Kind, ...] = ("int", "float", "time", "duration")
"""Kinds whose words can be put in order."""


def fit(orders: Sequence[Order], paths: Sequence[Path]) -> bool:
    """Whether there is an order for each path, with all positions but the last."""
    known = [list(range(len(path) - 1)) for path in paths]
    return len(orders) == len(paths) and [sorted(order) for order in orders] == known


MOST_INPUTS = 12
PASSED, IN_BIN = {"=": 0.03, "!=": 0.9}, 0.1
"""About which share of the events passes a comparison, and is in a bin; of all other conditions a third passes."""
MOST_RANKED = 5040


def ranked_orders(path: Path, counts: Sequence[float]) -> list[Order]:
    """The orders of a path, those first that should take the fewest tests.

    Parameters
    ----------
    path : Path
    counts : sequence of float
        How many events of a window each letter holds on.

    Examples
    --------
    >>> path = Path((0, 1, 2), (0, 1, 2), (frozenset(),) * 3, (), 0, 0)
    >>> ranked_orders(path, [50.0, 2.0, 9.0])
    [(1, 0), (0, 1)]
    """
    orders = list(islice(permutations(range(len(path) - 1)), MOST_RANKED))
    known = differences(path, lambda _: "float")
    return sorted(orders, key=lambda order: _expected_tests(path, order, counts, known))


def _expected_tests(path: Path, order: Order, counts: Sequence[float], known: Differences) -> float:
    """About how many tests a search makes that finds nothing."""
    bound, left, tests, found = {len(path) - 1}, list(path.checks), 0.0, 1.0
    near = bands(known, [len(path) - 1, *order])
    for position in order:
        neighbours = sum(abs(position - other) == 1 for other in bound)
        found *= counts[path.letters[position]] / (1 + neighbours)
        bound.add(position)
        now, left = [one for one in left if one[0] <= bound], [one for one in left if not one[0] <= bound]
        passed = [PASSED.get(one.op, 1 / 3) if isinstance(one, Binary) else 1 / 3 for _, one in now]
        indexed = [share for share in passed if share == PASSED["="]] + [IN_BIN for _ in near.get(position, ())]
        tests += found * math.prod(indexed)  # the others of its chain are never looked at
        found *= math.prod(passed)
    return tests


@dataclass(frozen=True)
class Searches:
    """The paths of a query, and how they are searched.

    Attributes
    ----------
    paths : tuple of Path
    orders : tuple of Order
        In which order the positions of each are searched.
    wanted : int
        Of the matches of an end any, the one with the latest start, as the exact run gives it, or all: ``kernel.ANY``,
        ``LATEST`` or ``ALL``.
    most : int
        Tests that one end is worth inside a budget: more are made only if enough is saved up.
    trees : Trees, optional
        How likely an end is a match point, by what ``end_inputs`` has.
    least : float
        Inside a budget an end that scores less by the trees is searched only if much is saved up.
    usual : float
        Tests per event that searching all ends took in the past.
    """

    paths: tuple[Path, ...]
    orders: tuple[Order, ...]
    wanted: int = kernel.LATEST
    most: int = WITHOUT_LIMIT
    trees: Trees | None = None
    least: float = -math.inf
    usual: float = math.inf


DAY = 86_400_000_000
"""Ticks, where they are times."""
GAP = "ago"
"""The input that says how long ago the newest event came that a search would begin with."""


def end_inputs(paths: Sequence[Path], columns: EventColumns) -> dict[str, Expression]:
    """The numbers that all events have which can end a match, by their texts: what is read of them in any case."""
    found: dict[str, Expression] = {}
    lasts, letters = {path.letters[-1] for path in paths}, dict[Expression, set[int]]()
    for path in paths:
        for value in path.values:
            letters.setdefault(value.value, set()).add(path.letters[value.position])
    for path in paths:
        for value in path.values:
            is_known = value.position == len(path) - 1 and lasts <= letters[value.value]
            if is_known and columns.kind(value.value) in ORDERED:
                found[to_text(value.value)] = value.value
    return dict(list(found.items())[:MOST_INPUTS])


@dataclass(frozen=True)
class _Test:
    """A condition on events of a path: a comparison of two values in the frame, or a program."""

    positions: frozenset[int]
    check: Resolved
    kind: int
    flags: int = 0
    left: Operand | None = None
    right: Operand | None = None
    program: int = -1

    @property
    def is_plain(self) -> bool:
        """Whether it is a comparison of two values of one kind, which is exact."""
        return self.kind != kept_events.BY_PROGRAM

    def beside(self, position: int) -> tuple[str, Expression, Resolved] | None:
        """The comparison as ``value op other``, where one side is a value of the event at a position alone."""
        if not (self.is_plain and isinstance(self.check, Binary)):
            return None
        op, left, right = self.check.op, cast(Resolved, self.check.left), cast(Resolved, self.check.right)
        for said, mine, other in ((op, left, right), (MIRRORED[op], right, left)):
            if isinstance(mine, At) and mine.position == position:
                is_alone = not (isinstance(other, At) and other.position == position)
                return (said, mine.value, other) if is_alone else None
        return None


class _Values(Scalars):
    """The values of the frame, in the place of those of the current event: constants, then values of events."""

    def __init__(self, columns: EventColumns) -> None:
        super().__init__(columns, 0)
        self.slots: dict[At | Wanted, int] = {}

    def at(self, value: At) -> Operand:
        """Where a value of an event stands."""
        self.columns.place(value.value)
        return Operand(vm.SCALAR, self.number(value), self.columns.kind(value.value))

    def number(self, value: At | Wanted) -> int:
        """The number of a value of an event."""
        return 2 * self.slots.setdefault(value, len(self.slots)) + 1

    @property
    def size(self) -> int:
        return 1 + len(self.constants) + len(self.slots)

    def address(self, number: int) -> int:
        return 1 + len(self.constants) + number // 2 if number % 2 else number // 2


class _Lowering(Lowering):
    """Programs over values of the frame."""

    scalars: _Values

    def value(self, node: Resolved, like: Kind = "int") -> Operand:
        return self.scalars.at(node) if isinstance(node, At) else super().value(node, like)


class _Bin(NamedTuple):
    """The bins of the values of a column: see ``kernels.search.kept.BIN``."""

    column: int
    is_float: bool
    which: int
    step: float
    shift: float


@dataclass
class _Rows:
    """Rows of words of one kind that are named by their numbers; equal ones are one."""

    rows: dict[tuple[int, ...], int] = field(default_factory=dict)

    def of(self, *row: int) -> int:
        return self.rows.setdefault(row, len(self.rows))

    def array(self) -> Ints:
        return np.array([*self.rows], np.int64).ravel()


@dataclass
class _Words:
    """What is written down as it is made: lists of rows that are named by where they begin."""

    words: list[int] = field(default_factory=list)

    def add(self, words: Iterable[int]) -> int:
        first = len(self.words)
        self.words += words
        return first

    def array(self) -> Ints:
        return np.array(self.words, np.int64)


class SearchTables:
    """Everything about the paths of a query that the kernel reads and never writes.

    Parameters
    ----------
    paths : sequence of Path
    orders : sequence of Order
        One for each.
    columns : EventColumns
        Columns of the events; the values that the paths ask for are added to them.
    trees : Trees, optional
        Which ends are likely match points.

    Attributes
    ----------
    searches : kernels.search.kept.Search
    readers : dict of Expression to int
        The letters, as bits, of the events that the value of an expression is read of.
    """

    def __init__(
        self, paths: Sequence[Path], orders: Sequence[Order], columns: EventColumns, trees: Trees | None = None
    ) -> None:
        self.paths = tuple(closed(path, lambda value: columns.kind(value.value)) for path in paths)
        self.columns, self._trees = columns, trees
        self._values = _Values(columns)
        self._chains, self._jumps, self._entries = _Rows(), _Rows(), _Rows()
        self._columns, self._frame, self._copies, self._guards = _Words(), _Words(), _Words(), _Words()
        self._letters, self._bins = _Words(), dict[_Bin, int]()
        self._known_columns: dict[tuple[int, ...], int] = {}
        self._chain_letters: list[int] = []
        self._entry_letters: list[int] = []
        self._programs: list[list[tuple[int, ...]]] = []
        self._checks: list[tuple[_Test, int, int]] = []
        tests = [[self._test(positions, check) for positions, check in path.checks] for path in self.paths]
        self.readers: dict[Expression, int] = {}
        depths: list[list[int]] = []
        rows: list[list[int]] = []
        arcs: list[int] = []
        for path, order, mine in zip(self.paths, orders, tests, strict=True):
            for value in path.values:
                self.readers[value.value] = self.readers.get(value.value, 0) | 1 << path.letters[value.position]
            known = differences(path, lambda value: columns.kind(value.value))
            first, near = len(depths), bands(known, [len(path) - 1, *order])
            copies = self._copied(path, len(path) - 1, near)
            depths += self._depths(path, order, mine, near)
            rows.append([len(path), path.errors, path.final, first, len(arcs), *copies])
            arcs += path.arcs
        self._parts = rows, arcs, depths
        self.searches: kept_events.Search
        self._made_for = -1  # how many columns there were when these were made

    def for_stream(self, columns: EventColumns) -> SearchTables:
        """The same for the columns of another stream, which are like those of this one; no text is in them."""
        other, values = copy(self), copy(self._values)
        values.columns = other.columns = columns
        other._values = values
        return other

    # --- conditions -----------------------------------------------------------------------------------------

    def _test(self, positions: frozenset[int], check: Resolved) -> _Test:
        plain = self._plain(positions, check)
        if plain is not None:
            return plain
        lowering = _Lowering(self._values, ())
        lowering.test(check)
        self._programs.append(lowering.take())
        return _Test(positions, check, kept_events.BY_PROGRAM, program=len(self._programs) - 1)

    def _plain(self, positions: frozenset[int], check: Resolved) -> _Test | None:
        """A comparison of two values as they are."""
        if not isinstance(check, Binary) or check.op not in COMPARISONS:
            return None
        lowering = _Lowering(self._values, ())
        left, right = lowering._pair(check.left, check.right)
        kinds = {left.kind, right.kind} - {"null"}
        is_ordered = check.op in ("=", "!=") or "text" not in kinds
        if lowering.code or len(kinds) > 1 or not is_ordered or vm.TEMPORARY in (left.place, right.place):
            return None
        kind = kept_events.OF_FLOATS if kinds == {"float"} else kept_events.OF_WHOLE
        return _Test(positions, check, kind, COMPARISONS[check.op], left, right)

    # --- depths ---------------------------------------------------------------------------------------------

    def _depths(self, path: Path, order: Order, tests: list[_Test], near: Bands) -> list[list[int]]:
        """The words of the depths of a path."""
        last, left = len(path) - 1, list(tests)
        bound, found, decided = {last}, list[list[int]](), list[Resolved]()
        blamed = {position: 1 << level for level, position in enumerate(order)} | {last: 0, -1: 0}
        for position in order:
            following = min(one for one in bound if one > position)
            before = max((one for one in bound if one < position), default=-1)
            bound.add(position)
            ready = [(sum(blamed[one] for one in test.positions - {position}), test)
                     for test in left if test.positions <= bound]  # fmt: skip
            left, now = [test for test in left if not test.positions <= bound], list[tuple[_Test, int]]()
            for of_others, test in sorted(ready, key=itemgetter(0)):  # those first that blame what is bound first
                if not (test.is_plain and is_implied(test.check, decided)):
                    now.append((test, of_others))
                    decided += [test.check] if test.is_plain else []
            equal = [test for test, _ in now if self._is_key(test, position)]
            keys, some = [self._key(test, position) for test in equal], near.get(position, [])
            chain = self._chain(path.letters[position], [column for column, _ in keys], some)
            of_bands = list(map(self._wanted, some))
            wanted: list[At | Wanted] = [*(value for _, value in keys), *of_bands]
            words = [position, chain, *self._entry(path, position, chain, wanted, len(some)), following, before]
            words += [self._frame.add(map(self._values.number, of_bands)), len(some)]
            words += self._copied(path, position, near)
            checks = [(test, self._jump(test, position, chain, len(some)), of_others)
                      for test, of_others in now if test not in equal]  # fmt: skip
            checks.sort(key=lambda one: (one[1] < 0, one[0].kind == kept_events.BY_PROGRAM))
            words += [len(self._checks), len(checks)]
            self._checks += checks
            words += self._guarded(path, position, bound)
            words += self._between(path, range(position - 1, before, -1))
            words += self._between(path, range(following - 1, position, -1))
            words += [sum(blamed[one] for one in {value.position for value in wanted}), blamed[before]]
            found.append(words)
        return found

    def _is_key(self, test: _Test, position: int) -> bool:
        """Whether a test says which value the event at a position must have."""
        beside = test.beside(position)
        if beside is None or beside[0] != "=" or not isinstance(beside[2], At):
            return False
        kinds = {self.columns.kind(beside[1]), self.columns.kind(beside[2].value)}
        return len(kinds) == 1 and kinds <= set(HASHED)

    def _key(self, test: _Test, position: int) -> tuple[int, At]:
        """The column of the event at a position, and the value that it must have."""
        beside = test.beside(position)
        assert beside is not None
        return self.columns.place(beside[1]), beside[2]

    def _columns_at(self, columns: Sequence[int]) -> int:
        key = tuple(columns)
        if key not in self._known_columns:
            self._known_columns[key] = self._columns.add(key)
        return self._known_columns[key]

    def _chain(self, letter: int, columns: Sequence[int], near: Sequence[Near] = ()) -> int:
        """The chain of the events with a letter that have the same values in some columns.

        Of bands it is the one of even bins; those that differ from it in the first band, the second one and both stand
        behind it.
        """
        first = len(self._chains.rows)
        for odd in range(1 << len(near)):
            bins = [self._bin(one.value, one, odd >> number & 1) for number, one in enumerate(near)]
            known = len(self._chains.rows)
            chain = self._chains.of(self._columns_at([*columns, *bins]), len(columns) + len(near), letter)
            first = min(first, chain)
            if chain == known:
                self._chain_letters.append(letter)
        return first

    def _bin(self, value: At, near: Near, which: int) -> int:
        """The column of bins that a value is in, even or odd ones, or (``WANTED``) in which one near it is found."""
        step = WIDER / 2 * near.width
        shift = -(near.below + SLACK * near.width) / step if which == kept_events.WANTED else 0.0
        row = _Bin(self.columns.place(value.value), self.columns.kind(value.value) == "float", which, step, shift)
        return -1 - self._bins.setdefault(row, len(self._bins))

    def _wanted(self, near: Near) -> Wanted:
        return Wanted(near.other.position, self._bin(near.other, near, kept_events.WANTED))

    def _column(self, value: At | Wanted) -> int:
        return value.column if isinstance(value, Wanted) else self.columns.place(value.value)

    def _entry(
        self, path: Path, position: int, chain: int, wanted: Sequence[At | Wanted], bands: int
    ) -> list[int]:  # fmt: skip
        """How a chain is entered: entry, (begin, number of) values, or the position of the event that has entered."""
        if not wanted:
            return [kept_events.BY_LETTER, 0, 0]
        sources = {value.position for value in wanted}
        if len(sources) == 1 and min(sources) > position:
            (source,) = sources
            columns = self._columns_at(list(map(self._column, wanted)))
            known = len(self._entries.rows)
            entry = self._entries.of(chain, columns, len(wanted), bands, path.letters[source])
            if entry == known:
                self._entry_letters.append(path.letters[source])
            return [entry, source, 0]
        first = self._frame.add(map(self._values.number, wanted))
        return [kept_events.BY_VALUE, first, len(wanted)]

    def _jump(self, test: _Test, position: int, chain: int, bands: int) -> int:
        """The jump that is made where a test fails; -1: none."""
        beside = test.beside(position)
        if beside is None or beside[0] not in ("<", "<=", ">", ">="):
            return -1
        kind = self.columns.kind(beside[1])
        if kind not in ORDERED or (isinstance(beside[2], At) and beside[2].position == position):
            return -1
        what = self.columns.place(beside[1]), kind == "float", beside[0] in (">", ">=")
        return min(self._jumps.of(chain + one, *what) for one in range(1 << bands))

    def _copied(self, path: Path, position: int, near: Bands) -> list[int]:
        """(Begin, number of) the values of the event at a position that go into the frame."""
        of_bands = (self._wanted(one) for some in near.values() for one in some)
        asked: dict[At | Wanted, None] = dict.fromkeys((*path.values, *of_bands))
        values = [value for value in asked if value.position == position]
        words = [word for value in values for word in (self._column(value), self._values.number(value))]
        return [self._copies.add(words) // kept_events.COPY, len(values)]

    def _guarded(self, path: Path, position: int, bound: set[int]) -> list[int]:
        """(Begin, number of) the pairs of neighbours, one of them just bound, between which no event may lie."""
        pairs = [(left, left + 1) for left in (position - 1, position) if {left, left + 1} <= bound]
        words = [word for left, right in pairs for letter in sorted(path.guards[right])
                 for word in (self._chain(letter, ()), left, right)]  # fmt: skip
        return [self._guards.add(words) // kept_events.GUARD, len(words) // kept_events.GUARD]

    def _between(self, path: Path, positions: range) -> list[int]:
        """(Begin, number of) the chains of the letters at some positions, whatever else is asked of their events."""
        return [self._letters.add(self._chain(path.letters[one], ()) for one in positions), len(positions)]

    # --- the tables -----------------------------------------------------------------------------------------

    def set_classes(self, classes: Sequence[int]) -> None:
        """Make the tables for event classes (letter masks)."""
        if self._made_for != len(self.columns.expressions):
            self._made_for, self.searches = len(self.columns.expressions), self._made()
        self.searches = self.searches._replace(
            ends=self._of_classes(classes, [path.letters[-1] for path in self.paths]),
            members=self._of_classes(classes, self._chain_letters),
            enters=self._of_classes(classes, self._entry_letters),
        )

    def _made(self) -> kept_events.Search:
        """The tables, without what they say of classes."""
        none = np.zeros(0, np.int64)
        rows, arcs, depths = self._parts
        address = self._values.address
        plain = iter(range(len(self._chains.rows)))
        chains = [word for begin, many, _ in self._chains.rows
                  for word in (begin, many, -1 if many else next(plain))]  # fmt: skip
        copies = self._copies.array()
        copies[::2] = self._placed(copies[::2])
        copies[1::2] = [address(number) for number in copies[1::2].tolist()]
        return kept_events.Search(
            paths=np.array(rows, np.int64).ravel(),
            arcs=np.array(arcs, np.int64),
            depths=np.array(depths, np.int64).ravel(),
            checks=np.array([word for one in self._checks for word in self._check(*one)], np.int64),
            copies=copies,
            guards=self._guards.array(),
            between=self._letters.array(),
            values=np.array([address(number) for number in self._frame.words], np.int64),
            columns=self._placed(self._columns.array()),
            chains=np.array(chains, np.int64),
            jumps=self._jumps.array(),
            entries=np.array([word for row in self._entries.rows for word in row[:4]], np.int64),
            bins=np.array([row[:3] for row in self._bins], np.int64).ravel(),
            steps=np.array([row[3:] for row in self._bins]).ravel(),
            ends=none,
            members=none,
            enters=none,
            **self._scores(),
        )

    def _placed(self, columns: Ints) -> Ints:
        """Columns by their numbers: bins come behind those of values, of which all are known by now."""
        return np.where(columns < 0, len(self.columns.expressions) - 1 - columns, columns)

    def _scores(self) -> dict[str, Any]:
        """The trees as the kernel evaluates them."""
        trees, none = self._trees, np.zeros(0, np.int64)
        if trees is None:
            return {"looks": none, "nodes": none, "leaves": np.zeros(0)}
        known = end_inputs(self.paths, self.columns)
        looks = [kept_events.OF_DAY, trees.day]
        for name in trees.inputs[1:]:
            look = [kept_events.OF_GAP, 0]
            if name != GAP:
                look = [self.columns.place(known[name]), int(self.columns.kind(known[name]) == "float")]
            looks += look
        following = dict(zip(trees.roots, [*trees.roots[1:], -1], strict=True))
        nodes = [[node.input, node.left, node.right, following.get(at, -1)] for at, node in enumerate(trees.nodes)]
        leaves = np.array([node.number for node in trees.nodes])
        return {"looks": np.array(looks), "nodes": np.array(nodes, np.int64).ravel(), "leaves": leaves}

    @staticmethod
    def _of_classes(classes: Sequence[int], letters: Sequence[int]) -> Ints:
        """Tell for each class, letter by letter, whether its events pass the letter."""
        return np.array([mask >> letter & 1 for mask in classes for letter in letters], np.int64)

    def _check(self, test: _Test, jump: int, blamed: int) -> list[int]:
        if test.kind == kept_events.BY_PROGRAM:
            return [test.kind, 0, 2 * test.program, 0, jump, blamed]
        assert test.left is not None
        assert test.right is not None
        left, right = (self._values.address(one.number) for one in (test.left, test.right))
        return [test.kind, test.flags, left, right, jump, blamed]

    def program(self) -> records.Program:
        """The programs of conditions that compute something."""
        code: list[int] = []
        heads: list[int] = []
        for program in self._programs:
            heads += [2 * len(self._programs) + len(code), len(program)]
            for op, target, a, number_a, b, number_b, flags in program:
                numbers = (self._number(a, number_a), self._number(b, number_b))
                code += [op, target, a, numbers[0], b, numbers[1], flags]
        shape = np.zeros(layout.SHAPE, np.int64)
        shape[layout.TEMPORARIES] = self._values.size
        return records.Program(np.array([*heads, *code], np.int64), shape, self.columns.texts.ranks, None)

    def _number(self, place: int, number: int) -> int:
        return self._values.address(number) if place == vm.SCALAR else number

    def frame(self) -> records.Pools:
        """Room for the values that conditions read, and for what they compute."""
        room = vm.BLOCK * (MAX_TEMPORARIES + 1) if self._programs else 0
        words = np.zeros(self._values.size + room, np.int64)
        words[1 : 1 + len(self._values.constants)] = self._values.constants
        none = np.zeros(0, np.int64)
        return records.Pools(none, words, words.view(np.float64), none, none)
