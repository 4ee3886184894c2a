"""Standard input as a stream: an event is there when its line has come, however the input comes in pieces."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.errors import DataError, QueryError, UsageError
from acep_approx.events import open_source
from tests.live_run import Run

CELLS = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 20"
RUNS = "PATTERN SEQ(A a, B b) WHERE [key] AND b.x > a.x WITHIN 20"
ROWS = [(1, "k", "A", 1.5), (2, "k", "B", 2.5), (3, "m", "A", 1.5), (4, "k", "B", 0.5), (5, "m", "B", 9.5)]
NAMES = ("ts", "key", "type", "x")


def as_text(form: str, rows=ROWS) -> list[str]:
    """Lines of events; the first ones stand before the first event."""
    if form == "jsonl":
        return ["", *(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows)]
    return [",".join(NAMES) + "\n", *(",".join(map(str, row)) + "\n" for row in rows)]


# --- as a process ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "query", "options", "found"),
    [
        ("csv", CELLS, [], {2: [(0, 1)], 4: [(0, 3)], 5: [(2, 4)]}),
        ("jsonl", RUNS, [], {2: [(0, 1)], 5: [(2, 4)]}),
        ("csv", RUNS, ["--budget", "200 runs"], {2: [(0, 1)], 5: [(2, 4)]}),
        ("jsonl", RUNS, ["--budget", "200 runs", "--learn"], {2: [(0, 1)], 5: [(2, 4)]}),
        ("jsonl", CELLS, ["--output", "points"], {2: [(None, 1)], 4: [(None, 3)], 5: [(None, 4)]}),
    ],
)
def test_a_match_is_printed_before_the_next_line_comes(form, query, options, found):
    run = Run(query, "-", *options)
    for number, text in enumerate(as_text(form)):
        run.write(text)
        for pair in found.get(number, []):
            row = json.loads(run.line())
            bound = {name: None if row.get(f"{name}.ts") is None else row[f"{name}.ts"] - 1 for name in "ab"}
            assert (bound["a"], row["row"] if "row" in row else bound["b"]) == pair
    assert run.end() == []


def test_csv_comes_line_by_line_too():
    run = Run(CELLS, "-", "--format", "csv", "--bind", "x")
    header, first, *rest = as_text("csv")
    run.write(header + first)
    assert run.line() == "key,errors,start,end,missing,a.x,b.x"
    for text, expected in zip(rest, ['k,0,1,2,"",1.5,2.5', None, 'k,0,1,4,"",1.5,0.5', None], strict=True):
        run.write(text)
        if expected:
            assert run.line() == expected
    assert run.end() == ['m,0,3,5,"",1.5,9.5']


def test_half_a_line_is_no_event():
    run = Run(CELLS, "-")
    run.write("ts,key,type\n1,k,A\n2,k,B\n3,k,")
    assert json.loads(run.line())["b.ts"] == 2
    run.write("B\n4,k,B")
    assert json.loads(run.line())["b.ts"] == 3
    assert [json.loads(line)["b.ts"] for line in run.end()] == [4]


def test_gzip_comes_as_its_writer_flushes():
    run, pack = Run(CELLS, "-"), zlib.compressobj(wbits=31)
    for number, text in enumerate(as_text("csv")):
        run.write(pack.compress(text.encode()) + pack.flush(zlib.Z_SYNC_FLUSH))
        if number in (2, 4, 5):
            assert json.loads(run.line())["b.ts"] == number
    run.write(pack.flush())
    assert run.end() == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_is_a_stream_too(tmp_path):
    os.mkfifo(tmp_path / "events.csv")
    run = Run(CELLS, str(tmp_path / "events.csv"), stdin=None)
    with (tmp_path / "events.csv").open("w") as pipe:
        for number, text in enumerate(as_text("csv")):
            pipe.write(text)
            pipe.flush()
            if number in (2, 4, 5):
                assert json.loads(run.line())["b.ts"] == number
    assert run.end() == []


def test_what_waits_for_its_window_comes_when_that_has_closed():
    run = Run("PATTERN SEQ(A a, B b, ~(C c)) WITHIN 5", "-")
    for text in ("ts,type\n", "1,A\n", "2,B\n", "6,D\n", "7,D\n"):
        run.write(text)
    assert json.loads(run.line())["b.ts"] == 2
    assert run.end() == []


def test_late_events_and_malformed_rows_are_left_out_on_the_way(tmp_path):
    late = tmp_path / "late.csv"
    run = Run(CELLS, "-", "--on-late", "skip", "--late", str(late), "--on-malformed", "skip")
    for text in ("ts,key,type\n", "5,k,A\n", "3,k,B\n", "many,k\n", "6,k,B\n"):
        run.write(text)
    assert json.loads(run.line())["b.ts"] == 6
    assert run.end() == []
    assert late.read_text() == "row,ts,key,type\n1,3,k,B\n"


# --- in any pieces --------------------------------------------------------------------------------------------------


class Pieces(io.BytesIO):
    """Standard input that comes in pieces of random size."""

    def __init__(self, data: bytes, dice: Random | None) -> None:
        super().__init__(data)
        self._dice = dice

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read(size if self._dice is None else min(size, self._dice.choice((1, 2, 5, 30, 200))))

    def fileno(self) -> int:
        raise OSError


def read(data: bytes, dice: Random | None = None, **how) -> tuple[list, list, object]:
    """The rows of standard input, those left out, and its columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep_approx.events.reading.arriving.standard_input", lambda: Pieces(data, dice))
        source = open_source("-", **how)
        columns = source.settle(lambda schema: schema)
        rows = [row for batch in source.batches() for row in batch.to_pylist()]
        return rows, source.malformed.reasons, columns


VALUES = st.one_of(
    st.text('ab,"\n\r ;\u00e4', max_size=6).map(lambda text: '"' + text.replace('"', '""') + '"'),
    st.sampled_from(["x", "", "NA", '5" pipe', 'in"side', "text"]),
)


@given(st.lists(st.tuples(VALUES, VALUES), max_size=30), st.booleans(), st.randoms(use_true_random=False))
@example([('"a\n1,b"', 'x"'), ('y"', '"\n\n"')], True, Random(1))
def test_csv_is_the_same_in_any_pieces(values, has_end, dice):
    text = "\ufeffn,s,t\n" + "\n".join(f"{n},{s},{t}" for n, (s, t) in enumerate([("x", "x"), *values]))
    data = (text + "\n" * has_end).encode()
    whole = read(data, on_malformed="skip")
    assert read(data, dice, on_malformed="skip") == whole
    assert len(whole[0]) + len(whole[1]) >= min(len(values), 5)


@given(st.lists(st.dictionaries(st.sampled_from("xyz"), st.text(max_size=3), max_size=3)), st.randoms())
def test_json_lines_are_the_same_in_any_pieces(values, dice):
    rows = [{"n": n} | more for n, more in enumerate([dict.fromkeys("xyz", "x"), *values])]
    data = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    expected = [dict.fromkeys(("n", *"xyz")) | row for row in rows]
    assert read(data, dice)[0] == read(data)[0] == expected


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_matches_are_the_same_in_any_pieces_and_from_a_file(tmp_path, seed, pack):
    dice = Random(seed)
    rows = [(n // 2, dice.choice("km"), dice.choice("AAB"), dice.randrange(9) + 0.5) for n in range(300)]
    for form in ("csv", "jsonl"):
        text = "".join(as_text(form, rows)).encode()
        (tmp_path / f"events.{form}").write_bytes(text)
        expected = compile_query(RUNS).match(tmp_path / f"events.{form}").to_arrow()
        with pytest.MonkeyPatch.context() as patch:
            standard_input = "acep_approx.events.reading.arriving.standard_input"
            patch.setattr(standard_input, lambda text=text: Pieces(pack(text), dice))
            assert compile_query(RUNS).match("-").to_arrow().equals(expected)
        assert len(expected) > 100


# --- columns that come later ----------------------------------------------------------------------------------------


def matches(data: str, query: str, dice: Random | None = None) -> list[dict]:
    """What a query finds on standard input."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep_approx.events.reading.arriving.standard_input", lambda: Pieces(data.encode(), dice))
        return [match.values for match in compile_query(query).match("-")]


@pytest.mark.parametrize("dice", [None, Random(1), Random(2)])
def test_a_query_waits_for_the_columns_that_it_reads(dice):
    rows = [{"ts": 1, "type": "A", "x": 2}, {"ts": 2, "type": "B"}, {"ts": 3, "type": "B", "y": 3}, {"ts": 4, "y": 9}]
    later = "".join(json.dumps(row) + "\n" for row in rows)
    assert matches(later, "PATTERN SEQ(A a, B b) WHERE b.y > a.x WITHIN 9", dice) == [{"a": 0, "b": 2}]
    null = "ts,type,x\n1,A,\n2,A,\n3,A,4.5\n4,B,5.5\n"
    assert matches(null, "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9", dice) == [{"a": 2, "b": 3}]
    text = "ts,type,gate\n1,A,4\n2,A,B4\n3,B,B4\n"
    assert matches(text, "PATTERN SEQ(A a, B b) WHERE a.gate = 'B4' AND b.gate = a.gate WITHIN 9", dice) == [
        {"a": 1, "b": 2}
    ]


@pytest.mark.parametrize("dice", [None, Random(1)])
def test_a_column_that_never_comes_is_refused(dice):
    with pytest.raises(QueryError, match="ACEP-Q060"):
        matches("".join(as_text("csv")), "PATTERN SEQ(A a, B b) WHERE a.y > 1 WITHIN 9", dice)
    with pytest.raises(DataError, match="ACEP-D001"):
        matches("a,type\nx,A\ny,B\n", "PATTERN SEQ(A a, B b) WITHIN 9", dice)


@pytest.mark.parametrize("dice", [None, Random(3)])
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "ACEP-D015"),
        (b"\n\n", "ACEP-D015"),
        (b"[1]\n", "ACEP-D020"),
        (b"a,a\n1,2\n", "ACEP-D015"),
        (b"n\n\xff\n", "ACEP-D014"),
        (gzip.compress(b"n\n1\n", mtime=0)[:15], "ACEP-D013"),
        (b"n,m\n1\n", "ACEP-D020"),
    ],
)
def test_what_cannot_be_read_is_refused_in_any_pieces(data, code, dice):
    with pytest.raises(DataError, match=code):
        read(data, dice)


def test_a_pipe_stands_alone(tmp_path):
    os.mkfifo(tmp_path / "one")
    (tmp_path / "two.csv").write_text("ts\n1\n")
    with pytest.raises(UsageError, match="ACEP-U108"):
        open_source([tmp_path / "one", tmp_path / "two.csv"])
