"""The benchmarks on Spark run through, small; timings are printed, never asserted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from pyspark.sql import Row

from acep_approx import compile_query
from acep_approx.events.roles import infer_roles
from acep_approx.ipc import from_ipc
from acep_approx.spark.plan.packing import packed
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.program import MATCHES
from acep_approx.spark.worker.query import QueryProgram
from acep_approx.spark.worker.shard import Shard
from tests.cases import FULL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory):
    from experiments.report import Report

    return Report(tmp_path_factory.mktemp("report"))


def test_a_recorded_stream_is_the_same_in_any_parts():
    """Micro-batches of a stream are made apart, and are of one stream."""
    from experiments.on_spark.throughput import APART, KEYS, events

    some = events(300, 100, seed=1)
    assert some.equals(events(300, 100, seed=1))
    assert some.column("ts").cast("int64").to_pylist() == [APART * (n + 1) for n in range(300, 400)]
    assert not some.column("k").equals(events(300, 100, seed=2).column("k"))
    assert 0 <= min(some.column("k").to_pylist()) <= max(some.column("k").to_pylist()) < KEYS


def test_a_step_outside_of_spark_finds_what_a_local_run_finds():
    """Else its time would tell nothing."""
    from experiments.on_spark import throughput as bench

    schema = bench.SCHEMA
    query = compile_query(bench.QUERY.replace("500 ms", "20 s"))
    roles = infer_roles(schema, time="ts", key="k")
    job = Job.of(QueryProgram(query, "id"), schema, roles, ("id", "type", "k"), 2)
    shop = bench.Shop(job)
    parts = shop.run(bench.events(0, 40_000, 1), None)
    assert min(vars(parts).values()) > 0
    found = 0
    for number in range(bench.CORES):
        shard = Shard(job, number, shop.states[number])
        taken = shard.process(job.schema.empty_table(), 10**12)
        found += sum(len(from_ipc(row["payload"])) for row in packed(number, taken) if row["kind"] == MATCHES)
    assert found == len(query.match(bench.events(0, 40_000, 1), time="ts", key="k")) > 100


def test_recall_of_a_stream_that_is_played_again_and_again(tmp_path: Path):
    """The second repetition has match points of runs that began in the first."""
    from experiments.on_spark.overload import Scene, a_query

    first, later = np.array([False, False, True, False]), np.array([True, False, True, False])
    points = {"up": first, "never": np.zeros(4, bool)}, {"up": later, "never": np.zeros(4, bool)}
    scene = Scene(None, tmp_path, a_query(), tmp_path, 100, points)  # type: ignore[arg-type]
    assert scene.recall({"up": np.array([102, 104, 104, 106, 108])}, 0, 9) == (1.0, 4)
    assert scene.recall({"up": np.array([104, 108])}, 3, 8) == (1 / 2, 2)
    assert scene.recall({}, 0, 9) == (0.0, 4)
    for who in ("up", "never"):
        with pytest.raises(AssertionError, match=f"exact.*{who}"):
            scene.recall({who: np.array([100])}, 0, 8)


def test_a_stream_that_has_failed_is_not_waited_for(monkeypatch, report, tmp_path: Path):
    """It would never have done one micro-batch more."""
    from experiments.on_spark import overload

    class Failed:
        recentProgress: ClassVar[list[object]] = []

        def awaitTermination(self, _seconds):
            raise TimeoutError("failed to connect back")

        def stop(self):
            stopped.append(self)

    stopped: list[Failed] = []
    monkeypatch.setattr(overload, "start", lambda *_, **__: Failed())
    monkeypatch.setattr(overload, "replay", lambda *_, **__: None)
    where, points = SimpleNamespace(spark=None, new=tmp_path.joinpath), {"": np.zeros(4, bool)}
    scene = overload.Scene(where, tmp_path, overload.a_query(), tmp_path, 100, (points, points))  # type: ignore[arg-type]
    with pytest.raises(TimeoutError, match="connect back"):
        overload.overloaded(report, scene, 1000.0, 0.0)
    assert len(stopped) == 1


@pytest.mark.parametrize("keeps", [False, True])
def test_a_pass_through_hands_on_what_came_in_or_what_came_before(keeps: bool):
    from experiments.on_spark.throughput import PassThrough

    kept: list[tuple[list[bytes]]] = []
    state = SimpleNamespace(get=lambda: kept[-1] if kept else None, update=kept.append)
    step = PassThrough(keeps=keeps)
    step.init(SimpleNamespace(getValueState=lambda *_: state))
    given = [[b"1", b"2"], [], [b"3"]]
    found = [
        [row.payload for row in step.handleInputRows((0,), iter([Row(payload=one) for one in some]), None)]
        for some in given
    ]
    assert found == ([[], *given[:2]] if keeps else given)


def once(run: Callable[..., Any], known_by: Callable[..., object] = lambda **_: None) -> Callable[..., Any]:
    """The same function, which only works the first time that it is called (with some options); then it knows."""
    known: dict[object, Any] = {}

    def remembered(*given: Any, **options: Any) -> Any:
        which = known_by(**options)
        if which not in known:
            known[which] = run(*given, **options)
        return known[which]

    return remembered


@pytest.fixture
def few_streams(monkeypatch):
    """One stream, or batch, of a sort stands for all of its sort, for each takes seconds; not with all cases."""
    from experiments.on_spark import overload, refresh, throughput, training

    if FULL:
        return
    overloaded = overload.overloaded
    for place, name in ((throughput, "drained"), (throughput, "batch_seconds"), (training, "_learn")):
        monkeypatch.setattr(place, name, once(getattr(place, name)))
    monkeypatch.setattr(overload, "overloaded", once(lambda *given, **_: overloaded(*given)))  # with a history
    monkeypatch.setattr(refresh.Scene, "run", once(refresh.Scene.run, lambda *, learns: learns))


@pytest.mark.slow
@pytest.mark.usefixtures("few_streams")
@pytest.mark.xdist_group("spark")
def test_all_parts_print_their_tables_and_leave_data(spark: SparkSession, report, capsys, monkeypatch):
    """What is found is among the exact answer (asserted inside)."""
    from experiments.on_spark import evaluation as bench_spark
    from experiments.on_spark import overload as bench_spark_overload

    assert spark is not None
    monkeypatch.setattr(bench_spark_overload, "FIRST_GUESS", 4_000)
    monkeypatch.setattr(bench_spark_overload, "EACH", 2)
    monkeypatch.setattr(bench_spark_overload, "START", 1)
    monkeypatch.setattr(bench_spark_overload, "TRIGGER", 1.0)
    sizes = bench_spark.Sizes(
        events=2_000, batches=1, changing=1, repeats=1, rounds=int(FULL), minutes=0.01, half=4_000,
        streams=("swapped",), recording=6_500,  # longer than the window
        queries=1_100, sent=4_000,
    )  # fmt: skip
    parts = [part for part in bench_spark.PARTS if FULL or part != "kafka"]  # a broker starts for it
    bench_spark.run(parts, sizes, report, seed=1)
    printed = capsys.readouterr().out
    for title in ("where the time of the cores goes", "3 times the capacity", "what refreshing adds", "abrupt change"):
        assert title in printed
    names = {path.stem for path in report.folder.iterdir()}
    of_parts = {"throughput", "shares", "overload_query", "overload_rules", "refresh_cost", "refresh_drift_swapped"}
    assert of_parts <= names
    assert {"until_it_runs", "kept", "hot_key"} <= names
