"""The oracle of rules itself: cases worked by hand, one for each point of the meaning."""

from __future__ import annotations

from typing import Any

import pytest

from acep_approx import compile_rules
from acep_approx.query.rules.parser import parse_rules
from tests.naive_rules import Outcome, run_rules

CELL = "TABLE cell (k text, n int DEFAULT 0, m int DEFAULT 0, KEY (k))"
BARE = "TABLE bare (k text, n int, w text DEFAULT 'u', KEY (k))"


def rows_of(stream: str) -> list[dict[str, Any]]:
    """``"A@3:x=1,k=q B"``: types, times (else the number of the event, from 1), attributes (else NULL; k is 'p')."""
    rows = []
    for number, word in enumerate(stream.split(), start=1):
        place, _, attributes = word.partition(":")
        kind, _, tick = place.partition("@")
        values = dict(pair.split("=") for pair in attributes.split(",") if pair)
        known = {name: read_value(name, value) for name, value in values.items()}
        rows.append({"ts": int(tick or number), "type": kind, "k": "p", "s": None, "x": None, "y": None} | known)
    return rows


def read_value(name: str, value: str) -> Any:
    """A value of an attribute, as its column holds it."""
    if value == "NULL":
        return None
    return value if name in "ks" else float(value) if name == "y" else int(value)


def run(text: str, stream: str, **tables: list[dict[str, Any]]) -> Outcome:
    """What comes of a stream."""
    return run_rules(parse_rules(text), rows_of(stream), tables)


def ends(outcome: Outcome, rule: str) -> list[int | None]:
    """The events that complete the matches of a rule, from 1."""
    return [None if match.row is None else match.row + 1 for match in outcome.matches[rule]]


def bound(outcome: Outcome, rule: str) -> list[str]:
    """The matches of a rule, ``"a1 b3"``."""
    return [" ".join(f"{variable}{row + 1}" for row, variable in match.bound) for match in outcome.matches[rule]]


# --- when an event reads ----------------------------------------------------------------------------------------------


def test_an_event_does_not_see_what_it_causes_itself() -> None:
    """Neither in its own rule nor in a later one; the next event does, also at the same time."""
    text = f"""{CELL}
        RULE one ON PATTERN A a WHERE store.cell[a.k].n = 0 WITHIN 1 DO UPDATE cell SET n = 1 AT (a.k) END
        RULE two ON PATTERN A a WHERE store.cell[a.k].n = 1 WITHIN 1 DO UPDATE cell SET m = 1 AT (a.k) END"""
    outcome = run(text, "A@1 A@1 A@2")
    assert ends(outcome, "one") == [1]
    assert ends(outcome, "two") == [2, 3]


def test_a_read_is_as_of_the_event_that_its_key_names() -> None:
    text = f"""{CELL}
        RULE set ON PATTERN C c WITHIN 1 DO UPDATE cell SET n = 1 AT (c.k) END
        RULE first ON PATTERN SEQ(A a, B b) WHERE store.cell[a.k].n = 0 WITHIN 9
        RULE second ON PATTERN SEQ(A a, B b) WHERE store.cell[b.k].n = 0 WITHIN 9"""
    outcome = run(text, "A B C B A B")
    assert bound(outcome, "first") == ["a1 b2", "a1 b4", "a1 b6"]
    assert bound(outcome, "second") == ["a1 b2"]


def test_at_names_another_event() -> None:
    """Early where the key is shared by all events of a match or constant, late otherwise."""
    text = f"""{CELL}
        RULE set ON PATTERN C c WITHIN 1 DO UPDATE cell SET n = 1 AT (c.k) END
        RULE shared ON PATTERN SEQ(A a, B b) WHERE [k] AND store.cell[a.k AT b].n = 1 WITHIN 9
        RULE fixed ON PATTERN SEQ(A a, B b) WHERE store.cell['p' AT b].n = 1 WITHIN 9
        RULE late ON PATTERN SEQ(A a, B b) WHERE store.cell[a.k AT b].n = 1 WITHIN 9
        RULE back ON PATTERN SEQ(A a, B b) WHERE store.cell[b.k AT a].n = 1 WITHIN 9"""
    outcome = run(text, "A B C B A B")
    for rule in ("shared", "fixed", "late"):
        assert bound(outcome, rule) == ["a1 b4", "a5 b6", "a1 b6"], rule
    assert bound(outcome, "back") == ["a5 b6"]


def test_reads_of_a_repetition_are_of_each_of_its_events() -> None:
    text = f"""{CELL}
        RULE set ON PATTERN C c WITHIN 1 DO UPDATE cell SET n = c.x AT (c.k) END
        RULE each ON PATTERN SEQ(A+ a[], B b) WHERE store.cell[a[i].k].n = 1 WITHIN 9
        RULE rises ON PATTERN SEQ(A+ a[], B b) WHERE store.cell[a[i].k].n > store.cell[a[i-1].k].n WITHIN 9
        RULE ended ON PATTERN SEQ(A+ a[], B b) WHERE store.cell[a[a.LEN].k].n = 1 WITHIN 9
        RULE late ON PATTERN SEQ(A+ a[], B b) WHERE store.cell[b.k AT a[i]].n = 1 WITHIN 9"""
    outcome = run(text, "A C:x=1 A A B")
    assert bound(outcome, "each") == ["a4 b5", "a3 a4 b5", "a3 b5"]
    assert bound(outcome, "late") == bound(outcome, "each")
    assert bound(outcome, "rises") == ["a4 b5", "a3 b5", "a1 a3 b5", "a1 a4 b5", "a1 b5"]
    assert bound(outcome, "ended") == ["a4 b5", "a3 a4 b5", "a3 b5", "a1 a3 a4 b5", "a1 a3 b5", "a1 a4 b5"]


def test_reads_of_events_that_must_not_happen() -> None:
    """What counts as such an event depends on the table when it came."""
    text = f"""{CELL}
        RULE set ON PATTERN D d WITHIN 1 DO UPDATE cell SET n = d.x AT (d.k) END
        RULE none ON PATTERN SEQ(A a, ~(C c), B b) WHERE store.cell[c.k].n = 1 WITHIN 9"""
    assert bound(run(text, "A C D:x=1 B"), "none") == ["a1 b4"]
    assert bound(run(text, "A D:x=1 C D:x=0 B"), "none") == []


def test_when_reads_as_of_the_event_that_completes_and_gates_only_actions() -> None:
    text = f"""{CELL}
        RULE set ON PATTERN C c WITHIN 1 DO UPDATE cell SET n = 1 AT (c.k) END
        RULE gate ON PATTERN SEQ(A a, B b) WITHIN 9 RETURN store.cell[a.k].n AS n
            WHEN store.cell[a.k].n = 1 DO UPDATE cell SET m = old.m + 1 AT (b.k) END"""
    outcome = run(text, "A B C B")
    assert [(match.returned, match.fired) for match in outcome.matches["gate"]] == [((0,), False), ((0,), True)]
    assert outcome.store["cell"]["p",] == {"n": 1, "m": 1}


def test_conditions_that_read_through_a_missing_event_are_void() -> None:
    text = f"""{CELL}
        RULE early ON PATTERN SEQ(A a, B b) WHERE store.cell[a.k].n = 1 WITHIN 9 ERRORS 1 WEIGHTS (b = 2)
        RULE late ON PATTERN SEQ(A a, B b) WHERE store.cell[a.s AT b].n = 1 WITHIN 9 ERRORS 1 WEIGHTS (b = 2)
        RULE when ON PATTERN SEQ(A? a, B b) WITHIN 9 WHEN store.cell[a.k].n = 1 DO CALL ring END"""
    outcome = run(text, "A B")
    assert bound(outcome, "early") == ["b2"]
    assert bound(outcome, "late") == ["b2"]
    assert [(one.bound, one.fired) for one in outcome.matches["when"]] == [
        (((1, "b"),), True),
        (((0, "a"), (1, "b")), False),
    ]


# --- rows that are there, or not --------------------------------------------------------------------------------------


def test_an_absent_row_reads_as_null_or_as_the_defaults() -> None:
    text = f"""{CELL} {BARE}
        RULE r ON PATTERN A a WITHIN 1 RETURN store.cell[a.k].n AS a, store.bare[a.k].w AS b,
            EXISTS store.cell[a.k] AS c, EXISTS store.bare[a.k] AS d"""
    assert run(text, "A").matches["r"][0].returned == (0, None, False, False)
    assert run(text, "A:k=NULL").matches["r"][0].returned == (None, None, False, False)
    loaded = [{"k": "p", "n": None, "w": None}]
    assert run(text, "A", bare=loaded).matches["r"][0].returned == (0, None, False, True)


@pytest.mark.parametrize(
    ("statement", "table", "row", "without_row"),
    [
        ("UPDATE cell SET m = old.n + 1", "cell", {"n": 0, "m": 1}, 0),
        ("UPDATE bare SET n = 1", "bare", None, 1),
        ("UPSERT bare SET n = 1", "bare", {"n": 1, "w": "u"}, 0),
        ("UPSERT bare SET w = old.w, n = old.n", "bare", {"n": None, "w": "u"}, 0),
        ("DELETE cell", "cell", None, 1),
        ("DELETE bare", "bare", None, 1),
    ],
)
def test_statements_on_an_absent_row(statement: str, table: str, row: Any, without_row: int) -> None:
    outcome = run(f"{CELL} {BARE} RULE r ON PATTERN A a WITHIN 1 DO {statement} AT (a.k) END", "A")
    assert outcome.store[table].get(("p",)) == row
    assert outcome.without_row == without_row
    assert len(outcome.changes) == 1 - without_row


def test_a_row_that_is_deleted_reads_as_absent() -> None:
    text = f"""{CELL}
        RULE set ON PATTERN A a WITHIN 1 DO UPDATE cell SET n = 5 AT (a.k) END
        RULE cut ON PATTERN B b WITHIN 1 DO DELETE cell AT (b.k) END
        RULE see ON PATTERN C c WITHIN 1 RETURN store.cell[c.k].n AS n, EXISTS store.cell[c.k] AS e"""
    outcome = run(text, "C A C B C")
    assert [match.returned for match in outcome.matches["see"]] == [(0, False), (5, True), (0, False)]
    assert [(change.op, change.after) for change in outcome.changes] == [
        ("insert", (("n", 5), ("m", 0))),
        ("delete", None),
    ]


# --- the order of actions ---------------------------------------------------------------------------------------------


def test_each_statement_sees_those_before_it_and_its_own_row_before() -> None:
    text = f"""{CELL}
        RULE one ON PATTERN A a WITHIN 1 DO UPDATE cell SET n = old.n + 1, m = old.n AT (a.k);
            UPDATE cell SET n = old.n + 1, m = old.n AT (a.k) END
        RULE two ON PATTERN A a WITHIN 1 DO UPDATE cell SET n = old.n * 10 AT (a.k) END"""
    outcome = run(text, "A")
    assert outcome.store["cell"]["p",] == {"n": 20, "m": 1}
    assert outcome.conflicts == 3  # n = 2 after 1; m = 1 after 0; n = 20
    assert [dict(change.after or ())["n"] for change in outcome.changes] == [1, 2, 20]


def test_equal_writes_are_no_conflict_but_changes() -> None:
    text = f"{CELL} RULE r ON PATTERN SEQ(A a, B b) WITHIN 9 DO UPDATE cell SET n = 1 AT (b.k) END"
    outcome = run(text, "A A B")
    assert outcome.conflicts == 0
    assert [change.row for change in outcome.changes] == [2, 2]


@pytest.mark.parametrize(("values", "conflicts"), [("1222", 1), ("1221", 2), ("1212", 3), ("2222", 0)])
def test_a_write_that_changes_nothing_is_no_conflict(values: str, conflicts: int) -> None:
    """What was written just before counts, not what was written before that; the engine counts alike."""
    text = f"{CELL} RULE r ON PATTERN SEQ(A a, B b) WITHIN 9 DO UPDATE cell SET n = a.x AT (b.k) END"
    events = " ".join(f"A:x={value}" for value in reversed(values)) + " B"  # those that start later act first
    assert run(text, events).conflicts == conflicts
    rows = [{"ts": ts, "type": "A", "x": int(value), "k": "p"} for ts, value in enumerate(reversed(values))]
    engine = compile_rules(text).start()
    engine.push([*rows, {"ts": 8, "type": "B", "x": 0, "k": "p"}])
    engine.finish()
    assert engine.counters["conflicts"] == conflicts


def test_matches_of_one_event_act_by_errors_then_later_start() -> None:
    text = """RULE r ON PATTERN SEQ(A a, B b, C c) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2) DO CALL ring(a.x) END"""
    outcome = run(text, "A:x=1 A:x=2 B A:x=4 C")
    assert bound(outcome, "r") == ["a2 b3 c5", "a1 b3 c5", "a4 c5", "a2 c5", "a1 c5"]
    assert [call.arguments for call in outcome.calls] == [(2,), (1,), (4,), (2,), (1,)]


def test_rows_decide_last_in_what_order_matches_act() -> None:
    """Of equal starts the earlier rows come first: another order than that of queries."""
    text = f"""{CELL} RULE r ON PATTERN SEQ(A a, B b, C c) WITHIN 9
        DO UPDATE cell SET n = b.x AT (c.k) END"""
    outcome = run(text, "A@1 B@2:x=1 B@2:x=2 C@3")
    assert bound(outcome, "r") == ["a1 b2 c4", "a1 b3 c4"]
    assert [dict(change.after or ())["n"] for change in outcome.changes] == [1, 2]
    assert outcome.conflicts == 1


def test_for_each_point_acts_once() -> None:
    text = f"""{CELL} RULE r ON PATTERN SEQ(A a, B b) WITHIN 9 WHEN a.x = 1
        FOR EACH POINT DO UPDATE cell SET n = old.n + 1 AT (b.k) END"""
    outcome = run(text, "A:x=1 A:x=1 A:x=2 B B@20")
    assert outcome.store["cell"]["p",]["n"] == 1
    assert [match.fired for match in outcome.matches["r"]] == [False, True, True]
    assert run(text, "A B").changes == []


def test_calls_have_numbers_within_what_one_event_causes() -> None:
    text = """RULE r ON PATTERN SEQ(A a, B b) WITHIN 9 DO CALL ring(a.ts, 'red', NULL); CALL mail END"""
    outcome = run(text, "A A B B")
    assert [(one.name, one.row, one.number, one.arguments) for one in outcome.calls[:4]] == [
        ("ring", 2, 0, (2, "red", None)),
        ("mail", 2, 1, ()),
        ("ring", 2, 2, (1, "red", None)),
        ("mail", 2, 3, ()),
    ]
    assert [call.number for call in outcome.calls[4:]] == [0, 1, 2, 3]


# --- windows that close -----------------------------------------------------------------------------------------------

LATE = f"""{CELL}
    RULE late ON PATTERN SEQ(A a, ~(B b)) WITHIN 3 DO UPDATE cell SET n = 1 AT (a.k) END
    RULE see ON PATTERN C c WITHIN 1 RETURN store.cell[c.k].n AS n"""


def test_a_negation_at_the_end_acts_after_the_last_tick_of_its_window() -> None:
    """Not at the tick of its event, nor before the events of the tick at which the window ends."""
    outcome = run(LATE, "A@1 C@3 C@4 C@4 C@5")
    assert [match.returned for match in outcome.matches["see"]] == [(0,), (0,), (0,), (1,)]
    assert [(change.time, change.row) for change in outcome.changes] == [(4, None)]
    assert run(LATE, "A@1 B@4").changes == []
    assert [change.time for change in run(LATE, "A@1 B@5").changes] == [4]


def test_what_waits_at_the_end_of_the_stream_acts_then() -> None:
    outcome = run(LATE, "A@1 A@2")
    assert [change.time for change in outcome.changes] == [4, 5]


def test_windows_that_close_at_one_tick_act_by_first_event_and_rule() -> None:
    text = f"""{CELL}
        RULE long ON PATTERN SEQ(A a, ~(B b)) WITHIN 3 DO CALL ring(a.x) END
        RULE short ON PATTERN SEQ(A a, ~(B b)) WITHIN 2 DO CALL ring(a.x) END"""
    outcome = run(text, "A@1:x=1 A@2:x=2 A@2:x=3")
    assert [(call.time, call.rule, call.arguments[0]) for call in outcome.calls] == [
        (3, "short", 1),
        (4, "long", 1),
        (4, "short", 2),
        (4, "short", 3),
        (5, "long", 2),
        (5, "long", 3),
    ]


def test_each_window_that_closes_is_a_transaction_of_its_own() -> None:
    """Its WHEN sees what those before it wrote, at the same tick, too."""
    text = f"""{CELL} RULE r ON PATTERN SEQ(A a, ~(B b)) WITHIN 3 WHEN store.cell[a.k].n = 0
        DO UPDATE cell SET n = 1 AT (a.k) END"""
    outcome = run(text, "A@1 A@1")
    assert [match.fired for match in outcome.matches["r"]] == [True, False]


def test_windows_of_events_close_after_their_last_event() -> None:
    text = f"""{CELL}
        RULE late ON PATTERN SEQ(A a, ~(B b)) WHERE [k] WITHIN 2 events DO UPDATE cell SET n = 1 AT (a.k) END
        RULE see ON PATTERN C c WITHIN 1 RETURN store.cell['p' AT c].n AS n"""
    outcome = run(text, "A@1 C@2 C@3:k=q C@4 C@4")
    assert [match.returned for match in outcome.matches["see"]] == [(0,), (0,), (0,), (1,)]
    assert [(change.time, change.row) for change in outcome.changes] == [(4, None)]
    assert [change.time for change in run(text, "A@1 C@7").changes] == [7]


def test_conditions_of_what_must_not_follow_read_too() -> None:
    text = f"""{CELL}
        RULE set ON PATTERN D d WITHIN 1 DO UPDATE cell SET n = 1 AT (d.k) END
        RULE late ON PATTERN SEQ(A a, ~(B b)) WHERE store.cell[b.k].n = 1 WITHIN 5"""
    assert bound(run(text, "A B D"), "late") == ["a1"]
    assert bound(run(text, "A D B"), "late") == []


# --- actions that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "attributes"),
    [
        ("UPDATE cell SET n = old.n + 1 AT (a.s)", ""),
        ("UPSERT cell SET n = 9223372036854775807 + a.x AT (a.k)", "x=1"),
        ("UPDATE cell SET n = a.y AT (a.k)", "y=0.5"),
        ("DELETE cell AT (a.s)", ""),
    ],
)
def test_an_action_that_fails_undoes_all_that_its_event_caused(statement: str, attributes: str) -> None:
    text = f"""{CELL}
        RULE good ON PATTERN ANY a WITHIN 1 DO UPDATE cell SET m = old.m + 1 AT (a.k) END
        RULE bad ON PATTERN A a WITHIN 1 DO {statement} END"""
    outcome = run(text, f"B B A:{attributes} B")
    assert outcome.failure == (2, "bad")
    assert outcome.store["cell"] == {("p",): {"n": 0, "m": 2}}
    assert ends(outcome, "good") == [1, 2]
    assert len(outcome.changes) == 2


def test_numbers_are_fitted_to_their_columns() -> None:
    text = """TABLE t (k text, n int, v float, KEY (k))
        RULE r ON PATTERN A a WITHIN 1 DO UPSERT t SET n = a.y, v = a.x AT (a.k) END"""
    outcome = run(text, "A:y=2.0,x=1 A:k=q")
    assert outcome.store["t"] == {("p",): {"n": 2, "v": 1.0}, ("q",): {"n": None, "v": None}}
    assert type(outcome.store["t"]["p",]["n"]) is int
    assert type(outcome.store["t"]["p",]["v"]) is float


def test_what_fails_when_a_window_closes_has_no_row_and_undoes_all_windows_of_that_tick() -> None:
    text = f"{CELL} RULE r ON PATTERN SEQ(A a, ~(B b)) WITHIN 1 DO UPDATE cell SET n = a.y AT (a.k) END"
    outcome = run(text, "A@0:y=7 A@1:y=8 A@1:y=0.5 C@9 A")
    assert outcome.failure == (None, "r")
    assert [change.time for change in outcome.changes] == [1]
    assert outcome.store["cell"]["p",]["n"] == 7


# --- strategies, NON OVERLAP ------------------------------------------------------------------------------------------


def test_next_match_skips_what_does_not_satisfy_its_reads() -> None:
    text = f"""{CELL}
        RULE set ON PATTERN C c WITHIN 1 DO UPDATE cell SET n = 1 AT (c.k) END
        RULE next ON PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ store.cell[b.k].n = 1 }} WITHIN 9"""
    assert bound(run(text, "A B C B B"), "next") == ["a1 b4"]


def test_matches_that_overlap_one_that_was_reported_do_not_act() -> None:
    text = f"""{CELL} RULE r ON PATTERN SEQ(A a, B b) WITHIN 9 NON OVERLAP
        DO UPDATE cell SET n = old.n + 1 AT (b.k) END"""
    outcome = run(text, "A A B B A B")
    assert bound(outcome, "r") == ["a2 b3", "a5 b6"]
    assert outcome.store["cell"]["p",]["n"] == 2
