"""What comes of programs of every kind on Spark: python -m tests.connect_answers sc://HOST:PORT FOLDER, as JSON.

A process has sessions of one kind only. So tests ask a classic session here, and Spark Connect in a process of its own.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from acep_approx import QuerySet, compile_query, compile_rules
from acep_approx.cli.main import app
from acep_approx.errors import AcepError
from acep_approx.events.source import open_source
from acep_approx.results.tuning import PastTable, tune
from acep_approx.spark import Progress, net, session, start, train_history
from acep_approx.spark.past.tuning import on_spark
from acep_approx.spark.setup.connectors import add_kafka
from acep_approx.spark.setup.kinds import STATE_STORE, is_connect
from acep_approx.spark.streaming import elsewhere
from history.tables import pack
from tests.patience import ended

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.x > a.x AND c.x > b.x WITHIN 60"
PAIR = "PATTERN SEQ(A a, B b) WHERE [key] AND b.x > a.x WITHIN 9"
OTHER = "PATTERN SEQ(C a, C b) WHERE b.x > a.x + 8 WITHIN 20"
RULES = """
TABLE seen (key text, number int DEFAULT 0, KEY (key))
RULE count ON PATTERN C c WITHIN 1 DO UPDATE seen SET number = old.number + 1 AT (c.key) END
RULE busy ON PATTERN SEQ(B b, C c) WHERE [key] AND store.seen[c.key].number > 5 WITHIN 9
"""
EVENTS, END = 900, 10**6
TRIES = 5
STREAMED = {"id": "n", "watermark": 5, "shards": 2}


def made_events() -> pa.Table:
    """Events of some keys, and one after which all windows have closed."""
    dice = Random(3)
    rows = [
        {"n": n, "ts": n + 1, "key": dice.choice("uvwxyz"), "type": dice.choice("AABC"), "x": dice.randrange(10)}
        for n in range(EVENTS)
    ]
    return pa.Table.from_pylist([*rows, {"n": EVENTS, "ts": END, "key": "u", "type": "Z", "x": 0}])


def rows_of(table: pa.Table) -> list[str]:
    """The rows of a table in a fixed order, in words."""
    return sorted(map(str, table.to_pylist()))


def expected() -> dict[str, Any]:
    """What is found on one machine."""
    events = made_events()
    desk = QuerySet(time="ts", bind="n")
    desk.add(PAIR, id="pair")
    desk.add(OTHER, id="other")
    return {
        "query": rows_of(compile_query(QUERY).match(events, bind="n").to_arrow()),
        "set": rows_of(desk.match(events).table()),
    }


class Answers:
    """What a session answers.

    Parameters
    ----------
    spark : SparkSession
    home : Path
        A folder for what jobs read and write.
    """

    def __init__(self, spark: Any, home: Path) -> None:
        self.spark, self.home, self.told, self.numbers = spark, home, list[Progress](), list[Progress | None]()
        (home / "in").mkdir(parents=True)
        events = made_events()
        pq.write_table(events, home / "all.parquet")
        half = EVENTS // 2
        for number, part in enumerate((events.slice(0, half), events.slice(half))):
            self._arrive(number, part)
        self.events = spark.read.parquet(str(home / "all.parquet"))

    def _arrive(self, number: int, part: pa.Table) -> None:
        file = self.home / "in" / f"{number}.parquet"
        pq.write_table(part, file)
        os.utime(file, (number + 1, number + 1))  # Spark reads the oldest file first

    def _stream(self, files: int = 9) -> Any:
        """The files as a stream, so many in a micro-batch."""
        stream = self.spark.readStream.schema(self.events.schema).option("maxFilesPerTrigger", files)
        return stream.parquet(str(self.home / "in"))

    def _streamed(self, name: str, matcher: Any, *, files: int = 9, **more: Any) -> Any:
        """What a stream has written, and the numbers of its micro-batches."""
        places = {"to": self.home / name, "checkpoint": self.home / f"{name}.checkpoint"}
        self.told.clear()
        query = self._started(matcher, files, **places, **more)
        ended(query)
        elsewhere.finish_watches()
        self.numbers = [Progress.of(report) for report in query.recentProgress]
        return self.spark.read.parquet(str(self.home / name)).drop("batch")

    def _started(self, *asked: Any, **more: Any) -> Any:
        """The stream; on a busy machine Spark gives its processes of Python up which do not answer in ten seconds."""
        matcher, files = asked
        for tries in range(TRIES):
            try:
                return start(matcher, self._stream(files), **more, until_done=True, on_progress=self.told.append)
            except AcepError as error:
                if not error.passes or tries == TRIES - 1:
                    raise
        return None

    def queries(self) -> dict[str, Any]:
        """One query: a batch, and a stream with early results."""
        query = compile_query(QUERY)
        batch = self.events.transform(query.spark(id="n"))
        early = self._streamed("early", query.spark(emit="early", **STREAMED))
        return {"query": rows_of(batch.toArrow()), "early": rows_of(net(early).drop("match_id").toArrow())}

    def sets(self) -> dict[str, Any]:
        """A set: a batch, and a stream of a folder whose queries come and go, stopped and begun again."""
        desk = QuerySet(time="ts")
        desk.add(PAIR, id="pair")
        desk.add(OTHER, id="other")
        batch = self.events.transform(desk.spark(id="n"))
        folder, lines = self.home / "queries", []
        self._add(folder, "pair", PAIR)

        class Keep(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                lines.append(record.getMessage())

        log, keep = logging.getLogger("acep_approx.spark"), Keep()
        log.addHandler(keep)
        self._streamed("changing", QuerySet(time="ts").spark(queries=folder, **STREAMED))
        self._add(folder, "later", PAIR.replace(">", "<"))
        later = [{"n": EVENTS + n, "ts": END + n, "key": "u", "type": "AB"[n % 2], "x": n} for n in range(1, 30)]
        self._arrive(2, pa.Table.from_pylist([*later, later[-1] | {"n": 2 * EVENTS, "ts": 2 * END}]))
        found = self._streamed("changing", QuerySet(time="ts").spark(queries=folder, **STREAMED))
        log.removeHandler(keep)
        return {
            "set": rows_of(batch.toArrow()),
            "changing": rows_of(found.toArrow()),
            "told": [line for line in lines if line.startswith("version ")],
        }

    def _add(self, folder: Path, name: str, text: str) -> None:
        from typer.testing import CliRunner

        file = self.home / f"{name}.acep"
        file.write_text(text, encoding="utf-8")
        folder.mkdir(exist_ok=True)
        assert CliRunner().invoke(app, ["queries", "add", str(folder), str(file)]).exit_code == 0

    def rules(self) -> dict[str, Any]:
        """Rules: a batch and a stream, with what they write."""
        flow = compile_rules(RULES).spark(id="n").flow(self.events)
        found = self._streamed("rules", compile_rules(RULES).spark(**STREAMED), changes=self.home / "changes")
        written = self.spark.read.parquet(str(self.home / "changes" / "seen")).count()
        return {
            "rules": rows_of(flow.matches().toArrow()),
            "rules streamed": rows_of(found.toArrow()),
            "changes": [flow.table("changes of seen").count(), written],
        }

    def budgets(self) -> dict[str, Any]:
        """A history, a batch and a stream within a budget that learns from it, and what is tuned."""
        query = compile_query(QUERY)
        known = train_history(self.events, query, id="n")
        known.save(self.home / "history")
        options = {"budget": "20%", "history": self.home / "history"}
        batch = self.events.transform(query.spark(id="n", **options))
        stream = self._streamed("budget", query.spark(**options, learn=True, **STREAMED), files=1)
        past = PastTable.read(open_source(made_events()))
        tuned = tune(
            lambda errors=None, within=None: compile_query(QUERY, errors=errors, within=within), past,
            within=("10", "30"), budgets=("20%",), elsewhere=on_spark(self.spark),
        )  # fmt: skip
        return {
            "history": sha256(pack(known.graph_)).hexdigest(),
            "budget": rows_of(batch.toArrow()),
            "budget streamed": rows_of(stream.toArrow()),
            "micro-batches": [(one.batch, one.events, one.matches, one.steps) for one in self.numbers if one],
            "tuned": [
                {name: value for name, value in asdict(one).items() if "seconds" not in name} for one in tuned.trials
            ],
        }

    def clock(self) -> dict[str, Any]:
        """Whether the driver has measured a job whose budget goes by the clock, and all numbers have come here."""
        self._streamed("clock", compile_query(QUERY).spark(**STREAMED, budget="2 s/batch"), files=1)
        is_measured = (self.home / "clock.checkpoint" / "acep" / "overhead.json").exists()
        return {"measured": is_measured, "all told": [*map(str, self.told)] == [*map(str, self.numbers)]}

    def all(self) -> dict[str, Any]:
        """All that is asked of both kinds of session: what a query finds is known from a run here."""
        return self.rules() | self.budgets() | self.sets()

    def refused(self, address: str) -> dict[str, str]:
        """What Spark Connect cannot do, or lacks: the code and the hint of each."""
        query, spark, checkpoint = compile_query(QUERY), self.spark, self.home / "refused.checkpoint"

        def without_rocksdb() -> None:
            set_before = spark.conf.get(STATE_STORE)
            spark.conf.unset(STATE_STORE)
            try:
                query.spark(**STREAMED)(self._stream())
            finally:
                spark.conf.set(STATE_STORE, set_before)

        def apart() -> None:
            """What this process writes is not there for a worker."""
            with patch.object(elsewhere, "replace_file", lambda *_: None):
                elsewhere.check_shared(spark, checkpoint / "acep")

        to = {"to": "jdbc:sqlite:found.db?table=found", "checkpoint": checkpoint}
        tried: dict[str, Callable[[], object]] = {
            "state store": without_rocksdb,
            "database": lambda: start(query.spark(**STREAMED), self._stream(), **to),
            "Kafka": lambda: add_kafka(spark),
            "checkpoint": apart,
            "setting": lambda: session(address, **{"spark.driver.memory": "9g"}),
        }
        return {name: _code(one) for name, one in tried.items()}


def _code(tried: Callable[[], object]) -> str:
    try:
        tried()
    except AcepError as error:
        assert error.hint
        return error.code
    return "nothing"


def main() -> None:
    """Ask a server, and print what it answers."""
    address, home = sys.argv[1], Path(sys.argv[2])
    spark = session(address)
    assert is_connect(spark)
    answers = Answers(spark, home)
    found = answers.queries() | answers.all() | {"clock": answers.clock(), "refused": answers.refused(address)}
    (home / "answers.json").write_text(json.dumps(found), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
