"""Exit codes: what the documents say of them, what the code does, and which trouble is temporary."""

from __future__ import annotations

import ast
import errno
import os
import re
import socket
import sqlite3
from functools import cache
from pathlib import Path

import pytest

from acep_approx import errors
from acep_approx.cli.main import EXIT_CODES
from acep_approx.cli.manpage import manual
from acep_approx.errors import EXIT_TEMPORARY, TEMPORARY, AcepError, DataError, is_temporary
from acep_approx.live.checkpoint import CheckpointFolder
from acep_approx.spark.setup.answering import check_master
from tests.command_line import acep
from tests.processes import ROOT

DOCS = ROOT / "docs" / "reference"
QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"
CLASSES = {
    name: kind.exit_code
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, AcepError)
}


def sections() -> dict[str, str]:
    """The page of errors by its headings."""
    _, *parts = re.split(r"^## ", (DOCS / "errors.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(part.split("\n", 1) for part in parts)


def listed() -> dict[str, int]:
    """The exit code of each error, as the page says it: in its heading, or in a column of its own."""
    found = {}
    for heading, text in sections().items():
        whole = re.search(r"exit code (\d+)", heading)
        if whole and int(whole[1]) == EXIT_TEMPORARY:
            continue
        for code, second in re.findall(r"^\| `(ACEP-\w+)` \| ([^|]*) \|", text, re.MULTILINE):
            found[code] = int(whole[1]) if whole else int(second)
    return found


@cache
def raised() -> dict[str, set[tuple[int, bool]]]:
    """The exit codes of errors by the classes that the code makes of them, and whether it says that they pass."""
    found: dict[str, set[tuple[int, bool]]] = {}
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / "acep_approx").rglob("*.py"))
    for text in texts:
        for node in ast.walk(ast.parse(text)) if 'code="ACEP-' in text else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in CLASSES:
                continue
            given = {one.arg: one.value for one in node.keywords}
            if isinstance(code := given.get("code"), ast.Constant):
                found.setdefault(code.value, set()).add((CLASSES[node.func.id], "passes" in given))
    return found


def test_documents_and_code_agree_on_exit_codes():
    said, made = listed(), raised()
    assert len(made) > 200
    assert {code: {number for number, _ in kinds} for code, kinds in made.items() if code in said} == {
        code: {said[code]} for code in made if code in said
    }


def test_documents_and_code_agree_on_what_is_temporary():
    page = next(text for heading, text in sections().items() if f"exit code {EXIT_TEMPORARY}" in heading)
    assert set(re.findall(r"`(E[A-Z]+)`", page)) == set(TEMPORARY)
    told = set(re.findall(r"^\| `(ACEP-\w+)`", page, re.MULTILINE))
    assert {code for code, kinds in raised().items() if any(passes for _, passes in kinds)} <= told
    assert told <= listed().keys()


def test_help_manual_and_page_list_the_same_codes():
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    table = page.split("### Exit codes")[1].split("\n### ")[0]
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == list(EXIT_CODES)
    first = (DOCS / "errors.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", first, re.MULTILINE)} == set(EXIT_CODES)
    told = " ".join(acep("--help").stdout.replace("│", " ").split())
    status = manual().split('"EXIT STATUS"')[1].split(".SH ")[0]
    for number, meaning in EXIT_CODES.items():
        assert f"{number} {meaning}" in told
        assert f"\\fB{number}\\fR" in status


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (OSError(errno.ENOSPC, "no room"), True),
        (OSError(errno.EIO, "no answer"), True),
        (TimeoutError("no answer"), True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "nobody"), True),
        (BlockingIOError(errno.EAGAIN, "locked"), True),
        (PermissionError(errno.EACCES, "no right"), False),
        (FileNotFoundError(errno.ENOENT, "no file"), False),
        (MemoryError(), False),
        (ValueError("no"), False),
        (None, False),
    ],
)
def test_what_the_system_says_decides(error, passes):
    assert is_temporary(error) == passes
    ours = DataError("it cannot be read", code="ACEP-D013")
    ours.__cause__ = error
    assert ours.is_temporary == passes


def test_errors_that_are_among_their_own_causes_are_looked_at_once():
    first, second = DataError("one", code="ACEP-D013"), DataError("two", code="ACEP-D013")
    first.__cause__, second.__cause__ = second, first
    assert not is_temporary(first)
    second.passes = True
    assert is_temporary(first)


def test_a_locked_database_passes_and_a_damaged_one_does_not(tmp_path):
    path = tmp_path / "some.db"
    first, second = (sqlite3.connect(path, timeout=0, isolation_level=None) for _ in range(2))
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as caught:
        second.execute("BEGIN IMMEDIATE")
    assert is_temporary(caught.value)
    (tmp_path / "none.db").write_bytes(b"nothing of SQLite at all" * 100)
    with pytest.raises(sqlite3.DatabaseError) as caught:
        sqlite3.connect(tmp_path / "none.db").execute("SELECT * FROM sqlite_master")
    assert not is_temporary(caught.value)
    first.close()
    second.close()


@pytest.fixture
def events(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text("ts,type\n1,A\n2,B\n", encoding="utf-8")
    return "e.csv"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_temporary(events):
    assert "ACEP-E001" in acep("run", QUERY, events, "-o", "/dev/full", "--format", "jsonl", code=EXIT_TEMPORARY).stderr
    follow = ("--follow", "--until-idle", "0 s")
    acep("run", QUERY, events, *follow, "-o", "/dev/full", "--format", "jsonl", code=EXIT_TEMPORARY)


def test_a_lock_of_another_run_is_temporary(events, tmp_path):
    follow = ("--follow", "--until-idle", "0 s", "--checkpoint", "here", "-o", "found.jsonl")
    with CheckpointFolder(tmp_path / "here"):
        assert "ACEP-U143" in acep("run", QUERY, events, *follow, code=EXIT_TEMPORARY).stderr
    acep("run", QUERY, events, *follow)
    import fcntl

    with (tmp_path / "found.jsonl").open("r+b") as sink:
        fcntl.flock(sink, fcntl.LOCK_EX)
        assert "ACEP-U025" in acep("run", QUERY, events, *follow, code=EXIT_TEMPORARY).stderr
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    acep("run", QUERY, events, *follow[:4], "file", "-o", "other.jsonl", code=2)


def test_a_store_that_another_run_has_is_temporary(events, tmp_path):
    rules = "TABLE t (x text, KEY (x)) RULE r ON PATTERN SEQ(A a, B b) WITHIN 5"
    acep("run", rules, events, "--store", "s.db")
    other = sqlite3.connect(tmp_path / "s.db", timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert "ACEP-R204" in acep("run", rules, events, "--store", "s.db", code=EXIT_TEMPORARY).stderr
    other.close()
    (tmp_path / "no.db").write_bytes(b"nothing of SQLite at all" * 100)
    acep("run", rules, events, "--store", "no.db", code=4)


def test_a_port_that_another_program_has_is_temporary(events):
    pytest.importorskip("prometheus_client")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "ACEP-S054" in acep("run", QUERY, events, "--metrics-port", port, code=EXIT_TEMPORARY).stderr


def test_a_server_of_files_that_does_not_answer_is_temporary(events, monkeypatch):
    def answers_not(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("acep_approx.events.reading.decoding.open_stored", answers_not, raising=False)
    monkeypatch.setattr("acep_approx.events.reading.files.open_stored", answers_not)
    acep("run", QUERY, events, code=EXIT_TEMPORARY)


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("java.net.ConnectException: Connection refused", True),
        ("Job aborted: ExecutorLostFailure (executor 1 exited)", True),
        ("java.io.IOException: No space left on device", True),
        ("OSError: ACEP-E001: the system refuses: [Errno 28] No space left on device", True),
        ("java.io.IOException: Input/output error", True),
        ("DataError: ACEP-D013: e.csv: cannot be read: [Errno 116] Stale file handle", True),
        ("java.net.ConnectException: Call From vm/127.0.0.1 to localhost:1 failed on connection exception", True),
        ("Job aborted due to stage failure: Master removed our application: FAILED", True),
        ("software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: timed out", True),
        ("SafeModeException: Cannot create directory /x. Name node is in safe mode.", True),
        ("AnalysisException: no such column", False),
        ("DataError: ACEP-D007: time runs backwards", False),
    ],
)
def test_spark_that_has_no_connection_is_temporary(said, passes):
    from acep_approx.spark.setup.failures import _failed, explained

    assert (explained(RuntimeError(said)) or _failed(RuntimeError(said))).is_temporary == passes


def test_a_master_of_spark_that_does_not_answer_is_temporary(events, monkeypatch):
    spark = pytest.importorskip("pyspark")
    monkeypatch.setattr(spark.SparkContext, "_active_spark_context", None)  # other tests leave one, which is used then
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{free.getsockname()[1]}"
    for command in (("run", QUERY, events), ("train", QUERY, events, "-o", "history")):
        said = acep(*command, "--spark", "--master", master, code=EXIT_TEMPORARY).stderr
        assert f"ACEP-S039: no Spark master answers at {master}: " in said
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        check_master(f"{master},127.0.0.1:{one.getsockname()[1]}")  # one of several is enough
    check_master("yarn")
