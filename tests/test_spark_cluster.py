"""A real cluster: two jobs from the zip that ``acep package`` writes, and a worker that is killed below them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import QuerySet, compile_query
from tests.patience import PATIENCE, until
from tests.processes import ROOT
from tests.spark_cases import rows
from tests.spark_cluster import SparkCluster, spark_cluster

pytestmark = [pytest.mark.xdist_group("spark cluster"), pytest.mark.slow]

ID = "n"
QUERY = "PATTERN SEQ(A a, B+ b[], ~(C c)) WHERE [g] AND a.x <= b[i].x WITHIN 3 s"
SET = {"by g": "PATTERN SEQ(A a, B b) WHERE [g] AND a.x < b.x WITHIN 2 s", "all": "PATTERN SEQ(C a, C b) WITHIN 200 ms"}
FILES, PER_FILE = 14, 60
DIED = 3
"""Micro-batches of each job before the worker dies."""
MEMORY = "512m"
OF_JAVA = "WARNING: Using incubator modules"

PROGRAM = """
import json, sys
from pathlib import Path
sys.path.insert(0, {root!r})  # this process alone: what executors find is the zip
from acep_approx import QuerySet, compile_query
from acep_approx.spark import session, start

home = Path({home!r})
spark = session({master!r}, **{conf!r})
spark.addArtifact(str(home / "acep.zip"), pyfile=True)


def where(batches):
    import acep_approx
    import pyarrow as pa

    for _ in batches:
        yield pa.record_batch({{"file": [acep_approx.__file__]}})


one = spark.range(1).coalesce(1).mapInArrow(where, "file string").collect()
events = spark.read.parquet(str(home / "events"))
found = events.transform(compile_query({query!r}).spark(id="n", shards=2)).toArrow()
print(json.dumps({{"file": one[0].file, "batch": [str(row) for row in found.to_pylist()]}}), flush=True)
desk = QuerySet(time="ts")
for name, text in {set!r}.items():
    desk.add(text, id=name)
stream = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", 1).parquet(str(home / "events"))
matcher = desk.spark(id="n", watermark="2 s", shards=2)
start(matcher, stream, to=home / "set", checkpoint=home / "set.checkpoint", until_done=True).awaitTermination()
spark.stop()
"""


@dataclass
class Jobs:
    """Two jobs that have ended: what they printed, and where their results are."""

    home: Path
    events: pa.Table
    printed: dict[str, str]
    stderr: dict[str, list[str]]


def recorded(home: Path) -> pa.Table:
    """Write events as files, in order; the last one closes all windows."""
    dice, now, events = Random(3), datetime(2024, 3, 1, tzinfo=UTC), []
    for number in range(FILES * PER_FILE):
        now += timedelta(milliseconds=dice.choice((0, 20, 150, 300)))
        kind, key = dice.choice("AABBBC"), dice.choice("pqrstuv")
        events.append({ID: number, "ts": now, "type": kind, "g": key, "x": dice.randrange(9)})
    events[-1]["ts"] += timedelta(days=30)
    table = pa.Table.from_pylist(events)
    (home / "events").mkdir()
    for file in range(FILES):
        path = home / "events" / f"{file:03}.parquet"
        pq.write_table(table.slice(file * PER_FILE, PER_FILE), path)
        os.utime(path, (10**9 + file,) * 2)  # Spark reads the oldest first
    return table


def begin(home: Path, cluster: SparkCluster) -> dict[str, subprocess.Popen[str]]:
    """Start a job from the shell, and one in Python."""
    conf = {"spark.executor.memory": MEMORY, "spark.cores.max": "2", "spark.executorEnv.ACEP_JIT": "0"}
    conf["spark.executor.extraJavaOptions"] = os.environ["SPARK_SUBMIT_OPTS"]  # as the driver's
    (home / "query.acep").write_text(QUERY)
    program = PROGRAM.format(root=str(ROOT), home=str(home), master=cluster.address, conf=conf, query=QUERY, set=SET)
    (home / "job.py").write_text(program)
    submit = ["--py-files", str(home / "acep.zip")]
    submit += [word for item in conf.items() for word in ("--conf", "=".join(item))]
    run = f"run query.acep events --spark --stream --master {cluster.address} --id {ID} --shards 2 --at-once {PER_FILE}"
    more = ["--watermark", "2 s", "-o", "query", "--checkpoint", "query.checkpoint", "--until-done", "-q", "--bind", ID]
    acep = [sys.executable, "-m", "acep_approx.cli.main"]
    jobs = {"query": [*acep, *run.split(), *more], "set": [sys.executable, "job.py"]}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYSPARK_PYTHON"] = sys.executable
    shell = {"PYTHONPATH": str(ROOT), "PYSPARK_SUBMIT_ARGS": shlex.join([*submit, "pyspark-shell"])}
    running = {}
    for name, command in jobs.items():
        mine = environment | (shell if name == "query" else {})
        with (home / f"{name}.out").open("w") as out, (home / f"{name}.err").open("w") as err:
            running[name] = subprocess.Popen(command, cwd=home, env=mine, stdout=out, stderr=err)
    return running


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> Jobs:
    """Both jobs at once, in a cluster of which half dies while they run."""
    home = tmp_path_factory.mktemp("cluster")
    events = recorded(home)
    packing = [sys.executable, "-m", "acep_approx.cli.main", "package", "-o", str(home / "acep.zip")]
    subprocess.run(packing, check=True, cwd=ROOT, capture_output=True)
    with spark_cluster(home, workers=2) as cluster:
        running = begin(home, cluster)
        try:
            for name, process in running.items():
                commits = home / f"{name}.checkpoint" / "commits"
                until(lambda c=commits, p=process: (c / str(DIED)).exists() or p.poll() is not None)
            assert cluster.kill_worker("worker0")
            codes = {name: process.wait(PATIENCE) for name, process in running.items()}
        finally:
            for process in running.values():
                process.kill()
    printed, said = ({name: (home / f"{name}.{kind}").read_text() for name in codes} for kind in ("out", "err"))
    assert set(codes.values()) == {0}, said
    lines = {name: [one for one in text.splitlines() if not one.startswith(OF_JAVA)] for name, text in said.items()}
    return Jobs(home, events, printed, lines)


def written(folder: Path, schema: pa.Schema) -> Counter[str]:
    """The rows of a folder of Parquet, with names and types of a run here; from the shell columns are ``a.n``."""
    found = pq.read_table(folder)
    found = found.rename_columns([name.removesuffix(f".{ID}") for name in found.column_names])
    return rows(found.select(schema.names).cast(schema))


def test_a_batch_finds_what_a_run_here_does_with_the_package_from_the_zip(jobs):
    told = json.loads(jobs.printed["set"].splitlines()[-1])
    assert "acep.zip" in told["file"]
    expected = compile_query(QUERY).match(jobs.events, bind=ID).to_arrow()
    assert len(expected) > 100
    assert Counter(told["batch"]) == rows(expected)


def test_a_query_whose_worker_dies_loses_nothing_and_doubles_nothing(jobs):
    expected = compile_query(QUERY).match(jobs.events, bind=ID).to_arrow()
    assert written(jobs.home / "query", expected.schema) == rows(expected)
    settings = json.loads((jobs.home / "query.checkpoint" / "offsets" / "0").read_text().splitlines()[1])["conf"]
    assert settings["spark.sql.shuffle.partitions"] == "2", "a task for each shard, and not 200"


def test_a_set_whose_worker_dies_loses_nothing_and_doubles_nothing(jobs):
    desk = QuerySet(time="ts", bind=ID)
    for name, text in SET.items():
        desk.add(text, id=name)
    expected = desk.match(jobs.events).table()
    assert len(expected) > 100
    assert written(jobs.home / "set", expected.schema) == rows(expected)


@pytest.mark.parametrize("job", ["query", "set"])
def test_whoever_runs_a_job_reads_one_line_of_the_worker_that_died(jobs, job):
    (line,) = jobs.stderr[job]
    assert line.startswith("Spark lost executor ")
    assert line.endswith("The job goes on: other executors do its work again.")
