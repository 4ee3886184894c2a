"""The experiments of ``active2011`` on few events; and the machine on which they are simulated."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from acep_approx.rules import LowWaterMark, SingleEvent, anomalies, by_row, by_table, run_in_order
from experiments.active2011.clock import Clock, Delay, Life, Until, Work
from experiments.active2011.evaluation import PARTS, run
from experiments.active2011.figures import Asked, baseline, throughputs
from experiments.active2011.lab import SCHEDULERS, Costs, Engine, Load, Machine, arrivals, simulate, transactions
from experiments.active2011.pictures import PICTURES, pictures
from experiments.active2011.real import figure_9, text

ROOT = Path(__file__).parent.parent
SMALL = Asked(load=Load(events=150), few_points=True)
FREE = Costs(lock=0, version=0)


def test_the_clock_has_so_many_cores_and_wakes_who_waits() -> None:
    clock, told, open_ = Clock(2), list[tuple[str, float]](), list[int]()

    def worker(name: str) -> Life:
        yield Work(10)
        told.append((name, clock.now))

    def waiter() -> Life:
        yield Until(lambda: bool(open_), ("door",))
        told.append(("waiter", clock.now))

    def opener() -> Life:
        yield Delay(12)
        clock.changed(["door"])
        yield Delay(1)
        open_.append(1)
        clock.changed(["another"])
        yield Delay(1)
        clock.changed(["door"])

    for life in (worker("a"), worker("b"), worker("c"), waiter(), opener()):
        clock.start(life)
    clock.run()
    assert told == [("a", 10), ("b", 10), ("waiter", 14), ("c", 20)]
    assert (clock.busy, clock.waits) == (30, 1)


def test_who_waits_for_ever_is_noticed() -> None:
    def waiter() -> Life:
        yield Until(lambda: False, ("door",))

    clock = Clock(1)
    clock.start(waiter())
    with pytest.raises(AssertionError, match="waits for ever"):
        clock.run()


@pytest.mark.parametrize("threads", ["events", "operators"])
@pytest.mark.parametrize("is_by_table", [False, True], ids=["rows", "tables"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_simulated_run_keeps_definition_6(name: str, is_by_table: bool, threads: str) -> None:
    """It reads what one event after the other reads; time and queues change nothing of it."""
    for seed in range(3):
        load = Load(events=150, read_n=2.5, write_n=0.7, rows=4, tables=2, fires=0.6, by_table=is_by_table, seed=seed)
        engine = Engine(name, load, Costs(), Machine(threads=threads))  # type: ignore[arg-type]
        engine.run()
        has_versions = isinstance(engine.scheduler, LowWaterMark)
        lock = by_table if is_by_table else by_row
        assert anomalies(engine.history, versions=has_versions, rows=engine.scheduler.rows, lock=lock) == []
        plain = SingleEvent(engine.scheduler.rows)
        assert sorted(engine.history) == sorted(run_in_order(transactions(load), plain))
        assert engine.scheduler.final() == plain.final()


def test_one_event_at_a_time_takes_what_its_parts_take() -> None:
    """A transaction with one read and one write: 3 steps of 50, twice 50 to ask, 300 to read, 300 to write, a lock."""
    found = simulate("SEI", Load(events=100, write_n=1), Costs(lock=3), Machine())
    assert found.throughput == pytest.approx(1e6 / 853)
    base = baseline(SMALL, 5)
    assert (base.query, base.rule) == (pytest.approx(5 * 50 + 50 + 300), pytest.approx(350))


def test_two_cores_do_twice_as_much_and_no_more() -> None:
    busy = Costs(read=0, write=0, lock=0, version=0)
    one, two = (simulate("LWM", Load(events=300, rows=10_000), busy, Machine(cores=n)) for n in (1, 2))
    assert two.throughput == pytest.approx(2 * one.throughput, rel=0.02)
    assert one.busy == pytest.approx(1, abs=0.01)


def test_low_water_marks_gain_where_readers_hold_their_locks() -> None:
    """As the page says: little where they do not, and much where they do; all locks first is a read of its own."""
    load = Load(events=500, by_table=True)
    for ends, least, most in ((0, 0.95, 1.05), (3_000, 3, 6)):
        found = throughputs(Asked(load=load, costs=Costs(reader_ends=ends)))
        assert least < found["lwm_by_lock"] < most
        assert found["lwm_s2pl"] > 1.5
    every_event_writes = throughputs(Asked(load=replace(load, write_n=1)))
    assert every_event_writes["s2pl_sei"] == pytest.approx(1, abs=0.02)
    assert every_event_writes["by_lock"] > 1.2 * every_event_writes["sei"]


def test_loads_are_as_asked() -> None:
    load = Load(events=4_000, read_n=1.5, write_n=0.25, fires=0.5, rate=1_000)
    made = transactions(load)
    assert sum(len(one.reads) for one in made) == pytest.approx(6_000, rel=0.02)
    assert sum(len(one.writes) for one in made) == pytest.approx(1_000, rel=0.1)
    assert sum(len(one.decide({})) for one in made) == pytest.approx(500, rel=0.15)
    assert all(len(set(one.reads)) == len(one.reads) for one in made)
    times = arrivals(load)
    assert times == sorted(times)
    assert times[-1] == pytest.approx(4e6, rel=0.01)


def test_a_run_is_the_same_each_time() -> None:
    first, again = (simulate("LWM", Load(events=200, rate=3_000), Costs(), Machine()) for _ in range(2))
    assert first == again
    assert simulate("LWM", Load(events=200, rate=3_000, seed=2), Costs(), Machine()) != first


def test_versions_that_nobody_can_read_are_let_go() -> None:
    kept, all_kept = (simulate(way, Load(events=400), Costs(), Machine()) for way in ("LWM", "LWM, all versions"))
    assert kept.versions < 20
    assert all_kept.versions > 80
    assert kept.throughput == all_kept.throughput


@pytest.mark.parametrize("name", [name for name in PARTS if name != "9"])
def test_each_figure_has_a_table(name: str, tmp_path: Path) -> None:
    found = run(SMALL, [name], tmp_path, lambda _: None)
    rows, columns = found[name], PARTS[name][3]
    empty = {column.key for column in columns if all(row.get(column.key) is None for row in rows)}
    assert empty <= {"paper"}
    assert len((tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines()) == len(rows) + 1
    assert PARTS[name][0] in (tmp_path / "tables.md").read_text(encoding="utf-8")


def test_pictures_are_drawn_where_all_their_figures_are_there() -> None:
    found = {name: PARTS[name][2](SMALL) for name in ("5", "6", "7", "8", "held")}
    drawn = dict(pictures(found))
    assert set(drawn) == {"active2011-throughput", "active2011-held"}
    assert drawn["active2011-throughput"].count("Figure") == 4
    for name in PICTURES:
        page = ROOT / "docs" / "images" / f"{name}.svg"
        assert page.read_text(encoding="utf-8").startswith("<svg")


def test_figure_9_measures_rules_if_there_are_any() -> None:
    rows = figure_9(SMALL)
    assert [row["seq_l"] for row in rows] in ([], [2, 6])
    assert text(2, acts=True).count("DO UPDATE") == 1
    assert "DO" not in text(2, acts=False)


def test_active2011_runs_from_a_fresh_checkout(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.active2011", "8", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Figure 8" in done.stdout
    command[3:4] = ["nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no figure nothing" in done.stderr
