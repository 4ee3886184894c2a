"""The experiments of ``afa2010`` on a few hundred events: all approaches find the same matches (asserted inside)."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from experiments.afa2010.baselines import by_joins, by_two_machines, paper_q1, paper_q2, run_paper, spans
from experiments.afa2010.evaluation import PARTS, figures
from experiments.afa2010.figures import Asked, Way, pushing, times, watched
from experiments.afa2010.pictures import drawing, panels_of
from experiments.afa2010.same import cases
from experiments.afa2010.streams import DROP, Ignoring, Late, q1, q1_in_one_state, q2, q3, stock
from experiments.report import markdown, of_columns
from tests.paper_machine import Input, Operator, outputs_of

ROOT = Path(__file__).parent.parent
SMALL = Asked(events=700, live=400, rounds=1, data=ROOT / "nowhere")


def changes(events: pa.Table) -> list[float]:
    values: list[float] = events.column("change").to_pylist()
    return values


def test_the_stream_is_as_the_paper_says() -> None:
    events = stock(200_000, rises=0.7, ignorable=0.4)
    change = events.column("change").to_numpy()
    assert (change == 0).mean() == pytest.approx(0.4, abs=0.01)
    moves = change[change != 0]
    assert (moves > 0).mean() == pytest.approx(0.7, abs=0.01)
    assert np.abs(moves).mean() == pytest.approx(0.70, abs=0.02)  # what lies below 0 is 1% of the distribution
    assert np.abs(moves).std() == pytest.approx(0.30, abs=0.02)
    assert events.column("ts").to_pylist() == [n - 1 for n in events.column("n").to_pylist()]


def test_late_events_are_as_late_as_asked_and_punctuations_are_right() -> None:
    late = Late.made(stock(3_000, rises=0.5), share=0.1, most=50)
    came = late.arrival
    assert sorted(came.tolist()) == list(range(3_000))
    newest = np.maximum.accumulate(came)
    behind = newest - came
    assert 0 < behind.max() <= 50
    assert (behind > 0).mean() == pytest.approx(0.1, abs=0.03)
    for at, tick in late.punctuations(100):
        assert min(came[at:]) == tick


def test_algorithm_1_counts_what_it_puts_out() -> None:
    """It is the operator of the other tests, which holds its net output against Definition 2."""
    events = stock(300, rises=0.5, ignorable=0.2, seed=2)
    late = Late.made(events, share=0.2, most=40)
    machine = paper_q1(1, DROP, 60, loops=True)
    values = changes(events)
    marks = late.punctuations(50)
    theirs = Operator(machine)
    rows = 0
    for number, ts in enumerate(late.arrival.tolist(), 1):
        before = theirs.net.copy()
        theirs.insert(Input(ts, ts, values[ts]))
        rows += sum((theirs.net - before).values()) + sum((before - theirs.net).values())
        if number in dict(marks):
            theirs.punctuate(dict(marks)[number])
    assert theirs.net == outputs_of(machine, [Input(ts, ts, value) for ts, value in enumerate(values)])
    ours = run_paper(machine, values, late.arrival.tolist(), marks, math.inf)
    assert sum(ours.left.values()) == sum(theirs.net.values())
    assert ours.rows >= rows, "what is taken back and put out again counts twice"
    assert ours.held == sum(len(entry.partials) for entry in ours.entries)
    assert ours.rows > sum(ours.left.values())
    in_order = run_paper(machine, values, late.arrival.tolist(), marks, 0)
    assert in_order.left == ours.left
    assert in_order.rows == sum(ours.left.values()), "nothing is taken back where sigma is 0"


@pytest.mark.parametrize("k", [1, 2, 3])
def test_all_ways_find_q1(k: int) -> None:
    window, events = 40, stock(300, rises=0.5, seed=k)
    theirs = run_paper(paper_q1(k, DROP, window, loops=False), changes(events), range(300), [], math.inf).left
    assert theirs
    plain, passing = q1(k, DROP, window), q1(k, DROP, window, "ignore")
    ways = [pushing(text, events, 70) for text in (plain, passing, q1(k, DROP, window, "loop"))]
    ways += [pushing(q1_in_one_state(k, DROP, window), events, 70)]
    ways += [pushing(plain, events, 70, emit="early", watermark=5), pushing(plain, events, 70, sequence="n")]
    assert all(spans(way()()) == theirs for way in ways)
    for size in (300, 70, 7):
        assert by_joins(k, DROP, window, events, size) == theirs
        assert spans(list(by_two_machines(k, DROP, window, size)(events))) == theirs


@pytest.mark.parametrize("ignorable", [0.3, 0.8])
def test_ignorable_events_are_passed_over_in_each_way(ignorable: float) -> None:
    window, events = 60, stock(500, rises=0.5, ignorable=ignorable, seed=4)
    values = changes(events)
    by_arcs = run_paper(paper_q1(1, 0, window, loops=True), values, range(500), [], math.inf).left
    some = [ts for ts in range(500) if values[ts]]
    assert run_paper(paper_q1(1, 0, window, loops=False), values, some, [], math.inf).left == by_arcs
    kinds: tuple[Ignoring, ...] = ("ignore", "loop")
    assert all(spans(pushing(q1(1, 0, window, kind), events, 90)()()) == by_arcs for kind in kinds)
    assert spans(pushing(q1_in_one_state(1, 0, window), events, 90)()()) == by_arcs


def test_q2_and_q3_find_what_they_say() -> None:
    events = stock(500, rises=0.6, seed=6)
    both = list(zip(changes(events), events.column("price").to_pylist(), strict=True))
    found = spans(pushing(q2(DROP, 50), events)()())
    assert found == run_paper(paper_q2(DROP, 50), both, range(500), [], math.inf).left
    assert found
    text = q3(50)
    signs = ["<" in line for line in text.splitlines() if "->" in line]
    falls = [value < 0 for value in changes(events)]
    wanted = {(at, at + 7) for at in range(493) if falls[at : at + 8] == signs}
    assert set(spans(pushing(text, events)()())) == wanted


def test_what_is_early_waits_for_nothing_and_what_is_final_for_the_punctuation() -> None:
    late = Late.made(stock(600, rises=0.5, ignorable=0.5), share=0.1, most=100)
    text, marks = q1(1, DROP, 50, "ignore"), dict(late.punctuations(50))
    early, final = watched(text, late, None, marks), watched(text, late, 0, marks)
    assert set(early.waits) == {0}
    assert min(final.waits) > 0
    assert final.rows == sum(final.left.values())
    assert early.left == final.left
    assert early.rows > final.rows
    assert watched(text, late, None, marks, size=50).rows <= early.rows


def test_results_that_differ_are_noticed() -> None:
    events = stock(300, rises=0.5)
    ways = [Way("one", pushing(q1(1, DROP, 40), events)), Way("other", pushing(q1(2, DROP, 40), events))]
    with pytest.raises(AssertionError, match="other has other results than one"):
        times(ways, 0)


@pytest.mark.parametrize("name", [name for name in PARTS if name != "10"])
def test_each_figure_has_a_table(name: str) -> None:
    title, note, measure, columns = PARTS[name]
    rows = measure(SMALL)
    assert rows
    assert of_columns(title, rows, columns, note).row_count == len(rows)
    assert markdown(rows, columns).count("\n") == len(rows) + 1
    assert not [column.key for column in columns if all(row.get(column.key) is None for row in rows)]


@pytest.mark.slow
def test_figure_10_has_a_table_and_a_picture() -> None:
    rows = figures.figure_10(SMALL)
    ours = {(row["query"], row["ignorable"], row["sigma"]): row["ours_ratio"] for row in rows}
    assert all(ratio >= 1 for ratio in ours.values())
    assert {sigma for _, _, sigma in ours} == {*map(str, figures.SIGMAS), "all"}
    picture = drawing(list(panels_of({"10": rows})), "rows")
    assert picture.count("<svg") == picture.count("</svg>") == 1
    assert "nan" not in picture


def test_the_real_stream_is_left_out_where_there_is_none() -> None:
    assert {row["data"] for row in figures.figure_8(SMALL)} == {"generated"}


def test_texts_of_both_forms_read_back() -> None:
    for case in cases():
        for text in (case.seq, case.machine):
            assert str(compile_query(str(compile_query(text)))) == str(compile_query(text))


@pytest.mark.slow
def test_it_runs_from_a_fresh_checkout(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(random.randrange(100))}
    command = [sys.executable, "-m", "experiments.afa2010", "--quick", "--figure", "16", "--figure", "13"]
    command += ["--write", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Figures 16 and 17" in done.stdout
    assert "Figures 12 and 13" in done.stdout
    assert (tmp_path / "afa2010.svg").read_text(encoding="utf-8").startswith("<svg")
