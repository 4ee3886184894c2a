"""Lengths of time for Spark: the words of a run on one machine, and those that only Spark reads."""

from __future__ import annotations

import pytest

from acep_approx import compile_query
from acep_approx.errors import AcepError
from acep_approx.spark.plan.delays import delay, interval

QUERY = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")


@pytest.mark.parametrize(
    ("given", "is_time", "wanted"),
    [
        ("5 s", True, "5000 milliseconds"),
        ("10 seconds", True, "10000 milliseconds"),
        ("1.5 min", True, "90000 milliseconds"),
        ("1 us", True, "1 milliseconds"),
        ("0 s", True, "0 milliseconds"),
        (5, False, "5 milliseconds"),
        ("5", False, "5 milliseconds"),
        ("5 ticks", False, "5 milliseconds"),
        ("10 seconds", False, "10000 milliseconds"),
        ("1 minute 30 seconds", True, "1 minute 30 seconds"),
        ("INTERVAL 2 HOURS", False, "INTERVAL 2 HOURS"),
        ("1 month", True, "1 month"),
    ],
)
def test_a_watermark_in_the_words_of_spark(given, is_time, wanted):
    assert delay(given, is_time=is_time) == wanted


@pytest.mark.parametrize(("given", "wanted"), [("10 s", "10000 milliseconds"), ("1 hour 5 minutes",) * 2])
def test_a_trigger_in_the_words_of_spark(given, wanted):
    assert interval(given) == wanted


@pytest.mark.parametrize("given", ["5x", "-3 s", "5 events", "", "2.5", True, "1 minute and a bit"])
def test_what_is_no_watermark(given):
    with pytest.raises(AcepError, match="ACEP-U056: watermark is "):
        QUERY.spark(watermark=given)


def test_ticks_where_times_are_real():
    QUERY.spark(watermark=5)
    with pytest.raises(AcepError, match="ACEP-D073"):
        delay(5, is_time=True)


@pytest.mark.parametrize("given", ["5", "5x", "5 ticks"])
def test_what_is_no_trigger(given):
    with pytest.raises(AcepError, match="ACEP-U056: trigger is "):
        interval(given)
