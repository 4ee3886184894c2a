"""A learner as bytes, to go on after a restart: plain arrays and a JSON header under a digest, no pickle."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acep_approx.learning.judging import Promise, Ranking, Tally
from acep_approx.learning.learner import Learner, Moment
from acep_approx.learning.sample_size import SampleSize
from acep_approx.learning.training_sample import SampledTests, TrainingSample, packed, unpacked
from acep_approx.matching.sealed import sealed, unsealed
from acep_approx.ranges import COUNT, check, finite, number_in, reading
from history.checking import check_column, scheme_of, values_of
from history.npz import read_npz
from history.vectors import Scheme
from rl.drift import Alarm
from rl.records import Events
from rl.updater import Updater

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT, OLDER = 4, 3
"""The older one has no events by bucket of keys."""
RANKINGS = ("ranking", "known", "history", "latest")
VALUES = ("gain", "cost", "chance")
Arrays = dict[str, npt.NDArray[Any]]


def learner_to_bytes(learner: Learner | None, header: dict[str, Any]) -> bytes:
    """A learner, and what the caller wants to keep, as JSON. Complexity: O(tests that are kept)."""
    arrays: Arrays = {}
    saved: dict[str, Any] = {"format": FORMAT, "caller": header}
    if learner is not None:
        saved["learner"] = _header(learner)
        arrays |= {f"updater.{name}": column for name, column in learner.updater.to_arrays().items()}
        for name in RANKINGS:
            arrays |= _ranking_to_arrays(name, getattr(learner, name))
        for number, part in enumerate(learner.live.to_bytes()):
            arrays[f"graph.{number}"] = np.frombuffer(part, np.uint8)
        if learner._kept:
            rows = learner._tests.to_bytes({})
            arrays["rows"] = np.frombuffer(rows, np.uint8)
            arrays["letters"] = np.array([sample.events.counts for sample in learner._kept])
    sink = io.BytesIO()
    np.savez(sink, header=np.frombuffer(json.dumps(saved).encode(), np.uint8), **arrays)  # type: ignore[arg-type]
    return sealed([sink.getvalue()])


def learner_of(raw: bytes, learner: Learner | None) -> dict[str, Any]:
    """Restore a new learner to what ``learner_to_bytes`` wrote; returns the caller's header.

    Raises
    ------
    ValueError
        Not such bytes, or those of a learner of another query.
    """
    content = unsealed(raw)
    with reading(lambda: ValueError("these bytes are not those of a learner, or of one of another query")):
        arrays: Arrays = read_npz(io.BytesIO(content), len(content))
        saved = json.loads(arrays.pop("header").tobytes())
        check("format", good=saved["format"] in (FORMAT, OLDER) and ("learner" in saved) == (learner is not None))
        if learner is not None:
            _restore(learner, saved["learner"], arrays)
        return dict(saved["caller"])


def _header(learner: Learner) -> dict[str, Any]:
    return {
        "scheme": learner.scheme.to_json(),
        "texts": learner.reader.texts,
        "detectors": learner.updater.detectors.to_json(),
        "rankings": {name: _scheme_of(getattr(learner, name)) for name in RANKINGS},
        "live": {"scheme": learner.live.scheme.to_json(), **learner.live.header()},
        "tally": vars(learner.tally),
        "versions": learner.versions,
        "promise": vars(learner.promise),
        "share": learner.share,
        "refreshes": learner.refreshes,
        "alarms": [[alarm.tick, alarm.place, alarm.what] for alarm in learner.alarms],
        "looking": learner.sample_size.to_json(),
        "passed_by": learner._passed_by,
        "revalued": asdict(learner._rescored),
        "changed": asdict(learner._changed),
        "told": learner._selected_at,
        "begun": learner._begun,
        "kept": [[len(some.tests), some.events.tick, some.events.total, some.size] for some in learner._kept],
        "by_key": [packed(some.events.by_key) for some in learner._kept],
    }


def _restore(learner: Learner, saved: dict[str, Any], arrays: Arrays) -> None:
    learner.scheme = _scheme(saved["scheme"], learner)
    part = {name.removeprefix("updater."): each for name, each in arrays.items() if name.startswith("updater.")}
    learner.updater = Updater.from_arrays(learner.reader.chart(learner.scheme), part)
    learner.updater.detectors.restore(saved["detectors"])
    learner.reader.know(saved["texts"])
    for name in RANKINGS:
        setattr(learner, name, _ranking(learner, name, saved["rankings"][name], arrays))
    if learner.known is not None:
        learner.known = learner.ranking = learner.history
    live = dict(saved["live"])
    parts = sorted((int(name[6:]), each.tobytes()) for name, each in arrays.items() if name.startswith("graph."))
    learner.live.restore(_scheme(live.pop("scheme"), learner), [part for _, part in parts], live)
    finite("tally", *saved["tally"].values(), *saved["refreshes"], saved["share"])
    learner.tally, learner.versions = Tally(**saved["tally"]), number_in("versions", saved["versions"], 0, COUNT)
    learner.promise, learner.share = _promise(saved["promise"]), saved["share"]
    learner.refreshes = saved["refreshes"]
    learner.alarms = [Alarm(*alarm) for alarm in saved["alarms"]]
    learner.sample_size = SampleSize.from_json(saved["looking"])
    for name in ("revalued", "changed"):
        finite(name, *saved[name].values())
    learner._rescored, learner._changed = Moment(**saved["revalued"]), Moment(**saved["changed"])
    begun = saved.get("begun", 0)  # states of before have none
    learner._passed_by, learner._selected_at, learner._begun = (
        number_in(name, number, 0, COUNT)
        for name, number in (("passed_by", saved["passed_by"]), ("told", saved["told"]), ("begun", begun))
    )
    learner._kept, learner._whole = _kept(learner, saved, arrays), None


def _scheme(saved: dict[str, Any], learner: Learner) -> Scheme:
    """A scheme with the places and the window of the query."""
    scheme = scheme_of(saved)
    check("scheme", good=_vertices(scheme) == _vertices(learner.scheme))
    return scheme


def _promise(saved: dict[str, Any]) -> Promise:
    """A promise; ``most`` may be infinite."""
    promise = Promise(**saved)
    finite("promise", promise.rate, promise.failed, promise.window, promise.events, promise.found)
    finite("promise", *(tick for tick in (promise.tick, promise.begun) if tick is not None))
    check("promise", good=type(promise.most) in (int, float) and promise.most > 0)
    return promise


def _vertices(scheme: Scheme) -> tuple[Any, ...]:
    """What the same query gives every scheme, whatever was found to tell its runs apart."""
    return scheme.window, scheme.cells, [(place.state, place.errors) for place in scheme.places]


def _kept(learner: Learner, header: dict[str, Any], arrays: Arrays) -> list[TrainingSample]:
    """The tests that were kept, in the pieces that they came in."""
    saved: Sequence[Sequence[Any]] = header["kept"]
    if not saved:
        return []
    tests, _ = SampledTests.from_bytes(arrays["rows"].tobytes())
    learner.reader.check(tests)
    texts, letters, size = learner.reader.texts, arrays["letters"], len(learner.reader.tables.automaton.letters)
    sizes = [number_in("kept", size, 0, len(tests) + 1) for size, *_ in saved]
    check("kept", good=sum(sizes) == len(tests))
    check("letters", good=letters.shape == (len(saved), size) and (letters >= 0).all())
    for _, *numbers in saved:
        finite("kept", *numbers)
    by_key = header.get("by_key", [None] * len(saved))  # an older version does not know it
    ends = np.cumsum([size for size, *_ in saved])
    parts: list[SampledTests] = [tests[end - size : end] for end, (size, *_) in zip(ends, saved, strict=True)]
    events = [
        Events(tick, letters, total, unpacked(keyed, len(letters)))
        for letters, keyed, (_, tick, total, _) in zip(arrays["letters"], by_key, saved, strict=True)
    ]
    return [  # what they were samples of was used when they came
        TrainingSample(part, some, size, 0.0, np.zeros(0), 0, texts)
        for part, some, (*_, size) in zip(parts, events, saved, strict=True)
    ]


def _scheme_of(ranking: Ranking | None) -> dict[str, Any] | None:
    return None if ranking is None else ranking.scheme.to_json()


def _ranking_to_arrays(name: str, ranking: Ranking | None) -> Arrays:
    if ranking is None:
        return {}
    return {f"{name}.overlap": ranking.overlap} | {f"{name}.{col}": getattr(ranking.values, col) for col in VALUES}


def _ranking(learner: Learner, name: str, scheme: dict[str, Any] | None, arrays: Arrays) -> Ranking | None:
    if scheme is None:
        return None
    found = _scheme(scheme, learner)
    values = values_of({column: arrays[f"{name}.{column}"] for column in VALUES}, found.vertices)
    overlap = check_column("overlap", arrays[f"{name}.overlap"], "float64", len(found.places), least=None)
    check("overlap", good=np.isfinite(overlap).all())
    return Ranking(found, values, overlap)
