"""Checkpoints: a run goes on where it stood, files get each result once, and what does not belong is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from acep_approx import QuerySet, archive, compile_query
from acep_approx.api.live_run import Checkpointing, LiveRun, follow_query
from acep_approx.archive import Kind, Scope
from acep_approx.errors import DataError, UsageError
from acep_approx.events.writing.outfile import GrowingFile
from acep_approx.events.writing.tables import json_lines
from acep_approx.live.checkpoint import NAME, Checkpoint, CheckpointFolder, Outputs
from tests.live_steps import Steps, appends, lines

QUERY = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
NEGATION = compile_query("PATTERN SEQ(A a, ~(C c)) WITHIN 5")
HEAD = "ts,type,x\n"


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(HEAD)
    return path


@pytest.fixture
def cp(tmp_path):
    return tmp_path / "cp"


def run(query, csv, cp, **more):
    return lines(list(query.follow(csv, checkpoint=cp, until_idle=0, **more)))


EVENTS = ["1,A,1\n", "2,B,2\n3,A,1\n", "4,B,2\n", "6,B,3\n7,A,2\n8,B,1\n"]
OPTIONS = {
    "cells": ("PATTERN SEQ(A a, B b) WITHIN 5", {}),
    "runs": ("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5", {}),
    "points": ("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5", {"output": "points"}),
    "bound": ("PATTERN SEQ(A a, B b) WITHIN 5", {"bind": "x"}),
    "negation": ("PATTERN SEQ(A a, B b, ~(A c)) WITHIN 5", {}),
    "errors": ("PATTERN SEQ(A a, B b, B c) WITHIN 5 ERRORS 1", {}),
    "early": ("PATTERN SEQ(A a, B b) WITHIN 5", {"emit": "early", "watermark": 2}),
    "final": ("PATTERN SEQ(A a, B b) WITHIN 5", {"watermark": 1}),
    "budget": ("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5", {"budget": "1000 runs"}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_runs_one_after_the_other_find_what_one_finds(csv, cp, tmp_path, name):
    text, options = OPTIONS[name]
    query = compile_query(text, engine="runs" if options.get("budget") else "auto")
    found = []
    for number, more in enumerate(EVENTS, 1):
        appends(csv, more)()
        found += run(query, csv, cp, finish=number == len(EVENTS), **options)
    whole = lines(list(query.follow(csv, until_idle=0, **options)))
    assert found == whole
    assert whole


def test_a_set_goes_on(csv, cp):
    def desk(**more):
        made = QuerySet(**more)
        made.add("PATTERN SEQ(A a, B b) WITHIN 5", id="pair")
        made.add_many("PATTERN B b WHERE b.x > :low WITHIN 5", [{"low": 1}, {"low": 2}], id="high")
        return made

    found = []
    for more in EVENTS:
        appends(csv, more)()
        found += [row for one in desk().follow(csv, until_idle=0, checkpoint=cp) for row in one.to_arrow().to_pylist()]
    last = desk().follow(csv, until_idle=0, checkpoint=cp, finish=True)
    found += [row for one in last for row in one.to_arrow().to_pylist()]
    assert found == desk().match(str(csv)).to_arrow().to_pylist()
    other = QuerySet()
    other.add("PATTERN SEQ(A a, B b) WITHIN 6", id="pair")
    with pytest.raises(DataError, match="queries was") as caught:
        other.follow(csv, until_idle=0, checkpoint=cp)
    assert caught.value.code == "ACEP-D064"


def test_what_waits_for_its_window_goes_on_waiting(csv, cp):
    appends(csv, "1,A,1\n")()
    assert run(NEGATION, csv, cp) == []
    assert [row["a"] for row in run(NEGATION, csv, cp, finish=True)] == [0]
    with pytest.raises(UsageError) as caught:
        run(NEGATION, csv, cp)
    assert caught.value.code == "ACEP-U144"


def test_results_that_were_not_dealt_with_come_again(csv, cp):
    appends(csv, "1,A,1\n2,B,1\n")()
    for _ in QUERY.follow(csv, until_idle=0, checkpoint=cp):
        break
    assert len(run(QUERY, csv, cp)) == 1
    assert run(QUERY, csv, cp) == []


def test_checkpoints_are_written_on_the_way(csv, cp):
    live_run = QUERY.follow(csv, checkpoint=cp, checkpoint_every=0)
    places = []

    def look():
        places.append(CheckpointFolder.read(live_run._folder).place["place"]["file"]["offset"])

    Steps(live_run.source, [appends(csv, "1,A,1\n"), look, appends(csv, "2,B,1\n"), look])
    assert len(list(live_run)) == 1
    assert places == [len(HEAD) + 6, len(HEAD) + 12]


def test_no_checkpoint_before_the_first_event(csv, cp):
    assert run(QUERY, csv, cp) == []
    assert not (cp / NAME).exists()


def broken_off(csv, cp, out, after):
    """A run that writes to a file, and ends without a checkpoint after so many batches."""
    live_run = follow_query(QUERY, csv, Checkpointing(cp, checkpoint_every=0), {"until_idle": 0}, {})
    file = live_run.outputs.opener("results")(out)
    live_run.source._live.pace.wait = lambda _=0: None
    tables = live_run.results()
    for _ in range(after):
        table = next(tables, None)
        if table is None:
            break
        file.sink.write(json_lines(table))
        file.sink.flush()
    written = live_run._write
    live_run._write = lambda **_: None  # as if it was killed
    tables.close()
    live_run._write = written
    live_run._open.close()


def test_a_file_gets_each_result_once(csv, cp, tmp_path):
    out = tmp_path / "found.jsonl"
    for number, more in enumerate(EVENTS):
        appends(csv, more)()
        broken_off(csv, cp, out, after=number % 3 + 1)
    broken_off(csv, cp, out, after=99)
    whole = QUERY.match(str(csv)).to_arrow()
    assert out.read_bytes() == json_lines(whole).to_pybytes()


def test_rejected_rows_and_late_ones_are_written_once(csv, cp, tmp_path):
    rejects, late = tmp_path / "rejects.jsonl", tmp_path / "late.csv"
    more = {"on_malformed": "skip", "rejects": rejects, "watermark": 1, "late": late}
    for text in ("9,A,1\nx,B,1\n", "2,B,1\n", "y,B,1\n12,B,1\n3,B,1\n"):
        appends(csv, text)()
        run(QUERY, csv, cp, **more)
    assert [line.split('"text"')[1] for line in rejects.read_text().splitlines()] == [': "x,B,1"}', ': "y,B,1"}']
    assert late.read_text().splitlines() == ["reason,row,ts,type,x", "late,1,2,B,1", "late,3,3,B,1"]
    kept = QUERY.follow(csv, checkpoint=cp, until_idle=0, **more)
    list(kept)
    assert kept.source.malformed.count == 2


# --- what is refused ------------------------------------------------------------------------------------------


def test_another_run_is_refused(csv, cp, tmp_path):
    appends(csv, EVENTS[0])()
    run(QUERY, csv, cp)
    other = tmp_path / "other.csv"
    other.write_text(csv.read_text())
    with pytest.raises(DataError, match="input was") as caught:
        run(QUERY, other, cp)
    assert caught.value.code == "ACEP-D064"
    with pytest.raises(DataError, match="run: bind was None, and is 'x'"):
        run(QUERY, csv, cp, bind="x")
    with pytest.raises(DataError) as caught:
        run(compile_query("PATTERN SEQ(A a, C b) WITHIN 5"), csv, cp)
    assert caught.value.code == "ACEP-D042"
    run(QUERY, csv, cp)


def test_damaged_checkpoints_are_refused(csv, cp, monkeypatch):
    appends(csv, EVENTS[0])()
    run(QUERY, csv, cp)
    whole = (cp / NAME).read_bytes()
    kind = Kind("checkpoint")
    held = kind.unpack(whole)

    def damaged(**change):
        return kind.pack(Scope({**held.head, **change}, held.arrays))

    place = held.head["place"]
    with monkeypatch.context() as patched:
        patched.setattr(archive, "FORMAT", 99)
        later = damaged()
    cases = {
        b"": "ACEP-D062",
        b"something else": "ACEP-D062",
        whole[:-1]: "ACEP-D062",
        whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]: "ACEP-D062",
        later: "ACEP-D063",
        damaged(outputs=[1]): "ACEP-D062",
        damaged(outputs={"results": -1}): "ACEP-D062",
        damaged(has_ended="no"): "ACEP-D062",
        damaged(place=None): "ACEP-D062",
        damaged(place={}): "ACEP-D062",
        damaged(place={**place, "schema": "AAAA"}): "ACEP-D062",
        damaged(place={**place, "schema": 5}): "ACEP-D062",
        damaged(place={**place, "malformed": "1"}): "ACEP-D062",
        damaged(place={**place, "place": {"kind": "kafka"}}): "ACEP-D062",
        damaged(place={**place, "place": {"kind": "file", "header": "", "file": {}}}): "ACEP-D062",
        kind.pack(Scope()): "ACEP-D062",
        kind.pack(Scope(held.head)): "ACEP-D062",
        kind.pack(Scope(held.head, {**held.arrays, "more": held.arrays["state"]})): "ACEP-D062",
        Kind("matcher").pack(held): "ACEP-D062",
    }
    for content, code in cases.items():
        (cp / NAME).write_bytes(content)
        with pytest.raises(DataError) as caught:
            run(QUERY, csv, cp)
        assert caught.value.code == code
    (cp / NAME).write_bytes(whole)
    run(QUERY, csv, cp)


def test_two_runs_do_not_share_a_checkpoint(csv, cp):
    first = QUERY.follow(csv, checkpoint=cp, until_idle=0)
    with pytest.raises(UsageError) as caught:
        QUERY.follow(csv, checkpoint=cp)
    assert caught.value.code == "ACEP-U143"
    list(first)
    with pytest.raises(UsageError) as caught:
        QUERY.follow(csv, checkpoint=csv / "x")
    assert caught.value.code == "ACEP-U143"


def test_what_is_of_use_with_a_checkpoint_only_is_refused(csv):
    for more in ({"finish": True}, {"late": "late.csv"}):
        with pytest.raises(UsageError) as caught:
            QUERY.follow(csv, **more)
        assert caught.value.code == "ACEP-U139"
    with pytest.raises(UsageError) as caught:
        QUERY.follow(csv, checkpoint_every="often")
    assert caught.value.code == "ACEP-U142"


def test_an_output_that_is_shorter_than_it_was_is_refused(tmp_path):
    path = tmp_path / "found.jsonl"
    path.write_bytes(b"123456")
    with pytest.raises(DataError) as caught:
        GrowingFile(path, 7)
    assert caught.value.code == "ACEP-D065"
    file = Outputs({"results": 4}).opener("results")(path)
    with pytest.raises(UsageError) as caught:
        GrowingFile(path)
    assert caught.value.code == "ACEP-U025"
    file.sink.write(b"x")
    file.finish()
    assert path.read_bytes() == b"1234x"


def test_a_checkpoint_holds_what_it_was_given(tmp_path):
    given = Checkpoint({"a": [1]}, b"\x00\xff", {"x": None}, {"results": 3}, {"events": 5}, has_ended=True)
    with CheckpointFolder(tmp_path / "cp") as folder:
        assert folder.read() is None
        folder.write(given)
        assert folder.read() == given


def test_stop_ends_a_run_from_outside(csv):
    live_run = QUERY.follow(csv)
    assert isinstance(live_run, LiveRun)
    Steps(live_run.source, [appends(csv, "1,A,1\n2,B,1\n"), live_run.stop, pytest.fail])
    assert [table.num_rows for table in live_run] == [1]
    assert pa.table({}).num_rows == 0
