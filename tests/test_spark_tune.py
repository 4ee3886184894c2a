"""``acep tune --spark``: the same table as without, byte for byte."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import pytest
from typer.testing import CliRunner

from acep_approx import compile_query
from acep_approx.cli.main import app
from acep_approx.errors import QueryError
from acep_approx.events.source import open_source
from acep_approx.results.tuning import Elsewhere, PastTable, tried, tune
from acep_approx.spark.past.tuning import on_spark
from tests.tuning_past import QUERY, make_events

pytestmark = pytest.mark.xdist_group("spark")
CHOICES = {"errors": (1, 0), "within": ("30", "10"), "budgets": ("20%", "100%"), "seed": 3}


def compiled(errors=None, within=None):
    return compile_query(QUERY, errors=errors, within=within, engine="runs")


@pytest.fixture(scope="module")
def past() -> PastTable:
    return PastTable.read(open_source(make_events(400)))


def all_at_once(queries, past, how):
    """As if there were a machine for each."""
    return [tried(query, past, how) for query in queries]


def without_times(tuned):
    """All that does not depend on the clock."""
    found = asdict(tuned)
    for trial in found["trials"]:
        del trial["exact_seconds"], trial["seconds"]
    return json.dumps(found, default=str)


def test_what_is_left_out_does_not_depend_on_where_it_was_tried(past):
    everywhere: Elsewhere = all_at_once
    left_out = set()
    for most in (20_000.0, 0.6, 0.0):
        one, other = (
            tune(compiled, past, errors=(0, 1), within=("5", "30"), budgets=("50%",), most_steps=most, elsewhere=how)
            for how in (None, everywhere)
        )
        assert without_times(one) == without_times(other)
        left_out.add(sum(bool(trial.skipped) for trial in one.trials))
    assert left_out == {0, 1, 4}


def test_on_spark_as_here(spark, past):
    said = []
    tuned = tune(compiled, past, **CHOICES, elsewhere=on_spark(spark), on_progress=lambda *now: said.append(now))
    assert without_times(tuned) == without_times(tune(compiled, past, **CHOICES))
    assert said == [("4 choices at once", 0.0)]


def test_an_error_in_a_task_is_ours(spark, past):
    broken = PastTable(past.first.drop_columns(["x"]), past.last, past.roles)
    with pytest.raises(QueryError, match="no attribute 'x'"):
        tune(compiled, broken, elsewhere=on_spark(spark))


def test_the_command_says_the_same(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    events = make_events(300)
    (tmp_path / "past.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    words = ["tune", QUERY, "past.jsonl", "--errors", "0,1", "--budgets", "20%"]
    here, there = (CliRunner().invoke(app, [*words, *more]) for more in ([], ["--spark"]))
    assert (here.exit_code, there.exit_code) == (0, 0), there.output
    mine, theirs = (re.sub(r"\S+ s (exactly|inside)", "so long", found.stdout) for found in (here, there))
    assert mine == theirs
    refused = CliRunner().invoke(app, [*words, "--master", "local[2]"])
    assert refused.exit_code == 2
    assert "ACEP-S037" in refused.output
