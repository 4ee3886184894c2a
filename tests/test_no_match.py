"""Nothing is found in silence: which step no event passed, by hand and held against brute force."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from acep_approx import UsageError, compile_query
from acep_approx.events.source import open_source
from acep_approx.query.shape import atoms, walk
from acep_approx.query.syntax import LISTS_ALL, Absent, Atom, Sequence
from acep_approx.why import no_match
from acep_approx.why.no_match import Beginning, beginnings, explain_no_match, loose, relaxations, wide
from acep_approx.why.result import NoMatch
from tests.cases import examples
from tests.command_line import acep
from tests.naive import PartitionSearch, expected_matches, partitions
from tests.naive_partial import prefixes
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import compiled
from tests.smaller_worlds import holds_for
from tests.streams import rows_of


def nothing(query: str, events: str, **options: Any) -> NoMatch:
    """The answer for events from a line like ``0 A 5, 1 B``."""
    return explain_no_match(compile_query(query).plan, open_source(rows_of(events)), options)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_type_that_no_event_has():
    answer = nothing("PATTERN SEQ(Packed p, Loded d) WITHIN 5", "0 Packed, 1 Loaded, 2 Packed")
    assert answer.headline == (
        "no match: 2 events are Packed (p), but no event is Loded (d) (did you mean 'Loaded'?)"
    )
    assert (answer.reason, answer.step) == ("type", ("d",))


def test_a_condition_that_no_event_meets():
    answer = nothing("PATTERN SEQ(A a, B b, C c) WHERE c.x > 900 WITHIN 5", "0 A, 0 B, 1 C 41, 2 C 7, 3 C")
    assert answer.headline == (
        "no match: 1 event is A (a), 1 B (b), but none of the 3 C (c) passes c.x > 900 (the largest is 41)"
    )
    assert (answer.reason, answer.step) == ("condition", ("c",))
    assert answer.steps[2].failed == ({"condition": "c.x > 900", "failing": 3, "nearest": "the largest is 41"},)
    assert answer.table()[-1] == ["c", "C", "3", "0", "0"]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("900 < b.x", "none of the 2 B (b) passes 900 < b.x (the largest is 7)"),
        ("b.x < 1", "none of the 2 B (b) passes b.x < 1 (the smallest is 3)"),
        ("b.x = 4", "none of the 2 B (b) passes b.x = 4 (values are for example 3, 7)"),
        ("b.x IS NULL", "none of the 2 B (b) passes b.x IS NULL"),
        ("b.x > 5 AND b.x < 5", "none of the 2 B (b) passes b.x > 5 and b.x < 5 together"),
        ("b.y > 5", "none of the 2 B (b) passes b.y > 5 (y is NULL in all of them)"),
        ("b.type = 'b'", "none of the 2 B (b) passes b.type = 'b' (did you mean 'B'?)"),
    ],
)
def test_how_near_a_condition_is(condition, said):
    rows = [{"ts": 0, "type": "A", "x": 1, "y": 1}, {"ts": 1, "type": "B", "x": 3}, {"ts": 2, "type": "B", "x": 7}]
    query = compile_query(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 5")
    answer = explain_no_match(query.plan, open_source(rows), {})
    assert answer.headline == f"no match: 1 event is A (a), but {said}"


def keyed(*users: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"ts": i, "type": kind, "user": user} for i, (kind, user) in enumerate(users)]


def test_a_key_that_no_two_steps_share():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [user] WITHIN 9")
    rows = keyed(("A", "U1"), ("A", "U2"), ("B", "u1 "), ("B", None), ("C", "x"))
    answer = explain_no_match(query.plan, open_source(rows), {})
    assert answer.headline == "no match: no user has both a and b; there are 2 with a, 1 with b"
    assert answer.lines == (
        "values of user: 'U1' and 'u1 ' differ in upper and lower case",
        "1 event has no value for user",
    )
    assert (answer.reason, answer.around, answer.key) == ("key", "0", {"user": "U1"})


def test_several_keys_and_numbers():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [user] AND [x] WITHIN 9")
    rows = [{"ts": i, "type": "AABB"[i], "user": i % 2, "x": 7 + i // 2} for i in range(4)]
    assert explain_no_match(query.plan, open_source(rows), {}).headline == (
        "no match: no user and x has both a and b; there are 2 with a, 2 with b"
    )


def test_the_sides_of_an_equality_have_nothing_in_common():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE a.user = b.user WITHIN 9")
    answer = explain_no_match(query.plan, open_source(keyed(("A", "007"), ("B", "7"))), {})
    assert answer.headline == "no match: 1 event would complete a and b without a.user = b.user"
    assert answer.lines == ("a.user = b.user: '007' and '7' differ in zeros in front",)


def test_the_order():
    answer = nothing("PATTERN SEQ(A a, C c, B b) WITHIN 9", "0 A, 1 B, 2 C, 3 C")
    assert answer.headline == "no match: no B (b) comes after a and c"
    assert [step.passed for step in answer.steps] == [1, 2, 0]
    assert answer.helps == ("ERRORS 1 (3 match points)",)
    assert (answer.reason, answer.around) == ("order", "2")


def test_the_window_and_the_one_that_would_do():
    answer = nothing("PATTERN SEQ(A a, B b, C c) WITHIN 5", "0 A, 1 B, 20 A, 21 B, 27 C")
    assert answer.headline == (
        "no match: no C (c) comes after a and b within 5; they take at least 7"
    )
    assert answer.helps == ("WITHIN 7", "ERRORS 1 (2 match points)")
    assert answer.around == "20"
    answer = nothing("PATTERN SEQ(A a, B b) WITHIN 1 events", "0 A, 1 C, 2 B")
    assert answer.helps == ("WITHIN 2 events",)


def test_windows_are_told_as_people_say_them():
    times = ["08:00:00", "10:10:00.123", "10:10:00.124"]
    rows = [{"ts": f"2024-05-01T{time}Z", "type": "ABC"[i]} for i, time in enumerate(times)]
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 90 min")
    answer = query.match(rows).no_match()
    assert answer.headline == "no match: no B (b) comes after a within 90 min; they take at least about 2.17 h"
    assert answer.helps == ("WITHIN 3 h",)
    assert len(compile_query("PATTERN SEQ(A a, B b) WITHIN 3 h").match(rows)) == 1


def test_conditions_on_several_events_and_negations():
    answer = nothing("PATTERN SEQ(A a, B b) WHERE b.x > a.x AND b.x != 3 WITHIN 5", "0 A 5, 1 B 1, 2 B 3, 3 B 2")
    assert answer.headline == "no match: 2 events would complete a and b without b.x > a.x"
    answer = nothing("PATTERN SEQ(A a, ~(N n), B b) WHERE b.x = a.x WITHIN 5", "0 A 1, 1 N, 2 B 1, 3 B 2")
    assert answer.headline == "no match: 1 event would complete a and b without ~(N n)"
    answer = nothing("PATTERN SEQ(A a, ~(N n), B b) WHERE b.x = a.x WITHIN 5", "0 A 1, 1 N, 3 B 2")
    assert answer.headline == (
        "no match: a and b come in order and in time, but never meet all conditions together"
    )
    answer = nothing("PATTERN SEQ(A a, B b) WHERE strict_contiguity WITHIN 5", "0 A, 1 N, 3 B")
    assert answer.headline == "no match: 1 event would complete a and b without strict_contiguity"


def test_choices_and_repetitions():
    answer = nothing("PATTERN SEQ(A a, (B b | C c)) WITHIN 5", "0 A, 1 D")
    assert (answer.reason, answer.step) == ("type", ("b", "c"))
    assert answer.headline == "no match: 1 event is A (a), but no event is B (b), and no event is C (c)"
    answer = nothing("PATTERN SEQ(A a, A{3} b[], B c) WITHIN 9", "0 A, 1 A, 2 A, 3 B")
    assert answer.step == ("b",)
    answer = nothing("PATTERN SEQ(A a, B? b, C c) WITHIN 9", "0 A")
    assert answer.step == ("c",)  # b need not come


def test_errors_say_what_may_be_missing():
    answer = nothing("PATTERN SEQ(A a, B b, C c, D d) WITHIN 9 ERRORS 1", "0 A, 1 D, 2 B 1")
    assert (answer.reason, answer.step) == ("order", ("d",))
    answer = nothing("PATTERN SEQ(A a, B b, C c, D d) WITHIN 9 ERRORS 1", "0 A, 1 D")
    assert answer.headline == "no match: 1 event is A (a), but no event is B (b), and no event is C (c)"


def test_what_takes_too_long_is_said(monkeypatch):
    monkeypatch.setattr(no_match, "STEPS", 10)
    text = ", ".join(f"{i} A {i % 7}" for i in range(30)) + ", 30 B 99"
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i].x > a[i-1].x AND b.x < a[a.LEN].x } WITHIN 90"
    monkeypatch.setattr(no_match, "MOST_STEPS", 10)
    assert nothing(query, text).headline == (
        "no match: there are too many partial matches to say which step no event passed"
    )


def test_a_condition_on_negated_events_goes_with_its_negation():
    """Without it, the negation would forbid more than the query does."""
    answer = nothing("PATTERN SEQ(A a, ~(N n), B b, C c) WHERE n.x = c.x WITHIN 9", "0 C 1, 1 A, 2 N 5, 3 B")
    assert answer.step == ("c",)
    assert answer.headline == "no match: no C (c) comes after a and b"


def test_no_events_and_only_the_first_ones():
    plan = compile_query("PATTERN SEQ(A a, B b) WITHIN 5").plan
    assert explain_no_match(plan, open_source([]), {}).headline == "no match: there are no events"
    answer = explain_no_match(plan, open_source(rows_of("0 A, 1 B, 2 B")), {}, most=1)
    assert answer.is_cut
    assert answer.headline.startswith("no match in the first 1 events, which were looked at: 1 event is A (a), but no")


def test_a_query_with_matches():
    assert nothing("PATTERN SEQ(A a, B b) WITHIN 5", "0 A, 1 B").reason == "found"


def test_an_automaton_written_by_hand():
    text = "PATTERN AUTOMATON (start -> up ON A a up -> end ON B b FINAL end) WITHIN 5"
    answer = nothing(text, "0 A, 1 C")
    assert answer.headline == "no match: 1 event is A (a), but no event is B (b)"
    assert nothing(text, "0 A, 1 B").reason == "found"
    assert nothing(text, "0 B, 1 A").headline == (
        "no match: the furthest partial match has 1 event: after these no B (b) came that fits"
    )


def test_a_query_in_cel():
    text = "SELECT * FROM FILTER{x > 1}(A) NEXT{$2.x > $1.x} B"
    answer = nothing(text, "0 A 2, 1 B 1")
    assert answer.headline == "no result: the chain that came furthest has 1 event"
    assert any("fails" in line for line in answer.lines)
    assert nothing(text, "0 A 1, 1 B 1").headline == "no result: no event could begin one"
    assert nothing(text, "0 A 2, 1 B 3").reason == "found"


# --- by brute force ---------------------------------------------------------------------------------------------------


@examples(500, shrink=False)
@given(rich_worlds())
def test_what_is_said_is_true_by_brute_force(world: RichWorld) -> None:
    holds_for(world, is_true)


def is_true(world: RichWorld) -> None:
    """Hold every claim against the oracle."""
    query = compiled(world)
    if query is None or not world.rows:
        return
    answer = explain_no_match(query.plan, open_source(world.table()), {})
    assert (answer.reason == "found") == bool(world.expected())
    assert answer.text()
    if answer.reason == "found":
        return
    counts_are_right(world, answer)
    whole = replace(world.query, selection=LISTS_ALL, outputs=())
    if answer.reason in ("order", "window", "together"):
        steps_are_right(world, answer, beginnings(whole))
    for help_ in answer.helps:
        name, value, *_ = help_.split()
        window = replace(whole.window, amount=int(value)) if name == "WITHIN" else whole.window
        errors = int(value) if name == "ERRORS" else whole.errors
        assert expected_matches(replace(whole, window=window, errors=errors), world.rows)


def counts_are_right(world: RichWorld, answer: NoMatch) -> None:
    """The events of each type, and those that meet the conditions on single events."""
    search = PartitionSearch(world.query, world.rows, list(range(len(world.rows))))
    for step in answer.steps:
        mine = [atom for atom in atoms(world.query.pattern) if atom.variable == step.variable]
        assert step.events == sum(step.type in (None, row["type"]) for row in world.rows)
        fits = [row for row in range(len(world.rows)) if any(search.conditions.fits(atom, row) for atom in mine)]
        assert step.fitting == len(fits)
    if answer.reason in ("type", "condition") and world.query.errors == 0:
        needed = [one for one in answer.steps if one.variable in answer.step]
        assert all(one.fitting == 0 for one in needed)


def steps_are_right(world: RichWorld, answer: NoMatch, parts: list[Beginning]) -> None:
    """No event passes the step, what passes those before it, and what each change lets pass."""
    for part in parts:
        ends = {bound[-1][0] for bound in expected_matches(part.query, world.rows)}
        passed = {one.passed for one in answer.steps if one.variable in part.names}
        if not ends:
            break
        assert world.query.is_regex or passed == {len(ends)}
    assert answer.step == part.names
    step = next(one for one in walk(world.query.pattern) if isinstance(one, Atom) and one.variable in answer.step)
    if is_plain_step(world, step) and not world.query.is_regex:
        assert not bound_by_a_path(world, step.variable)
    if answer.reason == "order":
        assert not expected_matches(wide(loose(part.query)), world.rows)
    elif answer.reason == "window":
        assert not expected_matches(loose(part.query), world.rows)
    for text, changed in relaxations(part.query):
        if f"without {text}" in answer.headline:
            number = int(answer.headline.split(": ", 1)[1].split()[0])
            assert number == len({bound[-1][0] for bound in expected_matches(changed, world.rows)})


def is_plain_step(world: RichWorld, step: Atom) -> bool:
    """Whether it is a part of the sequence by itself, so that whoever binds it has passed all before it."""
    pattern = world.query.pattern
    parts = pattern.parts if isinstance(pattern, Sequence) else ()
    return step in parts and not any(isinstance(part, Absent) for part in (parts[0], parts[-1]))


def bound_by_a_path(world: RichWorld, variable: str) -> bool:
    return any(
        variable in {name for _, name in path.bound}
        for part in partitions(world.query, world.rows)
        for path in prefixes(PartitionSearch(world.query, world.rows, part))
    )


# --- what is said on stderr -------------------------------------------------------------------------------------------

LOST = "PATTERN SEQ(Packed p, Loaded l, Delivered d) WHERE [key] WITHIN 1 h"
LATE = "no match: no Delivered (d) comes after p and l of the same key within 1 h; they take at"
MORE_GONE = f"acep why '{LOST.replace('d)', 'd, X x)')}' events.csv --key 'box 1' --around 2024-05-01T08:06:00Z\n"
MORE = f"to see more: acep why '{LOST}' events.csv --key 'box 1' --around 2024-05-01T08:00:00Z\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count"])
def test_a_run_says_why_it_found_nothing(output):
    said = acep("run", LOST, "events.csv", "--output", output).stderr
    assert LATE in said
    assert "  it would match with WITHIN 90 min, or ERRORS 1 (1 match point)\n" in said
    assert said.endswith(MORE)


@pytest.mark.usefixtures("folder")
def test_other_runs_say_it_too(tmp_path):
    assert LATE in acep("run", LOST, "events.csv", "--engine", "runs", "--budget", "9 runs").stderr
    assert LATE in acep("run", LOST, "events.csv", "--output", "compressed", "-o", str(tmp_path / "out")).stderr
    assert LATE in acep("run", LOST, "events.csv", "--watermark", "1 s").stderr
    options = ("--time", "ts", "--key", "key", "-k", "0", "--sort", "--on-late", "refuse")
    said = acep("run", LOST, "events.csv", *options).stderr
    assert "events.csv --errors 0 --time ts --key-column key --sort --on-late refuse --key 'box 1' --around" in said


@pytest.mark.usefixtures("folder")
def test_files_of_rows_that_were_left_out_stay_as_they_are(folder):
    text = "ts,type\n1,A\n2,A,9\n2,A\n1,B\n3,A\n"
    (folder / "odd.csv").write_text(text, encoding="utf-8")
    out = ("--on-malformed", "skip", "--rejects", "bad.jsonl", "--on-late", "skip", "--late", "late.jsonl")
    said = acep("run", "PATTERN SEQ(A a, B b) WITHIN 5", "odd.csv", *out).stderr
    assert "no match: 3 events are A (a), but no event is B (b)" in said
    assert json.loads((folder / "bad.jsonl").read_text(encoding="utf-8"))["line"] == 3
    assert json.loads((folder / "late.jsonl").read_text(encoding="utf-8"))["row"] == 2
    matches = compile_query("ab WITHIN 5").match("odd.csv", on_malformed="skip", on_late="skip", rejects="bad.jsonl")
    assert matches.no_match(most=1).is_cut
    assert (folder / "bad.jsonl").read_text(encoding="utf-8")


@pytest.mark.usefixtures("folder")
def test_where_nothing_is_to_be_said():
    for options in (("--quiet",), ("--within", "2 h"), ("--output", "partial"), ("--within", "2 h", "--limit", "0")):
        assert "no match" not in acep("run", LOST, "events.csv", *options).stderr


@pytest.mark.usefixtures("folder")
def test_of_events_that_are_gone_the_counters_tell(folder):
    piped = (folder / "events.csv").read_bytes()
    said = acep("run", LOST, "-", stdin=piped).stderr
    assert "no match: 2 events fit p, 1 event fit l, 2 events fit d; how far they came together cannot be said" in said
    assert "... | tee events.csv | acep run ... -" in said
    said = acep("run", LOST.replace("Loaded", "Lodaed"), "-", stdin=piped).stderr
    assert "no match: 2 events fit p, 2 events fit d, but no event fits Lodaed (l) (did you mean 'Loaded'?)" in said
    said = acep("run", LOST.replace("[key]", "d.kg > 99"), "-", "--output", "count", stdin=piped).stderr
    assert "no match: 2 events fit p, 1 event fit l, but no event fits Delivered (d)\n" in said


@pytest.mark.usefixtures("folder")
def test_a_set_and_rules_name_those_that_are_silent(tmp_path):
    (tmp_path / "queries").mkdir()
    for name, query in (("some", LOST.replace("1 h", "2 h")), ("lost", LOST), ("gone", LOST.replace("d)", "d, X x)"))):
        (tmp_path / "queries" / f"{name}.acep").write_text(query, encoding="utf-8")
    said = acep("run", "--queries", str(tmp_path / "queries"), "events.csv").stderr
    assert "queries without a match: gone, lost\n" in said
    assert "  gone: 2 events are Packed (p), 1 Loaded (l), 2 Delivered (d), but no event is X (x)\n" in said
    assert "  lost: no Delivered (d) comes after p and l of the same key within 1 h; they take at" in said
    assert f"to see more of gone: {MORE_GONE}" in said
    rules = (
        "TABLE seen (kg FLOAT, times INT, KEY (kg))\n"
        f"RULE lost ON {LOST} DO UPSERT seen SET times = 1 AT (d.kg) END\n"
        f"RULE some ON {LOST.replace('1 h', '2 h')} DO UPSERT seen SET times = 1 AT (d.kg) END\n"
    )
    (tmp_path / "rules.acep").write_text(rules, encoding="utf-8")
    said = acep("run", str(tmp_path / "rules.acep"), "events.csv").stderr
    assert "rule without a match: lost\n  lost: no Delivered (d) comes after p and l of the same key" in said
    assert MORE in said


@pytest.mark.usefixtures("folder")
@pytest.mark.usefixtures("folder")
def test_the_command_to_see_more_is_one_that_why_takes():
    said = acep("run", LOST, "events.csv", "--format", "jsonl").stderr
    assert said.endswith(MORE)


def test_looking_why_leaves_the_numbers_of_late_events_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("acep_approx.cli.no_match.LOOKED_AT", 3)
    (tmp_path / "late.csv").write_text("ts,type\n1,A\n3,B\n2,A\n4,A\n5,B\n1,B\n9,C\n", encoding="utf-8")
    (tmp_path / "queries").mkdir()
    queries = {"some": "PATTERN SEQ(A a, B b) WITHIN 5", "gone": "PATTERN SEQ(A a, X x) WITHIN 5"}
    for name, query in queries.items():
        (tmp_path / "queries" / f"{name}.acep").write_text(query, encoding="utf-8")
    rules = "\n".join(f"RULE {name} ON {query}" for name, query in queries.items())
    (tmp_path / "rules.acep").write_text(rules, encoding="utf-8")
    for run in (("--queries", "queries"), ("rules.acep",)):
        said = acep("run", *run, "late.csv", "--on-late", "skip").stderr
        assert "in the first 3 events" in said
        assert "2 events left out that came late; row 2: time runs backwards, from 3 to 2" in said


def test_rows_that_take_back_are_no_events(folder):
    rows = "ts,op,id,type\n1,insert,1,A\n2,insert,2,B\n3,delete,2,B\n"
    (folder / "changes.csv").write_text(rows, encoding="utf-8")
    said = acep("run", "PATTERN SEQ(A a, B b) WITHIN 5", "changes.csv", "--op", "op", "--id", "id").stderr
    assert "no match; to see why, run the query over the events that remain" in said


# --- why begins there -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_why_without_a_time_begins_where_it_came_furthest(folder):
    shown = acep("why", LOST, "events.csv").stdout
    assert shown.startswith(LATE)
    assert "│ d    │ Delivered │ 2      │ 2   │ 0      │" in shown
    assert "no match of box 1 at 2024-05-01T08:00:00Z; the furthest partial match has 2 events\n" in shown
    assert "  one that fits came too late, by 30 min (row 3, 2024-05-01T09:30:00Z)\n" in shown
    found = json.loads(acep("why", LOST, "-", "--format", "json", stdin=(folder / "events.csv").read_bytes()).stdout)
    assert (found["reason"], found["step"], found["furthest"]["events"][1]["row"]) == ("window", ["d"], 2)


@pytest.mark.usefixtures("folder")
def test_why_without_a_time_shows_the_first_match():
    shown = acep("why", LOST, "events.csv", "--within", "2 h").stdout
    assert shown.startswith("there is a match of box 1 at 2024-05-01T09:30:00Z, with 0 errors\n")
    assert "this is the first match of the stream; say when to ask about others: --around TIME, with --key" in shown
    of_key = acep("why", LOST, "events.csv", "--within", "2 h", "--key", "box 1").stdout
    assert "this is the first match of this key; say when to ask about others: --around TIME" in of_key


@pytest.mark.parametrize("once", [False, True])
def test_where_there_are_matches_it_says_so(once):
    """Also of events that can be read only once: of these it said that there was none."""
    rows = rows_of("0 A 1, 1 B 5")
    matches = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5").match(iter(rows) if once else rows)
    assert matches.to_arrow().num_rows == 1
    told = matches.no_match()
    assert told.reason == "found"
    assert told.headline.startswith("there are matches")


def test_from_python():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
    rows = rows_of("0 A 5, 1 B 1")
    answer = query.why(rows)
    assert isinstance(answer, NoMatch)
    assert answer.furthest is not None
    assert answer.furthest.helps == ("no condition b.x > a.x",)
    assert "1 fails b.x > a.x" in answer.text()
    assert "<table" in answer._repr_html_()
    assert query.why([]).reason == "no events"
    matches = query.match(iter(rows))
    with pytest.raises(UsageError, match="ACEP-U131"):
        matches.no_match()
    assert matches.to_arrow().num_rows == 0
    assert matches.no_match().reason == "unknown"
    assert query.match(rows).no_match().reason == "together"
    assert len(query.match(rows)) == 0
