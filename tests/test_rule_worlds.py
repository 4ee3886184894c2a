"""The worlds of rules themselves: what they hold, and that they notice wrong meanings."""

from __future__ import annotations

import pytest

from acep_approx.query.rules.checks import check_rules
from acep_approx.query.rules.parser import parse_rules
from acep_approx.query.rules.printer import to_text
from acep_approx.query.rules.syntax import Write
from acep_approx.query.rules.types import check_types
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Read
from acep_approx.query.types import kinds
from tests.cases import cases
from tests.noticing import first_noticed
from tests.rule_mutants import MEANINGS, outcome_of
from tests.rule_worlds import RuleWorld, rule_world

SHOWN_BY = {
    "LateReadsAreOfNow": 111,
    "AbsentRowsHaveDefaults": 14,
    "PointsAreMatches": 16,
    "WhenSeesTheTransaction": 10,
    "LateAtTheEnd": 24,
    "LateByRule": 160,
    "FailureLeavesTraces": 13,
    "FailureIsIgnored": 13,
    "OldIsStale": 24,
    "DeleteLeavesDefaults": 11,
}
"""Worlds that are looked at first."""


@pytest.mark.parametrize("name", MEANINGS)
def test_worlds_notice_a_wrong_meaning(name: str) -> None:
    def disagreement(seed: int) -> bool:
        world = rule_world(seed)
        return outcome_of(world, MEANINGS[name]) != world.expected

    assert first_noticed(disagreement, cases(2_000), SHOWN_BY.get(name)) >= 0


def test_the_right_meaning_does_not_depend_on_batches() -> None:
    for seed in range(cases(30, 10)):
        world = rule_world(seed)
        assert outcome_of(world) == world.expected


def constructs(world: RuleWorld) -> set[str]:
    """What a world uses, and what comes of it, by name."""
    found, outcome = set(), world.expected
    for rule in world.file.rules:
        query = rule.query
        trees = [*query.predicates, *(output.value for output in query.outputs), *filter(None, [rule.when])]
        nodes = [node for tree in trees for node in walk(tree)]
        reads = [node for node in nodes if isinstance(node, Read)]
        found |= {query.strategy, query.window.unit, f"k = {query.errors}", f"each {rule.each}"}
        found |= {
            f"read in {type(one).__name__}" for one in query.predicates if any(read in walk(one) for read in reads)
        }
        found |= {"AT" for read in reads if read.at} | {"EXISTS" for read in reads if read.column is None}
        found |= {type(node).__name__ for node in (*nodes, *walk(query.pattern))}
        found |= {action.kind if isinstance(action, Write) else "call" for action in rule.actions}
        found |= {"when" if rule.when else "", "simultaneous" if query.is_simultaneous else ""}
        found |= {"non overlap" if query.selection.depends_on_order else ""}
    found |= {"conflict" if outcome.conflicts else "", "without row" if outcome.without_row else ""}
    found |= {"late" for change in outcome.changes if change.row is None}
    return found | {"failure" if outcome.failure else "", "total" if world.file.tables[0].is_total else "not total"}


def test_worlds_hold_the_whole_language() -> None:
    found = {name for seed in range(cases(150, 30)) for name in constructs(rule_world(seed))}
    assert found >= {
        *("Absent", "Aggregate", "Atom", "Attribute", "Either", "Read", "Repeat", "Sequence"),
        *("skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity"),
        *("read in Between", "read in Binary", "read in In", "read in IsNull", "read in Unary", "AT", "EXISTS"),
        *("ticks", "events", "k = 0", "k = 1", "k = 2", "each match", "each point", "when", "simultaneous"),
        *("update", "upsert", "delete", "call", "total", "not total"),
        *("conflict", "without row", "late", "failure", "non overlap"),
    }


def test_files_pass_the_checks_and_are_printed() -> None:
    for seed in range(cases(1_000, 40)):
        world = rule_world(seed)
        check_rules(world.file)
        check_types(world.file, kinds(world.events().schema))
        assert parse_rules(to_text(world.file)) == world.file, world.text
