"""Actions that cannot be done: which one is told, where several fail in one transaction, or more fails behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acep_approx import compile_rules
from acep_approx.errors import DataError, RuleError
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


CALLS = f"""{TABLES}
RULE tell ON PATTERN A a WITHIN 0 DO UPDATE t SET n = old.n + 1 AT (a.k); CALL f(9223372036854775807 - 2 + a.ts) END"""


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("cuts", [(), (2,), (3,)])
def test_an_argument_of_call_that_cannot_be_computed_undoes_its_transaction(driver: Any, cuts: tuple[int, ...]) -> None:
    """The first three events are as if nothing had come after them."""
    made: list[Any] = []
    run = compile_rules(CALLS).start(driver=driver, calls={"f": lambda call: made.append(call.arguments)})
    events = [{"ts": tick, "type": "A", "k": "p", "s": "s"} for tick in range(5)]
    low = 0
    for high in cuts:
        low += len(run.push(events[low:high]).calls)
    with pytest.raises(RuleError, match="row 3: the rule 'tell' cannot call f: a value cannot be computed") as caught:
        run.push(events[low:])
    assert (caught.value.row, caught.value.rule) == (3, "tell")
    assert run.store["t"].to_pylist() == [{"k": "p", "n": 3}]
    assert made == [(2**63 - 3 + tick,) for tick in range(3)]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_file_has_what_came_before_an_action_that_fails(driver: Any, tmp_path: Path) -> None:
    """Also where the events of the same batch before it had to be run again."""
    rules, at = compile_rules(CALLS), tmp_path / "store.db"
    with rules.start(driver=driver, at=at) as run, pytest.raises(RuleError):
        run.push([{"ts": tick, "type": "A", "k": key, "s": "s"} for tick, key in enumerate(["p", "q", "p", "p", "p"])])
    with rules.start(driver=driver, at=at) as run:
        assert run.offset == 3
        assert run.store["t"].to_pylist() == [{"k": "p", "n": 2}, {"k": "q", "n": 1}]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("text", [APART, CIRCLE])
def test_a_batch_that_is_refused_leaves_no_trace(text: str, driver: Any) -> None:
    """WHEN passes 64 bits: none of the batch is run, and the next one goes on as if it had not come."""
    text += "\nRULE huge ON PATTERN A a WITHIN 0 WHEN 9223372036854775807 + a.x > 0 DO CALL f END"
    run, other = (compile_rules(text).start(driver=driver) for _ in range(2))
    batches = [[{"ts": 0, "type": "A", "k": "p", "s": "q", "x": x}, {"ts": 1, "type": "A", "k": "q", "s": "p", "x": 0}]
               for x in (0, 1, 0)]  # fmt: skip
    for number, batch in enumerate(batches):
        batch = [event | {"ts": event["ts"] + 2 * number} for event in batch]
        if number == 1:
            with pytest.raises(DataError, match="ACEP-D201"):
                run.push(batch)
            continue
        found, wanted = run.push(batch), other.push(batch)
        assert {name: found[name].to_pylist() for name in found} == {name: wanted[name].to_pylist() for name in wanted}
    assert run.store["t"].to_pylist() == other.store["t"].to_pylist()
    assert run.counters == other.counters


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("text", [APART, CIRCLE])
def test_what_else_fails_behind_it_does_not_count(text: str, driver: str) -> None:
    """The argument of CALL passes 64 bits with each event that has a key."""
    text += "\nRULE huge ON PATTERN A a WHERE a.k = 'p' WITHIN 0 DO CALL f(9223372036854775807 + a.ts) END"
    assert failure(text, [None, "p"], driver) == (0, "one")
