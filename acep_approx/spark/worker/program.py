"""What the shards of a job run: a program (a query, a set of queries, rules), and one at work in a shard.

A program is immutable and goes to the workers with the job; ``query.py`` and ``early.py`` have those of one query,
``api.on_spark`` those of sets and of rules. A shard asks a ``Work`` only for what stands here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from acep_approx.events.stream import EventBatch
from acep_approx.matching.outputs.bind import Bind
from acep_approx.run.passing import MAKER, PLACE, PassedColumns, Passing, hash_of
from acep_approx.shedding.splitting import shard_budget

if TYPE_CHECKING:
    from acep_approx.budget.budget import Budget
    from acep_approx.events.roles import Roles
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.spark.worker.spending import Spending

Numbers = dict[str, Any]
"""Counters, by the names of ``ShardMetrics``."""
Named = tuple[str, pa.Table]
"""Rows of one of the tables of a program."""
Pin = Callable[[int], None]
"""Is told the number of a micro-batch before anything of it is done; a second time where it is done again."""
MATCHES, CALLS = "matches", "calls"
"""The table that every program has: its results; the table of the calls that rules make."""
PASSED = "passed on"
"""The table of what a program gives to those of a second stage; it does not come of the job."""
AGREE = "all events of a match have the same"
"""Why events are matched apart by keys."""
CHANGES = "changes of "
"""What the tables are called that have the changes of the tables of rules, with their names behind."""


class Split(NamedTuple):
    """How the events of a program may be matched apart.

    Attributes
    ----------
    keys : tuple of str
        Columns; none: all events must be matched together.
    why : str
        For people.
    """

    keys: tuple[str, ...]
    why: str


class KeptTable(NamedTuple):
    """A table that rules write, as it lies in the shards.

    Attributes
    ----------
    keys, values : tuple of str
        Its columns, in the order of changes.
    rows : pyarrow.Table
        Those that it begins with.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...]
    rows: pa.Table


@dataclass(frozen=True)
class Stage:
    """Which of the two stages of a job a program is of.

    Attributes
    ----------
    passing : PassedColumns or None
        What it passes on to those of the second stage.
    passes_events : bool
        Whether it passes events on, too: of several programs one does.
    apart : str
        Of the second stage: the column that tells keys apart in what it is fed with.
    """

    passing: PassedColumns | None = None
    passes_events: bool = False
    apart: str = ""

    @property
    def is_second(self) -> bool:
        """Whether its events are what other programs of the job pass on."""
        return bool(self.apart)

    @property
    def to_all(self) -> bool:
        """Whether all shards of the second stage need what it passes on, beside events."""
        return self.passing is not None and self.passing.to_all

    @property
    def ties(self) -> tuple[str, ...]:
        """The columns that order rows of the same event, in what it is fed with."""
        return (MAKER, PLACE) if self.is_second else ()

    def passed(self, schema: pa.Schema) -> pa.Schema | None:
        """Return the columns of what is passed on, for events of these columns; None: nothing is."""
        return None if self.passing is None else self.passing.schema(schema)


ONLY = Stage()
"""That of a job of one stage."""


def stages_of(passing: PassedColumns, parts: Iterable[tuple[bool, bool]]) -> Iterator[Stage]:
    """Return the stages of parts that come one after the other, those of the second stage last.

    Parameters
    ----------
    passing : PassedColumns
    parts : iterable of (bool, bool)
        Whether a part is of the second stage, and whether one of the first passes something on.
    """
    seconds, passes_events = 0, True
    for is_second, passes in parts:
        if is_second:
            yield Stage(apart=hash_of(seconds))
            seconds += 1
        elif passes:
            yield Stage(passing, passes_events=passes_events)
            passes_events = False
        else:
            yield ONLY


def first_names(names: Sequence[str], thing: str, things: str) -> str:
    """Return how many queries or rules there are, and the names of the first ones.

    Examples
    --------
    >>> first_names(["a"], "query", "queries"), first_names(["a", "b", "c", "d"], "query", "queries")
    ('the query a', '4 queries (a, b, c, ...)')
    """
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names):,} {things} ({shown})" if len(names) > 1 else f"the {thing} {shown}"


BEHIND = "behind those that {}, which are matched apart by other keys"
"""Why programs are matched apart in a second stage."""


@dataclass(frozen=True)
class Setting:
    """What a program is told of the job that it is a part of.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the events, whatever the encoding.
    roles : Roles
    order : tuple of str
        Columns that order events, the time first.
    tables : dict of str to pyarrow.Schema
        What comes of the job.
    shards : int
        Of all parts; 0: as many as Spark finds good.
    parts : int
        How many there are, each of which gets all events.
    spending : Spending or None
    """

    schema: pa.Schema
    roles: Roles
    order: tuple[str, ...]
    tables: dict[str, pa.Schema]
    shards: int
    parts: int
    spending: Spending | None


def passing_in(stage: Stage, setting: Setting) -> Passing | None:
    """Return what collects what a program passes on, in a shard."""
    if stage.passing is None:
        return None
    return Passing(stage.passing, setting.schema, setting.roles, has_events=stage.passes_events)


@dataclass(frozen=True)
class Turn:
    """A micro-batch of a shard, before it is run.

    Attributes
    ----------
    shard : int
        Its number.
    weight : float
        By what its part of the budget is multiplied.
    budget : Budget or None
        Of the whole job, less what a micro-batch takes beside its matchers.
    events : int
        That will be matched.
    batch : int or None
        Number of the micro-batch, where it is known.
    """

    shard: int = 0
    weight: float = 1.0
    budget: Budget | None = None
    events: int = 0
    batch: int | None = None

    def part_of(self, spending: Spending, shards: int) -> Budget:
        """The part of the budget of the job that the shard has, where there are so many."""
        return shard_budget(self.budget or spending.budget, self.weight, max(shards, 1), spending.cores)


class Work(ABC):
    """A program at work in a shard: events in, tables out."""

    @property
    @abstractmethod
    def arrived(self) -> int:
        """How many events there were so far."""

    def ready(self, batch: int | None) -> Iterable[Named]:  # noqa: ARG002  (most are what they were)
        """Become what the program is in a micro-batch, before its events are run."""
        return ()

    @abstractmethod
    def run(self, events: EventBatch) -> Iterable[Named]:
        """Run events: in order of time, and later than all before, unless the program ``orders`` them."""

    @abstractmethod
    def pass_time(self, tick: int) -> Iterable[Named]:
        """No event before ``tick`` comes any more."""

    @abstractmethod
    def finish(self) -> Iterable[Named]:
        """The stream has ended."""

    def pause(self) -> None:  # noqa: B027  (most need do nothing)
        """A micro-batch is over: its state is kept, and it may go on elsewhere."""

    @property
    @abstractmethod
    def waits_until(self) -> int | None:
        """The tick that time must pass for something that waits to be put out; None: nothing waits."""

    @abstractmethod
    def state_bytes(self) -> bytes:
        """All that is needed to go on elsewhere."""

    @abstractmethod
    def counters(self) -> Numbers:
        """Where its counters stand: two readings tell what happened in between."""

    @property
    def held(self) -> int:
        """Events that it keeps waiting."""
        return 0

    def rejected(self) -> pa.Table:
        """The events that came too late since the last call, where the program ``orders`` them: ``reason`` first."""
        return pa.table({})

    def sample(self) -> bytes:
        """What the driver learns from, of this micro-batch."""
        return b""


class Program(ABC):
    """What is run, as workers are told of it."""

    orders = False
    """Whether it puts events in order itself, and wants them as they come."""
    stage: Stage = ONLY
    is_changing = False
    """Whether what it runs may change from one micro-batch to the next, as the driver says."""

    @property
    @abstractmethod
    def identity(self) -> dict[str, str]:
        """What must be the same for a checkpoint to be taken up again."""

    @abstractmethod
    def decided(self, id: str | None, bind: Bind, schema: pa.Schema, roles: Roles) -> Self:  # noqa: A002
        """The same for events of these columns: it is known what stands for an event.

        Raises
        ------
        DataError, QueryError
            A column is missing or has the wrong type.
        """

    @abstractmethod
    def needs(self, schema: pa.Schema, roles: Roles) -> tuple[str, ...]:
        """The columns of events that workers must have."""

    @abstractmethod
    def split(self, roles: Roles, schema: pa.Schema | None = None) -> Split:
        """How events may be matched apart, and why so; ``schema`` of the events, once it is known."""

    @abstractmethod
    def tables(self, schema: pa.Schema, roles: Roles) -> dict[str, pa.Schema]:
        """The tables that come of it, by name, ``MATCHES`` first."""

    @abstractmethod
    def begin(self, setting: Setting, turn: Turn, state: bytes | None = None) -> Work:
        """Begin in a shard, or go on from a state."""

    @property
    def sheds(self) -> bool:
        """Whether there is anything to shed inside a budget."""
        return True

    def check(self, spending: Spending) -> None:  # noqa: B027  (most can be spent on it)
        """Refuse a budget that cannot be spent on it."""

    def check_plan(self, *, is_stream: bool) -> None:  # noqa: B027  (most make sense for both)
        """Refuse what makes no sense for a batch, or for a stream."""

    def divided(self, roles: Roles, shards: int) -> Sequence[Program]:  # noqa: ARG002  (most are one)
        """Programs that together find the same, each with keys of its own: events go to all of them."""
        return (self,)

    def controlled(self, control: Path) -> Self:  # noqa: ARG002  (most need none)
        """Return the same for a job whose driver tells its workers things in a folder."""
        return self

    def pinning(self, parts: Sequence[Program], setting: Setting) -> Pin | None:  # noqa: ARG002  (most never change)
        """Return what the driver calls before each micro-batch, to fix what changes between them.

        Parameters
        ----------
        parts : sequence of Program
            Of the job, this one first.
        setting : Setting
        """
        return None

    @property
    def kept_tables(self) -> dict[str, KeptTable]:
        """The tables that its parts write and keep, by name."""
        return {}

    @property
    def words(self) -> str:
        """What it is, for people."""
        return "the query"

    @property
    def single(self) -> CompiledQuery | None:
        """The one query that this is; None where it is something else."""
        return None

    def engines(self, schema: pa.Schema, roles: Roles) -> dict[str, CompiledQuery]:  # noqa: ARG002  (most have none)
        """The engines of which the driver learns, by what their histories are known by; that of one query is ``""``."""
        return {}

    def samples(self, packed: bytes) -> dict[str, bytes]:
        """What a shard gave as its ``sample``, by engines."""
        return {"": packed} if packed else {}

    @property
    def shown_keys(self) -> tuple[str, ...]:
        """The columns of results that have the keys, where these have other names than those of the events."""
        return ()

    @property
    def key_words(self) -> str:
        """The keys, for people."""
        return "the key"

    def known_work(self, spending: Spending) -> float | None:
        """Run-steps per event of the exact run, where they are known."""
        return spending.full_work
