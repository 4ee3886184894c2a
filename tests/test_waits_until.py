"""The time that something waits for: who calls again then, as Spark's timers do, gets it, and nobody is called before.

A time that has passed already would be no use: Spark calls nobody then, and what waits comes with the next event only.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from acep_approx import compile_query
from tests.cases import cases

PATTERNS = (
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [k] AND b.x > a.x WITHIN 20",
    "PATTERN SEQ(A a, B b, ~(C c)) WITHIN 9",
    "PATTERN SEQ(A a, B+ b[], ~(C c)) WHERE [k] AND b[i].x > a.x WITHIN 12",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [k] WITHIN 12 FIRST MATCH",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [k] AND b.x > a.x WITHIN 15 MAXIMAL",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [k] WITHIN 15 CONSUME",
)


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
@pytest.mark.parametrize("text", PATTERNS)
@pytest.mark.parametrize("seed", range(cases(8)))
def test_time_gives_what_waits_for_it_and_not_before(text, output, seed):
    dice, query = Random(seed), compile_query(text)
    matcher, tick, waited = query.matcher(output=output, time="ts"), 0, 0
    for _ in range(12):
        events = []
        for _ in range(dice.randrange(1, 9)):
            tick += dice.choice((0, 1, 1, 2))
            events.append({"ts": tick, "type": dice.choice("AABBC"), "k": dice.randrange(3), "x": dice.randrange(5)})
        matcher.push(events)
        matcher.pass_time(tick + 1)
        until = matcher.waits_until
        if until is None:
            continue
        waited += 1
        assert until > tick + 1, "it would have come"
        woken, other = (query.from_state(matcher.state_bytes()) for _ in range(2))
        assert not woken.pass_time(until - 1).num_rows
        assert woken.waits_until == until
        assert woken_rows(woken) == Counter(map(str, other.finish().to_pylist()))
    assert waited


def woken_rows(matcher):
    """What comes to somebody who calls whenever it is said to."""
    found, before = Counter(), -1
    while (until := matcher.waits_until) is not None:
        assert until > before
        found.update(map(str, matcher.pass_time(until).to_pylist()))
        before = until
    return found
