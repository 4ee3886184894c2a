"""Where Java or Maven is missing, too old, or never answers there is no broker of Kafka, and it is told why."""

from __future__ import annotations

import fcntl
import os

import pytest

from tests import kafka_broker
from tests.kafka_broker import NoBroker, packages

NEW, OLD = (f"echo 'openjdk version \"{number}.0.1\"' >&2" for number in (17, 11))
HANGS = "exec sleep 600"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Put programs of the shell in the place of Java and Maven, and wait for none of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def put(waits: str = "", **texts: str) -> None:
        for name, text in texts.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        if waits:
            monkeypatch.setattr(kafka_broker, waits, 0.3)

    return put


@pytest.mark.parametrize(
    ("waits", "java", "mvn", "why"),
    [
        ("START", HANGS, "", "java -version takes more than"),
        ("", OLD, "", "Java is older than 17"),
        ("FETCH", NEW, HANGS, "getting the packages of Kafka takes more than"),
        ("", NEW, "echo 'no route to host'; exit 1", "cannot be had: no route to host"),
        ("", f'case "$1" in -version) {NEW};; *) echo broken; exit 1;; esac', "", "cannot be prepared: broken"),
    ],
    ids=["Java hangs", "Java is old", "Maven hangs", "no registry", "Kafka is broken"],
)
def test_what_does_not_answer_is_a_reason(programs, waits, java, mvn, why):
    programs(waits, java=java, mvn=mvn)
    with pytest.raises(NoBroker, match=why):
        packages()


def test_another_process_is_not_waited_for_without_end(programs, monkeypatch, tmp_path):
    programs("FETCH", java=NEW)
    monkeypatch.setattr(kafka_broker, "START", 0)
    monkeypatch.setattr(kafka_broker, "_check_java", lambda: None)
    place = tmp_path / "cache" / "acep-approx-tests"
    place.mkdir(parents=True)
    with (place / f"kafka-{kafka_broker.VERSION}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(NoBroker, match="another process"):
            packages()
