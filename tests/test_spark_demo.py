"""What ``acep demo --spark`` says, without Spark: signs of life where it takes long, and what learning brought."""

from __future__ import annotations

import time

import pytest

from acep_approx.cli.on_spark import words
from acep_approx.cli.on_spark.demo import FEW, NOW_BEGINS, brought, compile_kernels
from acep_approx.events.demo import flights
from acep_approx.learning.judging import Tally, Verdict
from tests.patience import PATIENCE


def heard(capsys: pytest.CaptureFixture[str], text: str) -> str:
    """What was said on stderr until this was."""
    said, until = "", time.monotonic() + PATIENCE
    while text not in said and time.monotonic() < until:
        time.sleep(0.01)
        said += capsys.readouterr().err
    assert text in said
    return said


def test_whatever_takes_long_says_so_again_and_again(capsys, monkeypatch):
    monkeypatch.setattr(words, "EVERY", 0.05)
    with words.waiting("learning") as tell:
        assert heard(capsys, "... learning, 0 s so far\n").startswith("learning ...\n")
        tell("choosing", 0.25)
        heard(capsys, "... choosing, 25%, 0 s so far\n")
    time.sleep(0.2)
    capsys.readouterr()
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_nothing_is_said_soon_after_something_was(capsys, monkeypatch):
    monkeypatch.setattr(words, "EVERY", 1.0)
    with words.Pulse("waiting") as pulse:
        for _ in range(15):
            time.sleep(0.1)
            pulse.said("micro-batch 2")
        assert capsys.readouterr().err == ""
        heard(capsys, "... micro-batch 2, 1 s so far\n")


def test_who_wants_nothing_said_hears_nothing(capsys, monkeypatch):
    monkeypatch.setattr(words, "EVERY", 0.01)
    with words.waiting("learning", enabled=False) as tell, words.Pulse("waiting", enabled=False) as pulse:
        tell("choosing", 0.5)
        pulse.said("micro-batch 2")
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


PAST = (
    "Learning from three months found 631 match points where keeping partial matches at random found 32; learning on "
    "while the stream ran found"
)
FOUND = "{} {} match points that the history alone missed, and missed {} that it found: {}."


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        (Tally(300, 41), "259 more in all"),
        (Tally(4, 40), "36 fewer in all"),
        (Tally(40, 42), "no more than chance explains, so it brought nothing here"),
    ],
)
def test_what_learning_brought_is_what_was_measured(judged, said):
    assert brought(32, 631, judged, None) == FOUND.format(PAST, judged.gained, judged.lost, said)


def test_kernels_are_compiled_with_a_few_flights_and_nothing_is_said(capfd):
    events = flights()
    assert events["ts"][FEW].as_py() < NOW_BEGINS
    compile_kernels(events.slice(0, FEW))  # errors of a thread are not raised anywhere
    said = [line for line in capfd.readouterr().err.splitlines() if not line.startswith("acep: compiling kernels")]
    assert said == []


def test_what_the_job_itself_found_is_said_where_it_refused_all_that_it_learned():
    refused, taken = Verdict("history", versions=6, refused=6), Verdict("learned", versions=6, refused=5)
    said = brought(32, 631, Tally(), refused)
    assert said.endswith("nothing here (the job itself found none of 6 versions better than the history).")
    for other in (taken, Verdict(), None):
        assert "the job itself" not in brought(32, 631, Tally(), other)
