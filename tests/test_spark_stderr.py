"""What users see on stderr when a stream is stopped in the middle of a micro-batch: nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from acep_approx.spark.daemon import unless_nobody_listens
from acep_approx.spark.setup.session import worth_reading

STOPPED = """
import sys, time
import pyarrow as pa, pyarrow.parquet as pq
from acep_approx import compile_query
from acep_approx.spark import Replay, session, start
from acep_approx.spark.setup.failures import explained
from pyspark.errors import StreamingQueryException

folder = sys.argv[1]
events = pa.table({"ts": list(range(20_000)), "type": ["A", "B"] * 10_000, "k": list("xyzuv") * 4_000})
pq.write_table(events, folder + "/events.parquet")
spark = session("local[2]")
spark.dataSource.register(Replay)
options = {"path": folder + "/events.parquet", "time": "ts", "speed": "max", "most": "2000"}
stream = spark.readStream.format("acep_replay").options(**options).load()
query = compile_query("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10").spark(time="ts", watermark="1 millisecond", shards=1)
running = start(query, stream, to=folder + "/found", checkpoint=folder + "/checkpoint")
while len(running.recentProgress) < 2:
    time.sleep(0.1)
running.stop()
print(running.exception(), flush=True)
other = compile_query("PATTERN SEQ(B a, A b) WHERE [k] WITHIN 10").spark(time="ts", watermark="1 millisecond", shards=1)
failing = start(other, stream, to=folder + "/found", checkpoint=folder + "/checkpoint")
try:
    failing.awaitTermination(100)
except StreamingQueryException as error:
    print(explained(error).code, flush=True)
print("said by Python", file=sys.stderr)
spark.sparkContext._jvm.java.lang.System.err.println("said by the JVM")
time.sleep(0.5)
"""
OF_JAVA = ("WARNING: Using incubator modules", "acep: compiling kernels")


@pytest.mark.xdist_group("spark")
def test_a_stream_that_is_stopped_prints_nothing_of_its_own_and_one_that_fails_says_why(tmp_path):
    command = [sys.executable, "-c", STOPPED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout.split(), done.returncode) == (["None", "ACEP-S012"], 0), done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith(OF_JAVA)]
    assert said == ["said by Python", "said by the JVM"]


def test_what_is_no_chatter_comes_through():
    name = b"Streaming TransformWithStateInPandas Python worker"
    lines = [b"a\n", b"Starting " + name + b".\n", b"\n", name + b" Completed execution of UDF.\n", b"\n", b"\n", b"b"]
    assert list(worth_reading(lines)) == [b"a\n", b"\n", b"b"]


@pytest.mark.parametrize("given_up", [BrokenPipeError, ConnectionResetError])
def test_a_task_that_was_given_up_ends_without_a_trace(given_up: type[OSError]):
    def broken(_: object) -> int:
        raise given_up

    assert unless_nobody_listens(broken)(None) == 1
    assert unless_nobody_listens(lambda _: 0)(None) == 0
    with pytest.raises(OSError, match="disk"):
        unless_nobody_listens(_full)(None)


def _full(_: object) -> int:
    raise OSError("disk")
