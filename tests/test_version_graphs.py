"""Each version of the history that a job writes has a graph of its own, and is read like one that was trained."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from acep_approx import HistoryGraph
from acep_approx.budget.budget import Budget
from acep_approx.cli.main import app
from acep_approx.learning import cohort
from acep_approx.spark.streaming.driver import Driver
from history.versions import versions
from tests.cases import FULL
from tests.spark_driving import BATCH, QUERY, TEXT, job_of, micro_batches, stream

BATCHES, LONG = 12, 10_000


def later(events: pa.Table, times: int) -> pa.Table:
    """The same events some time later."""
    return events.set_column(0, "ts", pc.add(events["ts"], times * LONG))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions of a job that began with a trained history: version 1."""
    folder = tmp_path_factory.mktemp("job")
    control, history = folder / "control", folder / "history"
    control.mkdir()
    events = later(stream(BATCHES, seed=2), 1)
    HistoryGraph(QUERY).fit(stream(4)).save(history)
    job = job_of(events, control, learns=True, history=str(history), audit=0.6)
    assert job.spending is not None
    job = replace(job, spending=replace(job.spending, budget=Budget.parse("80%")))
    driver, states = Driver(job, control), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohort, "LOOK_BACK", 64)  # the stream is short
        for number, metrics in enumerate(micro_batches(job, events, states)):
            driver.process(metrics, number)
    pq.write_table(later(stream(2, seed=3), 2), folder / "later.parquet")
    assert len(versions(history)) >= 3
    return history


def of_interest(home: Path) -> list[int]:
    """Versions: the first, which was trained, and the last, which was learned on top of those before."""
    numbers = sorted(versions(home))
    return numbers if FULL else [numbers[0], numbers[-1]]


def test_vertices_edges_bundles_and_maps_go_on_from_version_to_version(home: Path) -> None:
    known = [HistoryGraph.load(home, QUERY, version=number) for number in sorted(versions(home))]
    for before, now in pairwise(known):
        counts = now.graph_.counts
        assert counts.visits.sum() > 0
        assert counts.moves.sum() > 0
        assert len(counts.bundles) > 0
        assert counts.maps
        assert all(bits.any() for bits in counts.maps.values())
        assert int(counts.bundles.last.max()) > int(before.graph_.counts.bundles.last.max())
        assert now.events_ > before.events_
        assert not np.array_equal(counts.visits, before.graph_.counts.visits)


def test_the_next_job_ranks_by_any_version_and_goes_on_from_its_graph(home: Path, tmp_path: Path) -> None:
    events = pq.read_table(home.parent / "later.parquet")
    for number in of_interest(home):
        mine, control = tmp_path / f"history{number}", tmp_path / f"control{number}"
        control.mkdir()
        known = HistoryGraph.load(home, QUERY, version=number)
        known.save(mine)
        job = job_of(events, control, learns=True, history=str(mine))
        driver = Driver(job, control)
        for batch, metrics in enumerate(micro_batches(job, events, {})):
            driver.process(metrics, batch)
        learner = driver.learning[""].refresher.learner
        assert learner is not None
        assert learner.history is not None
        bundles, before = learner.live.now().counts.bundles, known.graph_.counts.bundles
        assert bundles.first.min() == before.first.min()
        assert len(bundles) >= len(before)
        assert driver.verdict is not None
        assert driver.verdict.ranked_by == "history"


def acep(*arguments: object) -> str:
    """What the shell says on stderr."""
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exit_code == 0, done.stderr
    return done.stderr


def test_every_version_is_replayed_and_reported_and_learns_more(home: Path, tmp_path: Path) -> None:
    events = home.parent / "later.parquet"
    for number in of_interest(home):
        mine = tmp_path / f"history{number}"
        HistoryGraph.load(home, QUERY, version=number).save(mine)
        page = tmp_path / f"{number}.html"
        acep("run", TEXT, events, "--budget", "20%", "--history", mine, "--report", page, "-o", tmp_path / "found.csv")
        assert "<svg" in page.read_text()
        acep("replay", TEXT, events, "--around", str(2 * LONG + 50), "--budget", "20%", "--history", mine)
        acep("train", TEXT, events, "-o", mine, "--more", "--quiet")
        more = HistoryGraph.load(mine, QUERY)
        assert more.events_ == HistoryGraph.load(home, QUERY, version=number).events_ + 2 * BATCH
