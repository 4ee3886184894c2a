"""``--metrics-port``: whoever asks by HTTP gets the numbers of a run, of every kind, while it lasts."""

from __future__ import annotations

import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from acep_approx.events.live.text import Pace
from acep_approx.live import prometheus
from tests.command_line import acep

pytest.importorskip("prometheus_client")

QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"
EVENTS = "ts,type,box\n1,A,1\n2,B,1\n3,C,1\n4,A,\n5,B\n"
SKIP = ["--on-malformed", "skip"]
LATE = "ts,type\n1,A\n9,B\n2,A\n"
RULES = """TABLE room (id text, n int DEFAULT 0, KEY (id))
RULE r ON PATTERN A a WITHIN 1 DO UPSERT room SET n = old.n + 1 AT (a.type) END"""
FOLLOW = ["--follow", "--until-idle", "0 s"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text(EVENTS)
    Path("late.csv").write_text(LATE)
    Path("q.acep").write_text(QUERY)
    Path("r.acep").write_text(RULES)
    Path("queries").mkdir()
    Path("queries/q.acep").write_text(QUERY)


def scraped(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


@pytest.fixture
def at_the_end(monkeypatch):
    """What is served at the end of each run."""
    found = []
    close = prometheus.Served.close

    def last(self):
        found.append(scraped(self.port))
        close(self)

    monkeypatch.setattr(prometheus.Served, "close", last)
    return found


def events(found, pattern, result):
    return found.get(f'acep_events_total{{pattern="{pattern}",result="{result}"}}')


BUDGET = ["--budget", "9 runs", "--engine", "runs"]


@pytest.mark.parametrize("more", [[], FOLLOW, BUDGET, ["--sort"], ["--page", "p.html"]])
def test_of_one_query(at_the_end, more):
    said = acep("run", "q.acep", "e.csv", *SKIP, *more, "--metrics-port", "0").stderr
    (found,) = at_the_end
    assert "numbers for Prometheus: http://127.0.0.1:" in said
    results = {result: events(found, "q.acep", result) for result in ("matched", "ignored", "malformed", "late")}
    assert results == {"matched": 3, "ignored": 1, "malformed": 1, "late": 0}
    assert found['acep_matches_total{pattern="q.acep"}'] == found['acep_results_total{pattern="q.acep"}'] == 1
    assert found['acep_run_steps_total{pattern="q.acep"}'] >= 0


def test_of_standard_input_and_of_points(at_the_end):
    acep("run", QUERY, "-", "--output", "points", "--metrics-port", "0", stdin=b"ts,type\n1,A\n2,B\n3,B\n")
    (found,) = at_the_end
    assert events(found, QUERY, "matched") == 3
    assert found[f'acep_results_total{{pattern="{QUERY}"}}'] == 2
    assert f'acep_matches_total{{pattern="{QUERY}"}}' not in found


@pytest.mark.parametrize("more", [[], FOLLOW])
@pytest.mark.parametrize(
    ("arguments", "name", "read", "late", "matches"),
    [
        (["--queries", "queries", "e.csv", *SKIP], "queries", 4, 0, 1),
        (["r.acep", "e.csv", *SKIP], "r.acep", 4, 0, 2),
        (["q.acep", "late.csv", "--watermark", "1"], "q.acep", 3, 1, 0),
        (["q.acep", "late.csv", "--watermark", "1", "--output", "points"], "q.acep", 3, 1, None),
        (["q.acep", "late.csv", "--watermark", "1", "--output", "count"], "q.acep", 3, 1, None),
    ],
)
def test_of_many_queries_of_rules_and_of_late_events(at_the_end, arguments, name, read, late, matches, more):
    acep("run", *arguments, *more, "--metrics-port", "0")
    (found,) = at_the_end
    assert (events(found, name, "read"), events(found, name, "late")) == (read, late)
    assert found.get(f'acep_matches_total{{pattern="{name}"}}') == matches


def test_while_a_live_run_waits(monkeypatch):
    seen, ports = [], []

    def wait(self, seconds=0):
        seen.append(scraped(ports[0]))
        if len(seen) < 3:
            with Path("e.csv").open("a") as file:
                file.write("6,B,1\n" if len(seen) == 1 else "7,")
        else:
            self.stop()

    monkeypatch.setattr("acep_approx.cli.metrics.say_where", lambda numbers: ports.append(numbers.port))
    monkeypatch.setattr(Pace, "wait", wait)
    acep("run", "q.acep", "e.csv", "--follow", *SKIP, "--metrics-port", "0")
    assert [events(one, "q.acep", "matched") for one in seen] == [3, 4, 4]
    assert [one['acep_matches_total{pattern="q.acep"}'] for one in seen] == [1, 3, 3]
    assert [one['acep_input_behind{pattern="q.acep"}'] for one in seen] == [0, 0, 2]


def test_a_query_in_several_lines_and_odd_signs(at_the_end):
    Path('x".csv').write_text("ts,type\n1,A\n2,B\n")
    acep("run", "PATTERN SEQ(A a,\n  B b) WHERE a.type = 'A'\nWITHIN 5", 'x".csv', "--metrics-port", "0", "--quiet")
    (found,) = at_the_end
    assert events(found, "PATTERN SEQ(A a, B b) WHERE a.type = 'A' WITHIN 5", "matched") == 2


def test_what_cannot_be_served_is_refused(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "ACEP-S054" in acep("run", "q.acep", "e.csv", "--metrics-port", port, code=75).stderr
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert "ACEP-S053" in acep("run", "q.acep", "e.csv", "--metrics-port", "0", code=2).stderr
    assert "ACEP-S071" in acep("run", "q.acep", "e.csv", "--spark", "--metrics-port", "0", code=2).stderr
