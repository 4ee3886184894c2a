"""Calls of the kernels that take longest to compile: what processes do that tests are forked from."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from acep_approx import HistoryGraph, afa_function, compile_query
from acep_approx.errors import FewPointsWarning

EVENTS = [{"ts": ts, "type": "AB"[ts % 2], "key": ts // 2 % 3, "x": ts * 7 % 11} for ts in range(60)]
CELLS = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 10 ERRORS 1"
RUNS = "PATTERN SEQ(A+ a[], B b) WHERE [key] AND b.x > a[i].x WITHIN 20"
WAITING = "PATTERN SEQ(A a, B b, ~(C c)) WHERE b.x > a.x WITHIN 10 NON OVERLAP"
CALLING = """PATTERN AUTOMATON (
  REGISTERS last = 0.0
  q0 -> q1 ON A a WHEN apart(a.x, 3.0) > 1 SET last = a.x
  q1 -> q2 ON B b WHEN apart(b.x, last) > 1
  FINAL q2
) WHERE [key] WITHIN 20"""


@afa_function(version=1, returns=float)
def apart(left: Any, right: Any) -> Any:
    """The distance of two numbers."""
    return np.abs(left - right)


def main() -> None:
    """Call for every output of each engine."""
    with warnings.catch_warnings():  # whoever is forked from here warns as ever
        warnings.simplefilter("ignore", FewPointsWarning)
        _call()


def _call() -> None:
    for text in (CELLS, RUNS, WAITING):
        query = compile_query(text)
        matches = query.match(EVENTS)
        matches.to_arrow()
        matches.points()
        matches.counts()
        matches.partial()
        if text is RUNS:
            matches.compressed().expand()
            history = HistoryGraph(query).fit(EVENTS)
            query.match_within(EVENTS, "50%", history=history, audit=0.5, learn=True).to_arrow()
        matcher = query.matcher()
        matcher.push(EVENTS)
        query.from_state(matcher.state_bytes()).finish()
    calling = compile_query(CALLING, functions=[apart])
    calling.match(EVENTS).to_arrow()
    calling.match_within(EVENTS, "1 steps/event").to_arrow()


if __name__ == "__main__":
    main()
