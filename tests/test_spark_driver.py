"""What the driver does after each micro-batch, without Spark: shards are called as Spark would call them."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from acep_approx import Histories, HistoryGraph, QuerySet, compile_query
from acep_approx.budget.budget import Budget
from acep_approx.learning.online import LEARNER
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.streaming.driver import Driver
from acep_approx.spark.streaming.engine_learning import BEGAN, KEPT_VERSIONS
from acep_approx.spark.worker.job import Job, Part
from acep_approx.spark.worker.query import QueryProgram
from acep_approx.spark.worker.shard import Shard
from acep_approx.spark.worker.spending import Spending
from history.store import pointed
from history.versions import versions
from tests.one_reading import learned
from tests.spark_driving import BATCH, QUERY, SHARDS, TEXT, job_of, micro_batches, run, stream


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of a short stream."""
    home = tmp_path_factory.mktemp("known") / "history"
    learned(HistoryGraph(QUERY), stream(6), time="ts", type="type").save(home)
    return home


@pytest.fixture
def history(known: Path, tmp_path: Path) -> Path:
    """The same for one test."""
    return shutil.copytree(known, tmp_path / "history")


@pytest.fixture
def control(tmp_path: Path) -> Path:
    """Where the driver tells its workers what to do."""
    folder = tmp_path / "control"
    folder.mkdir()
    return folder


def test_a_job_learns_from_nothing_and_shards_take_up_what_is_new(tmp_path, control):
    events = stream(12)
    home = tmp_path / "history"
    learned = run(job_of(events, control, learns=True, history=str(home)), control, events)
    assert len(versions(home)) >= 2
    known = HistoryGraph.load(home, QUERY)
    assert known.learned_ is not None
    other = tmp_path / "other"
    other.mkdir()
    by_chance = run(job_of(events, other, policy="random"), other, events)
    assert sum(learned[6:]) > 1.5 * sum(by_chance[6:])


def test_the_bound_holds_for_all_shards_together(control):
    events = stream(8)
    job = job_of(events, control, policy="oldest")
    driver, states = Driver(job, control), {}
    steps = bound = 0
    for number, metrics in enumerate(micro_batches(job, events, states)):
        driver.process(metrics, number)
        steps += sum(row.steps for row in metrics)
        bound += sum(row.events for row in metrics) * 0.2 * 2.0
        assert steps <= bound + 1e-6
    assert steps > bound / 2
    weights = [job.weight(number, 1000) for number in range(SHARDS)]
    assert len(set(weights)) > 1


def test_a_budget_of_time_is_granted_once_for_each_micro_batch(control, monkeypatch):
    events = stream(60)  # more than a batch of the local matcher
    load = Spending(Budget.parse("50 ms/batch"), control=str(control), policy="random")
    job = replace(job_of(events, control, shards=1), spending=load)
    granted: list[int] = []
    begin_batch = Shedder.begin_batch
    monkeypatch.setattr(Shedder, "begin_batch", lambda self, n: (granted.append(n), begin_batch(self, n))[1])
    shard = Shard(job)
    shard.process(events, None)
    metrics = [shard.process(events.slice(0, 0), int(events["ts"][at].as_py())).metrics for at in (-5000, -1)]
    assert granted == [one.events for one in metrics]
    assert granted[0] > 131_072
    assert all(0 < one.steps <= one.bound for one in metrics)


def test_a_restarted_driver_goes_on_where_the_last_one_was(tmp_path, control):
    events = stream(8)
    whole = run(job_of(events, control, learns=True, history=str(tmp_path / "one")), control, events)
    shutil.rmtree(control)
    control.mkdir()
    broken = run(job_of(events, control, learns=True, history=str(tmp_path / "two")), control, events, restart_at=5)
    assert broken == whole
    assert versions(tmp_path / "one") == versions(tmp_path / "two")
    known = Driver(job_of(events, control, learns=True, history=str(tmp_path / "two")), control).verdict
    assert known is not None
    assert known.versions == pointed(tmp_path / "two")


def test_a_micro_batch_that_is_done_twice_is_learned_from_once(tmp_path, control):
    events = stream(4)
    job = job_of(events, control, learns=True, history=str(tmp_path / "history"))
    driver = Driver(job, control)
    for number, metrics in enumerate(micro_batches(job, events, {})):
        driver.process(metrics, number)
        learned, weights = (control / LEARNER).read_bytes(), (control / "weights.json").read_bytes()
        driver.process(metrics, number)
        Driver(job, control).process(metrics, number)
        assert ((control / LEARNER).read_bytes(), (control / "weights.json").read_bytes()) == (learned, weights)


def test_a_history_that_cannot_be_written_does_not_stop_the_job(tmp_path, control, caplog):
    events = stream(8)
    home = tmp_path / "history"
    job = job_of(events, control, learns=True, history=str(home))
    driver = Driver(job, control)
    with caplog.at_level(logging.WARNING):
        for number, metrics in enumerate(micro_batches(job, events, {})):
            driver.process(metrics, number)
            if home.exists():
                (home / "LATEST").write_text("torn")
    assert "the history could not be refreshed: ACEP-H004" in caplog.text
    assert versions(home) == [1]


def test_a_learner_that_cannot_be_read_begins_anew(tmp_path, control, caplog):
    events = stream(2)
    job = job_of(events, control, learns=True, history=str(tmp_path / "history"))
    (control / LEARNER).write_bytes(b"torn")
    driver = Driver(job, control)
    assert "learned anew" in caplog.text
    assert driver.learning[""].refresher.batch == -1


def test_a_learner_of_another_query_is_not_gone_on_with(tmp_path, control, caplog):
    events = stream(2)
    job = job_of(events, control, learns=True, history=str(tmp_path / "history"))
    run(job, control, events)
    other = compile_query("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 60")
    spending = replace(job.spending, history=str(tmp_path / "none"))
    driver = Driver(replace(job, parts=(Part(QueryProgram(other, "id")),), spending=spending), control)
    assert "learned anew" in caplog.text
    assert driver.learning[""].refresher.batch == -1


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[3]", b"true", b"-1", b"1.5", b"[" * 9999])
def test_where_it_is_not_known_what_a_job_began_with_it_is_what_holds(content, history, control, caplog):
    job = job_of(stream(6), control, learns=True, history=str(history))
    Driver(job, control)
    assert (control / BEGAN).read_bytes() == b"1"
    (control / BEGAN).write_bytes(content)
    driver = Driver(job, control)
    assert driver.learning[""].refresher.load.history is not None
    assert "began.json cannot be read" in caplog.text
    assert (control / BEGAN).read_bytes() == b"1"


@pytest.mark.parametrize("damage", [lambda latest: latest.unlink(), lambda latest: latest.write_text("torn")])
def test_where_nobody_knows_what_holds_either_a_job_goes_on_with_what_its_workers_have(damage, history, control):
    job = job_of(stream(6), control, learns=True, history=str(history))
    Driver(job, control)
    (control / BEGAN).write_bytes(b"")
    damage(history / "LATEST")
    driver = Driver(job, control)
    assert driver.learning[""].refresher.load.history is not None
    assert (control / BEGAN).read_bytes() == b"1"


def test_versions_that_somebody_trained_stay(tmp_path, control):
    events = stream(40)
    home = tmp_path / "history"
    known = HistoryGraph(QUERY).fit(events.slice(0, 5 * BATCH), time="ts", type="type")
    for _ in range(3):
        known.save(home, new_version=True)
    run(job_of(events, control, learns=True, history=str(home)), control, events.slice(5 * BATCH))
    assert versions(home)[-3:] == [3, 2, 1]
    assert pointed(home) > 3
    assert len(versions(home)) <= 3 + KEPT_VERSIONS


def test_without_a_budget_there_is_nothing_to_do(tmp_path, control):
    events = stream(1)
    job = replace(job_of(events, control), spending=None)
    driver = Driver(job, control)
    for metrics in micro_batches(job, events, {}):
        driver.process(metrics, 0)
    assert list(control.iterdir()) == []


# --- sets -------------------------------------------------------------------------------------------------------------

OTHER = "PATTERN SEQ(A a, C c, B b) WHERE [k] AND c.x > a.x AND b.x > c.x + 3 WITHIN 60"


def set_job(events: pa.Table, control: Path, **spending: object) -> Job:
    """Two queries within a fifth of their full work, and a template, which learns in its state."""
    control.mkdir(parents=True, exist_ok=True)
    desk = QuerySet(output="points")
    for id_, text in {"one": TEXT, "two": OTHER}.items():
        desk.add(text, id=id_)
    desk.add_many("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x + :low WITHIN 9", [{"low": 5}, {"low": 6}])
    matcher = desk.spark(id="id", budget="20%", full_work=5.0, **spending)
    job = matcher.job(events.schema, is_stream=True, shards=SHARDS)
    assert job.spending is not None
    return replace(job, spending=replace(job.spending, control=str(control)))


def test_the_histories_of_a_set_are_refreshed_and_shards_take_up_what_is_new(tmp_path):
    events, home = stream(10), tmp_path / "history"
    job = set_job(events, tmp_path / "one", learn=True, history=str(home))
    engines = job.engines
    assert [query.plan.query.pattern for query in engines.values()] == [
        compile_query(text).plan.query.pattern for text in (TEXT, OTHER)
    ]
    learned = run(job, tmp_path / "one", events)
    assert {one.name: len(versions(one)) > 2 for one in home.iterdir()} == dict.fromkeys(engines, True)
    assert Histories.load(home).of(engines[min(engines)].plan, min(engines)).learned_ is not None
    by_chance = run(set_job(events, tmp_path / "two", policy="random"), tmp_path / "two", events)
    assert sum(learned[5:]) > 1.3 * sum(by_chance[5:])
    verdict = Driver(job, tmp_path / "one").verdict  # after a restart
    assert verdict is not None
    assert (verdict.ranked_by, verdict.versions) == ("learned", sum(pointed(home / name) for name in engines))
    other = set_job(events, tmp_path / "three", learn=True, history=str(home))  # begins with what is known
    assert sum(run(other, tmp_path / "three", events.slice(0, 3 * BATCH))) > 1.3 * sum(learned[:3])
