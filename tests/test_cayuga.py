"""The experiments with many queries, on small streams: they run and find what is right; timings are not asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import compile_query
from experiments.cayuga import real as cayuga_real
from experiments.cayuga import runs as cayuga_runs
from experiments.cayuga import sets as cayuga_sets
from experiments.cayuga.evaluation import PARTS, run
from experiments.cayuga.pictures import PICTURES, LogLines, pictures
from experiments.cayuga.sets import Asked
from experiments.speed.many import PARTS as BENCHES
from experiments.speed.many import Asked as BenchAsked
from experiments.speed.many import Line
from experiments.speed.many_workload import (
    TEMPLATE,
    check,
    constants,
    filled,
    hot_constants,
    only_asked,
    ranks,
    shape_constants,
    shapes,
    stream,
)

ROOT = Path(__file__).parent.parent
SMALL = Asked(events=1_500, rounds=1, most=100, data=ROOT / "nowhere")


def test_hot_symbols_come_as_often_as_their_rank_says() -> None:
    counts = np.bincount(ranks(100_000, 100, 1.0, np.random.default_rng(1)), minlength=100)
    assert counts[0] / counts[9] == pytest.approx(10, rel=0.2)
    assert {len({row[name] for row in hot_constants(2_000)}) for name in "pfvw"} == {8}


def test_shapes_are_templates_that_differ() -> None:
    texts = list(shapes(5_000))
    assert len(set(texts)) == 5_000
    for text in texts[::97]:
        assert ":" not in str(compile_query(filled(text, shape_constants(1, 1)[0])))


def test_sets_are_held_against_single_queries() -> None:
    assert check(TEMPLATE, constants(60, symbols=5), stream(3_000, symbols=5)) > 0
    for text in list(shapes(100))[::33]:
        rows = only_asked(text, shape_constants(40, 1))
        check(text, [row | {"s": number % 5} for number, row in enumerate(rows)], stream(2_000, symbols=5), 4)


@pytest.mark.parametrize("name", BENCHES)
def test_each_part_of_bench_many_has_lines(name: str) -> None:
    lines = list(BENCHES[name](BenchAsked(2_000, 1, (30,), 200)))
    assert lines
    assert all(line.value > 0 for line in lines if name != "idle"), lines


def test_what_is_not_reached_is_marked() -> None:
    assert "!" in str(Line("slow", 5, "ms", 4))
    assert "!" not in str(Line("fast", 5, "x", 4, more_is_better=True))


def test_bench_many_runs_from_a_fresh_checkout() -> None:
    command = [sys.executable, "-m", "experiments.speed.many", "rates", "hot", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "100 queries of one template" in done.stdout
    assert "hot symbols" in done.stdout
    command[3:4] = ["nothing"]
    assert "there is no part nothing" in subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr


# --- cayuga -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PARTS if name != "real"])
def test_each_experiment_has_a_table_and_its_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compared has found the same: it is asserted inside."""
    monkeypatch.setattr("experiments.cayuga.runs.FIRST", 2_000)
    found = run(SMALL, [name], tmp_path, lambda _: None)
    rows, columns = found[name], PARTS[name][3]
    assert not [column.key for column in columns if all(row.get(column.key) is None for row in rows)]
    assert len((tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines()) == len(rows) + 1
    assert PARTS[name][0] in (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert (tmp_path / f"cayuga-{name}.svg").exists() == (name in PICTURES)


def test_a_join_and_what_no_index_is_made_for_find_the_same() -> None:
    data, rows = stream(6_000, symbols=20), constants(200, symbols=20)
    points = cayuga_sets.desk_of(TEMPLATE, rows).match(data).rows
    assert points > 0
    assert cayuga_sets.by_join(data, rows)[1] == points
    hidden = [row | {"zero": 0} for row in rows]
    assert cayuga_sets.desk_of(cayuga_sets.HIDDEN, hidden).match(data).rows == points


@pytest.mark.parametrize("steps", range(1, 7))
def test_rising_patterns_are_held_against_single_queries(steps: int) -> None:
    table = [{"s": n % 3, "p": 90.0, "w": 40} | {f"f{at}": 1.0 for at in range(2, steps + 1)} for n in range(6)]
    assert check(cayuga_sets.rising(steps), table, stream(300, symbols=3), 6) > 0


def test_runs_that_wait_find_the_same_in_each_way() -> None:
    begin, events = cayuga_runs.waiting_events(300, 4_000)
    counts = {name: cayuga_runs.waited(*way, begin, events)[1] for name, way in cayuga_runs.WAYS.items()}
    assert counts["pattern"] == counts["pattern_scan"] == counts["next"] > 0
    assert counts["same_pattern"] == counts["key_pattern"] == counts["next_same"] > 0
    assert counts["fold_same"] > 0


def test_queries_that_come_and_go_are_held_against_single_queries() -> None:
    assert cayuga_runs.check_changes(constants(30, symbols=3), stream(9_000, symbols=3)) > 0


def test_generated_streams_stand_for_real_ones_that_are_not_there() -> None:
    rows = cayuga_real.real(SMALL)
    assert {row["stream"] for row in rows} == {"ticks (generated)", "flights", "soccer (generated)"}


def test_constants_are_quantiles_of_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream like that of the flights, in a file as theirs."""
    dice, count = np.random.default_rng(3), 2_000
    events = pa.table(
        {
            "ts": np.sort(dice.integers(0, 10**12, count)),
            "key": dice.choice(["N1", "N2", "N3"], count),
            "type": dice.choice(["DEP", "ARR"], count),
            "carrier": dice.choice(["AA", "UA"], count),
            "dest": dice.choice(["ORD", "SFO"], count),
            "delay_min": dice.integers(0, 100, count),
        }
    )
    pq.write_table(events, tmp_path / "flights.parquet")
    (flights,) = (one for one in cayuga_real.REAL if one.name == "flights")
    drawn = cayuga_real.real_constants(flights, events, 500)
    assert {row["dest"] for row in drawn} == {"ORD", "SFO"}
    assert all(45 <= row["delay"] <= 96 for row in drawn)
    monkeypatch.setattr(cayuga_real, "REAL", (flights,))
    rows = cayuga_real.real(Asked(count, 1, 100, tmp_path))
    assert {row["stream"] for row in rows} == {"flights"}
    assert rows[-1]["points"] > 0


def test_a_line_over_powers_of_ten_has_its_marks() -> None:
    values = {"a": [5.0, None], "b": [20.0, 300.0], "others": [50.0, 50.0]}
    lines = LogLines("head", "note", "below", ("1", "10"), values, ("others",))
    text = "\n".join(lines.drawn(0.0)[0])
    assert all(f">{mark}</text>" in text for mark in ("1", "10", "100", "1,000", "others"))
    assert text.count("<circle") == 3
    assert list(pictures({"steps": [{"steps": 1}]})) == []


def test_cayuga_refuses_what_it_does_not_have() -> None:
    command = [sys.executable, "-m", "experiments.cayuga", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no experiment nothing" in done.stderr
