"""Tables of databases as places of matches: SQLite, and a real PostgreSQL; each micro-batch is there once."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from acep_approx import compile_rules
from acep_approx.cli.main import app
from acep_approx.cli.on_spark.batch import OnSpark
from tests.kafka_runs import QUERY, messages
from tests.postgres_server import NoServer, Server

if TYPE_CHECKING:
    from click.testing import Result

spark_test = pytest.mark.xdist_group("spark")
STREAM = ("--spark", "--stream", "--until-done", "--id", "n", "--shards", "2", "--watermark", "1 s", "--bind", "n")
MIDNIGHT = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to be in, with a folder of events, whose times are timestamps."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    events = [json.loads(value) for value in messages(300)]
    for event in events:
        event["ts"] = (MIDNIGHT + timedelta(milliseconds=event["ts"])).isoformat()
    for number, part in enumerate((events[:200], events[200:])):
        (tmp_path / f"{number}.jsonl").write_text("".join(json.dumps(event) + "\n" for event in part), encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    """A server of PostgreSQL; skips where there can be none."""
    folder = tmp_path_factory.mktemp("postgres")
    for above in (folder, *folder.parents[:3]):
        above.chmod(above.stat().st_mode | 0o011)  # another user may run it
    try:
        running = Server(folder)
    except NoServer as why:
        pytest.skip(f"no server of PostgreSQL: {why}")
    yield running
    running.stop()


def run(to: str, *words: str) -> Result:
    """Match the folder as a stream."""
    query = QUERY.replace("60000", "60 s")
    return CliRunner().invoke(app, ["run", query, "in", *STREAM, "--checkpoint", "state", "-o", to, *words])


def come(number: int) -> None:
    """Let a file of events come."""
    Path(f"{number}.jsonl").rename(Path("in", f"{number}.jsonl"))


def here() -> Counter[str]:
    """The matches of all but the last events, which wait for the watermark, as a run here finds them."""
    lines = [line for file in sorted(Path("in").iterdir()) for line in file.read_text(encoding="utf-8").splitlines()]
    last = datetime.fromisoformat(json.loads(lines[-1])["ts"]) - timedelta(seconds=1)
    passed = [line for line in lines if datetime.fromisoformat(json.loads(line)["ts"]) < last]
    Path("all.jsonl").write_text("".join(f"{line}\n" for line in passed), encoding="utf-8")
    words = ("--bind", "n", "--format", "jsonl", "-q", "--open-end")
    done = CliRunner().invoke(app, ["run", QUERY.replace("60000", "60 s"), "all.jsonl", *words])
    assert done.exit_code == 0, done.output
    return Counter(plain(*(row[name] for name in NAMES)) for row in map(json.loads, done.stdout.splitlines()))


NAMES = ("box", "errors", "p.n", "s.n", "l.n")
SHOWN = 'box, errors, "p.n", "s.n", "l.n"'


def plain(*values: Any) -> str:
    """A match by what identifies it."""
    return "|".join("" if value is None else str(value) for value in values)


def done_again() -> None:
    """Let the last micro-batch be one that was written, and whose end was not noted."""
    for file in Path("state/commits").glob("*1*"):
        file.unlink()


@spark_test
def test_a_table_of_sqlite_has_each_match_once(spark, folder):
    def rows(what: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(folder / "found.db")) as base:
            return base.execute(f"SELECT {what} FROM found").fetchall()

    address = f"jdbc:sqlite:{folder}/found.db?table=found"
    come(0)
    first = run(address)
    assert first.exit_code == 0, first.output
    assert Counter(plain(*row) for row in rows(SHOWN)) == here()
    done_again()
    assert run(address).exit_code == 0
    assert Counter(plain(*row) for row in rows(SHOWN)) == here()
    come(1)
    assert run(address).exit_code == 0
    assert Counter(plain(*row) for row in rows(SHOWN)) == here()
    assert {type(json.loads(missing)) for (missing,) in rows("missing")} == {list}
    assert len(set(rows("batch"))) > 1


@spark_test
def test_a_table_of_postgresql_has_each_match_once(spark, server):
    address = server.address("found")
    come(0)
    first = run(address)
    assert first.exit_code == 0, first.output
    done_again()
    come(1)
    assert run(address).exit_code == 0
    assert Counter("|".join(row) for row in server.ask(f"SELECT {SHOWN} FROM found")) == here()
    (times,) = server.ask("SELECT min(start), pg_typeof(min(start)) FROM found")
    assert times[0].startswith("2024-05-01 00:00:0")
    assert times[1] == "timestamp without time zone"
    assert server.ask("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'found\\_%'") == [["0"]]


RULES = """
TABLE seen (box int, n int DEFAULT 0, x int, KEY (box))
TABLE kinds (kind text, n int DEFAULT 0, KEY (kind))
RULE count ON PATTERN Packed p WITHIN 1 s DO UPSERT seen SET n = old.n + 1, x = p.n AT (p.box) END
RULE gone ON PATTERN Loaded l WHERE store.seen[l.box].n > 1 WITHIN 1 s DO DELETE seen AT (l.box); CALL note(l.box) END
"""


def rules_run(address: str, more: str = "") -> Result:
    """Run rules on the folder as a stream; their tables, what is written to them, and calls go to a database."""
    Path("rules.acep").write_text(RULES, encoding="utf-8")
    Path("begin.jsonl").write_text('{"box": 99, "n": 7, "x": 1}\n{"box": 1, "n": 1, "x": 0}\n', encoding="utf-8")
    places = {"--mirror": f"{address}{more}", "--changes": f"{address}table=log", "--calls": f"{address}table=calls"}
    words = [word for pair in places.items() for word in pair]
    return CliRunner().invoke(
        app, ["run", "rules.acep", "in", *STREAM, "--checkpoint", "rules", "--table", "seen=begin.jsonl",
              "-o", "found", *words],
    )  # fmt: skip


def rules_here() -> tuple[Counter[str], int, int]:
    """The rows of a table after the events that the watermark has passed; numbers of changes and of calls."""
    here()
    rules, begin = compile_rules(RULES), {"seen": "begin.jsonl"}
    done = rules.run("all.jsonl", store=begin, time="ts")
    table = done.store["seen"].to_arrow()
    shown = Counter(plain(*(row[name] for name in ("box", "n", "x"))) for row in table.to_pylist())
    return shown, len(done.changes["seen"]), len(done.calls)


@spark_test
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_tables_of_rules_are_kept_in_a_database(spark, folder, kind, request):
    if kind == "sqlite":
        address = f"jdbc:sqlite:{folder}/rules.db?"

        def ask(what: str) -> list[Any]:
            with closing(sqlite3.connect(folder / "rules.db")) as base:
                return base.execute(what).fetchall()
    else:
        server = request.getfixturevalue("server")
        address, ask = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user=test&", server.ask

    def is_right() -> bool:
        table, changes, calls = rules_here()
        mirrored = Counter(plain(*row) for row in ask("SELECT box, n, x FROM mine_seen"))
        (written,), (called,) = ask("SELECT count(*) FROM log_seen"), ask("SELECT count(*) FROM calls")
        return (mirrored, int(written[0]), int(called[0])) == (table, changes, calls)

    come(0)
    first = rules_run(address, "table=mine")
    assert first.exit_code == 0, first.output
    assert is_right()
    for file in Path("rules/commits").glob("*"):  # its end was not noted
        if file.name.lstrip(".").startswith("0"):
            file.unlink()
    come(1)
    assert rules_run(address, "table=mine").exit_code == 0
    assert is_right()
    numbers = {int(row[0]) for row in ask("SELECT batch FROM mine_seen")}
    assert len(numbers) > 1
    shutil.rmtree("rules")
    refused = rules_run(address, "table=mine")
    assert (refused.exit_code, "ACEP-S091" in refused.stderr) == (4, True), refused.output


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--spark --stream --checkpoint c -o jdbc:sqlite:found.db", "ACEP-S086"),
        ("--spark --stream --checkpoint c -o jdbc:sqlite:found.db?table=a;b", "ACEP-S086"),
        ("--spark -o jdbc:sqlite:found.db?table=found", "ACEP-S071"),
        ("-o jdbc:sqlite:found.db?table=found", "ACEP-U170"),
        ("--spark --stream --checkpoint c -o found --mirror jdbc:sqlite:found.db", "ACEP-U064"),
        ("--mirror jdbc:sqlite:found.db", "ACEP-S071"),
    ],
)
def test_what_does_not_go_to_a_database(monkeypatch, words, code):
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(OnSpark, "session", started)
    come(0)
    refused = CliRunner().invoke(app, ["run", QUERY.replace("60000", "60 s"), "in", *words.split()])
    assert (refused.exit_code, code in refused.stderr) == (2, True), refused.output
