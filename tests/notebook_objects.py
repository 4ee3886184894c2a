"""One of each kind of object that users hold, for what notebooks show of it."""

from __future__ import annotations

from functools import cache
from typing import Any

from acep_approx import Afa, HistoryGraph, QuerySet, compile_query, compile_rules, look
from acep_approx.events.source import open_source
from acep_approx.results.tuning import PastTable, Tuning, tune

RULES = """
TABLE status (id text, level int DEFAULT 0, KEY (id))
RULE up ON PATTERN Come a WHERE store.status[a.id].level = 0 WITHIN 1 DO UPDATE status SET level = 1 AT (a.id) END
RULE tell ON PATTERN Look a WHERE store.status[a.id].level = 1 WITHIN 1 DO CALL badge(a.id) END
"""
SHEDDING = "RULE rise ON PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 40"
NASTY = "<script>alert(1)</script>"
EVENTS = [{"ts": t, "type": "AABC"[t * 7 % 4], "x": t * 13 % 29, "user": f"u{t % 3}{NASTY}"} for t in range(900)]
QUERY = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 40")
CELLS = compile_query("PATTERN SEQ(A a, B b, C c) WHERE [user] WITHIN 20 ERRORS 1")


@cache
def known() -> HistoryGraph:
    """A history of the query."""
    return HistoryGraph(QUERY).fit(EVENTS)


def desk() -> QuerySet:
    """Queries that feed one another, and many alike."""
    made = QuerySet(time="ts")
    for low in range(30):
        made.add(f"PATTERN SEQ(A a, B b) WHERE b.x > {low} WITHIN 5", id=f"low{low}")
    made.add("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5 RETURN b.x AS x PUBLISH Up", id="up")
    made.add(f"PATTERN Up u WHERE u.x > 3 AND u.x <> 9 WITHIN 5 RETURN u.x AS x PUBLISH 'H{NASTY}'", id=NASTY)
    return made


@cache
def tuned() -> Tuning:
    """Choices of ERRORS and budgets."""
    text = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN {} ERRORS {}"
    past = PastTable.read(open_source(EVENTS[:300]))
    return tune(lambda k, w: compile_query(text.format(w or 20, k or 0), engine="runs"), past, errors=(0, 1),
                budgets=("20%",))  # fmt: skip


def rule_run() -> Any:
    """Rules under way."""
    run = compile_rules(RULES).start()
    run.push([{"ts": t, "type": ("Come", "Look")[t % 2], "id": NASTY} for t in range(20)])
    return run


def rule_output() -> Any:
    """What came of some events."""
    return compile_rules(RULES).run([{"ts": t, "type": ("Come", "Look")[t % 2], "id": NASTY} for t in range(20)])


def matcher(**options: Any) -> Any:
    """A live run."""
    made = QUERY.matcher(**options)
    made.push(EVENTS[:200])
    return made


def budgeted() -> Any:
    """Matches inside a budget, run once."""
    some = QUERY.match_within(EVENTS, "20%", history=known())
    some.points()
    return some


def afa() -> Afa:
    """An automaton from Python."""
    return Afa(registers={"low": float}).arc("a", "b", "Tick", "t", then={"low": "t.price"}).final("b")


def found_within() -> Any:
    """What a set finds inside a budget."""
    return desk().match_within(EVENTS[:200], "2 steps/event")


OBJECTS = {
    "look": lambda: look(EVENTS),
    "query": lambda: CELLS,
    "query of runs": lambda: QUERY,
    "query in CEL": lambda: compile_query("SELECT Name FROM Stock NEXT{$2.Name = $1.Name} Stock WITHIN 9"),
    "matches": lambda: CELLS.match(EVENTS),
    "no match": lambda: compile_query("PATTERN SEQ(A a, D d) WITHIN 3").match(EVENTS).no_match(),
    "no matches": lambda: CELLS.match(EVENTS[:1]),
    "matches of nothing": lambda: CELLS.match([]),
    "match": lambda: next(iter(CELLS.match(EVENTS))),
    "budgeted": budgeted,
    "record": lambda: budgeted().record(NASTY),
    "empty record": lambda: QUERY.matcher(budget="2 steps/event").record(),
    "history": known,
    "empty history": lambda: HistoryGraph(QUERY),
    "why": lambda: CELLS.why(EVENTS, around=300, key=EVENTS[0]["user"]),
    "why not": lambda: compile_query("PATTERN SEQ(A a, D d) WITHIN 3").why(EVENTS, around=300),
    "matcher": matcher,
    "fresh matcher": QUERY.matcher,
    "budgeted matcher": lambda: matcher(budget="2 steps/event"),
    "revised matcher": lambda: matcher(watermark=5),
    "set": desk,
    "empty set": QuerySet,
    "found": lambda: desk().match(EVENTS[:60]),
    "found within": found_within,
    "record of a set": lambda: found_within().record(NASTY),
    "record of rules": lambda: compile_rules(SHEDDING).match_within(EVENTS, "2 steps/event").record,
    "rules": lambda: compile_rules(RULES),
    "rules under way": rule_run,
    "rule output": rule_output,
    "store": lambda: rule_run().store,
    "table": lambda: rule_run().store["status"],
    "afa": afa,
    "empty afa": Afa,
    "tuning": tuned,
}
