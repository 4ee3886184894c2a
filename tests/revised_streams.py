"""Streams that are late, revised and taken back: a query, a stream and what befalls it, all of one seed.

``revised_model`` says what it means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from acep_approx import compile_query
from acep_approx.errors import AcepError
from acep_approx.query.parser import parse
from acep_approx.query.shape import atoms, kleene_variables, negated_variables
from tests.revised_model import Schedule, Step
from tests.rich_worlds import COLUMNS, Dice, Row, rich_world, stream
from tests.tied_worlds import tied, tied_world

MOST_MATCHES = 150
"""Of the whole stream of a short schedule; longer streams are cut."""

# --- queries and the events that come in the end ----------------------------------------------------------------------

TWELVE = (
    "PATTERN SEQ(A a, B b, C c) WITHIN 6",
    "PATTERN SEQ(A a, B b, C c) WHERE [g] WITHIN 8 ERRORS 1",
    "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x >= b.x WITHIN 8",
    "PATTERN SEQ(A a, ~(B b), C c) WHERE [g] WITHIN 6",
    "PATTERN SEQ(A a, C c, ~(B b)) WITHIN 5",
    "PATTERN SEQ(~(B b), A a, C c) WITHIN 5",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [g] AND a[i].x >= a[i-1].x AND b.x < a[a.LEN].x } WITHIN 8",
    "PATTERN SEQ(A+ a[], B b) WHERE partition_contiguity(a[], b) { [g] } WITHIN 8",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { a.x <= b.x } WITHIN 8",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE sum(b[].x) > 3 AND c.x > a.x WITHIN 5 ERRORS 1",
    "PATTERN SEQ(A a, B b) WHERE [g] AND b.x > a.x WITHIN 4 events",
    "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 6 NON OVERLAP",
)
RETURNING = (
    "PATTERN SEQ(A a, B b) WHERE [g] WITHIN 5 RETURN a.x AS first, b.id AS last",
    "PATTERN SEQ(A a, B+ b[], ~(C c)) WITHIN 4 RETURN count(b[]) AS n, max(b[].x) AS high, a.s AS s",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match WITHIN 6 ERRORS 1 RETURN a.id AS a, b[b.LEN].y AS y",
    "PATTERN SEQ(ANY a, ANY b) WHERE strict_contiguity { b.x > a.x } WITHIN 3 RETURN b.x - a.x AS more",
    "PATTERN SEQ(A a, B b, A c) WITHIN 6 events NON OVERLAP RETURN a.ts AS begun, b.s = c.s AS same",
)


def world(dice: Dice) -> tuple[str, tuple[Row, ...]]:
    """A query, as text, and a stream."""
    kind = dice.pick((*["rich"] * 5, "no overlap", "no overlap", "tied", "twelve", "return", "return too"))
    if kind == "tied":
        made = tied_world(dice.random)
        return made.text, tied(longer(dice), dice)
    if kind in ("twelve", "return"):
        return dice.pick(TWELVE if kind == "twelve" else RETURNING), longer(dice)
    text = rich_world(dice.random, chooses=kind == "no overlap").text
    return returning(text, dice) if kind == "return too" else text, longer(dice)


def longer(dice: Dice) -> tuple[Row, ...]:
    """One to four streams of the rich worlds, one after the other, some with more events at one time."""
    rows: list[Row] = []
    for _ in range(dice.pick((1, 2, 2, 3, 3, 4))):
        begin = (rows[-1]["ts"] if rows else 0) + dice.pick((0, 1, 1, 4, 20))
        more = stream(dice)
        rows += [{**row, "ts": begin + row["ts"] - more[0]["ts"]} for row in more]
    return tied(tuple(rows), dice) if dice.chance(3) else tuple(rows)


def returning(text: str, dice: Dice) -> str:
    """A query with a clause RETURN, if it can have one."""
    query = parse(text)
    if query.is_regex:
        return text
    repeated, negated = kleene_variables(query.pattern), negated_variables(query.pattern)
    one, several = ("{}.x", "{}.id", "{}.y", "{}.s"), ("count({}[])", "max({}[].x)", "{0}[{0}.LEN].id", "{}[1].s")
    bound = [atom.variable for atom in atoms(query.pattern) if atom.variable not in negated]
    shown = [dice.pick(several if name in repeated else one).format(name) for name in bound]
    return f"{text} RETURN {', '.join(f'{what} AS r{i}' for i, what in enumerate(shown))}"


def asked(dice: Dice) -> tuple[str, str, tuple[Row, ...]]:
    """A query, an engine that runs it, and a stream with not too many matches; most have some."""
    while True:
        text, rows = world(dice)
        engine = dice.pick(("auto", "auto", "runs", "cells"))
        for one in (engine, "auto"):
            found = MOST_MATCHES + 1
            while (found := matches_of(text, one, rows)) > MOST_MATCHES:
                rows = rows[: len(rows) // 2]
            if found > 0 or (found == 0 and dice.chance(8)):
                return text, one, rows


def matches_of(text: str, engine: str, rows: tuple[Row, ...]) -> int:
    """How many matches there are; -1 where the engine refuses the query."""
    try:
        table = Schedule(0, text, ()).table([{**row, "id": 0} for row in rows])
        return sum(compile_query(text, engine=engine).match(table).count_by_errors().values())
    except AcepError:
        return -1


# --- schedules at random ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Codes:
    """The words of one system for changes; what is empty it cannot say."""

    insert: tuple[Any, ...]
    delete: Any
    halves: tuple[Any, Any] | None = None
    replace: Any = None
    watermark: Any = "watermark"


CODES = (
    *(Codes(("+I",), "-D", ("-U", "+U")),) * 3,
    Codes(("INSERT",), "DELETE", ("UPDATE_BEFORE", "UPDATE_AFTER")),
    Codes(("insert",), "delete", ("update_preimage", "update_postimage")),
    *(Codes(("c", "r"), "d", None, "u"),) * 2,
    Codes(("+1",), "-1"),
    Codes(("1",), "-1"),
    Codes((1,), -1, watermark=None),
    Codes(("+I", "insert", "r"), "delete", ("-U", "UPDATE_AFTER"), "u"),
)

SPECULATED: tuple[str | int, ...] = ("early", "early", "early", "early", "early", "final", "final", 1, 2, 5)


def schedule(seed: int) -> Schedule:
    """The schedule that comes of a seed."""
    dice = Dice(Random(seed))
    text, engine, rows = asked(dice)
    codes = None if dice.chance(4) else dice.pick(CODES)
    made = Schedule(
        seed,
        text,
        (),
        engine=engine,
        output=dice.pick(("matches", "matches", "matches", "points", "counts")),
        delay=dice.pick((None, None, None, 0, 1, 3, 10)),
        emit=dice.pick(SPECULATED),
        id=dice.pick((None, "id", "id")),
        merge=dice.pick((None, None, None, "none", "equal")),
        is_id_text=dice.chance(2),
    )
    if codes:
        asks = dice.pick((None, "op", "change"))
        made = replace(made, op=asks or "op", asks_op=asks, is_op_number=codes.insert == (1,))
    writer = Writer(dice, made, codes, dice.pick((2, 4, 8)))
    writer.write(arriving(named(rows, made, dice), dice))
    return replace(made, steps=tuple(cut(writer.said, dice)))


def long_schedule(text: str, seed: int) -> Schedule:
    """For one query: hundreds of events, three keys, windows that close, a watermark, small pushes."""
    dice = Dice(Random(seed))
    tick, rows = 0, []
    for _ in range(dice.random.randint(200, 400)):
        tick += dice.pick((0, 1, 1, 2, 3))
        values: Row = {"ts": tick, "type": dice.pick("AABBC"), "x": dice.pick(range(6)), "g": dice.pick("pqr")}
        rows.append({**dict.fromkeys(COLUMNS), **values, "s": dice.pick(("u", None))})
    codes = dice.pick(CODES[:5])
    made = Schedule(
        seed,
        text,
        (),
        delay=dice.pick((5, 10, 20)),
        emit=dice.pick(SPECULATED),
        id=dice.pick((None, "id")),
        op="op",
        is_id_text=dice.chance(2),
    )
    writer = Writer(dice, made, codes, 20)
    late = [row["ts"] + (dice.random.randint(1, 15) if dice.chance(8) else 0) for row in rows]
    arrived = named(tuple(rows), made, dice)
    writer.write([arrived[i] for i in sorted(range(len(rows)), key=late.__getitem__)])
    return replace(made, steps=tuple(cut(writer.said, dice, most=8, restarts=25)))


def early_schedule(text: str, seed: int) -> Schedule:
    """For one query: events with ids that are changed, time that passes now and then, and all of it is speculated."""
    dice = Dice(Random(seed))
    delay = dice.pick((None, None, 5))
    made = Schedule(seed, text, (), delay=delay, id="id", op="op", asks_op="op", is_id_text=dice.chance(2))
    tick, rows = 0, []
    for _ in range(dice.random.randint(10, 30)):
        tick += dice.pick((0, 1, 1))
        values: Row = {"ts": tick, "type": dice.pick("AAABBBC"), "x": dice.pick((0, 1, 2, 0, 1, None))}
        values |= {"s": dice.pick("uv"), "g": dice.pick(("p", "p", "p", "p", "p", "q", None))}
        rows.append({**dict.fromkeys(COLUMNS), **values})
    writer = Writer(dice, made, dice.pick(CODES[:6]), dice.pick((2, 4, 8)))
    writer.write(arriving(named(tuple(rows), made, dice), dice))
    return replace(made, steps=tuple(cut(writer.said, dice)))


def named(rows: tuple[Row, ...], made: Schedule, dice: Dice) -> list[Row]:
    """The events with ids that say nothing of when they come; without changes some have none."""
    numbers: list[Any] = list(range(-3, len(rows) - 3))
    dice.random.shuffle(numbers)
    if made.is_id_text:
        numbers = [f"e{number}" for number in numbers]
    if made.id and not made.op and dice.chance(6):
        numbers = [None if dice.chance(4) else number for number in numbers]
    return [{**row, "id": number} for row, number in zip(rows, numbers, strict=True)]


def arriving(rows: list[Row], dice: Dice) -> list[Row]:
    """The events in the order in which they come."""
    how, most = dice.pick(("in order", "some late", "some late", "all late", "all late", "any")), dice.pick((2, 5, 20))
    if how == "any":
        return dice.random.sample(rows, len(rows))
    chance = {"in order": 10**9, "some late": 4, "all late": 1}[how]
    late = [row["ts"] + (dice.random.randint(0, most) if dice.chance(chance) else 0) for row in rows]
    return [rows[i] for i in sorted(range(len(rows)), key=late.__getitem__)]


class Writer:
    """Writes down what comes, and follows it with the model, so that what is revised is mostly there.

    Parameters
    ----------
    dice : Dice
    made : Schedule
        Without steps.
    codes : Codes or None
        None: all events are inserted.
    seldom : int
        After one in so many events something is revised, or time passes.
    """

    def __init__(self, dice: Dice, made: Schedule, codes: Codes | None, seldom: int) -> None:
        self.dice, self.made, self.codes, self.seldom = dice, made, codes, seldom
        self.model = made.model()
        self.said: list[Row | int] = []
        self.is_bold = dice.chance(3)
        self.gone: list[Row] = []
        self.ids = 100

    def write(self, arriving: list[Row]) -> None:
        """Rows and punctuations (whole numbers) for events that come in this order."""
        for at, row in enumerate(arriving):
            self.say("insert", row)
            while self.codes and self.dice.chance(self.seldom):
                self.revise(arriving[at:])
            if self.dice.chance(self.seldom * (1 if self.made.delay is None else 4)):
                self.pass_time(arriving[at + 1 :])

    def say(self, kind: str, row: Row) -> None:
        """One row with the code of what it means."""
        if self.codes:
            words = {
                "insert": self.dice.pick(self.codes.insert),
                "delete": self.codes.delete,
                "replace": self.codes.replace,
                "watermark": self.codes.watermark,
            }
            words |= dict(zip(("before", "after"), self.codes.halves or (), strict=False))
            row = {**row, str(self.made.op): words[kind]}
        self.said.append(row)
        self.model.push([row])

    def pass_time(self, coming: list[Row]) -> None:
        """Mostly to where no event is late that comes; now and then anywhere, also backwards."""
        ticks = [row["ts"] for row in coming]
        low, now = self.model.watermark, self.model.newest or 0
        most = now + self.dice.pick((0, 1, 5)) if self.is_bold or not ticks else min(ticks)
        least = now - 5 if low is None else low
        tick = self.dice.random.randint(least, max(least, most))
        if low is not None and self.dice.chance(10):
            tick = low - self.dice.pick((1, 3))
        if self.codes and self.codes.watermark and self.dice.chance(2):
            self.say("watermark", dict.fromkeys((*COLUMNS, "id")) | {"ts": tick})
            return
        self.said.append(tick)
        self.model.punctuate(tick)

    def revise(self, coming: list[Row]) -> None:
        """Take an event back, or put another one in its place; or try that with one that is not there."""
        pick, model = self.dice.pick, self.model
        known = [held.row for held in (model.live if self.dice.chance(8) else model.changeable())]
        kind = pick((*["delete"] * 4, *["update"] * 4, "never came", "came twice", "insert twice", "insert again"))
        if kind == "never came" and coming[1:]:
            can_replace = self.codes is not None and self.codes.replace and self.made.id and self.dice.chance(2)
            self.say("replace" if can_replace else "delete", self.plain(pick(coming[1:])))
        elif kind == "came twice" and self.gone:
            self.say("delete", self.meant(pick(self.gone)))
        elif kind == "insert twice" and self.made.id and model.changeable():
            self.say("insert", self.changed(pick(model.changeable()).row))
        elif kind == "insert again" and self.gone:
            self.insert_again(pick(self.gone))
        elif kind == "update" and known:
            self.update(pick(known))
        elif known:
            self.gone.append(self.plain(pick(known)))
            self.say("delete", self.meant(self.gone[-1]))

    def insert_again(self, row: Row) -> None:
        """What was taken back comes once more; its id may stand for another event by now."""
        if all(held.row["id"] != row["id"] for held in self.model.live):
            self.say("insert", row)

    def update(self, row: Row) -> None:
        """In two halves, in one row, or, where there is no word for it, by taking one back and inserting another."""
        assert self.codes
        row = self.plain(row)
        self.gone.append(row)
        after = row if self.dice.chance(8) else self.changed(row)
        is_settled = self.model.is_late(row["ts"])  # then an event of this id stays, and no other may have it
        if self.codes.replace and self.made.id and not is_settled and (not self.codes.halves or self.dice.chance(2)):
            self.say("replace", after)
            return
        before, following = ("before", "after") if self.codes.halves else ("delete", "insert")
        self.say(before, self.meant(row))
        if not is_settled and not self.dice.chance(12):
            self.say(following, after)

    def changed(self, row: Row) -> Row:
        """The event with other values; now and then at another time."""
        pick = self.dice.pick
        new = {"type": pick("ABC"), "x": pick((0, 1, 2, 3)), "g": pick((row["g"], row["g"], "p", "q"))}
        if self.dice.chance(3):
            new["ts"] = row["ts"] + pick((-4, -1, 1, 1, 3))
        return {**self.plain(row), **new}

    def meant(self, row: Row) -> Row:
        """What a retraction of an event says: all of it, or, where its id is enough, also something else."""
        row = self.plain(row)
        if self.made.id and self.dice.chance(3):
            ts = row["ts"] + self.dice.pick((0, 0, 1))  # a retraction may have a time of its own
            row = {**row, "x": None, "type": None, "ts": max(row["ts"], min(ts, self.model.newest or 0))}
        return row

    def plain(self, row: Row) -> Row:
        """The row without its code."""
        return {name: value for name, value in row.items() if name != self.made.op}


def cut(said: list[Row | int], dice: Dice, most: int | None = None, restarts: int | None = None) -> Iterator[Step]:
    """Pushes of any size, with nothing in some, and restarts between them."""
    most = most or dice.pick((1, 2, 4, 8, 40))
    restarts = restarts or dice.pick((2, 5, 10**9))
    rows: list[Row] = []
    size = dice.random.randint(1, most)
    for one in said:
        if isinstance(one, int):
            yield from (Step(tuple(rows)),) if rows else ()
            yield Step(tick=one)
            rows = []
            continue
        rows.append(one)
        if len(rows) >= size:
            yield Step(tuple(rows))
            rows, size = [], dice.random.randint(1, most)
            yield from (Step(()),) if dice.chance(15) else ()
        yield from (Step(),) if not rows and dice.chance(restarts) else ()
    yield from (Step(tuple(rows)),) if rows else ()
