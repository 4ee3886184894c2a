"""Random transactions, interleaved as badly as possible, and schedulers that are known to be wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from acep_approx.rules import Item, LowWaterMark, Operation, SingleEvent, Stamp, Steps, Transaction, TwoPhase
from acep_approx.rules.schedules.scheduler import Scheduler
from acep_approx.rules.schedules.transactions import Unit, Values, by_row, by_table

Made = Callable[..., Scheduler]
ITEMS = (Item("status", "ann"), Item("status", "bob"), Item("room"))


@dataclass(frozen=True)
class World:
    """Some transactions in the order of arrival, what the store holds, and the punctuations.

    ``marks[n]`` is said right before transaction ``n`` arrives, the last one at the end; none where events come in
    order, which is then that of time.
    """

    transactions: tuple[Transaction, ...]
    rows: Values
    marks: tuple[int, ...] = ()

    @property
    def in_order(self) -> tuple[Transaction, ...]:
        """In the order of the stream."""
        return tuple(sorted(self.transactions, key=lambda one: one.stamp))


def _deciding(dice: random.Random, writes: Sequence[Item]) -> Callable[[Values], Values]:
    """A function of what was seen: for each item a new value by the sum of all, or none."""
    tables = {item: [dice.choice([None, 0, 1, 2, 3]) for _ in range(4)] for item in writes}

    def decide(seen: Values) -> Values:
        total = sum(value for value in seen.values() if isinstance(value, int)) % 4
        return {item: table[total] for item, table in tables.items() if table[total] is not None}

    return decide


def world(seed: int, *, late: bool = False) -> World:
    """Two to six transactions on at most three items; times are often equal.

    ``late``: they arrive out of order, and punctuations are as far as they can be, or behind.
    """
    dice = random.Random(seed)
    items = ITEMS[: dice.randint(1, 3)]
    times = sorted(dice.randint(0, 4) for _ in range(dice.randint(2, 6)))
    if late:
        dice.shuffle(times)
    transactions = []
    for arrival, ts in enumerate(times):
        reads = tuple(item for item in items if dice.random() < 0.6)
        writes = tuple(item for item in items if dice.random() < 0.5)
        transactions.append(Transaction(Stamp(ts, arrival), reads, writes, _deciding(dice, writes)))
    marks: tuple[int, ...] = ()
    if late:
        # what may be said before each arrival: the least time that is still to come
        marks = tuple(min([9, *times[at:]]) - (dice.random() < 0.3) for at in range(len(times) + 1))
    rows = {item: dice.randint(0, 3) for item in items if dice.random() < 0.7}
    return World(tuple(transactions), rows, marks)


@dataclass
class Ran:
    """What came of a schedule."""

    history: list[Operation] = field(default_factory=list)
    final: Values = field(default_factory=dict)
    versions: int = 0
    stuck: tuple[Stamp, ...] = ()

    @property
    def reads(self) -> dict[tuple[Stamp, Item], object]:
        """Each value that was read."""
        return {(one.stamp, one.item): one.value for one in self.history if one.kind == "read"}


def interleaved(given: World, way: Way, dice: random.Random) -> Ran:
    """Run a world in random order: at each step an event arrives, or a transaction does something that is granted.

    With luck of the draw the last to arrive comes first, or the first, or writers, or any: what goes wrong mostly does
    so where events overtake one another by far.
    """
    scheduler = way.made(given.rows, lock=way.lock, in_order=not given.marks)
    ran, coming, open_steps = Ran(), list(given.transactions), list[Steps]()
    haste, taste = dice.random(), dice.choice(["young", "old", "writers", "any"])
    marks = list(given.marks)
    while coming or open_steps or marks:
        able = [(steps, item) for steps in open_steps for item in steps.granted()]
        done = [steps for steps in open_steps if steps.is_done]
        if (coming or marks) and (dice.random() < haste or not (able or done)):
            if marks:
                scheduler.punctuate(marks.pop(0))
            if coming:
                scheduler.begin(coming[0])
                open_steps.append(Steps(coming.pop(0), scheduler, ran.history))
        elif done and (not able or dice.random() < 0.5):
            steps = dice.choice(done)
            scheduler.finish(steps.transaction)
            open_steps.remove(steps)
        elif able:
            steps, item = _chosen(able, taste, dice)
            steps.do(item)
        else:
            ran.stuck = tuple(steps.transaction.stamp for steps in open_steps)
            return ran
    ran.final, ran.versions = scheduler.final(), scheduler.held().versions
    assert scheduler.held()[1:] == (0, 0)
    return ran


def _chosen(able: Sequence[tuple[Steps, Item]], taste: str, dice: random.Random) -> tuple[Steps, Item]:
    if taste == "any" or dice.random() < 0.3:
        return dice.choice(able)
    if taste == "writers":
        return dice.choice([one for one in able if not one[0].reads] or able)
    stamps = [steps.transaction.stamp for steps, _ in able]
    wanted = max(stamps) if taste == "young" else min(stamps)
    return dice.choice([one for one in able if one[0].transaction.stamp == wanted])


def every_schedule(given: World, way: Way) -> Iterator[Ran]:
    """All orders in which a world in order can be run, where all events arrive first: by trying each choice again."""
    choices: list[tuple[int, int]] = []
    while True:
        scheduler = way.made(given.rows, lock=way.lock)
        ran = Ran()
        for transaction in given.transactions:
            scheduler.begin(transaction)
        open_steps = [Steps(transaction, scheduler, ran.history) for transaction in given.transactions]
        depth = 0
        while open_steps:
            able: list[tuple[Steps, Item | None]] = [(s, item) for s in open_steps for item in s.granted()]
            able += [(steps, None) for steps in open_steps if steps.is_done]
            if not able:
                ran.stuck = tuple(steps.transaction.stamp for steps in open_steps)
                break
            if depth == len(choices):
                choices.append((0, len(able)))
            steps, item = able[choices[depth][0]]
            depth += 1
            if item is None:
                scheduler.finish(steps.transaction)
                open_steps.remove(steps)
            else:
                steps.do(item)
        ran.final = scheduler.final()
        yield ran
        while choices and choices[-1][0] + 1 == choices[-1][1]:
            choices.pop()
        if not choices:
            return
        choices[-1] = (choices[-1][0] + 1, choices[-1][1])


# --- schedulers that are wrong ----------------------------------------------------------------------------------------


class PushBased(SingleEvent):
    """Whoever comes to an operation does it: streams as they are without schedulers (section 2)."""

    def may_start(self, transaction: Transaction) -> bool:
        return True


class PrintedMark(LowWaterMark):
    """Algorithm 2 as printed: stamps are times, so a read at the low-water mark may be of another transaction."""

    def may_read(self, transaction: Transaction, item: Item) -> bool:
        mark = self.low_water_mark(item)
        return mark is None or transaction.stamp.ts <= mark.ts


class PrintedMarkOfWrites(LowWaterMark):
    """The same of line 11: of two writers at one time each may go first."""

    def may_write(self, transaction: Transaction, item: Item) -> bool:
        mark = self.low_water_mark(item)
        return mark is not None and transaction.stamp.ts == mark.ts


class NoMark(LowWaterMark):
    """Versions alone: a read takes what is there."""

    def may_read(self, transaction: Transaction, item: Item) -> bool:
        return True


class Jumping(LowWaterMark):
    """A write does not wait for writes before it."""

    def may_write(self, transaction: Transaction, item: Item) -> bool:
        return True


class Newest(LowWaterMark):
    """A read takes the last version, whoever wrote it."""

    def _value(self, item: Item, stamp: Stamp) -> object:
        return self.store.final().get(item)


class OwnVersion(LowWaterMark):
    """A read takes what was written up to its time: of the same time, too, by whom it may."""

    def _value(self, item: Item, stamp: Stamp) -> object:
        return self.store.read(item, Stamp(stamp.ts + 1, -1))


class Forgetful(LowWaterMark):
    """Versions go although somebody may still read them: only transactions to come are thought of."""

    def _collect(self) -> None:
        self.store.collect(Stamp(self.known, self._last.arrival + 1))


class Impatient(LowWaterMark):
    """Punctuations are not waited for: locks of late events are not there yet."""

    def punctuate(self, ts: int) -> None:
        self.known = 2**62

    def begin(self, transaction: Transaction) -> None:
        self.known = -(2**62)
        super().begin(transaction)
        self.known = 2**62


class FreeReads(TwoPhase):
    """One version, and writes do not wait for readers: LWM without versions."""

    may_write = LowWaterMark.may_write


class Unsorted(TwoPhase):
    """Locks in the order of arrival: what S2PL does if nothing sorts its input."""

    def _came(self, transaction: Transaction) -> None:
        self.known = 2**62
        self._admit(transaction)

    def begin(self, transaction: Transaction) -> None:
        self.known = -(2**62)
        super().begin(transaction)


@dataclass(frozen=True)
class Way:
    """A scheduler and its locks."""

    made: Made
    lock: Callable[[Item], Unit]

    @property
    def has_versions(self) -> bool:
        """Whether a read may be done behind a later write."""
        return isinstance(self.made({}, lock=self.lock), LowWaterMark)


def whole(rows: Values, *, lock: Callable[[Item], Unit], in_order: bool = True) -> TwoPhase:
    """S2PL where a transaction starts with all its locks."""
    return TwoPhase(rows, lock=lock, in_order=in_order, whole=True)


def hoarding(rows: Values, *, lock: Callable[[Item], Unit], in_order: bool = True) -> LowWaterMark:
    """LWM as in the paper: nothing collects versions."""
    return LowWaterMark(rows, lock=lock, in_order=in_order, keeps_all=True)


RIGHT: dict[str, Way] = {
    "SEI": Way(SingleEvent, by_row),
    "S2PL, rows": Way(TwoPhase, by_row),
    "S2PL, tables": Way(TwoPhase, by_table),
    "S2PL, rows, all locks first": Way(whole, by_row),
    "LWM, rows": Way(LowWaterMark, by_row),
    "LWM, tables": Way(LowWaterMark, by_table),
    "LWM, rows, all versions": Way(hoarding, by_row),
}
WRONG: dict[str, Way] = {
    "push-based": Way(PushBased, by_row),
    "Algorithm 2 as printed: reads": Way(PrintedMark, by_row),
    "Algorithm 2 as printed: writes": Way(PrintedMarkOfWrites, by_row),
    "versions alone": Way(NoMark, by_row),
    "writes jump the queue": Way(Jumping, by_row),
    "the newest version": Way(Newest, by_row),
    "the version of the same time": Way(OwnVersion, by_row),
    "versions that are still read are let go": Way(Forgetful, by_row),
    "writes do not wait for readers of one version": Way(FreeReads, by_row),
}
WRONG_IF_LATE: dict[str, Way] = {
    "no punctuation": Way(Impatient, by_row),
    "not sorted": Way(Unsorted, by_row),
}
