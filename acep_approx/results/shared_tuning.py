"""What many queries, or rules, find inside budgets that they share, learned on the first part of a past.

It is measured on the last part: the same numbers as ``acep train`` promises.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.budget.budget import Budget
from acep_approx.errors import DataError, FewPointsWarning, ManyMatchesWarning, UsageError
from acep_approx.events.reading.widening import one_table
from acep_approx.events.roles import infer_roles
from acep_approx.events.source import Source
from acep_approx.events.stream import read_events
from acep_approx.results.tuning import Advice, Trial, Tuning, advise, refuse_clock
from acep_approx.training.past import HELD_OUT, MOST_HELD_OUT
from acep_approx.training.promise import SHARES
from acep_approx.training.shared_promise import Found, Ran, SharedPromises, held_against
from acep_approx.training.training import OnProgress
from acep_approx.visible import aligned, printable

LEAST = 10
"""Events that a past must have."""
EXACT = Budget(100.0, "%")
PROMISED = tuple(Budget(100 * share, "%") for share in SHARES)
"""The budgets that are promised for where a history is learned."""
Run = Callable[[Budget, Any], Ran]
"""Runs all queries, or rules, over the last part of a past inside a budget, with what was learned, or None."""


@dataclass(frozen=True)
class CutPast:
    """A past in memory, in order, cut in two: where an event of a later time begins.

    Attributes
    ----------
    first, last : pyarrow.Table
        What is learned from, and what is measured on: the last 40%, at most 2**18 events.
    ticks : int64 array
        Of the events of the latter.
    whole : pyarrow.Table
        All events.
    """

    first: pa.Table
    last: pa.Table
    ticks: Ints
    whole: pa.Table

    @classmethod
    def read(cls, source: Source, *, sort: bool = False, **roles: Any) -> CutPast:
        """Read all events.

        Raises
        ------
        DataError
            ``ACEP-D060``: there are fewer than 10 events.
        """
        batches = [*read_events(source, infer_roles(source.schema, **roles), sort=sort)]
        size = sum(map(len, batches))
        if size < LEAST:
            raise DataError(f"a past of {size} events cannot be tuned on", code="ACEP-D060")
        ticks, table = np.concatenate([batch.ticks for batch in batches]), one_table([one.data for one in batches])
        cut = int(np.searchsorted(ticks, ticks[max(int((1 - HELD_OUT) * size), size - MOST_HELD_OUT)]))
        return cls(table.slice(0, cut), table.slice(cut), ticks[cut:], table)


YOUNG = 1
"""Generations of garbage that are looked through between runs: what runs is held in circles, with all its arrays, and
Python looks seldom where few objects are made."""


def measured(
    past: CutPast,
    learn: Callable[[], Any],
    run: Run,
    weights: Mapping[str, float],
    budgets: Sequence[Budget] = PROMISED,
    on_progress: OnProgress = lambda _what, _share: None,
) -> SharedPromises | None:
    """What runs inside budgets find of the last part of a past, by what the first part has taught.

    Parameters
    ----------
    past : CutPast
    learn : callable
        Learns from the first part.
    run : callable
        Runs over the last part.
    weights : mapping of str to float
        What a match point of a query or rule counts for, where it is not 1.
    budgets : sequence of Budget
    on_progress : callable, optional

    Returns
    -------
    SharedPromises or None
        None: the first part teaches nothing.
    """
    if not past.first.num_rows:
        return None
    inside: list[tuple[Budget, Ran]] = []
    with warnings.catch_warnings():
        for kind in (FewPointsWarning, ManyMatchesWarning):  # who runs on all of it is told of it then
            warnings.simplefilter("ignore", kind)
        on_progress("learning from the first part", 0.0)
        gc.collect(YOUNG)
        try:
            known = learn()
        except UsageError as error:
            if error.code != "ACEP-U046":
                raise
            return None
        if not known:  # no event is tested with any run
            return None
        gc.collect(YOUNG)
        exact = run(EXACT, None)
        for number, budget in enumerate(budgets):
            on_progress(f"trying {budget}", (number + 1) / (len(budgets) + 1))
            gc.collect(YOUNG)
            inside.append((budget, run(budget, known)))
    return held_against(exact, inside, weights, past.ticks, past.first.num_rows)


# --- what is tried ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SharedTrial:
    """One choice of ERRORS and WITHIN, and what budgets find then.

    Attributes
    ----------
    errors, within : int, str, optional
        None: as the queries say.
    promises : SharedPromises or None
        None: the first part of the past teaches nothing.
    """

    errors: int | None
    within: str | None
    promises: SharedPromises | None


@dataclass(frozen=True)
class SharedTuning:
    """What budgets find that many queries, or rules, share.

    Attributes
    ----------
    budgets : tuple of Budget
        In the order given.
    trials : tuple of SharedTrial
        One for each choice of ERRORS and WITHIN.
    trained, measured : int
        Events that were learned from, and that recall was measured on.
    things : str
        What shares them: ``"queries"`` or ``"rules"``.
    varied : str or None
        The only query to which other ERRORS and windows were given.
    """

    budgets: tuple[Budget, ...]
    trials: tuple[SharedTrial, ...]
    trained: int
    measured: int
    things: str = "queries"
    varied: str | None = None

    def table(self) -> list[list[str]]:
        """What is found, as a table of texts, its header first: of all, by weight, and of those that miss most."""
        varies = self._varies
        head = [*(name.upper() for name in varies), "", "match points", "run-steps per event"]
        rows = [[*head, *(f"recall at {budget}" for budget in self.budgets)]]
        for trial in self.trials:
            own = ["-" if (value := getattr(trial, name)) is None else str(value) for name in varies]
            rows += [[*own, *row] for row in self._rows(trial.promises)]
        return rows

    @property
    def _varies(self) -> list[str]:
        return [name for name in ("errors", "within") if any(getattr(one, name) is not None for one in self.trials)]

    @property
    def texts(self) -> int:
        """How many of the first columns of the table are texts."""
        return len(self._varies) + 1

    def _rows(self, known: SharedPromises | None) -> list[list[str]]:
        if known is None:
            return [[f"all {self.things}", "-", "-", *("-" for _ in self.budgets)]]
        whole = [f"all {self.things}", f"{known.total:,}", f"{known.exact:,.3g}"]
        rows = [[*whole, *(_words(row.total, known.total) for row in known.rows)]]
        if known.is_weighted:
            rows.append(["by weight", "", "", *(str(row.weighted) for row in known.rows)])
        named = [self.varied] if self.varied in known.names else []
        for name in dict.fromkeys([*filter(None, named), *known.worst()] if len(known.names) > 1 else []):
            points = known.points[known.names.index(name)]
            rows.append([f"  {name}", f"{points:,}", "", *(str(known.part(name, row)) for row in known.rows)])
        return rows

    def as_one(self) -> Tuning:
        """All together as one query, recall by weight: what ``advise`` takes."""
        trials = tuple(_as_one(trial) for trial in self.trials)
        return Tuning(self.budgets, trials, self.trained, self.measured)

    @property
    def advice(self) -> tuple[Advice, ...]:
        """Which budget is recommended for each choice, and why; see ``advise``."""
        each = [Tuning(self.budgets, (trial,), self.trained, self.measured) for trial in self.as_one().trials]
        return tuple(map(advise, each))

    def recommended(self) -> list[str]:
        """The same in words."""
        lines = []
        for trial, advice in zip(self.trials, self.advice, strict=True):
            chosen = [f"ERRORS {trial.errors}"] * (trial.errors is not None)
            chosen += [f"WITHIN {trial.within}"] * (trial.within is not None)
            what = "no recommendation" if advice.within is None else f"recommended: {_budget(advice)}"
            lines += [f"{' '.join(chosen)}: {what}" if chosen else what, *(f"  {one}" for one in advice.reasons)]
        return lines

    def __str__(self) -> str:
        return printable("\n".join([*aligned(self.table(), texts=self.texts), *self.recommended()]))


def _words(found: Found, points: int) -> str:
    return str(found) if points else "-"


def _budget(advice: Advice) -> str:
    return f"a budget of {advice.budget}" if advice.budget else "no budget"


def _as_one(trial: SharedTrial) -> Trial:
    known, asked = trial.promises, Trial(trial.errors or 0, trial.within or "")
    if known is None:
        return asked
    return Trial(
        asked.errors,
        asked.within,
        points=known.total,
        steps=known.exact,
        work=tuple(row.steps / max(known.exact, 1e-9) for row in known.rows),
        recalls=tuple(row.weighted.recall for row in known.rows),
        intervals=tuple((row.weighted.low, row.weighted.high) for row in known.rows),
    )


def parsed(budgets: Sequence[str | float | Budget] | None) -> tuple[Budget, ...]:
    """Budgets to try; where none are given those that are promised for.

    Raises
    ------
    UsageError
        ``ACEP-U043``: one of time, of which two runs may find different matches; ``ACEP-U030``: there is none.
    """
    found = PROMISED if budgets is None else tuple(map(Budget.parse, budgets))
    if not found:
        hint = "name some, such as 10%,20%, or leave budgets out"
        raise UsageError("there is no budget to try", code="ACEP-U030", hint=hint)
    for budget in found:
        refuse_clock(budget)
    return found
