"""``acep package``: the zip holds this tree, and Python runs it; ``test_spark_cluster.py`` sends it to executors."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from typer.testing import CliRunner

from acep_approx.cli.main import app
from acep_approx.spark.setup.package import write_package
from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent


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
