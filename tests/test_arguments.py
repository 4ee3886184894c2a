"""Arguments of wrong types are refused with a code that stays the same, never with a TypeError from within."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from acep_approx import Budget, HistoryGraph, UsageError, compile_query

QUERY = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
EVENTS = [{"ts": 1, "type": "A", "x": 1}, {"ts": 2, "type": "B", "x": 2}]
WRONG = (5, b"x", ["A", 1], {"a": 1}, 2j)


@pytest.mark.parametrize("wrong", [None, *WRONG], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        compile_query,
        Budget.parse,
        HistoryGraph,
        lambda wrong: QUERY.match_within(EVENTS, wrong),
        lambda wrong: HistoryGraph.load(wrong, QUERY),
        lambda wrong: QUERY.from_state(wrong if wrong != b"x" else "x"),
        lambda wrong: QUERY.matcher(merge=wrong),
        lambda wrong: QUERY.match(EVENTS, merge=wrong),
        lambda wrong: QUERY.explain(wrong),
        lambda wrong: QUERY.matcher().pass_time(wrong if wrong != 5 else 5.5),
    ],
)
def test_what_must_be_given(call: Callable[[Any], Any], wrong: Any) -> None:
    """Also None, which stands for nothing here."""
    with pytest.raises(UsageError) as caught:
        call(wrong)
    assert caught.value.code == "ACEP-U053"
    assert caught.value.hint


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize("name", ["time", "key", "type", "bind"])
def test_names_of_columns(name: str, wrong: Any) -> None:
    """In all calls that take them."""
    for call in (
        lambda: QUERY.match(EVENTS, **{name: wrong}).to_arrow(),
        lambda: QUERY.matcher(**{name: wrong}).push(EVENTS),
    ):
        with pytest.raises(UsageError, match="ACEP-U053"):
            call()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("limit", "3"),
        ("limit", 2.5),
        ("on_progress", 5),
        ("history", 5),
        ("audit", "x"),
        ("seed", 0.5),
        ("full_work", "x"),
        ("policy", ["oldest"]),
    ],
)
def test_options(name: str, wrong: Any) -> None:
    """Of matching, and inside a budget."""
    call = QUERY.match if name in ("limit", "on_progress") else partial(QUERY.match_within, budget="5 runs")
    with pytest.raises(UsageError, match="ACEP-U053"):
        call(EVENTS, **{name: wrong})


@pytest.mark.parametrize(("name", "wrong"), [("errors", "1"), ("errors", 0.5), ("within", 5), ("within", b"5")])
def test_what_replaces_clauses(name: str, wrong: Any) -> None:
    """ERRORS and WITHIN of a query."""
    with pytest.raises(UsageError, match="ACEP-U053"):
        compile_query("ab WITHIN 5", **{name: wrong})


@pytest.mark.parametrize("wrong", [None, 5, b"x", {"a": 1}, 2j], ids=repr)
def test_events(wrong: Any) -> None:
    """What events cannot be read from."""
    for call in (QUERY.match, QUERY.matcher().push, HistoryGraph(QUERY).fit):
        with pytest.raises(UsageError, match="ACEP-U107"):
            call(wrong)


def test_a_matcher_that_has_seen_nothing() -> None:
    """It has nothing to put out, whatever it is told."""
    matcher = QUERY.matcher()
    assert matcher.pass_time(5).num_rows == matcher.finish().num_rows == matcher.push([]).num_rows == 0
    assert QUERY.from_state(matcher.state_bytes()).push(EVENTS).num_rows == 1
