"""What a history on disk must be before any of it is used: numbers of vertices and bundles are indices later on.

All of these raise ``ValueError`` with what is wrong; ``store`` says where. Digests find what has changed; this finds
what was written so, or has changed in a history that is older than the digest of its manifest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from history.trace import Trace
from history.values import Values
from history.vectors import CONTEXT, PAIRED, Feature, Scheme, ValuesBy

Array = np.ndarray[Any, np.dtype[Any]]

MANIFEST = {"fingerprint": str, "notes": dict, "files": dict, "scheme": dict, "gap": int, "most_bundles": int}
"""What must be in the manifest beside the format."""
MOST_VERTICES, FAR = 1 << 26, 1 << 62
MOST_FEATURES, MOST_SINCE = 2, 8
"""Features of a place, and limits of the time since the last event, that the matcher has room for."""
KINDS = ("int", "float", "text", CONTEXT, *PAIRED)


def require(is_right: object, what: str) -> None:
    """Refuse what is not as it must be."""
    if not is_right:
        raise ValueError(what)


def check_manifest(manifest: dict[str, Any], tables: tuple[str, ...], others: tuple[str, ...]) -> None:
    """Its keys, their types, and the files that it names: all ``tables``, and none but ``others`` beside them."""
    for name, type_ in MANIFEST.items():
        require(type(manifest.get(name)) is type_, f"{name} is not there, or is no {type_.__name__}")
    files = manifest["files"]
    require(set(tables) <= set(files) <= {*tables, *others}, f"it names other files: {', '.join(sorted(files))}")
    require(manifest["most_bundles"] >= 0 and -1 <= manifest["gap"] < FAR, "gap or most_bundles is out of range")


def scheme_of(saved: dict[str, Any], like: Scheme | None = None) -> Scheme:
    """The scheme that ``Scheme.to_json`` wrote; only features may be other ones than those of ``like``."""
    try:
        scheme = Scheme.from_json(saved)
        _check_scheme(scheme)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("the scheme lacks a part, or has one of another type") from error
    require(like is None or _of_query(scheme) == _of_query(like), "the scheme is of another query")
    return scheme


def _of_query(scheme: Scheme) -> tuple[object, ...]:
    """What the same query gives every scheme, whatever was found to tell its runs apart."""
    return scheme.window, scheme.cells, [(place.state, place.errors) for place in scheme.places]


def _check_scheme(scheme: Scheme) -> None:
    require(_is_count(scheme.window) and scheme.window < FAR, "the window is no number of ticks")
    require(_is_count(scheme.remaining), "the parts of the window have no number")
    require(scheme.remaining >= 1, "the window has no parts")
    require(_are_rising(scheme.since) and len(scheme.since) <= MOST_SINCE, "the times since the last event do not rise")
    require(all(0 <= share <= 1 for share in scheme.since), "a time since the last event is outside of the window")
    require(type(scheme.cost_power) in (int, float) and 0 <= scheme.cost_power <= 1, "costs have no power from 0 to 1")
    require(scheme.values in get_args(ValuesBy), "it is not said how values are worked out")
    for place in scheme.places:
        is_place = isinstance(place.state, str) and _is_count(place.errors)
        require(is_place, "a place has no state, or no number of errors")
        require(len(place.features) <= MOST_FEATURES, f"{place.state!r} has more than {MOST_FEATURES} features")
        for feature in place.features:
            require(_is_feature(feature), f"the feature {feature.name!r} of {place.state!r} has other buckets")
    require(scheme.vertices <= MOST_VERTICES, f"there are {scheme.vertices} vertices, and {MOST_VERTICES} at most")


def _is_feature(feature: Feature) -> bool:
    groups = feature.groups
    are_groups = all(isinstance(text, str) and _is_count(group) for text, group in groups.items())
    return (
        isinstance(feature.name, str)
        and feature.kind in KINDS
        and (feature.kind == CONTEXT) == (feature.trees is not None)
        and len(feature.of) == 2 * (feature.kind in PAIRED)
        and all(isinstance(name, str) for name in feature.of)
        and _are_rising(feature.edges)
        and are_groups
        and set(groups.values()) == set(range(len(set(groups.values()))))
    )


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _are_rising(values: tuple[Any, ...]) -> bool:
    are_numbers = all(type(value) in (int, float) and math.isfinite(value) for value in values)
    return are_numbers and all(one < other for one, other in pairwise(values))


def check_column(name: str, column: Any, type_: str, size: int | None = None, least: float | None = 0) -> Array:
    """A flat column of a type, with as many values, none below ``least``.

    Parameters
    ----------
    name : str
        What it is called in the message.
    column : array
    type_ : str
        ``"int64"``, ``"float64"``, ...
    size : int, optional
        How many values it must have.
    least : float or None, default 0
        None: there is no least.
    """
    require(isinstance(column, np.ndarray), f"{name} is no column of numbers")
    found: Array = column
    require(found.dtype == type_ and found.ndim == 1, f"{name} has type {found.dtype} and not {type_}, or is not flat")
    require(size is None or len(found) == size, f"{name} has {len(found)} values, and {size} are needed")
    if least is not None and len(found):
        low = float(found.min())
        require(low >= least, f"{name} has {low:g}, which is too low")  # NaN is not at least anything
    return found


def values_of(columns: Mapping[str, Any], vertices: int) -> Values:
    """What runs of so many vertices are worth, if the columns can say that."""
    return Values(**{field.name: finite_column(field.name, columns[field.name], vertices) for field in fields(Values)})


def finite_column(name: str, column: Any, size: int) -> Array:
    """A flat column of as many floats, none of them NaN or infinite."""
    found = check_column(name, column, "float64", size, least=None)
    require(np.isfinite(found).all(), f"{name} is not finite everywhere")
    return found


def check_trace(trace: Trace) -> None:
    """Births, visits, match points and ends of a trace lead to one another, and none back to itself.

    Complexity: O(visits log visits).
    """
    births, visits, points, texts = len(trace.place), len(trace.birth), len(trace.point_row), len(trace.texts)
    for name in ("tick", "start"):
        check_column(name, getattr(trace, name), "int64", births, -FAR)
    for name, size in (("place", births), ("slot", births), ("remaining", visits), ("since", visits)):
        check_column(name, getattr(trace, name), "int64", size)
    for name, low in (("point_row", 0), ("point_tick", -FAR), ("point_slot", 0)):
        check_column(name, getattr(trace, name), "int64", points, low)
    check_places("birth", trace.birth, births)
    check_column("cost", trace.cost, "float64", visits)
    check_column("mask", trace.mask, "uint64", visits)
    check_column("first_point", trace.first_point, "int64", visits)
    reached = np.flatnonzero(trace.mask)
    last = trace.first_point[reached] + np.log2(trace.mask[reached].astype(np.float64)).astype(np.int64)
    require(not len(last) or last.max() < points, "visits reach match points that there are not")
    require(len(check_places("end_visit", trace.end_visit, visits)) == len(trace.end_point), "ends are of other visits")
    check_places("end_point", trace.end_point, points)
    if trace.slots:
        for name in ("slot", "point_slot"):
            check_places(name, getattr(trace, name), len(trace.slots))
    require(len(trace.columns) == len(trace.kinds) == len(trace.values), "columns have no kinds, or no values")
    of_texts = [c for c, kind in zip(trace.values, trace.kinds, strict=True) if kind == "text"]
    for codes in (trace.key, *of_texts):
        require(codes.shape == (births,) and not (codes >= texts).any(), "births have texts that there are not")
    require(all(column.shape == (births,) for column in trace.values), "births have no values")
    above = check_column("parent", trace.parent, "int64", visits, -1)
    require(not len(above) or above.max() < visits, "parents are visits that there are not")
    for _ in range(visits.bit_length()):
        above = np.where(above >= 0, above[above], -1)
    require((above < 0).all(), "a visit is its own parent")


def check_places(name: str, column: Any, size: int) -> Array:
    """A column of numbers of vertices, groups or bundles, of which there are ``size``."""
    found = check_column(name, column, "int64")
    if len(found):
        require(found.max() < size, f"{name} has {found.max()}, and there are {size}")
    return found


def check_order(name: str, first: Array, second: Array | None = None, size: int = 1) -> None:
    """Each number, or pair of numbers (the second below ``size``), once and in rising order."""
    key = first if second is None else first * size + second
    require((key[1:] > key[:-1]).all(), f"{name} is not in order, or has something twice")
