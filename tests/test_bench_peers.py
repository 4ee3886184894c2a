"""The workloads of ``bench_peers``, small: all ways find the same matches; timings are printed, never asserted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.peers import evaluation as bench_peers
from experiments.peers.processes import Processes
from experiments.peers.ways import YARDSTICKS, Contest, Rows
from experiments.peers.workloads import WORKLOADS


@pytest.mark.parametrize("name", WORKLOADS)
def test_all_ways_find_the_same_matches(name: str):
    """That is asserted inside, once the engine and both yardsticks have run."""
    contest = Contest(name, divided_by=100)
    assert contest.matches >= 10
    assert len(contest.events) == contest.workload.events // 100


def test_bars_have_as_many_matches_as_real_ones():
    contest = Contest("W3", divided_by=10)
    assert contest.matches / len(contest.events) == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("name", ["W3", "W2K-count"])
def test_a_yardstick_that_finds_other_matches_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch):
    right = YARDSTICKS[name]
    monkeypatch.setitem(YARDSTICKS, name, replace(right, window=right.window // 2))
    with pytest.raises(AssertionError, match=name):
        Contest(name, divided_by=100)


def test_rows_are_compared_in_whatever_order():
    rows = Rows.of_tuples([(1, 2), (1, 3, 4), (0, 2)])
    assert rows.same(Rows.of_tuples([(1, 3, 4), (0, 2), (1, 2)]))
    fewer, turned = [(1, 2), (1, 3, 4)], [(1, 2), (1, 4, 3), (0, 2)]
    twice, exchanged = [(1, 2), (1, 3, 4), (1, 2)], [(1, 2), (0, 2, 4), (1, 3)]
    for other in (fewer, turned, twice, exchanged):
        assert not rows.same(Rows.of_tuples(other))


def test_rows_are_joined_from_columns():
    """With a variable that has two events, then none, then one."""
    parts = [(None, np.array([5, 6, 7])), (np.array([2, 0, 1]), np.array([8, 9, 10])), (None, np.array([11, 12, 13]))]
    assert Rows.of_parts(parts).same(Rows.of_tuples([(5, 8, 9, 11), (6, 12), (7, 10, 13)]))
    assert len(Rows.of_parts([(None, np.zeros(0, np.int64))])) == 0


def test_the_command_runs_as_a_process(tmp_path: Path):
    """That it writes what a query finds in this process is asserted inside."""
    few, many = Processes(tmp_path, 2000).run("points")
    assert few.rows == 1 < many.rows
    assert min(few.cpu, few.peak, many.cpu, many.peak) > 0


def test_both_tables_are_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench_peers, "PUSHES", 50)
    monkeypatch.setattr(bench_peers, "CALLS", 2)
    small = ["push", "push-rules", "few"]
    bench_peers.main(["--only", "W3", *small, "run-listed", "--rounds", "1", "--events-divided-by", "500"])
    printed = capsys.readouterr().out
    titles = [WORKLOADS["W3"].title, *(bench_peers.ELSE[name] for name in (*small, "run-listed"))]
    for word in (*titles, "ns/event", "target", "above five"):
        assert word in printed


def test_a_name_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        bench_peers.main(["--only", "W4"])
    assert "W2K-count" in capsys.readouterr().err
