"""Recordings of what is printed and written: what is left out of them, and what a comparison says."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.recordings.comparing import compare
from experiments.recordings.evaluation import all_cases
from experiments.recordings.stable import stable
from experiments.speed.interleaved import rows_of

RUN = "5 events read, 5 relevant to the query; {} s\n3 matches; numbers at http://127.0.0.1:{}/metrics\n"


def test_each_case_has_a_name_of_its_own() -> None:
    cases = all_cases(spark=True)
    assert len({case.name for case in cases}) == len(cases) > 1000


def test_what_changes_from_run_to_run_is_left_out_and_nothing_else() -> None:
    one, other = (stable(RUN.format(*some), {}) for some in (("0.01", 4711), ("12.50", 80)))
    assert one == other
    assert stable(one, {}) == one
    assert "5 events read" in one
    kept = "start 2024-05-01T08:00:00Z, within 12 s, price 1.05"
    assert stable(kept, {}) == kept
    assert stable("/tmp/x/here/found.csv in /tmp/x", {"/tmp/x": "HOME", "/tmp/x/here": "HERE"}) == (
        "HERE/found.csv in HOME"
    )


def test_a_comparison_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, texts in {"old": ("a\nb", "same", "0.10 s"), "new": ("a\nc", "same", "0.10 s")}.items():
        (tmp_path / name / "plain").mkdir(parents=True)
        for number, text in enumerate(texts):
            (tmp_path / name / "plain" / f"{number}.txt").write_text(text)
    (tmp_path / "new" / "plain" / "more.txt").touch()
    assert compare(tmp_path / "old", tmp_path / "new") == 2
    said = capsys.readouterr().out
    assert "##### plain/0\n" in said
    assert "-b\n+c\n" in said
    assert "##### plain/more\nonly in " in said
    assert "4 cases: 2 differ\n" in said
    (tmp_path / "expected").write_text("# answers now\nplain/0\nplain/m*\nplain/none\n")
    assert compare(tmp_path / "old", tmp_path / "new", tmp_path / "expected") == 0
    assert capsys.readouterr().out == (
        "expected, but nothing differs: plain/none\n4 cases: 0 differ, 2 more as expected\n"
    )


def test_rows_of_benchmarks_are_read_as_they_are_printed() -> None:
    text = (
        "  title: k = 2\n┏━━━━┓\n┃ workload ┃ ours ┃ / ours ┃\n┡━━━┩\n│ W1, 2 letters │ 1,051 (50-70) │ 2.1 │\n└──┘\n"
    )
    assert rows_of(text) == {
        ("title: k = 2: W1, 2 letters", "ours"): 1051.0,
        ("title: k = 2: W1, 2 letters", "/ ours"): 2.1,
    }
    lines = "one query in a set: alone      1.42 x the time    1.1 x\na read: +2059 ns per event\n"
    assert rows_of(lines) == {
        ("one query in a set: alone", "number 1"): 1.42,
        ("one query in a set: alone", "number 2"): 1.1,
        ("a read", "number 1"): 2059.0,
    }
