"""The learner: takes what a matcher that sheds still sees, and says what runs are worth.

Source: Li and Ge, PVLDB 2016, name the update of the history by reinforcement learning; how is reconstruction
(docs/how-it-works/paper.md). The design is ours: a factored model (``rl.model``) with values by dynamic programming
(``rl.values``), in the spirit of Dyna (Sutton 1990), a TD(0) residual for what it misses (``rl.residual``), fading
sums (``rl.statistics``) and drift detection (``rl.drift``).
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property

import numpy as np
import numpy.typing as npt

from history.arrays import Floats, Ints
from history.checking import check_column, check_places, require, values_of
from history.values import Values
from rl.chart import Chart
from rl.drift import DELTA, Alarm, Calibration, Detectors, What, excess
from rl.model import Model, fit_model
from rl.records import Events, Lineages, Tests
from rl.residual import corrected
from rl.statistics import Statistics
from rl.values import Hazards, solve

HALF_LIFE = 8
"""Windows after which what was seen counts half."""
DISCOUNT = 0.1
"""What is left of the sums of a place after an alarm."""

_WHAT: tuple[What, ...] = ("tests", "cohort")
_ERRORS = ("tick", "place", "error")
_FACTORS = ("share", "rate", "selectivity", "tested")
_VALUES = ("gain", "cost", "chance")


class Updater:
    """Learns what runs are worth while the stream runs.

    It is shown records, keeps sums, and works out values when asked: ``observe`` and ``watch`` are cheap and called
    often, ``values`` is dearer and called when ranks are to be refreshed. ``settle`` learns, but leaves values to be
    worked out when they are needed. The same records give the same values; nothing is random.

    Parameters
    ----------
    chart : Chart
        Places and steps.
    half_life : float, optional
        Ticks after which what was seen counts half; 8 windows if not given.
    delta : float, default 0.0001
        Level of the drift detectors.

    Attributes
    ----------
    statistics : Statistics
        The sums.
    model : Model
        As of the last ``settle``.
    alarms : list of Alarm
        Of drift, in order.
    calibration : Calibration
        Of the chances foretold, against the outcomes of the cohort.
    observed : int
        Rows of tests and lineages so far.
    detectors : Detectors
        Of drift.

    Examples
    --------
    >>> from history import Place, Scheme
    >>> from rl import Events, Lineages, Tests
    >>> scheme = Scheme((Place("start", 0), Place("a", 0), Place("a b", 0)), window=80)
    >>> chart = Chart(scheme, np.array([1]), np.array([2]), np.array([0]), np.array([False]),
    ...     np.array([False, False, True]), np.array([True, True, False]), ("B",))
    >>> learner, ones = Updater(chart), np.ones(1000)
    >>> tests = Tests(np.zeros(1000, np.int64), scheme.encode(1, 0, np.arange(1000) % 80, 9), ones / 8, ones, ones,
    ...     (np.arange(1000) % 4 == 0) * ones, np.full(1000, -1))
    >>> learner.observe(Events(1000, np.array([4000.0]), 4000.0), tests, Lineages.none())
    >>> value = learner.values().gain[scheme.encode(1, 0, 75, 0)]  # an event in 8 ticks, one of 4 passes
    >>> print(f"{value:.1f} match points, {75 / 8 / 4:.1f} are true")
    2.3 match points, 2.3 are true
    """

    def __init__(self, chart: Chart, half_life: float | None = None, delta: float = DELTA) -> None:
        self.chart, self.delta = chart, delta
        self.statistics = Statistics(chart, HALF_LIFE * chart.scheme.window if half_life is None else half_life)
        self.calibration, self.alarms, self.observed = Calibration(), list[Alarm](), 0
        self.detectors = Detectors(delta)
        self._pending: dict[What, list[tuple[Ints, Ints, Floats]]] = {what: [] for what in _WHAT}
        self._learn()

    def observe(self, events: Events, tests: Tests, lineages: Lineages) -> None:
        """Take what was seen.

        Parameters
        ----------
        events : Events
            Every event.
        tests : Tests
            Of live runs.
        lineages : Lineages
            Outcomes of the cohort, in which nothing was shed.

        Notes
        -----
        How far off the predictions of the last ``settle`` are is kept until the next one. There are none before the
        first row, so neither are errors; of lineages only births count, because later visits share their outcome.

        Complexity: O(rows + pairs); with the first outcomes after a ``settle`` also ``rl.values.solve``, if values were
        not asked for.
        """
        outcomes = lineages.points > 0
        if len(outcomes):
            chance = self._foretold.values.chance[lineages.vertex]
            self.calibration.add(events.tick, chance, outcomes, lineages.weight)
        if self._is_informed:
            self._pending["tests"].append(self._errors_of_tests(events, tests))
            if len(outcomes):
                born = lineages.vertex % (len(self.chart.scheme.since) + 1) == 0
                place = self.chart.scheme.place_of_group[self.chart.group_of_vertex[lineages.vertex[born]]]
                self._pending["cohort"].append((lineages.tick[born], place, excess(chance[born], outcomes[born])))
        self.statistics.add(events, tests)
        self.observed += len(tests.step) + len(lineages.vertex)
        self._is_settled = False

    def succeed(self, other: Updater) -> None:
        """Go on where a learner of other vertices, but the same places, has come to: its detectors and calibration."""
        self.detectors, self.calibration = other.detectors, other.calibration

    def watch(self) -> list[Alarm]:
        """Look for drift in what was observed since the last time. Nothing is predicted anew.

        Errors are taken in order of tick and place. Where there is an alarm, the sums of the place are multiplied by
        0.1, once, so that what comes now counts for more.

        Returns
        -------
        list of Alarm
            The new ones.

        Complexity: O(errors log errors).
        """
        found = sorted(alarm for what in _WHAT for alarm in self.detectors.feed(what, *self._errors(what)))
        self._pending = {what: [] for what in _WHAT}
        if found:
            self.statistics.discount({alarm.place for alarm in found}, DISCOUNT)
            self.alarms = sorted([*self.alarms, *found])
            self._is_settled = False
        return found

    def settle(self) -> None:
        """Look for drift (``watch``), then learn: from now on errors are those of new predictions.

        Complexity: O(errors log errors + pairs + families). Values are worked out when they are first needed.
        """
        self.watch()
        self._learn()

    def values(self) -> Values:
        """What runs are worth, by the model and its residual; settles first if anything was observed since.

        Complexity: that of ``settle`` and ``rl.values.solve``; nothing if nothing was observed since.
        """
        if not self._is_settled:
            self.settle()
        return self._foretold.values

    def merge(self, other: Updater) -> Updater:
        """A learner as if one had seen what both have since they last settled.

        Parameters
        ----------
        other : Updater
            Of the same chart, which has seen other keys and has foretold the same: both are new, or one
            is a ``branch`` of the other, or both are branches of a third. Its drift detectors are left behind: only
            this one may have settled on what it has seen.

        Returns
        -------
        Updater
            Sums, calibration and errors that wait for the next ``settle`` of both; predictions and detectors of this
            one; the longer half-life.
        """
        merged = self.branch()
        merged.detectors = deepcopy(self.detectors)
        merged.statistics = self.statistics.merge(other.statistics)
        merged.calibration = self.calibration.merge(other.calibration)
        merged.alarms = sorted([*self.alarms, *other.alarms])
        merged.observed = self.observed + other.observed
        merged._pending = {what: [*self._pending[what], *other._pending[what]] for what in _WHAT}
        merged._is_settled = False
        return merged

    def branch(self) -> Updater:
        """A learner that has seen nothing, but foretells what this one does: for a part of the stream, to be merged."""
        made = Updater(self.chart, self.statistics.half_life, self.delta)
        made.model, made._foretold, made._is_informed = self.model, self._foretold, self._is_informed
        return made

    def to_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """As arrays by name, all but the drift detectors."""
        model, values = self.model, self._foretold.values
        return {
            "delta": np.array([self.delta]),
            "observed": np.array([self.observed], np.int64),
            "is_informed": np.array([self._is_informed]),
            "alarms": np.array([[a.tick, a.place, _WHAT.index(a.what)] for a in self.alarms], np.int64).reshape(-1, 3),
            **{f"statistics.{name}": column for name, column in self.statistics.to_arrays().items()},
            **{f"calibration.{name}": column for name, column in self.calibration.to_arrays().items()},
            **{f"model.{name}": getattr(model, name).copy() for name in _FACTORS},
            "model.children": np.concatenate([np.zeros(0), *(children.ravel() for children in model.children)]),
            **{f"values.{name}": getattr(values, name).copy() for name in _VALUES},
            **{f"{what}.{name}": self._errors(what)[at] for what in _WHAT for at, name in enumerate(_ERRORS)},
        }

    @classmethod
    def from_arrays(cls, chart: Chart, arrays: Mapping[str, npt.NDArray[np.generic]]) -> Updater:
        """What ``to_arrays`` wrote. Drift detectors restart empty, unless ``Detectors.restore`` is given theirs.

        Raises
        ------
        ValueError
            The arrays are those of another chart, or damaged.
        """

        def part(of: str) -> dict[str, npt.NDArray[np.generic]]:
            return {name.removeprefix(of): column for name, column in arrays.items() if name.startswith(of)}

        made = cls(chart, delta=float(arrays["delta"].item()))
        made.statistics = Statistics.from_arrays(chart, part("statistics."))
        made.calibration = Calibration.from_arrays(part("calibration."))
        made.observed = int(arrays["observed"].item())
        alarms, places = arrays["alarms"], len(chart.scheme.places)
        check_places("places of alarms", alarms[:, 1], places)
        check_places("kinds of alarms", alarms[:, 2], len(_WHAT))
        made.alarms = [Alarm(tick, place, _WHAT[what]) for tick, place, what in alarms.tolist()]
        model, values = part("model."), part("values.")
        families = np.split(model["children"], np.cumsum(made.statistics.pairs.families)[:-1])
        children = tuple(
            flat.astype(np.float64).reshape(own.shape) for flat, own in zip(families, made.model.children, strict=True)
        )
        factors = {name: model[name].astype(np.float64) for name in _FACTORS}
        for name, factor in factors.items():
            wanted = getattr(made.model, name).shape
            require(factor.shape == wanted and np.isfinite(factor).all(), f"{name} is not {wanted} finite numbers")
        require(all(np.isfinite(child).all() for child in children), "children are not finite everywhere")
        made.model = Model(**factors, children=children)
        made._foretold = _Foretold(chart, values_of(values, chart.scheme.vertices))
        made._is_informed, made._is_settled = bool(arrays["is_informed"].item()), False
        for what in _WHAT:
            tick, place, error = (arrays[f"{what}.{name}"] for name in _ERRORS)
            check_column("ticks of errors", tick, "int64", least=None)
            require(len(check_places("places of errors", place, places)) == len(tick), "errors are of other places")
            check_column("errors", error, "float64", len(tick), least=-1)
            made._pending[what] = [(tick.astype(np.int64), place.astype(np.int64), error.astype(np.float64))]
        return made

    def _learn(self) -> None:
        self.model = fit_model(self.chart, self.statistics)
        self._foretold = _Foretold(self.chart, corrected(self.chart, self.statistics, self.model))
        self._is_informed, self._is_settled = self.observed > 0, True

    def _errors_of_tests(self, events: Events, tests: Tests) -> tuple[Ints, Ints, Floats]:
        """Of those that an index did not leave out: ticks, places and how far off the model is."""
        looked = tests.tested > 0
        step, vertex = tests.step[looked], tests.vertex[looked]
        group, model = self.chart.group_of_vertex[vertex], self.model
        chance = np.minimum(model.selectivity[step, group] / model.tested[step, group], 1.0)
        error = excess(chance, tests.passed[looked] > 0)
        tick = np.full(len(step), events.tick) if tests.tick is None else tests.tick[looked]
        return tick, self.chart.source[step], error

    def _errors(self, what: What) -> tuple[Ints, Ints, Floats]:
        none = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        tick, place, error = zip(none, *self._pending[what], strict=True)
        return np.concatenate(tick), np.concatenate(place), np.concatenate(error)


class _Foretold:
    """Values that are worked out when they are first asked for, once for all learners that foretell the same.

    Parameters
    ----------
    chart : Chart
        Places and steps.
    source : Hazards or Values
        What they are worked out from, or they themselves.
    """

    def __init__(self, chart: Chart, source: Hazards | Values) -> None:
        self.chart, self.source = chart, source

    @cached_property
    def values(self) -> Values:
        return self.source if isinstance(self.source, Values) else solve(self.chart, self.source)
