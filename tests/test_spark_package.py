"""``acep package``: the zip holds this tree, and executors that have nothing else match with it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acep_approx.cli.main import app
from acep_approx.spark.setup.package import write_package
from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent
PROGRAM = """
import json, sys
sys.path.insert(0, {root!r})  # this process alone: what executors find is the zip
from acep_approx import compile_query
from acep_approx.spark import session

spark = session("local-cluster[1,1,1024]", **{conf!r})
spark.addArtifact({archive!r}, pyfile=True)
query = compile_query("PATTERN SEQ(A a, B b) WHERE [key] AND b.x > a.x WITHIN 10")


def match(batches):
    import acep_approx
    import pyarrow as pa

    for batch in batches:
        found = query.matcher().push(pa.Table.from_batches([batch]))
        yield pa.record_batch({{"file": [acep_approx.__file__], "a": found["a"].to_pylist()}})


events = spark.createDataFrame([(1, "A", 7, 1.0), (2, "B", 7, 2.0)], "ts long, type string, key long, x double")
print(json.dumps([row.asDict() for row in events.coalesce(1).mapInArrow(match, "file string, a long").collect()]))
spark.stop()
"""


def test_the_zip_holds_the_packages_and_is_always_the_same(tmp_path):
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    number = write_package(one)
    write_package(two)
    assert hashlib.sha256(one.read_bytes()).digest() == hashlib.sha256(two.read_bytes()).digest()
    with zipfile.ZipFile(one) as archive:
        names = archive.namelist()
        assert archive.read("acep_approx/api/query.py") == (ROOT / "acep_approx/api/query.py").read_bytes()
    assert len(names) == number
    assert {name.split("/")[0] for name in names} == {"acep_approx", "history", "rl"}
    assert {"acep_approx/query/grammar.lark", "history/__init__.py", "rl/py.typed"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_python_runs_it_from_the_zip(tmp_path):
    write_package(archive := tmp_path / "acep.zip")
    program = (
        "import acep_approx; from acep_approx import compile_query; print(acep_approx.__file__);"
        "events = [{'ts': 1, 'type': 'a'}, {'ts': 2, 'type': 'b'}];"
        "print(compile_query('ab WITHIN 5').match(events).to_arrow().num_rows)"
    )
    environment = {**os.environ, "PYTHONPATH": str(archive), "ACEP_JIT": "0"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    file, matches = done.stdout.split()
    assert file.startswith(str(archive))
    assert matches == "1"


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["package", "-o", "sent.zip"])
    assert done.exit_code == 0
    assert "executors must have numpy, numba" in done.output.replace("\n", " ")
    assert zipfile.is_zipfile(tmp_path / "sent.zip")
    refused = CliRunner().invoke(app, ["package", "-o", "acep.whl"])
    assert refused.exit_code == 2
    assert "ACEP-S036" in refused.output


@pytest.mark.slow
def test_executors_that_have_only_the_zip_match(tmp_path):
    import pyspark

    home = tmp_path / "spark"  # executors work in a folder of SPARK_HOME
    home.mkdir()
    for item in Path(pyspark.__file__).parent.iterdir():
        if item.name in ("bin", "jars", "sbin", "python"):
            (home / item.name).symlink_to(item)
    write_package(archive := tmp_path / "acep.zip")
    conf = {"spark.executor.memory": "1024m", "spark.executorEnv.ACEP_JIT": "0"}
    conf["spark.executor.extraJavaOptions"] = os.environ["SPARK_SUBMIT_OPTS"]  # as the driver's
    (tmp_path / "job.py").write_text(PROGRAM.format(root=str(ROOT), conf=conf, archive=str(archive)))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (row,) = json.loads(done.stdout.splitlines()[-1])
    assert "acep.zip" in row["file"]
    assert row["a"] == 0
