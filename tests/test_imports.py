"""Asking for help is quick: nothing heavy is imported before it is needed."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.processes import HEAVY, imported

COMMAND = "import sys; sys.argv = ['acep', *{}]; from acep_approx.cli.main import main; main()"
COMMANDS = ("look", "run", "train", "tune", "replay", "why", "check", "explain")


@pytest.mark.parametrize("arguments", ["--help", "--version", *(f"{command} --help" for command in COMMANDS)])
def test_help_imports_nothing_heavy(arguments):
    assert not imported(COMMAND.format(arguments.split())) & HEAVY


def test_the_package_imports_nothing_heavy():
    found = imported("import acep_approx")
    assert "acep_approx" in found
    assert not found & HEAVY


def test_what_is_imported_is_seen():
    assert {"numpy", "json"} <= imported("import json, numpy")


def test_compiling_a_query_imports_no_numba_and_no_pandas():
    found = imported("from acep_approx import compile_query; compile_query('PATTERN SEQ(A a, B b) WITHIN 5 ERRORS 1')")
    assert "lark" in found
    assert not found & {"numba", "llvmlite", "pandas", "pyspark", "sklearn"}


def test_a_worker_of_spark_imports_only_what_it_needs():
    """What notices changes is loaded where something is learned."""
    found = imported("import acep_approx.spark.worker.shard")
    assert "pyarrow" in found
    assert not found & {"numba", "pandas", "river", "sklearn", "scipy"}


def test_a_process_that_asks_what_a_stream_keeps_imports_nothing_that_matches():
    """Spark starts one for each stream, with the processor that it pickled."""
    program = (
        "import sys; import pickle; from pyspark import cloudpickle\n"
        "from acep_approx.spark.plan.processor import ShardProcessor\n"
        "pickled = cloudpickle.dumps(ShardProcessor('some job', range(2)))\n"
        "assert pickle.loads(pickled).job == 'some job'\n"
    )
    found = imported(program)
    assert "pyspark" in found
    assert not found & {"numba", "pandas", "pyarrow", "lark"}


def test_a_run_over_a_file_imports_only_what_it_needs(tmp_path):
    pq.write_table(pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1.5, 2.5]}), tmp_path / "events.parquet")
    query = "PATTERN SEQ(A a, B b) WHERE b.x > 1 WITHIN 5"
    found = imported(COMMAND.format(["run", query, str(tmp_path / "events.parquet")]))
    assert "numba" in found
    assert not found & {"pandas", "rich", "sklearn", "pyspark"}


@pytest.mark.parametrize("command", [["look"], ["run", "PATTERN SEQ(A a, B b) WITHIN 5 h"]])
def test_a_command_over_a_csv_imports_only_what_it_needs(command, tmp_path):
    (tmp_path / "events.csv").write_text("ts,type\n2024-05-01 08:00,A\n2024-05-01 09:00,B\n")
    found = imported(COMMAND.format([*command, str(tmp_path / "events.csv")]))
    assert "pyarrow" in found
    assert not found & {"pandas", "pydantic", "sklearn", "pyspark"}
