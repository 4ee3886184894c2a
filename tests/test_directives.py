"""Logs whose columns are named by a line of #: W3C extended of IIS and CloudFront, and Zeek."""

import gzip

import pytest

from acep_approx import compile_query
from acep_approx.errors import DataError
from acep_approx.events.live.source import follow
from acep_approx.events.source import open_source

ZEEK = (
    "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n"
    "#fields\tts\tuid\tid.orig_h\tduration\ttype\n#types\ttime\tstring\taddr\tinterval\tstring\n"
    "1521911721.255387\t1\t10.0.0.1\t0.004\tREJ\n1521911722.4\t2\t10.0.0.1\t-\tREJ\n"
    "1521911724.9\t3\t10.0.0.1\t1.5\tSF\n#close\t2019-11-08-11-44-17\n"
)
HEAD = "#Software: IIS\n#Version: 1.0\n#Date: 2024-03-28 09:30:00\n#Fields: date time c-ip cs-uri-query sc-status\n"
REST = (("00", "- 401"), ("02", "- 401"), ("04", "q=1 200"))
ROWS = [f"2024-03-28 09:30:{second} 1.2.3.4 {rest}\n" for second, rest in REST]
IIS = HEAD + ROWS[0] + HEAD + ROWS[1] + ROWS[2]
LOGIN = compile_query("PATTERN SEQ('401' a, '401' b, '200' c) WHERE [`c-ip`] WITHIN 10 s")


def values(query, source, **roles):
    return [match.values for match in query.match(source, **roles)]


@pytest.mark.parametrize("name", ["conn.log", "conn", "conn.log.gz"])
def test_zeek(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(ZEEK.encode()) if name.endswith("gz") else ZEEK.encode())
    query = compile_query("PATTERN SEQ(REJ a, REJ b, SF c) WHERE [`id.orig_h`] AND c.duration > 1 WITHIN 10 s")
    assert values(query, path, unit="s") == [{"a": 0, "b": 1, "c": 2}]
    table = list(open_source(path).batches(["uid", "duration"]))
    assert [value for batch in table for value in batch.column("uid").to_pylist()] == ["1", "2", "3"]
    assert [value for batch in table for value in batch.column("duration").to_pylist()] == [0.004, None, 1.5]


def test_iis_that_was_restarted(tmp_path):
    path = tmp_path / "u_ex.log"
    path.write_text(IIS)
    assert values(LOGIN, path, type="sc-status") == [{"a": 0, "b": 1, "c": 2}]
    assert values(LOGIN, tmp_path, type="sc-status") == [{"a": 0, "b": 1, "c": 2}]


def test_cloudfront_names_by_blanks_and_values_by_tabs(tmp_path):
    path = tmp_path / "cf.log"
    path.write_text((HEAD + "".join(ROWS).replace(" ", "\t")).replace("\r", ""))
    assert values(LOGIN, path, type="sc-status") == [{"a": 0, "b": 1, "c": 2}]


def test_several_files(tmp_path):
    for number, row in enumerate(ROWS):
        (tmp_path / f"u{number}.log").write_text(HEAD + row)
    assert values(LOGIN, sorted(tmp_path.iterdir()), type="sc-status") == [{"a": 0, "b": 1, "c": 2}]


def test_other_columns_in_the_middle_are_refused(tmp_path):
    path = tmp_path / "u.log"
    path.write_text(IIS + "#Fields: date time c-ip\n2024-03-28 09:31:00 1.2.3.4\n")
    with pytest.raises(DataError, match=r"u\.log, line 12: the columns change: date time c-ip"):
        values(LOGIN, path, type="sc-status")


def test_other_comments_name_no_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("#Fields: see below\nts,type\n1,A\n")
    assert open_source(path).schema.names == ["ts", "type"]


def test_following_over_a_restart_and_a_rotation(tmp_path):
    path = tmp_path / "u.log"
    path.write_text(HEAD + ROWS[0])
    source = follow(path, until_idle=0.3, time="date+time")
    matcher = LOGIN.matcher(type="sc-status", time="date+time")
    batches = source.batches()
    found = [matcher.push(next(batches))]
    with path.open("a") as file:
        file.write(HEAD + ROWS[1] + HEAD)
    found.append(matcher.push(next(batches)))
    path.rename(tmp_path / "u.log.1")
    path.write_text(HEAD[:40])
    with path.open("a") as file:
        file.write(HEAD[40:] + ROWS[2])
    found += [matcher.push(batch) for batch in batches]
    assert [row for table in found for row in table.select(["a", "b", "c"]).to_pylist()] == [{"a": 0, "b": 1, "c": 2}]


def test_going_on_after_a_stop(tmp_path):
    path = tmp_path / "u.log"
    path.write_text(HEAD + ROWS[0])
    source = follow(path, until_idle=0)
    matcher = LOGIN.matcher(type="sc-status", time="date+time")
    [matcher.push(batch) for batch in source.batches()]
    place = source.place()
    with path.open("a") as file:
        file.write(HEAD + ROWS[1] + ROWS[2])
    later = follow(path, until_idle=0, resumed=place)
    rows = [row for batch in later.batches(["sc-status", "cs-uri-query"]) for row in batch.to_pylist()]
    assert rows == [{"sc-status": 401, "cs-uri-query": None}, {"sc-status": 200, "cs-uri-query": "q=1"}]
