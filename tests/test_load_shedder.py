"""The calls that a load shedder gets, and their order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.load_shedder import OutOfOrderError
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder

PLAN = compile_query("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10").plan
EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})


def a_shedder(*, learns: bool = True) -> Shedder:
    return Shedder(PLAN, Load(Budget.parse("5 steps/event"), learns=learns))


def test_bind_before_the_columns_are_known_is_refused_in_words() -> None:
    tables: Any = SimpleNamespace(window=10)
    with pytest.raises(OutOfOrderError, match="bind was called before begin_stream: the order is begin_stream, bind"):
        a_shedder().bind(tables)


@pytest.mark.parametrize("call", ["begin_batch", "end_piece", "note_hits", "rebind", "restore", "snapshot"])
def test_what_needs_the_pools_is_refused_before_they_are_bound(call: str) -> None:
    shedder = a_shedder()
    shedder.begin_stream(EVENTS.schema, Matcher(PLAN).bind(EVENTS.schema).roles)
    given: dict[str, tuple[Any, ...]] = {
        "begin_batch": (2,), "end_piece": (None, None, 0.0), "note_hits": (None, None), "rebind": (None,),
        "restore": ({},), "snapshot": (),
    }  # fmt: skip
    with pytest.raises(OutOfOrderError, match=f"{call} was called before bind"):
        getattr(shedder, call)(*given[call])


def test_pieces_belong_to_a_batch() -> None:
    shedder = a_shedder(learns=False)
    matcher = Matcher(PLAN, shedding=shedder)
    matcher.bind(EVENTS.schema)
    shedder.snapshot()
    with pytest.raises(OutOfOrderError, match="end_piece was called before begin_batch"):
        shedder.end_piece(None, None, 0.0)  # type: ignore[arg-type]
    matcher.push(EVENTS)
    assert [piece.events for piece in shedder.metrics.pieces] == [2]
