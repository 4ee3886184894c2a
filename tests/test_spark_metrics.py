"""The numbers of a running job: what Spark adds up, how it is read, shown and exported."""

from __future__ import annotations

import json
import socket
import sys
import threading
import urllib.request
from dataclasses import fields
from pathlib import Path

import pytest

from acep_approx.cli.on_spark.words import line, live, table
from acep_approx.engines.runs.worth import REASONS
from acep_approx.errors import UsageError
from acep_approx.learning.judging import Verdict
from acep_approx.spark.plan.packing import NUMBERS, PACKED, SCHEMA
from acep_approx.spark.streaming.metrics import COUNTS, Exporter, Listener, Progress, Totals, observed
from tests.patience import PATIENCE, ended
from tests.spark_reports import REPORT, progress


def test_a_report_is_read():
    found = progress()
    assert (found.query, found.batch, found.trigger) == ("plain", 1, "2026-11-22T05:38:56.083Z")
    assert (found.seconds, found.matching_seconds, found.lag) == (3.896, 0.25, 45.0)
    assert (found.rows, found.rows_per_second) == (40, 10.3)
    assert (found.events, found.relevant, found.matches, found.late, found.waiting) == (40, 39, 2, 1, 3)
    assert found.shed == dict(zip(REASONS, [1, 2, 3, 0, 0, 0], strict=True))
    assert (found.version, found.price, found.budget_used) == (2, 0.5, 0.5)
    assert (found.state_rows, found.state_bytes) == (5, 2000)


def test_sparks_own_object_is_read():
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    operators = [
        {**operator, "numRowsUpdated": 0, "numRowsRemoved": 0, "allUpdatesTimeMs": 0, "allRemovalsTimeMs": 0,
         "commitTimeMs": 0, "numRowsDroppedByWatermark": 0, "numShufflePartitions": 2, "numStateStoreInstances": 2,
         "customMetrics": {}}
        for operator in REPORT["stateOperators"]
    ]  # fmt: skip
    report = StreamingQueryProgress.fromJson({**REPORT, "stateOperators": operators})
    assert Progress.of(report) == progress()


def test_a_batch_without_books_and_without_events():
    empty = {**REPORT, "observedMetrics": {"acep": {"events": None, "price": None}}, "eventTime": {}, "name": None}
    found = Progress.of(empty)
    assert found is not None
    assert (found.query, found.lag, found.budget_used) == (REPORT["id"], None, None)
    assert found.events == found.matches == found.version == sum(found.shed.values()) == 0


def test_queries_that_observe_nothing_are_passed_over():
    assert Progress.of({**REPORT, "observedMetrics": {}}) is None
    assert Progress.of(REPORT, "another") is None


def test_before_the_first_watermark_there_is_no_lag():
    times = {**REPORT["eventTime"], "watermark": "1970-01-01T00:00:00.000Z"}
    found = Progress.of({**REPORT, "eventTime": times})
    assert found is not None
    assert found.lag is None


def test_what_is_added_up_is_what_the_shards_say():
    read = {*COUNTS, "seconds", "shed", "price", "version"}
    assert read <= set(NUMBERS)
    assert read - {"seconds"} <= {field.name for field in fields(Progress)}


def test_totals_add_up():
    totals = Totals()
    assert totals.recall().recall is None
    for batch in range(3):
        totals.add(progress(batch=batch))
    assert (totals.batches, totals.counts["events"], totals.counts["steps"]) == (3, 120, 150)
    assert totals.seconds == pytest.approx(3 * 3.896)
    assert totals.shed[REASONS[2]] == 9


def test_recall_is_that_of_all_audited_points():
    totals = Totals()
    for batch, (kept, audited) in enumerate([(4, 5), (0, 0), (9, 10), (30, 50)]):
        totals.add(progress(batch=batch, kept=kept, audited=audited))
    estimate = totals.recall()
    assert estimate.recall == pytest.approx(43 / 65)
    assert estimate.points == 65
    assert estimate.cells == 3
    assert estimate.low < 43 / 65 < estimate.high


def test_the_listener_hands_on_what_is_ours():
    from types import SimpleNamespace

    seen, also = [], []
    listener = Listener(seen.append, also.append)
    for report in (REPORT, {**REPORT, "observedMetrics": {}}):
        listener.onQueryProgress(SimpleNamespace(progress=report))
    assert seen == also == [progress()]


# --- shown --------------------------------------------------------------------------------------------------------


def test_a_line_in_words():
    totals = Totals()
    totals.add(progress())
    assert line(progress(), totals) == (
        "batch 1: 40 events in 3.9 s, 2 matches, 1 late, 3 waiting, 50% of the budget, 6 runs shed, "
        "history version 2"
    )
    totals.add(progress(batch=2))  # of one micro-batch nobody knows how far it can be trusted
    estimate = totals.recall()
    assert f", recall {estimate.low:.2f} to {estimate.high:.2f}, " in line(progress(), totals)
    totals.add(progress(batch=3, kept=40, audited=50))
    estimate = totals.recall()
    assert f", recall about 0.80 ({estimate.low:.2f} to {estimate.high:.2f}), " in line(progress(), totals)
    exact = progress(steps=50, bound=0, audited=0, kept=0, version=0, late=0, waiting=0, matches=1)
    assert line(exact, Totals()) == "batch 1: 40 events in 3.9 s, 1 match"


def test_what_learning_has_come_to_in_words():
    told = Verdict("history", gained=2, lost=12, versions=4, refused=3, broken=1)
    assert line(progress(learned=told), Totals()).endswith(
        "history version 2, ranked by the history (2 audited match points gained and 12 lost by what was learned; "
        "3 of 4 versions refused)"
    )
    random = "{}: partial matches are kept at random"
    little, less = random.format("too little is known"), random.format("far less came than was promised")
    assert line(progress(learned=Verdict(versions=1)), Totals()).endswith(little)
    assert line(progress(learned=Verdict(versions=1, broken=1)), Totals()).endswith(less)
    assert line(progress(learned=Verdict()), Totals()).endswith("history version 2")


def test_where_nothing_was_compared_nothing_is_said_of_it():
    told = line(progress(learned=Verdict("history", versions=3, refused=3)), Totals())
    assert told.endswith("(3 of 3 versions refused, no audited match point tells them apart)")
    told = line(progress(learned=Verdict("learned", versions=3)), Totals())
    assert told.endswith("ranked by what was learned (0 of 3 versions refused)")


def test_lines_where_there_is_no_terminal(capsys):
    with live(Totals()) as show:
        show(progress())
    assert capsys.readouterr().err.count("\n") == 1
    with live(Totals(), enabled=False) as show:
        show(progress())
    assert capsys.readouterr().err == ""


def test_the_panel_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with live(Totals()) as show:
        worker = threading.Thread(target=lambda: [show(progress(batch=batch)) for batch in (1, 2)])
        worker.start()
        worker.join()
    said = capsys.readouterr().err
    assert "plain, batch 2" in said
    assert said.count("in all") >= 2


def test_the_panel_shows_this_batch_beside_all():
    from rich.console import Console

    totals = Totals()
    for batch in (0, 1):
        totals.add(progress(batch=batch, kept=40, audited=50))
    console = Console(width=100)
    with console.capture() as capture:
        console.print(table(progress(), totals))
    rows = {row.split("│")[1].strip(): [cell.strip() for cell in row.split("│")[2:4]]
            for row in capture.get().splitlines() if row.startswith("│")}  # fmt: skip
    assert rows["events matched"] == ["40", "80"]
    assert rows["shed: bound on run-steps"] == ["3", "6"]
    assert rows["budget used"] == ["50%", "50%"]
    assert rows["estimated recall"][1].startswith("about 0.80 (0.")
    assert "malformed" not in rows
    with console.capture() as capture:
        console.print(table(progress(learned=Verdict("learned", 30, 4, 5, 2)), totals))
    assert "what was learned" in capture.get()
    assert "5, 2" in capture.get()
    assert "broken" not in capture.get()


# --- Prometheus ---------------------------------------------------------------------------------------------------


@pytest.fixture
def exporter():
    pytest.importorskip("prometheus_client")
    with Exporter(0) as running:
        yield running


def scraped(exporter) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_of_too_few_match_points_prometheus_gets_only_an_interval(exporter):
    for batch in (1, 2):
        exporter(progress(batch=batch))
    found = scraped(exporter)
    assert 'acep_estimated_recall{pattern="plain"}' not in found
    ends = [found[f'acep_estimated_recall_{end}{{pattern="plain"}}'] for end in ("low", "high")]
    assert 0 <= ends[0] < 0.8 < ends[1] <= 1


def test_what_prometheus_gets(exporter):
    exporter(progress())
    exporter(progress(batch=2, version=3, lag=None, live=7, kept=40, audited=50))
    found = scraped(exporter)
    label = 'pattern="plain"'
    assert found[f'acep_events_total{{{label},result="matched"}}'] == 78
    assert found[f'acep_events_total{{{label},result="ignored"}}'] == 2
    assert found[f'acep_events_total{{{label},result="late"}}'] == 2
    assert found[f"acep_matches_total{{{label}}}"] == 4
    assert found[f'acep_shed_total{{{label},reason="bound on run-steps"}}'] == 6
    assert found[f"acep_budget_used_ratio{{{label}}}"] == 0.5
    assert found[f"acep_estimated_recall{{{label}}}"] == pytest.approx(0.8)
    assert found[f"acep_estimated_recall_low{{{label}}}"] < 0.8 < found[f"acep_estimated_recall_high{{{label}}}"]
    assert found[f"acep_watermark_lag_seconds{{{label}}}"] == 45
    assert found[f"acep_partial_matches{{{label}}}"] == 7
    assert found[f"acep_policy_update_total{{{label}}}"] == 1
    assert found[f"acep_batch_seconds_count{{{label}}}"] == 2


def test_prometheus_gets_what_learning_has_come_to(exporter):
    exporter(progress())
    assert not [name for name in scraped(exporter) if name.startswith("acep_history_gained")]
    exporter(progress(learned=Verdict("learned", 30, 4, 5, 2, 1)))
    found = scraped(exporter)
    numbers = {name: found[f'acep_history_{name}{{pattern="plain"}}']
               for name in ("versions_total", "refused_total", "broken_promises_total", "gained", "lost")}  # fmt: skip
    assert list(numbers.values()) == [5, 2, 1, 30, 4]


def test_counts_of_versions_go_on_from_what_the_job_knows(exporter):
    for versions in (5, 5, 7, 1):  # restored from a checkpoint; then a job of this name that begins anew
        exporter(progress(learned=Verdict("learned", versions=versions)))
    assert scraped(exporter)['acep_history_versions_total{pattern="plain"}'] == 8


def test_queries_are_told_apart(exporter):
    exporter(progress())
    exporter(progress(query="other", matches=9))
    found = scraped(exporter)
    assert found['acep_matches_total{pattern="plain"}'] == 2
    assert found['acep_matches_total{pattern="other"}'] == 9


def test_the_dashboard_asks_for_what_there_is(exporter):
    import re

    for batch in (1, 2):  # an estimate needs more than one cell
        exporter(progress(batch=batch, kept=40, audited=50, learned=Verdict()))
    there = {re.split(r"[{ ]", name)[0] for name in scraped(exporter)}
    dashboard = json.loads((Path(__file__).parent.parent / "docs" / "grafana.json").read_text())
    asked = {
        name for panel in dashboard["panels"] for target in panel["targets"]
        for name in re.findall(r"acep_\w+", target["expr"])
    }  # fmt: skip
    assert len(asked) > 8
    assert asked <= there


def test_a_port_that_is_taken():
    pytest.importorskip("prometheus_client")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="ACEP-S054"):
            Exporter(taken.getsockname()[1])


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(UsageError, match="ACEP-S053"):
        Exporter(0)


# --- Spark --------------------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("spark")
def test_spark_adds_up_what_the_shards_say(spark, tmp_path):
    import pyarrow as pa

    def shards(batches):
        for batch in batches:
            nothing = {"shard": 0, "kind": "matches", "payload": b"x"}
            metrics = {"is_copy": 0, "events": batch.num_rows, "bound": 10, "price": 0.5, "version": 2}
            metrics["shed"] = [1, 0, 2, 0, 0]
            rows = [nothing, *({"shard": s, "kind": "metrics", "payload": b"", **metrics} for s in (0, 1))]
            rows[2] |= {"price": 0.25, "version": 3}
            yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.json").write_text('{"v": 1}\n{"v": 2}\n{"v": 3}\n')
    seen, done = [], threading.Event()

    def note(progress):
        if progress.query == "sums":  # that of the query before it may come now
            seen.append(progress)
            done.set()

    listener = Listener(note)
    spark.streams.addListener(listener)
    try:
        packed = observed(spark.readStream.schema("v int").json(str(tmp_path / "in")).mapInArrow(shards, PACKED))
        rows = packed.filter("kind = 'matches'").writeStream.format("noop")
        query = rows.queryName("sums").trigger(availableNow=True).start()
        ended(query)
        assert done.wait(PATIENCE)
    finally:
        spark.streams.removeListener(listener)
    assert len(seen) == 1
    assert seen[0] == Progress.of(query.lastProgress)
    assert (seen[0].events, seen[0].bound, seen[0].matches) == (6, 20, 0)
    assert list(seen[0].shed.values()) == [2, 0, 4, 0, 0, 0]
    assert (seen[0].price, seen[0].version, seen[0].rows) == (0.5, 3, 3)
