"""A learner as bytes, to go on after a restart: plain arrays and a JSON header under a digest, no pickle.

What a learner and its parts save are dicts of numbers, texts, arrays, and such dicts of parts of their own (scopes).
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from acep_approx.learning.learner import Learner
from acep_approx.matching.sealed import sealed, unsealed
from acep_approx.ranges import check, reading
from history.npz import read_npz

FORMAT = 5
Arrays = dict[str, npt.NDArray[Any]]


def learner_to_bytes(learner: Learner | None, header: dict[str, Any]) -> bytes:
    """A learner, and what the caller wants to keep, as JSON. Complexity: O(tests that are kept)."""
    arrays: Arrays = {}
    saved = {"format": FORMAT, "caller": header, "learner": learner.save() if learner is not None else None}
    text = json.dumps(_without_arrays(saved, arrays)).encode()
    sink = io.BytesIO()
    np.savez(sink, header=np.frombuffer(text, np.uint8), **arrays)  # type: ignore[arg-type]
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
        check("format", good=saved["format"] == FORMAT and (saved["learner"] is None) == (learner is None))
        for path, array in arrays.items():
            scope = saved
            *parts, name = path.split("/")
            for part in parts:
                scope = scope[part]
            scope[name] = array
        if learner is not None:
            learner.load(saved["learner"])
        return dict(saved["caller"])


def _without_arrays(scope: dict[str, Any], arrays: Arrays, path: str = "") -> dict[str, Any]:
    """What JSON can say of a scope; its arrays, and those of its parts, go to ``arrays`` under their path."""
    rest = {}
    for name, value in scope.items():
        if isinstance(value, np.ndarray):
            arrays[f"{path}{name}"] = value
        else:
            rest[name] = _without_arrays(value, arrays, f"{path}{name}/") if isinstance(value, dict) else value
    return rest
