"""Files that grow and folders in which files appear: every whole line once, whatever happens to the files."""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import threading
from unittest.mock import patch

import pytest

from acep_approx import compile_query
from acep_approx.errors import AcepError, DataError, UsageError
from acep_approx.events import follow, open_source
from acep_approx.events.live.growing import FilePosition, FollowedPath, from_json, to_json
from acep_approx.events.live.text import Pace, seconds
from tests.live_steps import Steps, appends, lines, replaces, rows

PATIENCE = 60
QUERY = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n1,A\n")
    return path


def times(found):
    return [row["ts"] for row in found]


def test_a_line_counts_once_it_has_its_end(csv, caplog):
    source = follow(csv)
    found = rows(source, appends(csv, "2,"), appends(csv, "B\n3,A\n4"), lambda: None)
    assert times(found) == [1, 2, 3]
    assert "line 5 has no end yet, and was not read" in caplog.text
    assert source.place()["place"]["file"]["offset"] == len("ts,type\n1,A\n2,B\n3,A\n")


def test_a_line_end_between_quotes_is_no_end(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text('ts,type,text\n1,A,"one\n')
    assert [row["text"] for row in rows(follow(path), appends(path, 'two"\n2,B,x\n'))] == ["one\ntwo", "x"]


def test_matches_come_with_the_line_that_completes_them(csv):
    source = follow(csv)
    seen = []
    Steps(source, [appends(csv, "2,B\n"), lambda: seen.append(len(found)), appends(csv, "3,B\n")])
    found = []
    for table in QUERY.match(source).tables():
        found += table.to_pylist()
    assert seen == [1]
    assert [row["b"] for row in found] == [1, 2]


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path, caplog):
    path = tmp_path / "events.csv"
    assert times(rows(follow(path), lambda: None, lambda: path.write_text("ts,type\n"), appends(path, "7,A\n"))) == [7]
    assert caplog.text.count("there is no such file yet") == 1


def test_a_file_that_never_comes_has_no_events(tmp_path):
    assert follow(tmp_path / "events.csv", until_idle=0).schema.names == []
    assert list(QUERY.match(follow(tmp_path / "events.csv", until_idle=0)).tables()) == []


def test_a_file_that_is_replaced_is_read_to_its_end_first(csv, caplog):
    def replace():
        appends(csv, "2,B\n3,A")()  # the last line has no end, and gets none
        replaces(csv, "ts,type\n4,B\n")()

    assert times(rows(follow(csv), replace, appends(csv, "5,A\n"))) == [1, 2, 3, 4, 5]
    assert "was replaced" in caplog.text


def test_a_new_file_may_have_its_columns_in_another_order(csv):
    found = rows(follow(csv), replaces(csv, "type,ts\nB,4\n"))
    assert found == [{"ts": 1, "type": "A"}, {"ts": 4, "type": "B"}]


def test_a_new_file_without_a_header_goes_on_with_the_columns_of_the_one_before(csv, caplog):
    assert times(rows(follow(csv), replaces(csv, "4,B\n5,A\n"))) == [1, 4, 5]
    assert "has no header" in caplog.text


def test_a_new_file_with_other_columns_is_refused(csv):
    with pytest.raises(DataError, match="other columns: price") as caught:
        rows(follow(csv), replaces(csv, "ts,type,price\n4,B,1\n"))
    assert caught.value.code == "ACEP-D056"


def test_a_file_that_is_cut_off_begins_anew(csv, caplog):
    assert times(rows(follow(csv), lambda: csv.write_text("ts,type\n"), appends(csv, "9,B\n"))) == [1, 9]
    assert "was cut off" in caplog.text


def test_a_header_and_its_first_row_may_come_in_different_files(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n")
    source = follow(path)
    assert times(rows(source, replaces(path, "ts,type\n"), appends(path, "3,A\n"))) == [3]
    assert source.place()["place"]["file"]["offset"] == len("ts,type\n3,A\n")


def test_a_mark_of_the_byte_order_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "events.csv"
    path.write_bytes(b"\xef\xbb\xbfts,type\n1,A\n")
    source = follow(path)
    assert rows(source, appends(path, "2,B\n")) == [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]
    assert source.place()["place"]["file"]["offset"] == path.stat().st_size


def test_files_of_a_folder_follow_one_another(tmp_path, caplog):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "02.jsonl").write_text('{"ts": 1, "type": "A"}\n')
    (folder / ".hidden.jsonl").write_text("no\n")
    (folder / "notes.txt").write_text("no\n")
    steps = [
        lambda: (folder / "03.jsonl").write_text('{"ts": 3, "type": "B"}\n'),
        lambda: (folder / "01.jsonl").write_text('{"ts": 0, "type": "A"}\n'),
        lambda: (folder / "04.jsonl").write_text('{"ts": 4, "type": "B", "x": 1}\n{"ts": 5, "type": "B"}'),
    ]
    assert times(rows(follow(folder), *steps)) == [1, 3, 4]
    assert "01.jsonl is not read" in caplog.text
    assert "04.jsonl, line 2 has no end yet" in caplog.text


def test_types_become_wider_as_values_ask_for_it(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"ts": 1, "type": "A", "x": 1}\n')
    source = follow(path)
    found = rows(source, appends(path, '{"ts": 2, "type": "B", "x": 2.5}\n'))
    assert [row["x"] for row in found] == [1, 2.5]
    again = follow(path, until_idle=0, resumed=source.place())
    assert str(again.schema.field("x").type) == "double"
    again.close()


@pytest.mark.parametrize(
    "document",
    [
        '[{"ts": 1, "type": "A"},\n{"ts": 2, "type": "B"}]\n',
        '[\n{"ts": 1, "type": "A"}\n]\n',
        '[{"ts": 1, "type": "A"}]',
        '{"events": [\n{"ts": 1, "type": "A"}]}\n',
        '{"events": [{"ts": 1, "type": "A"}]}\n',
        '{\n  "ts": 1,\n  "type": "A"\n}\n',
    ],
)
def test_a_json_document_is_not_followed(tmp_path, document):
    path = tmp_path / "events.json"
    path.write_text(document)
    with pytest.raises(DataError, match="JSON document") as caught:
        rows(follow(path, until_idle=0))
    assert caught.value.code == "ACEP-D055"
    assert "jsonl" in caught.value.hint
    path.write_text("")  # it comes later
    with pytest.raises(DataError, match="JSON document"):
        rows(follow(path), appends(path, document))


def test_json_lines_are_followed_whatever_their_name(tmp_path):
    path = tmp_path / "events.json"
    path.write_text('{"ts": 1, "at": [{"x": 1}]}\n')
    assert [row["ts"] for row in rows(follow(path), appends(path, '{"ts": 2}\n'))] == [1, 2]
    path.write_text('{"ts": 1, "ty\n{"ts": 2}\n')  # a file that begins in the middle of its making
    assert [row["ts"] for row in rows(follow(path, until_idle=0, on_malformed="skip"))] == [2]


def test_columns_come_with_later_events_of_json_lines(tmp_path, caplog):
    path = tmp_path / "events.jsonl"
    path.write_text('{"ts": 1, "type": "A"}\n')
    source = follow(path)
    Steps(source, [appends(path, '{"ts": 2, "type": "B", "x": 2}\n')])
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > 1 WITHIN 5")
    assert [row["b"] for row in lines(list(query.match(source).tables()))] == [1]
    assert "waiting for other events: ACEP-Q060" in caplog.text


WITH_X = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > 1 WITHIN 5")


@pytest.mark.parametrize(
    ("text", "query", "roles", "says"),
    [
        ("ts,type\n1,A\n", WITH_X, {}, "no attribute 'x'.*attributes are ts, type"),
        ("when,type\n1,A\n", QUERY, {}, "no column is recognised as the time; the columns are: when, type"),
        ("ts,type\n1,A\n", QUERY, {"time": "when"}, "no column 'when'; the columns are: ts, type"),
        ("ts,what\n1,A\n", QUERY, {}, "the columns are: ts, what"),
    ],
)
def test_a_column_that_never_comes_is_an_error_with_the_first_row(csv, text, query, roles, says):
    lines, log = {"line_format": "{" + text.partition("\n")[0].replace(",", "} {") + "}"}, csv.with_name("e.log")
    csv.write_text(text)
    log.write_text("1 A\n")
    for place, reading in ((csv, {}), (csv.parent, {}), (log, lines)):
        with pytest.raises(AcepError, match=f"(?s){says}"):
            list(query.match(follow(place, **reading), **roles).tables())


@pytest.mark.parametrize(
    ("text", "says", "ends"),
    [
        ("ts,type\n1,A\n", "no attribute 'x'.*attributes are ts, type", True),
        ("when,type\n1,A\n", "the columns are: when, type", True),
        ('{"ts": 1, "type": "A"}\n', "waiting for other events: ACEP-Q060: no attribute 'x'.*ts, type", False),
    ],
)
def test_so_it_is_on_standard_input_while_it_waits(text, says, ends, caplog):
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    timer = threading.Timer(PATIENCE if ends else 0.5, os.close, [writing])
    timer.start()
    with os.fdopen(reading, "rb") as piped, patch("acep_approx.events.reading.files.sys") as system:
        system.stdin.buffer = piped
        with pytest.raises(AcepError) as caught:
            list(WITH_X.match("-").tables())
    assert re.search(f"(?s){says}", str(caught.value) if ends else caplog.text)
    if ends:  # before there was an end
        timer.cancel()
        os.close(writing)


def test_a_time_may_come_where_nothing_stood(csv):
    csv.write_text("when,type\n,A\n")
    source = follow(csv)
    Steps(source, [appends(csv, "2024-01-01T00:00:00Z,A\n")])
    with pytest.raises(DataError, match="line 2: the event has no time"):  # it is known which column that is
        list(compile_query("PATTERN SEQ(A a, B b) WITHIN 5 days").match(source).tables())


@pytest.mark.parametrize("text", ["", "ts,type\n"])
def test_that_it_waits_for_the_first_event_is_said_once(csv, caplog, text):
    csv.write_text(text)
    steps = [lambda: None, lambda: None, appends(csv, ("" if text else "ts,type\n") + "1,A\n"), lambda: None]
    assert times(rows(follow(csv), *steps)) == [1]
    assert caplog.text.count("there is no event in it yet; waiting") == 1
    caplog.clear()
    assert times(rows(follow(csv), lambda: None)) == [1]
    assert "waiting" not in caplog.text


@pytest.mark.parametrize("name", ["events.jsonl", "events.csv"])
def test_rows_that_can_be_read_may_come_behind_those_that_cannot(tmp_path, name):
    """As where the first messages of a topic are malformed, and those of other partitions come a moment later."""
    path = tmp_path / name
    is_csv = name.endswith("csv")
    path.write_bytes(b"ts,type\n\xff,\xff\n" if is_csv else b"garbage\ngarbage\n")
    more = "1,A\n2,B\n" if is_csv else '{"ts": 1, "type": "A"}\n{"ts": 2, "type": "B"}\n'
    source = follow(path, on_malformed="skip")
    Steps(source, [appends(path, more)])
    found = [row for table in QUERY.match(source).tables() for row in table.to_pylist()]
    assert [(row["a"], row["b"]) for row in found] == [(0, 1)]
    assert source.malformed.count == (1 if is_csv else 2)
    if not is_csv:  # where it stays at that it is an error, in the end
        path.write_bytes(b"garbage\n")
        with pytest.raises(DataError, match="ACEP-D021"):
            list(QUERY.match(follow(path, on_malformed="skip", until_idle=0)).tables())


def test_malformed_rows_are_left_out_and_told(csv, tmp_path):
    rejects = tmp_path / "rejects.jsonl"
    source = follow(csv, on_malformed="skip", rejects=rejects)
    assert times(rows(source, appends(csv, "2,B,9,9\nx,A\n3,B\n"))) == [1, 3]
    assert source.malformed.count == 2
    assert [json.loads(line)["line"] for line in rejects.read_text().splitlines()] == [3, 4]


# --- going on -------------------------------------------------------------------------------------------------


def read_once(path, resumed=None, **more):
    source = follow(path, until_idle=0, resumed=resumed, **more)
    found = rows(source)
    return times(found), json.loads(json.dumps(source.place()))


def test_a_run_goes_on_where_the_last_one_ended(csv):
    found, place = read_once(csv)
    appends(csv, "2,B\n3,")()
    more, place = read_once(csv, place)
    appends(csv, "A\n")()
    assert (found, more, read_once(csv, place)[0]) == ([1], [2], [3])


def test_what_is_no_plain_csv_is_read_alike_after_a_stop(csv):
    csv.write_text('ts, type\n1, "A"\n,\n')
    found, place = read_once(csv)
    appends(csv, '2, B\n,\n3, "A"\n')()
    source = follow(csv, until_idle=0, resumed=place)
    assert (found, rows(source)) == ([1], [{"ts": 2, "type": "B"}, {"ts": 3, "type": "A"}])


@pytest.mark.parametrize(
    "text",
    [
        "ts, type\n1,A\n",  # the space behind the header alone belongs to values
        "ts;type\n1;A;\n",
        "ts;type;\n;;\n1;A;\n",
        "Report;;\nts;type;n\n1;A;1\n",
        "# by hand\nts,type\n1,A\n",
    ],
)
def test_how_a_header_is_understood_stays_after_a_stop(csv, caplog, text):
    csv.write_text(text)
    found, place = read_once(csv)
    row = text.splitlines()[-1].replace("1", "2", 1).replace("A", " B")
    appends(csv, row + "\n")()
    more = rows(follow(csv, until_idle=0, resumed=place))
    assert (found, [(one["ts"], one["type"]) for one in more]) == ([1], [(2, " B")])
    assert "no header" not in caplog.text


def test_a_header_may_come_piece_by_piece(csv):
    csv.write_text("# by hand\n")
    texts = ("Report,,\n\n", 'ts, "type", n\n', '1, "A', '", 1\n', '2, "C\n', 'D", 2\n')
    found = rows(follow(csv), *(appends(csv, text) for text in texts))
    assert [row["type"] for row in found] == ["A", "C\nD"]


def test_a_new_file_may_begin_with_its_header_alone(csv):
    csv.write_text("ts,type\n1,A,\n")
    found = rows(follow(csv), replaces(csv, "type,ts\n"), appends(csv, "B,2,\n"))
    assert found == [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]


def test_a_file_that_was_replaced_meanwhile_is_read_to_its_end(csv):
    _, place = read_once(csv)
    appends(csv, "2,B\n")()
    replaces(csv, "type,ts\nA,3\n")()
    found, place = read_once(csv, place)
    assert found == [2, 3]
    appends(csv, "B,4\n")()
    assert read_once(csv, place)[0] == [4]


def test_a_copy_that_was_cut_off_is_found_by_its_content(csv):
    _, place = read_once(csv)
    appends(csv, "2,B\n")()
    csv.with_name("events.csv.1").write_bytes(csv.read_bytes())
    csv.write_text("ts,type\n")
    appends(csv, "3,A\n")()
    assert read_once(csv, place)[0] == [2, 3]


@pytest.mark.parametrize("text", ["ts,type\n", "", None])
def test_a_file_that_is_gone_is_refused(csv, text):
    _, place = read_once(csv)
    csv.unlink() if text is None else csv.write_text(text)
    with pytest.raises(DataError, match="is not there any more") as caught:
        follow(csv, resumed=place)
    assert caught.value.code == "ACEP-D061"


LONG = "".join(f"{n},{'AB'[n % 2]}\n" for n in range(500))


REWRITTEN = [
    ("ts,type\n1,A\n", "ts,type\n2,A\n"),
    ("ts,type\n1,A\n", "ts,type\n2,A\n3,B\n4,A\n"),
    (f"ts,type\n{LONG}", f"ts,type\n{LONG[:2000]}7,B\n{LONG[2000:]}"),
    (f"ts,type\n{LONG}", f"type,ts\n{LONG}"),
]


def refused_as_rewritten(call):
    with pytest.raises(DataError, match=r"events\.csv: it was rewritten in place") as caught:
        call()
    assert caught.value.code == "ACEP-D150"


@pytest.mark.parametrize(("old", "new"), [*REWRITTEN, ("ts,type\n1,A\n2", "ts,type\n1,A\n3,B\n")])
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_file_that_is_rewritten_in_place_is_refused(csv, old, new, is_folder):
    csv.write_text(old)
    place = csv.parent if is_folder else csv
    refused_as_rewritten(lambda: rows(follow(place), lambda: csv.write_text(new), lambda: None))
    csv.write_text(old)
    source = follow(place, until_idle=0)
    refused_as_rewritten(lambda: [csv.write_text(new) for _ in source.batches()])


@pytest.mark.parametrize(("old", "new"), REWRITTEN)
def test_so_it_is_where_a_run_goes_on(csv, old, new):
    csv.write_text(old)
    place = read_once(csv)[1]
    csv.write_text(new)
    refused_as_rewritten(lambda: follow(csv, resumed=place))


def test_a_file_that_is_rewritten_with_more_behind_the_same_has_grown(csv):
    found = rows(follow(csv), lambda: csv.write_text("ts,type\n1,A\n2,B\n"), lambda: None)
    assert times(found) == [1, 2]


def test_a_file_that_was_replaced_twice_is_refused(csv):
    _, place = read_once(csv)
    replaces(csv, "ts,type\n2,B\n", ".2")()
    replaces(csv, "ts,type\n3,B\n", ".1")()
    os.utime(csv.with_name("events.csv.2"), (1, 1))
    with pytest.raises(DataError, match=r"more than once since it was read: events.csv.1"):
        follow(csv, resumed=place)


def test_a_folder_goes_on_with_its_file(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.csv").write_text(f"ts,type\n{ord(name)},A\n")
    found, place = read_once(tmp_path)
    appends(tmp_path / "c.csv", "200,B\n")()
    (tmp_path / "a.csv").unlink()
    (tmp_path / "d.csv").write_text("ts,type\n300,B\n")
    assert (found, read_once(tmp_path, place)[0]) == ([97, 98, 99], [200, 300])


@pytest.mark.parametrize(
    "change",
    [{"name": "../x"}, {"offset": -1}, {"line": 0}, {"offset": "1"}, {"inode": None}, {"more": 1}],
)
def test_a_place_that_is_none_is_refused(csv, change):
    source = follow(csv, until_idle=0)
    rows(source)
    place = to_json(FilePosition(**source.place()["place"]["file"]))
    assert from_json(place) == FilePosition(**place)
    with pytest.raises(ValueError, match="not"):
        from_json(place | change)


# --- what is refused ------------------------------------------------------------------------------------------


def test_what_cannot_be_followed_is_refused(tmp_path):
    packed, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    packed.write_bytes(gzip.compress(b"ts,type\n1,A\n"))
    for path, error, code in (
        (packed, DataError, "ACEP-D055"),
        (parquet, DataError, "ACEP-D055"),
        ("-", UsageError, "ACEP-U140"),
        ("/dev/stdin", UsageError, "ACEP-U140"),
        (tmp_path / "no" / "a.csv", DataError, "ACEP-D010"),
        (tmp_path / "a.csv.gz", DataError, "ACEP-D012"),
        (tmp_path / "a.txt", DataError, "ACEP-D012"),
    ):
        with pytest.raises(error) as caught:
            rows(follow(path, until_idle=0))
        assert caught.value.code == code, path
    with pytest.raises(UsageError) as caught:
        open_source("kafka://broker/topic")
    assert caught.value.code == "ACEP-U140"


def test_rejects_do_not_overwrite_the_input(csv):
    with pytest.raises(UsageError) as caught:
        follow(csv, on_malformed="skip", rejects=csv)
    assert caught.value.code == "ACEP-U106"


def test_where_events_are_counted_the_file_is_not_replaced(csv):
    source = follow(csv, is_one_file=True)
    with pytest.raises(UsageError) as caught:
        rows(source, replaces(csv, "ts,type\n4,B\n"))
    assert caught.value.code == "ACEP-U145"


@pytest.mark.parametrize("given", ["5", "5 days", -1, None, True, "x s"])
def test_lengths_of_time_by_the_clock(given):
    with pytest.raises(UsageError) as caught:
        seconds("until_idle", given)
    assert caught.value.code == "ACEP-U142"


def test_idle_time_counts_from_the_last_event():
    pace = Pace(until_idle=1000)
    assert not pace.is_over()
    pace.heard()
    pace.until_idle = 0
    assert pace.is_over()
    pace.until_idle = None
    assert not pace.is_over()
    pace.stop()
    assert pace.is_over()


def test_how_much_is_still_to_be_read(csv):
    followed = FollowedPath(csv)
    assert followed.lag is None
    followed.more()
    followed.passed(8, 1)
    assert followed.lag == 4
    followed.close()


@pytest.fixture(autouse=True)
def _logs(caplog):
    caplog.set_level(logging.WARNING, "acep_approx.live")
