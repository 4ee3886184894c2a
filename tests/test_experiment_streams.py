"""Experiments run without the real streams: generated ones of the same shape stand for them, and this is said."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from acep_approx import compile_query
from experiments.__main__ import THEMES, commands, main
from experiments.learning.drifts import DRIFTS
from experiments.shedding.workloads import REAL
from experiments.streams.generated import MAKERS
from experiments.streams.real import DATA, ORIGINS, is_here, load

NOWHERE = Path(__file__).parent / "nowhere"


@pytest.fixture(scope="module")
def made() -> dict[str, pa.Table]:
    return {name: make() for name, make in MAKERS.items()}


def test_every_stream_that_cannot_be_made_has_an_origin_and_one_that_stands_for_it():
    assert set(MAKERS) == set(ORIGINS)


@pytest.mark.parametrize("name", MAKERS)
def test_generated_streams_have_the_columns_of_the_real_ones(name, made):
    if not is_here(name):
        pytest.skip(f"there is no {name} here")
    assert made[name].schema.equals(load(name).schema)


def test_generated_streams_are_in_order_and_always_the_same(made):
    for name, events in made.items():
        ticks = events.column("ts").to_numpy()
        assert (ticks[1:] >= ticks[:-1]).all(), name
        assert pc.min(events.column("eid")).as_py() == 0
    assert MAKERS["zeek"]().equals(made["zeek"])


@pytest.mark.parametrize("name", REAL)
def test_patterns_of_the_real_streams_find_something_in_the_generated_ones(name, made):
    stream, query = REAL[name]
    if stream == "flights":
        return
    events = made[stream]
    assert compile_query(query).match(events.slice(0, 100_000), unit="us").points().num_rows > 0, name


def test_a_stream_that_is_not_there_is_said_to_be_generated(capsys):
    assert load("zeek", NOWHERE).equals(MAKERS["zeek"]())
    assert load("zeek", NOWHERE).num_rows == 78_488
    told = " ".join(capsys.readouterr().out.split())
    assert told.count("GENERATED") == 1
    assert "brimdata/zed-sample-data" in told


def test_flights_are_the_same_events_whether_the_file_is_there_or_not():
    made = load("flights", NOWHERE)
    assert made.num_rows == 398_900
    if (DATA / "flights.parquet").exists():
        assert made.equals(load("flights").replace_schema_metadata(None))


@pytest.mark.parametrize("name", DRIFTS)
def test_streams_that_change_have_all_their_parts(name, monkeypatch):
    monkeypatch.setattr("experiments.learning.drifts.real.load", lambda name: MAKERS[name]())
    drift = DRIFTS[name](1)
    assert min(map(len, (drift.before, drift.after, drift.fresh))) > 1000


def test_all_experiments_are_listed(capsys):
    main()
    told = capsys.readouterr().out
    listed = [name for folder in THEMES for name, _ in commands(folder)]
    assert len(listed) == len(set(listed)) > 20
    assert all(f"python -m {name}\n" in told for name in listed)
    for folder in {path.parent.name for path in (Path(__file__).parent.parent / "experiments").glob("*/*.py")}:
        assert folder in {*THEMES, "streams"}, f"{folder} is new: name its theme"
