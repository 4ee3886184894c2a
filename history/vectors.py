"""Match vectors: where a run stands, in buckets. They are the vertices of the history.

Source: Li and Ge, PVLDB 2016, Definition 4: a match vector is (state, remaining window, err, time since last). Ours are
the sizes of the buckets, which the paper leaves open, and the group: a bucket of what the run remembers, without which
runs of very different prospects share a vertex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from history.arrays import Ints
from history.trees import Trees

MOST_GROUPS = 64
"""Groups of one place at most."""

SHOWN = 5
"""Texts of one bucket that are named to people."""

FeatureKind = Literal["int", "float", "text", "difference", "sum", "context"]
"""What a feature holds: a number or a text of its own, what comes of two numbers, or what trees make of the moment."""
PAIRED = ("difference", "sum")
MOST_LOG = 700.0
"""Of a number that floats have room for."""
CONTEXT = "context"
"""Kind and name of the feature that trees give, and kind of the columns that only they look at."""
ValuesBy = Literal["means", "paths", "index"]
"""How values are worked out from what was counted."""
Column = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Feature:
    """One thing that a run remembers, in buckets.

    Parameters
    ----------
    name : str
        The column of the trace: a register, or ``"key"``; what comes of two columns has a name of its own.
    kind : {"int", "float", "text", "difference", "sum", "context"}
        What it holds.
    edges : tuple of float
        Of numbers, in rising order. The bucket of a number is how many edges are at most as large as it.
    groups : dict of str to int
        Of texts: their buckets, from 0 without holes. All other texts, and NULL, are in the last bucket.
    of : tuple of (str, str), default none
        Of a difference or a sum: the two columns.
    trees : Trees, optional
        Of a context.

    Examples
    --------
    >>> price = Feature("a.price", "float", edges=(10.0, 20.0))
    >>> price.bucket(np.array([5.0, 10.0, 25.0, np.nan])).tolist()
    [0, 1, 2, 3]
    >>> Feature("key", "text", groups={"IBM": 0, "MSFT": 1}).bucket(np.array([1, 2, -1]), ["HP", "IBM", "SUN"]).tolist()
    [0, 2, 2]
    """

    name: str
    kind: FeatureKind
    edges: tuple[float, ...] = ()
    groups: dict[str, int] = field(default_factory=dict)
    of: tuple[str, ...] = ()
    trees: Trees | None = None

    @property
    def buckets(self) -> int:
        """How many there are, with the one of NULL (numbers) or of all other texts."""
        if self.kind == "text":
            return max(self.groups.values(), default=-1) + 2
        return len(self.edges) + 2

    def bucket(self, values: npt.ArrayLike, texts: Sequence[str] = ()) -> Ints:
        """Buckets of some values.

        Parameters
        ----------
        values : array
            Numbers, NaN for NULL; of texts their positions in ``texts``, below 0 for NULL.
        texts : sequence of str
            What the positions mean.

        Complexity: O(values · log edges + texts).
        """
        if self.kind == "text":
            others = self.buckets - 1
            table = np.array([*(self.groups.get(text, others) for text in texts), others], np.int64)
            codes = np.asarray(values).astype(np.int64)
            return table[np.where(codes < 0, len(texts), codes)]
        numbers = np.asarray(values, np.float64)
        found = np.searchsorted(np.asarray(self.edges, np.float64), numbers, side="right").astype(np.int64)
        return np.where(np.isnan(numbers), len(self.edges) + 1, found)

    def values(self, column: Callable[[str], Column]) -> Column:
        """Its values, given those of the columns of a trace. O(runs)."""
        if self.trees is not None:
            return self.trees.values([np.asarray(column(name), np.float64) for name in self.trees.inputs])
        if self.kind not in PAIRED:
            return column(self.name)
        one, other = (np.asarray(column(name), np.float64) for name in self.of)
        return one - other if self.kind == "difference" else one + other

    def words(self, bucket: int) -> str:
        """A bucket in words.

        Examples
        --------
        >>> [Feature("n", "int", edges=(2.0, 7.5)).words(bucket) for bucket in range(4)]
        ['below 2', '2 to 7.5', '7.5 or more', 'NULL']
        """
        if self.kind == "text":
            return self._named(bucket)
        if bucket > len(self.edges):
            return "NULL"
        if not self.edges:
            return "any"
        edges = map(float, self.edges)
        if self.kind == CONTEXT:  # logarithms
            shown = [f"{math.exp(min(edge, MOST_LOG)):.3g} times" for edge in edges]
        else:
            shown = [str(int(edge)) if edge.is_integer() else f"{edge:.6g}" for edge in edges]
        if bucket == 0:
            return f"below {shown[0]}"
        return f"{shown[bucket - 1]} to {shown[bucket]}" if bucket < len(shown) else f"{shown[-1]} or more"

    def _named(self, bucket: int) -> str:
        if bucket == self.buckets - 1:
            return "others"
        texts = sorted(text for text, group in self.groups.items() if group == bucket)
        more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
        return ", ".join(texts[:SHOWN]) + more


@dataclass(frozen=True)
class Place:
    """Where a run waits: a state of the automaton and the errors so far, with the features that tell its runs apart.

    Parameters
    ----------
    state : str
        Name of the state, for people.
    errors : int
        Letters that no event supplied so far.
    features : tuple of Feature
        At most 64 groups, which are all combinations of their buckets.
    """

    state: str
    errors: int
    features: tuple[Feature, ...] = ()

    def __post_init__(self) -> None:
        if self.groups > MOST_GROUPS:
            raise ValueError(f"{self.groups} groups at {self.state!r}: at most {MOST_GROUPS}")

    @property
    def groups(self) -> int:
        """How many groups its runs fall into."""
        return prod(feature.buckets for feature in self.features)


@dataclass(frozen=True)
class Scheme:
    """All vertices of a history: which places there are, and how each is cut into buckets.

    A vertex has the number ``first[place] + (group * R + remaining) * T + since``, where R is the number of parts of
    the window and T that of the buckets of the time since the last event. ``vertex // (R * T)`` is the group's number
    over all places, ``first_group[place] + group``.

    Parameters
    ----------
    places : tuple of Place
        In the numbering of the trace.
    window : int
        In ticks (or numbers of events).
    remaining : int, default 8
        Equal parts of the window, for what remains of it.
    since : tuple of float, default (0, 1/16, 1/4)
        Shares of the window, rising. The bucket of the time since the last event is how many of them it is above:
        0 means that the event has just been bound.
    values : {"means", "paths", "index"}, default "means"
        How it is worked out what runs at a vertex are worth: see ``values.fit_values``.
    cost_power : float, default 1
        The gain of a run is divided by this power of its run-steps: 1 ranks by gain per run-step, 0 by gain alone.

    Examples
    --------
    >>> scheme = Scheme((Place("a", 0), Place("a b", 0)), window=80)
    >>> scheme.vertices, scheme.first.tolist()
    (64, [0, 32])
    >>> scheme.encode([0, 1], [0, 0], [80, 9], [0, 6]).tolist()
    [28, 34]
    >>> scheme.describe(34)
    {'state': 'a b', 'errors': 0, 'remaining': [0, 10], 'since': [6, 20], 'features': {}}
    """

    places: tuple[Place, ...]
    window: int
    remaining: int = 8
    since: tuple[float, ...] = (0.0, 1 / 16, 1 / 4)
    values: ValuesBy = "means"
    cost_power: float = 1.0

    @property
    def cells(self) -> int:
        """Vertices of one group: R * T."""
        return self.remaining * (len(self.since) + 1)

    @cached_property
    def first_group(self) -> Ints:
        """Number of each place's first group; int64, shape (places,)."""
        sizes = [place.groups for place in self.places]
        return np.cumsum([0, *sizes], dtype=np.int64)[:-1]

    @cached_property
    def groups(self) -> int:
        """Groups of all places."""
        return sum(place.groups for place in self.places)

    @property
    def first(self) -> Ints:
        """Number of each place's first vertex; int64, shape (places,)."""
        return self.first_group * self.cells

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        return self.groups * self.cells

    @cached_property
    def remaining_floors(self) -> Ints:
        """Least ticks that remain in the parts 1 to R - 1; int64, shape (R - 1,)."""
        floors = [-(-part * (self.window + 1) // self.remaining) for part in range(1, self.remaining)]
        return np.array(floors, np.int64)

    @cached_property
    def since_limits(self) -> Ints:
        """Most ticks since the last event in the buckets 0 to T - 2; int64, shape (T - 1,)."""
        return np.array([int(share * self.window) for share in self.since], np.int64)

    @cached_property
    def place_of_group(self) -> Ints:
        """The place of each group; int64, shape (groups,)."""
        return np.repeat(np.arange(len(self.places)), [place.groups for place in self.places]).astype(np.int64)

    def encode(
        self, place: npt.ArrayLike, group: npt.ArrayLike, remaining: npt.ArrayLike, since: npt.ArrayLike
    ) -> Ints:
        """Vertices of some runs.

        Parameters
        ----------
        place, group : int array
            Number of the place, and of the group within it.
        remaining : int array
            Ticks until the window ends.
        since : int array
            Ticks since the last event was bound.

        Returns
        -------
        int64 array
            Of the arguments' common shape.

        Complexity: O(runs).
        """
        part = np.searchsorted(self.remaining_floors, np.asarray(remaining), side="right")
        late = np.searchsorted(self.since_limits, np.asarray(since), side="left")
        ahead = (np.asarray(group) * self.remaining + part) * (len(self.since) + 1) + late
        return np.asarray(self.first[np.asarray(place)] + ahead, np.int64)

    def group(self, place: int, values: Sequence[npt.ArrayLike], texts: Sequence[str] = (), size: int = 0) -> Ints:
        """Groups of some runs of one place.

        Parameters
        ----------
        place : int
            Number of the place.
        values : sequence of arrays
            One for each feature of the place, as ``Feature.bucket`` takes them.
        texts : sequence of str
            What the positions of texts mean.
        size : int, default 0
            How many runs there are, where the place has no features.

        Complexity: O(runs · features).
        """
        features = self.places[place].features
        group = np.zeros(len(np.asarray(values[0])) if features else size, np.int64)
        for feature, column in zip(features, values, strict=True):
            group = group * feature.buckets + feature.bucket(column, texts)
        return group

    def groups_at(self, place: Ints, column: Callable[[str], Column], texts: Sequence[str]) -> Ints:
        """Groups of some runs, each within its place, given the columns of all.

        Complexity: O(runs · features).
        """
        group = np.zeros(len(place), np.int64)
        for number, one in enumerate(self.places):
            if one.features:
                here = np.flatnonzero(place == number)
                values = [feature.values(lambda name: column(name)[here]) for feature in one.features]  # noqa: B023
                group[here] = self.group(number, values, texts)
        return group

    def describe(self, vertex: int) -> dict[str, Any]:
        """A vertex in names and ranges, for people.

        Returns
        -------
        dict
            state, errors; remaining and since as [least, most] ticks; features: a range in words for each name.
        """
        group, cell = divmod(int(vertex), self.cells)
        part, late = divmod(cell, len(self.since) + 1)
        number = int(self.place_of_group[group])
        place, within, words = self.places[number], group - int(self.first_group[number]), {}
        for feature in reversed(place.features):
            within, bucket = divmod(within, feature.buckets)
            words[feature.name] = feature.words(bucket)
        floors = [0, *self.remaining_floors.tolist(), self.window + 1]
        limits = [-1, *self.since_limits.tolist(), self.window]
        return {
            "state": place.state,
            "errors": place.errors,
            "remaining": [floors[part], floors[part + 1] - 1],
            "since": [min(limits[late] + 1, self.window), limits[late + 1]],
            "features": dict(reversed(words.items())),
        }

    def to_json(self) -> dict[str, Any]:
        """As plain lists, texts and numbers."""
        trees = [feature.trees for place in self.places for feature in place.features if feature.trees is not None]
        return {
            "window": self.window,
            "remaining": self.remaining,
            "since": list(self.since),
            "values": self.values,
            "cost_power": self.cost_power,
            "trees": [trees.to_json() for trees in trees[:1]],  # they are the same everywhere
            "places": [
                {
                    "state": place.state,
                    "errors": place.errors,
                    "features": [
                        {"name": f.name, "kind": f.kind, "edges": list(f.edges), "groups": f.groups, "of": list(f.of)}
                        for f in place.features
                    ],
                }
                for place in self.places
            ],
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Scheme:
        """The scheme that ``to_json`` wrote; older ones know neither trees, nor pairs, nor how to be read."""
        trees = [Trees.from_json(some) for some in saved.get("trees", ())]
        places = tuple(
            Place(place["state"], place["errors"], tuple(_feature_of(f, trees) for f in place["features"]))
            for place in saved["places"]
        )
        how = saved.get("values", "means"), saved.get("cost_power", 1.0)
        return cls(places, saved["window"], saved["remaining"], tuple(saved["since"]), *how)


def _feature_of(saved: dict[str, Any], trees: Sequence[Trees]) -> Feature:
    return Feature(
        name=saved["name"],
        kind=saved["kind"],
        edges=tuple(saved["edges"]),
        groups=dict(saved["groups"]),
        of=tuple(saved.get("of", ())),
        trees=trees[0] if saved["kind"] == CONTEXT and trees else None,
    )
