"""A matcher that was restored can be asked for anything, as often as one likes, and goes on as if nothing had been."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Query, compile_query
from acep_approx.engines.runs.runs import OF_BATCH
from acep_approx.errors import AcepError, DataError, UnsupportedError
from acep_approx.kernels.runs import layout
from tests.archives import arrays_of
from tests.cases import examples
from tests.rich_worlds import RichWorld, rich_worlds
from tests.smaller_worlds import holds_for

HELD = {
    layout.SLOT, layout.LINKS, layout.DONE_STEPS, layout.MADE, layout.MERGED, layout.LIVE, layout.PEAK, layout.STAMP,
    layout.STORED, layout.EXPIRED, layout.SHED,
}  # fmt: skip
"""Words of the header that a state must keep."""


def test_a_state_holds_no_count_of_what_it_does_not_hold() -> None:
    """The hits of the batch before are not in the state: their number must not be either."""
    query = compile_query("PATTERN A a WHERE skip_till_next_match { a.x != 1.5 } WITHIN 0")
    matcher = query.matcher()
    matcher.push([{"ts": t, "type": "A", "x": 5} for t in (9, 10, 11)] + [{"ts": 13, "type": "C", "x": 5}])
    for _ in range(3):
        state = matcher.state_bytes()
        arrays = arrays_of(state)
        assert [int(arrays["/query/engine/control"][word]) for word in OF_BATCH] == [0] * len(OF_BATCH)
        matcher = query.from_state(state)
    assert matcher.state_bytes() == matcher.state_bytes() == state


def test_every_word_of_the_header_is_of_the_batch_or_of_the_state() -> None:
    """Whoever adds one must say which."""
    assert sorted([*OF_BATCH, *HELD]) == list(range(layout.HEADER))


def asked(query: Query, batches: list[pa.Table], output: Any, dice: Random | None) -> list[dict[str, Any]]:
    """What a matcher finds; with dice it is saved, restored and asked for this and that between batches."""
    matcher = query.matcher(output=output)
    tables = []
    for batch in batches:
        tables.append(matcher.push(batch))
        for _ in range(dice.randrange(5) if dice else 0):
            assert dice is not None
            matcher = query.from_state(matcher.state_bytes()) if dice.randrange(2) else matcher
            do = dice.choice(("save", "push nothing", "pass time", "look"))
            if do == "save":
                assert len(matcher.state_bytes()) == len(matcher.state_bytes())
            elif do == "push nothing":
                tables.append(matcher.push(batch.slice(0, 0)))
            elif do == "pass time" and matcher.last_tick is not None:
                tables.append(matcher.pass_time(matcher.last_tick))
            else:
                _ = matcher.waits_until
    return sorted(pa.concat_tables([*tables, matcher.finish()]).to_pylist(), key=repr)


@examples(300, shrink=False)
@given(rich_worlds(), st.sampled_from(("matches", "points", "counts", "partial")), st.randoms(use_true_random=True))
def test_what_a_restored_matcher_is_asked_for_changes_nothing(world: RichWorld, output: str, random: Random) -> None:
    """On either engine, with every output."""
    seed = random.random()

    def check(world: RichWorld) -> None:
        dice, table = Random(seed), world.table()
        try:
            query = compile_query(world.text, engine=dice.choice(("auto", "runs")))
        except UnsupportedError:
            return
        cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(5)))
        batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
        assert asked(query, batches, output, dice) == asked(query, batches, output, None)

    holds_for(world, check)


CELLS = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9"
RUNS = "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 9"


@pytest.mark.parametrize("text", [CELLS, RUNS])
@pytest.mark.parametrize(
    "change",
    [("[k]", "[x]"), ("[k]", "a.x > 0"), ("WITHIN 9", "WITHIN 9 RETURN a.y AS y"), ("WITHIN 9", "WITHIN 9 events")],
)
def test_the_state_of_other_partitions_or_other_columns_is_refused(text: str, change: tuple[str, str]) -> None:
    query, other = compile_query(text), compile_query(text.replace(*change))
    events = [{"ts": t, "type": "AB"[t % 2], "x": t, "y": t, "k": t % 3} for t in range(9)]
    for mine, theirs in ((query, other), (other, query)):
        matcher = mine.matcher()
        matcher.push(events)
        with pytest.raises(DataError) as error:
            theirs.from_state(matcher.state_bytes())
        assert error.value.code == "ACEP-D042"


def test_other_columns_of_the_events_are_told_by_name() -> None:
    query = compile_query(RUNS)
    matcher = query.matcher()
    matcher.push([{"ts": 1, "type": "A", "x": 1, "k": 1}])
    with pytest.raises(AcepError) as error:
        query.from_state(matcher.state_bytes()).push(pa.table({"ts": [2], "type": ["B"], "k": [1]}))
    assert error.value.code == "ACEP-D002"


@pytest.mark.parametrize("output", ["matches", "points", "counts", "partial"])
def test_a_matcher_that_stopped_in_the_middle_of_a_batch_goes_no_further(output: Any) -> None:
    """What was saved before that batch does."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x * a.x > 0 WITHIN 9")
    matcher = query.matcher(output=output)
    matcher.push([{"ts": 1, "type": "A", "x": 1}])
    saved = matcher.state_bytes()
    big = [{"ts": 2, "type": "A", "x": 2**40}, {"ts": 3, "type": "B", "x": 2**40}]
    with pytest.raises(DataError, match="ACEP-D201"):
        matcher.push(big)
    asks: list[Callable[[], object]] = [
        matcher.state_bytes,
        matcher.finish,
        lambda: matcher.pass_time(9),
        lambda: matcher.push([{"ts": 4, "type": "B", "x": 1}]),
    ]
    for ask in asks:
        with pytest.raises(DataError) as error:
            ask()
        assert error.value.code == "ACEP-D045"
    again = query.from_state(saved)
    again.push([{"ts": 4, "type": "B", "x": 1}])
    again.finish()


def test_events_that_are_refused_before_they_are_run_change_nothing() -> None:
    query = compile_query(RUNS)
    matcher = query.matcher()
    matcher.push([{"ts": 5, "type": "A", "x": 1, "k": 1}])
    for wrong in ([{"ts": 1, "type": "B", "x": 2, "k": 1}], [{"ts": 6, "type": "B", "x": 2, "k": "one"}]):
        with pytest.raises(AcepError):
            matcher.push(wrong)
    assert matcher.push([{"ts": 6, "type": "B", "x": 2, "k": 1}]).num_rows == 1
