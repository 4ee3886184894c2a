"""Several queries on one stream side: each gives what it gives alone, and what they share is made once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import DataError, archive, compile_query
from acep_approx.archive import Scope
from acep_approx.automaton import letters
from acep_approx.engines.runs import event_columns
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.events.keys import KeyCodes
from acep_approx.events.roles import infer_roles
from acep_approx.events.source import open_source
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.matching import stream_side
from acep_approx.matching.execution import Execution
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.state import MATCHER, meaning, restored_stream, save_stream, saved
from acep_approx.matching.stream_side import StreamSide
from acep_approx.planning.planner import Plan

MANY = [
    ("PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 40 ERRORS 1", "points", "cells", None),
    ("PATTERN SEQ(A a, B b) WHERE [k] AND a.x > 2 WITHIN 30", "counts", "cells", None),
    ("PATTERN SEQ(A a, C c) WHERE a.s = 'u' WITHIN 4", "matches", "cells", "x"),
    ("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 60", "matches", "runs", None),
    ("PATTERN SEQ(A a, B b) WHERE [k] AND b.s < a.s AND a.s != 'w' WITHIN 90", "matches", "runs", "s"),
    ("PATTERN SEQ(A a, B b, ~C c) WHERE [k] AND b.x>a.x WITHIN 25 RETURN a.s AS s, b.x AS y", "matches", "runs", None),
    ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [g] AND b.x > a.x } WITHIN 5 events", "points", "runs", None),
    ("PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] AND b.x != a.x } WITHIN 50", "counts", "runs", None),
    ("PATTERN SEQ(A a, B b, C c) WHERE [g] AND c.s = a.s WITHIN 9", "partial", "runs", None),
]  # fmt: skip
Spec = tuple[str, str, str, str | None]
Rows = list[dict[str, Any]]


def plan_of(spec: Spec) -> Plan:
    return compile_query(spec[0], engine=spec[2]).plan


def added(stream: StreamSide, spec: Spec) -> Pipeline:
    bind = () if spec[3] is None else (spec[3],)
    return Pipeline(stream, plan_of(spec), spec[1], bind=bind)  # type: ignore[arg-type]


def shared(specs: list[Spec], schema: pa.Schema) -> StreamSide:
    stream = StreamSide(schema, infer_roles(schema))
    for spec in specs:
        added(stream, spec)
    return stream


def restored(specs: list[Spec], stream: StreamSide) -> StreamSide:
    """The stream with its queries, from its state."""
    scope = Scope()
    save_stream(stream, scope.sub("stream"))
    for number, query in enumerate(stream.queries):
        query.save(scope.sub(f"query {number}"))
    scope = MATCHER.unpack(MATCHER.pack(scope))
    again = restored_stream(scope.parts["stream"], scope.words)
    for number, query in enumerate([added(again, spec) for spec in specs]):
        query.restore(scope.parts[f"query {number}"])
    return again


def events(rows: int, seed: int, keys: int) -> pa.Table:
    """Keys, and some texts, that come for a while and are silent then."""
    dice = np.random.default_rng(seed)
    times = np.cumsum(dice.integers(0, 2, rows))
    letter, passing = dice.choice(list("uvwz"), rows), (times // 20).astype(str)
    return pa.table(
        {
            "ts": times,
            "type": pa.array(dice.choice(list("ABCD"), rows)),
            "k": pa.array(times * keys // (times[-1] + 1) + dice.integers(0, 4, rows), mask=dice.random(rows) < 0.05),
            "g": dice.integers(0, 3, rows),
            "x": dice.integers(0, 9, rows),
            "s": pa.array(np.where(dice.random(rows) < 0.5, letter, passing), mask=dice.random(rows) < 0.05),
        }
    )


def parts(table: pa.Table, dice: Random, most: int) -> Iterator[pa.Table]:
    """The table in batches; in the middle a column gets wider types."""
    first = 0
    while first < table.num_rows:
        part = table.slice(first, dice.randrange(1, most))
        if first > table.num_rows // 2:
            part = part.set_column(4, "x", part.column("x").cast(pa.float64()))
            part = part.set_column(3, "g", part.column("g").cast(pa.float64()))
        yield part
        first += part.num_rows


def batch_of(part: pa.Table, stream: StreamSide, first: int) -> EventBatch:
    source = open_source(part)
    [batch] = read_events(source, stream.roles, columns=stream.columns, first_row=first)
    return batch


def alone(spec: Spec, tables: list[pa.Table]) -> Rows:
    execution = Execution(plan_of(spec), output=spec[1], bind=spec[3])  # type: ignore[arg-type]
    pipeline, found, first = execution.bind(tables[0].schema), [], 0
    for part in tables:
        found += [row for table in execution.run(batch_of(part, pipeline.stream, first)) for row in table.to_pylist()]
        first += part.num_rows
    return found + execution.finish().to_pylist()


def together(
    specs: list[Spec], tables: list[pa.Table], between: Callable[[StreamSide], StreamSide] = lambda stream: stream
) -> list[Rows]:
    stream, first = shared(specs, tables[0].schema), 0
    found: list[Rows] = [[] for _ in specs]
    for part in tables:
        for number, table in stream.run(batch_of(part, stream, first)):
            found[number] += table.to_pylist()
        first += part.num_rows
        stream = between(stream)
    for number, query in enumerate(stream.queries):
        assert isinstance(query, Pipeline)
        found[number] += [row for table in query.finish() for row in table.to_pylist()]
    return found


@pytest.mark.filterwarnings("ignore::acep_approx.TextOrderWarning")
@pytest.mark.parametrize("seed", range(3))
def test_each_query_gives_what_it_gives_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many batches, with keys that are freed, types that widen, and a state that is saved and restored."""
    monkeypatch.setattr(stream_side, "SWEEP", 20)
    monkeypatch.setattr(event_columns, "MANY_TEXTS", 3)
    dice = Random(seed)
    specs = dice.sample(MANY, len(MANY))
    tables = list(parts(events(3000, seed, 400), dice, 400))
    swept, keys = [], 0

    def between(stream: StreamSide) -> StreamSide:
        nonlocal keys
        mine = stream.key_slots["k",]
        swept.append(mine.swept)
        keys = max(keys, len(mine.keys))
        return restored(specs, stream) if dice.randrange(3) == 0 else stream

    found = together(specs, tables, between)
    for spec, rows in zip(specs, found, strict=True):
        assert rows == alone(spec, tables), spec
        assert rows, spec
    assert max(swept) > 0
    assert keys < 400, "keys that were silent for all were forgotten"


def test_keys_stay_as_long_as_one_query_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order of the queries: the one with the longest window says when a key may go."""
    monkeypatch.setattr(stream_side, "SWEEP", 10)
    query = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN {}"
    specs: list[Spec] = [(query.format(w), "points", e, None) for w in (5, 1000) for e in ("cells", "runs")]
    rows = [{"ts": i, "type": "A", "k": i} for i in range(300)] + [{"ts": 300, "type": "B", "k": 3}]
    tables = [pa.Table.from_pylist(rows[i : i + 20]) for i in range(0, len(rows), 20)]
    for order in (specs, specs[::-1]):
        found = together(order, tables)
        assert [len(rows) for rows in found] == [int("1000" in spec[0]) for spec in order]


def test_count_windows_keep_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time says when a partition has left a window of events."""
    monkeypatch.setattr(stream_side, "SWEEP", 10)
    specs: list[Spec] = [
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5", "points", "cells", None),
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5 events", "points", "cells", None),
    ]
    rows = [{"ts": i, "type": "A", "k": i} for i in range(100)] + [{"ts": 100, "type": "B", "k": 3}]
    found = together(specs, [pa.Table.from_pylist(rows[i : i + 20]) for i in range(0, len(rows), 20)])
    assert [len(rows) for rows in found] == [0, 1]


# --- what is shared ------------------------------------------------------------------------------------------


def test_what_two_queries_ask_for_is_computed_once_per_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key slots, types, the truth of a static condition, words, and with them the codes of texts."""
    calls: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            calls[name] += 1
            return original(*args, **options)

        monkeypatch.setattr(owner, name, call)

    for owner, name in (
        (KeyCodes, "encode"), (letters, "_encoded"), (letters, "evaluate"), (EventColumns, "words"),
        (event_columns.Texts, "encode"),
    ):  # fmt: skip
        counted(owner, name)
    text = "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > 3 AND b.s != a.s WITHIN {}"
    specs: list[Spec] = [(text.format(w), "matches", "runs", None) for w in (10, 20, 30)]
    tables = [events(300, 1, 5).slice(i, 100) for i in (0, 100, 200)]
    together(specs, tables)
    assert calls == Counter(encode=6, _encoded=3, evaluate=3, words=3)  # encode: keys and texts


def test_conditions_are_the_same_only_if_their_constants_are_of_one_kind() -> None:
    """2.0 ** 53 + 1 is 2.0 ** 53, and a whole number is what it is."""
    text = "PATTERN SEQ(A a, B b) WHERE a.x = {} WITHIN 9"
    specs: list[Spec] = [(text.format(c), "points", "cells", None) for c in (2**53, f"{2**53}.0")]
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [2**53 + 1, 0]})
    found = together(specs, [table])
    assert [len(rows) for rows in found] == [0, 1]
    assert found == [alone(spec, [table]) for spec in specs]


def test_bytes_are_text_only_to_queries_that_read_them_so() -> None:
    """Bound by a column that another query compares: its bytes stay bytes."""
    specs: list[Spec] = [
        ("PATTERN SEQ(A a, B b) WHERE a.p = 'u' AND b.p > a.p WITHIN 9", "matches", "runs", "p"),
        ("PATTERN SEQ(A a, B b) WITHIN 9", "matches", "cells", "p"),
        ("PATTERN SEQ(A a, B b) WITHIN 9", "points", "cells", "p"),
        ("PATTERN SEQ(A a, B b) WITHIN 9", "points", "runs", "p"),
    ]
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "p": pa.array([b"u", b"v"])})
    for order in (specs, specs[::-1]):
        found = together(order, [table.slice(0, 1), table.slice(1, 1)])
        assert found == [alone(spec, [table]) for spec in order]
    assert found[-1][0]["a"] == "u"
    assert found[0][0]["p"] == b"v"


def test_texts_that_are_known_already_have_an_order() -> None:
    """A query that asks for it comes later than the texts: it is restored."""
    specs: list[Spec] = [("PATTERN SEQ(A a, B b) WHERE b.s < a.s WITHIN 99", "matches", "runs", None)]
    rows = [{"ts": i, "type": "AB"[i % 2], "s": "zyxwvu"[i % 6]} for i in range(36)]
    tables = [pa.Table.from_pylist(rows[i : i + 12]) for i in (0, 12, 24)]
    assert together(specs, tables, lambda stream: restored(specs, stream)) == [alone(specs[0], tables)]


def test_constants_are_never_forgotten_and_other_texts_are() -> None:
    """Also where the programs of a query are made anew, and ask for the codes of their constants once more."""
    texts = event_columns.Texts()
    assert [texts.code("m"), texts.code("n")] == [0, 1]
    assert texts.encode(pa.array(["x", "n", "y"])).tolist() == [2, 1, 3]
    assert texts.code("m") == 0
    assert texts.keep(np.array([3]))[[0, 1, 3]].tolist() == [0, 1, 2]
    assert texts.values == ["m", "n", "y"]


# --- what does not fit ---------------------------------------------------------------------------------------

PAIR: list[Spec] = [
    ("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9", "matches", "runs", None),
    ("PATTERN SEQ(A a, B b) WITHIN 9", "points", "cells", None),
]


def test_a_widening_that_a_query_cannot_take() -> None:
    """It is refused. One can go on as before, unless another query has taken it already."""
    first = pa.table({"ts": [1], "type": ["A"], "x": [2**53 + 1]})
    second = pa.table({"ts": [2], "type": ["B"], "x": [0.5]})
    whole = pa.table({"ts": [2], "type": ["B"], "x": [2**53 + 2]})
    for order, goes_on in ((PAIR[:1], True), (PAIR, True), (PAIR[::-1], False)):
        stream = shared(order, first.schema)
        list(stream.run(batch_of(first, stream, 0)))
        with pytest.raises(DataError, match="ACEP-D024"):
            list(stream.run(batch_of(second, stream, 1)))
        if goes_on:
            assert sum(table.num_rows for _, table in stream.run(batch_of(whole, stream, 1))) == len(order)
        else:
            with pytest.raises(DataError, match="ACEP-D045"):
                list(stream.run(batch_of(whole, stream, 1)))


def test_a_state_belongs_to_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is of this format."""
    plans = [plan_of(spec) for spec in PAIR]
    for spec, plan, other in zip(PAIR, plans, plans[::-1], strict=True):
        scope = saved(plan, {}, shared([spec], events(1, 1, 1).schema))
        state = MATCHER.pack(scope)
        assert MATCHER.unpack(state, of=meaning(plan)).words == scope.words
        with pytest.raises(DataError, match="ACEP-D042"):
            MATCHER.unpack(state, of=meaning(other))
        with monkeypatch.context() as patched:
            patched.setattr(archive, "FORMAT", 5)
            state = MATCHER.pack(scope)
        with pytest.raises(DataError, match=r"ACEP-D041.*the older format 5, this version reads format 13"):
            MATCHER.unpack(state, of=meaning(plan))


def test_results_must_be_taken_before_the_next_batch() -> None:
    stream = shared(PAIR, events(1, 1, 1).schema)
    tables = list(parts(events(200, 1, 5), Random(1), 90))
    next(stream.run(batch_of(tables[0], stream, 0)))
    plan = plan_of(PAIR[0])
    for go_on in (lambda: list(stream.run(batch_of(tables[1], stream, 90))), lambda: saved(plan, {}, stream)):
        with pytest.raises(DataError, match="ACEP-D045"):
            go_on()
