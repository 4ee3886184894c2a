"""Watermarks against a model in plain Python, in any split, over restarts: the same before each row."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from acep_approx.errors import DataError
from acep_approx.kernels import watermarks
from acep_approx.run.watermarks import ENDED, NEVER, Held, Holder, Watermarks
from tests.cases import cases
from tests.patience import calls
from tests.tiers_forced import never, tier

# --- the model ------------------------------------------------------------------------------------------------


class Sender:
    """A source, as the model has it."""

    def __init__(self):
        self.newest = self.mark = NEVER
        self.last = None
        self.waiting = []

    def go_on(self, current):
        while self.waiting:
            number, tick = min(self.waiting)
            if number > self.last + 1 and tick >= max(self.mark, current):
                return
            self.waiting.remove((number, tick))
            if number > self.last:
                self.last, self.mark = number, max(self.mark, tick)


class Model:
    """The obvious way: all sources are looked at after each row."""

    def __init__(self, delay, idle=None, by_source=False, by_sequence=False):
        self.delay, self.idle, self.by_source, self.by_sequence = delay, idle, by_source, by_sequence
        self.current = NEVER
        self.senders = {}

    def row(self, tick, source, number, is_punctuation):
        """Take in a row; the watermark before it."""
        before, name = self.current, (type(source), source) if self.by_source else (type(None), None)
        if is_punctuation and name[1] is None:
            self.current = max(self.current, tick)
            for sender in self.senders.values():
                sender.go_on(self.current)
        else:
            sender = self.senders.setdefault(name, Sender())
            sender.newest = max(sender.newest, tick)
            if is_punctuation:
                sender.mark = max(sender.mark, tick)
            elif self.delay is not None:
                sender.mark = max(sender.mark, tick - self.delay)
            if self.by_sequence and not is_punctuation:
                if sender.last is None:
                    sender.last, sender.mark = number, max(sender.mark, tick)
                elif number > sender.last:
                    sender.waiting.append((number, tick))
            sender.go_on(self.current)
        marks = [sender.mark for sender in self.senders.values() if not self.is_idle(sender)]
        self.current = max(self.current, min(marks, default=NEVER))
        return before

    def goes_back(self, tick, source):
        """Whether a punctuation would."""
        if source is None or not self.by_source:
            return tick < self.current
        known = self.senders.get((type(source), source))
        return known is not None and tick < known.mark

    def is_idle(self, sender):
        newest = max(other.newest for other in self.senders.values())
        return self.idle is not None and newest - sender.newest > self.idle

    def held(self):
        """What ``holding`` says, in any order."""
        idle = {name for name, sender in self.senders.items() if self.is_idle(sender)}
        active = {name: sender for name, sender in self.senders.items() if name not in idle}
        least = min((sender.mark for sender in active.values()), default=None)
        by = {
            (name, sender.mark, sender.last + 1 if sender.waiting else None)
            for name, sender in active.items()
            if sender.mark == least
        }
        return by, idle


def held_as_sets(held):
    """Sources with their types: 1 is not True."""
    by = {((type(one.source), one.source), one.watermark, one.missing) for one in held.by}
    assert len(by) == len(held.by)
    return by, {(type(source), source) for source in held.idle}


# --- random streams -------------------------------------------------------------------------------------------

NAMES = [["x", "y", "z"], ["x", None], [1, 2, 300], [True, False, None], ["x"], [None], [f"n{i}" for i in range(40)]]


def stream(random, size):
    """Rows (tick, source, number, whether a punctuation) in disorder; some are lost, come twice, or are wrong."""
    names, disorder = random.choice(NAMES), random.choice([0, 3, 10])
    lost, tick, rows, numbers = random.choice([0, 0, 0.1]), 0, [], {}
    for place in range(size):
        tick += random.choice([0, 1, 2, 5, 5, 30] if random.random() < 0.2 else [0, 1, 2])
        source = random.choice(names[: 1 + place // 4])
        number = numbers[source] = numbers.get(source, random.randrange(3)) + 1
        if random.random() >= lost:
            rows += [(place + disorder * random.random(), (tick, source, number, False))] * random.choice([1] * 9 + [2])
        if random.random() < 0.05:
            wrong = (tick - random.randrange(20), source, number + random.randrange(-3, 9), False)
            rows.append((place + disorder * random.random(), wrong))
        if random.random() < 0.1:
            said = (tick - random.randrange(15), random.choice([source, None]), 0, True)
            rows.append((place + disorder * random.random(), said))
    return [row for _, row in sorted(rows, key=lambda row: row[0])]


def options(random):
    """What a user may ask for."""
    return {
        "delay": random.choice([None, None, 0, 3, 20]),
        "idle": random.choice([None, 0, 4, 25]),
        "by_source": random.random() < 0.6,
        "by_sequence": random.random() < 0.5,
    }


def encoded(random, names):
    """Sources as a column, in some encoding."""
    kinds = {type(name) for name in names} - {type(None)}
    column = pa.array(names, {str: pa.string(), int: pa.int64(), bool: pa.bool_()}[kinds.pop()] if kinds else None)
    how = random.randrange(4)
    if how == 0:
        return column
    if how == 1 and pa.types.is_int64(column.type):
        return column.cast(pa.uint16())
    if how == 2 and pa.types.is_string(column.type):
        return column.cast(random.choice([pa.large_string(), pa.string_view()]))
    coded = column.dictionary_encode()
    if how == 3 and pa.types.is_string(column.type):
        values = pa.array(["spare", *coded.dictionary.to_pylist(), "x", None])
        places = [None if name is None else values.to_pylist().index(name) for name in names]
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), values)
    return coded


def advanced(marks, random, rows):
    """Give rows to watermarks."""
    ticks, sources, numbers, said = zip(*rows, strict=True) if rows else ((),) * 4
    columns = [np.array(ticks, np.int64), encoded(random, sources), np.array(numbers, np.int64), np.array(said, bool)]
    for column in (columns[0], columns[2], columns[3]):
        column.flags.writeable = random.random() < 0.5
    if not any(said) and random.random() < 0.5:
        columns[3] = None
    if all(said) and random.random() < 0.5:
        columns[2] = None  # punctuations have no number
    return marks.advance(*columns).tolist()


def parts(random, rows):
    """Rows in parts, of which some are empty and many have one row."""
    cuts = sorted(random.choices(range(len(rows) + 1), k=random.choice([0, 2, 10, len(rows)])))
    return [rows[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def restarted(marks):
    """After a way through JSON."""
    return Watermarks.restore(json.loads(json.dumps(marks.header())))


def test_as_the_model_in_any_split_and_over_restarts():
    for seed in range(cases(2000)):
        random = Random(seed)
        asked, rows = options(random), stream(random, random.choice([3, 20, 60]))
        model, marks = Model(**asked), Watermarks(**asked)
        for part in parts(random, rows):
            assert advanced(marks, random, part) == [model.row(*row) for row in part], seed
            assert marks.current == model.current
            if asked["by_source"] or asked["by_sequence"]:
                assert held_as_sets(marks.holding()) == model.held()
            if random.random() < 0.3:
                marks = restarted(marks)


def test_what_is_kept_does_not_depend_on_the_split():
    for seed in range(cases(500)):
        random = Random(seed)
        asked, rows = options(random), stream(random, 40)
        whole, cut = Watermarks(**asked), Watermarks(**asked)
        before = advanced(whole, random, rows)
        assert [mark for part in parts(random, rows) for mark in advanced(cut, random, part)] == before
        assert cut.header() == whole.header() == restarted(whole).header()


def test_punctuations_by_call_are_those_by_row():
    for seed in range(cases(1000)):
        random = Random(seed)
        asked, rows = options(random), stream(random, 40)
        model, marks = Model(**asked), Watermarks(**asked)
        for row in rows:
            tick, source, _, is_punctuation = row
            if is_punctuation:
                kept, goes_back = json.dumps(marks.header()), model.goes_back(tick, source)
                assert marks.punctuate(tick, source) is not goes_back, seed
                if goes_back:
                    assert json.dumps(marks.header()) == kept
                    continue
                model.row(*row)
            else:
                assert advanced(marks, random, [row]) == [model.row(*row)]
            assert marks.current == model.current
            marks = restarted(marks) if random.random() < 0.1 else marks


# --- by hand --------------------------------------------------------------------------------------------------


def ints(*values):
    return np.array(values, np.int64)


def test_without_a_delay_only_punctuations_move_it():
    marks = Watermarks(None)
    assert marks.advance(ints(5, 9)).tolist() == [NEVER, NEVER]
    said = np.array([False, True, False, True])
    assert marks.advance(ints(20, 7, 30, 3), is_punctuation=said).tolist() == [NEVER, NEVER, 7, 7]
    assert marks.current == 7
    assert not marks.punctuate(6)
    assert marks.punctuate(7)
    assert marks.punctuate(np.int64(8), "x"), "rows have no sources: it counts for all"
    assert restarted(marks).current == marks.current == 8
    assert marks.holding() == Held()


def test_the_largest_ticks():
    for by_source, idle, current in ((False, None, -1), (True, None, 1 - 2**61), (True, 2**60, -1)):
        marks = Watermarks(2**60, by_source=by_source, idle=idle)
        found = marks.advance(ints(1 - 2**60, 2**60 - 1), pa.array(["x", "y"]))
        assert found.tolist() == [NEVER, 1 - 2**61]
        assert marks.current == current


def test_after_the_end_all_is_late():
    for by_source in (False, True):
        marks = Watermarks(1, by_source=by_source)
        marks.advance(ints(4), pa.array(["x"]))
        marks.close()
        assert marks.current == restarted(marks).current == ENDED
        assert marks.advance(ints(5, 6), pa.array(["x", "y"])).tolist() == [ENDED, ENDED]
        assert not marks.punctuate(7)


def test_a_source_that_is_silent_holds_it_back_until_it_is_idle():
    marks = Watermarks(0, idle=10, by_source=True)
    names = pa.array(["x", "y", "x", "x", "x"])
    assert marks.advance(ints(1, 2, 9, 12, 13), names).tolist() == [NEVER, 1, 1, 2, 2]
    assert marks.current == 13
    assert marks.holding() == Held((Holder("x", 13),), ("y",))
    assert marks.advance(ints(5, 20, 14), pa.array(["y", "x", "y"])).tolist() == [13, 13, 20]
    assert marks.holding() == Held((Holder("y", 14),))
    assert marks.current == 20, "it never falls"
    assert marks.advance(ints(21, 30), pa.array(["x", "y"])).tolist() == [20, 20]
    assert marks.current == 21


def test_a_punctuation_is_a_sign_of_life_and_one_for_all_is_none():
    marks = Watermarks(None, idle=10, by_source=True)
    marks.advance(ints(1, 2), pa.array(["x", "y"]))
    assert marks.current == NEVER
    assert marks.punctuate(9, "x")
    assert marks.holding() == Held((Holder("y", NEVER),))
    assert marks.punctuate(30)
    assert (marks.current, marks.holding().by) == (30, (Holder("y", NEVER),))
    assert marks.punctuate(40, "x")
    assert (marks.current, marks.holding()) == (40, Held((Holder("x", 40),), ("y",)))
    assert marks.punctuate(35, "y"), "behind the watermark, but not behind its own"
    assert not marks.punctuate(34, "y")
    assert (marks.current, marks.holding()) == (40, Held((Holder("y", 35),)))


def test_null_is_a_source_and_one_is_not_true():
    marks = Watermarks(0, by_source=True)
    marks.advance(ints(5), pa.array([None], pa.int8()))
    marks.advance(ints(6), pa.array([1]))
    marks.advance(ints(7), pa.array([True]))
    marks.advance(ints(8), pa.array(["1"]))
    for same in (marks, restarted(marks)):
        found = []
        for column in (pa.nulls(1), pa.array([1], pa.uint64()), pa.array([True]), pa.array(["1"]).dictionary_encode()):
            found.append((same.current, same.holding().by[0].source))
            same.advance(ints(20), column)
        assert found == [(5, None), (6, 1), (7, True), (8, "1")]
        assert list(map(type, same.header()["sources"]["name"])) == [type(None), int, bool, str]
        assert same.current == 20
        assert same.punctuate(21, np.int64(1))
        assert {type(one.source) for one in same.holding().by} == {type(None), bool, str}


def test_values_of_a_dictionary_that_no_row_has_are_no_sources():
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["x", "unused", "y"]))
    marks = Watermarks(0, by_source=True)
    marks.advance(ints(4, 6), column)
    assert marks.header()["sources"]["name"] == [None, "y", "x"]
    assert marks.current == 4


@pytest.mark.parametrize("column", [pa.array([1.5]), pa.array([["x"]]), pa.array([1], pa.timestamp("us"))])
def test_types_that_name_no_source(column):
    marks = Watermarks(0, by_source=True)
    kept = marks.header()
    with pytest.raises(DataError, match="cannot say which source") as caught:
        marks.advance(ints(1), column)
    assert caught.value.code == "ACEP-D030"
    assert marks.header() == kept


# --- numbers --------------------------------------------------------------------------------------------------


def test_events_behind_a_gap_do_not_move_it():
    marks = Watermarks(None, by_sequence=True)
    assert marks.advance(ints(10, 12, 15, 11, 20), None, ints(1, 3, 4, 2, 5)).tolist() == [NEVER, 10, 10, 10, 15]
    assert marks.current == 20
    marks.advance(ints(40, 50), None, ints(8, 9))
    assert marks.holding() == Held((Holder(None, 20, missing=6),))


def test_the_first_number_is_that_of_the_first_event():
    marks = Watermarks(None, by_sequence=True)
    assert marks.advance(ints(10, 8, 12), None, ints(5, 4, 6)).tolist() == [NEVER, 10, 10]
    assert marks.current == 12


def test_a_gap_is_given_up_when_what_is_missing_would_be_late():
    marks = Watermarks(None, by_sequence=True)
    marks.advance(ints(10, 30, 31), None, ints(1, 3, 4))
    assert marks.punctuate(30)
    assert (marks.current, marks.holding().by[0].missing) == (30, 2), "2 may come, at 30"
    restored = restarted(marks)
    for same in (marks, restored):
        assert same.punctuate(31)
        assert same.current == 31
        assert same.holding() == Held((Holder(None, 31),))
        assert same.advance(ints(32, 31), None, ints(5, 2)).tolist() == [31, 32]
    marks = Watermarks(5, by_sequence=True)
    marks.advance(ints(10, 20, 25), None, ints(1, 3, 9))
    assert (marks.current, marks.holding().by[0].missing) == (20, 2)
    marks.advance(ints(26), None, ints(10))
    assert (marks.current, marks.holding().by[0].missing) == (21, 4)


def test_what_was_lost_is_not_waited_for_for_ever():
    random = Random(0)
    rows = [(tick, None, tick, False) for tick in range(1000) if tick == 0 or random.random() < 0.9]
    marks = Watermarks(20, by_sequence=True)
    advanced(marks, random, rows)
    assert marks.current >= 979
    assert len(marks.header()["waiting"]["number"]) < 100


def test_no_event_of_honest_numbers_is_late_and_all_is_complete_at_the_end():
    for seed in range(cases(500)):
        random = Random(seed)
        names = random.choice([[None], ["x", "y", "z"]])
        ticks = {name: np.cumsum([0, *random.choices([0, 1, 7], k=random.randrange(30))]).tolist() for name in names}
        rest = [(tick, name, number, False) for name in names for number, tick in enumerate(ticks[name]) if number]
        random.shuffle(rest)
        rows = [(ticks[name][0], name, 0, False) for name in names] + rest
        marks = Watermarks(None, by_source=len(names) > 1, by_sequence=True)
        before = [mark for part in parts(random, rows) for mark in advanced(marks, random, part)]
        assert all(mark <= row[0] for mark, row in zip(before, rows, strict=True)), seed
        assert marks.current == min(every[-1] for every in ticks.values())
        assert all(one.missing is None for one in marks.holding().by)


def test_many_events_behind_one_gap():
    number = 20_000
    order = np.random.default_rng(0).permutation(np.arange(2, number))
    marks = Watermarks(None, by_sequence=True)
    marks.advance(np.concatenate((ints(0), order)), None, np.concatenate((ints(0), order)))
    assert (marks.current, marks.holding().by[0].missing) == (0, 1)
    marks = restarted(marks)
    marks.advance(ints(1), None, ints(1))
    assert marks.current == number - 1
    assert marks.header()["waiting"] == {"number": [], "tick": [], "left": [], "right": []}


# --- work -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [None, 3])
def test_whole_columns_at_once(delay):
    for ticks in (np.arange(5000), np.random.default_rng(0).integers(0, 5000, 5000)):
        marks = Watermarks(delay)
        assert calls(lambda marks=marks, ticks=ticks: marks.advance(ticks)) < 100
        expected = NEVER if delay is None else ticks.max() - delay
        assert marks.current == expected


def test_the_kernel_is_compiled_once_for_all_columns():
    column = np.arange(6)
    column.flags.writeable = False
    with tier(never):
        for by_sequence in (False, True):
            marks = Watermarks(1, by_source=True, by_sequence=by_sequence)
            for ticks in (np.arange(6), column, np.arange(12)[::2]):
                marks.advance(ticks, pa.array(list("xyxyxy")), column, None)
            marks.punctuate(3, "x")
    assert len(watermarks.advance.kinds) == 1


def test_no_numba_without_sources_and_numbers():
    """A command starts without it."""
    from tests.processes import python

    code = (
        "import sys, numpy as np; from acep_approx.run.watermarks import Watermarks\n"
        "print(Watermarks(2).advance(np.array([1, 5])).tolist()[1:], 'numba' in sys.modules, 'pandas' in sys.modules)"
    )
    assert python("-c", code).stdout.split() == ["[-1]", "False", "False"]


def test_sources_that_are_waited_for():
    """They hold the watermark back, whatever counts as idle, until they send something or are given up."""
    for idle in (None, 5):
        marks = Watermarks(0, idle=idle, by_source=True)
        for source in (1, 2, 3):
            marks.expect(source)
        marks.advance(np.array([100]), pa.array([0]))
        marks.expect(0)  # it is known
        assert marks.current == NEVER
        assert [one.source for one in marks.holding().by] == [1, 2, 3]
        assert marks.holding().idle == ()
        marks = Watermarks.restore(json.loads(json.dumps(marks.header())))
        assert marks.expect_no_more(1)
        assert not marks.expect_no_more(1)
        marks.advance(np.array([98, 99]), pa.array([2, 2]))
        assert marks.current == NEVER
        assert not marks.expect_no_more(2)
        assert marks.expect_no_more(3)
        assert marks.current == 99
        marks.advance(np.array([120]), pa.array([0]))
        assert marks.current == (120 if idle else 99)
        marks.advance(np.array([110]), pa.array([1]))
        assert marks.current == (120 if idle else 99)
