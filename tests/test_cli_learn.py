"""The command line of learning: acep run --learn, what it says, what it saves, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from acep_approx import compile_query
from acep_approx.cli.main import app
from acep_approx.training.history_graph import HistoryGraph
from rl.updater import Updater

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.x > a.x AND c.x < b.x WITHIN 30"
CELLS = "PATTERN SEQ(A a, B b) WITHIN 30"
LEARN = ("--budget", "4 steps/event", "--learn")


def write_events(path: Path, number: int, seed: int, first: int = 0) -> None:
    """Events of three keys at random times, as Parquet."""
    random, now, rows = Random(seed), first, []
    for _ in range(number):
        now += random.randrange(3)
        rows.append({"ts": now, "type": random.choice("AABC"), "key": random.choice("uvw"), "x": random.random()})
    pq.write_table(pa.Table.from_pylist(rows), path)


def acep(*arguments: Any, code: int = 0) -> Any:
    """Run a command in this process; whatever happens, there is no traceback."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder with events in three files, each of them a batch, and a history of the first."""
    folder = tmp_path_factory.mktemp("learn")
    for number in range(3):
        write_events(folder / f"{number}.parquet", 3000, seed=number, first=number * 10_000)
    write_events(folder / "few.parquet", 100, seed=5)
    acep("train", QUERY, folder / "0.parquet", "-o", folder / "trained", "--quiet")
    return folder


@pytest.fixture(autouse=True)
def here(home, monkeypatch) -> None:
    monkeypatch.chdir(home)


def versions(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir() if path.is_dir())


def table(path: str) -> list[dict[str, Any]]:
    if path.endswith("jsonl"):
        return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    found = pq.read_table(path) if path.endswith("parquet") else pyarrow.csv.read_csv(path)
    return found.to_pylist()


# --- learning, and saving what was learned ------------------------------------------------------------------


def test_a_run_learns_from_nothing_and_saves_it():
    result = acep("run", QUERY, "0.parquet", "1.parquet", *LEARN, "--save", "fresh", "--output", "points")
    words = result.stderr
    assert "budget of 4 steps/event, policy random, then what was learned, seed 0" in words
    for name in ("learned", "calibration", "drift", "exploration", "learning took"):
        assert f"\n{name}: " in words
    assert "what was learned is in fresh/v0001 (version 1)" in words
    known = HistoryGraph.load("fresh", compile_query(QUERY))
    assert known.learned_ is not None
    assert known.events_ == 6000
    assert known.points_ == len(result.stdout.splitlines())


def test_what_was_saved_is_of_use_at_once():
    acep("run", QUERY, "0.parquet", *LEARN, "--save", "taught", "--quiet")
    words = acep("run", QUERY, "1.parquet", "--budget", "30%", "--history", "taught", "--output", "count").stderr
    assert "policy history, seed 0" in words
    assert "learned: " not in words
    more = acep("run", QUERY, "1.parquet", "--budget", "30%", "--history", "taught", "--learn", "--output", "count")
    assert "policy history, then what was learned, seed 0" in more.stderr
    assert "what was learned is in taught/v0002 (version 2)" in more.stderr
    assert versions("taught") == ["v0001", "v0002"]


def test_it_can_be_saved_on_the_way():
    files = ["0.parquet", "1.parquet", "2.parquet"]
    words = acep("run", QUERY, *files, *LEARN, "--save", "often", "--save-every", "1", "--output", "count").stderr
    assert "what was learned is in often/v0004 (version 4, after 3 versions on the way)" in words
    loaded = [HistoryGraph.load("often", compile_query(QUERY), version=number) for number in (1, 2, 3, 4)]
    assert [known.events_ for known in loaded] == [3000, 6000, 9000, 9000]
    acep("run", QUERY, *files, *LEARN, "--save", "seldom", "--save-every", "2", "--quiet")
    assert versions("seldom") == ["v0001", "v0002"]


def test_where_nothing_is_saved_it_says_so():
    words = acep("run", QUERY, "0.parquet", *LEARN, "--output", "count").stderr
    assert "what was learned is not saved: --save DIR keeps it" in words
    words = acep("run", QUERY, "few.parquet", *LEARN, "--save", "unmade", "--output", "count").stderr
    assert "; runs were never rescored" in words
    assert "nothing was learned, and nothing saved: " in words
    assert not Path("unmade").exists()


@pytest.mark.parametrize(
    ("query", "options"),
    [(CELLS, LEARN), (QUERY, ("--budget", "100%", "--learn")), (CELLS, ("--budget", "9%", "--learn"))],
)
def test_where_nothing_is_shed_there_is_nothing_to_learn(query, options):
    result = acep("run", query, "0.parquet", *options, "--save", "unmade", "--learn-log", "none.jsonl")
    assert "there was nothing to learn: where nothing is shed" in result.stderr
    assert result.stdout == acep("run", query, "0.parquet", "--quiet").stdout
    assert not Path("unmade").exists()
    assert not table("none.jsonl")


def test_the_same_seed_learns_the_same(tmp_path):
    both = []
    for name in ("one", "two"):
        options = (*LEARN, "--save", tmp_path / name, "--learn-log", tmp_path / f"{name}.csv", "--seed", "3")
        result = acep("run", QUERY, "0.parquet", *options, "--quiet")
        assert not result.stderr
        files = sorted((tmp_path / name / "v0001").iterdir())
        both.append((result.stdout, (tmp_path / f"{name}.csv").read_bytes(), [file.read_bytes() for file in files]))
    assert both[0] == both[1]


# --- what is said about it ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.parquet"])
def test_the_log_has_a_row_for_each_revaluation(name):
    result = acep("run", QUERY, "0.parquet", "1.parquet", *LEARN, "--learn-log", name, "--output", "points")
    rows = table(name)
    assert len(rows) > 3
    assert f"runs rescored {len(rows)} times, the last after {rows[-1]['events']:,} events" in result.stderr
    assert list(rows[0]) == ["at", "events", "points", "tests", "work", "explored", "cases", "brier", "alarms"]
    for column in ("at", "events", "tests", "work", "explored", "points"):
        assert [row[column] for row in rows] == sorted(row[column] for row in rows)
    points = [json.loads(line) for line in result.stdout.splitlines()]
    for row in rows:
        assert row["points"] == sum(point["row"] < row["events"] for point in points)


def test_the_record_counts_what_the_learner_was_shown(monkeypatch):
    shown = []
    observe = Updater.observe

    def counted(self, events, tests, lineages):
        shown.append((len(lineages.vertex), float((lineages.points > 0).sum())))
        observe(self, events, tests, lineages)

    monkeypatch.setattr(Updater, "observe", counted)
    some = compile_query(QUERY).match_within(["0.parquet", "1.parquet"], "6 steps/event", learn=True, audit=0.2)
    some.points()
    known = some.record().learning
    assert known is not None
    cases, reached = map(sum, zip(*shown, strict=True))
    assert known.cases == cases > 100
    assert sum(tenth.cases * tenth.reached for tenth in known.tenths) == pytest.approx(reached)
    assert known.brier == pytest.approx(some.shedder.online.learner.updater.calibration.brier)
    assert known.explored == some.shedder.online.beside.cohort.steps <= some.record().work
    assert some.learning().num_rows == len(known.revalued) == len(some.shedder.online.learner.refreshes)
    fates = some.learning().column("cases").to_pylist()
    last = known.revalued[-1].tick
    assert sum(fates) == sum(score.cases for score in known.scores if score.tick <= last)


def test_times_are_times():
    options = (*LEARN, "--unit", "s", "--within", "30 s", "--learn-log", "timed.jsonl", "--output", "count")
    acep("run", QUERY, "0.parquet", *options)
    rows = table("timed.jsonl")
    assert rows
    assert all(row["at"].startswith("1970-01-01T00:") for row in rows)


def test_a_share_can_be_of_work_that_is_said():
    words = acep(
        "run", QUERY, "0.parquet", "--budget", "50%", "--full-work", "8", "--learn", "--output", "count"
    ).stderr
    assert "run-steps per event, saved up without end" in words
    assert "learned: " in words
    plain = acep("run", QUERY, "0.parquet", "--budget", "50%", "--full-work", "8", "--output", "count").stderr
    assert "; 3.92 run-steps per event, saved up without end, and 0.08 for the audit" in plain


def test_the_report_has_what_was_learned():
    acep("run", QUERY, "0.parquet", *LEARN, "--report", "learned.html", "--quiet")
    page = Path("learned.html").read_text(encoding="utf-8")
    assert "<h2>What was learned</h2>" in page
    acep("run", QUERY, "0.parquet", "--budget", "4 steps/event", "--report", "plain.html", "--quiet")
    assert "What was learned" not in Path("plain.html").read_text(encoding="utf-8")


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--learn"], "ACEP-U040"),
        (["--full-work", "5"], "ACEP-U040"),
        (["--save-every", "1"], "ACEP-U040"),
        (["--budget", "9 runs", "--save", "unmade"], "ACEP-U049"),
        (["--budget", "9 runs", "--save-every", "2"], "ACEP-U049"),
        (["--budget", "9 runs", "--learn-log", "log.csv"], "ACEP-U049"),
        ([*LEARN, "--save-every", "2"], "ACEP-U049"),
        ([*LEARN, "--policy", "random"], "ACEP-U048"),
        (["--budget", "9%", "--learn"], "ACEP-U034"),
        (["--budget", "9%", "--full-work", "0"], "ACEP-U050"),
        (["--budget", "9%", "--full-work", "nan"], "ACEP-U050"),
        ([*LEARN, "--audit", "1"], "ACEP-U033"),
        ([*LEARN, "--output", "partial"], "ACEP-U038"),
        ([*LEARN, "--learn-log", "nowhere/log.csv"], "ACEP-U016"),
        ([*LEARN, "--learn-log", "log.txt"], "ACEP-U018"),
        ([*LEARN, "--learn-log", "0.parquet"], "ACEP-U013"),
        ([*LEARN, "--learn-log", "same.csv", "-o", "same.csv"], "ACEP-U017"),
    ],
)
def test_options_that_make_no_sense(options, code):
    result = acep("run", QUERY, "0.parquet", *options, code=2)
    assert result.stderr.startswith(f"error {code}")
    assert "  hint: " in result.stderr
    assert not result.stdout


def test_errors_name_the_option_that_helps():
    assert "--full-work" in acep("run", QUERY, "0.parquet", "--budget", "9%", "--learn", code=2).stderr
    assert "--save-every " in acep("run", QUERY, "0.parquet", "--save-every", "1", code=2).stderr


@pytest.mark.parametrize(
    ("query", "folder", "code"), [(f"{QUERY} ERRORS 1", "trained", "ACEP-H002"), (QUERY, ".", "ACEP-H006")]
)
def test_a_place_to_save_to_is_refused_before_anything_is_read(query, folder, code):
    result = acep("run", query, "no-such-file.parquet", *LEARN, "--save", folder, code=4)
    assert result.stderr.startswith(f"error {code}")
