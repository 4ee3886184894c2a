"""A session and what it needs: Java, PySpark, protobuf; errors of workers, said as ours."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.errors import EXIT_TEMPORARY, AcepError, DataError, QueryError, UsageError
from acep_approx.spark.setup import session as module
from acep_approx.spark.setup.failures import clear_errors, explained
from acep_approx.spark.setup.session import check_java, check_spark, cores, java_version
from tests.patience import PATIENCE

# --- Java -------------------------------------------------------------------------------------------------------


def fake_java(home: Path, said: str) -> str:
    """A folder with a Java that says its version, as Java does, on stderr."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\n")
    java.chmod(java.stat().st_mode | stat.S_IEXEC)
    return str(home)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)', 17),
        ('openjdk version "21" 2023-09-19 LTS', 21),
        ('java version "1.8.0_202"\nJava(TM) SE Runtime Environment', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea" 2025-09-16', 25),
        ("no such thing", None),
    ],
)
def test_what_java_says_about_its_version(said, version):
    assert java_version(said) == version


def test_java_new_enough(tmp_path):
    assert check_java(fake_java(tmp_path, 'openjdk version "21.0.1"')) == 21


def test_java_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "home", 'openjdk version "18"'))
    assert check_java() == 18
    monkeypatch.delenv("JAVA_HOME")
    on_path = fake_java(tmp_path / "path", 'openjdk version "19"')
    monkeypatch.setenv("PATH", f"{on_path}/bin{os.pathsep}/bin")
    assert check_java() == 19


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ('java version "1.8.0_202"', "ACEP-S031", "Java 8"),
        ('openjdk version "11.0.2"', "ACEP-S031", "Java 11"),
        ("Unable to locate a Java Runtime", "ACEP-S030", "Unable to locate"),
    ],
)
def test_java_that_will_not_do(tmp_path, said, code, words):
    with pytest.raises(AcepError, match=words) as caught:
        check_java(fake_java(tmp_path, said))
    assert caught.value.code == code
    assert "apt install openjdk-17" in (caught.value.hint or "")


def test_no_java(tmp_path, monkeypatch):
    with pytest.raises(AcepError, match="none in JAVA_HOME") as caught:
        check_java(str(tmp_path))
    assert caught.value.code == "ACEP-S030"
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AcepError, match="none in PATH"):
        check_java()


# --- packages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["3.5.4", "4.0.1"])
def test_pyspark_too_old(monkeypatch, version):
    monkeypatch.setattr("pyspark.__version__", version)
    with pytest.raises(AcepError, match=f"this is {version}") as caught:
        check_spark()
    assert caught.value.code == "ACEP-S032"


@pytest.mark.parametrize("version", ["4.1.0", "4.10.0.dev1", "5.0.0"])
def test_pyspark_new_enough(monkeypatch, version):
    monkeypatch.setattr("pyspark.__version__", version)
    check_spark(streaming=True)


def test_no_pyspark(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(AcepError, match="not installed") as caught:
        check_spark()
    assert caught.value.code == "ACEP-S032"


def test_streams_need_protobuf(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "google.protobuf" else name)
    check_spark()
    with pytest.raises(AcepError, match="protobuf") as caught:
        check_spark(streaming=True)
    assert caught.value.code == "ACEP-S033"


@pytest.mark.parametrize(
    ("master", "number"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[4, 2]", 4),
        ("local[*]", os.cpu_count()),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_cores_of_this_machine(master, number):
    assert cores(master) == number


# --- errors of workers ------------------------------------------------------------------------------------------

TRACE = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "x.py", line 3, in match
    raise error
{}

JVM stacktrace:
org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.api.python.BasePythonRunner"""

RAISED = [
    (DataError("time runs backwards", code="ACEP-D007", hint="push events\n  in order"), DataError, 4),
    (QueryError("no unit", code="ACEP-Q000", text="WITHIN 3 parsec", start=9, end=15, hint="say s"), QueryError, 3),
    (UsageError("no such policy", code="ACEP-U034"), UsageError, 2),
    (DataError("a checkpoint of another query", code="ACEP-S012", hint="start anew"), DataError, 4),
    (AcepError("it failed", code="ACEP-S099"), AcepError, 1),
]


@pytest.mark.parametrize(("error", "kind", "code"), RAISED, ids=lambda item: getattr(item, "code", ""))
def test_an_error_of_a_worker_is_ours_again(error, kind, code):
    found = explained(RuntimeError(TRACE.format(f"acep_approx.errors.{type(error).__name__}: {error}")))
    assert str(found) == (str(error) if "\n  in" not in str(error) else str(found))
    assert (type(found), found.exit_code, found.code) == (kind, code, error.code)


def test_an_error_without_its_class_is_told_by_its_letter():
    found = explained(RuntimeError("[X] Failed to analyze: ACEP-Q012: no such word\n  abc\n  ^^^\n  hint: no SQLSTATE"))
    assert isinstance(found, QueryError)
    assert found.message == "no such word\n  abc\n  ^^^"


words = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Zs")), min_size=1).map(str.strip).filter(bool)


@given(words, st.none() | words, st.sampled_from("QDUES"))
def test_what_was_said_stays_word_for_word(message, hint, letter):
    error = DataError(message, code=f"ACEP-{letter}123", hint=hint)
    found = explained(RuntimeError(TRACE.format(f"acep_approx.errors.DataError: {error}")))
    assert (found.message, found.hint, found.code) == (message, hint, error.code)


def test_other_errors_are_not_explained():
    assert explained(RuntimeError(TRACE.format("ValueError: 3"))) is None
    assert explained(ValueError("ACEP is a program")) is None


UNREAD = """An error occurred while calling o395.collectToPython.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.SparkException: [FAILED_READ_FILE.{}] Encountered error while reading file {}. {} SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:853)
Caused by: {}
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:638)
"""


@pytest.mark.parametrize(
    ("why", "said", "cause", "code", "number"),
    [
        ("NO_HINT", "", "java.lang.RuntimeException: it is not a Parquet file", "ACEP-D013", 4),
        ("NO_HINT", "", "java.net.ConnectException: Connection refused", "ACEP-D013", 75),
        ("PARQUET_COLUMN_DATA_TYPE_MISMATCH", "Parquet column [x] is of type BINARY", "java.X: x", "ACEP-D016", 4),
    ],
)
def test_a_file_that_spark_cannot_read_is_named(why, said, cause, code, number):
    found = explained(RuntimeError(UNREAD.format(why, "file:///in/a%20b.parquet", said, cause)))
    assert found.code == code
    assert found.message.startswith("/in/a b.parquet: ")
    assert (said or cause.partition(": ")[2]) in found.message
    assert (EXIT_TEMPORARY if found.is_temporary else found.exit_code) == number
    assert "SQLSTATE" not in str(found)


@pytest.mark.parametrize("package", ["acep_approx", "numba", "history"])
def test_workers_without_a_package(package):
    found = explained(RuntimeError(TRACE.format(f"ModuleNotFoundError: No module named '{package}.events'")))
    assert found.code == "ACEP-S034"
    assert repr(package) in found.message
    assert "workers" in found.message


def test_a_server_without_a_package():
    trace = TRACE.format("ModuleNotFoundError: No module named 'acep_approx'")
    found = explained(RuntimeError(f"{trace} File pyspark/sql/connect/streaming/worker/foreach_batch_worker.py"))
    assert (found.code, "server" in found.message, "on the server" in found.hint) == ("ACEP-S034", True, True)


@pytest.mark.parametrize(
    ("said", "first"),
    [
        (
            ("<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "
            '"failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Connection refused"\n>'),
            "the Spark Connect server does not answer any more: UNKNOWN: ipv4:127.0.0.1:1: Connection refused",
        ),
        (
            ("[INVALID_HANDLE.SESSION_CHANGED] The existing Spark server driver instance has restarted.\n\n"
            "JVM stacktrace:\norg.apache.spark.SparkSQLException\n\tat org.apache.spark.X"),
            "[INVALID_HANDLE.SESSION_CHANGED] The existing Spark server driver instance has restarted.",
        ),
    ],
)
def test_a_server_that_is_gone(said, first):
    from pyspark.errors import PySparkException

    with pytest.raises(AcepError) as caught, clear_errors():
        raise PySparkException(said)
    assert caught.value.message == f"Spark failed: {first}"
    assert (caught.value.code, caught.value.is_temporary) == ("ACEP-S035", True)


def test_errors_of_spark_are_short():
    from pyspark.errors import PySparkRuntimeError

    with pytest.raises(DataError, match="ACEP-D007: time runs"), clear_errors():
        raise PySparkRuntimeError(TRACE.format("DataError: ACEP-D007: time runs"))
    with pytest.raises(AcepError, match="table or view") as caught, clear_errors():
        raise PySparkRuntimeError("no such table or view\n\n\tat org.Spark\n\tat org.Spark2")
    assert caught.value.code == "ACEP-S035"
    assert "org.Spark" not in str(caught.value)
    with pytest.raises(KeyError), clear_errors():
        raise KeyError("mine")


# --- a session --------------------------------------------------------------------------------------------------


def test_the_daemon_loads_the_kernels_of_both_engines():
    program = (
        "from acep_approx.spark.daemon import preload; preload();"
        "from acep_approx.jit.kernel import Kernel; import gc;"
        "print(len([one for one in gc.get_objects() if isinstance(one, Kernel) and one.kinds]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert int(done.stdout) >= 6


@pytest.mark.xdist_group("spark")
def test_a_session_suits_matching(spark):
    conf = spark.conf
    assert conf.get("spark.sql.session.timeZone") == "UTC"
    assert conf.get("spark.sql.shuffle.partitions") == "2"
    assert "RocksDB" in conf.get("spark.sql.streaming.stateStore.providerClass")
    assert module.session() is spark, "there is one"


@pytest.mark.xdist_group("spark")
def test_workers_find_this_tree_and_have_the_matcher_loaded(spark):
    def look(_):
        import sys

        import pyarrow as pa

        loaded = "acep_approx.matching.execution" in sys.modules
        import acep_approx

        yield pa.record_batch({"file": [acep_approx.__file__], "loaded": [loaded]})

    rows = spark.range(1).mapInArrow(look, "file string, loaded boolean").collect()
    root = Path(module.__file__).parents[2]
    assert {(Path(row.file), row.loaded) for row in rows} == {(root / "__init__.py", True)}


@pytest.mark.xdist_group("spark")
def test_an_error_in_a_task_is_ours(spark):
    def fail(_):
        raise DataError("time runs backwards", code="ACEP-D007", hint="sort")
        yield

    with pytest.raises(DataError) as caught, clear_errors():
        spark.range(1).mapInArrow(fail, "x long").collect()
    assert str(caught.value) == "ACEP-D007: time runs backwards\n  hint: sort"
