"""The driver's side of learning: it learns what one engine's runs are worth, and refreshes its history.

A single query is one engine; of a set each query by itself is one, with a history of its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.budget.budget import Budget
from acep_approx.learning.judging import Verdict
from acep_approx.learning.online import LEARNER
from acep_approx.shedding.refresher import Refresher
from acep_approx.spark.worker.observers import engine_folder
from acep_approx.training.history_graph import HistoryGraph, newest
from history.errors import HistoryError
from history.files import read_json, replace_file
from history.places import place_of
from history.store import is_history, point_to_newest, prune

if TYPE_CHECKING:
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.spark.worker.job import Job

log = logging.getLogger("acep_approx.spark")
BEGAN = "began.json"
KEPT_VERSIONS = 8


@dataclass
class EngineLearning:
    """Learns from the samples of one engine, and adds versions to its history.

    Parameters
    ----------
    job : Job
        With a budget that learns.
    control : Path
        Folder of what the driver tells the workers, and of what it must know after a restart.
    engine : str
        What the engine is known by; ``""``: it is the single query of the job.
    query : CompiledQuery
    engines : int
        How many share the budget.
    """

    job: Job
    control: Path
    engine: str
    query: CompiledQuery
    engines: int = 1
    refresher: Refresher = field(init=False)

    def __post_init__(self) -> None:
        self.control = engine_folder(self.control, self.engine)
        if self.engine:
            self.control.mkdir(parents=True, exist_ok=True)
            self.home.parent.mkdir(parents=True, exist_ok=True)
        version, began = self._began_with(), None
        if version is not None:
            began = HistoryGraph.load(self.home, self.query, version=version)
        self.refresher = self._refresher(began)
        saved = self.control / LEARNER
        if saved.exists():
            try:
                self.refresher.restore(saved.read_bytes())
            except ValueError:
                log.warning("%s cannot be read: what runs are worth is learned anew", saved)

    def _refresher(self, began: HistoryGraph | None) -> Refresher:
        spending = self.job.spending
        assert spending is not None, "there is a budget"
        budget = spending.budget if self.engines == 1 else _part(spending.budget, self.engines)
        load, is_guess = spending.load(budget, began), False
        if self.engine:  # what was said is of all engines together
            is_guess = began is None and budget.unit == "%"
            load = replace(load, full_work=1.0 if is_guess else None)
        return Refresher(self.query, self.job.plain, self.job.roles, load, knows_work=not is_guess)

    @property
    def home(self) -> Path:
        """The folder of its history."""
        assert self.job.spending is not None, "there is a budget"
        assert self.job.spending.history is not None, "a job that learns has a place for it"
        home = place_of(self.job.spending.history)
        return home / self.engine if self.engine else home

    @property
    def verdict(self) -> Verdict:
        """What learning has come to by now."""
        return self.refresher.verdict

    def process(self, batch: int, samples: Sequence[bytes]) -> None:
        """Learn from the samples of a micro-batch, unless that was done before."""
        refresher = self.refresher
        if batch <= refresher.batch:
            return
        refresher.process(batch, samples)
        if refresher.is_due():
            self._save(refresher.refreshed(), batch)
        if refresher.shares is not None:
            refresher.shares.save(self.control)
        replace_file(self.control / LEARNER, refresher.to_bytes())

    def _save(self, made: HistoryGraph, batch: int) -> None:
        """Add a version to the history; where that fails the workers go on with the last good one."""
        home = self.home
        try:
            point_to_newest(home)
            folder = made.save(home, new_version=is_history(home))
            prune(home, KEPT_VERSIONS, since=self._began_with() or 0)
        except (HistoryError, OSError) as error:
            log.warning("micro-batch %d: the history could not be refreshed: %s", batch, error)
        else:
            log.info("micro-batch %d: the history is refreshed: %s", batch, folder)

    def _began_with(self) -> int | None:
        """The version of the history that the job began with, also after a restart; None: nothing was known."""
        place = self.control / BEGAN
        if place.exists():
            try:
                version: int | None = read_json(place)
            except ValueError:
                version = -1
            if version is None or (type(version) is int and version > 0):
                return version
            log.warning("%s cannot be read: the job is taken to have begun with the version that holds now", place)
        version = newest(self.home, self.query).version_ if is_history(self.home) else None
        replace_file(place, json.dumps(version).encode())
        return version


def _part(budget: Budget, engines: int) -> Budget:
    """About what one of several engines has of a budget."""
    return budget if budget.unit == "%" else replace(budget, amount=budget.amount / engines)


def verdict_of(learning: Sequence[EngineLearning]) -> Verdict | None:
    """Return what learning has come to in all engines; None where nothing is learned.

    Runs are ranked by what most of the engines are ranked by.
    """
    if not learning:
        return None
    each = [one.verdict for one in learning]
    ranked = [one.ranked_by for one in each]
    sums = {name: sum(getattr(one, name) for one in each) for name in vars(each[0]) if name != "ranked_by"}
    return Verdict(max(ranked, key=ranked.count), **sums)
