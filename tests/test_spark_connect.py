"""Spark Connect answers as a classic session does, and says what it lacks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from typer.testing import CliRunner

from acep_approx.cli.main import app
from acep_approx.errors import EXIT_TEMPORARY
from tests.connect_answers import Answers, expected
from tests.connect_server import ROOT, connect_server, free_port
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.xdist_group("spark"),  # the classic session is that of other tests, too
    pytest.mark.skipif(find_spec("grpc") is None, reason="grpcio is not installed: pip install 'acep-approx[connect]'"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="module")
def connected(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a client found, in a process of its own."""
    home = tmp_path_factory.mktemp("connect") / "client"
    command = [sys.executable, "-m", "tests.connect_answers", server, str(home)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=2 * PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((home / "answers.json").read_text())


def test_the_same_answers_as_a_classic_session_and_as_one_machine(spark, connected, tmp_path):
    classic = json.loads(json.dumps(Answers(spark, tmp_path / "classic").all()))
    assert {name: connected[name] for name in classic} == classic
    here = expected()
    assert {name: connected[name] for name in here} == here
    assert connected["early"] == here["query"]
    assert classic["rules streamed"] == classic["rules"]
    assert 0 < len(classic["budget"]) < len(here["query"])
    assert {*classic["budget"], *classic["budget streamed"]} <= {*here["query"]}
    assert len(classic["told"]) == 1


def test_the_driver_on_the_server_sees_the_clock(connected):
    assert connected["clock"] == {"measured": True, "all told": True}


def test_what_is_missing_is_said_before_a_job_starts(connected):
    assert connected["refused"] == {
        "state store": "ACEP-S041",
        "database": "ACEP-S044",
        "Kafka": "ACEP-S080",
        "checkpoint": "ACEP-S052",
        "setting": "ACEP-S042",
    }


def test_a_command(server, tmp_path):
    (tmp_path / "events.csv").write_text("ts,n,type,x\n1,1,A,5\n2,2,B,7\n3,3,B,4\n")
    asked = ["run", "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9", str(tmp_path / "events.csv")]
    asked += ["--bind", "n", "--format", "jsonl", "-q"]
    here = CliRunner().invoke(app, asked)
    command = [sys.executable, "-m", "acep_approx.cli.main", *asked, "--spark", "--master", server]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(here.stdout)


@pytest.mark.parametrize(
    ("address", "code", "exit_code"), [("sc://127.0.0.1:PORT", "ACEP-S039", EXIT_TEMPORARY), ("sc://", "ACEP-S043", 2)]
)
def test_no_server(tmp_path, address, code, exit_code):
    master = address.replace("PORT", str(free_port()))
    (tmp_path / "events.csv").write_text("ts,type\n1,A\n")
    command = ["run", "PATTERN A a WITHIN 1", str(tmp_path / "events.csv"), "--spark", "--master", master]
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, code in done.stderr) == (exit_code, True)
