"""Whatever stands in a file, on standard input, or in a file that grows: the answer is output or a coded error."""

import bz2
import gzip
import io
import json
import lzma
import random
import re
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import look
from acep_approx.cli import main
from acep_approx.events.reading.formats.json_documents import split_objects
from tests.cases import cases
from tests.command_line import acep

QUERY = "PATTERN SEQ(A a, B b) WITHIN 5 s RETURN a.ts AS t, b.x AS x"
ROWS = [{"ts": f"2024-05-01T08:00:{i:02d}Z", "type": "AB"[i % 2], "x": i, "o": {"k": i * 0.5}} for i in range(12)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
CSV = ("ts,type,x,s\n" + "".join(f'{row["ts"]},{row["type"]},{row["x"]},"a ""q"", ü"\n' for row in ROWS)).encode()
INSERTED = [
    b"\0", b"\xff", b'"', b"{", b"}", b"[", b"]", b",", b"\n", b"\r", b":", b"null", b"-1", b"1e999", b"NaN",
    b"\\u0000", b"9" * 22, b"\xed\xa0\x80", b"\\ud800", b"0000-01-01T00:00:00Z", b"10000-01-01T00:00:00Z",
    b"\xef\xbb\xbf", b"{}",
]  # fmt: skip


def zipped(*contents):
    """A zip archive of some files."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, content in enumerate(contents):
            archive.writestr(f"{number}.csv", content)
    return sink.getvalue()


def by_arrow(kind, data):
    """Data compressed by Arrow."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, kind) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def parquet():
    """A small Parquet file."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"ts": range(12), "type": ["A", "B"] * 6, "x": [1.5] * 12}), sink)
    return sink.getvalue()


FILES = {
    "a.jsonl": LINES,
    "a.csv": CSV,
    "a.json": json.dumps(ROWS, indent=1).encode(),
    "one_line.json": LINES.replace(b"\n", b""),
    "a.csv.gz": gzip.compress(CSV),
    "a.csv.bz2": bz2.compress(CSV),
    "a.csv.xz": lzma.compress(CSV),
    "a.csv.zip": zipped(CSV),
    "a.csv.zst": by_arrow("zstd", CSV),
    "a.csv.lz4": by_arrow("lz4", CSV),
    "a.parquet": parquet(),
    "utf16.csv": CSV.decode().encode("utf-16"),
}


def mutated(rng, data):
    """Data that were cut off, or in which bytes were changed, doubled, put in or left out."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice([1, 2, 5, 30]))
        data = rng.choice(
            [
                data[:at],
                data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :],
                data[:at] + data[at:end] + data[at:],
                data[:at] + rng.choice(INSERTED) + data[at:],
                data[:at] + data[end:],
                data[:at] + rng.choice(INSERTED) + data[end:],
            ]
        )
    return data


def answered(*command, stdin=b"", name=""):
    """Run a command, whose answer is output, or an error with a code that is the user's and not ours."""
    from typer.testing import CliRunner

    from tests.command_line import Pieces, SimpleNamespace, patch

    piped = SimpleNamespace(stdin=SimpleNamespace(buffer=io.BufferedReader(Pieces([stdin]))))
    with patch("acep_approx.events.reading.files.sys", piped):
        result = CliRunner().invoke(main.app, list(command))
    assert result.exit_code in (0, 3, 4), (name, command, result.output)
    assert "ACEP-E" not in result.output, (name, command, result.output)
    assert result.exit_code == 0 or re.search(r"ACEP-[DQ]\d+", result.output), (name, command, result.output)
    return result


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_end_in_output_or_a_coded_error(tmp_path, name):
    rng = random.Random(name)
    path = tmp_path / name
    unit = ["--unit", "s"] if name == "a.parquet" else []
    for number in range(cases(30, 2)):
        data = mutated(rng, FILES[name])
        path.write_bytes(data)
        skip = ["--on-malformed", "skip"] if number % 2 else []
        where = f"{name}, number {number}"
        answered("run", QUERY, str(path), *unit, *skip, name=where)
        answered("look", str(path), name=where)
        answered("run", QUERY, "-", *unit, *skip, stdin=data, name=where)
        answered("run", QUERY, str(path), "--follow", "--until-idle", "1 ms", *unit, *skip, name=where)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst", "lz4"])
def test_compressed_files_that_are_cut_off_are_named(tmp_path, kind):
    path = tmp_path / f"a.csv.{kind}"
    path.write_bytes(FILES[path.name][:-12])
    for command in ("run", QUERY, str(path)), ("look", str(path)):
        assert "ACEP-D013" in acep(*command, code=4).output
    assert "ACEP-D013" in acep("run", QUERY, "-", stdin=path.read_bytes(), code=4).output


def test_archives_that_are_damaged_or_hold_something_else(tmp_path):
    wrong_sum = bytearray(zipped(CSV))
    wrong_sum[14] ^= 255
    place = wrong_sum.find(b"PK\1\2")
    wrong_sum[place + 16] ^= 255
    encrypted = bytearray(zipped(CSV))
    encrypted[6] |= 1
    encrypted[encrypted.find(b"PK\1\2") + 8] |= 1
    for content, code in ((wrong_sum, "D013"), (encrypted, "D013"), (zipped(CSV, CSV), "D028"), (zipped(), "D028")):
        path = tmp_path / "a.csv.zip"
        path.write_bytes(content)
        assert f"ACEP-{code}" in acep("run", QUERY, str(path), code=4).output
        assert f"ACEP-{code}" in acep("look", str(path), code=4).output


def test_members_of_gzip_one_after_the_other_are_one_file(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV[:200]) + gzip.compress(CSV[200:]))
    assert look(tmp_path / "a.csv.gz").rows == len(ROWS)


@pytest.mark.parametrize("between", ["", " ", "\t", "\n", "\n\n", " \n "])
def test_objects_one_after_the_other_on_any_number_of_lines(tmp_path, between):
    texts = [json.dumps(row | {"s": '} {"\\'}) for row in ROWS]
    several = between.join(texts[:5]) + "\n" + between.join(texts[5:])
    later = "\n".join(texts[:5]) + "\n" + between.join(texts[5:]) + "\n"
    for text in (several, later):
        for name in ("a.json", "a.jsonl"):
            (tmp_path / name).write_text(text)
            found = acep("run", QUERY, str(tmp_path / name), "--output", "count")
            assert json.loads(found.stdout)["matches"] == 15, (name, text)
            assert look(tmp_path / name).rows == len(ROWS)
        (tmp_path / "grows.jsonl").write_text(text + "\n")
        assert json.loads(acep("run", QUERY, "-", "--output", "count", stdin=text.encode()).stdout)["matches"] == 15
        grown = acep("run", QUERY, str(tmp_path / "grows.jsonl"), "--follow", "--until-idle", "1 ms")
        assert len(grown.stdout.splitlines()) == 15


@pytest.mark.parametrize("inner", ['{"a":' * 1500 + "1" + "}" * 1500, "[" * 900 + "]" * 900])
def test_values_that_are_nested_very_deeply_are_malformed(tmp_path, inner):
    path = tmp_path / "deep.jsonl"
    path.write_bytes(LINES + b'{"ts": "2024-05-01T09:00:00Z", "type": "A", "d": ' + inner.encode() + b"}\n")
    for command in ("run", QUERY, str(path)), ("run", QUERY, str(path), "--follow", "--until-idle", "1 ms"):
        assert "inside one another" in acep(*command, code=4).output
    assert look(path).malformed == 1


@pytest.mark.parametrize("year", ["0000", "10000", "-0001"])
def test_years_that_python_has_not(tmp_path, year):
    (tmp_path / "a.csv").write_text(f"ts,type\n{year}-01-01T00:00:00Z,A\n{year}-01-02T00:00:00Z,B\n")
    (tmp_path / "a.jsonl").write_text(f'{{"ts":"{year}-01-01T00:00:00Z","type":"A"}}\n' * 2)
    for name in ("a.csv", "a.jsonl"):
        answered("look", str(tmp_path / name))


@pytest.mark.parametrize("values", [pa.array([2**62, 5], pa.timestamp("us")), pa.array([-(10**9), 2**30], pa.date32())])
@pytest.mark.parametrize("name", ["ts", "other"])
def test_times_in_tables_that_python_has_not(values, name):
    table = pa.table({"ts": [1, 2], "type": ["A", "B"]} | {name: values})
    assert "2 rows" in str(look(table))


def test_texts_that_look_like_two_objects_stay_one():
    line = b'{"a": "} {", "b": {"c": 1}}\n'
    assert split_objects(line * 3) == line * 3


def test_an_error_of_our_own_has_a_code_and_asks_for_a_report(monkeypatch, tmp_path):
    def fails(*_, **__):
        raise ZeroDivisionError("by our fault")

    monkeypatch.setattr("acep_approx.profiling.profile.look", fails)
    shown = acep("look", str(tmp_path), code=1).output
    assert "ACEP-E002" in shown
    assert "ZeroDivisionError: by our fault" in shown
    assert "report" in shown
    assert "Traceback" not in shown
    monkeypatch.setattr("acep_approx.profiling.profile.look", lambda *_, **__: (_ for _ in ()).throw(MemoryError()))
    assert "ACEP-E001" in acep("look", str(tmp_path), code=1).output
