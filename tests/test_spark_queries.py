"""Queries come and go in a job on Spark: what it finds is what a set here finds that changes at the same watermark."""

from __future__ import annotations

import logging
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import QuerySet
from acep_approx.api.on_spark.changing import ChangingWork
from acep_approx.api.on_spark.pinned import KEPT_NOTES, PinnedVersions
from acep_approx.api.on_spark.placing import Placing
from acep_approx.errors import DataError, UsageError
from acep_approx.subscriptions.versions import read_version
from tests.cases import cases
from tests.spark_changing import ChangingJob, set_queries
from tests.spark_streams import QUERIES, stream


def texts(*names: str) -> dict[str, str]:
    """Some queries by their ids."""
    return {name: QUERIES[name] for name in names}


def nothing(_: Random) -> None:
    """No change."""


def at_random(home: Any, chance: float = 0.05) -> Any:
    """Changes of a folder at any moment: some queries come or go, or get another text under the same id."""
    now = {one.id: one.text for one in read_version(home).queries}

    def changes(dice: Random) -> None:
        if dice.random() < chance:
            for name in dice.sample([*QUERIES], dice.randint(1, 4)):
                if name in now and dice.random() < 0.7:
                    del now[name]
                else:
                    now[name] = QUERIES[name] + " " * dice.randrange(2)
            set_queries(home, now)

    return changes


def changing_job(tmp_path: Any, seed: int, *began: str, size: int = 120, **more: Any) -> ChangingJob:
    """A job on random events that begins with some queries."""
    set_queries(tmp_path / "desk", texts(*(began or ("by user", "by nothing"))))
    return ChangingJob(tmp_path / "desk", tmp_path / "acep", stream(size, seed), Random(seed), **more)


@pytest.mark.parametrize("seed", range(cases(120)))
def test_a_job_finds_what_a_set_finds_that_changes_at_the_same_time(tmp_path, seed):
    dice = Random(seed)
    began = dice.choice([("by user",), ("by nothing",), ("by user", "by shop", "by nothing"), ("up", "twice up")])
    size, output = dice.choice((30, 150)), dice.choice(("matches", "matches", "points"))
    job = changing_job(tmp_path, seed, *began, size=size, shards=dice.choice((1, 2, 3)), output=output)
    job.run(at_random(job.home), dice.choice((0, 3)))
    assert job.found == job.expected


def test_the_random_cases_change_queries_and_do_micro_batches_again(tmp_path):
    job = changing_job(tmp_path, 5, "by user", "by nothing", size=200)
    job.run(at_random(job.home), kills=0.2)
    assert len({*job.versions}) > 5
    assert job.replayed > 3
    assert job.found.total() > 50


def _as_it_is_now(self, batch):
    """What a worker would do that takes the newest version when its task runs."""
    home = next(iter(self.homes))
    newest = read_version(home)
    pinned = PinnedVersions(self.control)
    if not pinned.has(newest.number):
        placing: Any = self.homes[home]
        pinned.keep(newest.number, placing._after(pinned.queries(pinned.notes[batch]), newest))
    return newest.number


@pytest.mark.parametrize("mutant", ["newest", "noted again", "one micro-batch late"])
def test_a_job_that_does_not_keep_to_the_note_is_noticed(tmp_path, monkeypatch, mutant):
    job = changing_job(tmp_path, 5, "by user", "by nothing", size=200)
    if mutant == "noted again":
        real = PinnedVersions.notes.fget

        def begin(self, batch):
            with monkeypatch.context() as patched:
                patched.setattr(
                    PinnedVersions, "notes", property(lambda one: {n: v for n, v in real(one).items() if n < batch})
                )
                self._pin(batch)

        monkeypatch.setattr("acep_approx.spark.streaming.driver.Driver.begin", begin)
    elif mutant == "newest":
        monkeypatch.setattr(PinnedVersions, "homes", {job.home: job.driver._pin}, raising=False)
        monkeypatch.setattr(PinnedVersions, "version_of", _as_it_is_now)
    else:
        real_ready = ChangingWork.ready

        def ready(self, batch):
            return real_ready(self, max(batch - 1, 0))

        monkeypatch.setattr(ChangingWork, "ready", ready)
    with pytest.raises(AssertionError):
        job.run(at_random(job.home, 0.1))
        assert job.found == job.expected
