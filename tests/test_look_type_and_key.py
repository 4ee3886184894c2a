"""Which columns ``acep look`` takes for the type and the key, where no column is called so."""

import random
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx.profiling import look
from acep_approx.profiling.roles import KeyOrder
from experiments.hospital import Ward
from experiments.streams import generated
from tests.command_line import acep

REAL = Path(__file__).parents[2] / "shared/data"
GERMAN = """Zeit;Kunde;Vorgang;Betrag
2024-01-01 10:00;anna;bestellt;10
2024-01-01 10:05;bert;bestellt;20
2024-01-01 11:00;anna;bezahlt;10
2024-01-01 12:00;anna;geliefert;10
2024-01-01 13:00;bert;geliefert;20
"""


def _steps(steps, cases, pause, **others):
    """Rows of cases that each go through the same steps, as ``(time, case, step, other, ...)``, in order of time."""
    chance = random.Random(3)
    rows = []
    for case in range(cases):
        time = case * pause
        for step in steps:
            time += chance.randint(1, 3 * pause)
            rows.append((time, case + 1000, step, *(chance.choice(values) for values in others.values())))
    return sorted(rows)


def _sensors():
    """A sensor's number, its status and a measure."""
    chance, last = random.Random(3), {}
    after = {"ok": ("ok", "ok", "warn"), "warn": ("ok", "fail"), "fail": ("repair",), "repair": ("ok",)}
    for time in range(200):
        sensor = 100 + chance.randint(1, 5)
        last[sensor] = chance.choice(after[last.get(sensor, "ok")])
        yield time, sensor, last[sensor], round(chance.random(), 2)


def _requests():
    """A visitor, a path and a status."""
    chance = random.Random(3)
    for visit in range(60):
        host = f"10.0.0.{chance.randint(1, 6)}"
        for pause, path in enumerate(("/login", "/cart", "/pay")):
            yield 9 * visit + 3 * pause, host, path, chance.choice((200, 200, 500))


STAFF = ("kim", "lee", "max", "ann")
SHOP = _steps(("placed", "paid", "shipped"), 20, 10, amount=range(50), by=STAFF)
TICKETS = _steps(("open", "assigned", "answered", "answered", "closed"), 30, 5, prio=("low", "high"), by=STAFF)
STREAMS = {"shop": SHOP, "tickets": TICKETS, "sensors": list(_sensors()), "requests": list(_requests())}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("is_turned", [False, True], ids=["in order", "turned"])
def test_columns_without_names_are_told_by_what_follows_what(stream, is_turned):
    names = ["ts", "a", "b", "c", "d"][: len(STREAMS[stream][0])]
    rows = [dict(zip(names, row, strict=True)) for row in STREAMS[stream]]
    if is_turned:
        rows = [dict(reversed(row.items())) for row in rows]
    seen = look(rows)
    assert (seen.type.best, seen.key.best) == ("b", "a")
    assert "WHERE [a]" in seen.first.text
    assert seen.first.options == {"type": "b"}


def test_a_small_german_file(tmp_path):
    file = tmp_path / "orders.csv"
    file.write_text(GERMAN)
    seen = look(str(file))
    assert (seen.type.best, seen.key.best) == ("Vorgang", "Kunde")
    assert seen.first.text == "PATTERN SEQ(bestellt a, bezahlt b, geliefert c) WHERE [Kunde] WITHIN 2 h"
    assert seen.first.matches == 1
    assert seen.first.options == {"type": "Vorgang"}
    assert dict(seen.types) == {"bestellt": 2, "bezahlt": 1, "geliefert": 2}


@pytest.mark.parametrize(
    ("names", "kind", "key"),
    [
        (("Zeit", "Fall", "Zustand", "Wichtigkeit", "Bearbeiter"), "Zustand", "Fall"),
        (("when", "ticket", "state", "priority", "agent"), "state", "ticket"),
    ],
)
def test_names_of_two_languages(names, kind, key):
    seen = look([dict(zip(names, row, strict=True)) for row in TICKETS[:40]], time=names[0])
    assert (seen.type.best, seen.key.best) == (kind, key)


def test_names_of_roles_win():
    rows = [dict(zip(("ts", "type", "key", "c", "d"), row, strict=True)) for row in SHOP]
    seen = look(rows)
    assert (seen.type.column, seen.key.column) == ("type", "key")


def test_what_is_said_wins_and_the_other_goes_with_it():
    rows = [dict(zip(("ts", "a", "b", "c", "d"), row, strict=True)) for row in SHOP]
    assert look(rows, type="b").key.best == "a"
    assert look(rows, key="a").type.best == "b"
    assert look(rows, key="b").type.best != "b"


def test_one_column_is_never_both():
    rows = [{"ts": time, "a": "xy"[time % 2]} for time in range(30)]
    seen = look(rows)
    assert (seen.type.best, seen.key.best) == ("a", None)
    assert "[a]" not in seen.first.text


def test_nulls_are_no_obstacle():
    rows = [dict(zip(("ts", "a", "b", "c", "d"), row, strict=True)) for row in TICKETS]
    for row in rows:
        row["a"] = f"t{row['a']}"
    for row in rows[::7]:
        row["b"] = None
    for row in rows[::11]:
        row["a"] = None
    seen = look(rows)
    assert (seen.type.best, seen.key.best) == ("b", "a")


def test_order_within_keys_is_what_counts():
    keys = np.repeat(np.arange(50), 4)
    regular = np.tile([0, 1, 2, 1], 50)
    assert KeyOrder(keys).regularity(regular).order > 0.2
    assert KeyOrder(keys).regularity(keys % 3).order == pytest.approx(0)  # it depends on the key, not on the order
    assert KeyOrder(keys).regularity(keys % 3).strength == 0
    assert KeyOrder(np.arange(9)).regularity(regular[:9]) is None


def test_of_many_events_some_keys_are_looked_at():
    keys = np.tile(np.arange(30_000), 4)
    regular = np.repeat([0, 1, 2, 3], 30_000)
    assert KeyOrder(keys).regularity(regular).pairs <= 20_000
    assert KeyOrder(keys).regularity(regular).order > 0.5


def test_a_key_whose_events_are_all_of_one_type_links_nothing():
    chance = random.Random(3)
    rows = [{"ts": n, "a": f"k{chance.randint(1, 40)}", "b": chance.choice("xyz")} for n in range(400)]
    for row in rows:
        row["c"] = f"{row['b']}{chance.randint(1, 30)}"
    assert look(rows).type.best == "b"
    assert look(rows, type="b").key.best == "a"


def test_a_guess_is_told_with_what_would_do_as_well(tmp_path):
    chance = random.Random(3)
    draws = ((chance.randint(1, 40), chance.randint(1, 50), chance.choice("xyz")) for _ in range(400))
    rows = [{"ts": ts, "a": a, "b": b, "c": c} for ts, (a, b, c) in enumerate(draws)]
    seen = look(rows)
    assert {seen.key.best, seen.second.key} == {"a", "b"}
    assert seen.second.type == "c"
    assert "not sure of the type and the key" in str(seen)
    other = look(rows, type=seen.second.type, key=seen.second.key)
    assert (other.key.best, other.second) == (seen.second.key, None)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "my rows.parquet")
    of_file = look(tmp_path / "my rows.parquet", rows=300)
    assert of_file.second.command.startswith(f"acep look '{tmp_path / 'my rows.parquet'}'")
    words = shlex.split(of_file.second.command)
    assert "not sure" not in acep(*words[1:]).stdout
    assert of_file.second.command.endswith(f"--key-column {of_file.second.key} --type c --rows 300")
    assert "not sure" not in str(look([dict(zip(("ts", "a", "b", "c", "d"), row, strict=True)) for row in TICKETS]))


GENERATED = {
    "bikes": (lambda: generated.bikes(3000), "key", False),
    "tweets_tokens": (lambda: generated.tweets_tokens(4000), "key", False),
    "hospital": (lambda: pa.Table.from_pylist(Ward(minutes=30).events()), "hcw", False),
    "ticks": (lambda: generated.ticks(6000, 1), "key", True),
    "zeek": (lambda: generated.zeek(6000), "key", True),
}
"""What makes a stream, its key, and whether the choice is a guess."""


@pytest.mark.parametrize("stream", GENERATED)
def test_generated_streams_without_names(stream):
    make, key, is_guess = GENERATED[stream]
    table = make()
    table = table.drop_columns([name for name in ("eid",) if name in table.column_names])
    names = dict(zip("abcdefghijklmnopqrstuvwxyz", table.column_names, strict=False))
    unit = "us" if pa.types.is_integer(table.column(0).type) else None
    seen = look(pa.table(dict(zip(names, table.columns, strict=True))), time="a", unit=unit)
    assert (names[seen.type.best], names[seen.key.best], seen.second is not None) == ("type", key, is_guess)


FOUND = {
    "bikes": ("type", "key"),
    "flights": ("type", "key"),
    "soccer": ("sub", "key"),
    "ticks": ("type", "key"),
    "tweets": ("type", "key"),
    "tweets_tokens": ("type", "key"),
    "zeek": ("type", "key"),
}
"""Of soccer the finer types."""
UNSURE = {"soccer": ("type", "key"), "ticks": ("key", "type"), "zeek": ("type", "dst")}
"""What comes next, where the choice is a guess."""


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="there are no real streams")
@pytest.mark.parametrize("stream", FOUND)
def test_real_streams_without_names(stream):
    table = pq.read_table(REAL / f"{stream}.parquet").slice(0, 100_000).drop_columns(["eid"])
    names = dict(zip("abcdefghijklmnopqrstuvwxyz", table.column_names, strict=False))
    seen = look(pa.table(dict(zip(names, table.columns, strict=True))), time="a", unit="us")
    assert (names[seen.type.best], names[seen.key.best]) == FOUND[stream]
    second = None if seen.second is None else (names[seen.second.type], names[seen.second.key])
    assert second == UNSURE.get(stream)
