"""The corpus of rules: the oracle gives what the cases say."""

from __future__ import annotations

import pytest

from acep_approx.query.rules.checks import check_rules
from tests.rule_corpus import CASES, RuleCase
from tests.rule_mutants import MEANINGS, outcome_of


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_the_oracle_gives_what_the_case_says(case: RuleCase) -> None:
    world = case.world()
    check_rules(world.file)
    outcome = world.expected
    for rule, matches in case.matches.items():
        times = [tuple(world.rows[row]["ts"] for row, _ in match.bound) for match in outcome.matches[rule]]
        assert times == matches, rule
    for rule, returned in case.returned.items():
        assert [match.returned for match in outcome.matches[rule]] == returned, rule
    if case.changes:
        changes = [(one.time, one.rule, None if one.after is None else dict(one.after)) for one in outcome.changes]
        assert changes == list(case.changes)
    for table, rows in case.store.items():
        assert outcome.store[table] == rows, table


@pytest.mark.parametrize(
    "name", ["BatchIsStale", "ReadTooLate", "OwnWriteIsVisible", "LateIsDatedBack", "LateAtTheTick"]
)
def test_the_corpus_notices_the_anomalies_of_the_paper(name: str) -> None:
    worlds = [case.world() for case in CASES.values()]
    assert any(outcome_of(world, MEANINGS[name]) != world.expected for world in worlds)
