"""The command line of load budgets: acep train, tune, run --budget, replay."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from acep_approx import compile_query
from acep_approx.cli.main import app
from acep_approx.shedding.metrics import LEFT_OPEN
from acep_approx.training.history_graph import HistoryGraph

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.x > a.x AND c.x < b.x WITHIN 30"
CELLS = "PATTERN SEQ(A a, B b) WITHIN 30"


def write_events(path: Path, number: int, seed: int, first: int = 0) -> None:
    """Events of three keys at random times, as CSV."""
    random, now, lines = Random(seed), first, ["ts,type,key,x"]
    for _ in range(number):
        now += random.randrange(3)
        lines.append(f"{now},{random.choice('AABC')},{random.choice('uvw')},{random.random():.3f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def acep(*arguments: str, code: int = 0) -> Any:
    """Run a command in this process; whatever happens, there is no traceback."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder with events, and a history of the first of them."""
    folder = tmp_path_factory.mktemp("budget")
    write_events(folder / "past.csv", 700, seed=1)
    write_events(folder / "more.csv", 200, seed=2, first=10_000)
    write_events(folder / "now.csv", 400, seed=3, first=20_000)
    acep("train", QUERY, folder / "past.csv", "-o", folder / "history", "--quiet")
    return folder


@pytest.fixture(autouse=True)
def here(home, monkeypatch) -> None:
    monkeypatch.chdir(home)


# --- acep train -------------------------------------------------------------------------------------------------


def test_training_says_what_was_learned():
    result = acep("train", QUERY, "past.csv", "-o", "learned")
    known = HistoryGraph.load("learned", compile_query(QUERY))
    assert f"700 events learned from; {known.steps_per_event_:,.1f} run-steps per event" in result.stderr
    assert f"{known.points_:,} match points in " in result.stderr
    assert "written to learned/v0001 (version 1)" in result.stderr
    promises = known.promises_
    part = "measured on the 280 events behind 420 that were learned from, with "
    assert f"{part}{promises.points} match points:" in result.stderr
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines() if "│" in line]
    told = [
        [one.output, f"{one.share:.0%}", f"{one.steps:,.3g}", f"{one.recall:.0%}", f"{one.low:.0%} to {one.high:.0%}"]
        for one in promises.rows
    ]
    assert rows == told


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["-o", "history"], "ACEP-H005"),
        (["-o", "."], "ACEP-H006"),
        (["-o", "nowhere", "--more"], "ACEP-H001"),
        (["-o", "history", "--new-version", "--errors", "1"], "ACEP-H002"),
        (["-o", "history", "--more", "--errors", "1"], "ACEP-H002"),
    ],
)
def test_a_history_is_refused_before_anything_is_read(options, code):
    result = acep("train", QUERY, "there-is-no-such-file.csv", *options, code=4)
    assert result.stderr.startswith(f"error {code}")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--more", "--new-version"], "ACEP-U041"),
        (["--more", "--gap", "5"], "ACEP-U041"),
        (["--gap", "wide"], "ACEP-U042"),
    ],
)
def test_options_of_training_that_make_no_sense(options, code):
    assert acep("train", QUERY, "past.csv", "-o", "unmade", *options, code=2).stderr.startswith(f"error {code}")
    assert not Path("unmade").exists()


def test_more_is_a_new_version_that_knows_both():
    acep("train", QUERY, "past.csv", "-o", "grown", "--gap", "window", "--quiet")
    first = HistoryGraph.load("grown", compile_query(QUERY))
    result = acep("train", QUERY, "more.csv", "-o", "grown", "--more")
    both = HistoryGraph.load("grown", compile_query(QUERY))
    assert "200 events learned from, 900 in all" in result.stderr
    assert "(version 2)" in result.stderr
    assert (both.version_, both.events_, both.gap) == (2, 900, "window")
    assert both.points_ > first.points_
    exact = compile_query(QUERY).match("more.csv")
    exact.to_arrow()
    steps = (first.steps_per_event_ * 700 + exact.progress.steps) / 900
    assert both.steps_per_event_ == pytest.approx(steps)


def test_a_past_without_matches_says_so():
    result = acep("train", QUERY.replace("b.x > a.x", "b.x > a.x + 2"), "past.csv", "-o", "barren")
    assert "nothing led to a match" in result.stderr
    assert not result.stdout


# --- acep run --budget ------------------------------------------------------------------------------------------


def test_a_run_inside_a_budget_says_what_it_did():
    result = acep("run", QUERY, "now.csv", "--budget", "20%", "--history", "history", "--format", "csv")
    exact = acep("run", QUERY, "now.csv", "--format", "csv", "--quiet").stdout.splitlines()
    some = result.stdout.splitlines()
    assert set(some) < set(exact)
    assert "budget of 20%, policy history, seed 0" in result.stderr
    for word in ("work: ", "shed: ", "estimated recall: "):
        assert word in result.stderr
    again = acep("run", QUERY, "now.csv", "--budget", "20%", "--history", "history", "--format", "csv", "-q")
    assert again.stdout == result.stdout
    assert not again.stderr


def test_where_no_budget_can_pay_the_exact_command_is_printed():
    """Below ten run-steps per event; the budget that was asked for is kept all the same."""
    plain = ["--format", "csv", "--limit", "9", "-k", "0", "--on-late", "skip", "--bind", "x", "--bind", "key"]
    spent = ["--budget", "20%", "--history", "history", "--seed", "3", "--report", "page.html"]
    result = acep("run", QUERY, "now.csv", *spent, *plain)
    lines = result.stderr.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("exact run: "))
    assert "below 10 a budget saves no time" in lines[at]
    program, command, *options = shlex.split(lines[at + 1])
    assert (program, command) == ("acep", "run")
    assert lines[at + 2].startswith("budget of 20%")
    assert acep("run", *options).stdout == acep("run", QUERY, "now.csv", *plain).stdout
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.index("Is a budget needed?") < page.index('<div class="tiles">')
    assert "below 10 a budget saves no time" in page
    heavier = ["--within", "3000", "--budget", "10%", "--full-work", "200", "--output", "points"]
    words = acep("run", QUERY, "now.csv", *heavier).stderr
    assert "exact run: it takes about 200 run-steps per event, this one took " in words
    assert "acep run" not in words


def test_all_of_the_work_is_the_exact_answer():
    everything = acep("run", QUERY, "now.csv", "--quiet").stdout
    assert acep("run", QUERY, "now.csv", "--quiet", "--budget", "100%", "--history", "history").stdout == everything


def test_all_matches_at_the_points_found_are_listed():
    options = ["--budget", "1 steps/event", "--history", "history", "--format", "csv"]
    some = acep("run", QUERY, "now.csv", *options, "-q").stdout.splitlines()
    result = acep("run", QUERY, "now.csv", *options, "--expand")
    exact = acep("run", QUERY, "now.csv", "--format", "csv", "--quiet").stdout.splitlines()
    whole = result.stdout.splitlines()
    assert len(some) < len(whole)
    assert set(whole) <= set(exact)
    assert f"{len(whole) - 1:,} matches" in result.stderr
    assert "expanded: " in result.stderr
    assert "matched again\n" in result.stderr
    bundles = acep("run", QUERY, "now.csv", *options, "--expand", "--whole-bundles")
    assert set(whole) <= set(bundles.stdout.splitlines()) <= set(exact)
    assert re.search(r"expanded: [\d,]+ run-steps outside of the budget, [\d,]+ events matched again, in \d+ round",
                     bundles.stderr)  # fmt: skip


@pytest.mark.parametrize("name", ["shed.csv", "shed.jsonl", "shed.parquet"])
def test_what_was_shed_is_written(name):
    result = acep("run", QUERY, "now.csv", "--budget", "1 steps/event", "--shed", name, "--output", "points")
    if name.endswith("csv"):
        rows = pyarrow.csv.read_csv(name).to_pylist()
    elif name.endswith("jsonl"):
        rows = [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]
    else:
        rows = pq.read_table(name).to_pylist()
    assert f"shed: {len(rows):,} runs" in result.stderr
    assert {"key", "state", "at", "reason", "score", "price"} <= set(rows[0])


def test_the_report_is_one_page():
    acep("run", QUERY, "now.csv", "--budget", "30 runs", "--report", "report.html", "--output", "count", "--quiet")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "now.csv under a budget of 30 runs" in page
    assert page.rstrip().endswith("</html>")


def test_options_of_a_policy_and_an_audit():
    words = acep(
        "run", QUERY, "now.csv", "--budget", "2 steps/event", "--policy", "random", "--seed", "7", "--audit", "0"
    ).stderr
    assert "policy random, seed 7" in words
    assert "estimated recall: unknown: there was no audit" in words


def test_where_the_cells_answer_nothing_is_shed():
    result = acep("run", CELLS, "now.csv", "--budget", "5%", "--history", "history", "--shed", "none.jsonl")
    assert result.stdout == acep("run", CELLS, "now.csv", "--quiet").stdout
    assert "budget of 5%: the cells engine answers exactly, and sheds nothing" in result.stderr
    assert not Path("none.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--history", "history"], "ACEP-U040"),
        (["--shed", "shed.csv"], "ACEP-U040"),
        (["--seed", "0"], "ACEP-U040"),
        (["--budget", "much"], "ACEP-U030"),
        (["--budget", "20%"], "ACEP-U034"),
        (["--budget", "9 runs", "--policy", "luck"], "ACEP-U031"),
        (["--budget", "9 runs", "--policy", "history"], "ACEP-U032"),
        (["--budget", "9 runs", "--audit", "1"], "ACEP-U033"),
        (["--budget", "9 runs", "--output", "partial"], "ACEP-U038"),
        (["--expand"], "ACEP-U040"),
        (["--budget", "9 runs", "--output", "points", "--expand"], "ACEP-U054"),
        (["--budget", "9 runs", "--whole-bundles"], "ACEP-U054"),
        (["--whole-bundles"], "ACEP-U040"),
        (["--budget", "9 runs", "--output", "compressed", "-o", "folder"], "ACEP-U038"),
        (["--budget", "9 runs", "--report", "nowhere/report.html"], "ACEP-U016"),
        (["--budget", "9 runs", "--shed", "shed.txt"], "ACEP-U018"),
        (["--budget", "9 runs", "--shed", "now.csv"], "ACEP-U013"),
        (["--budget", "9 runs", "--shed", "same.csv", "-o", "same.csv"], "ACEP-U017"),
    ],
)
def test_options_of_a_budget_that_make_no_sense(options, code):
    result = acep("run", QUERY, "now.csv", *options, code=2)
    assert result.stderr.startswith(f"error {code}")
    assert not result.stdout


@pytest.mark.parametrize(
    ("option", "value", "code", "exit_code"), [("--errors", "1", "ACEP-H002", 4), ("--within", "40", "ACEP-U037", 2)]
)
def test_a_history_of_another_query_is_refused(option, value, code, exit_code):
    result = acep("run", QUERY, "now.csv", "--budget", "9%", "--history", "history", option, value, code=exit_code)
    assert result.stderr.startswith(f"error {code}")
    assert "  hint: " in result.stderr


# --- acep replay ------------------------------------------------------------------------------------------------


def test_replay_shows_the_runs_that_were_shed_around_a_moment():
    options = ["--budget", "20%", "--history", "history", "--policy", "scores"]
    acep("run", QUERY, "now.csv", *options, "--shed", "all.jsonl", "--quiet")
    shed = [json.loads(line) for line in Path("all.jsonl").read_text(encoding="utf-8").splitlines()]
    wanted = shed[len(shed) // 2]
    at, state = str(wanted["at"]), wanted["state"]
    result = acep("replay", QUERY, "now.csv", *options, "--around", at, "--key", wanted["key"], "--state", state)
    assert f"{len(shed):,} partial matches shed; " in result.stderr
    blocks = result.stdout.split("\n1. a partial match")[0]
    first = blocks.splitlines()[0]
    assert first.startswith(f"1. a partial match of {wanted['key']} that began at ")
    assert f" was shed at {at} (row " in first
    assert f"\n  state      {state}, 0 errors\n" in blocks
    for name in ("window", "last event", "remembers", "known as", "why"):
        assert f"\n  {name:<10} " in blocks
    one = acep("replay", QUERY, "now.csv", *options, "--around", at, "--limit", "1", "--quiet")
    assert one.stdout.count("a partial match") == 1
    assert not one.stderr


def test_replay_shows_which_ends_of_matches_were_left_open():
    options = ["--budget", "10%", "--history", "history"]
    acep("run", QUERY, "now.csv", *options, "--shed", "all.jsonl", "--quiet")
    left_open = [json.loads(line) for line in Path("all.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {one["reason"] for one in left_open} == {LEFT_OPEN}
    one = left_open[len(left_open) // 2]
    result = acep("replay", QUERY, "now.csv", *options, "--around", str(one["at"]), "--key", one["key"], "--limit", "1")
    assert f"0 partial matches shed; {len(left_open):,} possible ends of matches left open; " in result.stderr
    said = f"1. whether a match of {one['key']} ends at {one['at']} (row {one['row']}) was left open"
    assert result.stdout == f"{said}: no run-steps were left\n"


def test_replay_where_nothing_was_shed():
    result = acep("replay", CELLS, "now.csv", "--budget", "9 runs", "--around", "20100")
    assert result.stdout == "no partial match was shed\n"
    assert "0 partial matches shed; the cells engine answers exactly" in result.stderr
    none = acep("replay", QUERY, "now.csv", "--budget", "9 runs", "--around", "20100", "--key", "nobody")
    assert none.stdout == "no partial match was shed that fits\n"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--around", "5"], "ACEP-U040"),
        (["--around", "5", "--budget", "2 ms/batch"], "ACEP-U043"),
        (["--around", "noon", "--budget", "9 runs"], "ACEP-U112"),
        (["--around", "noon", "--budget", "9 runs", "--unit", "s", "--within", "30 s"], "ACEP-U112"),
    ],
)
def test_what_cannot_be_replayed(options, code):
    assert acep("replay", QUERY, "now.csv", *options, code=2).stderr.startswith(f"error {code}")


def test_a_moment_is_a_time_where_events_have_times():
    options = ["--within", "30 s", "--unit", "s", "--budget", "1 steps/event", "--limit", "1"]
    iso = acep("replay", QUERY, "now.csv", *options, "--around", "1970-01-01T05:36:40Z").stdout
    assert iso == acep("replay", QUERY, "now.csv", *options, "--around", "20200").stdout
    assert " was shed at 1970-01-01T05:3" in iso
    assert " left (" in iso


def test_a_moment_is_a_row_in_a_window_of_events():
    options = ["--within", "12 events", "--budget", "1 steps/event", "--limit", "1"]
    assert "(row 20" in acep("replay", QUERY, "now.csv", *options, "--around", "200").stdout


# --- acep tune --------------------------------------------------------------------------------------------------


def test_tuning_prints_a_table_and_recommends():
    result = acep("tune", QUERY, "past.csv", "--errors", "0,1", "--budgets", "20%,100%", "--plot", "curves.html")
    assert "learned from 490 events, measured on the 210 after them" in result.stderr
    assert "recall at 100%" in result.stdout
    rows = [line.split("│") for line in result.stdout.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row[1:3]] for row in rows] == [["30", "0"], ["30", "1"]]
    assert all(row[-2].strip() == "100%" for row in rows)
    assert "\nrecommended: --errors " in result.stdout
    assert result.stdout.startswith("is a budget needed?\n  ERRORS 0 WITHIN 30: ")
    assert "run-steps per event: no, below 10 it saves no time\n" in result.stdout
    heavier = acep("tune", QUERY.replace("[key] AND", ""), "past.csv", "--within", "3000", "--budgets", "20%").stdout
    times = r"[\d.]+ run-steps per event; [\d.]+ s exactly, [\d.]+ s inside 20%\n"
    assert re.search(f"ERRORS 0 WITHIN 3000: {times}", heavier)
    assert Path("curves.html").read_text(encoding="utf-8").count("<svg") == 3


def test_tuning_leaves_out_what_is_too_much():
    result = acep("tune", QUERY, "past.csv", "--most-steps", "0", "--quiet")
    assert "left out: " in result.stdout
    assert "no recommendation\n  even the least" in result.stdout
    assert not result.stderr


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--errors", "0,x"], "ACEP-U045"),
        (["--plot", "curves.png"], "ACEP-U044"),
        (["--plot", "nowhere/curves.html"], "ACEP-U016"),
        (["--budgets", "5 ms/batch"], "ACEP-U043"),
        (["--budgets", "5 apples"], "ACEP-U030"),
    ],
)
def test_options_of_tuning_that_make_no_sense(options, code):
    assert acep("tune", QUERY, "past.csv", *options, code=2).stderr.startswith(f"error {code}")
