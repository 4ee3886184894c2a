"""What the runs engine is told about shedding: what runs are worth, how much may be done, and what it reports back."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from acep_approx.arrays import Bools, Floats, Ints, extended
from acep_approx.engines.runs.hidden import DOMINATED
from acep_approx.engines.runs.price_notes import PriceNotes
from acep_approx.engines.runs.programs import register_kind
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import WITHOUT_END, Allowance, FeatureKind, RunFeature, Worth
from acep_approx.errors import DataError
from acep_approx.events.keys import NO_KEY, KeyCodes
from acep_approx.kernels.runs import records
from acep_approx.kernels.runs import sample as kernel_sample
from acep_approx.kernels.runs import scores as kernel
from acep_approx.kernels.runs.pools import NEVER, seed_word
from acep_approx.ranges import HIGHEST, LOWEST, check, finite, number_in

if TYPE_CHECKING:
    from history.coverage.group_covers import GroupCovers

KINDS: dict[FeatureKind, int] = {
    "int": kernel.WHOLE,
    "float": kernel.REAL,
    "text": kernel.TABLE,
    "key": kernel.KEY,
    "pace": kernel.PACE,
    "context": kernel.CONTEXT,
    "ahead": kernel.AHEAD,
    "difference": kernel.LESS,
    "sum": kernel.PLUS,
}
KEPT = (*kernel.TOTALS, kernel.PRICE_NOW, kernel.UNTESTED, kernel.BROKEN, kernel.REFUSED, kernel.BEGUN)
"""Words of the arena that go on, beside the latest starts and the counts."""
LAYOUT = 4
"""Changes when runs inside a budget carry other columns, or the arena keeps other words."""
LOG_ROOM = 1 << 16
SAMPLE_ROOM = 1 << 18


EMPTY = (math.inf, -math.inf)
"""Bounds that no number is within."""


class OpenEnds(NamedTuple):
    """Events that can end a match, for which a search had no tests left. They can be searched until the next batch.

    ``number``: how many they are; ``each``: about how many tests one takes; ``search``: takes the places of some, and
    how many tests may be done; returns for the first of them whether a match ends there, and how many tests were done.
    ``gets_ready``: whether runs are followed beside, to take over soon.
    """

    number: int
    each: float
    search: Callable[[Ints, int], tuple[Bools, int]]
    gets_ready: bool


class Lost(NamedTuple):
    """What was lost at some events.

    ``rows``: of these in the stream. ``starts``, shape (events, 1 + 2 pools): the latest start of unknown runs, then of
    those of each pool that were lost before the tests of the event, then of those lost behind them. ``bounds``, shape
    (events, 2, pools, registers, 2): the least and the greatest number in the registers of the latter.
    """

    rows: Ints
    starts: Ints
    bounds: Floats


def type_too_late(what: str) -> DataError:
    """The error for a column that changes its type after something was made of its values."""
    return DataError(
        f"a column got another type after the first events, and {what} depends on it",
        code="ACEP-D024",
        hint="say the types from the start: write the events as Parquet, or let the first ones have a value",
    )


class Whole:
    """A word of the arena, as an attribute of ``Shedding``."""

    def __init__(self, word: int) -> None:
        self._word = word

    def __get__(self, shedding: Shedding, _: type) -> int:
        return int(shedding.words[self._word])

    def __set__(self, shedding: Shedding, value: int) -> None:
        shedding.words[self._word] = value


class Real:
    """A word of the arena that is a floating point number, as an attribute of ``Shedding``."""

    def __init__(self, word: int) -> None:
        self._word = word

    def __get__(self, shedding: Shedding, _: type) -> float:
        return float(shedding.floats[self._word])

    def __set__(self, shedding: Shedding, value: float) -> None:
        shedding.floats[self._word] = value


class Shedding:
    """The arrays that the kernel sheds with.

    Parameters
    ----------
    worth : Worth or None
        None: all runs are worth the same.
    allowance : Allowance
    logs_births, logs_shed : bool
        Whether births, or runs that are shed, are logged; ``take_log`` gives what was logged.
    ranks_dominated : bool, optional
        Whether runs that can do no more than another are the first to go. Default: where any may go.

    Attributes
    ----------
    keys_now : callable
        Gives the keys of all slots so far, where features ask for them.
    granted : float
        Run-steps allowed so far.
    rate : float
        Run-steps granted for an event: those of the allowance, unless events come as pairs.
    tokens, audit_tokens, pass_tokens : float
        Run-steps of these that are left: for tests, for tests of runs that would have been shed, for passes over pools.
    birth_tokens : float
        Run-steps that are left for births that are run-steps.
    adapts : float
        How much of the way the price goes per event.
    on_passes : float
        Run-steps that passes over pools took.
    price : float
        Least score of a run that is kept, at the last event.
    factor : float
        By how much the price has risen, or fallen, because work was not what it was expected to be.
    untested : int
        Tests that were left out because the budget did not cover them.
    broken : int
        Protected runs that the bound left no room for.
    lost_at : int
        The tick at which a run was shed last.
    stamp : int
        Of the features by which groups are told apart.
    notes : PriceNotes
        At which price events were run.
    sees_all : bool
        Whether pairs of events and queries are granted for one by one, also those that meet no run and begin none.
    notes_lost : bool
        Whether it is noted at which events runs are lost, and which.
    open_ends : OpenEnds or None
        What the search of the last batch left open; None: its ends were not searched.
    weights : float64 array
        What a match point counts for, per key; the last one is that of all further keys.
    """

    granted, on_passes, rate = Real(kernel.GRANTED), Real(kernel.PASSES), Real(kernel.RATE)
    tokens, audit_tokens, pass_tokens = Real(kernel.TOKENS), Real(kernel.AUDIT_TOKENS), Real(kernel.PASS_TOKENS)
    price, factor = Real(kernel.PRICE_NOW), Real(kernel.FACTOR)
    birth_tokens, adapts = Real(kernel.BIRTH_TOKENS), Real(kernel.ADAPTS)
    untested, broken, stamp = Whole(kernel.UNTESTED), Whole(kernel.BROKEN), Whole(kernel.STAMP)
    lost_at = Whole(kernel.REFUSED)
    _sampled_words, _sample_share = Whole(kernel.SAMPLED), Whole(kernel.SAMPLE)
    _audit_share = Real(kernel.AUDIT_SHARE)

    def __init__(
        self,
        worth: Worth | None,
        allowance: Allowance,
        *,
        logs_births: bool = False,
        logs_shed: bool = False,
        ranks_dominated: bool | None = None,
    ) -> None:
        self.worth = worth
        self.earlier: list[Worth | None] = []  # what runs were worth before they were scored anew, for the log
        self.allowance = allowance
        self.ranks_dominated = ranks_dominated
        if ranks_dominated is None:
            self.ranks_dominated = allowance.price > 0 or allowance.runs >= 0
        self.logs = kernel.LOG_BIRTHS * logs_births | kernel.LOG_SHED * logs_shed
        self.keys_now: Callable[[], KeyCodes] = KeyCodes
        self.words = np.zeros(kernel.SHED_HEADER, np.int64)
        self.lookup = np.zeros(1, np.int64)
        self.log = np.zeros(LOG_ROOM if self.logs else 1, np.int64)
        self.sample = np.zeros(1, np.int64)
        self.stands_for = np.ones(1)
        self.notes = PriceNotes()
        self.notes_lost = self.sees_all = False
        self.lost, self._lost_bounds = np.zeros(0, np.int64), np.zeros(0)
        self._lost_rows = self.lost
        self._lost_before: list[Lost] = []
        self.open_ends: OpenEnds | None = None
        self.weights = np.ones(1)
        self.entry = kernel.LOG
        self._sampled: list[Ints] = []
        self._logged: list[Ints] = []
        self.tables: RunTables
        self._tables: list[tuple[int, RunFeature]] = []  # features with a table, and where their words are
        self._groups: list[Ints] = []  # by feature with a table: of each text by code, or of each key by slot
        self._known, self._keys_known = (-1, -1), np.zeros(0, np.int64)

    # --- setting up -----------------------------------------------------------------------------------------

    def bind(self, tables: RunTables) -> None:
        """Get ready for the pools of a query."""
        self.tables = tables
        self._lay_out(tables)

    def _lay_out(self, tables: RunTables) -> None:
        """Lay the arena out for what runs are worth now."""
        self._tables = []
        self._event_at = 1 + len(tables.guard_letters)
        columns, registers = len(tables.scalars.columns.expressions), self._registers
        self.entry = kernel.LOG + registers + columns
        worth = self.worth or _alike(len(tables.pools))
        groups = [math.prod(feature.buckets for feature in features) for features in worth.features]
        parts, trees = self._parts(worth, groups), self._trees(worth)
        edges = [np.array(f.edges, np.float64).view(np.int64) for some in worth.features for f in some]
        starts = kernel.SHED_HEADER + np.cumsum([0, *(part.size for part in parts.values())])
        self.words = np.concatenate([np.zeros(kernel.SHED_HEADER, np.int64), *parts.values(), *edges, trees])
        if trees.size:
            self.words[kernel.TREES] = self.words.size - trees.size
        self.words[list(parts)] = starts[:-1]
        self._write_places(worth, groups, int(starts[-1]))
        self.forget_texts()
        self.words[[kernel.EVENT_WORDS, kernel.EVENT_AT]] = columns, self._event_at
        self.words[[kernel.SAMPLE_REGISTERS, kernel.POOLS_NOTED]] = registers, len(tables.pools)
        self.words[kernel.PAIRS] = tables.options.charges_births and not self.sees_all
        self.words[kernel.SAMPLE_ENTRY] = kernel_sample.SAMPLE_WORDS + 2 * registers + columns
        self._write_worth(worth)
        self.allow(self.allowance)

    def _parts(self, worth: Worth, groups: Sequence[int]) -> dict[int, Ints]:
        """The parts of the arena behind its header, by the words of this that say where they begin."""
        pools, by_group = len(self.tables.pools), worth.by_group or _no_covers(sum(groups))
        no_words = np.zeros(0, np.int64)
        return {
            kernel.PLACES: np.zeros(kernel.PLACE * (pools + 1), np.int64),
            kernel.GAINS: worth.gain.view(np.int64),
            kernel.COSTS: worth.cost.view(np.int64),
            kernel.OVERLAPS: worth.overlap.view(np.int64),
            kernel.NEWEST: np.full(pools, NEVER),
            kernel.COVERS: np.concatenate(([0], np.cumsum([len(some) for some in worth.covers]))),
            kernel.COVERING: np.array([c for some in worth.covers for c in some], np.int64),
            kernel.LATEST: np.full(sum(groups), NEVER),
            kernel.COVERS_OF_GROUP: by_group.first,
            kernel.COVERED_BY: by_group.cover,
            kernel.SHARE_COVERED: by_group.share.view(np.int64),
            kernel.MORE_COVERED: by_group.more.view(np.int64),
            kernel.COUNTS: np.zeros(pools * kernel.REASONS, np.int64),
            kernel.HISTOGRAM: np.zeros(kernel.BINS, np.int64),
            kernel.SAMPLE_SHARES: np.zeros(pools, np.int64),
            kernel.LOOKS: np.zeros(pools * kernel.LOOK_WORDS, np.int64),
            kernel.LOST_KINDS: self.kinds_of_registers.ravel(),
            kernel.JOINS: no_words if worth.joins is None else worth.joins.ravel(),
            kernel.AGREED: no_words if worth.joins is None else np.full(pools * kernel.AGREED_ROOM, NEVER),
        }

    @property
    def _registers(self) -> int:
        """The most registers of a pool."""
        return max(pool.alike for pool in self.tables.pools) - 1

    @property
    def kinds_of_registers(self) -> Ints:
        """Of each register of each pool whether it holds whole numbers (1), others (2), or none (0)."""
        columns, automaton = self.tables.scalars.columns, self.tables.automaton
        found = np.zeros((len(self.tables.pools), self._registers), np.int64)
        for number, pool in enumerate(self.tables.pools):
            for place, register in enumerate(automaton.live[pool.state]):
                found[number, place] = {"int": 1, "float": 2}.get(register_kind(register, columns), 0)
        return found

    def _write_worth(self, worth: Worth) -> None:
        """What the header says of what runs are worth."""
        words, floats = self.words, self.floats
        words[kernel.STAMP] = 1 + (zlib.crc32(repr(worth.features).encode()) >> 2)
        words[[kernel.BY_GROUP, kernel.UNKNOWN]] = worth.by_group is not None
        words[[kernel.REMAINING, kernel.SINCE]] = worth.remaining, len(worth.since) + 1
        words[kernel.EDGE : kernel.EDGE + len(worth.since)] = worth.since
        words[[kernel.ADMITTED, kernel.REFUSED, kernel.BEGUN]] = NEVER
        words[[kernel.COIN, kernel.LOGS, kernel.ENTRY]] = worth.coin_per_run, self.logs, self.entry
        words[[kernel.WORTH, kernel.FLAG]] = len(self.earlier), self.tables.hidden.behind(DOMINATED)
        if worth.joins is None:
            words[kernel.JOINS] = 0
        floats[kernel.SPREAD] = worth.spread
        floats[kernel.MOST_PRICE] = (worth.gain / worth.cost).max(initial=0.0) * self.weights.max()
        floats[kernel.DOMINATED_SHARE] = 0.0 if self.tables.drops else worth.dominated
        floats[kernel.FACTOR], floats[kernel.ADAPTS] = 1.0, kernel.ADAPT

    def _trees(self, worth: Worth) -> Ints:
        """The trees of the context as the kernel evaluates them, none if no feature asks for them."""
        asks = [feature for some in worth.features for feature in some if feature.trees is not None]
        if not asks:
            return np.zeros(0, np.int64)
        trees, events = asks[0].trees, self.tables.scalars.columns
        assert trees is not None
        columns = [2 * events.place(of) + (events.kind(of) == "float") for of in asks[0].inputs]
        inputs = np.array([kernel.OF_TICK, kernel.OF_PACE, *(kernel.OF_COLUMNS + column for column in columns)])
        nodes = np.array([[node.input, 0, node.left, node.right] for node in trees.nodes], np.int64)
        nodes[:, 0] = np.where(nodes[:, 0] >= 0, inputs[nodes[:, 0]], nodes[:, 0])
        nodes[:, 1] = np.array([node.number for node in trees.nodes], np.float64).view(np.int64)
        return np.concatenate(([len(trees.roots), trees.day], trees.roots, nodes.ravel()))

    def _write_places(self, worth: Worth, groups: Sequence[int], edges_at: int) -> None:
        first_group = 0
        for pool, features in enumerate(worth.features):
            at = int(self.words[kernel.PLACES]) + pool * kernel.PLACE
            self.words[at : at + kernel.PLACE_WORDS] = first_group, len(features)
            for number, feature in enumerate(features):
                word = at + kernel.PLACE_WORDS + number * kernel.FEATURE_WORDS
                kind, column = KINDS[feature.kind], max(feature.column, 0)
                if kind >= kernel.AHEAD:
                    kind, other = self._held_against(kind, feature, self.tables.pools[pool].state)
                    column += other << 16
                self.words[word : word + 5] = kind, column, feature.buckets, edges_at, len(feature.edges)
                edges_at += len(feature.edges)
                if feature.kind in ("text", "key"):
                    self._tables.append((word, feature))
            first_group += groups[pool]
        self.words[int(self.words[kernel.PLACES]) + len(worth.features) * kernel.PLACE] = first_group

    def _held_against(self, kind: int, feature: RunFeature, state: int) -> tuple[int, int]:
        """The kind of a feature that comes of two numbers, and where the second one stands."""
        events, live = self.tables.scalars.columns, self.tables.automaton.live[state]
        first = register_kind(live[feature.column], events)
        if feature.of is not None:
            second, other = events.kind(feature.of), self._event_at + events.place(feature.of)
        else:
            second, other = register_kind(live[feature.other], events), feature.other
        return kind + kernel.FIRST_REAL * (first == "float") + kernel.SECOND_REAL * (second == "float"), other

    @property
    def floats(self) -> Floats:
        """The arena as floating point numbers."""
        return self.words.view(np.float64)

    def record(self, events: int, pace: Floats) -> records.Arena:
        """The arrays that the kernel takes for so many events; ``pace`` has that of each key."""
        if self.stands_for.size < events:
            self.stands_for = np.ones(events)
        self.words[kernel.AGAIN] = self.notes.again is not None
        arrays = self.lookup, self.stands_for, self.log, self.sample, pace, self.notes.room_for(events)
        return records.Arena(self.words, self.floats, *arrays, self.weights, self.lost, self._lost_bounds)

    # --- while it runs --------------------------------------------------------------------------------------

    def allow(self, allowance: Allowance) -> None:
        """Change how much may be done from here on; what is left of before stays."""
        self.allowance = allowance
        floats = self.floats
        floats[kernel.RATE], floats[kernel.MOST_TOKENS] = allowance.rate, allowance.most
        floats[kernel.PRICE], floats[kernel.AUDIT_SHARE] = allowance.price, allowance.audit_share
        floats[kernel.RESERVE], floats[kernel.RESERVE_SHARE] = allowance.reserve, allowance.reserve_share
        floats[kernel.ELASTICITY], floats[kernel.KEEPS_ALL] = allowance.elasticity, allowance.keeps_all
        self.words[kernel.MOST_RUNS] = allowance.runs
        self.words[[kernel.AUDIT, kernel.EPOCH]] = int(allowance.audit * 2**31), allowance.epoch
        self.words[kernel.SEED] = seed_word(allowance.seed)

    def grant(self, steps: float) -> None:
        """Allow so many more run-steps at once."""
        self.tokens = min(self.tokens + self._on_tests * steps, self.allowance.most)
        self.audit_tokens += self._audit_share * steps
        self.pass_tokens += kernel.ON_PASSES * steps
        self.granted += steps

    def hand_over(self, steps: float) -> None:
        """Give so many run-steps for tests that are left to another engine; below 0: take them from one."""
        self.tokens -= steps
        self.granted -= steps

    def weigh_keys(self, weights: Floats) -> None:
        """From here on a match point counts for the weight of its key; the last one is that of all further keys."""
        highest = weights.max() / self.weights.max()
        self.weights = weights
        self.floats[kernel.MOST_PRICE] *= highest

    def take_back(self) -> None:
        """What is left of earlier grants may no longer be spent: by tests, by passes, or by the audit."""
        left = self.tokens + self.pass_tokens + self.audit_tokens
        if left > 0:
            self.granted -= left
            self.tokens = self.pass_tokens = self.audit_tokens = 0.0

    @contextmanager
    def unpaid(self) -> Iterator[None]:
        """What is run meanwhile was paid for before: the budget does not hold it back, and is as it was afterwards."""
        arena, agreed = self._arena(), self._agreed.copy()
        self.tokens = self.pass_tokens = WITHOUT_END
        yield
        self._restore_arena(arena)
        self._agreed[:] = agreed

    @property
    def _on_tests(self) -> float:
        """Share of what is granted that is for tests."""
        return 1 - kernel.ON_PASSES - self._audit_share

    @property
    def unused(self) -> float:
        """Run-steps of earlier grants that were not spent, as far as they were for tests."""
        return self.left / self._on_tests

    @property
    def has_tables(self) -> bool:
        """Whether texts or keys say which group a run is in."""
        return bool(self._tables)

    def refresh(self, texts: Sequence[str]) -> None:
        """Bring the tables of texts and keys up to date; ``texts`` by code. Only what has come since is looked up."""
        slots = self.keys_now()
        if self._known == (len(texts), slots.added):
            return
        keys = slots.identities()
        since, before = max(self._known[0], 0), extended(self._keys_known, len(keys), NO_KEY)
        new = np.flatnonzero((keys != before) & (keys != NO_KEY))
        names = slots.texts_at(new)
        self._known, self._keys_known = (len(texts), slots.added), keys
        at = 0
        for number, (word, feature) in enumerate(self._tables):
            is_key = feature.kind == "key"
            groups = extended(self._groups[number], len(keys) if is_key else len(texts), feature.buckets - 1)
            groups[new if is_key else slice(since, None)] = [
                feature.groups.get(value, feature.buckets - 1) for value in (names if is_key else texts[since:])
            ]
            self._groups[number] = groups
            self.words[word + 3 : word + 5] = at, len(groups)
            at += len(groups)
        self.lookup = np.concatenate([*self._groups, np.zeros(1, np.int64)])

    def forget_texts(self) -> None:
        """Codes of texts, or slots of keys, have changed."""
        self._known, self._keys_known = (-1, -1), np.zeros(0, np.int64)
        self._groups = [np.zeros(0, np.int64) for _ in self._tables]

    def empty_log(self, used: int, asked: int) -> None:
        """Put the first ``used`` words of the log aside and make room for ``asked``."""
        self._logged.append(self.log[:used].copy())
        if asked > self.log.size:
            self.log = np.zeros(2 * asked, np.int64)

    def take_log(self, used: int) -> Ints:
        """What was logged since the last call: shape (entries, words); see ``kernels.runs.scores.LOG``."""
        return np.concatenate(self.take_logs(used))

    def take_logs(self, used: int) -> list[Ints]:
        """The same in parts, as they were put aside: a long log is large. The last one is good until more is logged."""
        parts = [*self._logged, self.log[:used]]
        self._logged = []
        return [part.reshape(-1, self.entry) for part in parts]

    def rescore(self, worth: Worth) -> None:
        """From here on runs are worth something else, and may be told apart by other vertices."""
        assert not self._sampled_words, "take the sample first"
        if self.logs:
            self.earlier.append(self.worth)
        self.worth = worth
        self.notes.rescored(worth)
        self._lay_out_again(self.tables)
        self._looks[:] = 0  # others may go now

    @contextmanager
    def once_more(self, version: int) -> Iterator[None]:
        """Meanwhile events are run once more: runs are worth what they were in this version, and no test is sampled."""
        worth, share, is_other = self.worth, self._sample_share, version != self.notes.version
        self._sample_share = 0
        if is_other:
            self._be_worth(self.notes.worths[version])
        yield
        if is_other:
            self._be_worth(worth)
        self._sample_share = share

    def _be_worth(self, worth: Worth | None) -> None:
        self.empty_sample(0)  # the words that count it go
        self.worth = worth
        self._lay_out_again(self.tables)

    def rebind(self, tables: RunTables) -> None:
        """Go on with the same pools, whose columns have got wider types.

        Raises
        ------
        DataError
            ``ACEP-D024``: what was written down of runs depends on the types.
        """
        if self.logs:
            raise type_too_late("what is written down of runs")
        self.tables = tables
        self._lay_out_again(tables)

    def _lay_out_again(self, tables: RunTables) -> None:
        """Lay the arena out anew, and keep what was counted."""
        arena, births, share, shares = self._arena(), self.birth_tokens, self._sample_share, self._shares.copy()
        self._lay_out(tables)
        self._restore_arena(arena)
        self.birth_tokens = births
        self._sample_share, self._shares[:] = share, shares

    @property
    def groups(self) -> list[int]:
        """How many groups of runs each pool has."""
        at = int(self.words[kernel.PLACES])
        ends = self.words[at : at + kernel.PLACE * (len(self.tables.pools) + 1) : kernel.PLACE]
        return [int(size) for size in np.diff(ends)]

    @property
    def _newest(self) -> Ints:
        return self._part(kernel.NEWEST, kernel.COVERS)

    @property
    def _agreed(self) -> Ints:
        at, joined = int(self.words[kernel.AGREED]), self.words[kernel.JOINS] > 0
        return self.words[at : at + len(self.tables.pools) * kernel.AGREED_ROOM * bool(joined)]

    @property
    def _latest(self) -> Ints:
        return self._part(kernel.LATEST, kernel.COVERS_OF_GROUP)

    @property
    def _shares(self) -> Ints:
        at = int(self.words[kernel.SAMPLE_SHARES])
        return self.words[at : at + len(self.tables.pools)]

    @property
    def _looks(self) -> Ints:
        at = int(self.words[kernel.LOOKS])
        return self.words[at : at + kernel.LOOK_WORDS * len(self.tables.pools)]

    def _part(self, word: int, next_word: int) -> Ints:
        """A part of the arena, with the word of the part behind it."""
        return self.words[int(self.words[word]) : int(self.words[next_word])]

    def sample_tests(self, share: float, passed: Floats) -> None:
        """Write down tests from here on.

        Parameters
        ----------
        share : float
            Of the events; 0: none at all.
        passed : float64 array, shape (pools,)
            Of the events, for passed tests that bring a run to each pool; not below ``share``.
        """
        self._sample_share = min(round(share * 2**31), 2**31)
        self._shares[:] = np.minimum(np.round(passed * 2**31), 2**31)
        if share > 0 and self.sample.size == 1:
            self.sample = np.zeros(SAMPLE_ROOM, np.int64)

    def empty_sample(self, asked: int) -> None:
        """Put what was written down of tests aside and make room for ``asked`` words."""
        self._sampled.append(self.sample[: self._sampled_words].copy())
        self._sampled_words = 0
        if asked > self.sample.size:
            self.sample = np.zeros(2 * asked, np.int64)

    def take_sample(self) -> Ints:
        """Tests written down since the last call: shape (entries, words); see ``kernels.runs.sample.SAMPLE_WORDS``."""
        self.empty_sample(0)
        parts, self._sampled = self._sampled, []
        return np.concatenate(parts).reshape(-1, int(self.words[kernel.SAMPLE_ENTRY]))

    def trust_price(self) -> None:
        """Take the price of the allowance as right as it is, whatever work has shown of the one before."""
        self.factor = 1.0

    def wait(self) -> None:
        """Shed nothing for its price until less is left than should be."""
        self.factor = kernel.WAITS

    def begin_piece(self, rows: Ints) -> None:
        """The engine gets these rows of the stream next: where it is asked for, what is lost at each is noted."""
        if not self.notes_lost:
            return
        pools, registers, events = len(self.tables.pools), self._registers, len(self._lost_rows)
        starts = self.lost.reshape(events, 1 + 2 * pools)
        bounds = self._lost_bounds.reshape(events, 2, pools, registers, 2)
        at = np.flatnonzero((starts > NEVER).any(axis=1))
        if len(at):
            self._lost_before.append(Lost(self._lost_rows[at], starts[at], bounds[at]))
        self._lost_rows, self.lost = rows, np.full(len(rows) * (1 + 2 * pools), NEVER)
        self._lost_bounds = np.tile(EMPTY, len(rows) * 2 * pools * registers)

    def take_lost(self) -> Lost:
        """What was lost since the last call."""
        pools, registers = len(self.tables.pools), self._registers
        self.begin_piece(self._lost_rows[:0])
        found, self._lost_before = self._lost_before, []
        none = np.zeros(0, np.int64)
        empty = Lost(none, none.reshape(0, 1 + 2 * pools), np.zeros((0, 2, pools, registers, 2)))
        return Lost(*(np.concatenate(parts) for parts in zip(empty, *found, strict=True)))

    # --- what came of it ------------------------------------------------------------------------------------

    @property
    def counts(self) -> Ints:
        """Runs shed, shape (pools, reasons); see ``REASONS``."""
        return self._part(kernel.COUNTS, kernel.HISTOGRAM).reshape(-1, kernel.REASONS)

    @property
    def left(self) -> float:
        """Run-steps that may still be spent on tests."""
        return max(self.tokens + min(self.audit_tokens, 0.0), 0.0)

    @property
    def usual_price(self) -> float:
        """The price where as much is left as should be: that of an event follows what is left there."""
        return self.allowance.price * self.followed

    @property
    def followed(self) -> float:
        """What the price of the allowance has been multiplied by, as the work has shown."""
        return 1.0 if self.factor == kernel.WAITS else self.factor

    @property
    def held_back(self) -> float:
        """Run-steps that should be left: below that the price rises."""
        return max(self.allowance.reserve, self.allowance.reserve_share * self.granted, 1e-9)

    @property
    def spare(self) -> float:
        """Run-steps that are left, as a multiple of those that should be."""
        return self.left / self.held_back

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        latest = [] if self.words[kernel.UNKNOWN] else self._latest.tolist()
        known = np.flatnonzero(self._agreed > NEVER)
        agreed = [known.tolist(), self._agreed[known].tolist()]
        saved = {"layout": LAYOUT, "arena": self._arena(), "latest": latest, "births": self.birth_tokens}
        return saved | {"agreed": agreed}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave, after ``bind``: with other worths or another allowance, as may be."""
        latest = saved.get("latest", [])  # states of before have none: it is looked for
        check("arena", good=len(saved["arena"]) == len(self._arena()))
        for number in (*saved["arena"], *latest):
            number_in("arena", number, LOWEST, HIGHEST + 1)
        self._restore_arena(saved["arena"])
        self.birth_tokens = saved.get("births", 0.0)  # states of before have none
        finite("births", self.birth_tokens)
        floats = self.words[list(KEPT[: KEPT.index(kernel.UNTESTED)])].view(np.float64)
        check("arena", good=np.isfinite(floats).all() and (self.counts >= 0).all() and (self._looks >= 0).all())
        if len(latest) == len(self._latest):
            self._latest[:] = latest
            self.words[kernel.UNKNOWN] = 0
        at, starts = saved.get("agreed", ([], []))
        if self.words[kernel.JOINS]:  # of a history that may have come since: others are looked for
            check("agreed", good=len(at) == len(starts) and min(at, default=0) >= 0)
            check("agreed", good=max(at, default=0) < len(self._agreed))
            self._agreed[at] = [number_in("agreed", start, LOWEST, HIGHEST + 1) for start in starts]

    def _arena(self) -> list[int]:
        parts = self.words[list(KEPT)], self._newest, self._looks, self.counts.ravel()
        return [word for part in parts for word in part.tolist()]

    def _restore_arena(self, arena: list[int]) -> None:
        first, pools = len(KEPT), len(self.tables.pools)
        self.words[list(KEPT)] = arena[:first]
        last = first + pools + len(self._looks)
        self._newest[:], self._looks[:] = arena[first : first + pools], arena[first + pools : last]
        self.counts[:] = np.array(arena[last:]).reshape(self.counts.shape)


def _no_covers(groups: int) -> GroupCovers:
    from history.coverage.group_covers import GroupCovers

    return GroupCovers(np.zeros(groups + 1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def _alike(pools: int) -> Worth:
    """All runs are worth the same."""
    ones = np.ones(pools)
    return Worth([()] * pools, 1, (), ones, ones.copy(), np.zeros(pools), [()] * pools, spread=1e-3)
