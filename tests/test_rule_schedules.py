"""Schedulers of stream transactions: the examples of the paper step by step, random schedules, and wrong schedulers."""

from __future__ import annotations

import random
from functools import partial

import pytest

from acep_approx.errors import DataError
from acep_approx.rules import (
    Item,
    LowWaterMark,
    Operation,
    QueryRule,
    SingleEvent,
    Stamp,
    Steps,
    StoreAccess,
    Transaction,
    TwoPhase,
    anomalies,
    by_table,
    insert_locks,
    run_in_order,
)
from acep_approx.rules.schedules.transactions import FIRST, LockTable, Stamps, Versions
from tests.cases import cases
from tests.noticing import first_noticed
from tests.schedule_worlds import (
    ITEMS,
    RIGHT,
    WRONG,
    WRONG_IF_LATE,
    PrintedMark,
    PushBased,
    Way,
    World,
    every_schedule,
    interleaved,
    world,
)

# --- the examples -----------------------------------------------------------------------------------------------------

STATUS = (StoreAccess("status", "hcw"),)
PAIRS = (
    QueryRule("Q1, R1", ("EXIT", "SANITIZE", "ENTER"), "ENTER", reads=STATUS, writes=STATUS),
    QueryRule("Q2", ("MASK", "EXIT"), "EXIT", reads=STATUS),
)
LIGHT = Item("status", "ann")
SAFE = {LIGHT: "safe"}


def caused(type_: str, ts: int, arrival: int) -> Transaction:
    """The transaction of an event of the examples: Q1's match changes ``safe`` to ``warning``."""
    reads, writes = insert_locks({"type": type_, "hcw": "ann"}, PAIRS)
    return Transaction(
        Stamp(ts, arrival), reads, writes, lambda seen: {LIGHT: "warning"} if writes and seen[LIGHT] == "safe" else {}
    )


def the_stream() -> tuple[Transaction, Transaction, Transaction]:
    return caused("EXIT", 2, 0), caused("ENTER", 10, 1), caused("EXIT", 15, 2)


def test_example_1_in_order_all_is_as_expected():
    history = run_in_order(the_stream(), SingleEvent(SAFE))
    assert [(one.kind, one.stamp.ts, one.value) for one in history] == [
        ("read", 2, "safe"),
        ("read", 10, "safe"),
        ("write", 10, "warning"),
        ("read", 15, "warning"),
    ]
    assert anomalies(history) == []


def test_example_2_pushed_events_read_too_late():
    """Q1 has done enter@10 when Q2 comes to exit@2."""
    exit_2, enter_10, _ = the_stream()
    history = pushed([exit_2, enter_10], [enter_10, enter_10, exit_2])
    assert history[-1] == Operation("read", Stamp(2, 0), LIGHT, "warning")
    (found,) = anomalies(history)
    assert (found.name, found.rule, found.first, found.then) == ("read too late", 3, history[1], history[2])


def test_example_3_pushed_events_write_too_late():
    """Q2 has done exit@15 before Q1 comes to enter@10."""
    _, enter_10, exit_15 = the_stream()
    history = pushed([enter_10, exit_15], [exit_15, enter_10, enter_10])
    assert history[0] == Operation("read", Stamp(15, 2), LIGHT, "safe")
    (found,) = anomalies(history)
    assert (found.name, found.rule, found.first, found.then) == ("write too late", 1, history[0], history[2])


def pushed(stream: list[Transaction], order: list[Transaction]) -> list[Operation]:
    scheduler, history = PushBased(SAFE), list[Operation]()
    for transaction in stream:
        scheduler.begin(transaction)
    steps = {one: Steps(one, scheduler, history) for one in stream}
    for transaction in order:
        steps[transaction].do(LIGHT)
    return history


def test_algorithm_1_and_example_4_locks_of_two_phases():
    exit_2, enter_10, exit_15 = the_stream()
    assert [(one.reads, one.writes) for one in (exit_2, enter_10, exit_15)] == [
        ((LIGHT,), ()),
        ((LIGHT,), (LIGHT,)),
        ((LIGHT,), ()),
    ]
    scheduler = TwoPhase(SAFE, lock=by_table)
    for transaction in (exit_2, enter_10, exit_15):
        scheduler.begin(transaction)
    assert scheduler.read_locks.holders(LIGHT) == [(2, 0), (10, 1), (15, 2)]
    assert scheduler.write_locks.holders(LIGHT) == [(10, 1)]
    # T1 holds its read lock, so T2's write waits, and T3's read waits for T2
    assert [scheduler.may_read(one, LIGHT) for one in (exit_2, enter_10, exit_15)] == [True, True, False]
    assert not scheduler.may_write(enter_10, LIGHT)
    assert scheduler.read(enter_10, LIGHT) == "safe"
    assert scheduler.read(exit_2, LIGHT) == "safe"
    assert not scheduler.may_write(enter_10, LIGHT), "locks are released at the end of a transaction"
    scheduler.finish(exit_2)
    assert scheduler.may_write(enter_10, LIGHT)
    scheduler.write(enter_10, LIGHT, "warning")
    assert not scheduler.may_read(exit_15, LIGHT)
    scheduler.finish(enter_10)
    assert scheduler.read(exit_15, LIGHT) == "warning"
    scheduler.finish(exit_15)
    assert scheduler.held() == (1, 0, 0)


def test_example_4_with_all_locks_first():
    exit_2, enter_10, exit_15 = the_stream()
    scheduler = TwoPhase(SAFE, whole=True)
    for transaction in (exit_2, enter_10, exit_15):
        scheduler.begin(transaction)
    assert [scheduler.may_start(one) for one in (exit_2, enter_10, exit_15)] == [True, False, False]
    scheduler.finish(exit_2)
    assert [scheduler.may_start(one) for one in (enter_10, exit_15)] == [True, False]


def test_example_5_the_low_water_mark_moves_to_18():
    exit_2, enter_10, exit_15 = the_stream()
    enter_18 = caused("ENTER", 18, 3)
    scheduler = LowWaterMark({}, lock=by_table, keeps_all=True)
    known = caused("EXIT", 1, -1)  # the example's version (1, safe) was written by somebody
    scheduler.store.write(LIGHT, "safe", known.stamp)
    for transaction in (exit_2, enter_10, exit_15, enter_18):
        scheduler.begin(transaction)
    assert scheduler.low_water_mark(LIGHT) == (10, 1)
    assert scheduler.write_locks.holders(LIGHT) == [(10, 1), (18, 3)]
    assert scheduler.may_read(exit_2, LIGHT)
    assert not scheduler.may_read(exit_15, LIGHT)
    assert scheduler.may_read(enter_10, LIGHT), "it is its own lock that is the mark"
    assert scheduler.may_write(enter_10, LIGHT), "readers before it do not hold it up"
    assert not scheduler.may_write(enter_18, LIGHT)
    scheduler.read(enter_10, LIGHT)
    scheduler.write(enter_10, LIGHT, "warning")
    assert not scheduler.may_read(exit_15, LIGHT), "T2 has not ended"
    scheduler.finish(enter_10)
    assert scheduler.low_water_mark(LIGHT) == (18, 3)
    assert [(version.stamp.ts, version.value) for version in scheduler.store.versions(LIGHT)] == [
        (1, "safe"),
        (10, "warning"),
    ]
    assert scheduler.read(exit_15, LIGHT) == "warning"
    assert scheduler.read(exit_2, LIGHT) == "safe", "behind the write in time of the system, and right"
    assert scheduler.may_read(enter_18, LIGHT)


@pytest.mark.parametrize("name", RIGHT)
def test_every_schedule_of_the_examples_is_right(name):
    way = RIGHT[name]
    given = World((*the_stream(), caused("ENTER", 18, 3)), SAFE)
    wanted = run_in_order(given.transactions, SingleEvent(SAFE))
    count = 0
    for ran in every_schedule(given, way):
        count += 1
        assert not ran.stuck
        assert sorted(ran.history) == sorted(wanted)
        assert anomalies(ran.history, versions=way.has_versions, rows=SAFE, lock=way.lock) == []
    if name == "SEI":
        assert count == 1
    elif "all locks first" not in name:
        assert count > 10


def test_every_schedule_of_pushed_events_shows_both_anomalies():
    given = World(the_stream(), SAFE)
    found = [tuple(one.name for one in anomalies(ran.history)) for ran in every_schedule(given, WRONG["push-based"])]
    assert {"read too late", "write too late"} == {name for names in found for name in names}
    assert () in found


# --- random schedules -------------------------------------------------------------------------------------------------


def differs(way: Way, seed: int, *, late: bool = False) -> list[object]:
    """What a random schedule of a random world has that SEI, one event after the other, has not."""
    given = world(seed, late=late)
    ran = interleaved(given, way, random.Random(seed))
    plain = SingleEvent(given.rows)
    wanted = run_in_order(given.in_order, plain)
    found = anomalies(ran.history, versions=way.has_versions, rows=given.rows, lock=way.lock)
    wrong: list[object] = [*ran.stuck, *found]
    if sorted(ran.history, key=order) != sorted(wanted, key=order):
        wrong.append("history")
    if ran.final != plain.final():
        wrong.append("store")
    return wrong


def order(done: Operation) -> tuple[object, ...]:
    return done.stamp, done.kind, ITEMS.index(done.item), done.value is None, done.value


WORLDS = 100_000 // (2 * len(RIGHT))
"""Each is run by all schedulers, in order and late: 100,000 schedules."""


@pytest.mark.parametrize("late", [False, True], ids=["in order", "late"])
@pytest.mark.parametrize("name", RIGHT)
def test_random_schedules_keep_definition_6(name, late):
    """They end, and read and leave in the store what one event after the other does."""
    for seed in range(cases(WORLDS)):
        assert differs(RIGHT[name], seed, late=late) == [], f"seed {seed}"


@pytest.mark.parametrize("name", WRONG)
def test_wrong_schedulers_are_noticed(name):
    assert first_noticed(partial(differs, WRONG[name]), 200) >= 0


@pytest.mark.parametrize("name", WRONG_IF_LATE)
def test_schedulers_that_do_not_wait_for_late_events_are_noticed(name):
    assert first_noticed(partial(differs, WRONG_IF_LATE[name], late=True), 200) >= 0


def test_definition_6_by_itself_notices_pushed_events():
    """By the order alone, and both anomalies."""
    names = set()
    for seed in range(200):
        given = world(seed)
        names |= {one.name for one in anomalies(interleaved(given, WRONG["push-based"], random.Random(seed)).history)}
    assert {"read too late", "write too late", "writes out of order"} <= names


def test_algorithm_2_as_printed_goes_wrong_with_equal_times_alone():
    """Two events at 5: the second reads at the low-water mark of the first, before it has written."""
    first = Transaction(Stamp(5, 0), (), (LIGHT,), lambda _: {LIGHT: "warning"})
    second = Transaction(Stamp(5, 1), (LIGHT,))
    for made, may in ((PrintedMark, True), (LowWaterMark, False)):
        scheduler = made(SAFE)
        scheduler.begin(first)
        scheduler.begin(second)
        assert scheduler.may_read(second, LIGHT) == may


# --- disorder ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [SingleEvent, TwoPhase, LowWaterMark])
def test_a_late_event_within_the_punctuations_finds_its_place(made):
    exit_15, enter_10 = caused("EXIT", 15, 0), caused("ENTER", 10, 1)
    scheduler = made(SAFE, in_order=False)
    history: list[Operation] = []
    scheduler.begin(exit_15)
    early = Steps(exit_15, scheduler, history)
    assert early.granted() == [], "something before 15 may come"
    scheduler.begin(enter_10)
    late = Steps(enter_10, scheduler, history)
    scheduler.punctuate(15)
    assert early.granted() == []
    late.do(LIGHT)
    late.do(LIGHT)
    scheduler.finish(enter_10)
    early.do(LIGHT)
    assert history[-1].value == "warning"
    with pytest.raises(DataError, match=r"ACEP-D007: event 2 is late: its time is 14, .* known up to 15"):
        scheduler.begin(caused("ENTER", 14, 2))


def test_an_event_at_the_time_of_a_punctuation_comes_behind():
    """So a read at it need not wait: what comes at the same time has a later arrival."""
    scheduler = LowWaterMark(SAFE, in_order=False)
    exit_15, enter_15 = caused("EXIT", 15, 0), caused("ENTER", 15, 1)
    scheduler.begin(exit_15)
    scheduler.punctuate(15)
    assert scheduler.may_read(exit_15, LIGHT)
    scheduler.begin(enter_15)
    scheduler.read(enter_15, LIGHT)
    scheduler.write(enter_15, LIGHT, "warning")
    scheduler.finish(enter_15)
    assert scheduler.read(exit_15, LIGHT) == "safe"


def test_buffers_hold_what_waits_to_be_sorted():
    exit_15, enter_10 = caused("EXIT", 15, 0), caused("ENTER", 10, 1)
    held = {}
    for made in (SingleEvent, TwoPhase, LowWaterMark):
        scheduler = made(SAFE, in_order=False)
        scheduler.begin(exit_15)
        scheduler.begin(enter_10)
        held[made] = [scheduler.held()]
        scheduler.punctuate(12)
        held[made].append(scheduler.held())
    assert held[SingleEvent] == [(1, 0, 2), (1, 0, 1)]
    assert held[TwoPhase] == [(1, 0, 2), (1, 2, 1)]
    assert held[LowWaterMark] == [(1, 3, 0), (1, 3, 0)]


# --- versions ---------------------------------------------------------------------------------------------------------


def test_versions_go_when_nobody_can_read_them():
    scheduler = LowWaterMark(SAFE)
    reader = Transaction(Stamp(1, 0), (LIGHT,))
    scheduler.begin(reader)
    for n in range(1, 6):
        writer = Transaction(Stamp(n, n), (), (LIGHT,), lambda _: {})
        scheduler.begin(writer)
        scheduler.write(writer, LIGHT, n)
        scheduler.finish(writer)
    assert scheduler.held().versions == 6
    assert scheduler.read(reader, LIGHT) == "safe"
    scheduler.finish(reader)
    assert scheduler.store.versions(LIGHT) == [(Stamp(5, 5), 5)]


def test_at_the_end_each_item_has_one_version():
    for seed in range(100):
        given = world(seed, late=bool(seed % 2))
        kept = interleaved(given, RIGHT["LWM, rows"], random.Random(seed))
        assert kept.versions == len(kept.final)
        hoarded = interleaved(given, RIGHT["LWM, rows, all versions"], random.Random(seed))
        writes = {(one.stamp, one.item) for one in hoarded.history if one.kind == "write"}
        assert hoarded.versions == len(given.rows) + len(writes)


def test_a_store_of_versions():
    store = Versions({LIGHT: "safe"})
    store.write(LIGHT, "warning", Stamp(10, 1))
    store.write(LIGHT, "violation", Stamp(10, 1))
    assert [store.read(LIGHT, Stamp(ts, 1)) for ts in (2, 10, 11)] == ["safe", "safe", "violation"]
    assert store.read(Item("status", "bob"), Stamp(3, 0)) is None
    assert store.versions(LIGHT)[0] == (FIRST, "safe")
    assert store.collect(Stamp(10, 1)) == 0, "its own transaction reads what was before"
    assert store.collect(Stamp(10, 2)) == 1
    assert len(store) == 1


# --- locks and rules of use -------------------------------------------------------------------------------------------


def test_a_set_of_stamps_knows_its_least_one():
    dice, stamps, plain = random.Random(1), Stamps(), set[Stamp]()
    for _ in range(2_000):
        stamp = Stamp(dice.randint(0, 9), dice.randint(0, 3))
        if stamp in plain:
            plain.remove(stamp)
            stamps.remove(stamp)
        else:
            plain.add(stamp)
            stamps.add(stamp)
        assert (stamps.least(), len(stamps)) == (min(plain, default=None), len(plain))
        assert set(stamps) == plain


def test_a_lock_on_a_table_is_one_however_many_rows():
    locks = LockTable(by_table)
    locks.insert(Stamp(1, 0), [Item("status", "ann"), Item("status", "bob"), Item("room")])
    assert len(locks) == 2
    assert locks.holders(Item("status", "eve")) == [(1, 0)]
    locks.release(Stamp(1, 0), [Item("status", "bob")])
    assert (len(locks), locks.least(Item("status", "ann"))) == (1, None)


def test_what_was_not_granted_is_not_done():
    scheduler = LowWaterMark(SAFE)
    enter_10, exit_15 = caused("ENTER", 10, 0), caused("EXIT", 15, 1)
    scheduler.begin(enter_10)
    scheduler.begin(exit_15)
    with pytest.raises(RuntimeError, match="may not read"):
        scheduler.read(exit_15, LIGHT)
    with pytest.raises(RuntimeError, match="may not read"):
        scheduler.read(enter_10, Item("status", "bob"))
    with pytest.raises(RuntimeError, match="may not write"):
        scheduler.write(exit_15, LIGHT, "safe")
    scheduler.write(enter_10, LIGHT, "warning")
    with pytest.raises(RuntimeError, match="would see itself"):
        scheduler.read(enter_10, LIGHT)
    with pytest.raises(ValueError, match="arrivals are numbered upwards"):
        scheduler.begin(caused("EXIT", 15, 1))


def test_a_read_of_what_the_same_transaction_wrote_is_noticed():
    own = [Operation("write", Stamp(1, 0), LIGHT, "b"), Operation("read", Stamp(1, 0), LIGHT, "b")]
    assert [(one.name, one.rule) for one in anomalies(own, rows={LIGHT: "a"})] == [("read after own write", 4)]
    assert [one.name for one in anomalies(own, rows={LIGHT: "a"}, versions=True)] == ["wrong value"]
    assert anomalies(own[::-1], rows={LIGHT: "a"}) == []
