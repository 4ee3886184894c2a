"""Wrong meanings of rules: the oracle with one thing changed. Worlds that do not notice them are too weak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from acep_approx.query.rules.syntax import Rule, Table, Write
from acep_approx.query.syntax import Read
from tests.naive_reads import NUMBER, Key, Reading, Store, all_hold, fresh
from tests.naive_rules import Run
from tests.naive_writes import Outcome, Row, RuleMatch, Transaction, computed
from tests.rule_worlds import RuleWorld

Groups = Sequence[tuple[Reading, list[RuleMatch]]]
Events = Sequence[Mapping[str, Any]]


def outcome_of(world: RuleWorld, meaning: type[Run] = Run) -> Outcome:
    """What comes of a world by some meaning, in its batches."""
    run, ends = meaning(world.file, world.tables), [*world.cuts, len(world.rows)]
    for low, high in zip([0, *ends], ends, strict=False):
        run.push(world.rows[low:high])
    run.finish()
    return run.outcome


# --- reads ------------------------------------------------------------------------------------------------------------


class OwnWriteIsVisible(Run):
    """Rules come one after the other: each sees what those before it did for the same event."""

    def come(self, event: Mapping[str, Any]) -> None:
        row = len(self.rows)
        self.rows.append({**event, NUMBER: row})
        self.history.append(self.found())
        for reading in self.readings:
            self.history[row] = self.found()
            self.rows[row] |= reading.of_event(self.rows[row], self.as_of(row))
            self.transact(event["ts"], row, [(reading, self.completed(reading, row))])
        self.close_windows_of_events(row)


class BatchIsStale(Run):
    """Events see the tables as they were when their batch began."""

    begun: Store | None = None

    def push(self, events: Events) -> None:
        self.begun = deepcopy(self.outcome.store)
        super().push(events)

    def found(self) -> Store:
        return deepcopy(self.outcome.store if self.begun is None else self.begun)


class ReadTooLate(Run):
    """Events see the tables as they are when their batch is done."""

    latest: Store | None = None

    def push(self, events: Events) -> None:
        self.latest = None
        ahead = deepcopy(self)
        Run.push(ahead, events)
        self.latest = ahead.outcome.store
        super().push(events)

    def found(self) -> Store:
        return deepcopy(self.outcome.store if self.latest is None else self.latest)


class LateReadsAreOfNow(Run):
    """AT is left out where the key is of another event."""

    def look_back(self, read: Read, key: Key) -> Any:
        return self.held(self.outcome.store, read, key[:-1])


class DefaultRowsExist(Run):
    """EXISTS is true for what a total table only says by its defaults."""

    def held(self, store: Store, read: Read, key: Key) -> Any:
        is_there = read.column is None and self.tables[read.table].is_total and None not in key
        return is_there or super().held(store, read, key)


class AbsentRowsHaveDefaults(Run):
    """Tables of which some columns have defaults read as these, too."""

    def held(self, store: Store, read: Read, key: Key) -> Any:
        found = super().held(store, read, key)
        is_absent = read.column is not None and key not in store[read.table] and None not in key
        return fresh(self.tables[read.table]).get(read.column or "") if is_absent else found


class NullNamesADefaultRow(Run):
    """A key that is NULL reads as the defaults of a total table."""

    def held(self, store: Store, read: Read, key: Key) -> Any:
        table = self.tables[read.table]
        if None in key and table.is_total and read.column is not None:
            return fresh(table).get(read.column)
        return super().held(store, read, key)


# --- when actions run -------------------------------------------------------------------------------------------------


class RulesAreReversed(Run):
    """The last rule of the file acts first."""

    def acting(self, groups: Groups) -> Iterator[tuple[Reading, RuleMatch]]:
        return super().acting(groups[::-1])


class MatchesAreInOrderOfQueries(Run):
    """Of equal starts, the match of the later events acts first."""

    def place_in_transaction(self, reading: Reading, match: RuleMatch) -> tuple[Any, ...]:
        return self.place_in_queries(reading, match)


class EarlierStartsFirst(Run):
    """The match that starts earlier acts first."""

    def place_in_transaction(self, reading: Reading, match: RuleMatch) -> tuple[Any, ...]:
        return match.errors, self.rows[match.bound[0][0]]["ts"], match.bound


class ErrorsPlayNoRole(Run):
    """Matches with fewer errors do not act before others."""

    def place_in_transaction(self, reading: Reading, match: RuleMatch) -> tuple[Any, ...]:
        return super().place_in_transaction(reading, match)[1:]


class PointsAreMatches(Run):
    """FOR EACH POINT acts for each match."""

    def acting(self, groups: Groups) -> Iterator[tuple[Reading, RuleMatch]]:
        for reading, matches in groups:
            for match in self.in_order(reading, matches):
                if match.fired:
                    yield reading, match


class WhenSeesTheTransaction(Run):
    """WHEN is asked when its match acts: after what acted before it."""

    def acting(self, groups: Groups) -> Iterator[tuple[Reading, RuleMatch]]:
        asked = [(reading, [replace(match, fired=True) for match in matches]) for reading, matches in groups]
        for reading, match in super().acting(asked):
            if all_hold(reading.when, self.events_of(match), self.look_now):
                yield reading, match


class WhenFiltersMatches(Run):
    """A match that does not act is none."""

    def transact(self, time: int, row: int | None, groups: Groups) -> None:
        super().transact(time, row, [(reading, self.fired(reading, matches)) for reading, matches in groups])

    def fired(self, reading: Reading, matches: list[RuleMatch]) -> list[RuleMatch]:
        return [match for match in matches if self.with_values(reading, match).fired]


class LateAtTheTick(Run):
    """What waited for a window acts before the events of its last tick."""

    def close_windows(self, before: int) -> None:
        super().close_windows(before + 1)


class LateAtTheEnd(Run):
    """What waited for a window acts only when the stream ends."""

    def close_windows(self, before: int) -> None:
        if before > 2**62:
            super().close_windows(before)


class LateByRule(Run):
    """Of windows that close one after the other, all those of one rule come first."""

    def close_windows(self, before: int) -> None:
        waiting = self.waiting
        for number, of_rule in enumerate(waiting):
            self.waiting = [of_rule if other == number else [] for other in range(len(waiting))]
            super().close_windows(before)
            waiting[number] = self.waiting[number]
        self.waiting = waiting


class LateIsDatedBack(Run):
    """What waited for a window acts as of its last event, though it is known only later."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.right = Run(*given)
        self.late: dict[tuple[str, Any], RuleMatch] = {}
        self.events: list[Mapping[str, Any]] = []

    def push(self, events: Events) -> None:
        self.events += events
        self.right.push(events)

    def finish(self) -> None:
        self.right.finish()
        found = [match for matches in self.right.outcome.matches.values() for match in matches if match.row is None]
        self.late = {(match.rule, match.bound): match for match in found}
        super().push(self.events)

    def completed(self, reading: Reading, row: int) -> list[RuleMatch]:
        known = super().completed(reading, row)
        waiting = [(reading.rule.name, one.bound) for one in self.waiting[reading.number]]
        self.waiting[reading.number] = []
        return known + [replace(self.late[one], returned=()) for one in waiting if one in self.late]


class FailureLeavesTraces(Run):
    """What an event caused before an action failed is not undone."""

    def transact(self, time: int, row: int | None, groups: Groups) -> None:
        outcome = self.outcome
        super().transact(time, row, groups)
        if self.outcome is not outcome:
            outcome.failure, self.outcome = self.outcome.failure, outcome


class FailureIsIgnored(Run):
    """An event whose action fails causes nothing, and the run goes on."""

    def transact(self, time: int, row: int | None, groups: Groups) -> None:
        super().transact(time, row, groups)
        self.outcome.failure = None


# --- what statements do -----------------------------------------------------------------------------------------------


class MakesNoDefaultRows(Transaction):
    """UPDATE does nothing for rows that a total table has only by its defaults."""

    def makes(self, table: Table, action: Write) -> bool:
        return action.kind == "upsert"


class UpdateMakesRows(Transaction):
    """UPDATE makes rows in every table."""

    def makes(self, table: Table, action: Write) -> bool:
        return action.kind != "delete"


class OldIsStale(Transaction):
    """Statements see their rows as they were before the event."""

    def __init__(self, tables: Mapping[str, Table], outcome: Outcome, time: int, row: int | None) -> None:
        super().__init__(tables, outcome, time, row)
        self.before = deepcopy(outcome.store)

    def after(self, table: Table, action: Write, key: Key, events: Mapping[str | None, Sequence[Row]]) -> Row:
        rows = self.outcome.store[table.name]
        now, rows[key] = rows.get(key) or fresh(table), self.before[table.name].get(key) or fresh(table)
        after = super().after(table, action, key, events)
        return now | {one.column: after[one.column] for one in action.sets}


class SetsAreSequential(Transaction):
    """``SET n = 1, m = old.n`` gives m the new n."""

    def after(self, table: Table, action: Write, key: Key, events: Mapping[str | None, Sequence[Row]]) -> Row:
        for one in action.sets:
            self.outcome.store[table.name][key] = super().after(table, replace(action, sets=(one,)), key, events)
        return self.outcome.store[table.name][key]


class UpsertForgets(Transaction):
    """UPSERT makes the row anew."""

    def after(self, table: Table, action: Write, key: Key, events: Mapping[str | None, Sequence[Row]]) -> Row:
        after = super().after(table, action, key, events)
        if action.kind == "upsert":
            after = fresh(table) | {one.column: after[one.column] for one in action.sets}
        return after


class DeleteLeavesDefaults(Transaction):
    """DELETE sets a row to its defaults."""

    def write(self, rule: Rule, action: Write, events: Mapping[str | None, Sequence[Row]]) -> None:
        super().write(rule, action, events)
        if action.kind == "delete":
            table = self.tables[action.table]
            key = tuple(computed(part, events) for part in action.key)
            self.outcome.store[table.name][key] = fresh(table)


class FirstWriteWins(Transaction):
    """A cell keeps what is written to it first."""

    def after(self, table: Table, action: Write, key: Key, events: Mapping[str | None, Sequence[Row]]) -> Row:
        first = {one.column: self.written[table.name, key, one.column][:1] for one in action.sets}
        return super().after(table, action, key, events) | {name: one[0] for name, one in first.items() if one}


class EqualWritesAreConflicts(Transaction):
    """Every later write of a cell counts."""

    def after(self, table: Table, action: Write, key: Key, events: Mapping[str | None, Sequence[Row]]) -> Row:
        before = self.outcome.conflicts
        earlier = sum(bool(self.written[table.name, key, one.column]) for one in action.sets)
        after = super().after(table, action, key, events)
        self.outcome.conflicts = before + earlier
        return after


MEANINGS: dict[str, type[Run]] = {
    **{
        run.__name__: run
        for run in (
            *(OwnWriteIsVisible, BatchIsStale, ReadTooLate, LateReadsAreOfNow),
            *(DefaultRowsExist, AbsentRowsHaveDefaults, NullNamesADefaultRow),
            *(RulesAreReversed, MatchesAreInOrderOfQueries, EarlierStartsFirst, ErrorsPlayNoRole, PointsAreMatches),
            *(WhenSeesTheTransaction, WhenFiltersMatches, LateAtTheTick, LateAtTheEnd, LateByRule, LateIsDatedBack),
            *(FailureLeavesTraces, FailureIsIgnored),
        )
    },
    **{
        one.__name__: type(one.__name__, (Run,), {"transaction": one})
        for one in (
            *(MakesNoDefaultRows, UpdateMakesRows, OldIsStale, SetsAreSequential, UpsertForgets, DeleteLeavesDefaults),
            *(FirstWriteWins, EqualWritesAreConflicts),
        )
    },
}
"""All of them, by name."""
