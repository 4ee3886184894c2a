"""Actions that cannot be done: which one is told, where several fail in one transaction, or more fails behind it."""

from __future__ import annotations

from typing import Any

import pytest

from acep_approx import compile_rules
from acep_approx.errors import RuleError
from tests.rule_runs import DRIVERS

TABLES = """TABLE t (k text, n int DEFAULT 0, KEY (k))
TABLE u (k text, n int DEFAULT 0, KEY (k))"""
APART = f"""{TABLES}
RULE one ON PATTERN A a WHERE store.t[a.s].n = 0 WITHIN 0 DO UPDATE u SET n = 1 AT (a.k) END
RULE two ON PATTERN A a WITHIN 0 DO UPDATE t SET n = 1 AT (a.k) END"""
CIRCLE = f"""{TABLES}
RULE one ON PATTERN A a WHERE store.t[a.s].n = 0 WITHIN 0 DO UPDATE u SET n = 1 AT (a.k) END
RULE two ON PATTERN A a WHERE store.u[a.s].n = 0 WITHIN 0 DO UPDATE t SET n = 1 AT (a.k) END"""
CLOSED = f"""{TABLES}
RULE one ON PATTERN SEQ(A a, ~(B b)) WITHIN 1 WHEN store.t[a.s].n = 0 DO UPDATE u SET n = 1 AT (a.k) END
RULE two ON PATTERN SEQ(A a, ~(B b)) WITHIN 1 DO UPDATE t SET n = 1 AT (a.k) END"""


def failure(text: str, keys: list[str | None], driver: Any, **columns: Any) -> tuple[int | None, str | None]:
    """The row and the rule that are told where events A have these keys, given at once."""
    run = compile_rules(text).start(driver=driver)
    events = [{"ts": tick, "type": "A", "k": key, "s": "s", **columns} for tick, key in enumerate(keys)]
    with pytest.raises(RuleError) as caught:
        run.push(events)
    return caught.value.row, caught.value.rule


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("text", [APART, CIRCLE])
def test_of_writes_of_an_event_to_several_tables_the_first_is_told(text: str, driver: str) -> None:
    assert failure(text, ["p", None, "p"], driver) == (1, "one")


@pytest.mark.parametrize("driver", DRIVERS)
def test_of_windows_that_close_at_one_time_the_first_is_told(driver: str) -> None:
    """Rule ``one`` is asked when ``two`` has been done: all windows of the batch have closed then."""
    assert failure(CLOSED, [None, None, "p", "p"], driver) == (None, "one")


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("text", [APART, CIRCLE])
def test_what_else_fails_behind_it_does_not_count(text: str, driver: str) -> None:
    """The argument of CALL passes 64 bits with each event that has a key."""
    text += "\nRULE huge ON PATTERN A a WHERE a.k = 'p' WITHIN 0 DO CALL f(9223372036854775807 + a.ts) END"
    assert failure(text, [None, "p"], driver) == (0, "one")
