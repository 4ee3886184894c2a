"""The few lines for small rules against the oracle of rules."""

from __future__ import annotations

from random import Random

from acep_approx.query.rules.parser import parse_rules
from tests.cases import cases
from tests.naive_rules import run_rules
from tests.rule_pairs import STREAMS, TABLE, effects, small_rules


def test_small_rules_are_as_the_oracle_says() -> None:
    rules, dice = list(small_rules()), Random(1)
    assert len(rules) == 78
    for _ in range(cases(100)):
        pair, key = (dice.choice(rules), dice.choice(rules)), dice.randrange(len(STREAMS))
        text = "\n".join([TABLE, *(rule.text(f"r{number}") for number, rule in enumerate(pair))])
        rows = [{"ts": tick, "type": letter, "k": key} for tick, letter in enumerate(STREAMS[key])]
        outcome, expected = run_rules(parse_rules(text), rows, {}), effects(pair)
        for number in range(2):
            found = sorted(tuple(row for row, _ in match.bound) for match in outcome.matches[f"r{number}"])
            of_key = [
                [row // len(STREAMS) for row in match] for match in expected.matches[number] if match[0] % 64 == key
            ]
            assert found == sorted(map(tuple, of_key)), text
        found_changes = [(one.row, one.rule, dict(one.after or ())["n"]) for one in outcome.changes]
        assert found_changes == [(row // 64, rule, n) for row, rule, n in expected.changes if row % 64 == key], text
        assert {k[0]: row["n"] for k, row in outcome.store["cell"].items()} == {
            k: n for k, n in expected.cells.items() if k == key
        }
