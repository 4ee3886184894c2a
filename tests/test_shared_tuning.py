"""What budgets find that many queries, or rules, share: the same promises from ``train``, ``tune`` and the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import DataError, Histories, QuerySet, RuleHistory, UsageError, compile_query, compile_rules
from acep_approx.budget.budget import Budget
from acep_approx.results.shared_tuning import CutPast
from acep_approx.training.promise import Truth, intervals
from acep_approx.training.shared_promise import Ran, SharedPromises, held_against
from history.errors import HistoryError
from tests.budgeted_sets import MANY, ONE, TWO, stream
from tests.command_line import acep

RULES = """
TABLE seen (k text, n int DEFAULT 0, KEY (k))
RULE rise ON PATTERN SEQ(A a, A b, B c) WHERE b.x <> a.x AND c.x <> b.x WITHIN 40
DO UPDATE seen SET n = old.n + 1 AT (c.k) END
RULE low WORTH 3 ON PATTERN SEQ(A a, B b, C c) WHERE b.x <> a.x AND store.seen[c.k].n > 20 WITHIN 50
"""
pytestmark = [
    pytest.mark.filterwarnings("ignore::acep_approx.errors.FewPointsWarning"),
    pytest.mark.usefixtures("one_reading"),
]


def desk_of(output: str = "points") -> QuerySet:
    """Two queries by themselves, and a template."""
    desk = QuerySet(output=output)  # type: ignore[arg-type]
    desk.add(ONE, id="one")
    desk.add(TWO, id="two", weight=3)
    desk.add_many(MANY, [{"p": p} for p in range(2)], id="many")
    return desk


def ends(table: pa.Table) -> set[tuple[Any, ...]]:
    """The match points of results: key and time."""
    keys = table.column_names[: table.column_names.index("errors")]
    return {tuple(row[name] for name in (*keys, "end") if name != "query") for row in table.to_pylist()}


@pytest.mark.parametrize("output", ["points", "matches"])
def test_promises_are_what_the_runs_of_users_find(output: str) -> None:
    """By brute force: learned from the first part, run over the last one, held against the exact answer."""
    events, desk = stream(1, 800), desk_of(output)
    tuning = desk.tune(events, budgets=["10%", "50%", "100%"])
    (promises,) = (trial.promises for trial in tuning.trials)
    assert promises is not None
    cut = next(at for at in range(len(events)) if events[at]["ts"] == events[480]["ts"])
    assert (promises.trained, promises.measured) == (cut, len(events) - cut) == (tuning.trained, tuning.measured)
    known, last = desk.train(events[:cut]), events[cut:]
    exact = desk.match(last)
    for row in promises.rows:
        some = desk.match_within(last, row.budget, history=known)
        assert row.steps == pytest.approx(some.record().work / len(last), rel=0.01)  # batches end elsewhere
        found, points, weighted = 0, 0, 0.0
        for name, number, weight in zip(promises.names, promises.points, promises.weights, strict=True):
            true = ends(exact[name])
            mine = true & ends(some[name])
            assert number == len(true)
            assert promises.part(name, row).recall == len(mine) / len(true)
            found, points, weighted = found + len(mine), points + len(true), weighted + weight * len(mine)
        assert row.total.recall == pytest.approx(found / points)
        of_all = sum(map(float, np.multiply(promises.weights, promises.points)))
        assert row.weighted.recall == pytest.approx(weighted / of_all)
        assert row.total.low <= row.total.recall <= row.total.high
    assert promises.rows[-1].total == (1.0, 1.0, 1.0)
    assert promises.weights == (1.0, 3.0, 1.0, 1.0)


def test_train_and_tune_promise_the_same(tmp_path: Path) -> None:
    events, desk, rules = stream(2, 500), desk_of(), compile_rules(RULES)
    known = desk.train(events)
    assert known.promises_ == desk.tune(events).trials[0].promises
    assert Histories.load(known.save(tmp_path / "set")).promises_ == known.promises_
    learned = rules.train(events)
    assert learned.promises_ == rules.tune(events).trials[0].promises
    assert learned.promises_ is not None
    assert learned.promises_.weights == (1.0, 3.0)
    learned.save(tmp_path / "rules")
    assert RuleHistory.load(tmp_path / "rules", rules).promises_ == learned.promises_
    RuleHistory(rules).fit(events).save(tmp_path / "rules", new_version=True)  # nobody has measured that
    assert RuleHistory.load(tmp_path / "rules", rules).promises_ is None
    for broken in ("", "[]", '{"trained": 1}', json.dumps({**known.promises_.as_json(), "names": ["one"]})):  # type: ignore[union-attr]
        (tmp_path / "set" / "promises.json").write_text(broken)
        with pytest.raises(HistoryError, match="ACEP-H004"):
            Histories.load(tmp_path / "set")


def test_rules_are_measured_from_the_tables_as_they_were() -> None:
    events, rules = stream(3, 1_000), compile_rules(RULES)
    promises = rules.tune(events, budgets=["100%"]).trials[0].promises
    assert promises is not None
    with rules.start() as run:
        run.push(events[: promises.trained])
        last = rules.run(events[promises.trained :], store={"seen": run.store["seen"].to_arrow()})
    assert dict(zip(promises.names, promises.points, strict=True)) == {name: len(ends(last[name])) for name in last}
    assert promises.rows[0].total.recall == 1


def test_other_errors_and_windows() -> None:
    events, desk = stream(4, 700), desk_of()
    tuning = desk.tune(events, errors=[0, 1], within=["20", "40"], query="one", budgets=["20%"])
    assert [(trial.errors, trial.within) for trial in tuning.trials] == [(0, "20"), (1, "20"), (0, "40"), (1, "40")]
    points = [dict(zip(trial.promises.names, trial.promises.points, strict=True)) for trial in tuning.trials]  # type: ignore[union-attr]
    last = events[tuning.trained :]
    for trial, found in zip(tuning.trials, points, strict=True):
        alone = compile_query(ONE, errors=trial.errors, within=trial.within)
        assert found["one"] == len(ends(alone.match(last).points()))
        assert found["two"] == points[0]["two"]
    every = desk.tune(events, errors=[1], budgets=["20%"]).trials[0].promises
    assert every is not None
    assert every.points[0] == points[3]["one"]
    assert every.points[1] > points[3]["two"]
    header, *rows = tuning.table()
    assert header == ["ERRORS", "WITHIN", "", "match points", "run-steps per event", "recall at 20%"]
    assert rows[0][:3] == ["0", "20", "all queries"]
    assert any(row[2] == "  one" for row in rows)
    assert str(tuning).count("recommended: ") == 4


def test_weighted_intervals_are_those_of_as_many_points() -> None:
    found = np.stack([np.arange(400) % 4 > 0, np.ones(400, np.bool_)])
    of = Truth(np.arange(400), np.arange(400), np.arange(400) // 13)
    assert intervals(found, of, np.full(400, 7.0)) == intervals(found, of)
    weight = np.where(np.arange(400) < 40, 90.0, 1.0)  # few points have nearly all of the weight
    narrow, wide = intervals(found, of)[0], intervals(found, of, weight)[0]
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])


def test_what_is_not_in_the_exact_answer_is_not_found() -> None:
    """Rules may find what an exact run does not."""
    exact = pa.table({"k": ["u", "u", "v"], "errors": [0, 0, 0], "end": [1, 5, 5]})
    other = pa.table({"k": ["u", "v", "v"], "errors": [0, 0, 0], "end": [5, 7, 1]})
    inside = [(Budget.parse("10%"), Ran({"r": other}, {"r": 9}, 6))]
    found = held_against(Ran({"r": exact}, {"r": 9}, 60), inside, {}, np.arange(10), 5)
    assert (found.points, found.rows[0].total.recall, found.exact, found.rows[0].steps) == ((3,), 1 / 3, 6.0, 0.6)
    assert SharedPromises.from_json(json.loads(json.dumps(found.as_json()))) == found
    assert found.worst() == ["r"]
    nothing = held_against(Ran({"r": exact[:0]}, {"r": 9}, 60), inside, {}, np.arange(10), 5)
    assert (nothing.total, nothing.worst(), len(nothing.rows)) == (0, [], 1)


def test_a_past_is_cut_between_times() -> None:
    from acep_approx.events.source import open_source

    past = CutPast.read(open_source([{"ts": t // 4, "x": t} for t in range(20)]))
    assert (past.first.num_rows, past.last.num_rows, past.ticks.tolist()) == (12, 8, [3] * 4 + [4] * 4)
    assert past.whole.num_rows == 20


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"budgets": ["2 ms/batch"]}, "ACEP-U043"),
        ({"budgets": ["a lot"]}, "ACEP-U030"),
        ({"query": "nix"}, "ACEP-U060"),
        ({"within": [3]}, "ACEP-U053"),
    ],
)
def test_wrong_use(given: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError, match=code):
        desk_of().tune(stream(1, 60), **given)
    with pytest.raises(DataError, match="ACEP-D060"):
        desk_of().tune(stream(1, 5))
    with pytest.raises(UsageError, match="ACEP-U046"):
        compile_rules("RULE r ON PATTERN A a WITHIN 1").tune(stream(1, 60))


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "one.acep").write_text(ONE)
    (tmp_path / "queries" / "two.acep").write_text(TWO)
    (tmp_path / "queries" / "wrong.acep").write_text("PATTERN SEQ(A a, B b) WHERE b.nix > 3 WITHIN 5")
    (tmp_path / "rules.acep").write_text(RULES)
    pq.write_table(pa.Table.from_pylist(stream(1, 500)), "past.parquet")
    tuned = acep("tune", "--queries", "queries", "past.parquet", "--output", "points", "--plot", "curves.html")
    assert "all queries" in tuned.stdout
    assert "recommended: " in tuned.stdout
    assert "ACEP-Q060" in tuned.stderr  # one does not fit the events
    assert (tmp_path / "curves.html").is_file()
    (tmp_path / "queries" / "wrong.acep").unlink()
    trained = acep("train", "--queries", "queries", "past.parquet", "-o", "known").stdout
    rows = [line for line in trained.splitlines() if "all queries" in line or "│   one" in line]
    assert len(rows) == 2
    assert all(row in tuned.stdout for row in rows)
    assert "ERRORS 1: recommended" in acep(
        "tune", "--queries", "queries", "past.parquet", "--query", "one", "--errors", "0,1", "--budgets", "20%"
    ).stdout
    tuned, trained = acep("tune", "rules.acep", "past.parquet"), acep("train", "rules.acep", "past.parquet", "-o", "r")
    (row,) = (line for line in trained.stdout.splitlines() if "all rules" in line)
    assert row in tuned.stdout
    for more, told in (
        (("--queries", "queries", "past.parquet", "--spark"), "ACEP-U064: --spark and --queries"),
        (("--queries", "queries"), "ACEP-U069"),
        (("rules.acep", "past.parquet", "--errors", "1"), "ACEP-U064: --errors and active rules"),
        ((ONE, "past.parquet", "--query", "one"), "ACEP-U064: --query is of use with --queries only"),
        ((ONE, "past.parquet", "--table", "seen=s.csv"), "ACEP-U064: --table is of use with a file of rules only"),
    ):
        assert told in acep("tune", *more, code=2).stderr
