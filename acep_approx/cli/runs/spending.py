"""A budget of a run, and what it learns on the way: what is checked beforehand, and what is saved."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.cli.options.output import check_folder, format_of
from acep_approx.cli.options.together import refuse
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.terminal import amount, say
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    from acep_approx.api import Query
    from acep_approx.learning.online import OnlineLearning
    from acep_approx.results.budgeted import BudgetedRun
    from acep_approx.shedding.purse import Purse

LOG = logging.getLogger("acep_approx.checkpoint")


def check_budget(request: RunRequest) -> None:
    """Refuse options that need a budget, and files that cannot be written, before any work is done.

    Raises
    ------
    UsageError
        ``ACEP-U040``: such an option without ``--budget``; ``ACEP-U049``: one that needs ``--learn`` without it, or
        nowhere to save to; ``ACEP-U030``: not a budget; ``ACEP-U016``: a folder that is not there; ``ACEP-U018``: a
        table whose name does not say its format.
    """
    spending, learning, reports = request.options.spending, request.options.learning, request.options.reports
    if spending.budget is None:
        refuse(request.asked, {"no budget": "--budget"})
        return
    if not learning.learn:
        refuse(request.asked, {"nothing learned": "--learn"})
    if learning.save_every is not None and home_of(request) is None:
        raise UsageError("--save-every has nowhere to save to", code="ACEP-U049", hint="name a folder: --save DIR")
    if not spending.expand:
        refuse(request.asked, {"nothing expanded": "--expand"})
    tables = (reports.shed, learning.learn_log)
    for file in (reports.report, *tables):
        check_folder(file)
    spending.check()
    for table in tables:
        if table is not None:
            format_of(table)


def home_of(request: RunRequest) -> Path | None:
    """Where what is learned is saved."""
    return request.options.learning.save or request.options.spending.history


class Saving(ABC):
    """Saves what a run learns, at its end and every so many batches.

    Parameters
    ----------
    home : Path or None
        Where to; None: nowhere.
    every : int, optional
        Batches between two times; default: only at the end.
    """

    def __init__(self, home: Path | None, every: int | None = None) -> None:
        self.home, self.every = home, every
        self._batches = self._saved = self._rescored = 0

    @abstractmethod
    def check(self) -> None:
        """Refuse a place that cannot be written to, before anything is learned.

        Raises
        ------
        HistoryError
            A history of another query (``ACEP-H002``) or a damaged one (``ACEP-H004``), or something else
            (``ACEP-H006``).
        """

    @property
    @abstractmethod
    def learning(self) -> list[OnlineLearning]:
        """What is learned, of each engine."""

    @abstractmethod
    def save(self) -> None:
        """Save what was learned so far."""

    @property
    @abstractmethod
    def where(self) -> tuple[Path, str]:
        """Where it was saved last, and which version that is."""

    def after(self, show: Callable[[int], None]) -> Callable[[int], None]:
        """What is to be called after each batch: shows how many events are done, and saves if it is time."""

        def done(events: int) -> None:
            show(events)
            self._batches += 1
            is_time = self.every is not None and self._batches % self.every == 0
            if is_time and self._times > self._rescored:  # else there is nothing new
                self._save()

        return done

    def finish(self, *, quiet: bool) -> None:
        """The run has ended: save what it learned, and say where, or why not."""
        if self._times == 0:
            text = self._nothing()
        elif self.home is None:
            text = "what was learned is not saved: --save DIR keeps it"
        else:
            self._save()
            earlier = f", after {amount(self._saved - 1, 'version')} on the way" if self._saved > 1 else ""
            folder, version = self.where
            text = f"what was learned is in {folder} ({version}{earlier})"
        if not quiet:
            say(text)

    @property
    def _times(self) -> int:
        """How often it was worked out so far what runs are worth."""
        return sum(online.learner.versions for online in self.learning)

    def _save(self) -> None:
        self.save()
        LOG.info("what was learned so far is saved in %s", self.where[0])
        self._saved, self._rescored = self._saved + 1, self._times

    def _nothing(self) -> str:
        if not self.learning:
            return "there was nothing to learn: where nothing is shed, no partial match needs a value"
        tests = amount(sum(online.learner.sample_size.rows for online in self.learning), "test")
        saved = "" if self.home is None else ", and nothing saved"
        return f"nothing was learned{saved}: {tests} seen, and runs were never rescored"


class SavingOne(Saving):
    """Saves what a run of one query learns.

    Parameters
    ----------
    query : Query
        The query that is run.
    home, every
        As for ``Saving``.

    Attributes
    ----------
    matches : BudgetedRun or None
        The run; to be set before it begins.
    folder : Path or None
        The last version that was written.
    """

    def __init__(self, query: Query, home: Path | None, every: int | None = None) -> None:
        super().__init__(home, every)
        self.query = query
        self.matches: BudgetedRun | None = None
        self.folder: Path | None = None

    def check(self) -> None:
        """Refuse a place that cannot be written to."""
        from acep_approx.training.history_graph import HistoryGraph
        from history.store import check_free, is_history

        if self.home is None or self.query.plan.registers is None:
            return
        if is_history(self.home):
            HistoryGraph.load(self.home, self.query)
        else:
            check_free(self.home)

    @property
    def learning(self) -> list[OnlineLearning]:
        """What is learned, if anything is."""
        shedder = self.matches.shedder if self.matches is not None else None
        return [] if shedder is None or shedder.online is None else [shedder.online]

    def save(self) -> None:
        """Save it as a version of the history."""
        assert self.matches is not None
        assert self.home is not None
        known = self.matches.refreshed(self.query)
        assert known is not None
        self.folder = known.save(self.home, new_version=True)

    @property
    def where(self) -> tuple[Path, str]:
        """The version that was written last."""
        assert self.folder is not None, "one was written"
        return self.folder, f"version {int(self.folder.name[1:])}"


class SavingMany(Saving):
    """Saves what a run of several queries, or of rules, learns: a history of each.

    Attributes
    ----------
    purse : callable
        Gives the budget at work; to be set before the run begins.
    """

    purse: Callable[[], Purse | None] = staticmethod(lambda: None)

    def check(self) -> None:
        """Refuse a place that has something else than histories."""
        from history.store import check_free, is_history

        if self.home is not None and not (self.home.is_dir() and any(map(is_history, self.home.iterdir()))):
            check_free(self.home)

    @property
    def learning(self) -> list[OnlineLearning]:
        """What is learned, of each query, template or rule."""
        purse = self.purse()
        return [] if purse is None else [online for _, online in purse.learning]

    def save(self) -> None:
        """Save each history to which something has come as a version of its own."""
        purse = self.purse()
        assert self.home is not None
        assert purse is not None
        known = purse.refreshed()
        assert known is not None, "something was learned"
        known.save(self.home, new_version=True)
        self._known = known

    @property
    def where(self) -> tuple[Path, str]:
        """The folder, and how many of the histories in it are new."""
        assert self.home is not None, "it was saved there"
        new = len(self._known.changed)
        return self.home, f"new: {'a history' if new == 1 else f'{new:,} histories'}"
