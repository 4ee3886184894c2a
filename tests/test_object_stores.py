"""Events, results, histories, checkpoints and queries at ``s3://``: as on this machine, whole, and by one writer."""

from __future__ import annotations

import os
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from pathlib import Path

import pytest

from acep_approx import AcepError, compile_query
from acep_approx.errors import UsageError
from acep_approx.events.source import open_source
from acep_approx.events.writing.outfile import OutFile, whole_file
from acep_approx.live.checkpoint import Checkpoint, CheckpointFolder
from acep_approx.subscriptions.versions import KeptQuery, change, read_version
from acep_approx.training.history_graph import newest
from history import HistoryError
from history.errors import PlaceError
from history.places import StorePath, place_of
from history.store import load, save
from history.versions import versions as versions_in
from tests.command_line import acep
from tests.counted_histories import learned
from tests.naive_history import random_trace
from tests.object_store import KEYS, new_bucket, refusing, served

pytestmark = pytest.mark.usefixtures("one_reading")
QUERY = "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v AND b.v < c.v WITHIN 30"


@pytest.fixture(scope="module")
def store():
    with pytest.MonkeyPatch.context() as patch, served(patch) as host:
        yield host


@pytest.fixture
def bucket(store):
    """The address of an empty bucket."""
    return f"s3://{new_bucket()}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to be in, with events in two files of a folder."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(1)
    lines = [f"{number},{draw.choice('ABCX')},{draw.randrange(10)}\n" for number in range(2000)]
    Path("in/more").mkdir(parents=True)
    for place, part in (("in/1.csv", lines[:1500]), ("in/more/2.csv", lines[1500:])):
        Path(place).write_text("ts,type,v\n" + "".join(part), encoding="utf-8")
    return tmp_path


def put(bucket, *files):
    for file in files:
        (place_of(bucket) / file).write_bytes(Path(file).read_bytes())


def below(folder):
    """The files below a folder, by their names from there, with what is in them."""
    home = place_of(folder)
    if isinstance(home, StorePath):
        return {name: (home / name).read_bytes() for name, is_file in home.objects(recursive=True) if is_file}
    return {one.relative_to(home).as_posix(): one.read_bytes() for one in home.rglob("*") if one.is_file()}


# --- as on this machine -----------------------------------------------------------------------------------------------


def test_events_and_results(here, bucket):
    put(bucket, "in/1.csv", "in/more/2.csv")
    for where, name in (("in", "found.csv"), ("in/*.csv", "found.jsonl"), ("in/1.csv", "found.parquet")):
        acep("run", "-q", QUERY, where, "-o", name, "--page", "page.html")
        for given in (where, f"{bucket}/{where}"):
            acep("run", "-q", QUERY, given, "-o", f"{bucket}/out/{name}", "--page", f"{bucket}/page.html")
            assert (place_of(bucket) / "out" / name).read_bytes() == Path(name).read_bytes()
    assert len(Path("found.csv").read_text().splitlines()) > 1000
    again = compile_query(QUERY).match([f"{bucket}/in/1.csv", "in/more/2.csv"])
    assert len(again.table()) == len(Path("found.csv").read_text().splitlines()) - 1
    assert acep("look", f"{bucket}/in").stdout.replace(f"{bucket}/in", "in") == acep("look", "in").stdout
    with (place_of(bucket) / "in/1.csv").open("rb") as file:
        file.seek(3)
        assert file.read(4) == b"type"


def test_rows_that_are_left_out(here, bucket):
    Path("late.csv").write_text("ts,type,v\n1,A,0\n5,B,1\n2,A,0\nx,C,1\n", encoding="utf-8")
    how = ("--on-late", "skip", "--on-malformed", "skip")
    for home in ("here", bucket):
        Path("here").mkdir(exist_ok=True)
        acep("run", "-q", QUERY, "late.csv", *how, "--late", f"{home}/l.csv", "--rejects", f"{home}/r.jsonl")
    assert below("here") == below(bucket) != {}


def test_histories(here, bucket):
    words = (QUERY, "in", "-q")
    for home in ("past", f"{bucket}/past"):
        acep("train", *words, "-o", home)
        acep("train", *words, "-o", home, "--new-version")
        acep("run", *words, "--budget", "20%", "--history", home, "-o", f"{home.replace('past', 'found')}.csv")
    assert below("past") == below(f"{bucket}/past")
    assert {"LATEST", "v0001/manifest.json", "v0002/maps.npz"} <= below("past").keys()
    assert Path("found.csv").read_bytes() == (place_of(bucket) / "found.csv").read_bytes()
    assert "ACEP-H005" in acep("train", *words, "-o", f"{bucket}/past", code=4).stderr
    assert "ACEP-H001" in acep("run", *words, "--budget", "20%", "--history", f"{bucket}/other", code=4).stderr
    (place_of(bucket) / "past/v0002/maps.npz").write_bytes(b"")
    with pytest.raises(HistoryError, match="ACEP-H004"):
        load(f"{bucket}/past")
    assert load(Path(f"{bucket}/past"), version=1).version == 1  # Path has taken a slash away


def test_queries_with_versions(here, bucket):
    Path("one.acep").write_text("PATTERN SEQ(A a, B b) WITHIN 5", encoding="utf-8")
    Path("two.acep").write_text(QUERY, encoding="utf-8")
    told = []
    for home in ("desk", f"{bucket}/desk"):
        told.append([acep("queries", "add", home, file).stderr.replace(home, "") for file in ("one.acep", "two.acep")])
        acep("queries", "remove", home, "one")
        acep("train", "--queries", home, "in", "-q", "-o", home.replace("desk", "past"))
        more = ("--budget", "20%", "--history", home.replace("desk", "past"), "-o", home.replace("desk", "found"))
        acep("run", "--queries", home, "in", "-q", *more)
    assert told[0] == told[1]
    assert below("found") == below(f"{bucket}/found")
    assert below("past").keys() == below(f"{bucket}/past").keys()
    assert [one.id for one in read_version(place_of(f"{bucket}/desk"), 2).queries] == ["one", "two"]


def test_a_live_run_goes_on(here, bucket):
    whole = Path("in/1.csv").read_text().splitlines(keepends=True)
    live = ("run", "-q", QUERY, "--follow", "--until-idle", "100 ms")
    for place in ("checkpoint", f"{bucket}/checkpoint"):
        Path("events.csv").write_text("".join(whole[:700]))
        words = (*live, "events.csv", "-o", f"{place[:2]}.csv", "--checkpoint", place)
        acep(*words)
        with Path("events.csv").open("a") as file:
            file.writelines(whole[700:])
        acep(*words)
    assert Path("ch.csv").read_bytes() == Path("s3.csv").read_bytes()
    assert len(Path("s3.csv").read_text().splitlines()) > 1000


def test_names():
    place = place_of(Path("s3://bucket/in/a b.tar.gz"))
    assert str(place) == "s3://bucket/in/a b.tar.gz"
    assert (place.name, place.suffix, place.parent.name) == ("a b.tar.gz", ".gz", "in")
    assert str(place.with_suffix(".csv")) == "s3://bucket/in/a b.tar.csv"
    assert str(pickle.loads(pickle.dumps(place)) / "c") == f"{place}/c"
    set_up = place_of("s3a://bucket/in/?endpoint_override=host:9")
    assert str(set_up / "a.csv") == "s3a://bucket/in/a.csv?endpoint_override=host:9"
    assert str(place_of("s3://bucket").parent) == "s3://bucket"
    assert str(place_of("hdfs:///in//x")) == "hdfs:///in/x"
    assert place_of("in//x") == Path("in/x")
    assert set_up == place_of(str(set_up)) != place_of("s3a://bucket/in")


@pytest.mark.xdist_group("spark")
def test_workers_of_spark_read_text_and_a_history(spark, here, bucket, monkeypatch):
    """Python reads both, so Spark needs no package; ``s3a://`` is the same place."""
    from acep_approx.spark.sources.files import read_files

    put(bucket, "in/1.csv", "in/more/2.csv")
    query, keys = compile_query(QUERY), {name: os.environ[name] for name in (*KEYS, "AWS_ENDPOINT_URL")}
    known = query.train("in")
    monkeypatch.setattr(spark.sparkContext, "environment", spark.sparkContext.environment | keys)
    events = read_files(spark, [f"{bucket.replace('s3', 's3a', 1)}/in"], "csv")
    found = {}
    for home in ("past", f"{bucket}/past"):
        known.save(home)
        matcher = query.spark(budget="20%", history=home, shards=2, id="ts")
        found[home] = sorted(map(str, events.transform(matcher).collect()))
    assert found["past"] == found[f"{bucket}/past"] != []


# --- whole, and by one writer -----------------------------------------------------------------------------------------


class KilledError(BaseException):
    """Stands for the end of a process."""


@pytest.fixture
def killed_after(monkeypatch):
    """Lets nothing be changed any more after some changes, as if the process had ended."""

    def after(changes):
        left = iter(range(changes))

        def limited(call):
            def change_one(*given, **more):
                if next(left, None) is None:
                    raise KilledError
                return call(*given, **more)

            return change_one

        patch = pytest.MonkeyPatch()
        for name in ("write_bytes", "copy", "unlink", "remove_tree"):
            patch.setattr(StorePath, name, limited(getattr(StorePath, name)))
        return patch

    return after


@pytest.mark.parametrize("changes", [0, 5, 6, 8, 11, 12, 14])
def test_a_killed_writer_leaves_the_history_whole(bucket, killed_after, monkeypatch, changes):
    known = learned([random_trace(1, births=60)], -1, 9)
    home = place_of(f"{bucket}/past")
    save(known, home, "same")
    patch = killed_after(changes)
    with suppress(KilledError):
        save(known, home, "same", new_version=True)
    patch.undo()
    assert load(home, "same").version == 1 + (changes > 14)
    monkeypatch.setattr("history.versions._written", lambda _: -inf)  # a minute later
    folder = save(known, home, "same", new_version=True)
    assert load(home, "same").version == int(folder.name[1:]) >= 2
    monkeypatch.setattr("history.versions.LEFT_OVER", -1.0)  # an hour later
    save(known, home, "same", new_version=True)
    assert {name.split("/")[0] for name in below(home)} == {"LATEST", *(f"v{one:04}" for one in versions_in(home))}


def test_a_result_that_is_not_finished_is_not_there(bucket):
    place = place_of(f"{bucket}/found.csv")
    with suppress(KilledError), whole_file(place) as sink:
        sink.write(b"half of it")
        raise KilledError
    assert not place.exists()


def test_no_change_of_two_writers_is_lost(bucket):
    home = place_of(f"{bucket}/desk")

    def add(one):
        change(home, lambda before: [*before.queries, KeptQuery(one, before.number + 1, "PATTERN (A a) WITHIN 1")])

    with ThreadPoolExecutor(3) as some:
        list(some.map(add, "abcdefgh"))
    assert sorted(one.id for one in read_version(home).queries) == list("abcdefgh")
    assert versions_in(home) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert not [name for name in below(home) if name.startswith(".")]


def test_a_claim_of_another_is_waited_for(bucket, monkeypatch):
    home = place_of(f"{bucket}/desk")
    (home / ".draft-v0001-other").write_bytes(b"")
    monkeypatch.setattr("history.versions.TRIES", 2)
    with pytest.raises(PlaceError, match="ACEP-H014") as caught:
        change(home, lambda _: [KeptQuery("a", 1, "PATTERN (A a) WITHIN 1")])
    assert caught.value.passes
    assert list(below(home)) == [".draft-v0001-other"]


def test_a_second_run_ends_at_the_checkpoint_of_the_first(bucket, monkeypatch):
    now = iter((10, 10, 10, 20, 20, 30))  # stores tell times in seconds
    monkeypatch.setattr("acep_approx.live.checkpoint._written", lambda _: next(now))
    one, other = (CheckpointFolder(place_of(f"{bucket}/state")) for _ in range(2))
    one.write(Checkpoint({"query": "a"}))
    with pytest.raises(UsageError, match="ACEP-U143"):
        other.write(Checkpoint({"query": "b"}))
    assert one.read() == Checkpoint({"query": "a"})


# --- refused ----------------------------------------------------------------------------------------------------------


def test_what_is_not_there(here, bucket):
    put(bucket, "in/1.csv")
    near = acep("run", QUERY, f"{bucket}/in/l.csv", code=4).stderr
    assert "ACEP-D010" in near
    assert f"did you mean '{bucket}/in/1.csv'?" in near
    for words in (
        ("run", QUERY, "s3://no-bucket/1.csv"),
        ("run", QUERY, "in", "-o", "s3://no-bucket/found.csv"),
        ("run", QUERY, "in", "--budget", "9%", "--history", "s3://no-bucket/past"),
        ("train", QUERY, "in", "-o", "s3://no-bucket/past"),
        ("queries", "list", "s3://no-bucket/desk"),
        ("run", QUERY, "--follow", "in", "--checkpoint", "s3://no-bucket/state"),
    ):
        assert "ACEP-H011: s3://no-bucket" in acep(*words, code=4).stderr
    with pytest.raises(AcepError, match="ACEP-H011"):
        open_source("s3://no-bucket/1.csv")


def test_a_store_that_does_not_answer(here, bucket, monkeypatch):
    """Temporary trouble; and a job that has a history goes on with it."""
    query, home = compile_query(QUERY), f"{bucket}/past"
    query.train("in/more/2.csv").save(home)
    known = newest(home, query)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert "ACEP-H010" in acep("run", QUERY, f"{bucket}/in/1.csv", code=75).stderr
    with pytest.raises(AcepError) as caught:
        whole_file(place_of(f"{bucket}/found.csv")).__enter__()
    assert caught.value.is_temporary
    assert newest(home, query) is known


def test_a_store_that_refuses(here, store, monkeypatch):
    with refusing() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        told = acep("run", QUERY, "s3://bucket/1.csv", code=4).stderr
        OutFile(place_of("s3://bucket/found.csv")).discard()  # one may be allowed to put what one may not look at
    assert "ACEP-H012" in told
    assert "AWS_ACCESS_KEY_ID" in told
    for wrong in ("s3://me:secret@bucket/1.csv", "s3://bucket/1.csv?signature=secret"):
        told = acep("run", QUERY, wrong, code=4).stderr
        assert "ACEP-H013" in told
        assert "secret@" not in told
        assert "=secret" not in told


def test_where_the_environment_does_not_say_it(here, bucket, store, monkeypatch):
    put(bucket, "in/1.csv")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    address = f"{bucket}/in/1.csv?endpoint_override={store}&scheme=http"
    assert compile_query(QUERY).match(address).table().num_rows > 1000
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://{store}")
    assert compile_query(QUERY).match(f"{bucket}/in").table().num_rows > 1000


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--follow in/1.csv -o s3://bucket/found.csv", "ACEP-U170"),
        ("in -o s3://bucket/found.csv --flush", "ACEP-U170"),
        ("in --log s3://bucket/log", "ACEP-U170"),
        ("--follow s3://bucket/in", "ACEP-U140"),
        ("s3://bucket/in -o s3://bucket/in", "ACEP-U013"),
    ],
)
def test_what_an_object_store_cannot_do(here, bucket, words, code):
    put(bucket, "in/1.csv")
    assert code in acep("run", QUERY, *words.replace("s3://bucket", bucket).split(), code=2).stderr
