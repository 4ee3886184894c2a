"""What a saved state takes: what is live, and no more, however long the stream was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.archive import Kind, Scope
from acep_approx.errors import DataError
from tests.cases import FULL

REGISTER_FREE = "PATTERN SEQ(A a, B b, C c) WHERE [tail] WITHIN {window} ERRORS 1"
WITH_REGISTERS = "PATTERN SEQ(A a, B b, C c) WHERE [tail] AND b.x > a.x AND c.x > b.x WITHIN {window}"
NEGATED = "PATTERN SEQ(A a, B b, ~C c) WHERE [tail] AND b.x > a.x WITHIN {window}"
BATCH = 10_000 if FULL else 4_000
SHORT, LONG = BATCH // 20, BATCH // 2
"""Windows."""


def batches(number: int, keys: int, seed: int = 1) -> Iterator[pa.Table]:
    """Batches of a stream; with 0 keys each event has one of its own."""
    rng = np.random.default_rng(seed)
    for first in range(0, number * BATCH, BATCH):
        tick = np.arange(first, first + BATCH)
        key = rng.integers(0, keys, BATCH) if keys else tick
        letter = rng.choice(4, BATCH, p=[0.3, 0.3, 0.2, 0.2])
        columns = {"ts": tick, "x": rng.integers(0, 30, BATCH), "tail": np.char.add("aircraft-", key.astype(str))}
        yield pa.table({**columns, "type": np.array(list("ABCX"))[letter]})


def sizes(query: Query, stream: Iterator[pa.Table], output: str = "matches") -> list[int]:
    """Bytes of the state after each batch; each goes on from the one before."""
    matcher = query.matcher(output=output)  # type: ignore[arg-type]
    found = []
    for batch in stream:
        matcher.push(batch)
        state = matcher.state_bytes()
        found.append(len(state))
        matcher = Matcher.from_state(query.plan, state)
    return found


@pytest.mark.parametrize("text", [REGISTER_FREE, WITH_REGISTERS, NEGATED])
@pytest.mark.parametrize("output", ["matches", "points"])
def test_keys_that_come_once_leave_nothing_behind(text: str, output: str) -> None:
    query = compile_query(text.format(window=SHORT))
    found = sizes(query, batches(12, keys=0), output)
    assert max(found[4:]) < 1.3 * max(found[:4])


@pytest.mark.parametrize("text", [REGISTER_FREE, WITH_REGISTERS])
def test_the_state_of_keys_that_stay_is_what_is_in_the_window(text: str) -> None:
    query = compile_query(text.format(window=LONG))
    found = sizes(query, batches(10, keys=200))
    assert max(found[2:]) < 1.25 * min(found[2:])
    whole = query.matcher()
    for batch in batches(10, keys=200):
        whole.push(batch)
    assert len(whole.state_bytes()) < 1.05 * found[-1]  # nothing that has left the window goes along


def test_a_state_that_is_cut_off_or_too_long_is_refused() -> None:
    query = compile_query(REGISTER_FREE.format(window=50))
    matcher = query.matcher()
    matcher.push(next(batches(1, keys=9)))
    state = matcher.state_bytes()
    for broken in (b"", state[:7], state[:100], state[:-8], state + bytes(8), b"PK" + state[2:], bytes(100)):
        with pytest.raises(DataError) as error:
            query.from_state(broken)
        assert error.value.code == "ACEP-D040"


def test_heads_and_arrays_come_back_as_they_were() -> None:
    arrays: dict[str, Any] = {"a": np.arange(5), "b": np.arange(3, dtype=np.uint8), "c": np.zeros(0, np.int64)}
    more = {"d": np.array([[True, False], [False, True]]), "e": np.zeros((0, 3)), "f": np.array([[0.5], [np.inf]])}
    scope = Scope({"name": "größe", "n": [1.5, None]}, arrays)
    scope.sub("part", {"x": 1}).sub("part of the part", arrays=more)
    blob = Kind("some").pack(scope)
    back = Kind("some").unpack(blob)
    assert back.head == {"name": "größe", "n": [1.5, None]}
    assert back.parts["part"].head == {"x": 1}
    for written, read in ((arrays, back.arrays), (more, back.parts["part"].parts["part of the part"].arrays)):
        assert {name: (a.dtype, a.tolist()) for name, a in read.items()} == {
            name: (a.dtype, a.tolist()) for name, a in written.items()
        }
    assert back.words == scope.words
    back.arrays["a"][0] = 7  # a kernel may write to them
    assert len(blob) % 8 == 0
