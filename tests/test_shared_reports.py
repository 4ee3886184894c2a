"""What is told of a budget that queries or rules share: records, pages, and why each partial match was shed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from acep_approx import (
    AcepError,
    Histories,
    HistoryGraph,
    QuerySet,
    RuleHistory,
    RuleSet,
    UsageError,
    compile_query,
    compile_rules,
)
from acep_approx.budget.audit import RecallEstimate
from acep_approx.budget.ledger import Piece, Shed
from acep_approx.budget.rules_ledger import Doubt, RuleShare, RulesRecord
from acep_approx.budget.set_ledger import PartRecord, QueryRecord, SetRecord
from acep_approx.cli.main import app
from acep_approx.pages.budget.shared import shared_report_html
from acep_approx.results.shed_replay import in_words, nearest_of
from acep_approx.shedding import metrics
from tests.cases import cases
from tests.html_pages import Page, svgs
from tests.shed_equations import check, stream

pytestmark = pytest.mark.usefixtures("one_reading")

Logged = list[Any]
RISING = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > b.x WITHIN 60"
OTHERS = "PATTERN SEQ(A a, B b, C c) WHERE b.x <> a.x AND c.x > b.x WITHIN 40 ERRORS 1"
COUNTED = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x <> b.x WITHIN 25 events"
TEMPLATE = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x > :p AND b.x <> a.x AND c.x <> a.x + b.x WITHIN :w"
CONSTANTS = [{"p": p, "w": 20 + 17 * p, "counts": 1 + 2 * p} for p in range(4)]
RULES = """
TABLE seen (k text, n int DEFAULT 0, KEY (k))
RULE writer ON PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > b.x WITHIN 60
DO UPDATE seen SET n = old.n + 1 AT (c.k) END
RULE reader WORTH 3 ON
  PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x <> a.x AND c.x > a.x AND store.seen[c.k].n > 2 WITHIN 30
RULE plain ON PATTERN SEQ(A a, B b) WHERE [k] WITHIN 3
"""
BUDGETS = ("4%", "30%", "3 steps/event", "12 runs")


def desk_of(output: str) -> QuerySet:
    """Queries by themselves and of a template, which count differently and have windows of their own."""
    desk = QuerySet(output=output)  # type: ignore[arg-type]
    desk.add(RISING, id="rising")
    desk.add(OTHERS, id="others", weight=5)
    desk.add(COUNTED, id="counted")
    desk.add_many(TEMPLATE, CONSTANTS, id="t", weight="counts")
    return desk


@cache
def learned(output: str) -> tuple[QuerySet, Histories]:
    """A set with what was learned of it."""
    desk = desk_of(output)
    return desk, desk.train(stream(1))


@cache
def learned_rules() -> tuple[RuleSet, RuleHistory]:
    """Rules with what was learned of them."""
    rules = compile_rules(RULES)
    return rules, RuleHistory(rules).fit(stream(1))


def told(logged: Logged, limit: int = 10**6, **asked: Any) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """The runs that were shed, each with what ``acep replay`` says of it."""
    found = nearest_of(logged, 0, limit=limit, **asked)
    return [(run, dict(in_words(run, by))) for run, by in found]


# --- replay ---------------------------------------------------------------------------------------------------------


def every_equation_of_a_set(output: str, budget: str, policy: str, seed: int) -> Counter[str]:
    """Check all runs that a set has shed; gives how many there were of a kind."""
    desk, known = learned(output)
    events, checked = stream(50 + seed, 400), Counter[str]()
    some = desk.match_within(events, budget, history=known, policy=policy, log_shed=True, seed=seed)
    shed = some.shed()
    assert shed.num_rows == some.record().shed_runs
    by_query = Counter(shed["query"].to_pylist())
    assert set(by_query) <= {*desk}
    for id_ in desk:
        mine = told(some._run.logged(id_), by="row" if id_ == "counted" else "at")
        assert len(mine) == by_query[id_]
        for run, words in mine:
            if check(run, words):
                checked[id_] += 1
                checked["weighed"] += "weight" in words
            if run["reason"] == "born below the price":
                assert run["score"] < run["price"]
            left = run["start"] + run[".window"] - run["at"]
            if id_ != "counted":
                assert words["window"].startswith(f"{left:,} left")
    return checked


@pytest.mark.parametrize("output", ["matches", "points"])
def test_every_equation_of_a_set_holds(output: str) -> None:
    checked: Counter[str] = Counter()
    for seed in range(cases(8, 1)):
        for budget in BUDGETS:
            for policy in ("history", "scores", "random"):
                checked += every_equation_of_a_set(output, budget, policy, seed)
    assert all(checked[id_] for id_ in learned(output)[0]), checked
    assert checked["weighed"] > 100


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("windows_of_slots", lambda pipeline, slots: np.full(len(slots), pipeline.window)),
        ("windows_of_slots", lambda pipeline, slots: np.full(len(slots), 20)),
        ("_coins", lambda log, *_: np.ones(len(log))),
    ],
)
def test_wrong_equations_of_a_set_are_noticed(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    learned("matches")
    monkeypatch.setattr(metrics, name, wrong)
    with pytest.raises(AssertionError):
        every_equation_of_a_set("matches", "30%", "history", 1)


def test_weights_that_are_left_out_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    learned("matches")
    right = metrics._terms

    def without(log: Any, shedding: Any, windows: Any) -> Any:
        found = right(log, shedding, windows)
        return found | {"weight": np.ones(len(log))}

    monkeypatch.setattr(metrics, "_terms", without)
    with pytest.raises(AssertionError):
        every_equation_of_a_set("matches", "30%", "history", 1)


@pytest.mark.parametrize("budget", BUDGETS)
def test_every_equation_of_rules_holds(budget: str) -> None:
    rules, known = learned_rules()
    for seed in range(cases(8, 1)):
        with rules.start(budget=budget, history=known, log_shed=True, seed=seed, audit=0) as run:
            for batch in (stream(50 + seed)[:300], stream(50 + seed)[300:]):
                run.push(batch)
            run.finish()
        shed, record = run.shed(), run.record()
        assert record is not None
        assert shed.num_rows == record.shed_runs == record.runs_shed > 0
        for rule, number in Counter(shed["rule"].to_pylist()).items():
            mine = told(run.spending.logged(rule))
            assert len(mine) == number
            scored = [check(*one) for one in mine]
            assert any(scored)
        assert not run.spending.logged("plain")


@pytest.mark.parametrize("budget", ["10%", "2 steps/event", "12 runs"])
def test_of_one_query_a_set_tells_what_the_query_tells(budget: str) -> None:
    query, events = compile_query(RISING, engine="runs"), stream(3)
    known = HistoryGraph(query).fit(stream(1))
    known.search_ = None  # a set follows partial matches
    alone = query.match_within(events, budget, history=known, log_shed=True, audit=0)
    alone.points()
    desk = QuerySet(output="points")
    desk.add(RISING, id="one")
    histories = Histories({query.plan.known_as: known})
    found = desk.match_within(events, budget, history=histories, log_shed=True, audit=0)
    assert found.shed().drop_columns("query").to_pylist() == alone.shed().to_pylist()
    assert [words for _, words in told(found._run.logged("one"))] == [
        dict(in_words(run, alone)) for run in sorted(alone.shed().to_pylist(), key=lambda one: abs(one["at"]))
    ]
    mine, others = found.record(), alone.record()
    for name in ("work", "allowed", "found", "shed_runs", "full_work", "past_work", "begin", "is_time"):
        assert getattr(mine, name) == getattr(others, name), name


def test_runs_that_queries_share_are_those_of_each() -> None:
    text = "PATTERN SEQ(A a, A b, B c) WHERE b.x <> a.x AND c.x <> b.x AND c.x <> a.x + b.x AND c.y > :p WITHIN 40"
    desk = QuerySet(output="points")
    desk.add_many(text, [{"p": 5 * low} for low in range(100)], id="q")
    events = [one | {"y": place * 37 % 1000} for place, one in enumerate(stream(2, 800))]
    some = desk.match_within(events, "20 steps/event", log_shed=True)
    assert {query.found for query in some.record().queries} == {None}
    shed = some.shed()
    assert shed.num_rows == some.record().shed_runs > 0
    assert {*shed["query"].to_pylist()} == {some.record().parts[0].name}
    for id_ in ("q[0]", "q[99]"):
        assert sum(check(*one) for one in told(some._run.logged(id_))) > 0
        assert sum(one.table.num_rows for one in some._run.logged(id_)) == shed.num_rows


def test_what_was_not_written_down_or_is_not_there() -> None:
    desk, known = learned("points")
    some = desk.match_within(stream(2, 100), "10%", history=known)
    out = learned_rules()[0].match_within(stream(2, 100), "3 steps/event")
    for ask in (some.shed, out.shed, lambda: some._run.logged("rising")):
        with pytest.raises(UsageError) as caught:
            ask()
        assert caught.value.code == "ACEP-U039"
    logged = desk.match_within(stream(2, 100), "10%", history=known, log_shed=True)
    with pytest.raises(UsageError) as caught:
        logged._run.logged("nobody")
    assert caught.value.code == "ACEP-U060"


# --- records and pages ----------------------------------------------------------------------------------------------


def test_a_record_tells_of_all_engines_over_time() -> None:
    desk, known = learned("points")
    record = desk.match_within(stream(2, 3000), "10%", history=known, audit=0.1).record()
    for name in ("events", "work", "bound", "shed", "points"):
        course = [getattr(piece, name) for piece in record.pieces]
        assert course == sorted(course), name
        if name != "events":
            assert course[-1] == sum(getattr(part.piece, name) for part in record.parts), name
    assert len(record.pieces) > 3
    assert record.begin == stream(2, 1)[0]["ts"]
    assert all(piece.work <= piece.bound for piece in record.pieces)
    assert record.full_work is not None
    assert 0.8 < record.allowed / (0.1 * record.full_work * record.events) < 1.2
    given = desk.match_within(stream(2, 300), "10%", history=known, full_work=77.0).record()
    assert given.full_work == 77.0
    assert desk.match_within(stream(2, 300), "5 steps/event").record().full_work is None


def test_few_pieces_are_remembered_however_long_a_stream_is() -> None:
    desk = QuerySet(output="points", budget="2 steps/event", audit=0)
    desk.add(RISING)
    desk.add(OTHERS)
    for event in stream(2, 1300):
        desk.push([event])
    pieces = desk.record().pieces
    assert 200 < len(pieces) <= 513
    assert np.diff([piece.events for piece in pieces[:-1]]).max() < 32


def test_a_page_of_a_set_and_of_rules(tmp_path: Path) -> None:
    desk, known = learned("points")
    some = desk.match_within(stream(2, 900), "10%", history=known, audit=0.2)
    some.report(tmp_path / "set.html", "events.csv")
    text = (tmp_path / "set.html").read_text(encoding="utf-8")
    words = " ".join(Page(text).words)
    record = some.record()
    assert "events.csv under a budget of 10%" in words
    assert "One budget for 7 queries, run by 4 engines." in words
    for said in (f"{record.work:,} of {record.allowed:,} run-steps", "t[0] and 3 more", "Load and budget over time"):
        assert said in words, said
    assert len(svgs(text)) >= 2
    assert "match points found by 1,000 run-steps" in words  # prices of engines are in units of their own
    assert "price: least gain" not in words
    part = record.parts[0].piece
    assert f"{1000 * part.points / part.work:.3g}" in words
    assert "budget of 10%" in repr(some)
    assert "budget of 10%" in record._repr_html_()  # type: ignore[operator]

    rules, learned_of = learned_rules()
    out = rules.match_within(stream(2, 900), "10%", history=learned_of)
    out.report(tmp_path / "rules.html", "events.csv")
    words = " ".join(Page((tmp_path / "rules.html").read_text(encoding="utf-8")).words)
    for said in ("seen.n and the rows of seen, which writer writes", "3 rules", "with its readers", "What is certain"):
        assert said in words, said
    assert out.record is not None
    assert "budget of 10%" in out.record._repr_html_()
    assert [row["rule"] for row in out.record.rows()] == ["writer", "reader", "plain"]


def test_runs_that_are_pushed_have_the_same_page(tmp_path: Path) -> None:
    desk = QuerySet(output="points", budget="3 steps/event")
    desk.add(RISING, id="one")
    desk.push(stream(2, 200))
    desk.report(tmp_path / "set.html", "here")
    run = compile_rules(RULES).start(budget="3 steps/event")
    run.push(stream(2, 200))
    run.report(tmp_path / "rules.html", "here")
    for name in ("set", "rules"):
        assert "here under a budget of 3 steps/event" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")


def test_where_there_is_no_budget_or_no_place_for_a_page(tmp_path: Path) -> None:
    place = tmp_path / "events.jsonl"
    place.write_text("".join(json.dumps(one) + "\n" for one in stream(2, 100)), encoding="utf-8")
    desk, rules = desk_of("points"), compile_rules(RULES)
    some, out = desk.match_within(place, "3 steps/event"), rules.match_within(place, "3 steps/event")
    exact, run = rules.run(stream(2, 100)), rules.start()
    asked: list[tuple[Any, str]] = [(one.report, "ACEP-U013") for one in (some, out)]
    asked += [(one.report, "ACEP-U040") for one in (desk, exact, run)]
    for report, code in asked:
        with pytest.raises(AcepError) as caught:
            report(place)
        assert caught.value.code == code
    assert place.read_text(encoding="utf-8").startswith("{")
    assert run.record() is None
    for shed in (exact.shed, run.shed):
        with pytest.raises(UsageError, match="there is none"):
            shed()


NASTY = "</td><script>alert('x')</script> a < b & c"


def large(queries: int) -> SetRecord:
    """A record of many queries, of which some have estimates."""
    pieces = [Piece(10 * i, 100 * i, 70 * i, 90 * i, 7, 0.5 / i, 3 * i, 2 * i) for i in range(1, 900)]
    shed = [Shed("a", "at birth", 5), Shed("b", "in a pass", 2)]
    parts = [PartRecord(f"{NASTY} {i}", 1.0, pieces[-1], shed) for i in range(queries)]

    def recall(i: int) -> RecallEstimate | None:
        share = (i + 1) / (queries + 2)
        return RecallEstimate(share, max(share - 0.2, 0), min(share + 0.2, 1), 9, 4) if i % 3 else None

    each = [QueryRecord(f"{NASTY} {i}", f"{NASTY} {i}", 2.0, 5, recall(i)) for i in range(queries)]
    return SetRecord("20%", "history", 0, pieces, parts, queries=each, source=NASTY, begin=0)


def test_a_page_of_ten_thousand_queries_is_small_and_says_what_is_left_out() -> None:
    text = shared_report_html(large(10_000))
    assert len(text) < 150_000
    page = Page(text)
    assert "script" not in page.tags
    words = " ".join(page.words)
    assert "9,960 others" in words
    assert "of 10,000 queries enough was audited" in words
    assert "Of 3,334 it is unknown" in words
    assert "the 12 that miss most" in words


def test_pages_of_next_to_nothing() -> None:
    nothing = Piece(0, 0, 0, 0, 0, 0.0, 0, 0)
    for record in (
        SetRecord("20%", "history", 0, [nothing]),
        SetRecord("20%", "oldest", 0, [nothing], queries=[QueryRecord("one", None)]),
        RulesRecord("20%", "history", 0, [nothing]),
        replace(large(3), queries=[]),
        RulesRecord("9 runs", "oldest", 0, [nothing], rules=(RuleShare("r", True, 2, True, doubts=[Doubt("x", "w")]),)),
    ):
        Page(shared_report_html(record))


# --- the command line -----------------------------------------------------------------------------------------------


def acep(*arguments: Any, code: int = 0) -> Any:
    """Run a command in this process; whatever happens, there is no traceback."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with events, queries and rules."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "queries").mkdir()
    (folder / "queries" / "few.acep").write_text(
        f"-- id: rising\n{RISING};\n-- id: others\n-- weight: 5\n{OTHERS}", encoding="utf-8"
    )
    (folder / "queries" / "t.acep").write_text(f"-- weight: counts\n{TEMPLATE}", encoding="utf-8")
    lines = ["p,w,counts", *(",".join(str(value) for value in row.values()) for row in CONSTANTS)]
    (folder / "queries" / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    (folder / "rules.acep").write_text(RULES, encoding="utf-8")
    events = "".join(json.dumps(one) + "\n" for one in stream(2, 600))
    (folder / "events.jsonl").write_text(events, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


SET = ("--queries", "queries", "events.jsonl")
OF_RULES = ("rules.acep", "events.jsonl")
SPENT = ("--budget", "3 steps/event")


@pytest.mark.parametrize("program", [SET, OF_RULES])
def test_a_run_writes_a_page_a_table_and_what_was_shed(program: tuple[str, ...]) -> None:
    name = "set" if program is SET else "rules"
    pages = ("--report", f"{name}.html", "--page", f"page-{name}.html")
    acep("run", *program, *SPENT, *pages, "--shed", f"{name}.csv", "-q")
    report = " ".join(Page(Path(f"{name}.html").read_text(encoding="utf-8")).words)
    assert "events.jsonl under a budget of 3 steps/event" in report
    page = " ".join(Page(Path(f"page-{name}.html").read_text(encoding="utf-8")).words)
    assert "A budget of 3 steps/event" in page
    assert "How the budget was shared" in page
    shed = pyarrow.csv.read_csv(f"{name}.csv")
    first = "query" if program is SET else "rule"
    assert shed.column_names[0] == first
    told = acep("run", *program, *SPENT, "--report", f"each-{name}.csv").stderr
    assert "writes a row for each" not in told
    each = pyarrow.csv.read_csv(f"each-{name}.csv")
    names = each[first].to_pylist()
    if program is SET:
        assert not any("\n" in (engine or "") for engine in each["engine"].to_pylist())
        assert "--report each.csv writes a row for each of the 6 queries" in acep("run", *program, *SPENT).stderr
    assert names == (["rising", "others", *(f"t[{n}]" for n in range(4))] if program is SET else [
        "writer", "reader", "plain"])  # fmt: skip


@pytest.mark.parametrize(("program", "whose"), [(SET, "others"), (SET, "t[2]"), (OF_RULES, "writer")])
def test_replay_says_why(program: tuple[str, ...], whose: str) -> None:
    acep("run", *program, *SPENT, "--shed", "shed.jsonl", "-q", "-o", "out.jsonl" if program is SET else "out")
    rows = [json.loads(line) for line in Path("shed.jsonl").read_text(encoding="utf-8").splitlines()]
    mine = [row for row in rows if row.get("query", row.get("rule")) == whose]
    wanted = mine[len(mine) // 2]
    asked = ("--around", wanted["at"], "--query", whose, "--state", wanted["state"])
    result = acep("replay", *program, *SPENT, *asked, "--limit", 500)
    assert f"{len(mine):,} partial match" in result.stderr
    assert f" was shed at {wanted['at']} (row {wanted['row']})" in result.stdout
    assert "\n  why        " in result.stdout
    assert "\n  price      " in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((*SET, *SPENT, "--around", 5), "ACEP-U069"),
        ((*OF_RULES, *SPENT, "--around", 5), "ACEP-U069"),
        ((*SET, *SPENT, "--around", 5, "--query", "nobody"), "ACEP-U060"),
        ((*OF_RULES, *SPENT, "--around", 5, "--query", "nobody"), "ACEP-U160"),
        ((*SET, "--around", 5, "--query", "rising"), "ACEP-U040"),
        ((*SET, "--budget", "2 ms/batch", "--around", 5, "--query", "rising"), "ACEP-U043"),
        ((*SET, *SPENT, "--around", "noon", "--query", "rising"), "ACEP-U112"),
        ((*SET, *SPENT, "--around", 5, "--query", "rising", "--within", "5"), "ACEP-U064"),
        ((*OF_RULES, *SPENT, "--around", 5, "--query", "writer", "--output", "points"), "ACEP-U064"),
        ((RISING, "events.jsonl", *SPENT, "--around", 5, "--query", "rising"), "ACEP-U064"),
        ((RISING, "events.jsonl", *SPENT, "--around", 5, "--table", "seen=x.csv"), "ACEP-U064"),
        ((*SPENT, "--around", 5), "ACEP-U069"),
    ],
)
def test_what_cannot_be_replayed(arguments: tuple[Any, ...], code: str) -> None:
    stderr = acep("replay", *arguments, code=2).stderr
    assert stderr.startswith(f"error {code}"), stderr
    assert "  hint: " in stderr


def test_reports_need_a_budget() -> None:
    for program in (SET, OF_RULES):
        assert acep("run", *program, "--report", "x.html", code=2).stderr.startswith("error ACEP-U040")
        assert acep("run", *program, *SPENT, "--report", "nowhere/x.html", code=2).stderr.startswith("error ACEP-U016")
        assert acep("run", *program, *SPENT, "--report", "events.jsonl", code=2).stderr.startswith("error ACEP-U013")
