"""A machine on which schedulers of stream transactions are compared: with a virtual clock, and without threads.

The lock tables and stores are those of ``acep_approx.rules.schedules``, asked at each operation. What is simulated is
time: cores that work, a store that takes a while to answer, events that wait. Nothing is measured with a real clock, so
a run gives the same numbers everywhere.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from acep_approx.rules import Item, LowWaterMark, SingleEvent, Stamp, Steps, Transaction, TwoPhase, by_row, by_table
from acep_approx.rules.schedules.scheduler import Scheduler
from acep_approx.rules.schedules.transactions import Operation, Unit, Values
from experiments.active2011.clock import Clock, Delay, Life, Until, Work

SECOND = 1e6
"""In microseconds, the unit of all times here."""


@dataclass(frozen=True)
class Load:
    """What comes: Table 1 of the paper, and what it does not say.

    Attributes
    ----------
    read_n, write_n : float
        Reads and potential writes of a transaction, on average.
    seq_l : int
        Length of the patterns: what a query takes to look at an event grows with it.
    by_table : bool
        Whether tables are locked, else rows.
    tables, rows : int
        Shared tables, and rows of each. The paper has one, the status of workers, and does not say of how many; with
        200, locks on rows show no difference between LWM and S2PL.
    fires : float
        Share of the potential writes that happen. The paper counts write locks as writes: 1.
    rate : float, optional
        Events per second, at uniformly distributed times; None: all are there at once, to measure throughput.
    """

    events: int = 2_000
    read_n: float = 1
    write_n: float = 0.25
    seq_l: int = 3
    by_table: bool = False
    tables: int = 1
    rows: int = 10
    fires: float = 1
    rate: float | None = None
    seed: int = 1


@dataclass(frozen=True)
class Costs:
    """What things take, in microseconds. None is from the paper, which has no such numbers.

    They are the last of some that were tried, taken because LWM / SEI with locks on tables comes near the paper's.

    Attributes
    ----------
    step : float
        A core, for a query to look at an event, for each position of its pattern.
    ask : float
        A core, for each read or write: the statement and its answer.
    read, write : float
        Until the store has answered; no core is needed.
    lock : float
        A core, to insert and to release a lock; SEI takes one for each event.
    version : float
        A core, for each read or write of a store with versions.
    reader_ends, writer_ends : float
        From the last operation to the end of a transaction that only reads, or that may write; no core is needed.
    """

    step: float = 50
    ask: float = 50
    read: float = 300
    write: float = 300
    lock: float = 3
    version: float = 2
    reader_ends: float = 0
    writer_ends: float = 0


@dataclass(frozen=True)
class Machine:
    """Where it runs.

    Attributes
    ----------
    cores : int
        The paper's machine has two.
    flight : int
        Events that are in the engine at once, at most; the others wait in the input buffer. SEI has one.
    threads : str
        ``"events"``: a thread takes an event through all queries that look at it. ``"operators"``: each query, with its
        rule, has a thread; it takes events one after the other, and is held up where it has to wait.
    operators : int
        How many of these there are.
    """

    cores: int = 2
    flight: int = 64
    threads: Literal["events", "operators"] = "events"
    operators: int = 12


@dataclass(frozen=True)
class Outcome:
    """What came of a run; times in microseconds.

    Attributes
    ----------
    throughput : float
        Events per second.
    query, rule : float
        Mean latencies (equations 1 and 2): of outputs since their event arrived, of rules since the output.
    waits : int
        How often something was not granted at once, or a thread had to wait for others.
    busy : float
        Share of the time of all cores in which they worked.
    versions, buffered, locks : int
        The most that there were when an event was let in.
    """

    throughput: float
    query: float
    rule: float
    waits: int
    busy: float
    versions: int
    buffered: int
    locks: int

    @property
    def combined(self) -> float:
        """Equation 3."""
        return self.query + self.rule


def _whole(rows: Values, *, lock: Callable[[Item], Unit]) -> TwoPhase:
    return TwoPhase(rows, lock=lock, whole=True)


def _hoarding(rows: Values, *, lock: Callable[[Item], Unit]) -> LowWaterMark:
    return LowWaterMark(rows, lock=lock, keeps_all=True)


SCHEDULERS: dict[str, Callable[..., Scheduler]] = {
    "SEI": SingleEvent,
    "S2PL": _whole,
    "S2PL, lock by lock": TwoPhase,
    "LWM": LowWaterMark,
    "LWM, all versions": _hoarding,
}
"""S2PL can be read in two ways: an event starts when it has all its locks, or waits where it needs one that it has not.
"When writeN = 1, S2PL performs similar to SEI" (Figure 8) is true of the first."""


def transactions(load: Load) -> list[Transaction]:
    """The transactions of a load; which of the potential writes happen is drawn beforehand."""
    dice = random.Random(f"items {load.seed}")

    def items(mean: float) -> tuple[Item, ...]:
        count, found = int(mean) + (dice.random() < mean % 1), dict[Item, None]()
        while len(found) < count:
            found[Item(f"t{dice.randrange(load.tables)}", dice.randrange(load.rows))] = None
        return tuple(found)

    made = []
    for n in range(load.events):
        reads, writes = items(load.read_n), items(load.write_n)
        fired = {item: n for item in writes if dice.random() < load.fires}
        made.append(Transaction(Stamp(n, n), reads, writes, lambda _, fired=fired: fired))  # type: ignore[misc]
    return made


def arrivals(load: Load) -> list[float]:
    """When events arrive: uniformly distributed over the time that so many take at this rate."""
    if load.rate is None:
        return [0.0] * load.events
    dice = random.Random(f"arrivals {load.seed}")
    return sorted(dice.uniform(0, load.events / load.rate * SECOND) for _ in range(load.events))


class Engine:
    """Events on their way through queries, rules and the store.

    Parameters
    ----------
    name : str
        One of ``SCHEDULERS``.
    load, costs, machine
        What comes, what it takes, where it runs.
    """

    def __init__(self, name: str, load: Load, costs: Costs, machine: Machine) -> None:
        self.load, self.costs, self.machine = load, costs, machine
        rows = {Item(f"t{table}", key): -1 for table in range(load.tables) for key in range(load.rows)}
        self.scheduler = SCHEDULERS[name](rows, lock=by_table if load.by_table else by_row)
        self.history: list[Operation] = []
        self.is_alone = isinstance(self.scheduler, SingleEvent)
        self.version = costs.version if isinstance(self.scheduler, LowWaterMark) else 0.0
        self.clock = Clock(machine.cores)
        self.came = arrivals(load)
        self.inside = 0
        self.query: list[float] = []
        self.rule: list[float] = []
        self.most = {"versions": 0, "buffered": 0, "locks": 0}
        self.queues: list[deque[Life]] = [deque() for _ in range(machine.operators)]
        self.dice = random.Random(f"operators {load.seed}")

    def run(self) -> Outcome:
        """Let all events through."""
        self.clock.start(self._input())
        self.clock.run()
        time = self.clock.now
        return Outcome(
            self.load.events / time * SECOND,
            fmean(self.query or [0.0]),
            fmean(self.rule or [0.0]),
            self.clock.waits,
            self.clock.busy / time / self.machine.cores,
            **self.most,
        )

    def _input(self) -> Life:
        """The adapter of the stream: one event after the other gets its locks, and is let in where there is room."""
        room = 1 if self.is_alone else self.machine.flight
        for number, transaction in enumerate(transactions(self.load)):
            if self.came[number] > self.clock.now:
                yield Delay(self.came[number] - self.clock.now)
            yield Until(lambda: self.inside < room, ("room",))
            self.inside += 1
            yield Work(self.costs.lock * self._locks(transaction))
            self.scheduler.begin(transaction)
            self._look(number + 1)
            for life in self._lives(transaction, self.came[number]):
                self.clock.start(life)

    def _locks(self, transaction: Transaction) -> int:
        if self.is_alone:
            return 1
        lock = self.scheduler.lock
        return len({lock(item) for item in transaction.reads}) + len({lock(item) for item in transaction.writes})

    def _look(self, let_in: int) -> None:
        held = self.scheduler.held()
        here = {
            "versions": held.versions,
            "buffered": bisect_right(self.came, self.clock.now) - let_in,
            "locks": held.locks,
        }
        self.most = {name: max(self.most[name], count) for name, count in here.items()}

    def _lives(self, transaction: Transaction, arrived: float) -> Iterator[Life]:
        steps = Steps(transaction, self.scheduler, self.history)
        if self.machine.threads == "events":
            yield self._event(steps, arrived)
            return
        left = len(transaction.reads)
        operators = self.dice.sample(range(self.machine.operators), left)
        ending = {"left": left}
        for place, (operator, item) in enumerate(zip(operators, transaction.reads, strict=True)):
            mine = transaction.writes[place::left]
            queue = self.queues[operator]
            queue.append(self._operator(steps, item, mine, arrived, queue, ending))
            if len(queue) == 1:
                yield queue[0]

    # --- a thread for each event --------------------------------------------------------------------------------------

    def _event(self, steps: Steps, arrived: float) -> Life:
        """An event goes through all queries that look at it, and then its rules run."""
        yield self._start(steps)
        for item in steps.transaction.reads:
            yield from self._read(steps, item)
        if steps.writes:
            yield from self._rules(steps, tuple(steps.writes), arrived)
        yield from self._end(steps.transaction)

    def _start(self, steps: Steps) -> Until:
        transaction = steps.transaction
        topics = tuple({self.scheduler.lock(item) for item in transaction.reads + transaction.writes})
        return Until(lambda: self.scheduler.may_start(transaction), topics)

    def _read(self, steps: Steps, item: Item) -> Life:
        transaction, scheduler, costs = steps.transaction, self.scheduler, self.costs
        yield Work(costs.step * self.load.seq_l + costs.ask + self.version)
        yield Until(lambda: scheduler.may_read(transaction, item), (scheduler.lock(item),))
        steps.do(item)
        yield Delay(costs.read)

    def _rules(self, steps: Steps, items: tuple[Item, ...], arrived: float) -> Life:
        """The output of queries, and what its rules write."""
        transaction, scheduler, costs = steps.transaction, self.scheduler, self.costs
        output = self.clock.now
        self.query.append(output - arrived)
        for item in items:
            yield Work(costs.ask + self.version)
            yield Until(lambda item=item: scheduler.may_write(transaction, item), (scheduler.lock(item),))  # type: ignore[misc]
            yield Delay(costs.write)
            steps.do(item)
        self.rule.append(self.clock.now - output)

    def _end(self, transaction: Transaction) -> Life:
        yield Delay(self.costs.writer_ends if transaction.writes else self.costs.reader_ends)
        self.scheduler.finish(transaction)
        self.inside -= 1
        lock = self.scheduler.lock
        self.clock.changed([*{lock(item) for item in transaction.reads + transaction.writes}, "room"])

    # --- a thread for each query with its rule ------------------------------------------------------------------------

    def _operator(
        self,
        steps: Steps,
        item: Item,
        writes: tuple[Item, ...],
        arrived: float,
        queue: deque[Life],
        ending: dict[str, int],
    ) -> Life:
        """What a query does for an event, with its rule, before its thread takes the next event."""
        yield self._start(steps)
        yield from self._read(steps, item)
        reads_done = ("reads", steps.transaction.stamp)
        if not steps.reads:
            self.clock.changed([reads_done])
        yield Until(lambda: not writes or not steps.reads, (reads_done,))
        if mine := tuple(write for write in writes if write in steps.writes):
            yield from self._rules(steps, mine, arrived)
        ending["left"] -= 1
        queue.popleft()
        if queue:
            self.clock.start(queue[0])
        if not ending["left"]:
            yield from self._end(steps.transaction)


def simulate(name: str, load: Load, costs: Costs, machine: Machine) -> Outcome:
    """Run a load under a scheduler."""
    return Engine(name, load, costs, machine).run()
